// SPDX-License-Identifier: GPL-2.0-only
/*
 * A node of the directory that attacks: it has a link to another node's kernel, and sends over it
 * what it likes.
 *
 *	intruder FROM TO BOOT_ID PORT
 *
 * As for impostor.  Once it has printed "believed" it reads lines and sends a message for each,
 * with the cookies of whatever queue pairs:
 *
 *	[flood|add] TYPE DST_COOKIE SRC_COOKIE EPOCH [SRC_QPN DST_QPN SRC DST BACKUP]
 *	rounds NUMBER
 *	garbage
 *	ask
 *	proof 64_HEXADECIMAL_DIGITS
 *
 * The QP numbers and addresses are for PAIR.  It prints "sent" when the other NIC has acknowledged
 * the message, and "got TYPE" for each of the first thousand that come, but for heartbeats.  With "flood" it sends the
 * message as fast as it can until the next line, which should be "stop", and then prints "flooded "
 * and how many there were.  With "add" it is put on a list, and "rounds" sends all that is there, one
 * after the other, so many times.
 *
 * "ask" asks the other kernel for a proof that it knows the key: "proved" is printed if one comes.
 * If the other kernel asks for one, it prints "nonce " and the bytes that this has to be about.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hello.h"
#include "pure/msg.h"

#define BUFS	32
#define SIZE	1024
#define FLOOD	16			/* sends under way */
#define LISTED	64			/* messages on the list */
#define SHOWN	1000			/* messages that are told of */

#define AUTH_MAGIC	0x53485155u
#define AUTH_BYTES	32

enum { AUTH_NONCE = 1, AUTH_PROOF };

/* As in kmod/link/auth.h. */
struct frame {
	uint32_t magic;
	uint8_t version, kind, reserved[2];
	uint8_t bytes[AUTH_BYTES];
} __attribute__((packed));

static uint8_t receive[BUFS][SIZE], message[SIZE];
static struct ibv_mr *receive_mr, *message_mr;
static uint8_t listed[LISTED][SHIFT_MSG_MAX];
static int listed_len[LISTED], n_listed;

static void post_receive(struct rdma_cm_id *id, uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)receive[i], SIZE, receive_mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(id->qp, &wr, &bad))
		hello_fail("ibv_post_recv");
}

static void show(const uint8_t *at, size_t left)
{
	static int shown;
	const struct frame *frame = (const void *)at;
	struct shift_msg m;
	int n;

	if (left == sizeof(*frame) && ntohl(frame->magic) == AUTH_MAGIC) {
		if (frame->kind == AUTH_NONCE) {
			printf("nonce ");
			for (n = 0; n < AUTH_BYTES; n++)
				printf("%02x", frame->bytes[n]);
			printf("\n");
		} else if (frame->kind == AUTH_PROOF) {
			printf("proved\n");
		}
		return;
	}
	for (; (n = shift_msg_length(at, left)) > 0; at += n, left -= n)
		if (shift_msg_decode(at, n, &m))
			printf("got what it does not know\n");
		else if (m.type != SHIFT_MSG_HEARTBEAT && shown++ < SHOWN)
			printf("got %s\n", shift_msg_name(m.type));
}

/* What has come, and whether the connection is still there. */
static void look(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(id->recv_cq, 1, &wc) > 0) {
		if (wc.status) {
			printf("ended: %s\n", ibv_wc_status_str(wc.status));
			exit(4);
		}
		show(receive[wc.wr_id], wc.byte_len);
		post_receive(id, wc.wr_id);
	}
}

static void post_send(struct rdma_cm_id *id, size_t len)
{
	struct ibv_sge sge = { (uintptr_t)message, len, message_mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (ibv_post_send(id->qp, &wr, &bad))
		hello_fail("ibv_post_send");
}

/* Wait until the oldest send is through. */
static void wait_sent(struct rdma_cm_id *id)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(id->send_cq, 1, &wc)))
		look(id);
	if (n < 0 || wc.status) {
		printf("ended: %s\n", ibv_wc_status_str(wc.status));
		exit(4);
	}
}

static void send_bytes(struct rdma_cm_id *id, size_t len)
{
	post_send(id, len);
	wait_sent(id);
	printf("sent\n");
}

/* Send a message again and again, as often as it fits into each send. */
static void flood(struct rdma_cm_id *id, size_t len)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned int copies, under_way = 0;
	unsigned long long sends = 0;

	for (copies = 1; (copies + 1) * len <= SIZE; copies++)
		memcpy(message + copies * len, message, len);
	do {
		for (; under_way < FLOOD; under_way++, sends++)
			post_send(id, copies * len);
		wait_sent(id);
		under_way--;
	} while (poll(&input, 1, 0) <= 0);
	for (; under_way; under_way--)
		wait_sent(id);
	printf("flooded %llu\n", sends * copies);
}

static void add(const uint8_t *at, int len)
{
	if (n_listed == LISTED) {
		fprintf(stderr, "the list is full\n");
		exit(2);
	}
	memcpy(listed[n_listed], at, len);
	listed_len[n_listed++] = len;
	printf("added\n");
}

/* Send what is on the list, as many at once as fit, and wait for each send. */
static void rounds(struct rdma_cm_id *id, int number)
{
	size_t len = 0;
	int i;

	for (; number > 0; number--) {
		for (i = 0; i < n_listed; i++) {
			if (len + listed_len[i] > SIZE) {
				post_send(id, len);
				wait_sent(id);
				len = 0;
			}
			memcpy(message + len, listed[i], listed_len[i]);
			len += listed_len[i];
		}
		if (!len)
			continue;
		post_send(id, len);
		wait_sent(id);
		len = 0;
	}
	printf("sent\n");
}

static uint8_t type_of(const char *name)
{
	uint8_t type;

	for (type = 1; type < __SHIFT_MSG_MAX; type++)
		if (!strcmp(shift_msg_name(type), name))
			return type;
	fprintf(stderr, "there is no message %s\n", name);
	exit(2);
}

/* Whatever a type has beyond its head is what a peer would say: to path 1, nothing received. */
static void fill(struct shift_msg *m)
{
	switch (m->type) {
	case SHIFT_MSG_REQ:
		m->req.to = 1;
		break;
	case SHIFT_MSG_ACK:
		m->ack.to = 1;
		break;
	case SHIFT_MSG_PROGRESS:
		m->progress.to = 1;
		m->progress.qpn = 17;
		break;
	case SHIFT_MSG_NACK:
		m->nack.code = SHIFT_NACK_GONE;
		break;
	case SHIFT_MSG_RKEY_GONE:
		m->key.new_rkey = SHIFT_RKEY_TELL;
		break;
	case SHIFT_MSG_PAIR:
		m->pair.mtu = 1024;
		break;
	}
}

static void prove(struct rdma_cm_id *id, const char *digits)
{
	struct frame frame = { .magic = htonl(AUTH_MAGIC), .version = 1, .kind = AUTH_PROOF };
	unsigned int i, byte;

	for (i = 0; i < AUTH_BYTES && sscanf(digits + 2 * i, "%2x", &byte) == 1; i++)
		frame.bytes[i] = byte;
	memcpy(message, &frame, sizeof(frame));
	send_bytes(id, sizeof(frame));
}

static void ask(struct rdma_cm_id *id)
{
	struct frame frame = { .magic = htonl(AUTH_MAGIC), .version = 1, .kind = AUTH_NONCE };

	memcpy(message, &frame, sizeof(frame));
	send_bytes(id, sizeof(frame));
}

static void obey(struct rdma_cm_id *id, const char *line)
{
	struct shift_msg_form form = { .version = SHIFT_MSG_OLDEST };
	char name[16], src[16], dst[16], backup[16];
	unsigned long long to, from;
	struct shift_msg m = {};
	int n, words, floods = 0, adds = 0;

	if (!strncmp(line, "stop", 4))
		return;
	if (!strncmp(line, "garbage", 7)) {
		memset(message, 0x5a, 64);
		send_bytes(id, 64);
		return;
	}
	if (!strncmp(line, "proof ", 6)) {
		prove(id, line + 6);
		return;
	}
	if (!strncmp(line, "ask", 3)) {
		ask(id);
		return;
	}
	if (!strncmp(line, "rounds ", 7)) {
		rounds(id, atoi(line + 7));
		return;
	}
	if (!strncmp(line, "flood ", 6)) {
		floods = 1;
		line += 6;
	} else if (!strncmp(line, "add ", 4)) {
		adds = 1;
		line += 4;
	}
	words = sscanf(line, "%15s %llx %llx %u %u %u %15s %15s %15s", name, &to, &from, &m.epoch,
		       &m.pair.src_qpn, &m.pair.dst_qpn, src, dst, backup);
	if (words != 4 && words != 9) {
		fprintf(stderr, "what is '%s'?\n", line);
		exit(2);
	}
	m.type = type_of(name);
	m.dst_cookie = to;
	m.src_cookie = from;
	if (words == 9) {
		hello_gid(src, m.pair.src_gid);
		hello_gid(dst, m.pair.dst_gid);
		hello_gid(backup, m.pair.backup_gid);
	}
	fill(&m);
	n = shift_msg_encode(&m, &form, message, sizeof(message));
	if (n < 0) {
		fprintf(stderr, "this cannot be sent: '%s'\n", line);
		exit(2);
	}
	if (floods)
		flood(id, n);
	else if (adds)
		add(message, n);
	else
		send_bytes(id, n);
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	struct hello_who who;
	struct rdma_cm_id *id;
	char line[256];
	int i;

	if (argc != 5) {
		fprintf(stderr, "usage: intruder FROM TO BOOT_ID PORT\n");
		return 2;
	}
	/* poll() sees what is in the pipe, not what is in a buffer of ours */
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	who = (struct hello_who) {
		.from = argv[1], .to = argv[2], .boot_id = argv[3], .port = atoi(argv[4]),
	};
	id = hello_open(&who);
	receive_mr = ibv_reg_mr(id->pd, receive, sizeof(receive), IBV_ACCESS_LOCAL_WRITE);
	message_mr = ibv_reg_mr(id->pd, message, sizeof(message), 0);
	if (!receive_mr || !message_mr)
		hello_fail("ibv_reg_mr");
	for (i = 0; i < BUFS; i++)
		post_receive(id, i);
	if (hello_connect(id, &who)) {
		perror("refused");
		return 3;
	}
	printf("believed\n");
	for (;;) {
		look(id);
		if (poll(&input, 1, 20) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			break;
		obey(id, line);
	}
	rdma_disconnect(id);
	return 0;
}
