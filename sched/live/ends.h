/* SPDX-License-Identifier: MIT */
/* What the end of a process means for its job. */
#ifndef GPEMU_SCHED_LIVE_ENDS_H
#define GPEMU_SCHED_LIVE_ENDS_H

#include "sched/live/run.h"

/*
 * The process of a job may have ended: its pidfd says so, or nobody knows.
 * `expected`: an end without a result is no failure of the job, which goes on
 * from its checkpoint. -errno with a text.
 */
int ends_look(struct live *l, uint32_t job, bool expected, struct err *err);
/* The job failed, for the reason of the text: it starts again, or has ended. No
 * process of it runs, and it holds nothing. */
void ends_failed(struct live *l, uint32_t job, const char *text);

#endif
