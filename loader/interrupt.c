/* SPDX-License-Identifier: MIT */
#include "loader/interrupt.h"

#include <signal.h>
#include <unistd.h>

static sigset_t signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	return set;
}

void interrupt_block(void)
{
	sigset_t set = signals();

	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void *wait_for_signal(void *arg)
{
	struct interrupt *i = arg;
	sigset_t set = signals();
	int sig;

	while (sigwait(&set, &sig) != 0)
		;
	/* every other thread has them blocked, so the next one comes here,
	 * where it does what it does by default */
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	i->fn(i->ctx);
	for (;;)
		pause();
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
	/* sigwait and pause are where it can be cancelled; i->fn, between
	 * them, only takes locks, signals conditions and returns */
	pthread_cancel(i->thread);
	pthread_join(i->thread, NULL);
	i->started = false;
}
