/* SPDX-License-Identifier: GPL-2.0
 *
 * The switch protocol: two kernels, A (0) and B (1), move a pair of QPs from one
 * path to another.  A model for SPIN; README.md says what is in it and how to run it.
 *
 * Which rule answers an event is not written here: kmod/fsm.c itself is asked.
 * Here are the events, the guards, and what the actions do.  The names of states,
 * events, actions and guards are those of the code (names.h is made from it).
 *
 * Properties, by number: (1) no packet executed twice, none lost; (2) completions
 * once, in posting order, success only if all of it was executed; (3) executed in
 * posting order; (4) nothing executed or posted at a side whose application was shown
 * errors; (5) when nothing more can happen, each kernel is in a state that may last,
 * and all is complete or an error was shown; (6) BRIEF, ONE_FAULT: no error; (7) two
 * kernels in RUN with one epoch are on one path; (8) an application's own error is
 * shown as such; (9) every event has a rule; (10) no WQE of an earlier life of the
 * ring is rung into a QP that came home.
 */

#include "names.h"
#include "bounds.h"

c_decl {
\#include "table.h"
};

/* session: FIFO per receiver, {event, epoch, path, value}; works while any path is up */
chan c[2] = [CAP] of { byte, byte, byte, byte };

bool up[NP];            /* path state */
bool will[NP];          /* a path that is down will come back */
byte faults = FAULTS, asks = ASKS, drains = DRAINS, late = LATE, spurious = SPURIOUS;

/* kernel, per node */
byte st[2];
byte ep[2];             /* epoch joined */
byte hi[2];             /* highest epoch sent or joined */
byte p[2], q[2];        /* active path, target */
bool gate[2];           /* application posts are held back */
bool err[2];            /* the active QP raised a path error that was kept back */
bool fenced[2];         /* own QPs were fenced since the last RUN */
bool gotdr[2];          /* the peer's DRAINED was seen, and receives agree */
bool hpeer[2], hprov[2];	/* halves of HOME that were seen */
bool failed[2];         /* errors were shown to the application */

/* a message kept for a later state */
byte kev[2] = NO_EVENT, ke[2], kt[2], kv[2];

/* ledger of the direction whose requester is node d, in packets */
byte hand[2];           /* ever handed to a NIC */
byte kex[2];            /* known EXECUTED */
byte rep[2];            /* reported as success: whole operations */
byte execd[2];          /* truth: executed at the responder, in order */
#define WHOLE(x)  (((x) / PKTS) * PKTS)

#ifdef BAD
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
bool deaf[2];           /* a new life of the node: its cookies are not the old ones */
bool news[2];           /* the session says that the peer has a new boot id */
#define SAID(n) (deaf[n] -> 0 : execd[OTHER(n)])
#else
#define SAID(n) execd[OTHER(n)]
#endif
#ifdef PROVIDER
bool asleep[2];         /* this provider is not called while the model runs */
bool mid[2];            /* a thread posts: it holds the lock of the provider's queue */
bool homed[2];          /* the rings were rebased while it did */
#define COMES(n) (!asleep[n])
#ifdef M_HOME_NO_LOCK
#define LOCKED(n) false
#else
#define LOCKED(n) mid[n]
#endif
#else
#define COMES(n) true
#define LOCKED(n) false
#endif

#ifdef UNKNOWN
byte unknown = UNKNOWN;
bool unk[2];
#ifdef W_UNKNOWN
#define STICKY(n) false
#else
#define STICKY(n) unk[n]
#endif
bool stuck[2*NP];       /* this responder could not be fenced: it goes on executing */
#define EXECUTES(x) (live[x] || stuck[x])
#define OWN_PROGRESS(n) (unk[n] -> EV_RX_UNKNOWN : EV_RX_PROGRESS)
#else
#define EXECUTES(x) live[x]
#define OWN_PROGRESS(n) EV_RX_PROGRESS
#endif
#ifdef M_CACHED_PROGRESS
byte cached[2] = 255;
#endif

/* one QP per node and path; counts in packets */
#define QP(n,i) ((n)*NP+(i))
bool live[2*NP];        /* able to send and to execute */
byte gen[2*NP];         /* epoch it was armed for (stands for QPN and start PSN) */
byte rexp[2*NP];        /* responder: executed on this QP (expected PSN) */
byte sbase[2*NP];       /* requester: ledger index of PSN 0 */
byte snum[2*NP];        /* requester: posted to this QP */
byte ssent[2*NP];       /* requester: put on the wire (may arrive any time later) */
byte sack[2*NP];        /* requester: acknowledged */
#ifdef BAD
bool nak[2*NP];         /* requester: a NAK for an operation of its own fault is under way */
#endif

#define NOPS(d)   ((d) == 0 -> NA*PKTS : NB*PKTS)
#if NP == 2
#define SESSION   (up[0] || up[1])
#define OTHERUP(n) (up[1-p[n]])
#else
#define SESSION   (up[0] || up[1] || up[2])
#define OTHERUP(n) ((p[n] != 0 && up[0]) || (p[n] != 1 && up[1]) || (p[n] != 2 && up[2]))
#endif
#define OTHER(n)  (1-(n))

/* ---- guards ------------------------------------------------------------------------------ */

#ifdef W_HEALTHY
#define HEALTHY(n) (!err[n])
#else
#define HEALTHY(n) (!err[n] && !fenced[n])
#endif

#ifdef W_NO_SAME_PATH
#define AGAIN(n) (st[n] != RUN && up[p[n]] && !HEALTHY(n))
#else
#define AGAIN(n) (up[p[n]] && !HEALTHY(n))     /* its own path, with fresh QPs */
#endif
#define USABLE(n) (asks > 0 && (OTHERUP(n) || AGAIN(n)))
#define ASKABLE(n,t) (up[t] && ((t) != p[n] || (AGAIN(n) && (st[n] != RUN || !OTHERUP(n)))))

#define IS_MESSAGE(ev) ((ev) == EV_RX_REQ || (ev) == EV_RX_REQ_DRAIN || (ev) == EV_RX_ACK || \
	(ev) == EV_RX_NACK || (ev) == EV_RX_PROGRESS || (ev) == EV_RX_UNKNOWN || \
	(ev) == EV_RX_READY || (ev) == EV_RX_DRAINED || (ev) == EV_RX_HOME_READY || \
	(ev) == EV_RX_APP_ERR || (ev) == EV_RX_GONE)

#ifdef W_EPOCH
#define JOINS_EPOCH(n,e)  ((e) > ep[n])
#else
#define JOINS_EPOCH(n,e)  ((e) > ep[n] && (e) >= hi[n])
#endif
#ifdef W_LATE_ACK
#define JOINS(n,ev,e) (JOINS_EPOCH(n,e) && ((ev) == EV_RX_REQ || (ev) == EV_RX_REQ_DRAIN))
#else
#define JOINS(n,ev,e) JOINS_EPOCH(n,e)
#endif

#ifdef M_NO_EPOCH_CHECK
#define CURRENT(n,e) true
#else
#define CURRENT(n,e) ((e) == ((st[n] == ASKED || st[n] == DRAIN || st[n] == SUNK) -> hi[n] : ep[n]))
#endif

#ifdef M_HOME_NO_PROVIDER
#define BOTH(n,ev) true
#else
#define BOTH(n,ev) ((ev) == EV_PROVIDER_HOME -> hpeer[n] : hprov[n])
#endif
#define RECEIVED(n,v) ((v) == execd[OTHER(n)])      /* receives agree */

#define GUARDS(n,ev,e,v) ( \
	(HEALTHY(n) -> G_HEALTHY : 0) | \
	(USABLE(n) -> G_USABLE : 0) | \
	(IS_MESSAGE(ev) && JOINS(n,ev,e) -> G_JOINS : 0) | \
	(IS_MESSAGE(ev) && CURRENT(n,e) -> G_CURRENT : 0) | \
	(hand[n] == kex[n] -> G_IDLE : 0) | \
	(q[n] == 0 -> G_TO_DEFAULT : 0) | \
	(BOTH(n,ev) -> G_HOME_BOTH : 0) | \
	((ev) == EV_RX_NACK && (v) == 1 -> G_NACK_GONE : 0) | \
	(gotdr[n] || ((ev) == EV_RX_DRAINED && RECEIVED(n,v)) -> G_PEER_DRAINED : 0))

/* ---- actions ----------------------------------------------------------------------------- */

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

#define forget_drain(n) gotdr[n] = 0; hpeer[n] = 0; hprov[n] = 0

#define reset_qp(n, i) live[QP(n,i)] = 0; snum[QP(n,i)] = 0; sack[QP(n,i)] = 0

inline reset_qps(n) {
	reset_qp(n, 0); reset_qp(n, 1)
#if NP > 2
	; reset_qp(n, 2)
#endif
}

/* What is posted while the path is up is in flight from then on: it may arrive at any later time, or
 * never. What is posted while it is down is put on the wire when it comes back. */
inline transmit(n, i) {
	if
	:: live[QP(n,i)] && up[i] -> ssent[QP(n,i)] = snum[QP(n,i)]
	:: else
	fi
}

inline arm(n, i, e) {
#ifdef UNKNOWN
	stuck[QP(n,i)] = 0;
#endif
#ifdef BAD
	nak[QP(n,i)] = 0;
#endif
	live[QP(n,i)] = 1; gen[QP(n,i)] = e; rexp[QP(n,i)] = 0;
	sbase[QP(n,i)] = 0; snum[QP(n,i)] = 0; ssent[QP(n,i)] = 0; sack[QP(n,i)] = 0
}

inline ask(n) {
	if
	:: ASKABLE(n, 0) -> q[n] = 0
	:: ASKABLE(n, 1) -> q[n] = 1
#if NP > 2
	:: ASKABLE(n, 2) -> q[n] = 2
#endif
	fi;
	asks--;
	new_epoch(n);
	forget_drain(n);
	send(n, EV_RX_REQ, hi[n], q[n], 0)
}

/* the fence; what follows at once is FENCED, UNFENCED or the application's error */
inline join(n) {
	if
	:: ev == EV_RX_REQ -> send(n, EV_RX_ACK, e, t, 0)
	:: ev == EV_RX_PROGRESS || ev == EV_RX_UNKNOWN -> kev[n] = ev; ke[n] = e; kt[n] = t; kv[n] = v
	:: else
	fi;
	if
	:: IS_MESSAGE(ev) ->
		ep[n] = e; hi[n] = e; q[n] = t
	:: else -> ep[n] = hi[n]               /* out of SUNK: both ends drained */
	fi;
	gate[n] = 1; fenced[n] = 1;
	forget_drain(n);
#ifdef UNKNOWN
	x = live[QP(n,p[n])];
#endif
#if defined(M_QUERY_FIRST)
	skip;
#elif defined(W_FENCE_FROM)
	reset_qp(n, p[n]);
#elif defined(M_FENCE_ONE_SIDE)
	if
	:: n == 0 -> reset_qps(n)
	:: else
	fi;
#else
	reset_qps(n);
#endif
	follow = EV_FENCED;
#ifdef UNKNOWN
	if
	:: STICKY(n) -> follow = EV_UNFENCED   /* until the next RUN */
	:: !STICKY(n) -> unk[n] = 0
	:: !STICKY(n) && unknown > 0 && x ->   /* the NIC cannot be asked: its QP may still execute */
		unknown--;
		unk[n] = 1;
		stuck[QP(n,p[n])] = 1;
		follow = EV_UNFENCED
	fi;
	x = 0;
#endif
#if defined(BAD) && !defined(M_FENCE_NO_SCAN)
	if
	:: pend[n] -> follow = EV_APP_ERROR; pend[n] = 0
	:: else
	fi
#endif
}

inline progress(n) {
#if defined(W_PROGRESS_FROM)
	send(n, EV_RX_PROGRESS, ep[n], q[n], rexp[QP(n,p[n])])
#elif defined(M_CACHED_PROGRESS)
	if
	:: cached[n] == 255 -> cached[n] = execd[OTHER(n)]
	:: else
	fi;
	send(n, EV_RX_PROGRESS, ep[n], q[n], cached[n])
#else
	send(n, OWN_PROGRESS(n), ep[n], q[n], SAID(n))
#endif
}

inline ready(n) {
	if
	:: ev == EV_RX_PROGRESS ->
#if defined(W_PROGRESS_FROM)
		x = sbase[QP(n,p[n])] + v;
#elif defined(M_COMPLETE_SENT)
		x = hand[n];
#else
		x = v;
#endif
		assert(x <= hand[n]);          /* (1) the peer executed what was never posted */
		if
		:: x > kex[n] -> kex[n] = x
		:: else
		fi;
		x = 0
	:: else
	fi;
#ifdef M_QUERY_FIRST
	reset_qps(n);
#endif
	arm(n, q[n], ep[n]);
	send(n, EV_RX_READY, ep[n], q[n], 0)
}

/* what the peer may not have got */
inline again(n) {
	if
	:: st[n] == AGREE -> progress(n)
	:: st[n] == SYNC -> progress(n); send(n, EV_RX_READY, ep[n], q[n], 0)
	:: st[n] == RUN -> send(n, EV_RX_READY, ep[n], p[n], 0)
	:: st[n] == SUNK -> send(n, EV_RX_DRAINED, hi[n], q[n], hand[n])
	:: st[n] == HOME -> send(n, EV_RX_DRAINED, hi[n], q[n], hand[n]);
		send(n, EV_RX_HOME_READY, ep[n], 0, 0)
	:: else
	fi
}

inline to_run(n) {
	p[n] = q[n];
#ifdef UNKNOWN
	unk[n] = 0;
#endif
#ifdef BAD
	assert(!genuine[n]);                  /* (8) */
#endif
	gate[n] = 0; err[n] = 0; fenced[n] = 0;
	forget_drain(n);
	assert(kex[n] <= execd[n]);           /* (1)(2) success only if executed */
#ifdef M_COMPLETE_PARTLY
	rep[n] = ((kex[n] + PKTS - 1) / PKTS) * PKTS;
#else
	assert(WHOLE(kex[n]) >= rep[n]);
	rep[n] = WHOLE(kex[n]);               /* complete in order */
#endif
	assert(rep[n] <= execd[n]);           /* (2) */
#ifdef M_RESUME_WHOLE
	sbase[QP(n,q[n])] = WHOLE(kex[n]);
#else
	sbase[QP(n,q[n])] = kex[n];           /* post the rest, from the first packet that is missing */
#endif
	snum[QP(n,q[n])] = hand[n] - sbase[QP(n,q[n])];
	transmit(n, q[n]);
	assert(!(st[OTHER(n)] == RUN && ep[OTHER(n)] == ep[n] && p[OTHER(n)] != p[n]))   /* (7) */
}

inline fail(n) {
#if defined(BRIEF) || defined(ONE_FAULT)
	assert(false);                        /* (6) */
#endif
#ifdef BAD
#ifndef M_FAIL_NO_SCAN
	if
	:: pend[n] -> pend[n] = 0; genuine[n] = 0      /* it is the first error to be shown */
	:: else
	fi;
#endif
	assert(!genuine[n]);                  /* (8) */
#endif
	end_qps(n);
	send(n, EV_RX_GONE, hi[n], 0, 0)
}

inline end_qps(n) {
#ifdef UNKNOWN
	stuck[QP(n,0)] = 0; stuck[QP(n,1)] = 0;
#endif
#ifndef M_FAIL_NO_RESET
	reset_qps(n);
#endif
	failed[n] = 1; gate[n] = 1
}

inline act_on(n) {
	if
	:: action == ACT_NONE
	:: action == ACT_UNPROTECT ->
		if
		:: p[n] != 0 -> fail(n); next = FAIL   /* it has left its default NIC: nothing to go back to */
		:: else -> gate[n] = 0; forget_drain(n); send(n, EV_RX_GONE, hi[n], 0, 0)
		fi
	:: action == ACT_ASK -> ask(n)
	:: action == ACT_NACK ->
		send(n, EV_RX_NACK, e, 0, ((st[n] == FAIL || st[n] == APP || st[n] == OFF) -> 1 : 0))
	:: action == ACT_REACK -> again(n)
	:: action == ACT_JOIN -> join(n)
	:: action == ACT_UNGATE -> q[n] = p[n]; gate[n] = 0; forget_drain(n)
	:: action == ACT_PROGRESS -> progress(n)
	:: action == ACT_READY -> ready(n)
	:: action == ACT_REPLAY -> to_run(n)
	:: action == ACT_KEEP -> kev[n] = ev; ke[n] = e; kt[n] = t; kv[n] = v
	:: action == ACT_DRAIN ->
		q[n] = t;
		forget_drain(n);
#ifndef M_NO_GATE
		gate[n] = 1;
#endif
		if
		:: ev == EV_MOVE ->
			new_epoch(n);
			send(n, EV_RX_REQ_DRAIN, hi[n], t, 0)
		:: else -> hi[n] = e
		fi
	:: action == ACT_DRAINED -> send(n, EV_RX_DRAINED, hi[n], q[n], hand[n])
	:: action == ACT_NOTE_DRAINED ->
		if
		:: RECEIVED(n, v) -> gotdr[n] = 1
		:: else
		fi
	:: action == ACT_HOME ->
		reset_qps(n);
		gate[n] = 1; fenced[n] = 1; gotdr[n] = 0; hprov[n] = 0;
		ep[n] = hi[n];
		arm(n, 0, ep[n]);
		send(n, EV_RX_HOME_READY, ep[n], 0, 0)
	:: action == ACT_NOTE_HOME ->
		if
		:: ev == EV_PROVIDER_HOME -> hprov[n] = 1
		:: else -> hpeer[n] = 1
		fi
	:: action == ACT_RETURN -> to_run(n)
	:: action == ACT_FAIL -> fail(n)
	:: action == ACT_APP ->
		end_qps(n);
#ifdef BAD
		genuine[n] = 0; pend[n] = 0;
#endif
		send(n, EV_RX_GONE, hi[n], 0, 0)
	:: else -> assert(false)              /* an action that the model does not know */
	fi
}

/* ---- one kernel -------------------------------------------------------------------------- */

/* A deadline may run out at any time; with LATE < 9 only LATE times early, then only when nothing else
 * can happen. */
#define DUE (late > 0 || timeout)
#ifdef W_DEADLINE
#define STALLED(n)   (!((st[n] == AGREE || st[n] == SYNC) && SESSION))
#else
#define STALLED(n)   true
#endif
#ifdef M_NO_DEADLINE
#define EXPIRES(n) (((HAS_DEADLINE(st[n]) && st[n] != HOME) || (st[n] == RUN && err[n])) && STALLED(n))
#else
#define EXPIRES(n) ((HAS_DEADLINE(st[n]) || (st[n] == RUN && err[n])) && STALLED(n))
#endif

#ifdef UNORDERED
#define RECEIVE(type) :: SESSION && c[n]??[type] -> c[n]??type(e, t, v); ev = type
#else
#define RECEIVE(type)
#endif

proctype Kernel(byte n) {
	byte ev = NO_EVENT, follow = NO_EVENT, action, next, e, t, v, x;
	short g;
end:	do
	:: atomic {
		if
		/* triggers */
		:: (st[n] == RUN || st[n] == DRAIN || st[n] == SUNK) && USABLE(n) && (err[n] || !up[p[n]]) ->
			ev = EV_FAULT
		:: (st[n] == RUN || st[n] == DRAIN || st[n] == SUNK) && USABLE(n) && spurious > 0 && !err[n] && up[p[n]] ->
			spurious--; ev = EV_FAULT
		:: drains > 0 && st[n] == RUN && p[n] != 0 && up[0] && HEALTHY(n) ->
			drains--; ev = EV_MOVE; t = 0
#ifdef OPERATOR
		:: drains > 0 && st[n] == RUN && p[n] == 0 && up[1] && HEALTHY(n) ->
			drains--; ev = EV_MOVE; t = 1
#endif
		/* local steps */
		:: (st[n] == DRAIN && HEALTHY(n) && rep[n] == hand[n]) || (st[n] == SUNK && gotdr[n]) ->
			ev = EV_LEDGER_EMPTY
		:: st[n] == HOME && !hprov[n] && COMES(n) && !LOCKED(n) ->
			ev = EV_PROVIDER_HOME
#ifdef PROVIDER
			; homed[n] = mid[n]
#endif
		:: EXPIRES(n) && DUE ->
			ev = EV_DEADLINE;
			if
			:: LATE < 9 && late > 0 -> late--
			:: else
			fi
		/* the application's end */
#ifdef BAD
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
#ifdef RESTARTS
		:: news[n] && SESSION -> news[n] = 0; ev = EV_UNPAIRED
#endif
#ifdef RESENDS
		:: resends > 0 && (st[n] == AGREE || st[n] == SYNC) -> resends--; again(n)
		:: resends > 0 && st[n] == ASKED -> resends--; send(n, EV_RX_REQ, hi[n], q[n], 0)
#endif
		/* messages */
#ifdef UNORDERED
		RECEIVE(EV_RX_REQ)
		RECEIVE(EV_RX_REQ_DRAIN)
		RECEIVE(EV_RX_ACK)
		RECEIVE(EV_RX_NACK)
		RECEIVE(EV_RX_PROGRESS)
		RECEIVE(EV_RX_UNKNOWN)
		RECEIVE(EV_RX_READY)
		RECEIVE(EV_RX_DRAINED)
		RECEIVE(EV_RX_HOME_READY)
		RECEIVE(EV_RX_GONE)
#else
		:: SESSION && nempty(c[n]) -> c[n]?ev,e,t,v
#endif
		fi;
#if defined(RESTARTS) && !defined(M_NO_COOKIE)
		if
		:: deaf[n] -> ev = NO_EVENT    /* not for a QP of this life */
		:: else
		fi;
#endif
		do
		:: ev != NO_EVENT ->
#ifdef W_EPOCH
			if
			:: ev == EV_RX_REQ && st[n] == ASKED && e == hi[n] && n == 0 -> t = q[n]   /* lower cookie picks */
			:: else
			fi;
#endif
			g = GUARDS(n, ev, e, v);
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
		action = 0; next = 0; e = 0; t = 0; v = 0; x = 0; g = 0 }
	od
}

#include "world.pml"
