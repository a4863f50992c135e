// SPDX-License-Identifier: GPL-2.0-only
/* What shiftctl check takes for the report of shiftd, whose folder is another user's. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ktap.h"
#include "lib/report.h"

static char folder[] = "/tmp/shift-report.XXXXXX";

/* What is found there, once it was opened as a report; it is removed. */
static int opened(const char *name)
{
	FILE *f;
	int err;

	/* a FIFO that nobody writes must not hold up the test for ever */
	alarm(60);
	f = shift_report_open(name);
	err = f ? 0 : errno;
	alarm(0);
	if (f) {
		CHECK(fcntl(fileno(f), F_GETFD) & FD_CLOEXEC);
		fclose(f);
	}
	return err;
}

static void file(void)
{
	FILE *f = fopen("report", "we");

	CHECK(f && fputs("ok all is well\n", f) > 0 && !fclose(f));
	CHECK(opened("report") == 0);
	CHECK(opened("none") == ENOENT);
}

static void links(void)
{
	CHECK(!symlink("report", "link"));
	CHECK(opened("link") == ELOOP);
	CHECK(!symlink("/dev/zero", "zero"));
	CHECK(opened("zero") == ELOOP);
}

static void others(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(!mkfifo("fifo", 0644));
	CHECK(opened("fifo") == EBADF);
	CHECK(!mkdir("folder", 0755));
	CHECK(opened("folder") == EBADF);
	CHECK(opened("/dev/null") == EBADF);
	CHECK(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK(opened("socket") == ENXIO);
	close(fd);
}

static void clean(void)
{
	static const char * const names[] = { "report", "link", "zero", "fifo", "socket" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	rmdir("folder");
	if (chdir("/") || rmdir(folder))
		perror(folder);
}

static const struct ktap_test tests[] = {
	{ "a file", file },
	{ "symbolic links are not followed", links },
	{ "nothing else is read, or waited for", others },
};

int main(void)
{
	int ret;

	if (!mkdtemp(folder) || chdir(folder)) {
		perror(folder);
		return 1;
	}
	ret = ktap_main(tests, sizeof(tests) / sizeof(tests[0]));
	clean();
	return ret;
}
