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
/* Hold a mutex from here to the end of the block; one in a block. */
#define LOCK_SCOPE(mutex)                                \
	__attribute__((cleanup(thread_unlockp), unused)) \
	pthread_mutex_t *lock_scope_ = thread_lock(mutex)
static inline pthread_mutex_t *thread_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}
static inline void thread_unlockp(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}
/* CPUs that this process may run on; 1 if unknown. */
unsigned thread_cpus(void);

#endif
