/* SPDX-License-Identifier: GPL-2.0
 *
 * The failover protocol: two kernels, A (0) and B (1), move a pair of QPs from one
 * path to another.  A model for SPIN; README.md says what is in it and how to run it.
 *
 * Which rule answers an event is not written here: kmod/pure/fsm.c itself is asked.
 * Here are the events, the guards, and what the actions do.  The names of states,
 * events, actions and guards are those of the code (names.h is made from it).
 *
 * Properties, by number: (1) no packet executed twice, none lost; (2) completions
 * once, in posting order, success only if all of it was executed; (3) executed in
 * posting order; (4) nothing executed or posted at a side whose application was shown
 * errors; (5) when nothing more can happen, each kernel is in a state that may last,
 * and all is complete or an error was shown; (6) BRIEF, ONE_FAULT: no error; (7) two
 * kernels in RUN with one epoch are on one path; (8) an application's own error is
 * shown as such; (9) every event has a rule; (10) no WQE that was posted before a
 * handback is rung into the QP that was handed back.
 */

#include "names.h"
#include "bounds.h"

#define BACK 3          /* the target of a handback: the application's own QP */

c_decl {
\#include "table.h"
};

/* session: FIFO per receiver, {event, epoch, path, value}; works while any path is up */
chan c[2] = [CAP] of { byte, byte, byte, byte };

bool up[NP];            /* path state */
bool will[NP];          /* a path that is down will come back */
byte faults = FAULTS, asks = ASKS, late = LATE, haste = HASTE, spurious = SPURIOUS;

/* kernel, per node */
byte st[2];
byte ep[2];             /* epoch joined */
byte hi[2];             /* highest epoch sent or joined */
byte p[2], q[2];        /* active path, target */
bool gate[2];           /* application posts are held back */
bool err[2];            /* the active QP raised a path error that was kept back */
bool fenced[2];         /* own QPs were fenced since the last RUN */
bool failed[2];         /* errors were shown to the application */
bool held[2];           /* a move settles: nothing new is posted */
bool moving[2];         /* the failover is a move: both paths work */
bool sleeping[2];       /* it waits for what is under way */

#if MOVES > 0
byte moves = MOVES;
#endif

/* a message kept for a later state */
byte kev[2] = NO_EVENT, ke[2], kt[2], kv[2];

#if defined(BAD) || defined(BADR)
#define ERRORS
bool genuine[2];        /* the application's own error CQE is in the CQ ... */
bool pend[2];           /* ... and was not polled yet */
#define PENDING(n) pend[n]
#else
#define PENDING(n) false
#endif
#ifdef APPENDS
byte appends = APPENDS;
#endif
#ifdef RESENDS
byte resends = RESENDS;
#endif
#ifdef RESTARTS
byte restarts = RESTARTS;
bool deaf[2];           /* the node has restarted: its cookies are not the old ones */
bool news[2];           /* the session says that the peer has a new boot id */
#endif
#ifdef PROVIDER
bool asleep[2];         /* this provider is not called while the model runs */
bool mid[2];            /* a thread posts: it holds the lock of the provider's queue */
bool begun[2];          /* the rings were begun anew while it did */
#define COMES(n) (!asleep[n])
#ifdef M_BACK_NO_LOCK
#define LOCKED(n) false
#else
#define LOCKED(n) mid[n]
#endif
#else
#define COMES(n) true
#define LOCKED(n) false
#endif

/* one QP per node and path; counts in packets */
#define QP(n,i) ((n)*NP+(i))
bool live[2*NP];        /* able to send and to execute */
byte gen[2*NP];         /* epoch it was armed for (stands for QPN and start PSN) */
byte rexp[2*NP];        /* responder: executed on this QP (expected PSN) */
byte snum[2*NP];        /* requester: posted to this QP */
byte ssent[2*NP];       /* requester: put on the wire (may arrive any time later) */
byte sack[2*NP];        /* requester: acknowledged */
#ifdef ERRORS
bool nak[2*NP];         /* requester: a NAK for an operation of its own fault is under way */
#endif

#define OTHER(n)  (1-(n))

/* With OUTAGE outages are short: retries last longer than any, and than messages take. */
#ifdef OUTAGE
#define EXHAUSTS(n) (up[0] && up[1] && empty(c[n]))
#else
#define EXHAUSTS(n) true
#endif

#ifdef W_HEALTHY
#define HEALTHY(n) (!err[n])
#else
#define HEALTHY(n) (!err[n] && !fenced[n] && !BROKEN(n))
#endif

/* A deadline may run out at any time; with LATE < 9 only LATE times early, then only when nothing else
 * can happen. */
#define DUE (late > 0 || timeout)

/* ---- messages ---------------------------------------------------------------------------- */

inline put(n, ev, epo, path, val) { assert(nfull(c[n])); c[n]!ev(epo, path, val) }

inline send(n, ev, epo, path, val) {
#ifdef UNORDERED
	if      /* the mailbox holds one of a kind */
	:: c[OTHER(n)]??[eval(ev), eval(epo), eval(path), eval(val)]
	:: !(c[OTHER(n)]??[eval(ev), eval(epo), eval(path), eval(val)]) -> put(OTHER(n), ev, epo, path, val)
	fi
#else
	put(OTHER(n), ev, epo, path, val)
#endif
}

#ifdef M_SETTLE_ASKER
#define SETTLES(n) false
#else
#define SETTLES(n) true
#endif
#ifdef LIVES
#define TARGET(t) ((t) % 4)             /* of a message; PROGRESS has a QPN above it */
#include "lives.pml"
#else
#define TARGET(t) (t)
#include "counts.pml"
#endif

/* ---- moves ------------------------------------------------------------------------------- */

#define QUIET(n,to) (!live[QP(n,p[n])] || \
	((to) == BACK -> DRAINED(n) : sack[QP(n,p[n])] == snum[QP(n,p[n])]))

/* Let what is under way finish; it sleeps, so others go on.  What does not finish is left to the fence ... */
inline settle(n, to) {
#ifndef M_NO_SETTLE
	held[n] = 1; sleeping[n] = 1;
	if
	:: QUIET(n,to)
	:: !QUIET(n,to) && haste > 0 -> haste--
	:: !QUIET(n,to) && DUE ->
		if
		:: LATE < 9 && late > 0 -> late--
		:: else
		fi
	fi;
	sleeping[n] = 0;
#endif
	look_once(n)
}

/* ... but for operations that would fail by it; and in a handback all have to finish. */
#if defined(M_NO_SETTLE) || defined(M_MOVE_ONCE)
#define UNSETTLED(n,to) false
#elif defined(M_BACK_UNSETTLED)
#define UNSETTLED(n,to) ((to) != BACK && !err[n] && once)
#else
#define UNSETTLED(n,to) ((to) == BACK -> !DRAINED(n) : !err[n] && once)
#endif

/* a failover is called off */
inline release(n) {
	forget_asks(n);
	moving[n] = 0;
#ifndef M_NO_RELEASE
	held[n] = 0
#endif
}

/* ---- guards ------------------------------------------------------------------------------ */

#define IS_MESSAGE(ev) ((ev) == EV_RX_REQ || (ev) == EV_RX_ACK || (ev) == EV_RX_NACK || \
	(ev) == EV_RX_PROGRESS || (ev) == EV_RX_UNKNOWN || (ev) == EV_RX_READY || \
	(ev) == EV_RX_GONE)

#ifdef W_EPOCH
#define JOINS_EPOCH(n,e)  ((e) > ep[n])
#else
#define JOINS_EPOCH(n,e)  ((e) > ep[n] && (e) >= hi[n])
#endif
#define JOINS_TARGET(n,t) (TARGET(t) != BACK || ((st[n] == RUN || st[n] == ASKED) && FITS(n)))
#ifdef W_LATE_ACK
#define JOINS(n,ev,e,t) (JOINS_EPOCH(n,e) && (ev) == EV_RX_REQ && JOINS_TARGET(n,t))
#else
#define JOINS(n,ev,e,t) (JOINS_EPOCH(n,e) && JOINS_TARGET(n,t))
#endif

#ifdef M_NO_EPOCH_CHECK
#define CURRENT(n,e) true
#else
#define CURRENT(n,e) ((e) == (st[n] == ASKED -> hi[n] : ep[n]))
#endif

#define GUARDS(n,ev,e,t,v) ( \
	(HEALTHY(n) -> G_HEALTHY : 0) | \
	(USABLE(n) -> G_USABLE : 0) | \
	(IS_MESSAGE(ev) && JOINS(n,ev,e,t) -> G_JOINS : 0) | \
	(IS_MESSAGE(ev) && CURRENT(n,e) -> G_CURRENT : 0) | \
	(IDLE(n) -> G_IDLE : 0) | \
	(OWN(n) -> G_OWN : 0) | \
	((ev) == EV_RX_NACK && (v) == 1 -> G_NACK_GONE : 0))

/* ---- actions ----------------------------------------------------------------------------- */

inline new_epoch(n) {
#ifdef W_EPOCH
	hi[n] = ep[n] + 1
#else
	hi[n] = hi[n] + 1;
	if
	:: (hi[n] % 2) != n -> hi[n] = hi[n] + 1
	:: else
	fi
#endif
}

inline ask(n) {
	choose(n);
	asks--;
	new_epoch(n);
	if
	:: moving[n] -> settle(n, q[n])
	:: else
	fi;
	if
	:: moving[n] && UNSETTLED(n,q[n]) && HEALTHY(n) -> follow = EV_DEADLINE   /* the peer was not asked */
	:: else -> send(n, EV_RX_REQ, hi[n], q[n], moving[n])
	fi
}

/* A REQ of a move that this end cannot follow is refused, and changes nothing. */
inline refuse(n) {
	settle(n, TARGET(t));
	if
	:: UNSETTLED(n,TARGET(t)) ->
		printf("%c: refuses to move to %d\n", 65+n, TARGET(t));
		release(n); send(n, EV_RX_NACK, e, hi[n], 0); ev = NO_EVENT
	:: else
	fi
}

inline join(n) {
	if
	:: ev == EV_RX_REQ ->
		if
		:: v && SETTLES(n) && !held[n] -> settle(n, TARGET(t))   /* the peer fences at the ACK */
		:: else
		fi;
		send(n, EV_RX_ACK, e, t, 0)
	:: ev == EV_RX_PROGRESS || ev == EV_RX_UNKNOWN -> kev[n] = ev; ke[n] = e; kt[n] = t; kv[n] = v
	:: else
	fi;
	ep[n] = e; hi[n] = e; q[n] = TARGET(t);
	gate[n] = 1; fenced[n] = 1;
	begin_switch(n);
	fence(n)
}

/* what the peer may not have got */
inline again(n) {
	if
	:: st[n] == AGREE -> progress(n)
	:: st[n] == SYNC -> progress(n);
		if
		:: !AWAITED(n) -> send(n, EV_RX_READY, ep[n], q[n], 0)
		:: else
		fi
	:: st[n] == RUN -> send(n, EV_RX_READY, ep[n], p[n], 0)
	:: else
	fi
}

inline to_run(n) {
	if
	:: q[n] == BACK -> p[n] = 0; q[n] = 0
	:: else -> p[n] = q[n]
	fi;
#ifdef UNKNOWN
	unk[n] = 0;
#endif
#ifdef ERRORS
	assert(!genuine[n]);                  /* (8) */
#endif
	gate[n] = 0; err[n] = 0; fenced[n] = 0; held[n] = 0; moving[n] = 0;
	open(n);
	assert(!(st[OTHER(n)] == RUN && ep[OTHER(n)] == ep[n] && p[OTHER(n)] != p[n]))   /* (7) */
}

inline fail(n) {
#if defined(BRIEF) || defined(ONE_FAULT)
	assert(false);                        /* (6) */
#endif
#ifdef ERRORS
#ifndef M_FAIL_NO_SCAN
	if
	:: pend[n] -> pend[n] = 0; genuine[n] = 0      /* it is the first error to be shown */
	:: else
	fi;
#endif
	assert(!genuine[n]);                  /* (8) */
#endif
	show_own(n);
	end_qps(n);
	send(n, EV_RX_GONE, hi[n], 0, 0)
}

inline act_on(n) {
	if
	:: action == ACT_NONE
	:: action == ACT_UNPROTECT -> gate[n] = 0; release(n); send(n, EV_RX_GONE, hi[n], 0, 0)
	:: action == ACT_ASK -> ask(n)
	:: action == ACT_NACK ->
		send(n, EV_RX_NACK, e, hi[n], ((st[n] == FAIL || st[n] == APP || st[n] == OFF) -> 1 : 0))
	:: action == ACT_REACK -> again(n)
	:: action == ACT_JOIN -> join(n)
	:: action == ACT_UNGATE -> q[n] = p[n]; gate[n] = 0; release(n)
	:: action == ACT_PROGRESS -> progress(n)
	:: action == ACT_READY -> ready(n)
	:: action == ACT_REPLAY -> to_run(n)
	:: action == ACT_KEEP -> kev[n] = ev; ke[n] = e; kt[n] = t; kv[n] = v
	:: action == ACT_FAIL -> fail(n)
	:: action == ACT_APP ->
		end_qps(n);
#ifdef ERRORS
		genuine[n] = 0; pend[n] = 0;
#endif
		send(n, EV_RX_GONE, hi[n], 0, 0)
	:: else -> assert(false)              /* an action that the model does not know */
	fi
}

/* ---- one kernel -------------------------------------------------------------------------- */

#ifdef W_DEADLINE
#define STALLED(n)   (!((st[n] == AGREE || st[n] == SYNC) && SESSION))
#else
#define STALLED(n)   true
#endif
/*
 * As shift_path_outage(): a QP that was stopped waits for a path, as long as its own retries would
 * have lasted.  With OUTAGE they always last longer.
 */
#if defined(OUTAGE) && !defined(M_OUTAGE)
#define WAITS(n) (HAS_DEADLINE(st[n]) && st[n] != FENCE && !SESSION && !HEALTHY(n) && !err[n])
#else
#define WAITS(n) false
#endif
#ifdef M_NO_DEADLINE
#define EXPIRES(n) (((HAS_DEADLINE(st[n]) && !AWAITED(n)) || (st[n] == RUN && err[n]) || sleeping[n]) && STALLED(n) && !WAITS(n))
#else
#define EXPIRES(n) ((HAS_DEADLINE(st[n]) || (st[n] == RUN && err[n]) || sleeping[n]) && STALLED(n) && !WAITS(n))
#endif

#ifdef UNORDERED
#define RECEIVE(type) :: SESSION && c[n]??[type] -> c[n]??type(e, t, v); ev = type
#else
#define RECEIVE(type)
#endif

proctype Kernel(byte n) {
	byte ev = NO_EVENT, follow = NO_EVENT, action, next, e, t, v, x;
	bool once;      /* an atomic is under way */
	short g;
end:	do
	:: atomic {
		if
		/* triggers */
		:: st[n] == RUN && USABLE(n) && (err[n] || !UP(p[n])) ->
			ev = EV_TRIGGER
		:: st[n] == RUN && USABLE(n) && spurious > 0 && !err[n] && UP(p[n]) ->
			spurious--; ev = EV_TRIGGER
#if MOVES > 0
		:: moves > 0 && st[n] == RUN && HEALTHY(n) && CAN_MOVE(n) ->
			moves--; moving[n] = 1; ev = EV_TRIGGER
#endif
#if BACKS > 0
		/* one end asks */
		:: n == 0 && backs > 0 && st[n] == RUN && FITS(n) && USABLE(n) ->
			backs--; moving[n] = 1; back[n] = 1; ev = EV_TRIGGER
#endif
		/* local steps */
#if BACKS > 0
		:: wants[n] && READY_FOR(n) && COMES(n) && !LOCKED(n) ->
			printf("%c: the provider begins its rings anew\n", 65+n);
			begin_rings(n);
			if
			:: AWAITED(n) ->
				connect(n);
				ev = kev[n]; e = ke[n]; t = kt[n]; v = kv[n];
				kev[n] = NO_EVENT; ke[n] = 0; kt[n] = 0; kv[n] = 0
			:: else
			fi
#endif
		:: EXPIRES(n) && DUE ->
			ev = EV_DEADLINE;
			if
			:: LATE < 9 && late > 0 -> late--
			:: else
			fi
		/* the application's end */
#ifdef ERRORS
		:: PENDING(n) ->
			pend[n] = 0; ev = EV_APP_ERROR;
			if
			:: st[n] == OFF -> failed[n] = 1; genuine[n] = 0
			:: else
			fi
#endif
#ifdef APPENDS
		:: appends > 0 ->
			appends--; ev = EV_APP_ERROR;
			if
			:: st[n] == OFF -> end_qps(n)
			:: else
			fi
#endif
#if defined(ERRORS) && defined(LIVES)
		/* an error that came during a failover is left to the failover */
		:: perr[n] ->
			perr[n] = 0;
			if
			:: st[n] == RUN && p[n] != 0 -> ev = EV_FAIL
			:: else
			fi
#endif
#ifdef RESTARTS
		:: news[n] && SESSION ->
			news[n] = 0;
			if
#ifdef M_UNPAIR_KEPT
			:: st[n] == RUN && err[n] -> gate[n] = 0; st[n] = OFF
#endif
			:: HEARS_RESTART(n) -> ev = EV_RX_GONE
			:: else               /* its operations will find out */
			fi
#endif
#ifdef RESENDS
		:: resends > 0 && (st[n] == AGREE || st[n] == SYNC) -> resends--; again(n)
		:: resends > 0 && st[n] == ASKED -> resends--; send(n, EV_RX_REQ, hi[n], q[n], 0)
#endif
		/* messages */
#ifdef UNORDERED
		RECEIVE(EV_RX_REQ)
		RECEIVE(EV_RX_ACK)
		RECEIVE(EV_RX_NACK)
		RECEIVE(EV_RX_PROGRESS)
		RECEIVE(EV_RX_UNKNOWN)
		RECEIVE(EV_RX_READY)
		RECEIVE(EV_RX_GONE)
#else
		:: SESSION && nempty(c[n]) -> c[n]?ev,e,t,v
#endif
		fi;
#if defined(RESTARTS) && !defined(M_NO_COOKIE)
		if
		:: deaf[n] -> ev = NO_EVENT    /* not for a QP since the restart */
		:: else
		fi;
#endif
#ifdef LIVES
		if
		:: ev == EV_RX_GONE && p[n] != 0 -> lost[n] = 1; ev = NO_EVENT
		:: else
		fi;
#endif
		if
		:: ev == EV_RX_REQ && v && st[n] == RUN && HEALTHY(n) && JOINS(n,ev,e,t) && SETTLES(n) -> refuse(n)
		:: else
		fi;
#ifndef M_NO_BUSY_EPOCH
		if      /* the next ask is to be above what the peer has asked for in vain */
		:: ev == EV_RX_NACK && e == hi[n] -> x = t
		:: else
		fi;
#endif
		do
		:: ev == EV_RX_READY && AWAITED(n) ->   /* its own QP does not work before its provider is ready */
			kev[n] = ev; ke[n] = e; kt[n] = t; kv[n] = v;
			ev = NO_EVENT
		:: ev != NO_EVENT && !(ev == EV_RX_READY && AWAITED(n)) ->
#ifdef W_EPOCH
			if
			:: ev == EV_RX_REQ && st[n] == ASKED && e == hi[n] && n == 0 -> t = q[n]   /* lower cookie picks */
			:: else
			fi;
#endif
			g = GUARDS(n, ev, e, t, v);
			c_code {
				const struct shift_rule *r = table_find(now.st[PKernel->n],
									PKernel->ev, PKernel->g);

				PKernel->action = r ? r->action : __SHIFT_ACT_MAX;
				PKernel->next = r ? r->next : now.st[PKernel->n];
				if (readtrail)
					printf("%c: %s + %s(epoch %d, path %d, %d): %s -> %s\n",
					       'A' + PKernel->n, shift_state_name(now.st[PKernel->n]),
					       shift_event_name(PKernel->ev), PKernel->e, PKernel->t,
					       PKernel->v, r ? shift_action_name(r->action) : "no rule",
					       shift_state_name(PKernel->next));
			};
			assert(action != NO_RULE);         /* (9) */
			follow = NO_EVENT;
			act_on(n);
			ev = follow;
			follow = NO_EVENT;
			if
			:: ev == NO_EVENT && st[n] != next && kev[n] != NO_EVENT ->
				ev = kev[n]; e = ke[n]; t = kt[n]; v = kv[n];
				kev[n] = NO_EVENT; ke[n] = 0; kt[n] = 0; kv[n] = 0
			:: else
			fi;
			st[n] = next
		:: else -> break
		od;
		if      /* settled for it, and not joined after all */
		:: st[n] == RUN && held[n] && HEALTHY(n) -> release(n)
		:: else
		fi;
#ifndef M_NO_BUSY_EPOCH
		if
		:: x > hi[n] -> hi[n] = x
		:: else
		fi;
#endif
		action = 0; next = 0; e = 0; t = 0; v = 0; x = 0; g = 0; once = 0 }
	od
}

#include "world.pml"
