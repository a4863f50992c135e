/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) */
/*
 * Generic netlink family "shift": pairs, peers, links, QPs and counters of
 * rdma_shift.  Changes need CAP_NET_ADMIN; every refusal carries an extack
 * text.  Described for tools in Documentation/netlink/specs/shift.yaml.
 */
#ifndef _UAPI_LINUX_SHIFT_H
#define _UAPI_LINUX_SHIFT_H

#define SHIFT_GENL_NAME		"shift"
#define SHIFT_GENL_VERSION	1
#define SHIFT_GENL_MCGRP	"events"

#define SHIFT_NODE_MAX		64	/* bytes of a node name, with its NUL */
#define SHIFT_PEER_NICS_MAX	64	/* NICs of one peer */
#define SHIFT_BACKUPS_MAX	8	/* backups of one NIC of a peer */
#define SHIFT_PAIR_BACKUPS_MAX	4	/* backups of one device of this node */

enum shift_cmd {
	SHIFT_CMD_UNSPEC,
	SHIFT_CMD_NODE_GET,	/* do: node, boot id, ABI version */
	SHIFT_CMD_NODE_SET,	/* do: NODE */
	SHIFT_CMD_PAIR_GET,	/* dump */
	SHIFT_CMD_PAIR_ADD,	/* do: DEV, BACKUP_DEV, perhaps POLICY; appends a further backup */
	SHIFT_CMD_PAIR_DEL,	/* do: DEV */
	SHIFT_CMD_PEER_GET,	/* dump */
	SHIFT_CMD_PEER_SET,	/* do: NODE, NIC...; replaces an entry of that name */
	SHIFT_CMD_PEER_DEL,	/* do: NODE */
	SHIFT_CMD_LINK_GET,	/* dump */
	SHIFT_CMD_QP_GET,	/* dump */
	SHIFT_CMD_STAT_GET,	/* do */
	SHIFT_CMD_PAIR_NTF,	/* event: a pair was added, changed or removed */
	SHIFT_CMD_LINK_NTF,	/* event: a link changed its state */
	SHIFT_CMD_QP_NTF,	/* event: see enum shift_qp_event */
	SHIFT_CMD_QP_MOVE,	/* do: DEV, PATH, perhaps QPN; or LINK_ID: all QPs off that link */
	SHIFT_CMD_PAIR_DRAIN,	/* do: DEV, PATH: 1 keep all QPs off DEV, 0 bring them back */
	SHIFT_CMD_PAIR_SET,	/* do: DEV, POLICY */
	SHIFT_CMD_LINK_PROBE,	/* do: LINK_ID: send something that the peer's NIC has to answer */
	__SHIFT_CMD_MAX,
	SHIFT_CMD_MAX = __SHIFT_CMD_MAX - 1
};

enum shift_attr {
	SHIFT_A_UNSPEC,
	SHIFT_A_PAD,
	SHIFT_A_NODE,		/* string: node name, unique in the cluster */
	SHIFT_A_BOOT_ID,	/* binary, 16 bytes */
	SHIFT_A_ABI_VERSION,	/* u32: of /dev/shift */
	SHIFT_A_DEV,		/* string: RDMA device that applications open */
	SHIFT_A_BACKUP_DEV,	/* string: backup of DEV that is in use */
	SHIFT_A_NODE_GUID,	/* u64: of DEV */
	SHIFT_A_BACKUP_GUID,	/* u64 */
	SHIFT_A_NIC,		/* nest, repeated: enum shift_nic_attr */
	SHIFT_A_LINK_ID,	/* u32 */
	SHIFT_A_LOCAL_GID,	/* binary, 16 bytes */
	SHIFT_A_REMOTE_GID,	/* binary, 16 bytes */
	SHIFT_A_LINK_STATE,	/* u32: enum shift_link_state */
	SHIFT_A_QPN,		/* u32: of the application's QP */
	SHIFT_A_REMOTE_QPN,	/* u32 */
	SHIFT_A_BACKUP_QPN,	/* u32, if there is one */
	SHIFT_A_PID,		/* u32: process that created the QP */
	SHIFT_A_COMM,		/* string: its name */
	SHIFT_A_QP_STATE,	/* u32: enum shift_qp_state */
	SHIFT_A_REASON,		/* u32: enum shift_reason; present if unprotected */
	SHIFT_A_REASON_TEXT,	/* string */
	SHIFT_A_EPOCH,		/* u32: of the last failover */
	SHIFT_A_PATH,		/* u32: 0 default, 1 backup, 2 default again */
	SHIFT_A_CAUSE,		/* u32: enum shift_cause */
	SHIFT_A_QP_EVENT,	/* u32: enum shift_qp_event */
	SHIFT_A_TIME_NS,	/* u64: CLOCK_REALTIME of the event */
	SHIFT_A_REPLAYED,	/* u32: operations posted again on the new path */
	SHIFT_A_EXECUTED,	/* u32: operations found executed, not replayed */
	SHIFT_A_STAT,		/* nest, repeated: STAT_NAME, STAT_VALUE */
	SHIFT_A_STAT_NAME,	/* string */
	SHIFT_A_STAT_VALUE,	/* u64, monotonic since load */
	SHIFT_A_ADDED,		/* flag: PAIR_NTF: the pair was added or changed */
	SHIFT_A_PORT_STATE,	/* u32: PAIR_GET: IB port state of DEV */
	SHIFT_A_BACKUP_PORT_STATE, /* u32 */
	SHIFT_A_PROTECTED_QPS,	/* u32: PAIR_GET */
	SHIFT_A_TRACKED_QPS,	/* u32: PAIR_GET: protected or not */
	SHIFT_A_SWITCHES,	/* u32: failovers and moves of the QP so far */
	SHIFT_A_FAULT_NS,	/* u64: CLOCK_REALTIME of the last failover, by step, ... */
	SHIFT_A_AGREED_NS,	/* u64: ... each if it got so far */
	SHIFT_A_FENCED_NS,	/* u64 */
	SHIFT_A_REPLAYED_NS,	/* u64 */
	SHIFT_A_COMPLETION_NS,	/* u64 */
	SHIFT_A_DRAINED,	/* flag: PAIR_GET: an operator keeps QPs off DEV */
	SHIFT_A_CONNECTS,	/* u64: how often the link has come up */
	SHIFT_A_POLICY,		/* u32: enum shift_policy */
	SHIFT_A_ACKED,		/* u64: sends of the link that the peer's NIC acknowledged */
	SHIFT_A_PAIR_BACKUP_NAME, /* string, repeated: all backups of DEV, the preferred first */
	SHIFT_A_CHANGED,	/* flag: PAIR_NTF, with ADDED: the pair was there before */
	SHIFT_A_PROOF_HELD,	/* u32: bits of assumptions that hold on DEV, if any are made */
	SHIFT_A_PROOF_FAILED,	/* u32: that do not; both 0: DEV could not be tried yet */
	SHIFT_A_BACKUP_PROOF_HELD,	/* u32: the same of BACKUP_DEV */
	SHIFT_A_BACKUP_PROOF_FAILED,	/* u32 */
	SHIFT_A_KEYS,		/* u32: keys by which nodes prove who they are; 0: they need not */
	SHIFT_A_PROVEN,		/* flag: the peer of a link has proved that it knows a key */
	SHIFT_A_MSG_VERSION,	/* u32: of the messages of a link that is up */
	SHIFT_A_MSG_CAPS,	/* u32: bits of what both its ends understand beyond that */
	SHIFT_A_KERNEL_USERS,	/* string: NODE_GET: users in the kernel that are protected */
	SHIFT_A_DSCPS,		/* u64: bits of classes with heartbeats beside the link's */
	SHIFT_A_USED_BY,	/* string: PAIR_GET: who has protection domains on DEV */
	__SHIFT_A_MAX,
	SHIFT_A_MAX = __SHIFT_A_MAX - 1
};

enum shift_nic_attr {
	SHIFT_NIC_A_UNSPEC,
	SHIFT_NIC_A_GID,	/* binary, 16 bytes: a default NIC's GID */
	SHIFT_NIC_A_BACKUP,	/* binary, 16 bytes, repeated, in order */
	__SHIFT_NIC_A_MAX,
	SHIFT_NIC_A_MAX = __SHIFT_NIC_A_MAX - 1
};

enum shift_link_state {
	SHIFT_LINK_DOWN,	/* no connection, and none being made */
	SHIFT_LINK_CONNECTING,
	SHIFT_LINK_UP,
};

/* What happens to outstanding work if a NIC cannot be asked how far it got. */
enum shift_policy {
	SHIFT_POLICY_EXACTLY_ONCE,	/* the application gets an error */
	SHIFT_POLICY_AT_LEAST_ONCE,	/* if both ends say so, it is posted again, perhaps twice */
};

/* What operators see of a QP's send side; the inner states are in fsm.h. */
enum shift_qp_state {
	SHIFT_QP_UNPROTECTED,
	SHIFT_QP_DEFAULT,
	SHIFT_QP_SWITCHING,
	SHIFT_QP_FALLBACK,
	SHIFT_QP_WAIT_SIGNALED,
	SHIFT_QP_WAIT_SINKED,
	SHIFT_QP_FAILED,
	SHIFT_QP_RETURNED,	/* on its own NIC again, on a proxy QP */
};

/* Why a QP is not protected.  Append only. */
enum shift_reason {
	SHIFT_REASON_NONE,
	SHIFT_REASON_NOT_RTS,		/* not connected yet */
	SHIFT_REASON_NO_PROVIDER,	/* the provider is not patched, or was refused */
	SHIFT_REASON_QP_TYPE,		/* not RC */
	SHIFT_REASON_OPERATION,		/* posted an operation not covered yet */
	SHIFT_REASON_SRQ,		/* its SRQ cannot be moved, or not with all its QPs */
	SHIFT_REASON_OLD_OBJECT,	/* PD, MR or CQ older than the pair */
	SHIFT_REASON_MIRROR_MR,		/* a mirror of its memory failed */
	SHIFT_REASON_MIRROR_QP,		/* a proxy QP could not be made */
	SHIFT_REASON_ODP,
	SHIFT_REASON_MW,
	SHIFT_REASON_NO_PEER,		/* remote GID not in the directory */
	SHIFT_REASON_LOOPBACK,
	SHIFT_REASON_NO_SESSION,	/* peer known, its module not reached */
	SHIFT_REASON_PEER_UNPROTECTED,	/* peer's QP is unprotected or unknown */
	SHIFT_REASON_APP_ERROR,		/* the application caused an error, or set ERR or RESET */
	SHIFT_REASON_FAILED,		/* a failover failed; error was reported */
	SHIFT_REASON_DEVICE_GONE,
	SHIFT_REASON_ADDRESS,		/* no usable GID on the backup */
	SHIFT_REASON_RINGS,		/* the provider is patched, but its rings are not covered */
	SHIFT_REASON_MTU,		/* the backup cannot carry packets of the QP's path MTU */
	SHIFT_REASON_DMABUF,		/* a dma-buf of its PD has no mirror */
	SHIFT_REASON_UNPROVEN,		/* a device of the pair has not proved what is assumed */
	SHIFT_REASON_CGROUP,		/* the rdma cgroup has no room for what it needs */
	SHIFT_REASON_NAMESPACE,		/* its GID is of another network namespace */
	SHIFT_REASON_KERNEL_USER,	/* of a user in the kernel, not for this backup */
	SHIFT_REASON_IOMMU,		/* the backup does not take addresses of the device */
	SHIFT_REASON_RECORD,		/* what a user in the kernel posts cannot be recorded */
	SHIFT_REASON_UNLISTED,		/* of a user in the kernel that is not to be protected */
	__SHIFT_REASON_MAX
};

enum shift_cause {
	SHIFT_CAUSE_NONE,
	SHIFT_CAUSE_PORT,	/* port event on the local NIC */
	SHIFT_CAUSE_CQE,	/* error completion on the active QP */
	SHIFT_CAUSE_PEER,	/* the peer asked, for a fault of its own */
	SHIFT_CAUSE_HEARTBEAT,
	SHIFT_CAUSE_OPERATOR,	/* also of its peer, or of other QPs of its SRQ */
	SHIFT_CAUSE_SRQ,	/* other QPs of its SRQ had to leave, for a fault */
};

enum shift_qp_event {
	SHIFT_QP_EV_STATE,	/* protected/unprotected or another state */
	SHIFT_QP_EV_FAULT,	/* something failed, and the QP is to leave its path */
	SHIFT_QP_EV_AGREED,	/* the peer agreed to the failover */
	SHIFT_QP_EV_FENCED,
	SHIFT_QP_EV_REPLAYED,	/* running on the new path; REPLAYED, EXECUTED */
	SHIFT_QP_EV_COMPLETION,	/* first completion on the new path */
	SHIFT_QP_EV_ABANDONED,	/* failover called off, nothing changed */
	SHIFT_QP_EV_FAILED,
	SHIFT_QP_EV_MOVE,	/* an operator or daemon wants the QP on another path */
};

#endif /* _UAPI_LINUX_SHIFT_H */
