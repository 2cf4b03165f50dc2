/* SPDX-License-Identifier: MIT */
/*
 * Jobs: what they ask for, how fast they are with what they get, and how far
 * they are.
 *
 * Work is time: the ns that the job runs with its reference allocation. With
 * another one it runs `rate` times as fast.
 */
#ifndef GPEMU_SCHED_CORE_JOB_H
#define GPEMU_SCHED_CORE_JOB_H

#include "sched/core/cluster.h"

enum { SPEED_POINTS_MAX = 32 };

/* The clock ends there: 292 years. Sums of two times fit 64 bits. */
#define JOB_TIME_END (1ull << 63)

/* What an iteration uses, in this order. */
enum { STAGE_STORAGE, STAGE_CPU, STAGE_GPU, STAGE_NETWORK, STAGES };

/*
 * The speed of a model over the CPUs of one of its GPUs, 1 with those of its
 * reference allocation: straight lines between the points, proportional to the
 * CPUs below the first, and constant beyond the last. That is with all the
 * memory that it can use; with less it is no faster than 1, and with less than
 * the reference node has per GPU too it is slower in proportion.
 */
struct speed {
	const char *name; /* borrowed */
	double work_per_iteration_ns;
	double start_ns;	     /* work before the first iteration */
	double cold_ns;		     /* struct sched_job */
	uint64_t busy_half_mib;	     /* memory of a job that keeps half of a GPU
				      * busy; 0: not known */
	double memory_mib;	     /* per GPU: all that it can use */
	double reference_memory_mib; /* per GPU of the reference allocation */
	size_t n;		     /* 0: the same with any CPUs and memory */
	double cpus[SPEED_POINTS_MAX], speed[SPEED_POINTS_MAX];
};

enum job_state {
	JOB_ABSENT, /* not yet arrived */
	JOB_WAITING,
	JOB_RUNNING,
	JOB_DONE,
};

struct sched_job {
	/* the workload */
	char *name;
	uint32_t user, class;	   /* indices into names of the workload */
	const struct speed *speed; /* NULL: 1, whatever CPUs and memory */
	uint64_t arrival_ns;
	double work_ns;	    /* on GPUs */
	double cpu_work_ns; /* without, on `alone_cpu_milli`; 0: impossible */
	uint32_t alone_cpu_milli;
	uint32_t n_gpus, gpu_milli; /* thousandths of each; < 1000 of one */
	uint32_t cpu_milli;
	uint64_t memory_mib;
	/* On a GPU that it shares (sched/core/contend.h): its memory there,
	 * and how much of the GPU it keeps busy alone, up to 1. 0: not known */
	uint64_t gpu_memory_mib;
	double gpu_busy;
	/* what it reads in an epoch, and at full speed; 0: not known */
	double dataset_mib, read_mib_s;
	/* work that a process of its own takes before it can begin */
	double cold_ns;
	uint64_t models; /* allowed models of GPUs, a bit each; 0: any */
	uint32_t shape;	 /* jobs that ask for the same have the same number */
	/* An iteration of the job alone on a node, and its stages, which may
	 * overlap in it; 0: not known. Storage and CPU may be known together
	 * only: they are 0 then. */
	double iteration_ns, stage_ns[STAGES], read_prep_ns;
	double gradient_mib; /* reduced between nodes in each iteration */
	/* how far it is */
	enum job_state state;
	double done;	 /* share of the work, as of `since_ns` */
	double gpu_ns;	 /* attained: GPUs times time, as well */
	uint64_t run_ns; /* time on resources, as well */
	uint64_t since_ns;
	double rate;		   /* share of the work per ns */
	uint64_t start_ns, end_ns; /* of the first run and the last */
	uint32_t n_preempted, n_moved;
	/* sched/core/storage.h: its part of the cache, how much of its data is
	 * there, and of the bandwidth */
	double cache_mib, cached_mib, remote_mib_s;
	struct sched_part *parts; /* what it has; owned */
	size_t n_parts;
	/* Those of a group take turns on the same parts, of which each has a
	 * copy: the next one, around the ring; NULL: it is alone. */
	struct sched_job *mate;
};

/* The speed with so many CPUs and so much memory per GPU. */
double speed_of(const struct speed *s, double cpus, double memory_mib);
/*
 * Share of the work per ns with these parts; 0: none gets done. On several
 * nodes an iteration also takes what the backward pass does not hide of the
 * reduction of gradients over the slowest of their links.
 */
double job_rate(const struct cluster *c, const struct sched_job *job,
		const struct sched_part *parts, size_t n);
/* The jobs of its group, itself first: how many, 1 if it is alone. */
size_t job_group(const struct sched_job *job,
		 const struct sched_job *ret[GROUP_MAX]);
/* Does it have these parts, and no others? */
bool job_holds(const struct sched_job *job, const struct sched_part *parts,
	       size_t n);
/* Bring a running job's progress up to `now_ns`. */
void job_advance(struct sched_job *job, uint64_t now_ns);

/* GPUs that its parts hold, parts of a GPU counted as such. */
double job_gpus_held(const struct sched_job *job);
/* As of `now_ns`, at the reference speed: ns of work that are left, the same
 * times thousandths of GPUs, and GPU time attained. */
double job_left(const struct sched_job *job, uint64_t now_ns);
double job_service_left(const struct sched_job *job, uint64_t now_ns);
double job_attained(const struct sched_job *job, uint64_t now_ns);
/* When it will be done if nothing changes, JOB_TIME_END at the latest;
 * UINT64_MAX: it does not run, or makes no progress. */
uint64_t job_due(const struct sched_job *job);

/* Thousandths of GPUs that it asks for. */
static inline uint64_t job_gpu_milli(const struct sched_job *job)
{
	return (uint64_t)job->n_gpus * job->gpu_milli;
}

/* Whether its stages are known, and its GPUs all its own. */
static inline bool job_interleaves(const struct sched_job *job)
{
	double ns = job->read_prep_ns;

	for (int i = 0; i < STAGES; i++)
		ns += job->stage_ns[i];
	return job->n_gpus && job->gpu_milli == GPU_MILLI &&
	       job->iteration_ns > 0 && ns > 0;
}

/* Does it run on GPUs of a node that is down? They are nobody else's, and it
 * has them until it ends: policies leave it alone. */
bool job_is_stranded(const struct cluster *c, const struct sched_job *job);

/* Do both ask for the same, so that they may be in one group? */
static inline bool job_alike(const struct sched_job *a,
			     const struct sched_job *b)
{
	return a->n_gpus == b->n_gpus && a->gpu_milli == b->gpu_milli &&
	       a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib &&
	       a->models == b->models;
}

static inline bool job_allows(const struct sched_job *job,
			      const struct sched_node *n)
{
	return !job->n_gpus || !job->models || job->models >> n->model & 1;
}

#endif
