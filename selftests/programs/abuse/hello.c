// SPDX-License-Identifier: GPL-2.0-only
/* Connecting to another node's kernel as a link does, with a HELLO that is right in every byte. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hello.h"

#define PORT		899
#define TIMEOUT_MS	5000

struct hello {
	uint32_t magic;
	uint8_t version;
	uint8_t oldest, newest, caps;
	uint8_t boot_id[16];
	uint8_t local[16], remote[16];
} __attribute__((packed));

void hello_fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in address(const char *text, int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, text, &in.sin_addr) != 1) {
		fprintf(stderr, "'%s' is not an IPv4 address\n", text);
		exit(2);
	}
	return in;
}

void hello_gid(const char *text, uint8_t gid[16])
{
	struct sockaddr_in in = address(text, 0);

	memset(gid, 0, 16);
	gid[10] = 0xff;
	gid[11] = 0xff;
	memcpy(gid + 12, &in.sin_addr, 4);
}

/* Hexadecimal digits, with dashes anywhere. */
static void parse_boot_id(const char *text, uint8_t boot_id[16])
{
	int i;

	for (i = 0; i < 32 && *text; text++) {
		char digit[2] = { *text };

		if (!isxdigit((unsigned char)*text))
			continue;
		boot_id[i / 2] |= strtoul(digit, NULL, 16) << (i % 2 ? 0 : 4);
		i++;
	}
	if (i == 32)
		return;
	fprintf(stderr, "a boot id has 32 hexadecimal digits\n");
	exit(2);
}

/* The path is resolved and the QP made; the caller can post receives before it connects. */
struct rdma_cm_id *hello_open(const struct hello_who *who)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 16, .max_recv_wr = 64, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct sockaddr_in from = address(who->from, who->port), to = address(who->to, PORT);
	struct rdma_cm_id *id;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		hello_fail("rdma_create_id");
	if (rdma_bind_addr(id, (struct sockaddr *)&from))
		hello_fail("rdma_bind_addr");
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, TIMEOUT_MS))
		hello_fail("rdma_resolve_addr");
	if (rdma_resolve_route(id, TIMEOUT_MS))
		hello_fail("rdma_resolve_route");
	if (rdma_create_qp(id, NULL, &init))
		hello_fail("rdma_create_qp");
	return id;
}

int hello_connect(struct rdma_cm_id *id, const struct hello_who *who)
{
	/* zeros for the versions: the oldest form of messages */
	struct hello hello = { .magic = htonl(0x53484c4f), .version = 3 };
	struct rdma_conn_param param = {
		.private_data = &hello, .private_data_len = sizeof(hello),
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = 6, .rnr_retry_count = 7,
	};

	hello_gid(who->as ? who->as : who->from, hello.local);
	hello_gid(who->to, hello.remote);
	parse_boot_id(who->boot_id, hello.boot_id);
	return rdma_connect(id, &param);
}
