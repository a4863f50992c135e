/* SPDX-License-Identifier: GPL-2.0
 *
 * QPs and the record of work as the code has them.  Path 0 is the application's own QP;
 * path 1 the backup; path 2 the way home, through the NIC of path 0.  Paths 1 and 2 have proxy
 * QPs: each is connected once.  The application's own QP was fenced when it left; a failover from
 * path 2 to target 3 (BACK) is its handback, if its provider can rebase its rings.
 * The record of operations is kmod/pure/ledger.c itself (record.h).
 */

#define UP(i)     up[(i) & 1]
#define NICS      2
#define SESSION   (up[0] || up[1])
#define NOPS(d)   ((d) == 0 -> NA : NB)

/* QPs, as live[] and others below; path 0 has the number 0 at both ends */
byte num[2*NP];         /* QPN */
byte dest[2*NP];        /* the peer's */
bool armed[2*NP];       /* connected, and not fenced since */
byte spare[2*NP];       /* QPN of one that was never connected; 0: there is none */
byte made[2];           /* QPNs given out */
byte here[2];           /* our QPN in the failover that was joined last */
byte act[2];            /* path of the QP in use */
bool away[2];           /* the application's own QP was fenced */
byte asked[2];          /* REQs of this failover */
bool lost[2];           /* the peer's QP is gone */
#if BACKS > 0
byte backs = BACKS;
#endif
bool back[2];           /* the next ask is for the application's own QP */
bool stale[2];          /* that one's rings were not begun anew since it was fenced */
bool wants[2];          /* the provider may begin them */
bool owned[2];          /* its own QP is connected, and the failover not over */

/* lives by their epoch, 0 is the application's first one; counts in packets */
byte hearde[2], heardn[2];		/* last one that executed anything; how much */
byte sente[2], sentn[2];		/* where operations went; how much was completed */
byte sentp[2];				/* its path */
bool sentany[2];			/* their end is not known */

/* record of the direction whose requester is node d */
byte tail[2], post[2], head[2];
byte est[2*OPS], edone[2*OPS];	/* state of an operation; packets known to be executed */
byte from[2*OPS];		/* 1 + its first packet in this arming; 0: it is not in it */
/* truth at the responder: packets of an operation, and that it was executed */
byte texec[2*OPS];
bool tdone[2*OPS];
bool answered[2*OPS];		/* its answer came: READs and atomics need it */
byte recvs[2];			/* receives completed at node n */

/* what record.h finds wrong */
#define RECORD_TWICE 1
#define RECORD_EARLY 2
#define RECORD_DISORDER 3
#define RECORD_WRONG_RECEIVE 4
#define RECORD_ANSWER_LOST 5

c_code {
\#define RECORD_KINDS KINDS
\#define RECORD_PKTS PKTS
\#define RECORD_OPS OPS
\#define RECORD_QP(n, i) ((n) * NP + (i))
#if defined(M_RESUME_EARLY)
\#define RECORD_SKEW -1
#elif defined(M_RESUME_LATE)
\#define RECORD_SKEW 1
#else
\#define RECORD_SKEW 0
#endif
#if defined(M_ANSWERS)
\#define RECORD_BLIND SHIFT_ENTRY_AGAIN | SHIFT_ENTRY_ONCE
#elif defined(M_RESUME_SEND)
\#define RECORD_BLIND SHIFT_ENTRY_WHOLE
#else
\#define RECORD_BLIND 0
#endif
#ifdef M_RECV_LOST
\#define RECORD_RECV_LOST true
#else
\#define RECORD_RECV_LOST false
#endif
\#include "record.h"
};

#ifdef GHOST
byte ghosts = GHOST;
byte ghost[2];          /* QPN of a QP that was reset while a completion was on its way */
#endif
#ifdef ERRORS
bool perr[2];           /* the active QP's error is to be looked at ... */
bool gerr[2];           /* ... and is the application's own */
#define BROKEN(n) gerr[n]
#else
#define BROKEN(n) false
#endif
#ifdef UNKNOWN
byte unknown = UNKNOWN;
bool unk[2];
#define OWN_PROGRESS(n) (unk[n] -> EV_RX_UNKNOWN : EV_RX_PROGRESS)
#else
#define OWN_PROGRESS(n) EV_RX_PROGRESS
#endif

/* SENT */
#if OPS == 1
#define SENT(n)   (est[n] == 1)
#elif OPS == 2
#define SENT(n)   (est[2*(n)] == 1 || est[2*(n)+1] == 1)
#else
#define SENT(n)   (est[3*(n)] == 1 || est[3*(n)+1] == 1 || est[3*(n)+2] == 1)
#endif
#define IDLE(n)   (!sentany[n] || (sentp[n] != 0 && !SENT(n)))
#define DRAINED(n) (tail[n] == head[n])
#define DONE(n)   (tail[n] == NOPS(n))

/* as shift_path_choose(): away from its path; the next REQ of a failover asks for the other one */
#define HOMEUP(n) ((p[n] != 0 || away[n] || owned[n]) && UP(2))
#define AWAY(i)   ((i) == 1 -> 2 : 1)
#define NEXT(n)   (q[n] == BACK && st[n] != RUN -> 2 : (asked[n] > 0 -> AWAY(q[n]) : AWAY(p[n])))
#define CHOICE(n) (HOMEUP(n) && UP(1) -> NEXT(n) : (HOMEUP(n) -> 2 : (UP(1) -> 1 : 0)))
#define USABLE(n) (asks > 0 && asked[n] < 3 && !lost[n] && CHOICE(n) != 0)
#define HEARS_RESTART(n) (p[n] == 0)
#define OWN(n)    (p[n] == 0 && !away[n] && !err[n])
#define CAN_MOVE(n) (UP((p[n] == 1 -> 2 : 1)) && USABLE(n))
/* as shift_own_able(): home, with a way out on either side */
#define FITS(n)   (p[n] == 2 && UP(1) && UP(2) && HEALTHY(n))
/* the peer's READY waits for the provider, and so does ours */
#define AWAITED(n) (st[n] == SYNC && q[n] == BACK && !owned[n])
#ifdef M_BACK_UNSETTLED
#define READY_FOR(n) true
#else
#define READY_FOR(n) DRAINED(n)
#endif
#define look_once(n) c_code { PKernel->once = record_once(PKernel->n, now.p[PKernel->n]); }
#define begin_switch(n) wants[n] = 0; owned[n] = 0
#define forget_asks(n) asked[n] = 0; back[n] = 0
#define forget(n) begin_switch(n); forget_asks(n); held[n] = 0; moving[n] = 0

/* ---- actions ----------------------------------------------------------------------------- */

#define reset_qp(n, i) live[QP(n,i)] = 0; armed[QP(n,i)] = 0; snum[QP(n,i)] = 0; sack[QP(n,i)] = 0

inline reset_qps(n) { reset_qp(n, 0); reset_qp(n, 1); reset_qp(n, 2) }

inline transmit(n, i) {
	if
	:: live[QP(n,i)] && UP(i) -> ssent[QP(n,i)] = snum[QP(n,i)]
	:: else
	fi
}

inline prepare(node, path) {
	if
	:: spare[QP(node,path)] == 0 -> made[node]++; spare[QP(node,path)] = made[node]
	:: else
	fi
}

inline choose(n) {
	if
	:: back[n] -> q[n] = BACK; back[n] = 0
	:: !back[n] && q[n] == BACK && held[n] ->
		/* the handback has failed: as after a fault, no end settles */
		asked[n] = 0; moving[n] = 0;
		q[n] = CHOICE(n);
		prepare(n, q[n])
	:: else ->
		q[n] = CHOICE(n);
		prepare(n, q[n])
	fi;
	asked[n]++
}

/* a QP is stopped: an arming in which nothing was executed does not hide the one before */
inline stop(n, i) {
#ifdef GHOST
	if
	:: i != 0 && ghosts > 0 && sack[QP(n,i)] < snum[QP(n,i)] && sack[QP(n,i)] < rexp[QP(OTHER(n),i)] ->
		ghosts--; ghost[n] = num[QP(n,i)]
	:: true
	fi;
#endif
	reset_qp(n, i);
	if
#ifndef M_EMPTY_LIFE
	:: rexp[QP(n,i)] == 0 && gen[QP(n,i)] != hearde[n]
#endif
	:: else -> hearde[n] = gen[QP(n,i)]; heardn[n] = rexp[QP(n,i)]
	fi;
	c_code { record_recv_rewind(PKernel->n); };
#ifdef ERRORS
	gerr[n] = 0
#endif
}

inline fence(n) {
	follow = EV_FENCED;
	x = away[n] || gen[QP(n,0)] != 0;      /* something was fenced before */
	if
	:: q[n] == BACK -> here[n] = 0; held[n] = 1
	:: else -> prepare(n, q[n]); here[n] = spare[QP(n,q[n])]
	fi;
	if
	:: !away[n] ->
		stop(n, 0);
		away[n] = 1; stale[n] = 1;
#ifdef M_BACK_LIFE
		sente[n] = 0;
#else
		sente[n] = gen[QP(n,0)];
#endif
		sentp[n] = 0; sentany[n] = (head[n] > tail[n])
#ifdef UNKNOWN
	:: !away[n] && unknown > 0 ->         /* a CQ is being resized: it is not even stopped */
		unknown--;
		follow = EV_UNFENCED
#endif
	:: away[n] && act[n] != 0 && armed[QP(n,act[n])] -> stop(n, act[n])
#ifdef UNKNOWN
	:: away[n] && act[n] != 0 && armed[QP(n,act[n])] && unknown > 0 ->
		unknown--;                    /* the NIC cannot be asked */
		reset_qp(n, act[n]);
		follow = EV_UNFENCED
#endif
	:: away[n] && (act[n] == 0 || !armed[QP(n,act[n])])
	fi
#ifdef UNKNOWN
	;
	if
	:: follow == EV_UNFENCED -> unk[n] = 1
#ifdef W_UNKNOWN
	:: else -> unk[n] = 0
#else
	:: follow != EV_UNFENCED && !x -> unk[n] = 0
	:: follow != EV_UNFENCED && x && unk[n] -> follow = EV_UNFENCED	/* until the next RUN */
	:: follow != EV_UNFENCED && x && !unk[n]
#endif
	fi
#endif
	;
	x = 0
#ifdef ERRORS
	;
	if
	:: pend[n] -> follow = EV_APP_ERROR; pend[n] = 0
	:: else
	fi
#endif
}

inline progress(n) {
	assert(hearde[n] < 16 && heardn[n] < 16 && here[n] < 64);
	send(n, OWN_PROGRESS(n), ep[n], q[n] + 4*here[n], 16*hearde[n] + heardn[n])
}

/* the QP that is connected to number x of the peer's */
inline arm(n, i, e, x) {
	prepare(n, i);
	num[QP(n,i)] = spare[QP(n,i)];
#ifndef M_SPARE_TWICE
	spare[QP(n,i)] = 0;
#endif
	dest[QP(n,i)] = x; gen[QP(n,i)] = e; rexp[QP(n,i)] = 0;
	snum[QP(n,i)] = 0; ssent[QP(n,i)] = 0; sack[QP(n,i)] = 0;
	live[QP(n,i)] = 1; armed[QP(n,i)] = 1;
#ifdef ERRORS
	nak[QP(n,i)] = 0;
#endif
	act[n] = i
}

#ifdef PROVIDER
#define begin_rings(n) wants[n] = 0; stale[n] = 0; begun[n] = mid[n]
#else
#define begin_rings(n) wants[n] = 0; stale[n] = 0
#endif

/* The application's own QP to the peer's: from here on its fence is that of path 0. */
inline connect(n) {
	owned[n] = 1; p[n] = 0; act[n] = 0;
#ifndef M_BACK_UNFENCED
	away[n] = 0;
#endif
	gen[QP(n,0)] = ep[n]; rexp[QP(n,0)] = 0;
	snum[QP(n,0)] = 0; ssent[QP(n,0)] = 0; sack[QP(n,0)] = 0;
	live[QP(n,0)] = 1; armed[QP(n,0)] = 1;
#ifdef ERRORS
	nak[QP(n,0)] = 0;
#endif
	send(n, EV_RX_READY, ep[n], q[n], 0)
}

inline ready(n) {
	x = 255;                              /* nothing is known */
	if
	:: ev == EV_RX_PROGRESS && sentany[n] ->
		if
#ifdef M_ANY_LIFE
		:: v % 16 >= sentn[n] -> x = v % 16 - sentn[n]
		:: v % 16 < sentn[n] -> x = 0
#else
		:: v / 16 == sente[n] ->
			assert(v % 16 >= sentn[n]);   /* (1) less than what was completed */
			x = v % 16 - sentn[n]
		:: v / 16 != sente[n] ->
			assert(v / 16 < sente[n]);    /* (1) a later arming than that of its work */
			x = 0
#endif
		fi
	:: else
	fi;
	c_code { PKernel->x = record_progress(PKernel->n, PKernel->x == 255 ? -1 : PKernel->x); };
	assert(x != RECORD_TWICE);        /* (1) the peer executed what was never posted */
	if
	:: x == RECORD_ANSWER_LOST -> follow = EV_FAIL
#ifndef M_UNSTOPPED
	:: x != RECORD_ANSWER_LOST && !away[n] -> follow = EV_FAIL
#endif
	:: else ->
		sentany[n] = 0;
		if
		:: q[n] == BACK ->
			c_code { PKernel->x = record_deliver(PKernel->n, record_load(PKernel->n)); };
			assert(x == 0);       /* (2) success only if executed */
			wants[n] = 1;
#ifdef M_BACK_NO_PROVIDER
			if
			:: READY_FOR(n) -> connect(n)
			:: else
			fi
#endif
		:: else ->
			arm(n, q[n], ep[n], t / 4);
			send(n, EV_RX_READY, ep[n], q[n], 0)
		fi
	fi;
	x = 0
}

inline open(n) {
	hearde[n] = gen[QP(n,p[n])]; heardn[n] = 0;   /* the peer knows all that was before */
	sente[n] = ep[n]; sentn[n] = 0; sentp[n] = p[n]; sentany[n] = (p[n] != 0);
	asked[n] = 0;
#ifndef M_BACK_NO_PROVIDER
	begin_switch(n);
#endif
	c_code { PKernel->x = record_open(PKernel->n, now.p[PKernel->n]); };
	assert(x == 0);                       /* (2) success only if executed */
	assert(p[n] != 0 || DRAINED(n));      /* (1) the record ends here */
	x = 0;
#if defined(ERRORS) && !defined(M_ERROR_FORGOTTEN)
	perr[n] = gerr[n];                    /* it may have come before */
#endif
	transmit(n, p[n])
}

/* the active QP's error is the first one to be shown */
inline show_own(n) {
#ifdef ERRORS
#ifdef M_FAIL_STATUS
	assert(ev != EV_DEADLINE || !gerr[n]);        /* (8) */
#endif
	gerr[n] = 0
#else
	skip
#endif
}

inline end_qps(n) {
	reset_qps(n);
	forget(n);
	failed[n] = 1; gate[n] = 1
}

#ifdef ATHOME
/* Begin as one that was moved away and home, with nothing outstanding. */
inline come_home(n) {
	ep[n] = 2; hi[n] = 2; p[n] = 2; q[n] = 2; away[n] = 1; stale[n] = 1;
	arm(n, 2, 2, 1);
	hearde[n] = 2; sente[n] = 2; sentp[n] = 2; sentany[n] = 1;
	prepare(n, 1)
}
#endif

/* ---- NICs and applications --------------------------------------------------------------- */

#define S QP(d,i)
#define R QP(1-d,i)
#define CONNECTED (dest[S] == num[R] && dest[R] == num[S] && gen[R] == gen[S])
#define OPEN(d)   (!gate[d] && !held[d] && (st[d] == RUN || st[d] == ASKED || st[d] == OFF))
#ifdef BAD
#define IS_BAD    (d == 0 && x == BAD)          /* x: the operation */
#else
#define IS_BAD    false
#endif
#ifdef BADR
#define IS_BADR   (d == 0 && x == BADR)
#else
#define IS_BADR   false
#endif
#ifdef ERRORS
#define REFUSED   nak[S]
#else
#define REFUSED   false
#endif

/* the application's own error, at node n */
inline own_error(n) {
	live[QP(n,i)] = 0;
	if
	:: i == 0 -> genuine[n] = 1; pend[n] = 1
	:: i != 0 -> gerr[n] = 1; perr[n] = 1
	fi
}

inline post_next(d) {
	printf("%c: posts %d on path %d\n", 65+d, head[d], p[d]);
	assert(!failed[d]);                   /* (4) */
	assert(p[d] != 0 || !stale[d]);       /* (10) */
	c_code { record_post(PNic->d, now.p[PNic->d]); };
	transmit(d, p[d])
}

proctype Nic(byte d; byte i) {
	byte x;
end:	do
#ifdef PROVIDER
	/* a thread that posts reads the ring's index under the provider's lock; it may be preempted there */
	:: atomic { !mid[d] && live[S] && p[d] == i && OPEN(d) && head[d] < NOPS(d) -> mid[d] = 1 }
	:: atomic { mid[d] && i == 0 ->
		assert(!begun[d]);            /* (10) */
		mid[d] = 0;
		if
		:: live[QP(d,p[d])] && OPEN(d) -> post_next(d)
		:: else               /* the doorbell is kept: the same as posting later */
		fi }
#else
	/* the application posts (posting while gated is the same as posting after it) */
	:: atomic { live[S] && p[d] == i && OPEN(d) && head[d] < NOPS(d) -> post_next(d) }
#endif
	/* deliver and execute; a packet in flight may arrive at any time */
	:: d_step { live[R] && CONNECTED && rexp[R] < ssent[S] && !REFUSED ->
		c_code { PNic->x = record_next(PNic->d, PNic->i); };
		if
#ifdef ERRORS
		:: IS_BAD -> nak[S] = 1       /* wrong in itself (a bad key): refused, not executed */
		:: IS_BADR ->                 /* the receive is: both ends have an error of their own */
			printf("%c: a bad receive, path %d\n", 65+1-d, i);
			nak[S] = 1;
			own_error((1-d))
#endif
		:: else ->
			printf("%c: responder executes a packet of %d from path %d\n", 65+1-d, x, i);
			assert(!failed[1-d]);         /* (4) */
			c_code { PNic->x = record_truth(PNic->d, PNic->i); };
			assert(x != RECORD_TWICE);            /* (1) */
			assert(x != RECORD_DISORDER);         /* (3) */
			assert(x != RECORD_WRONG_RECEIVE)     /* (3) */
		fi;
		x = 0 }
#ifdef ERRORS
	:: d_step { live[S] && nak[S] && CONNECTED ->
		printf("%c: the application's own error CQE, path %d\n", 65+d, i);
		nak[S] = 0;
		own_error(d) }
#endif
	/* acknowledgement; the last one of an operation: success CQE */
	:: d_step { live[S] && CONNECTED && sack[S] < rexp[R] ->
		assert(!failed[d]);
		sack[S]++;
		c_code { PNic->x = record_acked(PNic->d, PNic->i); };
		assert(x == 0);               /* (2) */
		transmit(d, i) }
#ifdef GHOST
	/* the completion of a QP that was reset */
	:: d_step { ghost[d] != 0 && i == act[d] ->
		if
		:: armed[S] && num[S] == ghost[d] ->
			printf("%c: late completion of QP %d\n", 65+d, ghost[d]);
			c_code { PNic->x = record_complete(PNic->d, PNic->i); };
			assert(x == 0)        /* (2) */
		:: else
		fi;
		ghost[d] = 0 }
#endif
	/* retries exhausted */
	:: d_step { live[S] && sack[S] < snum[S] && EXHAUSTS(d) && (
#ifndef BRIEF
		!UP(i) ||
#endif
		!live[R] || !CONNECTED) ->
		printf("%c: retries exhausted on path %d\n", 65+d, i);
		live[S] = 0;
		if
		:: p[d] == i && st[d] == OFF -> failed[d] = 1      /* not protected: shown */
		:: p[d] == i && st[d] != OFF -> err[d] = 1
		:: else
		fi }
	od
}
