/* SPDX-License-Identifier: MIT */
/*
 * The live driver of policies: jobs are processes, and time passes.
 *
 * What policies see is what they see on the event clock: jobs that advance by
 * their speeds. What happens is up to the processes: a job is done when its
 * process exits with 0, and how far one is that was stopped, its newest
 * checkpoint says. A process gets its parts when those that had them before
 * have ended, or have given them back.
 *
 *	live_init(&l, config, err);	new, or as the state in `dir` has it
 *	live_run(&l, err);
 *	live_fini(&l);
 *
 * Single threaded.
 */
#ifndef GPEMU_SCHED_LIVE_LIVE_H
#define GPEMU_SCHED_LIVE_LIVE_H

#include "sched/live/run.h"

/* -EINVAL with a text: a job or the cluster cannot be live; the state is of
 * another run, or damaged. Call live_fini, failed or not. */
int live_init(struct live *l, const struct live_config *c, struct err *err);
/*
 * Until all jobs are done. Processes are ended, with a checkpoint, before an
 * error is returned; the state allows to go on. -EINTR: a stop signal; -EINVAL:
 * the policy breaks its contract; -EDEADLK: it leaves jobs waiting for ever;
 * -errno. With a text.
 */
int live_run(struct live *l, struct err *err);
void live_fini(struct live *l);

#endif
