// SPDX-License-Identifier: GPL-2.0-only
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shiftd/etcd/base64.h"
#include "shiftd/etcd/json.h"

#define DEPTH_MAX 16

/* Return: an object, to be put, or NULL if the text is anything else. */
struct json_object *etcd_json_parse(const char *text, size_t len)
{
	struct json_tokener *tok;
	struct json_object *obj;

	if (len > INT_MAX)
		return NULL;
	tok = json_tokener_new_ex(DEPTH_MAX);
	if (!tok)
		return NULL;
	obj = json_tokener_parse_ex(tok, text, len);
	if (json_tokener_get_error(tok) != json_tokener_success ||
	    !json_object_is_type(obj, json_type_object)) {
		json_object_put(obj);
		obj = NULL;
	}
	json_tokener_free(tok);
	return obj;
}

/* The message of an error answer, unary or of a stream; NULL if it is none. */
const char *etcd_json_error(struct json_object *obj)
{
	struct json_object *error;
	const char *text;

	if (!json_object_object_get_ex(obj, "error", &error))
		return NULL;
	if (json_object_is_type(error, json_type_string))
		return json_object_get_string(error);
	text = etcd_json_string(error, "message");
	return text ? text : "unknown error";
}

const char *etcd_json_string(struct json_object *obj, const char *key)
{
	struct json_object *value;

	if (!json_object_is_type(obj, json_type_object) ||
	    !json_object_object_get_ex(obj, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return NULL;
	return json_object_get_string(value);
}

int64_t etcd_json_int(struct json_object *obj, const char *key)
{
	struct json_object *value;

	if (!json_object_is_type(obj, json_type_object) ||
	    !json_object_object_get_ex(obj, key, &value))
		return 0;
	return json_object_get_int64(value);
}

bool etcd_json_bool(struct json_object *obj, const char *key)
{
	struct json_object *value;

	return json_object_is_type(obj, json_type_object) &&
	       json_object_object_get_ex(obj, key, &value) &&
	       json_object_is_type(value, json_type_boolean) &&
	       json_object_get_boolean(value);
}

/* Return: the bytes and a NUL behind them, to be freed, or NULL. */
char *etcd_json_bytes(struct json_object *obj, const char *key, size_t *len)
{
	const char *text = etcd_json_string(obj, key);

	return text ? shift_base64_decode(text, strlen(text), len) : NULL;
}

void etcd_json_add_bytes(struct json_object *obj, const char *key,
			 const char *text)
{
	char *base64 = shift_base64_encode(text, strlen(text));

	/* No memory: etcd refuses what lacks its key, and that is handled. */
	if (base64)
		json_object_object_add(obj, key,
				       json_object_new_string(base64));
	free(base64);
}

void etcd_json_add_int(struct json_object *obj, const char *key, int64_t value)
{
	json_object_object_add(obj, key, json_object_new_int64(value));
}
