// SPDX-License-Identifier: GPL-2.0-only
/*
 * shiftctl check: what commonly keeps a node from being protected.  It looks
 * at this node alone and changes nothing; what there is to say of the directory
 * shiftd has found out.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/ctl.h"
#include "lib/gid.h"
#include "lib/report.h"

/* More than shiftd writes. */
#define REPORT_LINES_MAX	16
#define REPORT_LINE_MAX		480

static struct json_object *findings;
static bool failed;

static void __attribute__((format(printf, 2, 3)))
found(const char *result, const char *fmt, ...)
{
	struct json_object *row = json_object_new_object();
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	ctl_put(row, "result", result);
	ctl_put(row, "text", text);
	json_object_array_add(findings, row);
	if (!strcmp(result, "fail"))
		failed = true;
}

static void check_chardev(void)
{
	struct stat st;

	if (stat("/dev/shift", &st))
		found("fail", "/dev/shift: %s; without it no process can be protected",
		      strerror(errno));
	else if ((st.st_mode & 0666) != 0666)
		found("warn", "not every user can open /dev/shift (mode %03o); install the udev rule",
		      st.st_mode & 0777);
	else
		found("ok", "every user can open /dev/shift");
}

static void on_node(int cmd, struct nlmsghdr *nlh, struct nlattr **tb,
		    void *arg)
{
	(void)cmd;
	(void)nlh;
	if (tb[SHIFT_A_NODE])
		nla_strlcpy(arg, tb[SHIFT_A_NODE], SHIFT_NODE_MAX);
}

static int check_node(struct ctl *ctl)
{
	char node[SHIFT_NODE_MAX] = "";

	if (shift_nl_get(ctl->nl, SHIFT_CMD_NODE_GET, 0, on_node, node))
		return ctl_refused(ctl, "node show");
	if (*node)
		found("ok", "the name of this node is '%s'", node);
	else
		found("fail", "this node has no name; set it with: shiftctl node set NAME");
	return CTL_OK;
}

static long read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	long n = -1;

	if (f && fscanf(f, "%ld", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

/*
 * Where both NICs are on one flat network, an interface that answers for the
 * other's address sends the peer's packets to the wrong NIC: then the backup
 * fails together with the default.
 */
static void check_arp(const char *dev)
{
	char path[512], ndev[64] = "";
	long all, own;
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0", dev);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(ndev, sizeof(ndev), f))
		ndev[0] = '\0';
	fclose(f);
	ndev[strcspn(ndev, "\n")] = '\0';
	if (!*ndev || strchr(ndev, '/'))
		return;
	all = read_number("/proc/sys/net/ipv4/conf/all/arp_ignore");
	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/arp_ignore",
		 ndev);
	own = read_number(path);
	if (all <= 0 && own <= 0)
		found("warn", "%s (%s) answers ARP requests for addresses of other interfaces; if both NICs are on one network, set net.ipv4.conf.%s.arp_ignore=1 and arp_announce=2",
		      dev, ndev, ndev);
}

static void check_device(const char *dev, const char *state)
{
	char text[SHIFT_GID_TEXT];
	struct shift_gid gid;
	int ret;

	ret = shift_gid_of_device("/sys", dev, &gid);
	if (ret == -EADDRNOTAVAIL)
		found("fail", "%s has no RoCE v2 GID that other nodes could use; give its network interface an IP address",
		      dev);
	else if (ret)
		found("fail", "the GIDs of %s cannot be read: %s", dev,
		      strerror(-ret));
	else
		found("ok", "%s has GID %s", dev, shift_gid_format(&gid, text));
	if (state && strcmp(state, "active"))
		found("warn", "the port of %s is %s", dev, state);
	if (!ret)
		check_arp(dev);
}

static bool is_new(struct json_object *seen, const char *dev)
{
	if (json_object_object_get_ex(seen, dev, NULL))
		return false;
	ctl_put(seen, dev, "");
	return true;
}

static void check_pair(struct json_object *pair, struct json_object *seen)
{
	const char *dev = ctl_str(pair, "dev", "");
	const char *backup;
	bool used;
	size_t i;

	if (is_new(seen, dev))
		check_device(dev, ctl_str(pair, "port_state", NULL));
	for (i = 0; (backup = ctl_backup(pair, i)); i++) {
		used = !strcmp(backup, ctl_str(pair, "backup", ""));
		found("ok", used ? "%s stands in for %s" :
		      "%s is a further backup of %s", backup, dev);
		/* The kernel tells the port of the one in use. */
		if (is_new(seen, backup))
			check_device(backup, used ?
				     ctl_str(pair, "backup_port_state", NULL) :
				     NULL);
	}
}

static int check_pairs(struct ctl *ctl)
{
	struct json_object *pairs, *seen;
	size_t i;
	int ret;

	ret = ctl_dump(ctl, SHIFT_CMD_PAIR_GET, &pairs);
	if (ret)
		return ret;
	if (!json_object_array_length(pairs))
		found("fail", "no device has a backup; add one with: shiftctl pair add DEV BACKUP");
	seen = json_object_new_object();
	for (i = 0; i < json_object_array_length(pairs); i++)
		check_pair(json_object_array_get_idx(pairs, i), seen);
	json_object_put(seen);
	json_object_put(pairs);
	return CTL_OK;
}

static int check_peers(struct ctl *ctl)
{
	struct json_object *peers, *links, *link;
	size_t i, n, up = 0;
	const char *state;
	int ret;

	ret = ctl_dump(ctl, SHIFT_CMD_PEER_GET, &peers);
	if (ret)
		return ret;
	n = json_object_array_length(peers);
	json_object_put(peers);
	if (n)
		found("ok", "%zu other node(s) are known", n);
	else
		found("fail", "no other node is known; use shiftd, or shiftctl peer set");
	ret = ctl_dump(ctl, SHIFT_CMD_LINK_GET, &links);
	if (ret)
		return ret;
	n = json_object_array_length(links);
	for (i = 0; i < n; i++) {
		link = json_object_array_get_idx(links, i);
		state = ctl_str(link, "state", "?");
		if (!strcmp(state, "up"))
			up++;
		else
			found("warn", "link from %s to %s (%s) is %s",
			      ctl_str(link, "dev", "?"),
			      ctl_str(link, "node", "?"),
			      ctl_str(link, "remote_gid", CTL_HIDDEN), state);
	}
	if (n)
		found(up ? "ok" : "fail", "%zu of %zu link(s) are up", up, n);
	json_object_put(links);
	return CTL_OK;
}

/* Written by a process that has fewer rights than we may have: no more than text. */
static void check_line(char *line)
{
	size_t skip = !strncmp(line, "ok ", 3) ? 3 : !strncmp(line, "warn ", 5) ? 5 : 0;
	char *c;

	for (c = line; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
			*c = '?';
	if (skip)
		found(skip == 3 ? "ok" : "warn", "shiftd: %s", line + skip);
}

static void check_shiftd(void)
{
	char line[REPORT_LINE_MAX];
	unsigned int n;
	FILE *f;

	/* Without shiftd, or with one that no service manager has started, there is none. */
	f = shift_report_open(SHIFT_REPORT_PATH);
	if (!f) {
		if (errno != ENOENT)
			found("warn", "%s is not the report of shiftd: %s", SHIFT_REPORT_PATH,
			      errno == EBADF ? "it is no plain file" : strerror(errno));
		return;
	}
	for (n = 0; n < REPORT_LINES_MAX && fgets(line, sizeof(line), f); n++) {
		line[strcspn(line, "\n")] = '\0';
		check_line(line);
	}
	fclose(f);
}

static int check(struct ctl *ctl, int argc, char **argv)
{
	struct json_object *row;
	size_t i;
	int ret;

	(void)argc;
	(void)argv;
	ret = ctl_connect(ctl);
	if (ret)
		return ret;
	findings = json_object_new_array();
	found("ok", "the kernel module is loaded");
	check_chardev();
	ret = check_node(ctl);
	if (!ret)
		ret = check_pairs(ctl);
	if (!ret)
		ret = check_peers(ctl);
	if (!ret)
		check_shiftd();
	if (ctl->json) {
		ctl_print_json(ctl, findings);
	} else {
		for (i = 0; i < json_object_array_length(findings); i++) {
			row = json_object_array_get_idx(findings, i);
			printf("%-5s%s\n", ctl_str(row, "result", ""),
			       ctl_str(row, "text", ""));
		}
	}
	json_object_put(findings);
	return ret ? ret : failed ? CTL_FAIL : CTL_OK;
}

static const struct ctl_cmd cmds[] = {
	{ "", check, 0, 0, "" },
	{}
};

const struct ctl_object ctl_check = {
	"check", cmds, "look for what keeps this node from being protected"
};
