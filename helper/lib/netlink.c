// SPDX-License-Identifier: GPL-2.0-only
/*
 * One request at a time on a blocking socket; events on a socket of their
 * own, so that an event never mixes with a reply.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <netlink/netlink.h>
#include <netlink/genl/genl.h>
#include <netlink/genl/ctrl.h>

#include "lib/netlink.h"

#ifndef NLM_F_CAPPED
#define NLM_F_CAPPED	0x100
#define NLM_F_ACK_TLVS	0x200
#endif

/*
 * The kernel answers in milliseconds, but a device that is on its way out may
 * hold its locks for long; a caller with a watchdog must get its thread back.
 */
#define NL_TIMEOUT_SEC	10
/* Mass failover: one event per QP. */
#define NL_EVENT_RCVBUF	(4 << 20)

struct shift_nl {
	struct nl_sock *sk;
	int family;
	char error[512];
	/* the request under way */
	shift_nl_fn fn;
	void *arg;
	int status;		/* 1: waiting, 0 or -errno: done */
};

static struct nla_policy attr_policy[SHIFT_A_MAX + 1] = {
	[SHIFT_A_NODE]		= { .type = NLA_STRING },
	[SHIFT_A_BOOT_ID]	= { .type = NLA_UNSPEC, .minlen = 16 },
	[SHIFT_A_ABI_VERSION]	= { .type = NLA_U32 },
	[SHIFT_A_DEV]		= { .type = NLA_STRING },
	[SHIFT_A_BACKUP_DEV]	= { .type = NLA_STRING },
	[SHIFT_A_NODE_GUID]	= { .type = NLA_U64 },
	[SHIFT_A_BACKUP_GUID]	= { .type = NLA_U64 },
	[SHIFT_A_NIC]		= { .type = NLA_NESTED },
	[SHIFT_A_LINK_ID]	= { .type = NLA_U32 },
	[SHIFT_A_LOCAL_GID]	= { .type = NLA_UNSPEC, .minlen = 16 },
	[SHIFT_A_REMOTE_GID]	= { .type = NLA_UNSPEC, .minlen = 16 },
	[SHIFT_A_LINK_STATE]	= { .type = NLA_U32 },
	[SHIFT_A_QPN]		= { .type = NLA_U32 },
	[SHIFT_A_REMOTE_QPN]	= { .type = NLA_U32 },
	[SHIFT_A_BACKUP_QPN]	= { .type = NLA_U32 },
	[SHIFT_A_PID]		= { .type = NLA_U32 },
	[SHIFT_A_COMM]		= { .type = NLA_STRING },
	[SHIFT_A_QP_STATE]	= { .type = NLA_U32 },
	[SHIFT_A_REASON]	= { .type = NLA_U32 },
	[SHIFT_A_REASON_TEXT]	= { .type = NLA_STRING },
	[SHIFT_A_EPOCH]		= { .type = NLA_U32 },
	[SHIFT_A_PATH]		= { .type = NLA_U32 },
	[SHIFT_A_CAUSE]		= { .type = NLA_U32 },
	[SHIFT_A_QP_EVENT]	= { .type = NLA_U32 },
	[SHIFT_A_TIME_NS]	= { .type = NLA_U64 },
	[SHIFT_A_REPLAYED]	= { .type = NLA_U32 },
	[SHIFT_A_EXECUTED]	= { .type = NLA_U32 },
	[SHIFT_A_STAT]		= { .type = NLA_NESTED },
	[SHIFT_A_STAT_NAME]	= { .type = NLA_STRING },
	[SHIFT_A_STAT_VALUE]	= { .type = NLA_U64 },
	[SHIFT_A_ADDED]		= { .type = NLA_FLAG },
	[SHIFT_A_PORT_STATE]	= { .type = NLA_U32 },
	[SHIFT_A_BACKUP_PORT_STATE] = { .type = NLA_U32 },
	[SHIFT_A_PROTECTED_QPS]	= { .type = NLA_U32 },
	[SHIFT_A_USED_BY]	= { .type = NLA_STRING },
	[SHIFT_A_TRACKED_QPS]	= { .type = NLA_U32 },
	[SHIFT_A_SWITCHES]	= { .type = NLA_U32 },
	[SHIFT_A_FAULT_NS]	= { .type = NLA_U64 },
	[SHIFT_A_AGREED_NS]	= { .type = NLA_U64 },
	[SHIFT_A_FENCED_NS]	= { .type = NLA_U64 },
	[SHIFT_A_REPLAYED_NS]	= { .type = NLA_U64 },
	[SHIFT_A_COMPLETION_NS]	= { .type = NLA_U64 },
	[SHIFT_A_DRAINED]	= { .type = NLA_FLAG },
	[SHIFT_A_CONNECTS]	= { .type = NLA_U64 },
	[SHIFT_A_ACKED]		= { .type = NLA_U64 },
	[SHIFT_A_PAIR_BACKUP_NAME] = { .type = NLA_STRING },
	[SHIFT_A_CHANGED]	= { .type = NLA_FLAG },
	[SHIFT_A_KEYS]		= { .type = NLA_U32 },
	[SHIFT_A_KERNEL_USERS]	= { .type = NLA_STRING },
	[SHIFT_A_PROVEN]	= { .type = NLA_FLAG },
	[SHIFT_A_MSG_VERSION]	= { .type = NLA_U32 },
	[SHIFT_A_MSG_CAPS]	= { .type = NLA_U32 },
	[SHIFT_A_DSCPS]		= { .type = NLA_U64 },
	[SHIFT_A_PROOF_HELD]	= { .type = NLA_U32 },
	[SHIFT_A_PROOF_FAILED]	= { .type = NLA_U32 },
	[SHIFT_A_BACKUP_PROOF_HELD] = { .type = NLA_U32 },
	[SHIFT_A_BACKUP_PROOF_FAILED] = { .type = NLA_U32 },
};

/* libnl has its own error numbers; the few that can come up here. */
static int nle_to_errno(int nle)
{
	switch (nle < 0 ? -nle : nle) {
	case NLE_SUCCESS:
		return 0;
	case NLE_AGAIN:
		return -ETIMEDOUT;
	case NLE_INTR:
	case NLE_DUMP_INTR:
		return -EINTR;
	case NLE_NOMEM:
		return -ENOBUFS;
	case NLE_PERM:
	case NLE_NOACCESS:
		return -EPERM;
	case NLE_OBJ_NOTFOUND:
		return -ENOENT;
	default:
		return -EIO;
	}
}

static void set_error(struct shift_nl *nl, int err, const char *extack)
{
	if (extack && *extack)
		snprintf(nl->error, sizeof(nl->error), "%s (%s)", extack,
			 strerror(-err));
	else if (err == -ETIMEDOUT)
		snprintf(nl->error, sizeof(nl->error),
			 "the kernel did not answer within %d s; see dmesg",
			 NL_TIMEOUT_SEC);
	else if (err == -EPERM)
		snprintf(nl->error, sizeof(nl->error),
			 "%s: this needs CAP_NET_ADMIN", strerror(-err));
	else
		snprintf(nl->error, sizeof(nl->error), "%s", strerror(-err));
}

const char *shift_nl_error(const struct shift_nl *nl)
{
	if (!nl)
		return "kernel module rdma_shift is not loaded (modprobe rdma_shift)";
	return nl->error;
}

/* The text the kernel attached to an error, or NULL. */
static const char *extack_text(void *start, int len)
{
	struct nlattr *attr = nla_find(start, len, NLMSGERR_ATTR_MSG);
	const char *text;

	if (!attr || !nla_len(attr))
		return NULL;
	text = nla_data(attr);
	return text[nla_len(attr) - 1] ? NULL : text;
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *err, void *arg)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)((char *)err - NLMSG_HDRLEN);
	struct shift_nl *nl = arg;
	const char *text = NULL;
	int skip = sizeof(*err);

	(void)from;
	if (nlh->nlmsg_flags & NLM_F_ACK_TLVS) {
		if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
			skip += err->msg.nlmsg_len - NLMSG_HDRLEN;
		skip = NLMSG_ALIGN(skip);
		if (skip < (int)nlmsg_datalen(nlh))
			text = extack_text((char *)err + skip,
					   nlmsg_datalen(nlh) - skip);
	}
	nl->status = err->error < 0 ? err->error : -EIO;
	set_error(nl, nl->status, text);
	return NL_STOP;
}

static int on_ack(struct nl_msg *msg, void *arg)
{
	struct shift_nl *nl = arg;

	(void)msg;
	nl->status = 0;
	return NL_STOP;
}

/* End of a dump, which may be an error with its own extack. */
static int on_finish(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *nlh = nlmsg_hdr(msg);
	struct shift_nl *nl = arg;
	const char *text = NULL;
	int err = 0;

	if (nlmsg_datalen(nlh) >= (int)sizeof(err))
		memcpy(&err, nlmsg_data(nlh), sizeof(err));
	if (err < 0) {
		int skip = NLMSG_ALIGN(sizeof(err));

		if ((nlh->nlmsg_flags & NLM_F_ACK_TLVS) &&
		    nlmsg_datalen(nlh) > skip)
			text = extack_text((char *)nlmsg_data(nlh) + skip,
					   nlmsg_datalen(nlh) - skip);
		set_error(nl, err, text);
	}
	nl->status = err < 0 ? err : 0;
	return NL_STOP;
}

static int on_valid(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *nlh = nlmsg_hdr(msg);
	struct nlattr *tb[SHIFT_A_MAX + 1];
	struct shift_nl *nl = arg;

	if (nlh->nlmsg_type != nl->family ||
	    genlmsg_parse(nlh, 0, tb, SHIFT_A_MAX, attr_policy))
		return NL_SKIP;
	if (nl->fn)
		nl->fn(genlmsg_hdr(nlh)->cmd, nlh, tb, nl->arg);
	return NL_OK;
}

static struct nl_cb *make_cb(struct shift_nl *nl)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);

	if (!cb)
		return NULL;
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_valid, nl);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_ack, nl);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, nl);
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, nl);
	return cb;
}

static int open_socket(struct shift_nl *nl)
{
	struct timeval tv = { .tv_sec = NL_TIMEOUT_SEC };
	int one = 1;
	int ret, fd;

	nl->sk = nl_socket_alloc();
	if (!nl->sk)
		return -ENOMEM;
	ret = genl_connect(nl->sk);
	if (ret < 0) {
		ret = nle_to_errno(ret);
		goto err_free;
	}
	fd = nl_socket_get_fd(nl->sk);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	nl_socket_set_msg_buf_size(nl->sk, 1 << 16);
	nl->family = genl_ctrl_resolve(nl->sk, SHIFT_GENL_NAME);
	if (nl->family < 0) {
		ret = nl->family == -NLE_OBJ_NOTFOUND ? -ENOENT :
			nle_to_errno(nl->family);
		goto err_free;
	}
	return 0;

err_free:
	nl_socket_free(nl->sk);
	nl->sk = NULL;
	return ret;
}

/**
 * shift_nl_open() - connect to the module
 * @nlp: result, to be closed with shift_nl_close()
 *
 * Return: 0, -ENOENT if the module is not loaded, or another -errno.
 */
int shift_nl_open(struct shift_nl **nlp)
{
	struct shift_nl *nl = calloc(1, sizeof(*nl));
	int ret;

	*nlp = NULL;
	if (!nl)
		return -ENOMEM;
	ret = open_socket(nl);
	if (ret) {
		free(nl);
		return ret;
	}
	*nlp = nl;
	return 0;
}

void shift_nl_close(struct shift_nl *nl)
{
	if (!nl)
		return;
	nl_socket_free(nl->sk);
	free(nl);
}

/**
 * shift_nl_msg() - a request, to be filled in
 * @nl: from shift_nl_open()
 * @cmd: SHIFT_CMD_...
 * @flags: NLM_F_DUMP or 0
 * @size: that it must hold
 *
 * Return: the message, for shift_nl_request() or shift_nl_no_memory(), or NULL.
 */
struct nl_msg *shift_nl_msg(struct shift_nl *nl, int cmd, int flags,
			    size_t size)
{
	struct nl_msg *msg = nlmsg_alloc_size(size);

	if (!msg)
		return NULL;
	if (!genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, nl->family, 0, flags,
			 cmd, SHIFT_GENL_VERSION)) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

/**
 * shift_nl_request() - send a message and wait for the end of the answer
 * @nl: from shift_nl_open()
 * @msg: from shift_nl_msg(); freed here
 * @fn: called for each message of the answer, or NULL
 * @arg: passed to @fn
 *
 * Return: 0 or -errno; shift_nl_error() has the text.
 */
int shift_nl_request(struct shift_nl *nl, struct nl_msg *msg, shift_nl_fn fn,
		     void *arg)
{
	struct nl_cb *cb;
	int ret;

	nl->error[0] = '\0';
	nl->fn = fn;
	nl->arg = arg;
	nl->status = 1;
	if (!nl->sk) {
		nlmsg_free(msg);
		set_error(nl, -ENOTCONN, NULL);
		return -ENOTCONN;
	}
	ret = nl_send_auto(nl->sk, msg);
	nlmsg_free(msg);
	if (ret < 0) {
		nl->status = nle_to_errno(ret);
		set_error(nl, nl->status, NULL);
		return nl->status;
	}
	cb = make_cb(nl);
	if (!cb) {
		set_error(nl, -ENOMEM, NULL);
		return -ENOMEM;
	}
	while (nl->status > 0) {
		ret = nl_recvmsgs(nl->sk, cb);
		if (ret < 0 && nl->status > 0) {
			nl->status = nle_to_errno(ret);
			set_error(nl, nl->status, NULL);
			break;
		}
	}
	nl_cb_put(cb);
	if (nl->status == -ETIMEDOUT) {
		/* A late answer must not be taken for that of the next. */
		nl_socket_free(nl->sk);
		if (open_socket(nl))
			nl->sk = NULL;
	}
	return nl->status;
}

/* @msg, if there is one, could not be filled in; it is freed. */
int shift_nl_no_memory(struct shift_nl *nl, struct nl_msg *msg)
{
	nlmsg_free(msg);
	set_error(nl, -ENOMEM, NULL);
	return -ENOMEM;
}

/**
 * shift_nl_get() - run a reading command
 * @nl: from shift_nl_open()
 * @cmd: SHIFT_CMD_..._GET
 * @dump: whether it is a dump
 * @fn: called for each message
 * @arg: passed to @fn
 *
 * Return: 0 or -errno; shift_nl_error() has the text.
 */
int shift_nl_get(struct shift_nl *nl, int cmd, int dump, shift_nl_fn fn,
		 void *arg)
{
	struct nl_msg *msg;

	msg = shift_nl_msg(nl, cmd, dump ? NLM_F_DUMP : 0, 4096);
	if (!msg)
		return shift_nl_no_memory(nl, NULL);
	return shift_nl_request(nl, msg, fn, arg);
}

static int no_seq_check(struct nl_msg *msg, void *arg)
{
	(void)msg;
	(void)arg;
	return NL_OK;
}

/**
 * shift_nl_subscribe() - turn this connection into an event stream
 * @nl: from shift_nl_open(); not to be used for requests any more
 *
 * Return: 0 or -errno.
 */
int shift_nl_subscribe(struct shift_nl *nl)
{
	int group, ret;

	group = genl_ctrl_resolve_grp(nl->sk, SHIFT_GENL_NAME,
				      SHIFT_GENL_MCGRP);
	if (group < 0) {
		ret = nle_to_errno(group);
		set_error(nl, ret, "the family has no multicast group '" SHIFT_GENL_MCGRP "'");
		return ret;
	}
	ret = nl_socket_add_membership(nl->sk, group);
	if (ret < 0) {
		ret = nle_to_errno(ret);
		set_error(nl, ret, ret == -EPERM ? NULL : "cannot join the multicast group");
		return ret;
	}
	nl_socket_set_buffer_size(nl->sk, NL_EVENT_RCVBUF, 0);
	/* The above is capped by rmem_max; this is not, for those who may. */
	ret = NL_EVENT_RCVBUF;
	setsockopt(shift_nl_fd(nl), SOL_SOCKET, SO_RCVBUFFORCE, &ret,
		   sizeof(ret));
	return nle_to_errno(nl_socket_set_nonblocking(nl->sk));
}

int shift_nl_fd(const struct shift_nl *nl)
{
	return nl_socket_get_fd(nl->sk);
}

/**
 * shift_nl_receive() - handle the events that are there
 * @nl: subscribed connection
 * @fn: called for each event
 * @arg: passed to @fn
 *
 * Return: 0 when there is no more for now, -ENOBUFS if the kernel had to drop
 * events because we were too slow, or another -errno.
 */
int shift_nl_receive(struct shift_nl *nl, shift_nl_fn fn, void *arg)
{
	struct nl_cb *cb = make_cb(nl);
	int ret;

	if (!cb)
		return -ENOMEM;
	nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, no_seq_check, NULL);
	nl->fn = fn;
	nl->arg = arg;
	do {
		nl->status = 1;
		ret = nl_recvmsgs(nl->sk, cb);
	} while (ret >= 0);
	nl_cb_put(cb);
	ret = nle_to_errno(ret);
	return ret == -ETIMEDOUT ? 0 : ret;
}
