// SPDX-License-Identifier: GPL-2.0
/*
 * A learning Ethernet switch over unix datagram sockets, for labs of more than
 * two nodes (two nodes are joined by a plain pair of sockets).
 *
 * usage: switch DIR RAILS NODES
 * Port n of rail r is DIR/rail<r>-node<n>; the switch is DIR/rail<r>-switch.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_RAILS	16
#define MAX_NODES	64
#define MAX_FRAME	65536

struct port {
	struct sockaddr_un addr;
	unsigned char mac[6];
	int known;
};

static struct port ports[MAX_RAILS][MAX_NODES];
static int nodes;

static int set_path(struct sockaddr_un *addr, const char *dir, int rail,
		    const char *what, int node)
{
	int n;

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (node < 0)
		n = snprintf(addr->sun_path, sizeof(addr->sun_path),
			     "%s/rail%d-%s", dir, rail, what);
	else
		n = snprintf(addr->sun_path, sizeof(addr->sun_path),
			     "%s/rail%d-%s%d", dir, rail, what, node);
	return n < (int)sizeof(addr->sun_path) ? 0 : -1;
}

static void send_to(int fd, const struct port *port, const void *frame,
		    size_t len)
{
	/* A node that is down or stuck loses the frame, as on a real switch. */
	(void)!sendto(fd, frame, len, 0, (const struct sockaddr *)&port->addr,
		      sizeof(port->addr));
}

static void forward(int fd, struct port *rail, const struct sockaddr_un *from,
		    const unsigned char *frame, size_t len)
{
	struct port *target = NULL;
	int i, source = -1;

	for (i = 0; i < nodes; i++) {
		if (!strcmp(rail[i].addr.sun_path, from->sun_path))
			source = i;
		else if (rail[i].known && !memcmp(rail[i].mac, frame, 6))
			target = &rail[i];
	}
	if (source < 0 || len < 14)
		return;
	memcpy(rail[source].mac, frame + 6, 6);
	rail[source].known = 1;
	if (target && !(frame[0] & 1)) {
		send_to(fd, target, frame, len);
		return;
	}
	for (i = 0; i < nodes; i++)
		if (i != source)
			send_to(fd, &rail[i], frame, len);
}

int main(int argc, char **argv)
{
	/* Long enough for a busy node, short enough not to stop the others. */
	const struct timeval patience = { .tv_usec = 20000 };
	static unsigned char frame[MAX_FRAME];
	struct pollfd fds[MAX_RAILS];
	struct sockaddr_un addr;
	int rails, r, n;

	if (argc != 4) {
		fprintf(stderr, "usage: switch DIR RAILS NODES\n");
		return 2;
	}
	rails = atoi(argv[2]);
	nodes = atoi(argv[3]);
	if (rails < 1 || rails > MAX_RAILS || nodes < 1 || nodes > MAX_NODES) {
		fprintf(stderr, "switch: at most %d rails and %d nodes\n",
			MAX_RAILS, MAX_NODES);
		return 2;
	}
	for (r = 0; r < rails; r++) {
		for (n = 0; n < nodes; n++)
			if (set_path(&ports[r][n].addr, argv[1], r, "node", n))
				return 2;
		if (set_path(&addr, argv[1], r, "switch", -1))
			return 2;
		fds[r].fd = socket(AF_UNIX, SOCK_DGRAM, 0);
		fds[r].events = POLLIN;
		setsockopt(fds[r].fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
			   sizeof(patience));
		if (bind(fds[r].fd, (struct sockaddr *)&addr, sizeof(addr))) {
			perror(addr.sun_path);
			return 1;
		}
	}
	for (;;) {
		if (poll(fds, rails, -1) < 0 && errno != EINTR)
			return 1;
		for (r = 0; r < rails; r++) {
			struct sockaddr_un from = { 0 };
			socklen_t size = sizeof(from) - 1;
			ssize_t len;

			if (!(fds[r].revents & POLLIN))
				continue;
			len = recvfrom(fds[r].fd, frame, sizeof(frame), 0,
				       (struct sockaddr *)&from, &size);
			if (len > 0)
				forward(fds[r].fd, ports[r], &from, frame, len);
		}
	}
}
