/* SPDX-License-Identifier: MIT */
/* A live run: what it is asked to do, its jobs, and what their processes
 * have. */
#ifndef GPEMU_SCHED_LIVE_RUN_H
#define GPEMU_SCHED_LIVE_RUN_H

#include <jansson.h>
#include <poll.h>

#include "common/program/child.h"
#include "common/program/progress.h"
#include "common/util.h"
#include "sched/chart/history.h"
#include "sched/core/run.h"
#include "sched/live/process.h"
#include "sched/trace/workload.h"

struct live_config {
	struct sched_run_config of;
	const struct sched_workload *workload; /* whose jobs these are */
	double time_scale;		       /* wall ns per ns */
	uint64_t step_ns;  /* work of a step, if no speed has it; 0: unknown */
	uint64_t grace_ns; /* wall: for a checkpoint */
	uint64_t retries;  /* of a job that fails */
	bool leases;	   /* cores and caches change while jobs run */
	const char *mount; /* of each job, with words (argv.h); NULL: none */
	/* the socket of gpemu-gpud, with {node} or for all nodes; NULL: none */
	const char *gpu_server;
	enum progress_mode progress;
	const char *dir;      /* exists */
	char *const *command; /* ended by NULL */
	/* What another run with the same `dir` must have in common. */
	const json_t *identity;
};

struct live_job {
	struct process process;
	struct sched_part *held; /* what its process has; owned */
	size_t n_held;
	uint32_t group;	     /* with which its process takes turns; 0: alone */
	uint32_t told_cores; /* the process knows; 0: it is not known */
	uint64_t told_mib;   /* its cache knows, as well */
	/* remote.h. What its mount knows, bytes; UINT64_MAX: not known */
	uint64_t told_cache, told_remote;
	uint64_t seen_hits, seen_misses; /* bytes, at the last look */
	double hit_share;		 /* of what it read before that */
	bool stopping;			 /* the process was asked to end */
	uint64_t lost_ns; /* wall: has no keeper since then; 0: has one */
	bool failed;	  /* it ended so, and is not tried again */
	uint32_t n_ended; /* processes whose end was seen */
	uint32_t n_failed;
	uint64_t steps;
};

struct live_down;

struct live {
	struct live_config c;
	struct stop stop;
	struct progress bar;
	struct sched_run run;	 /* as the policy sees it */
	struct live_job *live;	 /* of each job */
	struct cluster held;	 /* what processes have */
	struct live_down *downs; /* of each node (gpus.h) */
	/* run.now_ns is the time at `wall_ns` and, for times of other
	 * processes, at `real_ns` */
	uint64_t wall_ns;
	int64_t real_ns;
	bool unsaved;	 /* the state on disk is older */
	bool clock_runs; /* and the clock on disk says so */
	bool resumed, closing;
	uint32_t last_group;
	uint64_t n_failed, n_leases;
	uint64_t n_storage; /* changes of the caches and bandwidths of jobs
			     * that run */
	/* of what processes had, also before a resumption */
	struct history history;
	/* GPUs that processes had, times time; of the time between a kill and a
	 * resumption, during which nobody counted, `away_ns` is still to be
	 * added. */
	double use_ns;
	uint64_t away_ns;
	struct pollfd *fds; /* of the active jobs, and of the stop signals */
};

static inline struct live *live_of(struct sched_run *r)
{
	return container_of(r, struct live, run);
}

/* GPUs that processes have; those who take turns have theirs together. */
static inline double live_gpus(const struct live *l)
{
	return (double)(l->held.whole.gpu_milli - l->held.free.gpu_milli) /
	       GPU_MILLI;
}

/* Jobs that are done are active no more. */
static inline void live_compact(struct live *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->run.n_active; i++)
		if (l->run.jobs[l->run.active[i]].state != JOB_DONE)
			l->run.active[n++] = l->run.active[i];
	l->run.n_active = n;
}

#endif
