// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cluster's keys: from a file into the keyring of the kernel module, which
 * lets nodes prove to each other that they know one.
 */
#include <errno.h>
#include <keyutils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/key.h"

#define KEYRING		".rdma_shift"
#define KEY_MIN		16	/* characters; fewer are refused by the kernel, too */
#define KEY_MAX		1024

struct keys {
	unsigned int n;
	char *text[SHIFT_KEYS_MAX];
};

/* The first is the one that this node proves with. */
static const char * const names[SHIFT_KEYS_MAX] = { "shift:first", "shift:second" };

static void keys_free(struct keys *keys)
{
	unsigned int i;

	for (i = 0; i < keys->n; i++) {
		explicit_bzero(keys->text[i], strlen(keys->text[i]));
		free(keys->text[i]);
	}
}

static int keys_add(struct keys *keys, char *line, const char *path, char *err,
		    size_t errlen)
{
	size_t len;

	line += strspn(line, " \t");
	len = strcspn(line, " \t\r\n");
	if (!len || *line == '#')
		return 0;
	if (line[len + strspn(line + len, " \t\r\n")]) {
		snprintf(err, errlen, "%s: a key is one word on a line of its own", path);
		return -EINVAL;
	}
	if (len < KEY_MIN || len > KEY_MAX) {
		snprintf(err, errlen, "%s: a key has %d to %d characters; make one with: openssl rand -hex 32",
			 path, KEY_MIN, KEY_MAX);
		return -EINVAL;
	}
	if (keys->n == SHIFT_KEYS_MAX) {
		snprintf(err, errlen, "%s: has more than two keys", path);
		return -EINVAL;
	}
	keys->text[keys->n] = strndup(line, len);
	if (!keys->text[keys->n]) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	keys->n++;
	return 0;
}

static int keys_read(FILE *f, const char *path, struct keys *keys, char *err,
		     size_t errlen)
{
	char *line = NULL;
	struct stat st;
	size_t size = 0;
	int ret = 0;

	if (fstat(fileno(f), &st) || st.st_mode & 0077) {
		snprintf(err, errlen, "%s: others may read or change it; chmod 600 it", path);
		return -EPERM;
	}
	while (!ret && getline(&line, &size, f) >= 0)
		ret = keys_add(keys, line, path, err, errlen);
	if (line)
		explicit_bzero(line, size);
	free(line);
	if (!ret && !keys->n) {
		snprintf(err, errlen, "%s: has no key", path);
		ret = -EINVAL;
	}
	return ret;
}

static key_serial_t ring_find(char *err, size_t errlen)
{
	key_serial_t ring = find_key_by_type_and_desc("keyring", KEYRING, 0);

	if (ring < 0)
		snprintf(err, errlen, "keyring %s: not found; kernel module rdma_shift is not loaded, or its version knows no keys",
			 KEYRING);
	return ring;
}

/*
 * What stands behind the last key is not valid any more.  A key may be changed
 * by a process only that has its keyring among its own.
 */
static int ring_fill(key_serial_t ring, const struct keys *keys)
{
	key_serial_t old;
	unsigned int i;

	for (i = 0; i < keys->n; i++)
		if (add_key("logon", names[i], keys->text[i], strlen(keys->text[i]),
			    ring) < 0)
			return -errno;
	for (; i < SHIFT_KEYS_MAX; i++) {
		old = keyctl_search(ring, "logon", names[i], 0);
		if (old >= 0 && keyctl_unlink(old, ring) < 0)
			return -errno;
	}
	return 0;
}

static int ring_load(key_serial_t ring, const struct keys *keys)
{
	int ret;

	if (keyctl_link(ring, KEY_SPEC_PROCESS_KEYRING) < 0)
		return -errno;
	ret = ring_fill(ring, keys);
	keyctl_unlink(ring, KEY_SPEC_PROCESS_KEYRING);
	return ret;
}

/**
 * shift_keys_load() - give the kernel the keys of a file, and take others away
 * @path: one or two keys, each on a line of its own; '#' begins a comment
 * @err: gets what is wrong, in words
 * @errlen: size of @err
 *
 * Return: number of keys, or -errno.
 */
int shift_keys_load(const char *path, char *err, size_t errlen)
{
	struct keys keys = {};
	key_serial_t ring;
	FILE *f;
	int ret;

	f = fopen(path, "re");
	if (!f) {
		ret = -errno;
		snprintf(err, errlen, "%s: %s", path, strerror(errno));
		return ret;
	}
	ret = keys_read(f, path, &keys, err, errlen);
	fclose(f);
	if (!ret) {
		ring = ring_find(err, errlen);
		ret = ring < 0 ? -ENOENT : ring_load(ring, &keys);
		if (ret && ring >= 0)
			snprintf(err, errlen, "keyring %s: %s", KEYRING, strerror(-ret));
	}
	if (!ret)
		ret = (int)keys.n;
	keys_free(&keys);
	return ret;
}

/* Nodes need not prove anything any more.  Return: 0, or -errno with words in @err. */
int shift_keys_clear(char *err, size_t errlen)
{
	key_serial_t ring = ring_find(err, errlen);
	int ret;

	if (ring < 0)
		return -ENOENT;
	if (keyctl_clear(ring) >= 0)
		return 0;
	ret = -errno;
	snprintf(err, errlen, "keyring %s: %s", KEYRING, strerror(errno));
	return ret;
}
