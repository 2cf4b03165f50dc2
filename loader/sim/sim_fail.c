/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_fail.h"

#include <math.h>

#include "common/units.h"
#include "common/util.h"

/* arbitrary: a run that fails so often for one delay makes no progress, nor
 * does one that takes 146 years, of which three can be added */
enum { MOST_TRIES = 100000 };
#define MOST_NS (1ull << 62)

static uint64_t draw(struct sim_fail *f)
{
	double ns = -log1p(-rng_double(&f->rng)) * (double)f->mtbf_ns;

	return (uint64_t)llround(fmin(ns, (double)MOST_NS));
}

void sim_fail_init(struct sim_fail *f, uint64_t mtbf_ns, uint64_t down_ns,
		   uint64_t seed)
{
	*f = (struct sim_fail){ .mtbf_ns = mtbf_ns,
				.down_ns = down_ns,
				.rng = rng_stream(seed, "failures", 0) };
	f->next_ns = draw(f);
}

void sim_fail_saved(struct sim_fail *f, uint64_t state_ns, uint64_t ready_ns)
{
	f->saved[0] = f->saved[1];
	f->saved[1].ready_ns = ready_ns;
	f->saved[1].state_ns = state_ns;
}

/* What is to be done again after a failure at `at`. */
static uint64_t lost(const struct sim_fail *f, uint64_t at)
{
	bool last = f->saved[1].ready_ns <= at;

	return at - f->saved[last].state_ns;
}

/* One failure, and those of the recovery. Returns the delay. */
static uint64_t recover(struct sim_fail *f)
{
	uint64_t at = f->next_ns, begin = at, takes = f->down_ns + lost(f, at);

	for (int i = 0; i < MOST_TRIES; i++) {
		if (util_plus(begin, takes) > MOST_NS)
			break;
		f->n++;
		f->next_ns = begin + draw(f);
		if (f->next_ns >= begin + takes)
			return begin + takes - at;
		begin = f->next_ns;
	}
	return UINT64_MAX;
}

uint64_t sim_fail_until(struct sim_fail *f, uint64_t end)
{
	while (f->mtbf_ns && f->next_ns <= end) {
		uint64_t delay = recover(f);

		if (delay == UINT64_MAX)
			return delay;
		end += delay;
		f->delay_ns += delay;
		/* the work since is as much as before */
		for (int i = 0; i < 2; i++) {
			f->saved[i].ready_ns += delay;
			f->saved[i].state_ns += delay;
		}
	}
	return end;
}

json_t *sim_fail_json(const struct sim_fail *f)
{
	return json_pack("{s:I, s:f}", "n", (json_int_t)f->n, "delay_s",
			 (double)f->delay_ns / NS_PER_S);
}
