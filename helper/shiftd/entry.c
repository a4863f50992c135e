// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entries to JSON and back.  What is decoded was written by another node, by
 * an older or newer version, or by someone with a key to etcd: nothing of it
 * is believed before it was looked at.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <json-c/json.h>

#include "shiftd/entry.h"

#define VALUE_MAX	8192
#define DEPTH_MAX	8

static void put(struct json_object *to, const char *key, const char *text)
{
	json_object_object_add(to, key, json_object_new_string(text));
}

/* Its key below PREFIX/nics/; returns @text. */
char *shift_entry_key(const struct shift_entry *entry, char text[SHIFT_KEY_TEXT])
{
	char gid[SHIFT_GID_TEXT];

	snprintf(text, SHIFT_KEY_TEXT, "%s/%s", entry->node, shift_gid_format(&entry->gid, gid));
	return text;
}

/* Return: the JSON text, to be freed, or NULL. */
char *shift_entry_encode(const struct shift_entry *entry)
{
	struct json_object *obj = json_object_new_object();
	struct json_object *backups = json_object_new_array();
	char text[SHIFT_GID_TEXT], *json;
	unsigned int i;

	json_object_object_add(obj, "version",
			       json_object_new_int(SHIFT_ENTRY_VERSION));
	put(obj, "node", entry->node);
	put(obj, "boot_id", entry->boot_id);
	put(obj, "dev", entry->dev);
	put(obj, "gid", shift_gid_format(&entry->gid, text));
	for (i = 0; i < entry->n_backups; i++) {
		struct json_object *b = json_object_new_object();

		put(b, "dev", entry->backups[i].dev);
		put(b, "gid", shift_gid_format(&entry->backups[i].gid, text));
		put(b, "addr", shift_gid_addr(&entry->backups[i].gid, text));
		json_object_array_add(backups, b);
	}
	json_object_object_add(obj, "backups", backups);
	json = strdup(json_object_to_json_string_ext(obj,
			JSON_C_TO_STRING_PLAIN |
			JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(obj);
	return json;
}

static int __attribute__((format(printf, 3, 4)))
refuse(char *why, size_t whylen, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, whylen, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* The string at @key, or NULL if it is missing, no string, or has a NUL. */
static const char *get_string(struct json_object *obj, const char *key)
{
	struct json_object *value;
	const char *text;

	if (!json_object_is_type(obj, json_type_object) ||
	    !json_object_object_get_ex(obj, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return NULL;
	text = json_object_get_string(value);
	return strlen(text) == (size_t)json_object_get_string_len(value) ?
		text : NULL;
}

static int get_name(struct json_object *obj, const char *key, char *name,
		    size_t size, char *why, size_t whylen)
{
	const char *text = get_string(obj, key);

	if (!text)
		return refuse(why, whylen, "'%s' is missing or not a string", key);
	if (!shift_name_ok(text, size))
		return refuse(why, whylen, "'%s' is not a valid name", key);
	strcpy(name, text);
	return 0;
}

static int get_gid(struct json_object *obj, struct shift_gid *gid,
		   char *why, size_t whylen)
{
	const char *text = get_string(obj, "gid");
	const char *bad;

	if (!text || strlen(text) >= SHIFT_GID_TEXT ||
	    shift_gid_parse(text, gid))
		return refuse(why, whylen, "'gid' is missing or not a GID");
	bad = shift_gid_refuse(gid);
	if (bad)
		return refuse(why, whylen, "a GID is %s", bad);
	return 0;
}

static bool boot_id_ok(const char *text)
{
	size_t i;

	if (strlen(text) != SHIFT_BOOT_ID_TEXT - 1)
		return false;
	for (i = 0; i < SHIFT_BOOT_ID_TEXT - 1; i++)
		if (!strchr(i == 8 || i == 13 || i == 18 || i == 23 ? "-" :
			    "0123456789abcdef", text[i]))
			return false;
	return true;
}

static int decode_backups(struct json_object *obj, struct shift_entry *entry,
			  char *why, size_t whylen)
{
	struct json_object *array, *one;
	size_t n, i, j;
	int ret;

	if (!json_object_object_get_ex(obj, "backups", &array) ||
	    !json_object_is_type(array, json_type_array))
		return refuse(why, whylen, "'backups' is missing or not a list");
	n = json_object_array_length(array);
	if (!n || n > SHIFT_BACKUPS_MAX)
		return refuse(why, whylen, "it has %zu backups, not 1 to %d", n,
			      SHIFT_BACKUPS_MAX);
	for (i = 0; i < n; i++) {
		struct shift_entry_backup *b = &entry->backups[i];

		one = json_object_array_get_idx(array, i);
		ret = get_name(one, "dev", b->dev, sizeof(b->dev), why, whylen);
		if (!ret)
			ret = get_gid(one, &b->gid, why, whylen);
		if (ret)
			return ret;
		if (!shift_gid_cmp(&b->gid, &entry->gid))
			return refuse(why, whylen, "it names a NIC as its own backup");
		for (j = 0; j < i; j++)
			if (!shift_gid_cmp(&b->gid, &entry->backups[j].gid))
				return refuse(why, whylen,
					      "it names a backup twice");
	}
	entry->n_backups = n;
	return 0;
}

static int decode_object(struct json_object *obj, struct shift_entry *entry,
			 char *why, size_t whylen)
{
	struct json_object *version;
	const char *boot_id;
	int ret;

	if (!json_object_is_type(obj, json_type_object))
		return refuse(why, whylen, "it is not a JSON object");
	if (!json_object_object_get_ex(obj, "version", &version) ||
	    !json_object_is_type(version, json_type_int))
		return refuse(why, whylen, "'version' is missing");
	if (json_object_get_int64(version) != SHIFT_ENTRY_VERSION)
		return refuse(why, whylen, "its version is %lld, not %d",
			      (long long)json_object_get_int64(version),
			      SHIFT_ENTRY_VERSION);
	ret = get_name(obj, "node", entry->node, sizeof(entry->node), why,
		       whylen);
	if (!ret)
		ret = get_name(obj, "dev", entry->dev, sizeof(entry->dev), why,
			       whylen);
	if (!ret)
		ret = get_gid(obj, &entry->gid, why, whylen);
	if (ret)
		return ret;
	boot_id = get_string(obj, "boot_id");
	if (!boot_id || !boot_id_ok(boot_id))
		return refuse(why, whylen, "'boot_id' is missing or not a UUID");
	strcpy(entry->boot_id, boot_id);
	return decode_backups(obj, entry, why, whylen);
}

/**
 * shift_entry_decode() - read an entry
 * @text: the value, not NUL-terminated, not trusted
 * @len: its size
 * @entry: result; undefined on failure
 * @why: gets why it was refused
 * @whylen: size of @why
 *
 * Keys that are not known are skipped, so that a version may add some.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int shift_entry_decode(const char *text, size_t len, struct shift_entry *entry,
		       char *why, size_t whylen)
{
	struct json_tokener *tok;
	struct json_object *obj;
	int ret;

	memset(entry, 0, sizeof(*entry));
	if (len > VALUE_MAX)
		return refuse(why, whylen, "it has %zu bytes, more than %d",
			      len, VALUE_MAX);
	tok = json_tokener_new_ex(DEPTH_MAX);
	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT |
			       JSON_TOKENER_VALIDATE_UTF8);
	obj = json_tokener_parse_ex(tok, text, len);
	/* A bare number at the end of the text would leave it "continue". */
	if (json_tokener_get_error(tok) != json_tokener_success ||
	    json_tokener_get_parse_end(tok) != len)
		ret = refuse(why, whylen, "it is not JSON");
	else
		ret = decode_object(obj, entry, why, whylen);
	json_object_put(obj);
	json_tokener_free(tok);
	return ret;
}
