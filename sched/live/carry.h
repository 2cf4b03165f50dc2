/* SPDX-License-Identifier: MIT */
/* From what the policy has decided to processes. */
#ifndef GPEMU_SCHED_LIVE_CARRY_H
#define GPEMU_SCHED_LIVE_CARRY_H

#include "sched/live/run.h"

/*
 * The state is saved; then processes of jobs that shall not run, or not there,
 * are asked to end, those that go on get and give CPUs and memory, and those of
 * jobs that shall run are started where all is free. -errno with a text.
 */
int carry_out(struct live *l, struct err *err);
/* Ask all processes to end. */
void carry_stop_all(struct live *l);

#endif
