/* SPDX-License-Identifier: MIT */
/*
 * Emulated GPUs shared by several jobs. Pure: no clock, no lock, no waiting.
 * The caller passes the time (emulated ns, monotonic) and gets events with
 * their times, so the same code runs in gpemu-gpud and on an event clock.
 *
 *	join -> [queue] -> resident: memory is held on all its GPUs at once
 *	submit -> copy (the GPU's copy engine, one after the other)
 *	       -> ready -> runs when the scheduler says so -> done
 *	leave: at any time; memory and lanes are free at once
 *
 * How jobs share a GPU:
 *
 *	time	one iteration at a time, as the driver's time slicing: while k
 *		jobs have one that is ready, it runs at slicing(k) of its
 *		speed, and each of them waits for the others. Memory: the
 *		persistent parts of all jobs and the largest ephemeral part.
 *	lanes	memory by share/lanes.h. One iteration at a time, or one in
 *		each lane if the scheduler is `concurrent`.
 *	mps	as separate processes: each job holds its peak, all iterations
 *		that are ready run at once.
 *
 * Each of k concurrent iterations runs at speedup(k) / k of its own speed; the
 * default is 1 / k, no gain. An iteration of a job with several GPUs runs on
 * all of them at the pace of the slowest.
 *
 * A quota may have a part of a GPU's time, whether the others run or not: its
 * jobs share the GPU among themselves, at that part of their speed, and hold
 * their peaks; all other jobs share what such quotas leave. It has a part of
 * nothing else: its jobs wait for memory that others hold, and their copies
 * share the link.
 */
#ifndef GPEMU_SHARE_SHARE_H
#define GPEMU_SHARE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "emu/profile/profile_share.h"
#include "share/lanes.h"
#include "share/scheduler/scheduler.h"

enum {
	SHARE_MAX_GPUS = 64, /* bits of a mask */
	SHARE_DEPTH = 8,     /* iterations of a job in flight */
	SHARE_WHOLE = 1000,  /* all of a GPU's time */
	/* Of the busy time's ring: a second in tenths, the one that is being
	 * filled, and one in reserve */
	SHARE_SLOTS = 12,
};
#define SHARE_NEVER UINT64_MAX

enum share_mode { SHARE_TIME, SHARE_LANES, SHARE_MPS };

/* "time", "lanes", "mps"; -EINVAL with a text. */
int share_mode_parse(const char *s, enum share_mode *ret, struct err *err);
const char *share_mode_name(enum share_mode mode);

/* Time with at least one iteration (share/utilisation.h). */
struct share_busy {
	uint64_t ns;	   /* in all */
	uint64_t until_ns; /* counted */
	uint64_t slot_at;  /* tenth of a second that is being filled */
	uint64_t slot_ns[SHARE_SLOTS];
};

/* Memory of each GPU that some jobs may hold together, at their peaks, and its
 * time. */
struct share_quota {
	uint64_t bytes[SHARE_MAX_GPUS]; /* 0: not this GPU */
	uint64_t used[SHARE_MAX_GPUS];
	/* thousandths of the GPU's time; 0: as who has no quota. See
	 * share_set_part. */
	uint32_t part_milli[SHARE_MAX_GPUS];
	uint32_t n_running[SHARE_MAX_GPUS];	/* jobs with such a part */
	struct share_busy busy[SHARE_MAX_GPUS]; /* with these jobs */
};

/* The request of a job that joins. Memory is per GPU. */
struct share_want {
	uint64_t persistent_bytes, peak_bytes; /* peak: persistent included */
	uint32_t n_gpus;
	uint64_t iterations;   /* announced; 0: unknown */
	uint64_t iteration_ns; /* duration of one, alone */
	uint64_t load_ns;      /* its model's copy to the device */
	/* Stays until the job leaves; NULL: none. `bytes` may change, and
	 * share_admit follows. */
	struct share_quota *quota;
};

struct share_iteration {
	uint64_t id; /* the caller's */
	uint64_t work_ns;
	uint64_t copy_start, copy_end; /* the copy to the device */
	uint64_t start, end;	       /* the computation */
};

struct share_job {
	struct scheduler_job view;
	struct share_want want;
	void *owner;
	bool resident, running;
	bool held;     /* waits for all its GPUs and reserves them */
	uint64_t gpus; /* mask, while resident */
	uint32_t slot[SHARE_MAX_GPUS]; /* in the lanes of each of them */
	double left_ns;		       /* of the running iteration, alone */
	struct share_iteration queue[SHARE_DEPTH]; /* a ring */
	uint32_t head, n;
	uint64_t copied; /* mask: they have their batch of the next iteration */
	uint64_t copy_end[SHARE_MAX_GPUS]; /* of its last copy to each */
	uint64_t joined_ns, admitted_ns;
	uint64_t loaded_ns; /* its model is on its GPUs */
	/* totals */
	uint64_t iterations, wait_ns; /* wait: ready, but others ran */
	double service_ns;	      /* GPU time used */
};

struct share_gpu {
	struct lanes lanes;
	uint32_t n_running;
	uint32_t n_apart;    /* of these, have a part of the time */
	uint32_t part_milli; /* of its time, that quotas have */
	bool failed;	     /* no job is admitted to it */
	uint64_t copy_free;  /* the copy engine is */
	struct share_busy busy;
};

struct share_config {
	enum share_mode mode;
	const struct scheduler_ops *scheduler;
	const void *scheduler_options;	     /* its own; NULL: the defaults */
	const struct share_profile *speedup; /* NULL: no gain */
	const struct share_profile *slicing; /* NULL: switching is free */
	uint32_t n_gpus;
	uint32_t max_jobs;
	uint64_t memory_bytes; /* of each GPU, that jobs may fill */
	/* Must not call back. `admitted` is called from join or leave, `done`
	 * from advance; may be NULL. */
	void (*admitted)(void *ctx, struct share_job *job);
	void (*done)(void *ctx, struct share_job *job,
		     const struct share_iteration *it);
	void *ctx;
};

struct share {
	struct share_config config;
	uint64_t now;
	uint64_t n_joined, n_starts;
	struct share_gpu *gpus;	   /* n_gpus */
	struct share_job **jobs;   /* n_jobs, by arrival */
	struct share_job **sorted; /* scratch, as long */
	struct scheduler_job **views;
	uint32_t n_jobs;
	uint64_t n_iterations;
};

/* 0 or -ENOMEM. The config is copied; its pointers must stay valid. */
int share_new(const struct share_config *config, struct share **ret);
void share_free(struct share *s);

/*
 * Add a job. It is admitted at once if there is room, else it waits. -EINVAL:
 * no GPUs or more than exist, or a peak below the persistent part; -E2BIG: it
 * does not fit into an empty GPU, or its whole quota; -EAGAIN: max_jobs
 * reached; -ENOMEM; each with a text. Like share_submit and share_leave, call
 * it after share_advance to the same time.
 */
int share_join(struct share *s, const struct share_want *want, void *owner,
	       struct share_job **ret, struct err *err);
/* Remove the job in any state and free it. Others need not wait for its copies.
 */
void share_leave(struct share *s, struct share_job *job);

/*
 * Copy the batch of the next iteration to the nth GPU of a resident job, from
 * 0, before the others'. -EINVAL: there is no such GPU, or it has a batch;
 * others as share_submit.
 */
int share_copy(struct share *s, struct share_job *job, uint32_t nth,
	       uint64_t copy_ns, uint64_t *ret_start, uint64_t *ret_end);
/*
 * Submit the next iteration of a resident job: `copy_ns` to copy its batch to
 * the GPUs that have none, `work_ns` of computation. *ret has the times of the
 * copy. -EBUSY: SHARE_DEPTH are in flight; -EAGAIN: not admitted yet.
 */
int share_submit(struct share *s, struct share_job *job, uint64_t id,
		 uint64_t copy_ns, uint64_t work_ns,
		 struct share_iteration *ret);

/* Admit what waits and fits. */
void share_admit(struct share *s);
/* The quota gets so many thousandths of the GPU's time. -EBUSY: one of its jobs
 * is there, or it would leave no time to a job there that has no part; -ENOSPC:
 * more than the other quotas leave; each with a text. After share_advance. */
int share_set_part(struct share *s, struct share_quota *q, uint32_t gpu,
		   uint32_t milli, struct err *err);
/* Nobody joins with the quota any more: its parts are free. Its jobs stay: the
 * caller ends them. */
void share_end_parts(struct share *s, const struct share_quota *q);
/* The GPU fails, or is repaired. Its jobs stay: the caller ends them. */
void share_mark(struct share *s, uint32_t gpu, bool failed);

/* Does another job wait for a resource that this one holds idle: memory of a
 * GPU that could admit it, or the turn on a GPU under an exclusive scheduler?
 */
bool share_blocks(const struct share *s, const struct share_job *job);

/* The time of the next event; SHARE_NEVER: none without a call. */
uint64_t share_next(const struct share *s);
/* Process all events until `now`, in order. */
void share_advance(struct share *s, uint64_t now);

/* Is the job on this GPU? */
static inline bool share_on(const struct share_job *job, uint32_t gpu)
{
	return job->gpus >> gpu & 1;
}
/* The job's lane on a GPU that it is on. */
uint32_t share_lane(const struct share *s, const struct share_job *job,
		    uint32_t gpu);
#endif
