// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink: requests of operators.
 *
 * The family exists in the initial net namespace only.  Changes need
 * CAP_NET_ADMIN in the initial user namespace: pairs and peers concern every
 * container that uses a device, so that a container's own CAP_NET_ADMIN cannot
 * be enough.  Requests run in parallel; every noun has its own lock.
 */
#include <linux/ctype.h>
#include <linux/slab.h>
#include "core/node.h"
#include "core/object.h"
#include "core/pair.h"
#include "core/stat.h"
#include "ctl/ctl.h"
#include "ctl/netlink.h"
#include "failover/failover.h"
#include "link/link.h"
#include "verbs/verbs.h"

/* Events tell of the QPs of everybody.  (The first 6.1 kernels let everybody hear them.) */
static const struct genl_multicast_group shift_mcgrps[] = {
	[SHIFT_MCGRP_EVENTS] = {
		.name = SHIFT_GENL_MCGRP,
#ifdef GENL_MCAST_CAP_NET_ADMIN
		.flags = GENL_MCAST_CAP_NET_ADMIN,
#endif
	},
};

static const struct nla_policy shift_node_policy[SHIFT_A_NODE + 1] = {
	[SHIFT_A_NODE] = { .type = NLA_NUL_STRING, .len = SHIFT_NODE_MAX - 1 },
};

static const struct nla_policy shift_pair_add_policy[SHIFT_A_POLICY + 1] = {
	[SHIFT_A_DEV] = { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 },
	[SHIFT_A_BACKUP_DEV] = { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 },
	[SHIFT_A_POLICY] = NLA_POLICY_MAX(NLA_U32, SHIFT_POLICY_AT_LEAST_ONCE),
};

static const struct nla_policy shift_pair_set_policy[SHIFT_A_POLICY + 1] = {
	[SHIFT_A_DEV] = { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 },
	[SHIFT_A_POLICY] = NLA_POLICY_MAX(NLA_U32, SHIFT_POLICY_AT_LEAST_ONCE),
};

static const struct nla_policy shift_pair_del_policy[SHIFT_A_DEV + 1] = {
	[SHIFT_A_DEV] = { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 },
};

static const struct nla_policy shift_qp_move_policy[SHIFT_A_PATH + 1] = {
	[SHIFT_A_DEV] = { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 },
	[SHIFT_A_LINK_ID] = { .type = NLA_U32 },
	[SHIFT_A_QPN] = NLA_POLICY_MIN(NLA_U32, 1),
	[SHIFT_A_PATH] = NLA_POLICY_MAX(NLA_U32, 1),
};

static const struct nla_policy shift_pair_drain_policy[SHIFT_A_PATH + 1] = {
	[SHIFT_A_DEV] = { .type = NLA_NUL_STRING, .len = IB_DEVICE_NAME_MAX - 1 },
	[SHIFT_A_PATH] = NLA_POLICY_MAX(NLA_U32, 1),
};

static const struct nla_policy shift_link_probe_policy[SHIFT_A_LINK_ID + 1] = {
	[SHIFT_A_LINK_ID] = { .type = NLA_U32 },
};

static const struct nla_policy shift_nic_policy[SHIFT_NIC_A_MAX + 1] = {
	[SHIFT_NIC_A_GID] = NLA_POLICY_EXACT_LEN(sizeof(union ib_gid)),
	[SHIFT_NIC_A_BACKUP] = NLA_POLICY_EXACT_LEN(sizeof(union ib_gid)),
};

static const struct nla_policy shift_peer_policy[SHIFT_A_NIC + 1] = {
	[SHIFT_A_NODE] = { .type = NLA_NUL_STRING, .len = SHIFT_NODE_MAX - 1 },
	[SHIFT_A_NIC] = NLA_POLICY_NESTED(shift_nic_policy),
};

/* Held to change the node's name, which is refused while pairs or peers depend on it. */
static DEFINE_MUTEX(shift_node_lock);

static struct sk_buff *nl_reply_new(struct genl_info *info, void **hdr)
{
	struct sk_buff *skb;

	skb = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (skb) {
		*hdr = genlmsg_put_reply(skb, info, &shift_genl_family, 0,
					 info->genlhdr->cmd);
		if (*hdr)
			return skb;
		nlmsg_free(skb);
	}
	GENL_SET_ERR_MSG(info, "out of memory");
	return NULL;
}

static int nl_too_long(struct genl_info *info, struct sk_buff *skb)
{
	nlmsg_free(skb);
	GENL_SET_ERR_MSG(info, "the answer does not fit into a message");
	return -EMSGSIZE;
}

static bool nl_missing(struct genl_info *info, int attr)
{
	if (!GENL_REQ_ATTR_CHECK(info, attr))
		return false;
	GENL_SET_ERR_MSG(info, "a required attribute is missing");
	return true;
}

/* Names are shown in one column, and are keys in user space: so few characters are allowed. */
static int nl_node_name(struct genl_info *info, const char **name)
{
	struct nlattr *attr = info->attrs[SHIFT_A_NODE];
	const char *s;

	if (nl_missing(info, SHIFT_A_NODE))
		return -EINVAL;
	*name = nla_data(attr);
	for (s = *name; *s; s++) {
		if (isascii(*s) && (isalnum(*s) || strchr("._-", *s)))
			continue;
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "a node name has only letters, digits, '.', '_' and '-'");
		return -EINVAL;
	}
	if (s == *name) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr, "the node name is empty");
		return -EINVAL;
	}
	return 0;
}

static int nl_node_get(struct sk_buff *request, struct genl_info *info)
{
	char users[SHIFT_KERNEL_USERS_TEXT];
	struct sk_buff *skb;
	void *hdr;

	skb = nl_reply_new(info, &hdr);
	if (!skb)
		return -ENOMEM;
	shift_kernel_users_text(users, sizeof(users));
	if (nla_put_string(skb, SHIFT_A_NODE, shift_node) ||
	    nla_put_u32(skb, SHIFT_A_ABI_VERSION, SHIFT_ABI_VERSION) ||
	    nla_put_u32(skb, SHIFT_A_KEYS, shift_auth_keys()) ||
	    nla_put_string(skb, SHIFT_A_KERNEL_USERS, users))
		return nl_too_long(info, skb);
	/* with it one could speak to other nodes in this one's name */
	if (netlink_capable(request, CAP_NET_ADMIN) &&
	    nla_put(skb, SHIFT_A_BOOT_ID, sizeof(shift_boot_id), shift_boot_id))
		return nl_too_long(info, skb);
	genlmsg_end(skb, hdr);
	return genlmsg_reply(skb, info);
}

static int any_pair(struct shift_pair *pair, void *arg)
{
	return 1;
}

static int any_peer(const char *node, const struct shift_peer_nic *nics, u32 n,
		    void *arg)
{
	return 1;
}

static int nl_node_set(struct sk_buff *request, struct genl_info *info)
{
	const char *name;
	int err;

	err = nl_node_name(info, &name);
	if (err)
		return err;

	mutex_lock(&shift_node_lock);
	if (!strcmp(shift_node, name)) {
		err = 0;
	} else if (shift_node[0] && (shift_pair_walk(any_pair, NULL) ||
				     shift_peer_walk(any_peer, NULL))) {
		GENL_SET_ERR_MSG(info, "pairs or peers depend on the name; remove them first");
		err = -EBUSY;
	} else {
		strscpy(shift_node, name, sizeof(shift_node));
	}
	mutex_unlock(&shift_node_lock);
	return err;
}

static int nl_pair_add(struct sk_buff *request, struct genl_info *info)
{
	struct nlattr *policy = info->attrs[SHIFT_A_POLICY];
	const char *dev, *backup;

	if (nl_missing(info, SHIFT_A_DEV) ||
	    nl_missing(info, SHIFT_A_BACKUP_DEV))
		return -EINVAL;
	dev = nla_data(info->attrs[SHIFT_A_DEV]);
	backup = nla_data(info->attrs[SHIFT_A_BACKUP_DEV]);
	if (!strcmp(dev, backup)) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SHIFT_A_BACKUP_DEV],
				    "a device cannot be its own backup");
		return -EINVAL;
	}
	return shift_pair_add(dev, backup, policy ? nla_get_u32(policy) : SHIFT_POLICY_EXACTLY_ONCE,
			      info->extack);
}

static int nl_pair_set(struct sk_buff *request, struct genl_info *info)
{
	if (nl_missing(info, SHIFT_A_DEV) || nl_missing(info, SHIFT_A_POLICY))
		return -EINVAL;
	return shift_pair_set(nla_data(info->attrs[SHIFT_A_DEV]),
			      nla_get_u32(info->attrs[SHIFT_A_POLICY]), info->extack);
}

static int nl_pair_del(struct sk_buff *request, struct genl_info *info)
{
	if (nl_missing(info, SHIFT_A_DEV))
		return -EINVAL;
	return shift_pair_del(nla_data(info->attrs[SHIFT_A_DEV]), info->extack);
}

static int nl_qp_move(struct sk_buff *request, struct genl_info *info)
{
	struct nlattr *link = info->attrs[SHIFT_A_LINK_ID], *qpn = info->attrs[SHIFT_A_QPN];
	int err;

	if (link) {
		err = shift_move_ask(NULL, nla_get_u32(link), qpn ? nla_get_u32(qpn) : 0, 0, false);
		if (err == -ENOENT)
			NL_SET_ERR_MSG_ATTR(info->extack, link, "no protected QP uses that link");
		else if (err)
			NL_SET_ERR_MSG_ATTR(info->extack, link,
					    "the other path of its QPs does not work now");
		return err;
	}
	if (nl_missing(info, SHIFT_A_DEV) || nl_missing(info, SHIFT_A_PATH))
		return -EINVAL;
	return shift_pair_move(nla_data(info->attrs[SHIFT_A_DEV]), qpn ? nla_get_u32(qpn) : 0,
			       nla_get_u32(info->attrs[SHIFT_A_PATH]), false, info->extack);
}

static int nl_pair_drain(struct sk_buff *request, struct genl_info *info)
{
	if (nl_missing(info, SHIFT_A_DEV) || nl_missing(info, SHIFT_A_PATH))
		return -EINVAL;
	return shift_pair_move(nla_data(info->attrs[SHIFT_A_DEV]), 0,
			       nla_get_u32(info->attrs[SHIFT_A_PATH]), true, info->extack);
}

static int nl_link_probe(struct sk_buff *request, struct genl_info *info)
{
	int err;

	if (nl_missing(info, SHIFT_A_LINK_ID))
		return -EINVAL;
	err = shift_link_probe(nla_get_u32(info->attrs[SHIFT_A_LINK_ID]));
	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SHIFT_A_LINK_ID],
				    "there is no such link");
	else if (err)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SHIFT_A_LINK_ID],
				    "the link is not up");
	return err;
}

static int nl_gid(const struct nlattr *attr, union ib_gid *gid,
		  struct netlink_ext_ack *extack)
{
	nla_memcpy(gid, attr, sizeof(*gid));
	if (memchr_inv(gid, 0, sizeof(*gid)))
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr, "a GID of zero is not valid");
	return -EINVAL;
}

/* Parse one NIC of a peer.  The netlink policy has checked lengths and types. */
static int nl_nic(const struct nlattr *nest, struct shift_peer_nic *nic,
		  struct netlink_ext_ack *extack)
{
	const struct nlattr *attr;
	bool named = false;
	int rem, err;

	nla_for_each_nested(attr, nest, rem) {
		if (nla_type(attr) == SHIFT_NIC_A_GID) {
			if (named) {
				NL_SET_ERR_MSG_ATTR(extack, attr, "the NIC has more than one GID");
				return -EINVAL;
			}
			named = true;
			err = nl_gid(attr, &nic->gid, extack);
		} else {
			if (nic->num_backups == SHIFT_BACKUPS_MAX) {
				NL_SET_ERR_MSG_ATTR(extack, attr, "the NIC has too many backups");
				return -E2BIG;
			}
			err = nl_gid(attr, &nic->backup[nic->num_backups++], extack);
		}
		if (err)
			return err;
	}
	if (!named) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "the NIC has no GID");
		return -EINVAL;
	}
	return 0;
}

static int nl_peer_set(struct sk_buff *request, struct genl_info *info)
{
	struct shift_peer_nic *nics;
	const struct nlattr *attr;
	const char *name;
	int rem, err;
	u32 n = 0;

	err = nl_node_name(info, &name);
	if (err)
		return err;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rem)
		n += nla_type(attr) == SHIFT_A_NIC;
	if (!n) {
		GENL_SET_ERR_MSG(info, "a peer needs at least one NIC; PEER_DEL removes a peer");
		return -EINVAL;
	}
	if (n > SHIFT_PEER_NICS_MAX) {
		GENL_SET_ERR_MSG(info, "the peer has too many NICs");
		return -E2BIG;
	}

	nics = kvcalloc(n, sizeof(*nics), GFP_KERNEL);
	if (!nics) {
		GENL_SET_ERR_MSG(info, "out of memory");
		return -ENOMEM;
	}
	n = 0;
	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(attr) != SHIFT_A_NIC)
			continue;
		err = nl_nic(attr, &nics[n++], info->extack);
		if (err)
			goto free;
	}
	err = shift_peer_set(name, nics, n, info->extack);
	if (!err)
		shift_link_peer_set(name);
free:
	kvfree(nics);
	return err;
}

static int nl_peer_del(struct sk_buff *request, struct genl_info *info)
{
	const char *name;
	int err;

	err = nl_node_name(info, &name);
	if (err)
		return err;
	err = shift_peer_del(name, info->extack);
	if (!err)
		shift_link_peer_del(name);
	return err;
}

static int nl_stat_get(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *skb;
	void *hdr;
	int i;

	skb = nl_reply_new(info, &hdr);
	if (!skb)
		return -ENOMEM;
	for (i = 0; i < __SHIFT_STAT_MAX; i++) {
		struct nlattr *nest = nla_nest_start(skb, SHIFT_A_STAT);

		if (!nest ||
		    nla_put_string(skb, SHIFT_A_STAT_NAME, shift_stat_name(i)) ||
		    nla_put_u64_64bit(skb, SHIFT_A_STAT_VALUE, shift_stat_read(i),
				      SHIFT_A_PAD))
			return nl_too_long(info, skb);
		nla_nest_end(skb, nest);
	}
	genlmsg_end(skb, hdr);
	return genlmsg_reply(skb, info);
}

static const struct genl_ops shift_genl_ops[] = {
	{
		.cmd = SHIFT_CMD_NODE_GET,
		.doit = nl_node_get,
	}, {
		.cmd = SHIFT_CMD_NODE_SET,
		.flags = GENL_ADMIN_PERM,
		.policy = shift_node_policy,
		.maxattr = ARRAY_SIZE(shift_node_policy) - 1,
		.doit = nl_node_set,
	}, {
		.cmd = SHIFT_CMD_PAIR_GET,
		.start = shift_nl_pair_start,
		.dumpit = shift_nl_dump,
		.done = shift_nl_done,
	}, {
		.cmd = SHIFT_CMD_PAIR_ADD,
		.flags = GENL_ADMIN_PERM,
		.policy = shift_pair_add_policy,
		.maxattr = ARRAY_SIZE(shift_pair_add_policy) - 1,
		.doit = nl_pair_add,
	}, {
		.cmd = SHIFT_CMD_PAIR_SET,
		.flags = GENL_ADMIN_PERM,
		.policy = shift_pair_set_policy,
		.maxattr = ARRAY_SIZE(shift_pair_set_policy) - 1,
		.doit = nl_pair_set,
	}, {
		.cmd = SHIFT_CMD_PAIR_DEL,
		.flags = GENL_ADMIN_PERM,
		.policy = shift_pair_del_policy,
		.maxattr = ARRAY_SIZE(shift_pair_del_policy) - 1,
		.doit = nl_pair_del,
	}, {
		.cmd = SHIFT_CMD_PEER_GET,
		.start = shift_nl_peer_start,
		.dumpit = shift_nl_dump,
		.done = shift_nl_done,
	}, {
		.cmd = SHIFT_CMD_PEER_SET,
		.flags = GENL_ADMIN_PERM,
		.policy = shift_peer_policy,
		.maxattr = ARRAY_SIZE(shift_peer_policy) - 1,
		.doit = nl_peer_set,
	}, {
		.cmd = SHIFT_CMD_PEER_DEL,
		.flags = GENL_ADMIN_PERM,
		.policy = shift_node_policy,
		.maxattr = ARRAY_SIZE(shift_node_policy) - 1,
		.doit = nl_peer_del,
	}, {
		.cmd = SHIFT_CMD_LINK_GET,
		.start = shift_nl_link_start,
		.dumpit = shift_nl_dump,
		.done = shift_nl_done,
	}, {
		.cmd = SHIFT_CMD_LINK_PROBE,
		.flags = GENL_ADMIN_PERM,
		.policy = shift_link_probe_policy,
		.maxattr = ARRAY_SIZE(shift_link_probe_policy) - 1,
		.doit = nl_link_probe,
	}, {
		.cmd = SHIFT_CMD_QP_GET,
		.start = shift_nl_qp_start,
		.dumpit = shift_nl_dump,
		.done = shift_nl_done,
	}, {
		.cmd = SHIFT_CMD_QP_MOVE,
		.flags = GENL_ADMIN_PERM,
		.policy = shift_qp_move_policy,
		.maxattr = ARRAY_SIZE(shift_qp_move_policy) - 1,
		.doit = nl_qp_move,
	}, {
		.cmd = SHIFT_CMD_PAIR_DRAIN,
		.flags = GENL_ADMIN_PERM,
		.policy = shift_pair_drain_policy,
		.maxattr = ARRAY_SIZE(shift_pair_drain_policy) - 1,
		.doit = nl_pair_drain,
	}, {
		.cmd = SHIFT_CMD_STAT_GET,
		.doit = nl_stat_get,
	},
};

struct genl_family shift_genl_family __ro_after_init = {
	.name = SHIFT_GENL_NAME,
	.version = SHIFT_GENL_VERSION,
	.module = THIS_MODULE,
	.parallel_ops = true,
	.ops = shift_genl_ops,
	.n_ops = ARRAY_SIZE(shift_genl_ops),
	.mcgrps = shift_mcgrps,
	.n_mcgrps = ARRAY_SIZE(shift_mcgrps),
};

/**
 * shift_netlink_init - register the family
 *
 * Context: process context; from here on requests arrive.
 * Return: 0 or a negative errno.
 */
int __init shift_netlink_init(void)
{
	return genl_register_family(&shift_genl_family);
}

/**
 * shift_netlink_uninit - unregister the family
 *
 * Waits for requests in progress.  From here on nobody can listen, and notifiers do
 * nothing.
 *
 * Context: process context.
 */
void shift_netlink_uninit(void)
{
	genl_unregister_family(&shift_genl_family);
}
