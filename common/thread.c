/* SPDX-License-Identifier: MIT */
#include "common/thread.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>

#include "common/util.h"

int thread_start(pthread_t *ret, const pthread_attr_t *attr,
		 void *(*fn)(void *), void *arg)
{
	static const int faults[] = { SIGSEGV, SIGBUS,	SIGFPE,
				      SIGILL,  SIGTRAP, SIGSYS };
	sigset_t mask, before;
	int r;

	/* A thread inherits its mask. Blocking signals in the thread itself
	 * would be too late. */
	sigfillset(&mask);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		sigdelset(&mask, faults[i]);
	pthread_sigmask(SIG_SETMASK, &mask, &before);
	r = -pthread_create(ret, attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

unsigned thread_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (unsigned)MAX(CPU_COUNT(&set), 1);
}
