/* SPDX-License-Identifier: GPL-2.0
 *
 * What the kernels of switch.pml live in: NICs, paths, applications, providers,
 * and a session that may lose messages.
 */

#define S QP(d,i)
#define R QP(1-d,i)
#ifdef M_NO_NEW_PSN
#define SAME_PSN true
#else
#define SAME_PSN (gen[R] == gen[S])
#endif
#ifdef M_NO_GATE
#define OPEN(d)  (st[d] == RUN || st[d] == ASKED || st[d] == OFF || st[d] == DRAIN || st[d] == SUNK)
#else
#define OPEN(d)  (!gate[d] && (st[d] == RUN || st[d] == ASKED || st[d] == OFF))
#endif
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
#ifdef PROVIDER
	/* a thread that posts reads the ring's index under the provider's lock; it may be preempted there */
	:: atomic { !mid[d] && live[S] && p[d] == i && OPEN(d) && hand[d] < NOPS(d) -> mid[d] = 1 }
	:: atomic { mid[d] && p[d] == i ->
		assert(!homed[d]);            /* (10) */
		mid[d] = 0;
		if
		:: live[S] && OPEN(d) -> post(d, i)
		:: else               /* the doorbell is kept: the same as posting later */
		fi }
#else
	/* the application posts (posting while gated is the same as posting after it) */
	:: atomic { live[S] && p[d] == i && OPEN(d) && hand[d] < NOPS(d) -> post(d, i) }
#endif
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
		(!EXECUTES(R) || gen[R] != gen[S]) ->
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

#if defined(BRIEF) || defined(ONE_FAULT)
#define BREAKABLE(i) (i == 0)
#else
#define BREAKABLE(i) true
#endif

proctype Path(byte i) {
end:	do
	:: atomic { up[i] && faults > 0 && BREAKABLE(i) -> faults--; up[i] = 0; printf("path %d down\n", i);
		if
		:: will[i] = 1
#ifndef BRIEF
		:: will[i] = 0
#endif
		fi }
	:: atomic { !up[i] && will[i] -> up[i] = 1; will[i] = 0; printf("path %d up\n", i);
		transmit(0, i); transmit(1, i) }
	od
}

#ifdef LOSS
byte loss = LOSS;
proctype Loss(byte n) {
	byte ev, e, t, v;
end:	do
	:: atomic { loss > 0 && nempty(c[n]) -> c[n]?ev,e,t,v; loss--;
		printf("the session lost a message to %c (epoch %d)\n", 65+n, e); ev = 0; e = 0; t = 0; v = 0 }
	od
}
#endif

#ifdef RESTARTS
/* A node comes up anew: it knows nothing, its QPs and its application are gone. */
proctype Restart(byte n) {
	byte ev, e, t, v;
end:	do
	:: atomic { restarts > 0 && !deaf[n] ->
		restarts--;
		printf("%c restarts\n", 65+n);
		reset_qps(n);
		do
		:: nempty(c[n]) -> c[n]?ev,e,t,v
		:: empty(c[n]) -> break
		od;
		kev[n] = NO_EVENT; ke[n] = 0; kt[n] = 0; kv[n] = 0;
		ep[n] = 0; hi[n] = 0; p[n] = 0; q[n] = 0; err[n] = 0; fenced[n] = 0;
		forget_drain(n);
		failed[n] = 1; gate[n] = 1; deaf[n] = 1; news[1-n] = 1;
		ev = 0; e = 0; t = 0; v = 0;
#ifdef M_NO_COOKIE
		st[n] = RUN                   /* another QP answers for the old one */
#else
		st[n] = OFF
#endif
		}
	od
}
#endif

#define SETTLED(n) (st[n] == RUN || st[n] == OFF || st[n] == FAIL || st[n] == APP)

proctype Watch() {
	/* (5) nothing can happen any more: all done, or an error was shown */
	atomic { timeout && !EXPIRES(0) && !EXPIRES(1) ->
		assert(SETTLED(0) && SETTLED(1));
		assert(rep[0] == NA*PKTS || failed[0]);
		assert(rep[1] == NB*PKTS || failed[1]) }
}

init {
	atomic {
		byte i;
		for (i : 0 .. NP-1) { up[i] = 1 }
		for (i : 0 .. 1) { st[i] = RUN; live[QP(i,0)] = 1;
#ifdef PROVIDER
			if
			:: asleep[i] = 1
			:: skip
			fi
#endif
		}
		i = 0;
		run Kernel(0); run Kernel(1);
		for (i : 0 .. NP-1) { run Nic(0, i);
#if NB > 0
			run Nic(1, i);
#endif
			run Path(i) }
#ifdef LOSS
		run Loss(0); run Loss(1);
#endif
#ifdef RESTARTS
		run Restart(0); run Restart(1);
#endif
		run Watch()
	}
}
