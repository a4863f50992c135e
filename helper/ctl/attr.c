// SPDX-License-Identifier: GPL-2.0-only
/*
 * One table turns any message of the family into a JSON object; everything
 * shiftctl shows, as text or as JSON, is made from these.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "lib/command.h"
#include "lib/gid.h"
#include "lib/names.h"
#include "lib/peer.h"

enum kind { STR, U32, U64, ENUM, GID, UUID, GUID, FLAG, BITS, BITS64 };

static const struct {
	int attr;
	const char *key;
	enum kind kind;
	const struct shift_names *names;
} table[] = {
	{ SHIFT_A_DEV,		"dev",		STR },
	{ SHIFT_A_BACKUP_DEV,	"backup",	STR },
	{ SHIFT_A_NODE,		"node",		STR },
	{ SHIFT_A_BOOT_ID,	"boot_id",	UUID },
	{ SHIFT_A_ABI_VERSION,	"abi_version",	U32 },
	{ SHIFT_A_NODE_GUID,	"node_guid",	GUID },
	{ SHIFT_A_BACKUP_GUID,	"backup_guid",	GUID },
	{ SHIFT_A_PORT_STATE,	"port_state",	ENUM, &shift_port_state_names },
	{ SHIFT_A_BACKUP_PORT_STATE, "backup_port_state", ENUM,
	  &shift_port_state_names },
	{ SHIFT_A_PROTECTED_QPS, "protected_qps", U32 },
	{ SHIFT_A_DRAINED, "drained", FLAG },
	{ SHIFT_A_POLICY,	"policy",	ENUM, &shift_policy_names },
	{ SHIFT_A_TRACKED_QPS,	"tracked_qps",	U32 },
	{ SHIFT_A_USED_BY,	"used_by",	STR },
	{ SHIFT_A_PROOF_HELD,	"proof_held",	BITS },
	{ SHIFT_A_PROOF_FAILED,	"proof_failed",	BITS },
	{ SHIFT_A_BACKUP_PROOF_HELD, "backup_proof_held", BITS },
	{ SHIFT_A_BACKUP_PROOF_FAILED, "backup_proof_failed", BITS },
	{ SHIFT_A_KEYS,		"keys",		U32 },
	{ SHIFT_A_KERNEL_USERS,	"kernel_users",	STR },
	{ SHIFT_A_LINK_ID,	"link",		U32 },
	{ SHIFT_A_LOCAL_GID,	"local_gid",	GID },
	{ SHIFT_A_REMOTE_GID,	"remote_gid",	GID },
	{ SHIFT_A_LINK_STATE,	"state",	ENUM, &shift_link_state_names },
	{ SHIFT_A_PROVEN,	"proven",	FLAG },
	{ SHIFT_A_MSG_VERSION,	"msg_version",	U32 },
	{ SHIFT_A_MSG_CAPS,	"msg_caps",	BITS },
	{ SHIFT_A_DSCPS,	"dscps",	BITS64 },
	{ SHIFT_A_CONNECTS,	"connects",	U64 },
	{ SHIFT_A_ACKED,	"acked",	U64 },
	{ SHIFT_A_QPN,		"qpn",		U32 },
	{ SHIFT_A_REMOTE_QPN,	"remote_qpn",	U32 },
	{ SHIFT_A_BACKUP_QPN,	"backup_qpn",	U32 },
	{ SHIFT_A_PID,		"pid",		U32 },
	{ SHIFT_A_COMM,		"comm",		STR },
	{ SHIFT_A_QP_EVENT,	"event",	ENUM, &shift_qp_event_names },
	{ SHIFT_A_QP_STATE,	"state",	ENUM, &shift_qp_state_names },
	{ SHIFT_A_REASON,	"reason",	ENUM, &shift_reason_names },
	{ SHIFT_A_REASON_TEXT,	"reason_text",	STR },
	{ SHIFT_A_PATH,		"path",		U32 },
	{ SHIFT_A_EPOCH,	"epoch",	U32 },
	{ SHIFT_A_CAUSE,	"cause",	ENUM, &shift_cause_names },
	{ SHIFT_A_REPLAYED,	"replayed",	U32 },
	{ SHIFT_A_EXECUTED,	"executed",	U32 },
	{ SHIFT_A_SWITCHES,	"switches",	U32 },
	{ SHIFT_A_FAULT_NS,	"fault_ns",	U64 },
	{ SHIFT_A_AGREED_NS,	"agreed_ns",	U64 },
	{ SHIFT_A_FENCED_NS,	"fenced_ns",	U64 },
	{ SHIFT_A_REPLAYED_NS,	"replayed_ns",	U64 },
	{ SHIFT_A_COMPLETION_NS, "completion_ns", U64 },
	{ SHIFT_A_ADDED,	"added",	FLAG },
	{ SHIFT_A_TIME_NS,	"time_ns",	U64 },
};

/* The numbers of the bits that are set. */
static struct json_object *bits_of(unsigned long long mask)
{
	struct json_object *bits = json_object_new_array();
	int i;

	for (i = 0; i < 64; i++)
		if (mask & 1ull << i)
			json_object_array_add(bits, json_object_new_int(i));
	return bits;
}

static struct json_object *value_of(const struct nlattr *attr, enum kind kind,
				    const struct shift_names *names)
{
	const unsigned char *b = nla_data(attr);
	char text[SHIFT_GID_TEXT], num[SHIFT_NAME_NUMBER];
	struct shift_gid gid;
	unsigned long long u;

	switch (kind) {
	case STR:
		return json_object_new_string(nla_get_string(attr));
	case U32:
		return json_object_new_int64(nla_get_u32(attr));
	case U64:
		return json_object_new_uint64(nla_get_u64(attr));
	case ENUM:
		return json_object_new_string(shift_name_of(names,
							    nla_get_u32(attr),
							    num));
	case GID:
		memcpy(gid.raw, b, sizeof(gid.raw));
		return json_object_new_string(shift_gid_format(&gid, text));
	case UUID:
		snprintf(text, sizeof(text),
			 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8],
			 b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
		return json_object_new_string(text);
	case GUID:
		u = nla_get_u64(attr);
		snprintf(text, sizeof(text), "%04llx:%04llx:%04llx:%04llx",
			 u >> 48, (u >> 32) & 0xffff, (u >> 16) & 0xffff,
			 u & 0xffff);
		return json_object_new_string(text);
	case FLAG:
		return json_object_new_boolean(1);
	case BITS:
		return bits_of(nla_get_u32(attr));
	case BITS64:
		return bits_of(nla_get_u64(attr));
	}
	return NULL;
}

static void add_nics(struct json_object *row, struct nlmsghdr *nlh,
		     struct nlattr **tb)
{
	struct json_object *nics, *nic, *backups;
	static struct shift_peer peer;
	char text[SHIFT_GID_TEXT];
	unsigned int i, j;

	if (shift_nl_peer_read(nlh, tb, &peer))
		return;
	nics = json_object_new_array();
	for (i = 0; i < peer.n_nics; i++) {
		nic = json_object_new_object();
		backups = json_object_new_array();
		ctl_put(nic, "gid", shift_gid_format(&peer.nics[i].gid, text));
		for (j = 0; j < peer.nics[i].n_backups; j++) {
			shift_gid_format(&peer.nics[i].backups[j], text);
			json_object_array_add(backups,
					      json_object_new_string(text));
		}
		json_object_object_add(nic, "backups", backups);
		json_object_array_add(nics, nic);
	}
	json_object_object_add(row, "nics", nics);
}

static void add_backup(const char *backup, void *backups)
{
	json_object_array_add(backups, json_object_new_string(backup));
}

/* A kernel that keeps one backup of a device does not send a list. */
static void add_backups(struct json_object *row, struct nlmsghdr *nlh)
{
	struct json_object *backups = json_object_new_array();

	if (shift_nl_backups_read(nlh, add_backup, backups))
		json_object_object_add(row, "backups", backups);
	else
		json_object_put(backups);
}

static void add_stat(struct json_object *row, struct nlattr *nest)
{
	struct nlattr *attr, *name = NULL, *value = NULL;
	const char *text;
	int rem;

	nla_for_each_nested(attr, nest, rem) {
		if (nla_type(attr) == SHIFT_A_STAT_NAME)
			name = attr;
		else if (nla_type(attr) == SHIFT_A_STAT_VALUE)
			value = attr;
	}
	if (!name || !value || nla_len(name) < 1 || nla_len(value) < 8)
		return;
	text = nla_data(name);
	if (text[nla_len(name) - 1])
		return;
	json_object_object_add(row, text,
			       json_object_new_uint64(nla_get_u64(value)));
}

/**
 * ctl_attrs() - a message as a JSON object
 * @nlh: the message
 * @tb: its attributes
 *
 * Return: the object; attributes that are not there have no key.
 */
struct json_object *ctl_attrs(struct nlmsghdr *nlh, struct nlattr **tb)
{
	struct json_object *row = json_object_new_object();
	struct nlattr *attr;
	unsigned int i;
	int rem;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (tb[table[i].attr])
			json_object_object_add(row, table[i].key,
					       value_of(tb[table[i].attr],
							table[i].kind,
							table[i].names));
	if (tb[SHIFT_A_PAIR_BACKUP_NAME])
		add_backups(row, nlh);
	if (tb[SHIFT_A_NIC])
		add_nics(row, nlh, tb);
	if (tb[SHIFT_A_STAT])
		shift_nl_for_each(attr, nlh, rem)
			if (nla_type(attr) == SHIFT_A_STAT)
				add_stat(row, attr);
	return row;
}

const char *ctl_str(struct json_object *row, const char *key, const char *none)
{
	struct json_object *value;

	if (!json_object_object_get_ex(row, key, &value))
		return none;
	return json_object_get_string(value);
}

/* The @i-th backup of a pair in order of preference, or NULL. */
const char *ctl_backup(struct json_object *pair, size_t i)
{
	struct json_object *backups;

	if (!json_object_object_get_ex(pair, "backups", &backups))
		return i ? NULL : ctl_str(pair, "backup", NULL);
	return i < json_object_array_length(backups) ?
		json_object_get_string(json_object_array_get_idx(backups, i)) :
		NULL;
}

void ctl_put(struct json_object *row, const char *key, const char *text)
{
	json_object_object_add(row, key, json_object_new_string(text));
}
