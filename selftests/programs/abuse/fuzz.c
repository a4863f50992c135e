// SPDX-License-Identifier: GPL-2.0
/* Random requests, and requests while others close what they refer to. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abuse.h"

static const unsigned long commands[] = {
	SHIFT_IOC_QUERY, SHIFT_IOC_REGISTER_CQ, SHIFT_IOC_REGISTER_QP,
	SHIFT_IOC_UNREGISTER, SHIFT_IOC_WAIT, SHIFT_IOC_CQE,
	SHIFT_IOC_KICK, SHIFT_IOC_REGISTER_SRQ,
};

static uint64_t state;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void scribble(void *at, size_t len)
{
	uint8_t *p = at;

	while (len--)
		*p++ = rnd();
}

/* A valid request with a few bytes of it changed. */
static void nearly(const struct victim *v, int fd)
{
	union {
		struct shift_abi_reg_cq cq;
		struct shift_abi_reg_qp qp;
		struct shift_abi_reg_srq srq;
		uint8_t bytes[256];
	} u = { .bytes = { 0 } };
	static const unsigned long cmd[] = {
		SHIFT_IOC_REGISTER_CQ, SHIFT_IOC_REGISTER_QP, SHIFT_IOC_REGISTER_SRQ,
	};
	unsigned int i, n = 1 + rnd() % 3, what = rnd() % 3;

	if (what == 0)
		u.cq = valid_cq(v);
	else if (what == 1)
		u.qp = valid_qp(v);
	else
		u.srq = valid_srq(v);
	for (i = 0; i < n; i++)
		u.bytes[rnd() % _IOC_SIZE(cmd[what])] ^= 1 << rnd() % 8;
	ioctl(fd, cmd[what], &u);
}

void abuse_fuzz(const struct victim *v, unsigned int rounds, unsigned int seed)
{
	uint8_t buf[512];
	unsigned int i;
	int fd = open_shift();

	state = seed * 0x9e3779b97f4a7c15ULL + 1;
	for (i = 0; i < rounds; i++) {
		unsigned long cmd = commands[rnd() % 8];
		struct shift_abi_id id = {
			.type = rnd() % 5, .id = rnd() % 8,
		};
		struct shift_abi_cqe cqe = {
			.cq_id = rnd() % 8, .qp_num = rnd() & 0xffffff,
			.status = rnd() % 32,
		};

		scribble(buf, sizeof(buf));
		/* WAIT may sleep a second for an object that is gated. */
		if (cmd != SHIFT_IOC_WAIT)
			ioctl(fd, cmd, buf);
		if (rnd() & 1)
			cmd ^= 1ul << rnd() % 32;
		if (_IOC_NR(cmd) != _IOC_NR(SHIFT_IOC_WAIT))
			ioctl(fd, cmd, buf);
		nearly(v, fd);
		ioctl(fd, SHIFT_IOC_CQE, &cqe);
		ioctl(fd, SHIFT_IOC_KICK, &id);
		ioctl(fd, SHIFT_IOC_UNREGISTER, &id);
		if (i % 32 == 31) {
			void *p = mmap(NULL, 4096 * (1 + rnd() % 64),
				       PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				       (rnd() % 64) << 12);

			if (p != MAP_FAILED)
				memset(p, 0xff, 4096);
			close(fd);
			fd = open_shift();
		}
	}
	close(fd);
	report(true, "%u rounds of random requests, seed %u", rounds, seed);
}

/* Race: one thread asks, others close, unmap and re-open underneath it. */

static atomic_int shared_fd;
static atomic_bool over;

static void *asker(void *arg)
{
	const struct victim *v = arg;

	while (!atomic_load(&over)) {
		struct shift_abi_reg_cq cq = valid_cq(v);
		struct shift_abi_reg_qp qp = valid_qp(v);
		struct shift_abi_reg_srq srq = valid_srq(v);
		struct shift_abi_id id = { SHIFT_ABI_QP, 0 };
		int fd = atomic_load(&shared_fd);

		ioctl(fd, SHIFT_IOC_REGISTER_CQ, &cq);
		if (!ioctl(fd, SHIFT_IOC_REGISTER_QP, &qp))
			id.id = qp.id;
		ioctl(fd, SHIFT_IOC_WAIT, &id);
		ioctl(fd, SHIFT_IOC_UNREGISTER, &id);
		if (!ioctl(fd, SHIFT_IOC_REGISTER_SRQ, &srq)) {
			id = (struct shift_abi_id) { SHIFT_ABI_SRQ, srq.id };
			ioctl(fd, SHIFT_IOC_KICK, &id);
			ioctl(fd, SHIFT_IOC_UNREGISTER, &id);
		}
	}
	return NULL;
}

void abuse_race(const struct victim *v)
{
	pthread_t thread[3];
	unsigned int i;

	atomic_store(&shared_fd, open_shift());
	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, asker, (void *)(uintptr_t)v);
	for (i = 0; i < 300; i++) {
		int fd = open_shift();
		int old = atomic_exchange(&shared_fd, fd);

		close(old);
		sched_yield();
	}
	atomic_store(&over, true);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	close(atomic_load(&shared_fd));
	report(true, "files closed under 3 threads that use them");
}
