/* SPDX-License-Identifier: MIT */
/*
 * Equal GPU time: the job with the least GPU time since the last admission
 * (`anew`), or since its own. By default an admission resets the times, so that
 * a new job does not run alone until it has caught up. Source: Salus,
 * src/execution/scheduler/ impl/fair.cpp.
 */
#include "common/conf/conf.h"
#include "share/scheduler/scheduler.h"

struct options {
	bool anew;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(anew, CONF_BOOL, struct options), .arg = "on|off",
	  .help = "reset the GPU time of all jobs when one is admitted" },
	{ 0 },
};

static const struct options defaults = { .anew = true };

static int order(const struct scheduler_job *a, const struct scheduler_job *b)
{
	int c = SCHEDULER_COMPARE(a->key, b->key);

	return c ? c : SCHEDULER_COMPARE(a->last_start, b->last_start);
}

static void admitted(struct scheduler_job *const jobs[], size_t n,
		     const void *options)
{
	const struct options *o = options ? options : &defaults;

	for (size_t i = 0; o->anew && i < n; i++)
		jobs[i]->key = 0;
}

static void ran(struct scheduler_job *job, double gpu_ns)
{
	job->key += gpu_ns;
}

const struct scheduler_ops scheduler_fair = {
	.plugin = { .name = "fair",
		    .summary = "equal GPU time for all jobs",
		    PLUGIN_OPTIONS(fields, defaults) },
	.order = order,
	.admitted = admitted,
	.ran = ran,
};
