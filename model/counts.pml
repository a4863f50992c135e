/* SPDX-License-Identifier: GPL-2.0
 *
 * QPs and the record of work as counts of packets: the responder's truth is what
 * PROGRESS tells.  lives.pml has them as the code does.
 */

/* ledger of the direction whose requester is node d, in packets */
byte hand[2];           /* ever handed to a NIC */
byte kex[2];            /* known EXECUTED */
byte rep[2];            /* reported as success: whole operations */
byte execd[2];          /* truth: executed at the responder, in order */
#define WHOLE(x)  (((x) / PKTS) * PKTS)

byte sbase[2*NP];       /* requester: ledger index of PSN 0 */
#ifdef RESTARTS
#define SAID(n) (deaf[n] -> 0 : execd[OTHER(n)])
#else
#define SAID(n) execd[OTHER(n)]
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


#define UP(i)     up[i]
#define NICS      NP
#define NOPS(d)   ((d) == 0 -> NA*PKTS : NB*PKTS)
#if NP == 2
#define SESSION   (up[0] || up[1])
#define OTHERUP(n) (up[1-p[n]])
#else
#define SESSION   (up[0] || up[1] || up[2])
#define OTHERUP(n) ((p[n] != 0 && up[0]) || (p[n] != 1 && up[1]) || (p[n] != 2 && up[2]))
#endif
#define IDLE(n)   (hand[n] == kex[n])
#define DRAINED(n) (rep[n] == hand[n])
#define DONE(n)   (rep[n] == NOPS(n))

#ifdef W_NO_SAME_PATH
#define AGAIN(n) (st[n] != RUN && up[p[n]] && !HEALTHY(n))
#else
#define AGAIN(n) (up[p[n]] && !HEALTHY(n))     /* its own path, with fresh QPs */
#endif
#define USABLE(n) (asks > 0 && (OTHERUP(n) || AGAIN(n)))
#define CAN_MOVE(n) (asks > 0 && OTHERUP(n))
#define ASKABLE(n,t) (up[t] && ((t) != p[n] || (AGAIN(n) && (st[n] != RUN || !OTHERUP(n)))))

/* what lives.pml has */
#define BROKEN(n) false
#define FITS(n)   false
#define AWAITED(n) false
#define HEARS_RESTART(n) true
#define OWN(n) (p[n] == 0 && !err[n])
#define show_own(n) skip
#define begin_switch(n) skip
#define look_once(n) skip
#define forget_asks(n) skip
#define forget(n) held[n] = 0; moving[n] = 0

/* ---- actions ----------------------------------------------------------------------------- */

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

inline choose(n) {
	if
	:: ASKABLE(n, 0) -> q[n] = 0
	:: ASKABLE(n, 1) -> q[n] = 1
#if NP > 2
	:: ASKABLE(n, 2) -> q[n] = 2
#endif
	fi
}

inline arm(n, i, e, x) {
#ifdef UNKNOWN
	stuck[QP(n,i)] = 0;
#endif
#ifdef BAD
	nak[QP(n,i)] = 0;
#endif
	live[QP(n,i)] = 1; gen[QP(n,i)] = e; rexp[QP(n,i)] = 0;
	sbase[QP(n,i)] = 0; snum[QP(n,i)] = 0; ssent[QP(n,i)] = 0; sack[QP(n,i)] = 0
}

/* stop them all; what follows at once is FENCED, UNFENCED or the application's error */
inline fence(n) {
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
	arm(n, q[n], ep[n], 0);
	send(n, EV_RX_READY, ep[n], q[n], 0)
}

/* both ends are ready on q[n]: complete what was executed, post the rest */
inline open(n) {
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
	transmit(n, q[n])
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

/* ---- NICs and applications --------------------------------------------------------------- */

#define S QP(d,i)
#define R QP(1-d,i)
#ifdef M_NO_NEW_PSN
#define SAME_PSN true
#else
#define SAME_PSN (gen[R] == gen[S])
#endif
#define OPEN(d)  (!gate[d] && !held[d] && (st[d] == RUN || st[d] == ASKED || st[d] == OFF))
#ifdef BAD
#define IS_BAD(d,x) ((d) == 0 && (x) / PKTS == BAD)
#else
#define IS_BAD(d,x) false
#endif

inline post(d, i) {
	printf("%c: posts %d on path %d\n", 65+d, hand[d], i);
	assert(!failed[d]);                   /* (4) */
	hand[d] = hand[d] + PKTS; snum[S] = snum[S] + PKTS;
	transmit(d, i)
}

/* the requester of direction d on path i, and the responder at the other end */
proctype Nic(byte d; byte i) {
end:	do
	/* the application posts (posting while gated is the same as posting after it) */
	:: atomic { live[S] && p[d] == i && OPEN(d) && hand[d] < NOPS(d) -> post(d, i) }
	/* deliver and execute; a packet in flight may arrive at any time */
	:: d_step { EXECUTES(R) && SAME_PSN && rexp[R] < ssent[S] && !IS_BAD(d, sbase[S]+rexp[R]) ->
		printf("%c: responder executes %d from path %d\n", 65+1-d, sbase[S]+rexp[R], i);
		assert(!failed[1-d]);         /* (4) */
#ifdef STRICT4
		assert(!failed[d]);           /* nor after the requester was shown the error */
#endif
		assert(sbase[S] + rexp[R] == execd[d]);   /* (1)(3) once, in order */
		rexp[R]++; execd[d]++ }
#ifdef BAD
	/* the operation is wrong in itself (a bad key): refused, not executed */
	:: d_step { EXECUTES(R) && SAME_PSN && rexp[R] < ssent[S] && IS_BAD(d, sbase[S]+rexp[R]) && !nak[S] ->
		nak[S] = 1 }
	:: d_step { live[S] && nak[S] && gen[R] == gen[S] ->
		printf("%c: the application's own error CQE, path %d\n", 65+d, i);
		live[S] = 0; nak[S] = 0;
		genuine[d] = 1;
#ifdef M_SWALLOW_APP
		err[d] = 1
#else
		pend[d] = 1
#endif
		}
#endif
	/* acknowledgement; the last one of an operation: success CQE */
	:: d_step { live[S] && gen[R] == gen[S] && sack[S] < rexp[R] ->
		assert(!failed[d]);
		sack[S]++;
		if
		:: (sbase[S] + sack[S]) % PKTS == 0 ->
			printf("%c: success CQE %d from path %d\n", 65+d, (sbase[S]+sack[S]) / PKTS - 1, i);
			assert(sbase[S] + sack[S] == rep[d] + PKTS);   /* (2) each once, in order */
			rep[d] = rep[d] + PKTS;
			kex[d] = (rep[d] > kex[d] -> rep[d] : kex[d])
		:: else
		fi }
	/* retries exhausted */
	:: d_step { live[S] && sack[S] < snum[S] &&
#ifdef BRIEF
		EXHAUSTS(d) && (!EXECUTES(R) || gen[R] != gen[S]) ->
#else
		(!up[i] || !EXECUTES(R) || gen[R] != gen[S]) ->
#endif
		printf("%c: retries exhausted on path %d\n", 65+d, i);
		live[S] = 0;
		if
		:: p[d] == i && st[d] == OFF -> failed[d] = 1      /* not protected: shown */
		:: p[d] == i && st[d] != OFF -> err[d] = 1
		:: else
		fi }
	od
}
