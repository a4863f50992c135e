// SPDX-License-Identifier: GPL-2.0
/* What is assumed of a device's kernel side; needs selftests/mlx5_soft/pd_probe.ko. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "assume.h"

#define PROBE	"/sys/kernel/debug/pd_probe"
#define PIECE	8	/* bytes that the probe sends from the beginning of an MR to behind them */

const char *assume_kernel_qp(struct port *port)
{
	const char *why = NULL;
	char line[80];
	int fd, len;

	fd = open(PROBE, O_WRONLY);
	if (fd < 0)
		return "SKIP needs pd_probe.ko, and root";
	memset(port->mem, 0x5a, PIECE);
	memset(port->mem + PIECE, 0, PIECE);
	len = snprintf(line, sizeof(line), "%s %u %d", port->name, port->num, port->gid_index);
	if (write(fd, line, len) != len)
		why = say("it fails: %s; the kernel's log says at which step", strerror(errno));
	else if (memcmp(port->mem, port->mem + PIECE, PIECE))
		why = "what it sent did not arrive";
	close(fd);
	return why;
}
