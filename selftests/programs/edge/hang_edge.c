// SPDX-License-Identifier: GPL-2.0
/*
 * A registration of memory that does not end before somebody says so.
 *
 * usage: hang_edge DEVICE [again]
 * Says "opened" once it has a PD. At the next line on stdin it registers memory whose pages a
 * userfaultfd holds back, and says "pinning" when one is asked for. With "again" the first
 * registration of the memory goes through, and the one that follows it for the same call is
 * held back. At the next line it lets go, says "registered" or why not, and waits for one more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "edge.h"

#define PAGES	2

static size_t page_size;
static char *memory;
static struct ibv_pd *pd;
static atomic_bool registered;

static void next_line(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

static int hold_pages(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	/* one that blocks cannot be polled */
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		die("userfaultfd");
	memory = mmap(NULL, PAGES * page_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	range.range.start = (uintptr_t)memory;
	range.range.len = PAGES * page_size;
	if (ioctl(fd, UFFDIO_REGISTER, &range))
		die("UFFDIO_REGISTER");
	return fd;
}

/* The page that is asked for next; or -1: nobody will ask again. */
static int asked_page(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	struct uffd_msg msg;

	while (!poll(&wait, 1, 10))
		if (registered)
			return -1;
	if (read(fd, &msg, sizeof(msg)) != sizeof(msg))
		die("userfaultfd");
	return (msg.arg.pagefault.address - (uintptr_t)memory) / page_size;
}

static void give_page(int fd, int page)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)memory + page * page_size, .len = page_size },
	};

	if (ioctl(fd, UFFDIO_ZEROPAGE, &zero) && errno != EEXIST)
		die("UFFDIO_ZEROPAGE");
}

static void *register_memory(void *arg)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, PAGES * page_size, IBV_ACCESS_LOCAL_WRITE);

	(void)arg;
	if (mr)
		say("registered");
	else
		printf("not registered: %s\n", strerror(errno));
	fflush(stdout);
	registered = true;
	return NULL;
}

int main(int argc, char **argv)
{
	bool again = argc == 3 && !strcmp(argv[2], "again");
	pthread_t thread;
	int fd, page;

	if (argc != 2 && !again) {
		fprintf(stderr, "usage: hang_edge DEVICE [again]\n");
		return 2;
	}
	page_size = sysconf(_SC_PAGESIZE);
	pd = ibv_alloc_pd(open_device(argv[1]));
	if (!pd)
		die("PD");
	fd = hold_pages();
	say("opened");
	next_line();
	if (pthread_create(&thread, NULL, register_memory, NULL))
		die("thread");
	page = asked_page(fd);
	if (again && page == 0) {
		give_page(fd, 0);
		page = asked_page(fd);
		/* pinned it is; whoever looks for it by its address has to ask once more */
		if (madvise(memory, page_size, MADV_DONTNEED))
			die("madvise");
		if (page > 0)
			give_page(fd, page);
		page = asked_page(fd);
	}
	if (page < 0)
		return 3;	/* nothing was held back */
	say("pinning");
	next_line();
	for (; page >= 0; page = asked_page(fd))
		give_page(fd, page);
	pthread_join(thread, NULL);
	next_line();
	return 0;
}
