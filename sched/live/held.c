/* SPDX-License-Identifier: MIT */
#include "sched/live/held.h"

#include <errno.h>

#include "common/util.h"
#include "sched/live/group.h"

bool held_is_free(const struct live *l, const struct job *job)
{
	for (size_t i = 0; i < job->n_parts; i++)
		if (!cluster_has(&l->held, &job->parts[i]))
			return false;
	return true;
}

static int remember(struct live *l, uint32_t which)
{
	const struct live_job *p = &l->live[which];
	struct job of = { .parts = p->held, .n_parts = p->n_held };

	return history_begin(&l->history, which, &of, l->now_ns);
}

int held_take(struct live *l, uint32_t which)
{
	const struct job *job = &l->jobs[which];
	struct live_job *p = &l->live[which];
	bool shared = group_holder(l, which);

	p->held = calloc(job->n_parts + 1, sizeof(*p->held));
	if (!p->held)
		return -ENOMEM;
	for (; p->n_held < job->n_parts; p->n_held++) {
		p->held[p->n_held] = job->parts[p->n_held];
		if (!shared)
			cluster_take(&l->held, &p->held[p->n_held]);
	}
	return remember(l, which);
}

int held_changed(struct live *l, uint32_t which)
{
	history_end(&l->history, which, l->now_ns);
	return remember(l, which);
}

void held_give(struct live *l, uint32_t which, uint64_t at_ns)
{
	struct live_job *p = &l->live[which];
	bool shared = group_holder(l, which);

	history_end(&l->history, which, at_ns);
	for (size_t i = 0; !shared && i < p->n_held; i++)
		cluster_give(&l->held, &p->held[i]);
	free(p->held);
	p->held = NULL;
	p->n_held = 0;
	p->group = 0;
}

bool held_same(const struct live *l, uint32_t which)
{
	const struct live_job *p = &l->live[which];

	return job_holds(&l->jobs[which], p->held, p->n_held);
}

bool held_same_gpus(const struct live *l, uint32_t which)
{
	const struct job *job = &l->jobs[which];
	const struct live_job *p = &l->live[which];

	for (size_t i = 0; i < job->n_parts && i < p->n_held; i++) {
		const struct part *a = &job->parts[i], *b = &p->held[i];

		if (a->node != b->node || a->gpus != b->gpus ||
		    a->gpu_milli != b->gpu_milli)
			return false;
	}
	return job->n_parts == p->n_held;
}
