/* SPDX-License-Identifier: MIT */
#include "sched/core/run.h"

#include <errno.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"

/* --- when something happens next ------------------------------------------ */

uint64_t run_next_arrival(const struct sched_run *r)
{
	return r->n_arrived < r->n ? r->jobs[r->n_arrived].arrival_ns
				   : UINT64_MAX;
}

static uint64_t next_decision(const struct sched_run *r)
{
	if (!r->n_active)
		return UINT64_MAX;
	return r->every_ns ? r->round_ns
			   : MAX(r->plan.wake_ns, r->asked_ns + 1);
}

uint64_t run_next(const struct sched_run *r)
{
	return MIN(run_next_arrival(r), next_decision(r));
}

/* --- a step --------------------------------------------------------------- */

static void arrive(struct sched_run *r)
{
	r->arrived = false;
	while (run_next_arrival(r) <= r->now_ns) {
		struct sched_job *job = &r->jobs[r->n_arrived];

		job->state = JOB_WAITING;
		job->since_ns = r->now_ns;
		if (!r->n_active) /* no rounds were due */
			r->round_ns =
				schedule_round(r->every_ns, job->arrival_ns);
		r->active[r->n_active++] = (uint32_t)r->n_arrived++;
		r->changed = r->arrived = true;
	}
}

static int decide(struct sched_run *r, struct err *err)
{
	struct view v = run_view(r);
	uint64_t from = tick_wall();
	int e;

	r->changed = false;
	r->asked_ns = r->now_ns;
	r->round_ns = schedule_round(r->every_ns, r->now_ns + 1);
	plan_reset(&r->plan);
	if (!r->n_active)
		return 0;
	e = schedule_decide(&r->schedule, &v, &r->plan);
	hist_add(&r->decisions, tick_wall() - from);
	r->n_decisions++;
	return e < 0 ? e : r->ops->apply(r, err);
}

/* Jobs run as fast as those beside them let them. Where nobody is slowed down
 * by others, plans have set the speeds. */
static int share(struct sched_run *r)
{
	if (!r->contention.gpus && r->cluster.remote_mib_s <= 0)
		return 0;
	if (storage_split_cache(&r->cluster, r->schedule.ops->storage, r->jobs,
				r->active, r->n_active) < 0)
		return -ENOMEM;
	if (r->ops->look)
		r->ops->look(r);
	if (storage_split_bandwidth(&r->cluster, r->jobs, r->active,
				    r->n_active) < 0)
		return -ENOMEM;
	contention_see(&r->contention, &r->cluster, r->jobs, r->active,
		       r->n_active);
	for (size_t i = 0; i < r->n_active; i++) {
		struct sched_job *job = &r->jobs[r->active[i]];
		double rate;

		if (job->state != JOB_RUNNING)
			continue;
		rate = contention_rate(&r->contention, &r->cluster, job);
		if (rate == job->rate)
			continue;
		job_advance(job, r->now_ns);
		job->rate = rate;
		if (r->ops->rated)
			r->ops->rated(r, r->active[i]);
	}
	return 0;
}

static int step(struct sched_run *r, struct err *err)
{
	int e = r->ops->wait(r, err);

	r->n_events++;
	if (e < 0 || r->n_done == r->n)
		return e;
	arrive(r);
	if (next_decision(r) <= r->now_ns || (r->changed && !r->every_ns))
		e = decide(r, err);
	if (e == 0)
		e = share(r);
	return e == 0 && r->ops->carry ? r->ops->carry(r, err) : e;
}

int run_steps(struct sched_run *r, struct err *err)
{
	int e = 0;

	while (e == 0 && r->n_done < r->n)
		e = step(r, err);
	return e;
}

void run_end(struct sched_run *r, uint32_t which, uint64_t at_ns)
{
	struct sched_job *job = &r->jobs[which];

	plan_release(&r->cluster, job, MAX(at_ns, job->since_ns), JOB_DONE);
	job->done = 1;
	job->end_ns = at_ns;
	r->n_done++;
	r->changed = true;
}

/* --- all of it ------------------------------------------------------------ */

struct view run_view(const struct sched_run *r)
{
	return (struct view){ .cluster = &r->cluster,
			      .jobs = r->jobs,
			      .n_jobs = r->n,
			      .active = r->active,
			      .n_active = r->n_active,
			      .n_users = r->n_users,
			      .now_ns = r->now_ns };
}

int run_init(struct sched_run *r, const struct sched_run_ops *ops,
	     const struct sched_run_config *c, struct err *err)
{
	size_t n = c->n_jobs;
	struct view v;
	int e;

	*r = (struct sched_run){ .ops = ops,
				 .n = n,
				 .n_users = c->n_users,
				 .now_ns = n ? c->jobs[0].arrival_ns : 0,
				 .every_ns = c->round_ns,
				 .asked_ns = UINT64_MAX };
	plan_reset(&r->plan);
	r->jobs = calloc(n + 1, sizeof(*r->jobs));
	r->active = calloc(n + 1, sizeof(*r->active));
	if (!r->jobs || !r->active)
		return -ENOMEM;
	memcpy(r->jobs, c->jobs, n * sizeof(*r->jobs));
	e = cluster_copy(c->cluster, &r->cluster);
	if (e == 0)
		e = contention_init(&r->contention, &r->cluster, r->jobs, n);
	v = run_view(r);
	return e < 0 ? e
		     : schedule_init(&r->schedule,
				     container_of(c->policy->plugin,
						  struct schedule_ops, plugin),
				     c->policy->options,
				     container_of(c->placement->plugin,
						  struct placement_ops, plugin),
				     c->placement->options, c->seed, &v, err);
}

void run_fini(struct sched_run *r)
{
	for (size_t i = 0; r->jobs && i < r->n; i++)
		free(r->jobs[i].parts);
	schedule_fini(&r->schedule);
	contention_fini(&r->contention);
	plan_fini(&r->plan);
	cluster_fini(&r->cluster);
	free(r->active);
	free(r->jobs);
}
