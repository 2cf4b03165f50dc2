/* SPDX-License-Identifier: MIT */
#include "fs/setup/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct signals {
	struct signals_config c;
	pthread_t thread;
	bool ending; /* atomic */
};

static void fill_set(sigset_t *set)
{
	struct sigaction old;

	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
	if (sigaction(SIGINT, NULL, &old) < 0 || old.sa_handler != SIG_IGN)
		sigaddset(set, SIGINT);
}

void signals_block(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* a write beyond RLIMIT_FSIZE then fails with EFBIG */
	signal(SIGXFSZ, SIG_IGN);
	fill_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void *wait_for_signals(void *arg)
{
	struct signals *s = arg;
	sigset_t set;
	int sig;

	fill_set(&set);
	for (;;) {
		if (sigwait(&set, &sig))
			continue;
		if (__atomic_load_n(&s->ending, __ATOMIC_ACQUIRE))
			return NULL;
		switch (sig) {
		case SIGHUP: s->c.reload(s->c.ctx); break;
		case SIGUSR1: s->c.dump(s->c.ctx); break;
		default: s->c.stop(s->c.ctx); break;
		}
	}
}

int signals_new(const struct signals_config *config, struct signals **ret)
{
	struct signals *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->c = *config;
	r = pthread_create(&s->thread, NULL, wait_for_signals, s);
	if (r) {
		free(s);
		return -r;
	}
	*ret = s;
	return 0;
}

void signals_free(struct signals *s)
{
	if (!s)
		return;
	__atomic_store_n(&s->ending, true, __ATOMIC_RELEASE);
	pthread_kill(s->thread, SIGUSR1);
	pthread_join(s->thread, NULL);
	free(s);
}
