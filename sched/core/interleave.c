/* SPDX-License-Identifier: MIT */
/*
 * Time is cut into slots, in each of which a job uses one resource, and with
 * the next slot turns to the next resource. A job that is `offset` slots behind
 * uses resource k in slot k + offset; no two have the same offset. All go on to
 * the next slot together:
 *
 *	slot		0	1	2	3	0	...
 *	offset 0	storage	CPU	GPU	network	storage
 *	offset 1	network	storage	CPU	GPU	network
 *	offset 2	GPU	network	storage	CPU	GPU
 *	offset 3	CPU	GPU	network	storage	CPU
 *
 * so that a slot lasts as long as its longest stage, and an iteration of all as
 * long as four slots. Where storage and CPU are known together only, they may
 * share their two slots out in any way: the start of slot i + 2 is no earlier
 * than that after the start of slot i. The time of an iteration is then the
 * longest way around the four slots, in steps of one and of two. A slot that no
 * job uses alone is no step: its end waits for nobody, and may come before its
 * start. The jobs before and behind it have their storage and CPU one after the
 * other then.
 */
#include "sched/core/interleave.h"

#include <math.h>
#include <string.h>

#include "common/util.h"

/* -INFINITY: no job has a stage there. */
struct slots {
	double one[STAGES]; /* the longest stage in that slot */
	double two[STAGES]; /* the longest in it and the next */
};

static void put_job(struct slots *s, const struct sched_job *job, size_t offset)
{
	const double *ns = job->stage_ns;
	bool apart = ns[STAGE_STORAGE] > 0 || ns[STAGE_CPU] > 0;

	if (!apart)
		s->two[offset] = job->read_prep_ns;
	for (size_t k = apart ? STAGE_STORAGE : STAGE_GPU; k < STAGES; k++) {
		double *slot = &s->one[(k + offset) % STAGES];

		*slot = MAX(*slot, ns[k]);
	}
}

static double around(const struct slots *s)
{
	const double *one = s->one, *two = s->two;
	double ns = one[0] + one[1] + one[2] + one[3];

	for (size_t i = 0; i < STAGES; i++)
		ns = MAX(ns, two[i] + one[(i + 2) % STAGES] +
				     one[(i + 3) % STAGES]);
	return MAX(ns, MAX(two[0] + two[2], two[1] + two[3]));
}

double interleave_ns(const struct sched_job *const *jobs, size_t n)
{
	uint8_t ignored[GROUP_MAX];

	return interleave_order(jobs, n, ignored);
}

double interleave_order(const struct sched_job *const *jobs, size_t n,
			uint8_t ret_offsets[GROUP_MAX])
{
	/* only differences count: the first one has offset 0 */
	static const uint8_t offsets[][GROUP_MAX] = {
		{ 0, 1, 2, 3 }, { 0, 1, 3, 2 }, { 0, 2, 1, 3 },
		{ 0, 2, 3, 1 }, { 0, 3, 1, 2 }, { 0, 3, 2, 1 },
	};
	double best_ns = 0;

	for (size_t k = 0; k < ARRAY_SIZE(offsets); k++) {
		struct slots s;
		double ns;

		for (size_t i = 0; i < STAGES; i++)
			s.one[i] = s.two[i] = -INFINITY;
		for (size_t i = 0; i < n; i++)
			put_job(&s, jobs[i], offsets[k][i]);
		ns = around(&s);
		if (k && ns >= best_ns)
			continue;
		best_ns = ns;
		memcpy(ret_offsets, offsets[k], sizeof(offsets[k]));
	}
	return best_ns;
}

double interleave_on(const struct cluster *c,
		     const struct sched_job *const *jobs, size_t n)
{
	double ns = (1 + c->interference[n]) * interleave_ns(jobs, n);

	/* none is faster than alone */
	for (size_t i = 0; i < n; i++)
		ns = MAX(ns, jobs[i]->iteration_ns);
	return ns;
}

double interleave_rate(const struct cluster *c, const struct sched_job *job)
{
	const struct sched_job *group[GROUP_MAX];
	size_t n = job_group(job, group);
	double rate = job_rate(c, job, job->parts, job->n_parts);

	return n > 1 ? rate * job->iteration_ns / interleave_on(c, group, n)
		     : rate;
}
