/* SPDX-License-Identifier: MIT */
/*
 * A run of a policy on jobs, on whatever clock. A step of it:
 *
 *	wait	until something happens; jobs end
 *	arrive	jobs whose time has come
 *	decide	the policy's plan changes the jobs
 *	share	caches, bandwidths and speeds follow
 *	carry	so does what the jobs stand for
 *
 * It reads no clock but for the cost of decisions. A driver waits, and carries
 * out: on the event clock (sched/sim.h), or with processes in real time
 * (sched/live/live.h). Single threaded.
 */
#ifndef GPEMU_SCHED_CORE_RUN_H
#define GPEMU_SCHED_CORE_RUN_H

#include "common/conf/plugin_choice.h"
#include "common/hist.h"
#include "sched/core/contend.h"
#include "sched/core/schedule.h"

struct sched_run;

/* What drivers differ in. -errno with a text. */
struct sched_run_ops {
	/* Until something happens, at run_next() at the latest: the time moves,
	 * and jobs end (run_end). */
	int (*wait)(struct sched_run *r, struct err *err);
	/* Carry out r->plan, by plan_apply(). */
	int (*apply)(struct sched_run *r, struct err *err);
	/* How much of the data of each job is cached. NULL: all that its cache
	 * can hold. */
	void (*look)(struct sched_run *r);
	/* job->rate has changed because of jobs that share its GPU, cache or
	 * storage. NULL: nothing to do. */
	void (*rated)(struct sched_run *r, uint32_t job);
	/* The step is decided: make what the jobs stand for follow. NULL:
	 * nothing to do. */
	int (*carry)(struct sched_run *r, struct err *err);
};

/* What a run is of. Borrowed. */
struct sched_run_config {
	const struct cluster *cluster; /* all free */
	const struct sched_job *jobs;  /* by arrival */
	size_t n_jobs, n_users;
	const struct plugin_choice *policy, *placement;
	uint64_t seed;
	uint64_t round_ns; /* decisions at its multiples; 0: at each event */
};

struct sched_run {
	const struct sched_run_ops *ops;
	/* owned, with their parts; the names are borrowed */
	struct sched_job *jobs;
	size_t n, n_users, n_arrived, n_done;
	uint32_t *active; /* arrived, and not forgotten; ascending */
	size_t n_active;
	struct cluster cluster;
	struct contention contention;
	struct sched_schedule schedule;
	struct sched_plan plan;
	uint64_t now_ns;
	uint64_t every_ns; /* from a round to the next; 0: there are none */
	uint64_t round_ns; /* the next round */
	uint64_t asked_ns; /* last decision; UINT64_MAX: none */
	bool changed;	   /* since then */
	bool arrived;	   /* jobs, in this step */
	uint64_t n_decisions, n_events;
	struct hist decisions; /* wall time of each */
};

/* The time is that of the first arrival. -ENOMEM; -EINVAL with a text. Call
 * run_fini, failed or not. */
int run_init(struct sched_run *r, const struct sched_run_ops *ops,
	     const struct sched_run_config *c, struct err *err);
void run_fini(struct sched_run *r);
/* Until all jobs are done. -EINVAL with a text: the policy breaks its contract;
 * -ENOMEM; those of the driver. */
int run_steps(struct sched_run *r, struct err *err);

struct view run_view(const struct sched_run *r);
/* The next arrival; UINT64_MAX: there is none. */
uint64_t run_next_arrival(const struct sched_run *r);
/* That, or a decision although nothing happens; UINT64_MAX: neither. */
uint64_t run_next(const struct sched_run *r);
/* A job was done at a time. It stays in `active` until the driver forgets it:
 * before its `wait` returns, or, if it was done in `carry`, in the next `wait`.
 */
void run_end(struct sched_run *r, uint32_t job, uint64_t at_ns);

#endif
