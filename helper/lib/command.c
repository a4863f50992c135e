// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel can be told, a function for each command; peers and backups
 * taken out of what it sends.
 */
#include <errno.h>
#include <string.h>

#include "lib/command.h"
#include "lib/peer.h"

#define MSG_SIZE	4096
#define PEER_MSG_SIZE	32768	/* a peer with all its NICs and backups */

static int do_string(struct shift_nl *nl, int cmd, int attr, const char *val)
{
	struct nl_msg *msg = shift_nl_msg(nl, cmd, 0, MSG_SIZE);

	if (!msg || nla_put_string(msg, attr, val))
		return shift_nl_no_memory(nl, msg);
	return shift_nl_request(nl, msg, NULL, NULL);
}

int shift_nl_node_set(struct shift_nl *nl, const char *node)
{
	return do_string(nl, SHIFT_CMD_NODE_SET, SHIFT_A_NODE, node);
}

static int pair_put(struct shift_nl *nl, int cmd, const char *dev,
		    const char *backup, enum shift_policy policy)
{
	struct nl_msg *msg = shift_nl_msg(nl, cmd, 0, MSG_SIZE);

	if (!msg || nla_put_string(msg, SHIFT_A_DEV, dev) ||
	    (backup && nla_put_string(msg, SHIFT_A_BACKUP_DEV, backup)) ||
	    nla_put_u32(msg, SHIFT_A_POLICY, policy))
		return shift_nl_no_memory(nl, msg);
	return shift_nl_request(nl, msg, NULL, NULL);
}

int shift_nl_pair_add(struct shift_nl *nl, const char *dev, const char *backup,
		      enum shift_policy policy)
{
	return pair_put(nl, SHIFT_CMD_PAIR_ADD, dev, backup, policy);
}

int shift_nl_pair_set(struct shift_nl *nl, const char *dev,
		      enum shift_policy policy)
{
	return pair_put(nl, SHIFT_CMD_PAIR_SET, dev, NULL, policy);
}

int shift_nl_pair_del(struct shift_nl *nl, const char *dev)
{
	return do_string(nl, SHIFT_CMD_PAIR_DEL, SHIFT_A_DEV, dev);
}

/* QPs of @dev, or the one of @qpn, to @path; @keep: and those to come */
int shift_nl_move(struct shift_nl *nl, const char *dev, uint32_t qpn,
		  uint32_t path, bool keep)
{
	struct nl_msg *msg;

	msg = shift_nl_msg(nl, keep ? SHIFT_CMD_PAIR_DRAIN : SHIFT_CMD_QP_MOVE,
			   0, MSG_SIZE);
	if (!msg || nla_put_string(msg, SHIFT_A_DEV, dev) ||
	    nla_put_u32(msg, SHIFT_A_PATH, path) ||
	    (qpn && nla_put_u32(msg, SHIFT_A_QPN, qpn)))
		return shift_nl_no_memory(nl, msg);
	return shift_nl_request(nl, msg, NULL, NULL);
}

static int do_link(struct shift_nl *nl, int cmd, uint32_t id)
{
	struct nl_msg *msg = shift_nl_msg(nl, cmd, 0, MSG_SIZE);

	if (!msg || nla_put_u32(msg, SHIFT_A_LINK_ID, id))
		return shift_nl_no_memory(nl, msg);
	return shift_nl_request(nl, msg, NULL, NULL);
}

int shift_nl_link_switch(struct shift_nl *nl, uint32_t id)
{
	return do_link(nl, SHIFT_CMD_QP_MOVE, id);
}

int shift_nl_link_probe(struct shift_nl *nl, uint32_t id)
{
	return do_link(nl, SHIFT_CMD_LINK_PROBE, id);
}

int shift_nl_peer_del(struct shift_nl *nl, const char *node)
{
	return do_string(nl, SHIFT_CMD_PEER_DEL, SHIFT_A_NODE, node);
}

static int put_nic(struct nl_msg *msg, const struct shift_nic *nic)
{
	struct nlattr *nest = nla_nest_start(msg, NLA_F_NESTED | SHIFT_A_NIC);
	unsigned int i;

	if (!nest)
		return -ENOMEM;
	if (nla_put(msg, SHIFT_NIC_A_GID, SHIFT_GID_LEN, nic->gid.raw))
		return -ENOMEM;
	for (i = 0; i < nic->n_backups; i++)
		if (nla_put(msg, SHIFT_NIC_A_BACKUP, SHIFT_GID_LEN,
			    nic->backups[i].raw))
			return -ENOMEM;
	nla_nest_end(msg, nest);
	return 0;
}

int shift_nl_peer_set(struct shift_nl *nl, const struct shift_peer *peer)
{
	struct nl_msg *msg;
	unsigned int i;

	msg = shift_nl_msg(nl, SHIFT_CMD_PEER_SET, 0, PEER_MSG_SIZE);
	if (!msg || nla_put_string(msg, SHIFT_A_NODE, peer->node))
		return shift_nl_no_memory(nl, msg);
	for (i = 0; i < peer->n_nics; i++)
		if (put_nic(msg, &peer->nics[i]))
			return shift_nl_no_memory(nl, msg);
	return shift_nl_request(nl, msg, NULL, NULL);
}

/**
 * shift_nl_peer_read() - take a peer out of a PEER_GET message
 * @nlh: the message
 * @tb: its attributes
 * @peer: result
 *
 * Return: 0, or -EINVAL if it names no node.
 */
int shift_nl_peer_read(struct nlmsghdr *nlh, struct nlattr **tb,
		       struct shift_peer *peer)
{
	struct nlattr *attr, *sub;
	int rem, subrem;

	memset(peer, 0, sizeof(*peer));
	if (!tb[SHIFT_A_NODE])
		return -EINVAL;
	nla_strlcpy(peer->node, tb[SHIFT_A_NODE], sizeof(peer->node));
	shift_nl_for_each(attr, nlh, rem) {
		struct shift_nic *nic;

		if (nla_type(attr) != SHIFT_A_NIC ||
		    peer->n_nics >= SHIFT_PEER_NICS_MAX)
			continue;
		nic = &peer->nics[peer->n_nics++];
		nla_for_each_nested(sub, attr, subrem) {
			if (nla_len(sub) < SHIFT_GID_LEN)
				continue;
			if (nla_type(sub) == SHIFT_NIC_A_GID)
				memcpy(nic->gid.raw, nla_data(sub),
				       SHIFT_GID_LEN);
			else if (nla_type(sub) == SHIFT_NIC_A_BACKUP &&
				 nic->n_backups < SHIFT_BACKUPS_MAX)
				memcpy(nic->backups[nic->n_backups++].raw,
				       nla_data(sub), SHIFT_GID_LEN);
		}
	}
	return 0;
}

/**
 * shift_nl_backups_read() - take the backups out of a message about a pair
 * @nlh: the message
 * @fn: called for each, the preferred one first
 * @arg: passed to @fn
 *
 * Return: how many there are; 0: the kernel keeps one, and names only that.
 */
unsigned int shift_nl_backups_read(struct nlmsghdr *nlh,
				   void (*fn)(const char *backup, void *arg),
				   void *arg)
{
	char name[SHIFT_DEV_MAX];
	struct nlattr *attr;
	unsigned int n = 0;
	int rem;

	shift_nl_for_each(attr, nlh, rem) {
		if (nla_type(attr) != SHIFT_A_PAIR_BACKUP_NAME)
			continue;
		nla_strlcpy(name, attr, sizeof(name));
		fn(name, arg);
		n++;
	}
	return n;
}
