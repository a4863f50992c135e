// SPDX-License-Identifier: GPL-2.0
/*
 * What a registration takes.
 *
 * usage: reg_cost DEVICE MEBIBYTES COUNT
 * Registers that much memory COUNT times, and deregisters it.  Prints the median of each in
 * nanoseconds: "reg N" and "dereg N".  All the memory is one mebibyte, which is mapped that many
 * times, so that a small machine can show what a large registration costs.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "edge.h"

#define MEBIBYTE	1048576ul

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int later(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(const char *what, uint64_t *took, int count)
{
	qsort(took, count, sizeof(*took), later);
	printf("%s %llu\n", what, (unsigned long long)took[count / 2]);
}

static char *map(unsigned long mebibytes)
{
	int fd = memfd_create("reg_cost", 0);
	char *all = mmap(NULL, mebibytes * MEBIBYTE, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned long i;

	if (fd < 0 || ftruncate(fd, MEBIBYTE) || all == MAP_FAILED)
		die("memory");
	for (i = 0; i < mebibytes; i++)
		if (mmap(all + i * MEBIBYTE, MEBIBYTE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == MAP_FAILED)
			die("mapping");
	return all;
}

int main(int argc, char **argv)
{
	unsigned long mebibytes = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	int i, count = argc == 4 ? atoi(argv[3]) : 0;
	uint64_t *reg, *dereg;
	struct ibv_pd *pd;
	char *memory;

	if (!mebibytes || count < 1) {
		fprintf(stderr, "usage: reg_cost DEVICE MEBIBYTES COUNT\n");
		return 2;
	}
	pd = ibv_alloc_pd(open_device(argv[1]));
	memory = map(mebibytes);
	reg = calloc(count, sizeof(*reg));
	dereg = calloc(count, sizeof(*dereg));
	if (!pd || !reg || !dereg)
		die("set-up");
	for (i = 0; i < count; i++) {
		uint64_t begin = now();
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, mebibytes * MEBIBYTE,
					       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

		if (!mr)
			die("ibv_reg_mr");
		reg[i] = now() - begin;
		begin = now();
		if (ibv_dereg_mr(mr))
			die("ibv_dereg_mr");
		dereg[i] = now() - begin;
	}
	report("reg", reg, count);
	report("dereg", dereg, count);
	return 0;
}
