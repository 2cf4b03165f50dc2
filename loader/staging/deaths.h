/* SPDX-License-Identifier: MIT */
/* Detects the death of other processes of this machine, by their pidfds. */
#ifndef GPEMU_LOADER_STAGING_DEATHS_H
#define GPEMU_LOADER_STAGING_DEATHS_H

#include <stdint.h>
#include <sys/types.h>

struct deaths;

/* `died` is called on a thread of its own, once per process, with the number
 * that deaths_watch was given. -ENOMEM, -EMFILE. */
int deaths_new(uint32_t most, void (*died)(void *ctx, uint32_t number),
	       void *ctx, struct deaths **ret);
/* Before deaths_start. -ESRCH: there is no such process. */
int deaths_watch(struct deaths *d, pid_t pid, uint32_t number);
int deaths_start(struct deaths *d);
/* Joins the thread. NULL is allowed. */
void deaths_free(struct deaths *d);

#endif
