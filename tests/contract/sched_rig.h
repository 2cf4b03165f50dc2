/* SPDX-License-Identifier: MIT */
/* A workload on a cluster, and a policy that is run on it. A failure fails the
 * test. */
#ifndef GPEMU_TESTS_CONTRACT_SCHED_RIG_H
#define GPEMU_TESTS_CONTRACT_SCHED_RIG_H

#include "sched/sim.h"

enum { N_JOBS = 60 };

struct rig {
	struct cluster cluster;
	struct sched_workload workload;
};

/* Add nodes, as --nodes has them. */
void rig_nodes(struct rig *rig, const char *text);
/* Add a job, of the class "a", or "wide" if it has several GPUs; it takes four
 * times as long on two CPUs. */
void rig_job(struct rig *rig, double arrival_s, double work_s, uint32_t gpus,
	     uint32_t milli, const char *user);
/* What the last job that was added needs of a GPU is known. */
void rig_load(struct rig *rig, double busy, uint64_t memory_mib, double cold_s);
/* N_JOBS jobs of all kinds, which all placements and policies can serve. */
void rig_begin(struct rig *rig, uint64_t seed);
void rig_end(struct rig *rig);

/* Run a policy, by its name with options, or its hooks; the jobs are left in
 * the only cell of `sim`. */
void rig_run(struct rig *rig, const char *policy, const char *placement,
	     uint64_t round_s, struct sched_sim *sim);
void rig_run_ops(struct rig *rig, const struct schedule_ops *ops,
		 const char *placement, uint64_t round_s,
		 struct sched_sim *sim);

#endif
