/* SPDX-License-Identifier: MIT */
#include "loader/account/observer.h"

#include <assert.h>

#include "common/util.h"

/* Call a hook of each observer that has it. */
#define CALL(o, hook, ...)                    \
	for (unsigned i = 0; i < (o)->n; i++) \
		if ((o)->item[i].ops->hook)   \
	(o)->item[i].ops->hook((o)->item[i].ctx, __VA_ARGS__)

void observers_add(struct observers *o, const struct observer *ops, void *ctx)
{
	assert(o->n < OBSERVERS_MAX);
	o->item[o->n].ops = ops;
	o->item[o->n++].ctx = ctx;
}

void observers_begin(const struct observers *o, uint64_t epoch, uint64_t now_ns)
{
	CALL(o, begin, epoch, now_ns);
}

void observers_taken(const struct observers *o, const struct delivery *d)
{
	CALL(o, taken, d);
}

uint32_t observers_slowest(const struct step_done *s)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < s->n_gpus; i++)
		if (s->gpu[i].compute_end > s->gpu[last].compute_end)
			last = i;
	return last;
}

/* The part of GPU i's barrier wait that is for the slowest GPU's batch. */
static struct stalls late_batch(const struct step_done *s, uint32_t i,
				uint32_t last)
{
	struct stalls its = s->other ? *s->other
				     : account_stalls(s->idle_ns,
						      step_batch(s, last),
						      &s->gpu[last]);
	uint64_t own = s->gpu[i].data_wait_ns, ns = stalls_ns(&its);

	if ((s->even && !s->other) || ns <= own)
		return (struct stalls){ 0 };
	return account_late(MIN(ns - own, s->gpu[i].barrier_wait_ns), &its);
}

void observers_done(const struct observers *o, const struct step_done *s)
{
	struct stalls late[GPUS_MAX];
	struct step_done all = *s;
	uint32_t last = observers_slowest(s);

	for (uint32_t i = 0; i < s->n_gpus; i++)
		late[i] = late_batch(s, i, last);
	all.late = late;
	CALL(o, done, &all);
}

void observers_begun(const struct observers *o, uint64_t at)
{
	CALL(o, begun, at);
}

int observers_after(const struct observers *o, struct device *d,
		    struct err *err)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < o->n; i++)
		if (o->item[i].ops->after)
			r = o->item[i].ops->after(o->item[i].ctx, d, err);
	return r;
}

void observers_held(const struct observers *o, const char *why, uint64_t from,
		    uint64_t ns)
{
	CALL(o, held, why, from, ns);
}

void observers_end(const struct observers *o, uint64_t now_ns)
{
	CALL(o, end, now_ns);
}
