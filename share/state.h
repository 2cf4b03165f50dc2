/* SPDX-License-Identifier: MIT */
/* The state of shared GPUs: what share/share.h says of them, in structs. */
#ifndef GPEMU_SHARE_STATE_H
#define GPEMU_SHARE_STATE_H

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

/* Is the job on this GPU? */
static inline bool share_on(const struct share_job *job, uint32_t gpu)
{
	return job->gpus >> gpu & 1;
}

#endif
