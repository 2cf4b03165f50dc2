/* SPDX-License-Identifier: MIT */
#include "sched/policy/others.h"

#include <errno.h>

#include "common/util.h"

/* The copy only fills up: a shape without room once has none later. */
int others_start(struct schedule *s, const struct view *v,
		 bool (*is_own)(const struct job *job), struct plan *ret)
{
	_cleanup_free_ bool *stuck = calloc(v->n_jobs + 1, sizeof(*stuck));
	int r = stuck ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < v->n_active; i++) {
		const struct job *job = &v->jobs[v->active[i]];
		size_t n;

		if (job->state != JOB_WAITING || is_own(job) ||
		    stuck[job->shape])
			continue;
		n = placement_place(&s->placement, &s->scratch, job, s->parts);
		stuck[job->shape] = !n;
		r = plan_start(ret, &s->scratch, v->active[i], s->parts, n);
	}
	return r;
}
