/* SPDX-License-Identifier: MIT */
/* Threads that leave the process's signals to others, and the CPUs they have.
 */
#ifndef GPEMU_COMMON_THREAD_H
#define GPEMU_COMMON_THREAD_H

#include <pthread.h>

/*
 * pthread_create of a thread that blocks all signals but those of its own
 * faults (SIGSEGV and the like), whose handlers must see them. `attr` may be
 * NULL. -errno as pthread_create(3).
 */
int thread_start(pthread_t *ret, const pthread_attr_t *attr,
		 void *(*fn)(void *), void *arg);
/* CPUs that this process may run on; 1 if unknown. */
unsigned thread_cpus(void);

#endif
