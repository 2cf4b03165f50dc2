/* SPDX-License-Identifier: MIT */
#include "common/program/interrupt.h"

#include <signal.h>

/* Ends the thread. pthread_cancel would too, but AddressSanitizer takes the
 * unwinding of a cancelled thread for a use after scope. */
enum { END = SIGUSR1 };

static sigset_t set_of(int a, int b)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, a);
	sigaddset(&set, b);
	return set;
}

void interrupt_block(void)
{
	sigset_t asked = set_of(SIGINT, SIGTERM), end = set_of(END, END);

	pthread_sigmask(SIG_BLOCK, &asked, NULL);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
}

static void *wait_for_signal(void *arg)
{
	struct interrupt *i = arg;
	sigset_t asked = set_of(SIGINT, SIGTERM), end = set_of(END, END);
	sigset_t both = asked;
	int sig = 0;

	sigaddset(&both, END);
	sigwait(&both, &sig);
	if (sig == END)
		return NULL;
	/* all other threads block them, so the next one arrives here and has
	 * its default effect */
	pthread_sigmask(SIG_UNBLOCK, &asked, NULL);
	i->fn(i->ctx);
	sigwait(&end, &sig);
	return NULL;
}

int interrupt_begin(struct interrupt *i)
{
	int r = -pthread_create(&i->thread, NULL, wait_for_signal, i);

	i->started = r == 0;
	return r;
}

void interrupt_end(struct interrupt *i)
{
	if (!i->started)
		return;
	pthread_kill(i->thread, END);
	pthread_join(i->thread, NULL);
	i->started = false;
}
