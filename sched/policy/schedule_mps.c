/* SPDX-License-Identifier: MIT */
/*
 * Processes that share a GPU through CUDA MPS: a fixed number at a time, in
 * the order of their arrival, without a look at their memory. What CoGNN
 * compares itself with; its script starts pairs, and the next pair when both
 * have ended (software/mps/run_mps.sh of its repository).
 */
#include "common/conf/conf.h"
#include "sched/policy/groups.h"

struct mps_options {
	uint64_t workers;
};

static const struct conf_field mps_fields[] = {
	{ CONF_KEY(workers, CONF_UINT, struct mps_options), .min = 1,
	  .max = GROUPS_MEMBERS_MAX,
	  .help = "maximum number of jobs on a "
		  "GPU" },
	{ 0 },
};

static const struct mps_options mps_defaults = { .workers = 2 };

static int mps_decide(struct sched_schedule *s, const struct view *v,
		      struct sched_plan *ret)
{
	const struct mps_options *o = s->options;
	struct sched_groups g = { .order = GROUPS_ARRIVAL,
				  .most = o->workers,
				  .budget_mib = UINT64_MAX };

	return groups_decide(s, v, &g, ret);
}

const struct schedule_ops schedule_mps = {
	.plugin = { .name = "mps",
		    .summary = "processes share a GPU, whatever memory they "
			       "need",
		    .options = mps_fields,
		    .defaults = &mps_defaults,
		    .options_size = sizeof(struct mps_options) },
	.cold = true,
	.places = true,
	.decide = mps_decide,
};
