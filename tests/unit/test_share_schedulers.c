/* SPDX-License-Identifier: MIT */
/* Shared GPUs on an event clock: the order of the jobs, by scheduler. */
#include "tests/unit/share_rig.h"

#include <math.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "share/utilisation.h"

/* A newcomer, 10 s late, in its first 6 s: half the time, or with anew=off all
 * of it. */
static void fair_with_and_without_beginning_anew(void **state)
{
	static const struct plugin *const table[] = { &scheduler_fair.plugin,
						      NULL };
	static const char *const text[] = { "fair", "fair:anew=off" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct client c[2] = {
			{ .work_ns = 10 * NS_PER_MS, .left = UINT32_MAX },
			{ .work_ns = 10 * NS_PER_MS, .left = UINT32_MAX },
		};
		struct share *s =
			share_rig_new(SHARE_TIME, &scheduler_fair, 1, 100);
		struct plugin_choice choice;

		assert_int_equal(plugin_choose(table, "scheduler", text[i],
					       &choice, NULL),
				 0);
		s->config.scheduler_options = choice.options;
		share_rig_join(s, &c[0], 10, 40, 1);
		share_rig_play(s, c, 1, 10 * NS_PER_S);
		share_rig_join(s, &c[1], 10, 40, 1);
		share_rig_play(s, c, 2, 16 * NS_PER_S);
		assert_true(fabs(c[1].job->service_ns / 6e9 - (i ? 1 : .5)) <
			    .02);
		share_leave(s, c[0].job);
		share_leave(s, c[1].job);
		share_free(s);
		plugin_choice_fini(&choice);
	}
}

/* R, R/2, R/3, R/2, R, and equal shares whatever an iteration takes. */
static void three_clients_one_after_the_other(void **state)
{
	static const uint64_t work[3] = { 10 * NS_PER_MS, 7 * NS_PER_MS,
					  23 * NS_PER_MS };
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fair, 1, 100);
	struct client c[3] = { 0 };
	double sum = 0, squares = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		double got[3];

		c[i].work_ns = work[i];
		c[i].left = UINT32_MAX;
		share_rig_join(s, &c[i], 10, 40, 1);
		share_rig_play(s, c, 3,
			       s->now + NS_PER_S); /* the switch-over */
		for (size_t k = 0; k <= i; k++)
			got[k] = c[k].job->service_ns;
		share_rig_play(s, c, 3, s->now + 60 * NS_PER_S);
		for (size_t k = 0; k <= i; k++) {
			got[k] = (c[k].job->service_ns - got[k]) / 60e9;
			assert_true(fabs(got[k] * (double)(i + 1) - 1) < .03);
			sum += i == 2 ? got[k] : 0;
			squares += i == 2 ? got[k] * got[k] : 0;
		}
	}
	/* Jain's index */
	assert_true(sum * sum / (3 * squares) > .9999);
	assert_true(utilisation_at(&s->gpus[0].busy, s->now) > .9999);
	share_leave(s, c[0].job);
	share_leave(s, c[1].job);
	c[0].job = c[1].job = NULL;
	uint64_t before = c[2].done;

	share_rig_play(s, &c[2], 1, s->now + 23 * NS_PER_S);
	assert_in_range(c[2].done - before, 999, 1001);
	share_free(s);
}

/* Jobs of one GPU whose ends never fall together must not starve it. */
static void a_job_with_several_gpus_gets_its_turn(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_rr, 2, 1000);
	struct client c[5] = { { .work_ns = 7001, .left = UINT32_MAX },
			       { .work_ns = 9001, .left = UINT32_MAX },
			       { .work_ns = 8009, .left = UINT32_MAX },
			       { .work_ns = 6007, .left = UINT32_MAX },
			       { .work_ns = 10000, .left = UINT32_MAX } };

	(void)state;
	for (size_t i = 0; i < 5; i++)
		share_rig_join(s, &c[i], 10, 20, i == 4 ? 2 : 1);
	share_rig_play(s, c, 5, NS_PER_S / 10);
	/* one turn each of three */
	assert_true(c[4].done * 3 >= c[0].done);
	assert_true(c[4].done > NS_PER_S / 10 / 60000);
	share_free(s);
}

/*
 * Mean time from joining to the end of a mixed set, in ns. Its durations are
 * log-normal, median a minute and mean five: fair sharing ends jobs earlier
 * than fifo on average only where the smaller of two takes less than half the
 * mean, which holds for the long tails of real clusters and not for, say,
 * 1, 5 and 10 minutes in equal parts.
 */
static double mean_completion(enum share_mode mode,
			      const struct scheduler_ops *scheduler)
{
	struct share *s = share_rig_new(mode, scheduler, 1, 1000);
	struct rng rng = rng_stream(7, "mix", 0);
	static struct client c[60];
	double sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		uint64_t work = (50 + rng_below(&rng, 400)) * NS_PER_MS;
		uint64_t persistent = 10 + rng_below(&rng, 20);
		uint64_t ns = (uint64_t)(60e9 * exp(1.8 * rng_normal(&rng)));

		c[i] = (struct client){ .work_ns = work,
					.left = 1 + ns / work };
		share_rig_join(s, &c[i], persistent,
			       persistent + 50 + rng_below(&rng, 400), 1);
	}
	share_rig_play(s, c, ARRAY_SIZE(c), SHARE_NEVER);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		assert_int_equal(c[i].left, 0);
		sum += (double)(c[i].end - c[i].joined);
	}
	share_free(s);
	return sum / ARRAY_SIZE(c);
}

static void srtf_before_fair_before_fifo(void **state)
{
	(void)state;
	for (int m = SHARE_TIME; m <= SHARE_LANES; m++) {
		enum share_mode mode = (enum share_mode)m;
		double fifo = mean_completion(mode, &scheduler_fifo);
		double fair = mean_completion(mode, &scheduler_fair);
		double srtf = mean_completion(mode, &scheduler_srtf);
		double pack = mean_completion(mode, &scheduler_pack);

		print_message("%s: fifo %.0f s, fair %.0f, pack %.0f, srtf "
			      "%.0f\n",
			      share_mode_name(mode), fifo / 1e9, fair / 1e9,
			      pack / 1e9, srtf / 1e9);
		assert_true(srtf < fair && fair < fifo && pack < fifo);
		assert_true(fifo / srtf >= 1.5);
	}
}

/* A short job that comes late waits for one iteration of the long one. */
static void srtf_switches_between_iterations(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_srtf, 1, 1000);
	struct client c[2] = { { .work_ns = 10 * NS_PER_MS, .left = 1000 },
			       { .work_ns = NS_PER_MS, .left = 10 } };

	(void)state;
	share_rig_join(s, &c[0], 10, 20, 1);
	share_rig_play(s, c, 1, 15 * NS_PER_MS);
	share_rig_join(s, &c[1], 10, 20, 1);
	share_rig_play(s, c, 2, SHARE_NEVER);
	assert_int_equal(c[1].end, 30 * NS_PER_MS);
	share_free(s);
}

/* Whenever the two smallest jobs fit together, two are resident and run
 * concurrently. */
static void pack_runs_several(void **state)
{
	struct share *s = share_rig_new(SHARE_LANES, &scheduler_pack, 1, 1000);
	struct rng rng = rng_stream(3, "pack", 0);
	static struct client c[12];
	uint64_t at_once = 0;

	(void)state;
	memset(c, 0, sizeof(c));
	for (size_t i = 0; i < 5000; i++) {
		struct client *x = &c[rng_below(&rng, ARRAY_SIZE(c))];
		uint64_t a = UINT64_MAX, b = UINT64_MAX;
		uint32_t resident = 0;

		if (x->job) {
			share_leave(s, x->job);
			*x = (struct client){ 0 };
		} else {
			x->work_ns = 1 + rng_below(&rng, NS_PER_MS);
			x->left = UINT32_MAX;
			share_rig_join(s, x, 10, 20 + rng_below(&rng, 981), 1);
		}
		for (size_t k = 0; k < ARRAY_SIZE(c); k++)
			share_rig_feed(s, &c[k]);
		for (uint32_t k = 0; k < s->n_jobs; k++) {
			uint64_t peak = s->jobs[k]->want.peak_bytes;

			resident += s->jobs[k]->resident;
			b = MIN(b, MAX(a, peak));
			a = MIN(a, peak);
		}
		if (s->n_jobs > 1 && b < UINT64_MAX && a + b <= 1000)
			assert_true(resident > 1);
		assert_int_equal(s->gpus[0].n_running,
				 s->gpus[0].lanes.n_lanes);
		at_once += s->gpus[0].n_running > 1;
		share_advance(s, s->now + rng_below(&rng, NS_PER_MS));
	}
	assert_true(at_once > 1000);
	share_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fair_with_and_without_beginning_anew),
		cmocka_unit_test(three_clients_one_after_the_other),
		cmocka_unit_test(a_job_with_several_gpus_gets_its_turn),
		cmocka_unit_test(srtf_before_fair_before_fifo),
		cmocka_unit_test(srtf_switches_between_iterations),
		cmocka_unit_test(pack_runs_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
