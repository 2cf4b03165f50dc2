/* SPDX-License-Identifier: MIT */
/*
 * A thread that handles SIGINT and SIGTERM: the first one calls a function, the
 * second one kills the process as by default.
 */
#ifndef GPEMU_COMMON_PROGRAM_INTERRUPT_H
#define GPEMU_COMMON_PROGRAM_INTERRUPT_H

#include <pthread.h>
#include <stdbool.h>

struct interrupt {
	pthread_t thread;
	bool started;
	void (*fn)(void *ctx); /* on the interrupt's thread */
	void *ctx;
};

/* Block the signals, and SIGUSR1, in this thread and those that it starts
 * from now on. */
void interrupt_block(void);
/* 0 or -errno. `i` must stay until interrupt_end. */
int interrupt_begin(struct interrupt *i);
void interrupt_end(struct interrupt *i);

#endif
