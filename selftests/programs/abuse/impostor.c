// SPDX-License-Identifier: GPL-2.0-only
/*
 * Says to the kernel of another node that it is the kernel of this one.
 *
 *	impostor FROM TO BOOT_ID [PORT [AS]]
 *
 * FROM, TO: IPv4 addresses; BOOT_ID: of this node, as shiftctl shows it; PORT: to connect from; AS:
 * address that it claims to have in place of FROM.
 * Ends with 0 if the other kernel believes it, with 3 if it does not.
 */
#include <stdio.h>
#include <stdlib.h>

#include "hello.h"

#define REFUSED		3

int main(int argc, char **argv)
{
	struct hello_who who;
	struct rdma_cm_id *id;

	if (argc < 4 || argc > 6) {
		fprintf(stderr, "usage: impostor FROM TO BOOT_ID [PORT [AS]]\n");
		return 2;
	}
	who = (struct hello_who) {
		.from = argv[1], .to = argv[2], .boot_id = argv[3],
		.port = argc > 4 ? atoi(argv[4]) : 0, .as = argc > 5 ? argv[5] : NULL,
	};
	id = hello_open(&who);
	if (hello_connect(id, &who)) {
		perror("refused");
		return REFUSED;
	}
	printf("believed\n");
	rdma_disconnect(id);
	return 0;
}
