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
#include "sched/core/frag.h"
#include "sched/core/run.h"

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

struct event_clock {
	struct sched_run run;
	struct sched_sim *sim;
	struct sched_sim_cell *cell;
	struct due *heap;
	size_t n_heap;
	uint32_t *places;
	double gpu_ns, over_ns;
	/* thousandths of GPUs times ns: what was free, and of that, what
	 * typical jobs could not have used */
	struct frag_meter frag;
	double lost_milli, lost_ns, free_ns;
	bool moved; /* what is free has changed since `lost_milli` */
};

static struct event_clock *clock_of(struct sched_run *r)
{
	return container_of(r, struct event_clock, run);
}

/* --- the heap ------------------------------------------------------------- */

static void remove_due(struct event_clock *c, uint32_t job)
{
	uint32_t i = c->places[job];

	if (i == NOWHERE)
		return;
	c->places[job] = NOWHERE;
	if (i != --c->n_heap) {
		c->heap[i] = c->heap[c->n_heap];
		dues_fix(c->heap, c->n_heap, i);
	}
}

static void set_due(struct sched_run *r, uint32_t job)
{
	struct event_clock *c = clock_of(r);
	uint64_t at_ns = job_due(&r->jobs[job]);

	remove_due(c, job);
	if (at_ns == UINT64_MAX)
		return;
	c->heap[c->n_heap++] = (struct due){ at_ns, job, &c->places[job] };
	dues_up(c->heap, c->n_heap - 1);
}

/* --- events --------------------------------------------------------------- */

/* Integrate the GPUs in use, and those that are free. */
static void move_clock(struct event_clock *c, uint64_t now_ns)
{
	struct sched_run *r = &c->run;
	uint64_t used = r->cluster.whole.gpu_milli - r->cluster.free.gpu_milli;
	double ns = (double)(now_ns - r->now_ns);

	if (c->moved)
		c->lost_milli = frag_meter_see(&c->frag, &r->cluster);
	c->moved = false;
	c->lost_ns += c->lost_milli * ns;
	c->free_ns += (double)r->cluster.free.gpu_milli * ns;
	c->gpu_ns += (double)used / GPU_MILLI * ns;
	timeline_add(&c->cell->result.use, now_ns, (double)used / GPU_MILLI);
	c->over_ns += (double)r->contention.n_over * ns;
	r->now_ns = now_ns;
}

/* It is not active any more; the others stay in their order. */
static void forget(struct sched_run *r, uint32_t job)
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

static void complete(struct event_clock *c)
{
	struct sched_run *r = &c->run;

	while (c->n_heap && c->heap[0].at_ns <= r->now_ns) {
		uint32_t which = c->heap[0].job;
		const struct sched_job *mate = r->jobs[which].mate;
		const struct sched_job *group[GROUP_MAX];
		size_t n_group;

		remove_due(c, which);
		forget(r, which);
		if (c->sim->keep_history)
			history_end(&c->cell->history, which, r->now_ns);
		run_end(r, which, r->now_ns);
		c->moved = true;
		n_group = mate ? job_group(mate, group) : 0;
		for (size_t i = 0; i < n_group; i++)
			set_due(r, (uint32_t)(group[i] - r->jobs));
		c->sim->n_done++;
	}
}

/* When something happens next; UINT64_MAX: nothing will. */
static uint64_t next_event(struct event_clock *c)
{
	struct sched_run *r = &c->run;
	uint64_t arrival_ns = run_next_arrival(r);

	/* a round in which nobody runs and nobody came would be like the last
	 */
	if (!c->n_heap && !r->changed)
		r->round_ns =
			arrival_ns == UINT64_MAX
				? UINT64_MAX
				: schedule_round(r->every_ns,
						 MAX(r->round_ns, arrival_ns));
	return MIN(c->n_heap ? c->heap[0].at_ns : UINT64_MAX, run_next(r));
}

static int await(struct sched_run *r, struct err *err)
{
	struct event_clock *c = clock_of(r);
	uint64_t next = next_event(c);

	if (atomic_load_explicit(&c->sim->stop, memory_order_relaxed))
		return err_set(err, -EINTR, "interrupted");
	if (next == UINT64_MAX)
		return sim_stuck(c->sim, r->jobs, err);
	if (next >= JOB_TIME_END)
		return err_set(err, -EOVERFLOW,
			       "the jobs take more than 292 years, where the "
			       "clock ends: are the times of the trace in the "
			       "right unit?");
	move_clock(c, next);
	complete(c);
	progress_update(&c->sim->bar, c->sim->n_done, c->cell->name);
	return 0;
}

/* --- decisions ------------------------------------------------------------ */

/* Does the plan change a group? Then jobs that it does not name do as well. */
static bool regroups(const struct sched_run *r)
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
static void set_dues(struct sched_run *r, bool regrouped)
{
	for (size_t i = 0; !regrouped && i < r->plan.n; i++)
		set_due(r, r->plan.actions[i].job);
	for (size_t i = 0; regrouped && i < r->n_active; i++)
		if (r->jobs[r->active[i]].since_ns == r->now_ns)
			set_due(r, r->active[i]);
}

/* Jobs lose their parts, and get some. */
static int remember(const struct sched_run *r, struct history *h)
{
	int e = 0;

	for (size_t i = 0; i < r->plan.n; i++)
		history_end(h, r->plan.actions[i].job, r->now_ns);
	for (size_t i = 0; e == 0 && i < r->plan.n; i++) {
		const struct action *a = &r->plan.actions[i];

		if (a->kind != ACTION_STOP)
			e = history_begin(h, a->job, &r->jobs[a->job],
					  r->now_ns);
	}
	return e;
}

static int apply(struct sched_run *r, struct err *err)
{
	struct event_clock *c = clock_of(r);
	bool regrouped = regroups(r);
	int e = plan_apply(&r->plan, &r->cluster, r->jobs, r->n, r->now_ns,
			   err);

	if (e < 0)
		return e;
	c->moved = c->moved || r->plan.n;
	set_dues(r, regrouped);
	return c->sim->keep_history ? remember(r, &c->cell->history) : 0;
}

static const struct sched_run_ops event_clock_ops = {
	.wait = await,
	.apply = apply,
	.rated = set_due,
};

/* --- a cell --------------------------------------------------------------- */

struct sched_run_config sim_run_config(const struct sched_sim *sim,
				       const struct sched_sim_cell *cell)
{
	return (struct sched_run_config){ .cluster = sim->cluster,
					  .jobs = sim->workload->jobs,
					  .n_jobs = sim->workload->n,
					  .n_users = sim->workload->n_users,
					  .policy = &cell->policy,
					  .placement = &cell->placement,
					  .seed = sim->seed,
					  .round_ns = sim->round_ns };
}

static int begin_clock(struct event_clock *c, struct err *err)
{
	const struct sched_workload *w = c->sim->workload;
	struct sched_run *r = &c->run;
	struct sched_run_config of = sim_run_config(c->sim, c->cell);
	int e = run_init(r, &event_clock_ops, &of, err);

	c->heap = malloc((w->n + 1) * sizeof(*c->heap));
	c->places = malloc((w->n + 1) * sizeof(*c->places));
	if (e == 0)
		e = frag_meter_init(&c->frag, &r->cluster, w->jobs, w->n);
	if (e == 0 && c->sim->keep_history)
		e = history_init(&c->cell->history, w->n);
	if (e < 0 || !c->heap || !c->places)
		return e < 0 ? e : -ENOMEM;
	memset(c->places, 0xff, w->n * sizeof(*c->places));
	timeline_init(&c->cell->result.use, r->now_ns);
	c->moved = true;
	return 0;
}

static void end(struct event_clock *c)
{
	run_fini(&c->run);
	frag_meter_fini(&c->frag);
	free(c->heap);
	free(c->places);
}

static void sum_up(const struct event_clock *c, struct sim_result *ret)
{
	double all_ns = ret->gpus * ret->makespan_s * NS_PER_S;

	ret->n_decisions = c->run.n_decisions;
	ret->n_events = c->run.n_events;
	ret->decisions = c->run.decisions;
	ret->utilisation = all_ns > 0 ? c->gpu_ns / all_ns : 0;
	ret->over_s = c->over_ns / NS_PER_S;
	ret->frag = c->free_ns > 0 ? c->lost_ns / c->free_ns : 0;
	ret->frag_known = c->frag.f.n > 0;
}

int sim_run(struct sched_sim *sim, struct sched_sim_cell *cell, struct err *err)
{
	struct event_clock c = { .sim = sim, .cell = cell };
	int e = begin_clock(&c, err);

	if (e == 0)
		e = run_steps(&c.run, err);
	cell->result.gpus = (double)sim->cluster->whole.gpu_milli / GPU_MILLI;
	if (e == 0)
		e = result_make(sim->workload, c.run.jobs, &cell->result);
	if (e == 0) {
		cell->jobs = TAKE_PTR(c.run.jobs);
		sum_up(&c, &cell->result);
	}
	cell->done = e == 0;
	end(&c);
	if (e < 0)
		err_set(err, e, "%s", strerror(-e));
	if (e < 0 && e != -EINTR)
		err_prefix(err, "policy %s", cell->name);
	return e;
}

void sim_fini(struct sched_sim *sim)
{
	for (size_t i = 0; i < sim->n_cells; i++) {
		struct sched_sim_cell *c = &sim->cells[i];

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
