/* SPDX-License-Identifier: MIT */
/*
 * Each job gets all the CPU and memory that it can use, or waits. GPUs may be
 * idle because CPUs are not. Source: Mohan et al., "Synergy", OSDI 2022,
 * section 5.1, Synergy-GREEDY.
 */
#include "sched/place/synergy.h"

static struct demand greedy_demand(const struct placement *p,
				   const struct sched_node *node,
				   const struct sched_job *job)
{
	const struct synergy_options *o = p->options;

	return synergy_demand(node, job, o->profile);
}

const struct placement_ops placement_greedy = {
	.plugin = { .name = "greedy",
		    .summary = "Synergy-GREEDY: all the CPU and memory that a "
			       "job can use, or none",
		    .options = synergy_fields,
		    .defaults = &synergy_defaults,
		    .options_size = sizeof(struct synergy_options) },
	.anew = true,
	.demand = greedy_demand,
};
