// SPDX-License-Identifier: GPL-2.0
/* The connection beside the rails, and commands on stdin. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verify.h"

static int listen_once(int port)
{
	struct sockaddr_in6 addr = {
		.sin6_family = AF_INET6, .sin6_port = htons(port),
	};
	int one = 1, fd, conn;

	fd = socket(AF_INET6, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
		die(EXIT_SETUP, "port %d: %s", port, strerror(errno));
	say("listening");
	conn = accept(fd, NULL, NULL);
	close(fd);
	return conn;
}

static int dial(const char *host, int port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	char service[16];
	int fd, ret;

	snprintf(service, sizeof(service), "%d", port);
	ret = getaddrinfo(host, service, &hints, &list);
	if (ret)
		die(EXIT_SETUP, "%s: %s", host, gai_strerror(ret));
	fd = socket(list->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, list->ai_addr, list->ai_addrlen))
		die(EXIT_SETUP, "%s: %s", host, strerror(errno));
	freeaddrinfo(list);
	return fd;
}

int oob_open(const struct options *opt)
{
	int one = 1, fd;

	fd = opt->server ? dial(opt->server, opt->port) :
			   listen_once(opt->port);
	if (fd < 0)
		die(EXIT_SETUP, "connection: %s", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

void oob_send(int fd, const void *buf, size_t len)
{
	if (send(fd, buf, len, MSG_NOSIGNAL) != (ssize_t)len)
		die(EXIT_ERROR, "the peer went away");
}

void oob_exchange(int fd, const void *mine, void *theirs, size_t len)
{
	oob_send(fd, mine, len);
	if (recv(fd, theirs, len, MSG_WAITALL) != (ssize_t)len)
		die(EXIT_ERROR, "the peer went away");
}

int oob_try(int fd, void *buf, size_t len)
{
	ssize_t n = recv(fd, buf, len, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (!n)
		return -1;
	if ((size_t)n < len)
		return 0;
	return recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len ? 1 : -1;
}

static atomic_bool go, stop;

static void *read_input(void *arg)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "go\n"))
			atomic_store(&go, true);
		else if (!strcmp(line, "stop\n"))
			atomic_store(&stop, true);
	}
	return arg;
}

void input_start(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, read_input, NULL))
		die(EXIT_SETUP, "cannot start a thread");
	pthread_detach(thread);
}

bool input_go(void)
{
	return atomic_load(&go);
}

bool input_stop(void)
{
	return atomic_load(&stop);
}
