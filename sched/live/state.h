/* SPDX-License-Identifier: MIT */
/* What a live run keeps on disk: DIR/state.json, replaced as a whole, and
 * DIR/clock, for when that fails. */
#ifndef GPEMU_SCHED_LIVE_STATE_H
#define GPEMU_SCHED_LIVE_STATE_H

#include "sched/live/run.h"

/* `paused`: no process runs, and the clock stands until the next start. -errno
 * with a text. */
int state_save(struct live *l, bool paused, struct err *err);
/* Save it as paused. If that fails, -errno with a text, the next start goes on
 * from the state before, as after a kill, and yet the clock stands until then.
 */
int state_stop(struct live *l, struct err *err);
/*
 * Fill in the jobs, what they have, and the clock, into a run that has just
 * been made, and remove what a save left that was killed. -ENOENT: there is no
 * state; -EINVAL with a text: it is another run's, or damaged; the run is then
 * half filled in.
 */
int state_load(struct live *l, struct err *err);
/* The same from bytes, safe on any input. */
int state_parse(struct live *l, const char *bytes, size_t n, struct err *err);

#endif
