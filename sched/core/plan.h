/* SPDX-License-Identifier: MIT */
/*
 * Actions: what a policy decides. A driver carries them out, on simulated jobs
 * or on real ones.
 */
#ifndef GPEMU_SCHED_CORE_PLAN_H
#define GPEMU_SCHED_CORE_PLAN_H

#include "sched/core/job.h"

enum action_kind {
	ACTION_START,  /* a waiting job gets parts */
	ACTION_STOP,   /* a running job loses them and waits */
	ACTION_CHANGE, /* a running job gets other parts: moved or resized */
	ACTION_GROUP,  /* a job, running or not, joins another on its parts */
};

struct action {
	enum action_kind kind;
	uint32_t job;
	size_t first, n_parts; /* of the plan's parts */
	uint32_t with;	       /* ACTION_GROUP: whom it joins */
};

struct sched_plan {
	struct action *actions;
	size_t n, allocated;
	struct sched_part *parts;
	size_t n_parts, parts_allocated;
	bool cold; /* each start is that of a new process */
	/* decide again then, even if nothing happens; UINT64_MAX: no need */
	uint64_t wake_ns;
};

/* Add an action; the parts are copied. -ENOMEM. */
int plan_add(struct sched_plan *p, enum action_kind kind, uint32_t job,
	     const struct sched_part *parts, size_t n_parts);
/* Start a waiting job with these parts, if there are any, and take them from
 * `c`, on which the plan is tried. -ENOMEM. */
int plan_start(struct sched_plan *p, struct cluster *c, uint32_t job,
	       const struct sched_part *parts, size_t n_parts);
int plan_group(struct sched_plan *p, uint32_t job, uint32_t with);
void plan_reset(struct sched_plan *p);
void plan_fini(struct sched_plan *p);

/*
 * Carry the plan out at `now_ns`: all is given back before any is taken, and
 * groups are made last. The parts of a group are free when its last job has
 * left them. Progress of the jobs whose rate changes is brought up to now.
 * -EINVAL with a text: a job is in the wrong state or named twice, it gets
 * other GPUs than it asked for, or what is not free, or joins a job with which
 * it cannot take turns; the state is then undefined. -ENOMEM.
 */
int plan_apply(const struct sched_plan *p, struct cluster *c,
	       struct sched_job *jobs, size_t n_jobs, uint64_t now_ns,
	       struct err *err);
/* Take all from a job: it is done, or must wait. Its group goes on without. */
void plan_release(struct cluster *c, struct sched_job *job, uint64_t now_ns,
		  enum job_state state);

#endif
