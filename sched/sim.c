/* SPDX-License-Identifier: MIT */
/*
 * The event clock. Three kinds of events: a job arrives, a job is done, a
 * round begins. All that happen at one time happen before the policy decides.
 * The jobs that run are in a heap by the time when they will be done; the place
 * of a job in it is kept, since each decision may change that time.
 */
#include "sched/sim.h"

#include <errno.h>
#include <string.h>

#include "common/heap.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/core/contend.h"
#include "sched/core/frag.h"

#define NOWHERE UINT32_MAX

struct due {
	uint64_t at_ns;
	uint32_t job;
	uint32_t *place; /* of the job in the heap */
};

static bool sooner(const struct due *a, const struct due *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->job < b->job;
}

static void placed(const struct due *d, size_t i)
{
	*d->place = (uint32_t)i;
}

DEFINE_HEAP(dues, struct due, sooner, placed)

struct run {
	struct sim *sim;
	struct sim_cell *cell;
	struct cluster cluster;
	struct schedule schedule;
	struct plan plan;
	struct contention contention;
	struct job *jobs;
	size_t n, arrived, n_done;
	uint32_t *active; /* ascending */
	size_t n_active;
	struct due *heap;
	size_t n_heap;
	uint32_t *places;
	uint64_t now_ns, counted_ns; /* GPU time is counted up to then */
	double gpu_ns, over_ns;
	/* thousandths of GPUs times ns: what was free, and of that, what
	 * typical jobs could not have used */
	struct frag_meter frag;
	double lost_milli, lost_ns, free_ns;
	bool moved;	   /* what is free has changed since `lost_milli` */
	bool changed;	   /* since the last decision */
	uint64_t asked_ns; /* when that was */
};

/* --- the heap ------------------------------------------------------------- */

static void remove_due(struct run *r, uint32_t job)
{
	uint32_t i = r->places[job];

	if (i == NOWHERE)
		return;
	r->places[job] = NOWHERE;
	if (i != --r->n_heap) {
		r->heap[i] = r->heap[r->n_heap];
		dues_fix(r->heap, r->n_heap, i);
	}
}

static void set_due(struct run *r, uint32_t job)
{
	uint64_t at_ns = job_due(&r->jobs[job]);

	remove_due(r, job);
	if (at_ns == UINT64_MAX)
		return;
	r->heap[r->n_heap++] = (struct due){ at_ns, job, &r->places[job] };
	dues_up(r->heap, r->n_heap - 1);
}

/* --- events --------------------------------------------------------------- */

/* Integrate the GPUs in use, and those that are free. */
static void move_clock(struct run *r, uint64_t now_ns)
{
	uint64_t used = r->cluster.whole.gpu_milli - r->cluster.free.gpu_milli;
	double ns = (double)(now_ns - r->counted_ns);

	if (r->moved)
		r->lost_milli = frag_meter_see(&r->frag, &r->cluster);
	r->moved = false;
	r->lost_ns += r->lost_milli * ns;
	r->free_ns += (double)r->cluster.free.gpu_milli * ns;
	r->gpu_ns += (double)used / GPU_MILLI * ns;
	timeline_add(&r->cell->result.use, now_ns, (double)used / GPU_MILLI);
	r->over_ns += (double)r->contention.n_over * ns;
	r->counted_ns = r->now_ns = now_ns;
}

static void arrive(struct run *r)
{
	while (r->arrived < r->n &&
	       r->jobs[r->arrived].arrival_ns <= r->now_ns) {
		r->jobs[r->arrived].state = JOB_WAITING;
		r->jobs[r->arrived].since_ns = r->now_ns;
		r->active[r->n_active++] = (uint32_t)r->arrived++;
		r->changed = true;
	}
}

/* It is not active any more; the others stay in their order. */
static void forget(struct run *r, uint32_t job)
{
	size_t low = 0, high = r->n_active;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (r->active[middle] <= job)
			low = middle;
		else
			high = middle;
	}
	r->n_active--;
	memmove(&r->active[low], &r->active[low + 1],
		(r->n_active - low) * sizeof(*r->active));
}

static void complete(struct run *r)
{
	while (r->n_heap && r->heap[0].at_ns <= r->now_ns) {
		uint32_t which = r->heap[0].job;
		struct job *job = &r->jobs[which], *mate = job->mate;
		const struct job *group[GROUP_MAX];
		size_t n_group;

		remove_due(r, which);
		forget(r, which);
		if (r->sim->keep_history)
			history_end(&r->cell->history, which, r->now_ns);
		plan_release(&r->cluster, job, r->now_ns, JOB_DONE);
		r->moved = true;
		n_group = mate ? job_group(mate, group) : 0;
		for (size_t i = 0; i < n_group; i++)
			set_due(r, (uint32_t)(group[i] - r->jobs));
		job->done = 1;
		job->end_ns = r->now_ns;
		r->n_done++;
		r->sim->n_done++;
		r->changed = true;
	}
}

/* When something happens next; UINT64_MAX: nothing will. */
static uint64_t next_event(const struct run *r)
{
	uint64_t next = r->n_heap ? r->heap[0].at_ns : UINT64_MAX;

	if (r->arrived < r->n)
		next = MIN(next, r->jobs[r->arrived].arrival_ns);
	if (!r->sim->round_ns)
		next = MIN(next, MAX(r->plan.wake_ns, r->now_ns + 1));
	/* a round in which nobody runs and nobody came would be like the last
	 */
	if (r->sim->round_ns && r->n_active && (r->n_heap || r->changed))
		next = MIN(next, schedule_round(r->sim->round_ns,
						r->asked_ns == UINT64_MAX
							? r->now_ns
							: MAX(r->asked_ns + 1,
							      r->now_ns)));
	return next;
}

/* --- decisions ------------------------------------------------------------ */

static struct view view_of(const struct run *r)
{
	return (struct view){ .cluster = &r->cluster,
			      .jobs = r->jobs,
			      .n_jobs = r->n,
			      .active = r->active,
			      .n_active = r->n_active,
			      .n_users = r->sim->workload->n_users,
			      .now_ns = r->now_ns };
}

/* Does the plan change a group? Then jobs that it does not name do as well. */
static bool regroups(const struct run *r)
{
	for (size_t i = 0; i < r->plan.n; i++) {
		const struct action *a = &r->plan.actions[i];

		if (a->kind == ACTION_GROUP ||
		    (a->job < r->n && r->jobs[a->job].mate))
			return true;
	}
	return false;
}

/* When they will be done has changed. */
static void set_dues(struct run *r, bool regrouped)
{
	for (size_t i = 0; !regrouped && i < r->plan.n; i++)
		set_due(r, r->plan.actions[i].job);
	for (size_t i = 0; regrouped && i < r->n_active; i++)
		if (r->jobs[r->active[i]].since_ns == r->now_ns)
			set_due(r, r->active[i]);
}

/* Jobs that lose their parts, and those that get some. */
static void end_runs(struct run *r)
{
	struct history *h = &r->cell->history;

	for (size_t i = 0; r->sim->keep_history && i < r->plan.n; i++)
		if (r->plan.actions[i].job < r->n)
			history_end(h, r->plan.actions[i].job, r->now_ns);
}

static int begin_runs(struct run *r)
{
	struct history *h = &r->cell->history;
	int e = 0;

	for (size_t i = 0; r->sim->keep_history && e == 0 && i < r->plan.n;
	     i++) {
		const struct action *a = &r->plan.actions[i];

		if (a->kind != ACTION_STOP)
			e = history_begin(h, a->job, &r->jobs[a->job],
					  r->now_ns);
	}
	return e;
}

static int decide(struct run *r, struct err *err)
{
	struct view v;
	uint64_t from = tick_wall();
	bool regrouped;
	int e;

	plan_reset(&r->plan);
	r->changed = false;
	r->asked_ns = r->now_ns;
	if (!r->n_active)
		return 0;
	v = view_of(r);
	e = schedule_decide(&r->schedule, &v, &r->plan);
	hist_add(&r->cell->result.decisions, tick_wall() - from);
	r->cell->result.n_decisions++;
	regrouped = regroups(r);
	r->moved = r->moved || r->plan.n;
	end_runs(r);
	if (e == 0)
		e = plan_apply(&r->plan, &r->cluster, r->jobs, r->n, r->now_ns,
			       err);
	if (e == 0)
		set_dues(r, regrouped);
	return e < 0 ? e : begin_runs(r);
}

/* Jobs run as fast as those beside them let them. */
static int contend(struct run *r)
{
	if (!r->contention.gpus && r->cluster.remote_mib_s <= 0)
		return 0;
	contention_see(&r->contention, &r->cluster, r->jobs, r->active,
		       r->n_active);
	if (storage_split_cache(&r->cluster, r->schedule.ops->storage, r->jobs,
				r->active, r->n_active) < 0 ||
	    storage_split_bandwidth(&r->cluster, r->jobs, r->active,
				    r->n_active) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_active; i++) {
		struct job *job = &r->jobs[r->active[i]];
		double rate;

		if (job->state != JOB_RUNNING)
			continue;
		rate = contention_rate(&r->contention, &r->cluster, job);
		if (rate == job->rate)
			continue;
		job_advance(job, r->now_ns);
		job->rate = rate;
		set_due(r, r->active[i]);
	}
	return 0;
}

static int loop(struct run *r, struct err *err)
{
	uint64_t round_ns = r->sim->round_ns;
	int e = 0;

	while (e == 0 && r->n_done < r->n) {
		uint64_t next = next_event(r);

		if (next == UINT64_MAX)
			return sim_stuck(r->sim, r->cell, err);
		if (next >= JOB_TIME_END)
			return err_set(err, -EOVERFLOW,
				       "the jobs take more than 292 years, "
				       "where the clock ends: are the times "
				       "of the trace in the right unit?");
		move_clock(r, next);
		complete(r);
		arrive(r);
		r->cell->result.n_events++;
		if (!round_ns || r->now_ns % round_ns == 0)
			e = decide(r, err);
		if (e == 0)
			e = contend(r);
		progress_update(&r->sim->bar, r->sim->n_done, r->cell->name);
		if (atomic_load_explicit(&r->sim->stop, memory_order_relaxed))
			e = err_set(err, -EINTR, "interrupted");
	}
	return e;
}

/* --- a cell --------------------------------------------------------------- */

static int begin(struct run *r, struct err *err)
{
	const struct workload *w = r->sim->workload;
	struct sim_cell *cell = r->cell;
	struct view v;
	int e = cluster_copy(r->sim->cluster, &r->cluster);

	r->n = w->n;
	r->jobs = cell->jobs = malloc((w->n + 1) * sizeof(*r->jobs));
	r->active = malloc((w->n + 1) * sizeof(*r->active));
	r->heap = malloc((w->n + 1) * sizeof(*r->heap));
	r->places = malloc((w->n + 1) * sizeof(*r->places));
	if (e == 0)
		e = contention_init(&r->contention, &r->cluster, w->jobs, w->n);
	if (e == 0)
		e = frag_meter_init(&r->frag, &r->cluster, w->jobs, w->n);
	if (e == 0 && r->sim->keep_history)
		e = history_init(&cell->history, w->n);
	if (e < 0 || !r->jobs || !r->active || !r->heap || !r->places)
		return -ENOMEM;
	memcpy(r->jobs, w->jobs, w->n * sizeof(*r->jobs));
	memset(r->places, 0xff, w->n * sizeof(*r->places));
	r->counted_ns = r->now_ns = r->n ? r->jobs[0].arrival_ns : 0;
	timeline_init(&cell->result.use, r->now_ns);
	r->asked_ns = UINT64_MAX;
	r->moved = true;
	plan_reset(&r->plan);
	v = view_of(r);
	return schedule_init(&r->schedule,
			     container_of(cell->policy.plugin,
					  struct schedule_ops, plugin),
			     cell->policy.options,
			     container_of(cell->placement.plugin,
					  struct placement_ops, plugin),
			     cell->placement.options, r->sim->seed, &v, err);
}

static void end(struct run *r)
{
	schedule_fini(&r->schedule);
	contention_fini(&r->contention);
	frag_meter_fini(&r->frag);
	plan_fini(&r->plan);
	cluster_fini(&r->cluster);
	free(r->active);
	free(r->heap);
	free(r->places);
}

static void sum_up(const struct run *r, struct sim_result *ret)
{
	double all_ns = ret->gpus * ret->makespan_s * NS_PER_S;

	ret->utilisation = all_ns > 0 ? r->gpu_ns / all_ns : 0;
	ret->over_s = r->over_ns / NS_PER_S;
	ret->frag = r->free_ns > 0 ? r->lost_ns / r->free_ns : 0;
	ret->frag_known = r->frag.f.n > 0;
}

int sim_run(struct sim *sim, struct sim_cell *cell, struct err *err)
{
	struct run r = { .sim = sim, .cell = cell };
	int e = begin(&r, err);

	if (e == 0)
		e = loop(&r, err);
	/* an interrupted run leaves jobs with parts */
	for (size_t i = 0; e < 0 && r.jobs && i < r.n; i++)
		if (r.jobs[i].state == JOB_RUNNING)
			plan_release(&r.cluster, &r.jobs[i], r.now_ns,
				     JOB_WAITING);
	cell->result.gpus = (double)r.cluster.whole.gpu_milli / GPU_MILLI;
	if (e == 0)
		e = result_make(sim->workload, r.jobs, &cell->result);
	if (e == 0)
		sum_up(&r, &cell->result);
	cell->done = e == 0;
	end(&r);
	if (e < 0)
		err_set(err, e, "%s", strerror(-e));
	if (e < 0 && e != -EINTR)
		err_prefix(err, "policy %s", cell->name);
	return e;
}

void sim_fini(struct sim *sim)
{
	for (size_t i = 0; i < sim->n_cells; i++) {
		struct sim_cell *c = &sim->cells[i];

		plugin_choice_fini(&c->policy);
		plugin_choice_fini(&c->placement);
		result_fini(&c->result);
		history_fini(&c->history);
		free(c->jobs);
		free(c->name);
	}
	free(sim->cells);
	sim->cells = NULL;
	sim->n_cells = 0;
}
