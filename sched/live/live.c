/* SPDX-License-Identifier: MIT */
/*
 * One loop, which sleeps until a process ends, a job arrives, a round begins,
 * the policy wants to decide again, or a signal comes. Then
 *
 *	ends	what ended processes mean for their jobs
 *	arrive	jobs whose time has come
 *	decide	the policy's plan changes the jobs, and nothing else
 *	share	caches and bandwidths follow it (remote.h)
 *	carry	the state is saved, so that what follows can be done again;
 *		processes are stopped, changed and started
 *
 * A kill at any point leaves a state from which the same steps lead on: who
 * runs is not in it (process.h), and the end of a process counts once, by its
 * number.
 */
#include "sched/live/live.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "common/log.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/live/carry.h"
#include "sched/live/down.h"
#include "sched/live/ends.h"
#include "sched/live/remote.h"
#include "sched/live/state.h"

/* arbitrary: a program that lost its keeper needs some steps to end */
#define LOOK_AGAIN_NS (NS_PER_S / 10)

/* --- the clock ------------------------------------------------------------ */

static void move_clock(struct live *l)
{
	uint64_t wall = tick_wall();
	double ns = (double)(wall - l->wall_ns) / l->c.time_scale;

	l->now_ns += (uint64_t)ns;
	l->use_ns += ns * live_gpus(l);
	l->wall_ns = wall;
	l->real_ns = tick_realtime();
	/* work begins with the process */
	for (size_t i = 0; i < l->n_active; i++) {
		struct job *job = &l->jobs[l->active[i]];
		const struct live_job *p = &l->live[l->active[i]];

		if (job->state == JOB_RUNNING &&
		    (p->process.state != PROCESS_RUNS || p->stopping))
			job->since_ns = l->now_ns;
	}
}

/* The first round not before a time. */
static uint64_t round_from(const struct live *l, uint64_t at_ns)
{
	uint64_t round = l->c.round_ns;

	return round ? (at_ns + round - 1) / round * round : 0;
}

static uint64_t next_arrival(const struct live *l)
{
	return l->n_arrived < l->n ? l->jobs[l->n_arrived].arrival_ns
				   : UINT64_MAX;
}

/* When to decide although nothing happens; UINT64_MAX: no need. */
static uint64_t next_decision(const struct live *l)
{
	if (!l->n_active)
		return UINT64_MAX;
	return l->c.round_ns ? l->round_ns : l->plan.wake_ns;
}

/* --- arrivals and decisions ----------------------------------------------- */

static void arrive(struct live *l)
{
	while (next_arrival(l) <= l->now_ns) {
		struct job *job = &l->jobs[l->n_arrived];

		job->state = JOB_WAITING;
		job->since_ns = l->now_ns;
		if (!l->n_active) /* no rounds were due */
			l->round_ns = round_from(l, job->arrival_ns);
		l->active[l->n_active++] = (uint32_t)l->n_arrived++;
		l->changed = l->unsaved = true;
	}
}

static int decide(struct live *l, struct err *err)
{
	struct view v = live_view(l);
	uint64_t from = tick_wall();
	int r;

	l->changed = false;
	l->asked_ns = l->now_ns;
	l->round_ns = round_from(l, l->now_ns + 1);
	plan_reset(&l->plan);
	if (!l->n_active)
		return 0;
	/* jobs are what their processes have made of them */
	schedule_refresh(&l->schedule);
	r = schedule_decide(&l->schedule, &v, &l->plan);
	hist_add(&l->decisions, tick_wall() - from);
	l->n_decisions++;
	/* a real process takes its own time to begin */
	l->plan.cold = false;
	if (r == 0)
		r = plan_apply(&l->plan, &l->cluster, l->jobs, l->n, l->now_ns,
			       err);
	l->unsaved = l->unsaved || l->plan.n;
	if (r < 0)
		err_prefix(err, "policy %s", l->c.policy->plugin->name);
	return r;
}

/* --- waiting -------------------------------------------------------------- */

/* Wall ns until an emulated time; TICK_NEVER. */
static uint64_t wall_until(const struct live *l, uint64_t at_ns)
{
	if (at_ns == UINT64_MAX)
		return TICK_NEVER;
	return at_ns <= l->now_ns
		       ? 0
		       : util_plus(util_whole((double)(at_ns - l->now_ns) *
					      l->c.time_scale),
				   1);
}

/* Until a process ends, a signal comes, or the time has come. 0 or -errno. */
static int sleep_until(struct live *l, uint64_t at_ns)
{
	uint64_t left = MIN(wall_until(l, at_ns), down_left(l));
	struct timespec ts;

	for (size_t i = 0; i < l->n_active; i++) {
		const struct process *p = &l->live[l->active[i]].process;

		l->fds[i] = (struct pollfd){ .fd = p->pidfd, .events = POLLIN };
		if (p->state == PROCESS_UNKNOWN)
			left = MIN(left, LOOK_AGAIN_NS);
	}
	l->fds[l->n_active] =
		(struct pollfd){ .fd = l->stop.fd, .events = POLLIN };
	ts = (struct timespec){ (time_t)(left / NS_PER_S),
				(long)(left % NS_PER_S) };
	if (ppoll(l->fds, l->n_active + 1, left == TICK_NEVER ? NULL : &ts,
		  NULL) < 0 &&
	    errno != EINTR)
		return -errno;
	move_clock(l);
	return 0;
}

static int see_ends(struct live *l, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n_active; i++) {
		uint32_t which = l->active[i];

		if (l->fds[i].revents ||
		    l->live[which].process.state == PROCESS_UNKNOWN)
			r = ends_look(l, which, false, err);
	}
	return r;
}

static bool any_process(const struct live *l)
{
	for (size_t i = 0; i < l->n_active; i++)
		if (l->live[l->active[i]].process.state != PROCESS_NONE)
			return true;
	return false;
}

/* --- the run -------------------------------------------------------------- */

/* Nothing will happen any more: a decision that changed nothing, without
 * processes, is like the next. */
static bool is_stuck(const struct live *l)
{
	return !any_process(l) && next_arrival(l) == UINT64_MAX &&
	       !l->changed && l->asked_ns == l->now_ns &&
	       down_left(l) == TICK_NEVER;
}

static int step(struct live *l, struct err *err)
{
	bool due;
	int r = 0;

	live_compact(l);
	arrive(l);
	down_end(l);
	due = next_decision(l) <= l->now_ns;
	if (due || (l->changed && !l->c.round_ns))
		r = decide(l, err);
	if (r == 0)
		r = remote_share(l);
	if (r == 0)
		r = carry_out(l, err);
	if (r < 0)
		return r;
	progress_update(&l->bar, l->n_done, NULL);
	if (l->n_done == l->n)
		return 0;
	if (is_stuck(l))
		return err_set(err, -EDEADLK,
			       "policy %s leaves %zu jobs waiting for ever",
			       l->c.policy->plugin->name, l->n - l->n_done);
	/* a job that could not be started waits again */
	r = sleep_until(l, l->changed && !l->c.round_ns
				   ? l->now_ns
				   : MIN(next_arrival(l), next_decision(l)));
	if (r == 0)
		r = see_ends(l, err);
	l->n_events++;
	return r;
}

/* End all processes, each with its checkpoint. */
static int end_all(struct live *l, struct err *err)
{
	int r = 0;

	l->closing = true;
	while (r == 0 && any_process(l)) {
		carry_stop_all(l);
		r = sleep_until(l, UINT64_MAX);
		if (r == 0)
			r = see_ends(l, err);
		/* a second signal hurries nobody */
		stop_came(&l->stop);
	}
	/* what they have done is in their checkpoints */
	for (size_t i = 0; i < l->n_active; i++) {
		struct job *job = &l->jobs[l->active[i]];

		if (job->state == JOB_RUNNING)
			plan_release(&l->cluster, job, job->since_ns,
				     JOB_WAITING);
	}
	live_compact(l);
	return r < 0 ? r : state_stop(l, err);
}

int live_run(struct live *l, struct err *err)
{
	int r = 0;

	progress_init(&l->bar, "jobs", l->n, l->c.progress);
	while (r == 0 && l->n_done < l->n) {
		r = step(l, err);
		if (r == 0 && stop_came(&l->stop))
			r = err_set(err, -EINTR,
				    "interrupted: %zu of %zu jobs are done; "
				    "the same command continues",
				    l->n_done, l->n);
	}
	progress_end(&l->bar);
	if (r < 0) {
		struct err more = { 0 };

		err_set(err, r, "%s: %s", l->c.dir, strerror(-r));
		if (end_all(l, &more) < 0)
			log_error("%s", more.text);
		return r;
	}
	return state_save(l, true, err);
}
