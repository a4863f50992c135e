// SPDX-License-Identifier: GPL-2.0-only
/*
 * What only this daemon can tell of the node's set-up, for "shiftctl check", which talks
 * to the kernel alone.  It is a file in the folder that the service manager makes for us,
 * and removes when we are gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/report.h"
#include "shiftd/log.h"
#include "shiftd/report.h"

struct shift_report {
	char *path, *draft;
	char *text;		/* as last written */
	uint32_t told;
};

static void describe_rights(FILE *f, const struct shift_etcd *etcd)
{
	const char *refused = shift_etcd_refused(etcd);

	if (refused)
		fprintf(f, "warn this node may not write its entry %s, so that others do not know it; let its role of etcd do that\n",
			refused);
	switch (shift_etcd_rights(etcd)) {
	case SHIFT_RIGHTS_OWN:
		fprintf(f, "ok this node may not write entries of other nodes\n");
		break;
	case SHIFT_RIGHTS_ALL:
		fprintf(f, "warn this node may write entries of other nodes; give it an etcd role of its own, see \"Securing the directory\" in operations.md\n");
		break;
	case SHIFT_RIGHTS_UNKNOWN:
		break;
	}
}

static char *describe(const struct shift_config *config, const struct shift_etcd *etcd)
{
	const char *clear = shift_config_clear_endpoint(config);
	char *text = NULL;
	size_t size;
	FILE *f;

	f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	if (etcd) {
		fprintf(f, "%s %s\n", shift_etcd_is_up(etcd) ? "ok" : "warn",
			shift_etcd_status(etcd));
		describe_rights(f, etcd);
	}
	if (clear)
		fprintf(f, "warn the password for etcd goes to %s in the clear; use https\n",
			clear);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* Whole or not at all: it may be read at any moment. */
static int replace(const struct shift_report *report, const char *text)
{
	size_t len = strlen(text);
	int fd, ret = 0;

	fd = open(report->draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	/* whatever the umask is */
	if (fchmod(fd, 0644) || write(fd, text, len) != (ssize_t)len)
		ret = -EIO;
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret && rename(report->draft, report->path))
		ret = -errno;
	return ret;
}

/**
 * shift_report_write() - tell what is known now, if it has changed
 * @report: from shift_report_new(), or NULL
 * @config: the configuration
 * @etcd: the directory, or NULL
 */
void shift_report_write(struct shift_report *report, const struct shift_config *config,
			const struct shift_etcd *etcd)
{
	char *text;
	int ret;

	if (!report)
		return;
	text = describe(config, etcd);
	if (!text || (report->text && !strcmp(text, report->text))) {
		free(text);
		return;
	}
	ret = replace(report, text);
	if (ret) {
		log_warn_once(&report->told, "%s: %s; shiftctl check tells less", report->path,
			      strerror(-ret));
		free(text);
		return;
	}
	free(report->text);
	report->text = text;
}

/* Return: NULL if there is no @folder, or no memory; nothing is told then. */
struct shift_report *shift_report_new(const char *folder)
{
	struct shift_report *report = folder ? calloc(1, sizeof(*report)) : NULL;

	if (!report)
		return NULL;
	if (asprintf(&report->path, "%s/" SHIFT_REPORT_NAME, folder) < 0)
		report->path = NULL;
	if (asprintf(&report->draft, "%s/." SHIFT_REPORT_NAME, folder) < 0)
		report->draft = NULL;
	if (report->path && report->draft)
		return report;
	shift_report_free(report);
	return NULL;
}

void shift_report_free(struct shift_report *report)
{
	if (!report)
		return;
	if (report->path)
		unlink(report->path);
	free(report->path);
	free(report->draft);
	free(report->text);
	free(report);
}
