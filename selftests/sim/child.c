// SPDX-License-Identifier: GPL-2.0
/* A child process runs some seeds one after the other; it ends when one fails. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child.h"

#define RUN_SECONDS	60		/* of CPU time: no run takes so long, but one that spins */

/* there in a build that counts lines */
void __gcov_dump(void) __attribute__((weak));

bool sim_loud;
static struct report *own;

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0:abort_on_error=0:exitcode=66:detect_stack_use_after_return=0";
}

static void leave(int code) __attribute__((noreturn));
static void leave(int code)
{
	fflush(stdout);
	if (__gcov_dump)
		__gcov_dump();
	_exit(code);
}

static void note_upsets(void)
{
	const u32 *made;

	own->n_made = sim_upsets_made(&made);
	if (own->n_made > KEEP_MAX)
		own->n_made = KEEP_MAX;
	memcpy(own->made, made, own->n_made * sizeof(*made));
}

void sim_failed(const char *message)
{
	snprintf(own->message, sizeof(own->message), "%s", message);
	note_upsets();
	if (sim_tracing)
		printf("%10.6f FAILED: %s\n", sim_now / 1e9, message);
	leave(1);
}

static void died(int sig)
{
	note_upsets();
	_exit(66);
}

void *shared_new(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

struct report *report_new(void)
{
	return shared_new(sizeof(struct report));
}

/* Run @n seeds from @seed on. */
pid_t child_start(struct report *report, u64 seed, u64 n, bool trace)
{
	static const struct itimerval most = { .it_value.tv_sec = RUN_SECONDS };
	static const int signals[] = { SIGABRT, SIGSEGV, SIGVTALRM };
	pid_t pid;
	u32 i;

	fflush(stdout);
	report->message[0] = 0;
	report->n_made = 0;
	report->first = seed;
	report->seed = seed;
	report->runs = 0;
	report->mark = 0;
	memset(&report->figures, 0, sizeof(report->figures));
	pid = fork();
	if (pid < 0)
		abort();
	if (pid)
		return pid;
	own = report;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sim_tracing = trace;
	/* a sanitizer looks into SIGSEGV itself */
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		if (signal(signals[i], died) != SIG_DFL && signals[i] == SIGSEGV)
			signal(SIGSEGV, SIG_DFL);
	if (!trace && !sim_loud && !freopen("/dev/null", "w", stderr))
		_exit(2);
	for (; n; n--, seed++) {
		report->seed = seed;
		setitimer(ITIMER_VIRTUAL, &most, NULL);
		sim_draw_start(seed);
		sim_run(&report->figures);
		report->mark += sim_hash();
		report->runs++;
	}
	leave(0);
}

bool child_passed(struct report *report, int status)
{
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	if (!report->message[0])
		snprintf(report->message, sizeof(report->message),
			 "a sanitizer or a signal ends it (%d)", status);
	return false;
}

bool child_run(struct report *report, u64 seed, u64 n, bool trace)
{
	int status = -1;

	waitpid(child_start(report, seed, n, trace), &status, 0);
	return child_passed(report, status);
}
