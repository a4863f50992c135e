/* SPDX-License-Identifier: GPL-2.0
 *
 * What the kernels of switch.pml live in: paths, restarts, and a session that may
 * lose messages.
 */

#if (defined(BRIEF) && !defined(OUTAGE)) || defined(ONE_FAULT)
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
		transmit(0, i); transmit(1, i);
#ifdef LIVES
		if
		:: i == 0 -> transmit(0, 2); transmit(1, 2)
		:: else
		fi
#endif
		}
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
		forget(n);
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
		assert(DONE(0) || failed[0]);
		assert(DONE(1) || failed[1]);
#if defined(ERRORS) && defined(LIVES)
		assert((!gerr[0] || failed[0]) && (!gerr[1] || failed[1]))      /* (8) */
#endif
		}
}

init {
	atomic {
		byte i;
		for (i : 0 .. NICS-1) { up[i] = 1 }
#ifdef ATHOME
		come_home(0); come_home(1);
#endif
		for (i : 0 .. 1) { st[i] = RUN;
#ifndef ATHOME
			live[QP(i,0)] = 1;
#ifdef LIVES
			armed[QP(i,0)] = 1;
			prepare(i, 1);
#endif
#endif
#ifdef PROVIDER
			if
			:: asleep[i] = 1
			:: skip
			fi
#endif
		}
		i = 0;
#if LEAD > 0
		hi[1] = LEAD;
#endif
		run Kernel(0); run Kernel(1);
		for (i : 0 .. NP-1) { run Nic(0, i);
#if NB > 0
			run Nic(1, i);
#endif
		}
		for (i : 0 .. NICS-1) { run Path(i) }
#ifdef LOSS
		run Loss(0); run Loss(1);
#endif
#ifdef RESTARTS
		run Restart(0); run Restart(1);
#endif
		run Watch()
	}
}
