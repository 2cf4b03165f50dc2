/* SPDX-License-Identifier: MIT */
/*
 * Contract of a scheduling policy: which jobs run now.
 *
 * A policy is called with the state of the cluster and the time, and returns
 * actions. It reads no clock, and changes nothing but its own state, so that
 * one policy runs simulated and live. Most are an order of the jobs, in which
 * the queue below serves them.
 */
#ifndef GPEMU_SCHED_CORE_SCHEDULE_H
#define GPEMU_SCHED_CORE_SCHEDULE_H

#include "sched/core/placement.h"
#include "sched/core/queue.h"
#include "sched/core/storage.h"

/* What a policy sees. */
struct view {
	const struct cluster *cluster;
	const struct sched_job *jobs;
	size_t n_jobs;
	const uint32_t *active; /* arrived and not done, by arrival */
	size_t n_active;
	size_t n_users;
	uint64_t now_ns;
};

struct sched_schedule;

/* When the key of a job may change. The less often, the less there is to sort:
 * with KEY_FALLS a decision does not look at all jobs. */
enum key_motion {
	KEY_MOVES, /* at any time */
	KEY_RESTS, /* not while the job waits */
	KEY_FALLS, /* as KEY_RESTS, and it never rises while the job runs */
};

struct schedule_ops {
	struct plugin plugin;
	/* A job that the order puts behind others may lose its GPUs. */
	bool preempts;
	/* Jobs whose stages are known take turns (ACTION_GROUP). */
	bool groups;
	/* A job that does not fit holds up those behind it. */
	bool in_order;
	/* No job waits for ever, whatever arrives after it. */
	bool no_starvation;
	/* It starts a process for each job: cold_ns of struct sched_job counts.
	 */
	bool cold;
	/* It decides on places itself: no placement may be chosen. */
	bool places;
	enum storage_rule storage;
	/* The order of the queue, least first; ties by arrival. */
	double (*key)(const struct sched_job *job, uint64_t now_ns);
	enum key_motion key_motion;
	/* Instead, where a key depends on more than its job: s->keys of all
	 * active jobs, at each decision. They move at any time. */
	void (*keys)(struct sched_schedule *s, const struct view *v);
	/* When the key of a job that runs from now on will jump; UINT64_MAX:
	 * never. NULL: no key jumps. */
	uint64_t (*wake)(const struct sched_job *job, uint64_t now_ns);
	/* NULL: the queue, ordered by `key`. -ENOMEM. */
	int (*decide)(struct sched_schedule *s, const struct view *v,
		      struct sched_plan *ret);
	/* Called once before the rest. -ENOMEM; -EINVAL with a text. What it
	 * takes from schedule_array() needs no `end`. */
	int (*begin)(struct sched_schedule *s, const struct view *v,
		     struct err *err);
	void (*end)(struct sched_schedule *s);
};

extern const struct plugin *const schedule_table[];

struct sched_schedule {
	const struct schedule_ops *ops;
	const void *options; /* borrowed; its own; NULL: it has none */
	void *state;
	struct schedule_array *arrays; /* of the policy */
	bool no_memory;		       /* an array could not be had */
	struct rng rng;
	struct placement placement;
	struct cluster scratch; /* to try placements on */
	struct queue queue;
	struct queued *sorted; /* by schedule_queue */
	double *keys;	       /* by job, where the policy has `keys` */
	struct queued *behind; /* running jobs that may have to give way */
	uint32_t *chosen;
	struct sched_part *parts; /* of one job */
	struct sched_plan all;
	size_t sorted_allocated, behind_allocated, chosen_allocated;
	uint64_t n_decisions;
};

/*
 * A policy for a workload (of the view: jobs, users, cluster) with a placement
 * and their options. -ENOMEM; -EINVAL with a text. Call schedule_fini, failed
 * or not.
 */
int schedule_init(struct sched_schedule *s, const struct schedule_ops *ops,
		  const void *options, const struct placement_ops *placement,
		  const void *placement_options, uint64_t seed,
		  const struct view *v, struct err *err);
void schedule_fini(struct sched_schedule *s);
/*
 * For a policy's `begin`: `n` items of `size` bytes, all zeros, which live as
 * long as the policy. NULL: no memory, and schedule_init() will say so: a
 * `begin` that does not touch them need not look.
 */
void *schedule_array(struct sched_schedule *s, size_t n, size_t size);
/* For a policy's own `decide`: s->sorted, all active jobs if they may be
 * preempted, else those that wait. -ENOMEM. */
int schedule_queue(struct sched_schedule *s, const struct view *v,
		   size_t *ret_n);
/*
 * For a policy that places by itself: start the waiting jobs that are not its
 * own where the placement finds room in s->scratch, first come, first served.
 * -ENOMEM.
 */
int schedule_others(struct sched_schedule *s, const struct view *v,
		    bool (*is_own)(const struct sched_job *job),
		    struct sched_plan *ret);
/* Jobs are not what plans have made of them: a live one failed, or repeats
 * steps. The next decision looks at all of them. */
void schedule_refresh(struct sched_schedule *s);
/* What to do now: `ret` is reset first. The plan must be carried out before the
 * next call. -ENOMEM. */
int schedule_decide(struct sched_schedule *s, const struct view *v,
		    struct sched_plan *ret);
/* The first round not before a time; 0: there are no rounds. */
static inline uint64_t schedule_round(uint64_t round_ns, uint64_t at_ns)
{
	return round_ns ? (at_ns + round_ns - 1) / round_ns * round_ns : 0;
}

#endif
