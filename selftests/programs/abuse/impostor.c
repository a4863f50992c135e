// SPDX-License-Identifier: GPL-2.0-only
/*
 * Says to the kernel of another node that it is the kernel of this one: it connects as a link does,
 * with a HELLO that is right in every byte.
 *
 *	impostor FROM TO BOOT_ID [PORT]
 *
 * FROM, TO: IPv4 addresses; BOOT_ID: of this node, as shiftctl shows it; PORT: to connect from.
 * Ends with 0 if the other kernel believes it, with 3 if it does not.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define PORT		899
#define TIMEOUT_MS	5000
#define REFUSED		3

struct hello {
	uint32_t magic;
	uint8_t version;
	uint8_t reserved[3];
	uint8_t boot_id[16];
	uint8_t local[16], remote[16];
} __attribute__((packed));

static void fail(const char *what)
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

static void mapped(uint8_t gid[16], const struct sockaddr_in *in)
{
	memset(gid, 0, 16);
	gid[10] = 0xff;
	gid[11] = 0xff;
	memcpy(gid + 12, &in->sin_addr, 4);
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

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 16, .max_recv_wr = 64, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct hello hello = { .magic = htonl(0x53484c4f), .version = 3 };
	struct rdma_conn_param param = {
		.private_data = &hello, .private_data_len = sizeof(hello),
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = 6, .rnr_retry_count = 7,
	};
	struct sockaddr_in from, to;
	struct rdma_cm_id *id;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: impostor FROM TO BOOT_ID [PORT]\n");
		return 2;
	}
	from = address(argv[1], argc == 5 ? atoi(argv[4]) : 0);
	to = address(argv[2], PORT);
	mapped(hello.local, &from);
	mapped(hello.remote, &to);
	parse_boot_id(argv[3], hello.boot_id);

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		fail("rdma_create_id");
	if (rdma_bind_addr(id, (struct sockaddr *)&from))
		fail("rdma_bind_addr");
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, TIMEOUT_MS))
		fail("rdma_resolve_addr");
	if (rdma_resolve_route(id, TIMEOUT_MS))
		fail("rdma_resolve_route");
	if (rdma_create_qp(id, NULL, &init))
		fail("rdma_create_qp");
	if (rdma_connect(id, &param)) {
		perror("refused");
		return REFUSED;
	}
	printf("believed\n");
	rdma_disconnect(id);
	return 0;
}
