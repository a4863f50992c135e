// SPDX-License-Identifier: GPL-2.0-only
/*
 * Says to the kernel of another node that it is the kernel of this one.
 *
 *	impostor FROM TO BOOT_ID [PORT [AS [COUNT]]]
 *
 * FROM, TO: IPv4 addresses; BOOT_ID: of this node, as shiftctl shows it; PORT: to connect from; AS:
 * address that it claims to have in place of FROM; COUNT: so many connections, which it holds until
 * its input ends, from PORT and those below.
 * Ends with 0 if the other kernel believes it, with 3 if it does not.
 */
#include <stdio.h>
#include <stdlib.h>

#include "hello.h"

#define REFUSED		3

int main(int argc, char **argv)
{
	int i, count = argc > 6 ? atoi(argv[6]) : 1;
	struct hello_who who;
	struct rdma_cm_id *id = NULL;

	if (argc < 4 || argc > 7) {
		fprintf(stderr, "usage: impostor FROM TO BOOT_ID [PORT [AS [COUNT]]]\n");
		return 2;
	}
	who = (struct hello_who) {
		.from = argv[1], .to = argv[2], .boot_id = argv[3],
		.port = argc > 4 ? atoi(argv[4]) : 0, .as = argc > 5 ? argv[5] : NULL,
	};
	for (i = 0; i < count; i++, who.port--) {
		id = hello_open(&who);
		if (hello_connect(id, &who)) {
			perror("refused");
			return REFUSED;
		}
		printf("believed\n");
		fflush(stdout);
	}
	if (argc > 6)
		while (getchar() != EOF)
			;
	else if (id)
		rdma_disconnect(id);
	return 0;
}
