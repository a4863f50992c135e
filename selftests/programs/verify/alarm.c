// SPDX-License-Identifier: GPL-2.0
/* Signals that end the system calls of the thread that posts. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include "verify.h"

/* Another thread is about to be started, which is to get none; or it was started. */
void alarm_block(bool block)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void rings(int number)
{
	(void)number;
}

/* One each @us; 0: no more. */
void alarm_every(unsigned int us)
{
	struct itimerval every = { { 0, us }, { 0, us } };
	struct sigaction action = { .sa_handler = rings };	/* without SA_RESTART */

	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &every, NULL))
		die(EXIT_SETUP, "alarm");
}
