// SPDX-License-Identifier: GPL-2.0
/*
 * Collectives of MPI with every value checked, until rank 0 reads "stop".
 *
 * Each round is an allreduce and an all-to-all of one size, from a message that fits
 * the eager protocols to some that need a rendezvous. What a rank gives is a function
 * of (rank, round, place), so that each rank knows what the result has to be: one of
 * another round, or one that was added twice, is seen.
 */
#include <mpi.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST	32768	/* 256 KiB */
#define TOLD	20	/* rounds per line of progress */

static const int sizes[] = { 1, 4, 500, 2000, 8192, MOST };

static int rank, ranks;

static uint64_t value(int who, uint64_t round, uint64_t place)
{
	uint64_t x = (round << 24 | place) * 0x9e3779b97f4a7c15ull + who;

	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
}

static void wrong(const char *what, uint64_t round, int place, uint64_t is, uint64_t should)
{
	printf("wrong: rank %d, %s, round %llu, place %d: %#llx, not %#llx\n", rank, what,
	       (unsigned long long)round, place, (unsigned long long)is,
	       (unsigned long long)should);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static void allreduce(uint64_t round, int count, uint64_t *in, uint64_t *out)
{
	for (int i = 0; i < count; i++) {
		in[i] = value(rank, round, i);
		out[i] = ~0ull;
	}
	MPI_Allreduce(in, out, count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < count; i++) {
		uint64_t sum = 0;

		for (int who = 0; who < ranks; who++)
			sum += value(who, round, i);
		if (out[i] != sum)
			wrong("allreduce", round, i, out[i], sum);
	}
}

/* Block n goes to rank n; what is there comes from each rank's block for this one. */
static void alltoall(uint64_t round, int count, uint64_t *in, uint64_t *out)
{
	int block = count / ranks;

	for (int i = 0; i < block * ranks; i++) {
		in[i] = value(rank, ~round, i);
		out[i] = ~0ull;
	}
	MPI_Alltoall(in, block, MPI_UINT64_T, out, block, MPI_UINT64_T, MPI_COMM_WORLD);
	for (int i = 0; i < block * ranks; i++) {
		uint64_t should = value(i / block, ~round, rank * block + i % block);

		if (out[i] != should)
			wrong("alltoall", round, i, out[i], should);
	}
}

static int told_to_stop(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	return rank == 0 && poll(&in, 1, 0) > 0;
}

int main(int argc, char **argv)
{
	uint64_t *in, *out, round = 0;
	int stop = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	in = calloc(MOST, sizeof(*in));
	out = calloc(MOST, sizeof(*out));
	if (!in || !out)
		MPI_Abort(MPI_COMM_WORLD, 1);
	while (!stop) {
		int count = sizes[round % (sizeof(sizes) / sizeof(sizes[0]))];

		allreduce(round, count, in, out);
		alltoall(round, count, in, out);
		if (++round % TOLD == 0 && rank == 0) {
			printf("progress %llu\n", (unsigned long long)round);
			fflush(stdout);
		}
		stop = told_to_stop();
		MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	printf("done: rank %d of %d, %llu rounds\n", rank, ranks, (unsigned long long)round);
	MPI_Finalize();
	free(in);
	free(out);
	return 0;
}
