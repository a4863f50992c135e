/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of the shadow of a QP: what each holds, who owns it, and under which lock it is. */
#ifndef SHIFT_CORE_QP_PARTS_H
#define SHIFT_CORE_QP_PARTS_H

#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include "core/kick.h"
#include "core/queue.h"
#include "core/ring.h"
#include "pure/bucket.h"
#include "pure/fsm.h"
#include "pure/ledger.h"

struct mem_cgroup;
struct shift_link;
struct shift_provider;
struct shift_proxy;
struct shift_qp;
struct shift_srq;
struct shift_srq_pool;

/**
 * enum shift_link_news - what has happened to a link: bits of shift_link_user.news
 * @SHIFT_LINK_NEWS_UP: it has come up.
 * @SHIFT_LINK_NEWS_DOWN: it went down.
 * @SHIFT_LINK_NEWS_SILENT: it went down, as the path loses all packets.
 * @SHIFT_LINK_NEWS_RESTARTED: its peer came back with another boot id, or came for the first time.
 */
enum shift_link_news {
	SHIFT_LINK_NEWS_UP,
	SHIFT_LINK_NEWS_DOWN,
	SHIFT_LINK_NEWS_SILENT,
	SHIFT_LINK_NEWS_RESTARTED,
};

/**
 * struct shift_link_user - a QP in the list of a link that it uses
 * @entry: in the list; the link's users_lock.
 * @sqp: the QP.  It leaves the list before its last reference is dropped.
 * @known: it has used a link before; sqp->lock.
 * @lane: heartbeats of the link in the QP's traffic class; NULL: there are none.  The link's
 *	users_lock.
 * @lane_entry: in the list of @lane; users_lock of that.
 * @up: the link is up; written by the link, for readers without a lock.
 * @silent: the path is silent in the QP's class; written by @lane, for readers without a lock.
 * @news: enum shift_link_news; atomic.  Set by the link, taken by the QP's work item.
 */
struct shift_link_user {
	struct list_head entry;
	struct shift_qp *sqp;
	bool known;
	struct shift_link *lane;
	struct list_head lane_entry;
	bool up;
	bool silent;
	unsigned long news;
};

/* Does the path of a link look as if it worked for the QP?  Any context. */
static inline bool shift_link_user_up(const struct shift_link_user *user)
{
	return READ_ONCE(user->up) && !READ_ONCE(user->silent);
}

/**
 * struct shift_arming - one period of a QP on one path, from its connection to its RESET
 * @path: the path; 0: its own QP.
 * @epoch: of the failover that connected it; 0: the application connected it.
 * @psn: in armed[]: the first PSN of the peer.  In resp: the PSN that our responder expected when
 *	the arming ended.  In outstanding: the PSN of our oldest operation that may be unexecuted.
 */
struct shift_arming {
	u8 path;
	u32 epoch, psn;
};

/** struct shift_qp_times - CLOCK_REALTIME ns of the last failover, for operators */
struct shift_qp_times {
	u64 fault, agreed, fenced, replayed, completion;
};

/**
 * enum shift_rebase - how far the provider is with its rings: proxy/rebase.c; ledger_lock
 * @SHIFT_REBASE_NONE: it is not wanted.
 * @SHIFT_REBASE_WANTED: all is stopped and empty: the provider may begin.
 * @SHIFT_REBASE_BUSY: the provider changes its rings: the kernel does not read there.
 * @SHIFT_REBASED: the indices of the rings begin with 0.
 */
enum shift_rebase {
	SHIFT_REBASE_NONE,
	SHIFT_REBASE_WANTED,
	SHIFT_REBASE_BUSY,
	SHIFT_REBASED,
};

/**
 * struct shift_qp_app - what the application has set, and the application's name
 * @memcg: of the process; work items charge it for what they make.  NULL: nobody is charged.
 * @init: attributes at creation.
 * @asked_send, @asked_recv: depths that the application asked for.
 * @state: state that the application has brought it to; it and all below are from modify_qp.
 * @sgid_index: of @sgid in the GID table of port 1.
 * @vlan: VLAN of @sgid, or SHIFT_VLAN_NONE; it and @foreign: noted by failover/pairing.c.
 * @foreign: @sgid is of an interface outside of the initial network namespace.
 * @attr: last values of the attributes with which proxy QPs are connected.
 *
 * Set at creation, or under sqp->lock.
 */
struct shift_qp_app {
	pid_t pid;
	kuid_t uid;
	char comm[TASK_COMM_LEN];
	struct mem_cgroup *memcg;
	struct ib_qp_init_attr init;
	u32 asked_send, asked_recv;
	bool sig_all;
	enum ib_qp_state state;
	u32 dest_qpn, sq_psn, rq_psn, mtu;
	union ib_gid sgid, dgid;
	u16 sgid_index;
	u32 vlan;
	bool foreign;
	struct ib_qp_attr attr;
};

/**
 * struct shift_qp_failover - the state of protection, and of the failover under way
 * @state: written by failover/state.c only, also under inbox_lock.
 * @reason: why it is not protected, if @state is OFF, FAIL or APP.
 * @epoch: the epoch that was joined last.
 * @highest: the highest epoch that was sent or joined.
 * @path: the active path.
 * @to: the path that the failover goes to.
 * @asks: REQs sent in this failover.
 * @resp: the last arming in which our responder executed anything.
 * @armed: the last arming of each path.
 * @qpn_here: number of our QP on the new path, in the failover that was joined last.
 * @unfenced: a NIC could not be asked since the last RUN.
 * @stuck: on its default NIC it held work that cannot be moved when it looked last.
 * @cause: why it leaves its path.
 * @moves: an operator's move is the cause; it, its peer or another QP of its SRQ was asked to.
 * @began_ns: ktime: when the failover under way began.
 * @deadline_ns: ktime: when the present state ends.
 * @resends: copies that were sent since that time began.
 * @reacked_ns: ktime: when an answer to the peer was repeated.
 * @broke_at: the oldest request when a proxy QP broke by flushes alone; users in the kernel.
 * @breaks: how often one has broken so with that request.
 * @error_status: enum ib_wc_status: first error that was kept back.
 * @error_pos: position in the send CQ's ring at that time.
 * @error_rpos: position in the receive CQ's ring at that time.
 * @fail_status: status for the first unfinished operation.
 * @pending_status: status of an error that was kept back, and waits for room in the CQ.
 * @stop_status: status for an operation that cannot be replayed, which gets it when all before it
 *	is done; ledger_lock.
 * @first_done: the first completion on the new path was seen; ledger_lock.
 * @switches, @replayed, @executed, @times: figures for operators.
 *
 * Owner: failover/.  Under sqp->lock, if nothing else is said.
 */
struct shift_qp_failover {
	enum shift_state state;
	enum shift_reason reason;
	u32 epoch, highest;
	u8 path, to;
	u8 asks;
	struct shift_arming resp;
	struct shift_arming armed[SHIFT_PATHS];
	u32 qpn_here;
	bool unfenced;
	bool stuck;
	enum shift_cause cause;
	bool moves;
	u64 began_ns;
	u64 deadline_ns;
	unsigned int resends;
	u64 reacked_ns;
	u64 broke_at;
	unsigned int breaks;
	u32 error_status;
	u32 error_pos;
	u32 error_rpos;
	u32 fail_status;
	u32 pending_status;
	u32 stop_status;
	bool first_done;
	u32 switches;
	u32 replayed, executed;
	struct shift_qp_times times;
};

/**
 * struct shift_qp_peer - what is known of the other end
 * @cookie: the cookie of the peer's QP.
 * @link: links of the default and of the backup device.
 * @use: entries in the lists of these links; each is in one while its @link is set.
 * @ok: PAIR was exchanged both ways.
 * @told: the peer was sent our cookie and its own.
 * @boot: the peer's boot id at that time.
 * @atomic: the peer's NICs are atomic towards each other.
 * @alone: no other QP of the peer's has to move with it, as those of an SRQ have; false if the
 *	peer's module is too old to say so.
 * @windows: both ends record operations on memory windows.
 * @resolved: the peer was, or is being, told remote keys of ours; any context.
 * @mute: the peer has not said that it has forgotten a key, and is not waited for; any context.
 * @tries: number of PAIRs sent.
 * @rkeys: remote key on the default path -> remote key on the present path; has a lock of its own.
 * @rkey_asks: number of the last key that was asked for.
 * @rkey_asked: jiffies of the last RESOLVE.
 * @rkey_since: ktime since when the key @rkey_waits is waited for, in epoch @rkey_epoch.
 *
 * Owner: failover/pairing.c and resolve.c.  Under sqp->lock, if nothing else is said.
 */
struct shift_qp_peer {
	u64 cookie;
	struct shift_link *link[2];
	struct shift_link_user use[2];
	union ib_gid backup_sgid, backup_dgid;
	bool ok;
	bool told;
	u8 boot[16];
	bool atomic;
	bool alone;
	bool windows;
	bool resolved;
	bool mute;
	unsigned int tries;
	struct xarray rkeys;
	u32 rkey_asks;
	unsigned long rkey_asked;
	u64 rkey_since;
	u32 rkey_waits, rkey_epoch;
};

/**
 * struct shift_qp_move - a move that an operator or failback wants
 * @to: SHIFT_PATH_DEFAULT (its own device) or SHIFT_PATH_BACKUP.
 * @until: ktime: until then the move is tried again; 0: there is no move.
 * @next: ktime of the next try.
 * @atomic_until: ktime: until then an atomic waits for the move to its own device; 0: none waits.
 * @waits: SHIFT_QP_WAIT_*: what a move waits for; 0: nothing.
 *
 * Owner: failover/move.c.  Under sqp->lock.
 */
struct shift_qp_move {
	u8 to;
	u64 until, next;
	u64 atomic_until;
	u8 waits;
};

/**
 * struct shift_qp_handback - how far the handback to the application's own QP is
 * @hold: what is posted waits; ledger_lock.
 * @rebase: how far the provider is with its rings; ledger_lock.
 * @ask: the next REQ asks for a handback.
 * @aborted: the handback was given up; the failover back to a proxy QP is not counted.
 * @tired: a post has waited for too long; ledger_lock.
 * @connected: the application's own QP is connected, and the handback is not over.
 * @quiet: it receives, and does not send, because the peer's may not be connected.
 * @alone: the peer's QP is gone: its READY is not waited for.
 * @nudged: a message to the provider is in a side ring, and was not polled.
 * @nudged_ns: ktime when it was put there.
 * @awake_ns: ktime when the provider was seen to poll.
 * @next_ns: ktime of the next try.
 * @tries: tries since the QP is back on its own device.
 * @node: in the list of QPs that are being handed back; core/qp.c.
 * @peer_qpn: the peer's own QP.
 *
 * Owner: failover/handback.c and proxy/rebase.c.  Under sqp->lock, if nothing else is said.
 */
struct shift_qp_handback {
	bool hold;
	enum shift_rebase rebase;
	bool ask;
	bool aborted;
	bool tired;
	bool connected;
	bool quiet;
	bool alone;
	bool nudged;
	u64 nudged_ns, awake_ns, next_ns;
	u8 tries;
	struct list_head node;
	u32 peer_qpn;
};

/**
 * struct shift_qp_silence - a look at its own progress, as heartbeats on its path are lost
 * @ms: how long it takes, before deadline_scale; 0: none is under way.
 * @began_ns: ktime.
 * @sent, @received: how far the requester and the responder were then.
 *
 * Owner: failover/silence.c.  Under sqp->lock.
 */
struct shift_qp_silence {
	unsigned int ms;
	u64 began_ns;
	u32 sent, received;
};

/**
 * struct shift_qp_report - an error that its process has reported, and what its own NIC says
 * @work: asks the NIC.
 * @open: an answer to the question asked last is waited for, and is of use.
 * @until_ns: ktime: for how long.
 * @asked: number of the question that was asked last; @work reads it without a lock.
 * @answered: number of the question that was answered last; written by @work alone, after:
 * @is_false: the answer: the QP is not in error.
 *
 * Owner: failover/report.c.  Under sqp->lock, if nothing else is said.
 */
struct shift_qp_report {
	struct work_struct work;
	bool open;
	u64 until_ns;
	u32 asked, answered;
	bool is_false;
};

#define SHIFT_PIN_WORDS		5

/**
 * struct shift_qp_pins - user memory of a QP, pinned and checked
 * @sq: send ring.
 * @rq: receive ring; not pinned: none.
 * @more: another ring that the provider of its kind uses.
 * @gate: flag word.
 * @word: words that the provider of its kind uses; it has names for them.
 */
struct shift_qp_pins {
	struct shift_ring sq, rq, more;
	struct shift_word gate, word[SHIFT_PIN_WORDS];
};

/**
 * struct shift_qp_rings - what its provider has registered
 * @registered: user memory is pinned: @pins is valid.
 * @usable: the engine may take work from the rings, and call @provider.
 * @rebases: its provider can REBASE.
 * @start_told: provider->starts() was called for the next RTS.
 * @provider: set when it is registered for the first time; then it stays.
 * @pins: user memory; valid while @registered.
 * @priv: memory of the provider, freed with the ledger.
 * @tracks_mws: the provider records operations on memory windows.
 * @held: the flag word says that posts have to wait: threads WAIT at @gate_wait.
 *
 * Owner: verbs/register.c.  Changed under sqp->lock and ledger_lock, read under either.
 */
struct shift_qp_rings {
	bool registered;
	bool usable;
	bool rebases;
	bool start_told;
	const struct shift_provider *provider;
	struct shift_qp_pins pins;
	void *priv;
	bool tracks_mws;
	bool held;
	wait_queue_head_t gate_wait;
};

/**
 * struct shift_qp_record - what was posted and is not completed, while it is away
 * @ledger: sends.
 * @recvs: receives.
 * @live: its own QP is fenced, so that what is posted goes into this record.
 * @outstanding: the arming in which operations were sent that may or may not be executed.
 * @any_outstanding: @outstanding is valid.
 * @own_end: operations of the ledger before it were posted to the application's own QP.
 * @proxy: the active proxy QP; changed under sqp->lock, too.
 *
 * Owner: proxy/.  Under ledger_lock.
 */
struct shift_qp_record {
	struct shift_ledger ledger;
	struct shift_recvs recvs;
	bool live;
	struct shift_arming outstanding;
	bool any_outstanding;
	u64 own_end;
	struct shift_proxy *proxy;
};

/**
 * struct shift_qp_proxies - its proxy QPs that are not active
 * @spare: never connected: one for each path.
 * @qpn: QP numbers of @spare, 0: there is none; for readers without a lock.
 * @retired: stopped for good, to be destroyed.
 *
 * Owner: proxy/proxy.c.  Under sqp->lock.
 */
struct shift_qp_proxies {
	struct shift_proxy *spare[SHIFT_PATHS];
	u32 qpn[SHIFT_PATHS];
	struct list_head retired;
	unsigned int nretired;
};

/**
 * struct shift_qp_srq - the QP as a member of a shared receive queue
 * @ssrq: set at creation; NULL: it has a receive queue of its own.
 * @pool: the pool that it draws from, or has drawn from; NULL: the user's ring.
 * @live: it can receive.
 * @left: it has left its path before other QPs of the SRQ.
 * @waits: READY is to be sent when the SRQ's receives are on the new path.
 * @stranded: it waits for receives that have gone on to another pool meanwhile.
 * @overdue: it has left its path, and other QPs of the SRQ could not follow in time.
 * @keeps: nothing is half received: on the same path it may go on drawing from the same pool;
 *	sqp->lock.
 * @done: receives that were completed and not shown; ledger_lock.
 *
 * Owner: srq/members.c.  Under ssrq->lock, if nothing else is said.
 */
struct shift_qp_srq {
	struct shift_srq *ssrq;
	struct list_head node;
	struct shift_srq_pool *pool;
	bool live;
	bool left;
	bool waits;
	bool stranded;
	bool overdue;
	bool keeps;
	struct list_head done;
};

/**
 * struct shift_qp_pending - what waits for its work item
 * @flags: enum shift_qp_bit; atomic.
 * @soon: in the list of SHIFT_QPB_SOON; failover/pairing.c.
 * @mailbox: messages.
 * @heard: what the peer may send for the work item.
 * @missed: what the peer may ask for keys that do not exist.
 * @queued_ns: ktime: when the peer has said that a message of @queued_epoch waits there.
 *
 * Owner: core/kick.c.  Under inbox_lock.
 */
struct shift_qp_pending {
	unsigned long flags;
	struct work_struct work;
	struct delayed_work timer;
	struct llist_node soon;
	struct shift_mailbox mailbox;
	struct shift_bucket heard, missed;
	u64 queued_ns;
	u32 queued_epoch;
};

#endif /* SHIFT_CORE_QP_PARTS_H */
