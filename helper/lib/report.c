// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading the report of shiftd.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/report.h"

/**
 * shift_report_open() - open a report
 * @path: in a folder of a user who has fewer rights than we may have
 *
 * What is there instead of a report is not followed, not waited for, and not read.
 *
 * Return: the file, or NULL with errno: ELOOP (a symbolic link), EBADF (no plain file), or as
 * open().
 */
FILE *shift_report_open(const char *path)
{
	struct stat st;
	int fd, err;
	FILE *f;

	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	err = fstat(fd, &st) ? errno : S_ISREG(st.st_mode) ? 0 : EBADF;
	f = err ? NULL : fdopen(fd, "r");
	if (f)
		return f;
	if (!err)
		err = errno;
	close(fd);
	errno = err;
	return NULL;
}
