// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that the configuration names for the connection to etcd.  One may be a
 * credential, which the service manager has read for us: then the file itself can be
 * root's alone, and shiftd needs not be root.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shiftd/log.h"
#include "shiftd/secret.h"

#define PASSWORD_MAX	1024

/* Puts the path of a credential in place of its name. */
static int resolve(char **file, const char *key, const char *folder, char *err,
		   size_t errlen)
{
	const char *name;
	char *path;

	if (!*file || strncmp(*file, SHIFT_CREDENTIAL, strlen(SHIFT_CREDENTIAL)))
		return 0;
	name = *file + strlen(SHIFT_CREDENTIAL);
	if (!folder) {
		snprintf(err, errlen, "'%s' is a credential, and there are none; the service manager has to start shiftd",
			 key);
		return -ENOENT;
	}
	if (asprintf(&path, "%s/%s", folder, name) < 0) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	if (access(path, R_OK)) {
		snprintf(err, errlen, "'%s': credential %s: %s; put the file into /etc/credstore or name it with LoadCredential= (systemctl edit shiftd)",
			 key, name, strerror(errno));
		free(path);
		return -ENOENT;
	}
	free(*file);
	*file = path;
	return 0;
}

static int read_password(struct shift_config *c, char *err, size_t errlen)
{
	FILE *f = fopen(c->password_file, "re");
	char line[PASSWORD_MAX + 2] = "";
	struct stat st;
	int ret = 0;

	if (!f) {
		snprintf(err, errlen, "password_file %s: %s", c->password_file,
			 strerror(errno));
		return -ENOENT;
	}
	if (!fstat(fileno(f), &st) && (st.st_mode & 07))
		log_warn("every user can read the password in %s; chmod 600 it",
			 c->password_file);
	if (!fgets(line, sizeof(line), f))
		*line = '\0';
	fclose(f);
	line[strcspn(line, "\r\n")] = '\0';
	if (!*line || strlen(line) > PASSWORD_MAX) {
		snprintf(err, errlen, "password_file %s: its first line must be a password of 1 to %d characters",
			 c->password_file, PASSWORD_MAX);
		ret = -EINVAL;
	} else {
		c->password = strdup(line);
		if (!c->password) {
			snprintf(err, errlen, "out of memory");
			ret = -ENOMEM;
		}
	}
	explicit_bzero(line, sizeof(line));
	return ret;
}

/*
 * It may be there the next time that it is read, when a connection is made.  Until
 * then what libcurl says does not tell who may not read it.
 */
static void look_at(const char *key, const char *file)
{
	if (file && access(file, R_OK))
		log_warn("%s %s: %s, for user id %d; see LoadCredential in shiftd.conf(5)", key, file,
			 strerror(errno), (int)geteuid());
}

/* Says what is told to everybody. */
void shift_secrets_warn(const struct shift_config *c)
{
	const char *clear = shift_config_clear_endpoint(c);

	if (clear)
		log_warn("the password of '%s' goes to %s in the clear, and whoever sees it can write to the directory; use https",
			 c->user, clear);
}

/**
 * shift_secrets_load() - find the files that a configuration names, read the password
 * @c: the configuration; names of credentials become paths
 * @folder: where credentials are, NULL if there are none
 * @err: gets what is wrong, in words
 * @errlen: size of @err
 *
 * Return: 0 or -errno.
 */
int shift_secrets_load(struct shift_config *c, const char *folder, char *err,
		       size_t errlen)
{
	int ret;

	ret = resolve(&c->ca_file, "ca_file", folder, err, errlen);
	if (!ret)
		ret = resolve(&c->cert_file, "cert_file", folder, err, errlen);
	if (!ret)
		ret = resolve(&c->key_file, "key_file", folder, err, errlen);
	if (!ret)
		ret = resolve(&c->password_file, "password_file", folder, err, errlen);
	if (!ret && c->password_file)
		ret = read_password(c, err, errlen);
	if (ret)
		return ret;
	look_at("ca_file", c->ca_file);
	look_at("cert_file", c->cert_file);
	look_at("key_file", c->key_file);
	shift_secrets_warn(c);
	return 0;
}
