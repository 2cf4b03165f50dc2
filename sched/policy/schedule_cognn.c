/* SPDX-License-Identifier: MIT */
/*
 * CoGNN: jobs that train graph neural networks share a GPU, in groups whose
 * estimated memory fits it. Workers are warm: they have the CUDA context and
 * the libraries before the job comes. Source: Sun et al., "CoGNN", SC 2022,
 * section 4; the order of groups as in its repository, guessmewho233/
 * CoGNN_info_for_SC22, software/cognn/policy.py.
 */
#include "common/conf/conf.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "sched/policy/groups.h"

struct cognn_options {
	char *order;
	uint64_t workers, budget_bytes;
};

/* As enum group_order. */
static const char *const orders[] = { "base", "lmcf", "bmc" };

static int check_order(const void *object, struct err *err)
{
	int i = WORD_FIND(orders, "order", *(char *const *)object, err);

	return MIN(i, 0);
}

static const struct conf_field cognn_fields[] = {
	{ CONF_KEY(order, CONF_STRING, struct cognn_options),
	  .check = check_order,
	  .help = "order of jobs in groups: base (arrival), lmcf (least memory "
		  "first), bmc (least and most in turn)" },
	{ CONF_KEY(workers, CONF_UINT, struct cognn_options), .min = 1,
	  .max = GROUPS_MEMBERS_MAX,
	  .help = "maximum number of jobs in a group" },
	{ "budget", CONF_SIZE, offsetof(struct cognn_options, budget_bytes),
	  .max = 0x1p60,
	  .help = "memory of the GPU for a group; 0: all of it" },
	{ 0 },
};

static const struct cognn_options cognn_defaults = { .order = (char *)"lmcf",
						     .workers = 2 };

static int cognn_begin(struct sched_schedule *s, const struct view *v,
		       struct err *err)
{
	const struct cognn_options *o = s->options;

	(void)v;
	*(struct sched_groups *)s->state = (struct sched_groups){
		.order = (enum group_order)WORD_FIND(orders, "order", o->order,
						     err),
		.most = o->workers,
		.budget_mib = o->budget_bytes / MIB,
	};
	return 0;
}

static int cognn_decide(struct sched_schedule *s, const struct view *v,
			struct sched_plan *ret)
{
	return groups_decide(s, v, s->state, ret);
}

const struct schedule_ops schedule_cognn = {
	.plugin = { .name = "cognn",
		    .summary = "CoGNN: groups of jobs whose memory fits the "
			       "GPU that they share",
		    .state_size = sizeof(struct sched_groups),
		    .options = cognn_fields,
		    .defaults = &cognn_defaults,
		    .options_size = sizeof(struct cognn_options) },
	.places = true,
	.begin = cognn_begin,
	.decide = cognn_decide,
};
