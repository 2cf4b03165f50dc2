/* SPDX-License-Identifier: MIT */
#include "sched/policy/kinds.h"

#include <math.h>

double kinds_work(const struct sched_job *job, int kind)
{
	if (kind == ON_CPU)
		return job->cpu_work_ns > 0 ? job->cpu_work_ns : INFINITY;
	return job->work_ns;
}

int kinds_best(const struct sched_job *job)
{
	return job->n_gpus && kinds_work(job, ON_CPU) < kinds_work(job, ON_GPU)
		       ? ON_CPU
		       : ON_GPU;
}

static size_t place_on_cpu(const struct cluster *c, const struct sched_job *job,
			   struct sched_part *ret)
{
	if (!job->n_gpus || job->cpu_work_ns <= 0)
		return 0;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct sched_node *n = &c->nodes[i];

		*ret = (struct sched_part){ .node = i,
					    .cpu_milli = job->alone_cpu_milli };
		if (kinds_is_cpu(n) && !n->held[PART_NO_GPU] &&
		    n->cpu_free >= job->alone_cpu_milli)
			return 1;
	}
	return 0;
}

size_t kinds_place(struct sched_schedule *s, const struct sched_job *job,
		   int kind)
{
	return kind == ON_CPU ? place_on_cpu(&s->scratch, job, s->parts)
			      : placement_place(&s->placement, &s->scratch, job,
						s->parts);
}

size_t kinds_place_any(struct sched_schedule *s, const struct sched_job *job)
{
	int best = kinds_best(job);
	size_t n = kinds_place(s, job, best);

	return n ? n : kinds_place(s, job, kinds_other(best));
}
