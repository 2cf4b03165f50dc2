/* SPDX-License-Identifier: MIT */
#include "sched/place/synergy.h"

#include "common/util.h"

const struct conf_field synergy_fields[] = {
	{ CONF_KEY(profile, CONF_BOOL, struct synergy_options),
	  .help = "find the CPUs that a job can use by profiling, instead of "
		  "knowing them" },
	{ 0 },
};

const struct synergy_options synergy_defaults = { 0 };

/* Profiling stops where more CPUs gain less. Source: the paper, section 4.1. */
#define GAIN 1.1

uint32_t synergy_profile(const struct speed *s, uint32_t max, unsigned *ret_n)
{
	double best = speed_of(s, max, s->memory_mib);
	uint32_t low = 0, high = max;

	*ret_n = 1;
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		++*ret_n;
		if (best < GAIN * speed_of(s, mid, s->memory_mib))
			high = mid;
		else
			low = mid;
	}
	return high;
}

/* CPUs per GPU beyond which the job gets no faster. */
static double saturating(const struct speed *s)
{
	size_t i = s->n - 1;

	while (i && s->speed[i - 1] >= s->speed[s->n - 1])
		i--;
	return s->cpus[i];
}

struct demand synergy_fair(const struct sched_node *node, struct demand d)
{
	struct demand share = placement_share(node);

	return (struct demand){ MIN(d.cpu_milli, share.cpu_milli),
				MIN(d.memory_mib, share.memory_mib) };
}

struct demand synergy_demand(const struct sched_node *node,
			     const struct sched_job *job, bool profile)
{
	uint32_t gpus = MIN(job->n_gpus, node->n_gpus);
	struct demand d, most;

	if (!job->speed || !gpus)
		return placement_demand(node, job);
	most = (struct demand){ node->cpu_milli / (double)gpus,
				(double)node->memory_mib / gpus };
	d.cpu_milli = saturating(job->speed) * 1e3;
	d.memory_mib = job->speed->memory_mib;
	if (profile && most.cpu_milli >= 1e3) {
		unsigned n;

		d.cpu_milli =
			1e3 * synergy_profile(job->speed,
					      (uint32_t)(most.cpu_milli / 1e3),
					      &n);
	}
	return (struct demand){ MIN(d.cpu_milli, most.cpu_milli),
				MIN(d.memory_mib, most.memory_mib) };
}
