/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The JSON of etcd's v3 gateway: bytes are base64, 64-bit numbers are strings,
 * and what is zero is not there.
 */
#ifndef SHIFT_ETCD_JSON_H
#define SHIFT_ETCD_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <json-c/json.h>

struct json_object *etcd_json_parse(const char *text, size_t len);
const char *etcd_json_error(struct json_object *obj);
const char *etcd_json_string(struct json_object *obj, const char *key);
int64_t etcd_json_int(struct json_object *obj, const char *key);
bool etcd_json_bool(struct json_object *obj, const char *key);
char *etcd_json_bytes(struct json_object *obj, const char *key, size_t *len);
void etcd_json_add_bytes(struct json_object *obj, const char *key,
			 const char *text);
void etcd_json_add_int(struct json_object *obj, const char *key, int64_t value);

#endif /* SHIFT_ETCD_JSON_H */
