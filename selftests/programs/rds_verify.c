// SPDX-License-Identifier: GPL-2.0
/*
 * Sends numbered datagrams over RDS to a peer that does the same, and checks that each of the
 * peer's comes once, in order and as it was sent.  Both are the same program; who is told to stop
 * (SIGINT, or --count) says so with its last datagram, and ends when the peer's last one has come.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/rds.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SIZE_MAX_ALLOWED	(64 << 10)
#define AHEAD			64	/* datagrams that the peer has not acknowledged */

/* In front of each datagram; the rest follows from the number. */
struct header {
	uint64_t number;
	uint64_t heard;		/* how many of the peer's have come */
	uint32_t size;
	uint32_t last;
};

static volatile sig_atomic_t stop;

struct stream {
	int fd;
	struct sockaddr_in peer;
	uint32_t size;
	uint64_t count, sent, heard, acked;
	uint64_t last_ms, pause_ms;	/* when it heard something, and the longest time without */
	int told, ended;	/* our last is sent, the peer's has come */
	int waits;		/* until it has heard something: what nobody is bound to is lost */
};

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void wrong(const char *what, uint64_t is, uint64_t expected)
{
	fprintf(stderr, "rds_verify: %s: %llu, expected %llu\n", what, (unsigned long long)is,
		(unsigned long long)expected);
	exit(3);
}

/* Some bytes, and now and then many: the same at both ends. */
static uint32_t size_of(const struct stream *s, uint64_t number)
{
	uint64_t mix = number * 0x9e3779b97f4a7c15ull;
	uint32_t most = mix >> 60 ? 512 : s->size;

	if (most > s->size)
		most = s->size;
	return sizeof(struct header) + (mix >> 32) % (most - sizeof(struct header) + 1);
}

static uint8_t byte_of(uint64_t number, uint32_t at)
{
	return (number * 31 + at * 7 + (at >> 8)) ^ 0x5a;
}

static int send_one(struct stream *s)
{
	static uint8_t buf[SIZE_MAX_ALLOWED];
	struct header *h = (struct header *)buf;
	uint32_t i, size = size_of(s, s->sent);
	ssize_t n;

	*h = (struct header) {
		.number = s->sent, .heard = s->heard, .size = size,
		.last = stop || (s->count && s->sent + 1 == s->count),
	};
	for (i = sizeof(*h); i < size; i++)
		buf[i] = byte_of(s->sent, i);
	n = sendto(s->fd, buf, size, MSG_DONTWAIT, (void *)&s->peer, sizeof(s->peer));
	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
		return 0;
	if (n != size)
		die("sendto");
	s->told = h->last;
	s->sent++;
	return 1;
}

static void note_pause(struct stream *s)
{
	struct timespec t;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = t.tv_sec * 1000ull + t.tv_nsec / 1000000;
	if (s->last_ms && now - s->last_ms > s->pause_ms)
		s->pause_ms = now - s->last_ms;
	s->last_ms = now;
}

static int receive_one(struct stream *s)
{
	static uint8_t buf[SIZE_MAX_ALLOWED];
	struct header *h = (struct header *)buf;
	ssize_t n = recv(s->fd, buf, sizeof(buf), MSG_DONTWAIT);
	uint32_t i;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		die("recv");
	if (n < (ssize_t)sizeof(*h))
		wrong("size", n, sizeof(*h));
	if (h->number != s->heard)
		wrong("number", h->number, s->heard);
	if (h->size != n || n != size_of(s, h->number))
		wrong("size", n, size_of(s, h->number));
	for (i = sizeof(*h); i < h->size; i++)
		if (buf[i] != byte_of(h->number, i))
			wrong("byte", buf[i], byte_of(h->number, i));
	note_pause(s);
	s->heard++;
	s->acked = h->heard;
	s->ended = h->last;
	if (!(s->heard % 100))
		printf("heard %llu\n", (unsigned long long)s->heard);
	return 1;
}

static void run(struct stream *s)
{
	while (!s->told || !s->ended) {
		struct pollfd p = { .fd = s->fd, .events = POLLIN };
		/* the last one is sent whatever the peer has heard */
		int may = !s->told && (s->heard || !s->waits) &&
			  (stop || s->sent < s->acked + AHEAD);
		int sent = may && send_one(s);

		while (!s->ended && receive_one(s))
			sent = 1;
		if (!sent && poll(&p, 1, may ? 10 : 1000) < 0 && errno != EINTR)
			die("poll");
		/* one who hears nothing new and may not send says what it has heard */
		if (!sent && !may && !s->told && s->heard && !p.revents)
			send_one(s);
	}
}

/*
 * Does a datagram of this socket wait to be sent?  Its port tells: in this list Linux 6.1 and 6.12
 * give 0 as the address of an IPv4 socket.
 */
static int is_waiting(const struct stream *s)
{
	static struct rds_info_message messages[4096];
	socklen_t len = sizeof(messages);
	struct sockaddr_in own;
	socklen_t own_len = sizeof(own);
	size_t i;

	if (getsockname(s->fd, (void *)&own, &own_len))
		die("getsockname");
	if (getsockopt(s->fd, SOL_RDS, RDS_INFO_SEND_MESSAGES, messages, &len) < 0)
		die("RDS_INFO_SEND_MESSAGES");
	for (i = 0; i < len / sizeof(messages[0]); i++)
		if (messages[i].lport == own.sin_port)
			return 1;
	return 0;
}

/*
 * The end of a socket drops what was not sent.  What was sent may never be acknowledged by RDS: it
 * is if other datagrams follow.
 */
static void drain(const struct stream *s)
{
	while (is_waiting(s))
		poll(NULL, 0, 10);
}

static void usage(FILE *out)
{
	fputs("usage: rds_verify --bind ADDRESS --peer ADDRESS [--port N] [--size BYTES]\n"
	      "                  [--count N] [--wait]\n\n"
	      "  --wait  send nothing before the peer has\n\n"
	      "Exit status: 0 all came in order, 1 an error, 2 wrong usage, 3 wrong data.\n", out);
}

static struct in_addr address(const char *text)
{
	struct in_addr addr;

	if (inet_pton(AF_INET, text, &addr) != 1) {
		fprintf(stderr, "rds_verify: %s is no address\n", text);
		exit(2);
	}
	return addr;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "bind", required_argument, NULL, 'b' }, { "peer", required_argument, NULL, 'p' },
		{ "port", required_argument, NULL, 'P' }, { "size", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'c' }, { "wait", no_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' }, { }
	};
	struct stream s = { .size = 16384 };
	struct sockaddr_in own = { .sin_family = AF_INET };
	int c, port = 4000, transport = RDS_TRANS_IB;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'b': own.sin_addr = address(optarg); break;
		case 'p': s.peer.sin_addr = address(optarg); break;
		case 'P': port = atoi(optarg); break;
		case 's': s.size = strtoul(optarg, NULL, 0); break;
		case 'c': s.count = strtoull(optarg, NULL, 0); break;
		case 'w': s.waits = 1; break;
		case 'h': usage(stdout); return 0;
		default: usage(stderr); return 2;
		}
	}
	if (!own.sin_addr.s_addr || !s.peer.sin_addr.s_addr || optind < argc ||
	    s.size < sizeof(struct header) || s.size > SIZE_MAX_ALLOWED) {
		usage(stderr);
		return 2;
	}
	s.peer.sin_family = AF_INET;
	own.sin_port = htons(port);
	s.peer.sin_port = htons(port);
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGINT, on_signal);
	s.fd = socket(AF_RDS, SOCK_SEQPACKET, 0);
	if (s.fd < 0)
		die("socket");
	if (setsockopt(s.fd, SOL_RDS, SO_RDS_TRANSPORT, &transport, sizeof(transport)))
		die("SO_RDS_TRANSPORT");
	if (bind(s.fd, (void *)&own, sizeof(own)))
		die("bind");
	puts("bound");
	run(&s);
	drain(&s);
	printf("longest pause %llu ms\n", (unsigned long long)s.pause_ms);
	printf("sent %llu, heard %llu, all in order\n", (unsigned long long)s.sent,
	       (unsigned long long)s.heard);
	close(s.fd);
	return 0;
}
