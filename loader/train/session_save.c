/* SPDX-License-Identifier: MIT */
#include "loader/train/session_save.h"

#include "loader/train/session.h"

static void taken(void *ctx, const struct delivery *d)
{
	struct session *s = ctx;

	resume_take(&s->resume, d, s->account);
}

/* After the step is computed; no other begins before it is saved. */
static int save(struct session *s, struct device *d, struct err *err)
{
	int r = device_drain(d, err);
	uint64_t from = d->idle_ns;

	if (r < 0)
		return r;
	tick_wait(s->tick, from);
	r = resume_save(&s->resume, err);
	device_hold(d, tick_now(s->tick));
	observers_held(&s->train.observers, "checkpoint", from,
		       d->idle_ns - from);
	return r;
}

static int after(void *ctx, struct device *d, struct err *err)
{
	struct session *s = ctx;

	return resume_step(&s->resume) ? save(s, d, err) : 0;
}

const struct observer observe_resume = {
	.taken = taken,
	.after = after,
};
