/* SPDX-License-Identifier: MIT */
#include "service/decide/fastflow.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "common/util.h"

/* Of G over L. Source: the paper, no offloading for a gain below 10 %; and
 * cpu_bottleneck_threshold in fastflow/model.py */
static const double threshold[] = {
	[FASTFLOW_PAPER] = 1.1,
	[FASTFLOW_CODE] = 1.3,
};

static bool is_rate(double v)
{
	return isfinite(v) && v >= 0;
}

static bool valid(const struct fastflow_profile *p)
{
	bool ok = is_rate(p->gpu) && is_rate(p->local) && is_rate(p->prep_cpu);

	for (int i = 0; i < FASTFLOW_SPLITS; i++)
		ok = ok && is_rate(p->split[i].rate) &&
		     is_rate(p->split[i].receive_cpu);
	return ok && p->gpu > 0 && p->local > 0 && p->prep_cpu > 0 &&
	       p->remote_nodes;
}

/* FASTFLOW_SPLITS: none was measured. */
static int best_split(const struct fastflow_profile *p)
{
	int best = FASTFLOW_SPLITS;
	double most = -INFINITY;

	for (int i = 0; i < FASTFLOW_SPLITS; i++) {
		double spared = 1 - p->split[i].receive_cpu / p->prep_cpu;
		double rate = p->local * spared + p->split[i].rate;

		if (p->split[i].rate > 0 && rate > most) {
			most = rate;
			best = i;
		}
	}
	return best;
}

static double part_of_code(double gpu, double local, double offered,
			   double needed)
{
	double off = MAX(offered, needed);

	if (local + offered < gpu)
		return offered / (local + offered);
	if (local > offered)
		off = (offered + needed) / 2;
	return MIN(off / gpu, 1);
}

int fastflow_decide(const struct fastflow_profile *p, enum fastflow_form form,
		    struct fastflow_decision *ret)
{
	double rate, receive;
	int s;

	*ret = (struct fastflow_decision){ 0 };
	if (!valid(p))
		return -EINVAL;
	s = best_split(p);
	if (s == FASTFLOW_SPLITS || p->gpu / p->local < threshold[form])
		return 0;
	rate = p->split[s].rate;
	receive = p->split[s].receive_cpu / p->prep_cpu;
	ret->split = (enum fastflow_split)s;
	ret->upper = rate;
	ret->lower = (p->gpu - p->local) * (1 + receive);
	if (form == FASTFLOW_CODE) {
		ret->upper *= p->remote_nodes;
		ret->part =
			part_of_code(p->gpu, p->local, ret->upper, ret->lower);
	} else if (ret->lower < ret->upper) {
		ret->part = MIN(ret->upper / p->gpu, 1);
	} else {
		ret->part = rate / (p->local + rate);
	}
	return 0;
}

/* The remote half is next when it is behind its part by half a sample. */
int fastflow_turn(struct fastflow_turns *t, double part)
{
	bool remote = part * (double)++t->n - (double)t->n_remote >= 0.5;

	t->n_remote += remote;
	return remote;
}
