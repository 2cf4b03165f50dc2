/* SPDX-License-Identifier: MIT */
/* Shared GPUs on an event clock: memory, who runs, and for how long. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "share/share.h"

extern const struct scheduler_ops scheduler_fifo, scheduler_fair,
	scheduler_srtf, scheduler_pack, scheduler_rr;

enum { MAX_JOBS = 256 };

/* A client that always has an iteration waiting, as one with a fast loader. */
struct client {
	struct share_job *job;
	uint64_t work_ns, left, submitted;
	uint64_t joined, end, last_start;
	uint64_t done; /* iterations */
};

static void done(void *ctx, struct share_job *job,
		 const struct share_iteration *it)
{
	struct client *c = job->owner;

	(void)ctx;
	assert_true(it->end >= it->start + it->work_ns);
	assert_true(it->start >= it->copy_end);
	c->done++;
	c->left--;
	c->end = it->end;
	c->last_start = it->start;
}

static struct share *make(enum share_mode mode,
			  const struct scheduler_ops *scheduler,
			  uint32_t n_gpus, uint64_t memory)
{
	struct share_config c = { .mode = mode,
				  .scheduler = scheduler,
				  .n_gpus = n_gpus,
				  .max_jobs = MAX_JOBS,
				  .memory_bytes = memory,
				  .done = done };
	struct share *s;

	assert_int_equal(share_new(&c, &s), 0);
	return s;
}

static void join(struct share *s, struct client *c, uint64_t persistent,
		 uint64_t peak, uint32_t n_gpus)
{
	struct share_want w = { .persistent_bytes = persistent,
				.peak_bytes = peak,
				.n_gpus = n_gpus,
				.iterations = c->left,
				.iteration_ns = c->work_ns };
	struct err err = { 0 };

	c->joined = s->now;
	assert_int_equal(share_join(s, &w, c, &c->job, &err), 0);
}

/* Two on their way, as in a device that holds two batches. */
static void feed(struct share *s, struct client *c)
{
	struct share_iteration it;

	while (c->job && c->job->resident && c->job->n < 2 &&
	       c->job->n < c->left)
		assert_int_equal(share_submit(s, c->job, c->submitted++, 0,
					      c->work_ns, &it),
				 0);
}

/* Until `until`, or with SHARE_NEVER until all are done. */
static void play(struct share *s, struct client *c, size_t n, uint64_t until)
{
	for (;;) {
		uint64_t next;

		for (size_t i = 0; i < n; i++)
			if (c[i].job && c[i].left == 0) {
				share_leave(s, c[i].job);
				c[i].job = NULL;
			}
		for (size_t i = 0; i < n; i++)
			feed(s, &c[i]);
		next = share_next(s);
		if (next >= until)
			break;
		share_advance(s, next);
	}
	if (until != SHARE_NEVER)
		share_advance(s, until);
}

static void one_alone_runs_at_its_own_pace(void **state)
{
	struct share *s = make(SHARE_TIME, &scheduler_fair, 1, 100);
	struct client c = { .work_ns = 1000003, .left = 1000 };

	(void)state;
	join(s, &c, 1, 50, 1);
	play(s, &c, 1, SHARE_NEVER);
	assert_int_equal(c.end, 1000 * 1000003ull);
	assert_int_equal(s->gpus[0].busy_ns, c.end);
	assert_int_equal(s->gpus[0].lanes.used, 0);
	share_free(s);
}

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
		struct share *s = make(SHARE_TIME, &scheduler_fair, 1, 100);
		struct plugin_choice choice;

		assert_int_equal(plugin_choose(table, "scheduler", text[i],
					       &choice, NULL),
				 0);
		s->config.scheduler_options = choice.options;
		join(s, &c[0], 10, 40, 1);
		play(s, c, 1, 10 * NS_PER_S);
		join(s, &c[1], 10, 40, 1);
		play(s, c, 2, 16 * NS_PER_S);
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
	struct share *s = make(SHARE_TIME, &scheduler_fair, 1, 100);
	struct client c[3] = { 0 };
	double sum = 0, squares = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		double got[3];

		c[i].work_ns = work[i];
		c[i].left = UINT32_MAX;
		join(s, &c[i], 10, 40, 1);
		play(s, c, 3, s->now + NS_PER_S); /* the switch-over */
		for (size_t k = 0; k <= i; k++)
			got[k] = c[k].job->service_ns;
		play(s, c, 3, s->now + 60 * NS_PER_S);
		for (size_t k = 0; k <= i; k++) {
			got[k] = (c[k].job->service_ns - got[k]) / 60e9;
			assert_true(fabs(got[k] * (double)(i + 1) - 1) < .03);
			sum += i == 2 ? got[k] : 0;
			squares += i == 2 ? got[k] * got[k] : 0;
		}
	}
	/* Jain's index */
	assert_true(sum * sum / (3 * squares) > .9999);
	assert_true(share_utilisation(s, 0) > .9999);
	share_leave(s, c[0].job);
	share_leave(s, c[1].job);
	c[0].job = c[1].job = NULL;
	uint64_t before = c[2].done;

	play(s, &c[2], 1, s->now + 23 * NS_PER_S);
	assert_in_range(c[2].done - before, 999, 1001);
	share_free(s);
}

/* The rule, computed anew. */
static void check_memory(const struct share *s)
{
	for (uint32_t g = 0; g < s->config.n_gpus; g++) {
		uint64_t peak[MAX_JOBS] = { 0 }, sum = 0;

		for (uint32_t i = 0; i < s->n_jobs; i++) {
			const struct share_job *j = s->jobs[i];
			uint32_t lane;

			if (!share_on(j, g))
				continue;
			lane = share_lane(s, j, g);
			sum += j->want.persistent_bytes;
			peak[lane] = MAX(peak[lane],
					 j->want.peak_bytes -
						 j->want.persistent_bytes);
		}
		for (size_t l = 0; l < MAX_JOBS; l++)
			sum += peak[l];
		assert_int_equal(sum, s->gpus[g].lanes.used);
		assert_true(sum <= s->config.memory_bytes);
	}
}

/* Whoever waits first in the queue does not fit as it is. */
static void check_queue(const struct share *s)
{
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *j = s->jobs[i];
		uint32_t room = 0;

		for (uint32_t g = 0; g < s->config.n_gpus; g++)
			room += lanes_place(&s->gpus[g].lanes,
					    j->want.persistent_bytes,
					    j->want.peak_bytes -
						    j->want.persistent_bytes) >=
				0;
		assert_true(j->resident || room < j->want.n_gpus);
		assert_int_equal(__builtin_popcountll(j->gpus),
				 j->resident ? j->want.n_gpus : 0);
	}
}

static void random_walk(enum share_mode mode, size_t n)
{
	struct share *s = make(mode, &scheduler_pack, 4, 1000);
	struct rng rng = rng_stream(1, "walk", mode);
	static struct client c[40];

	memset(c, 0, sizeof(c));
	for (size_t i = 0; i < n; i++) {
		struct client *x = &c[rng_below(&rng, ARRAY_SIZE(c))];

		if (x->job) {
			share_leave(s, x->job);
			*x = (struct client){ 0 };
		} else {
			uint64_t persistent = rng_below(&rng, 200);

			x->work_ns = 1 + rng_below(&rng, NS_PER_MS);
			x->left = UINT32_MAX;
			join(s, x, persistent,
			     persistent + rng_below(&rng, 801),
			     1 + (uint32_t)rng_below(&rng, 4));
		}
		for (size_t k = 0; k < ARRAY_SIZE(c); k++)
			feed(s, &c[k]);
		share_advance(s, s->now + rng_below(&rng, NS_PER_MS));
		check_memory(s);
		if (i % 16 == 0)
			check_queue(s);
	}
	for (size_t k = 0; k < ARRAY_SIZE(c); k++)
		if (c[k].job)
			share_leave(s, c[k].job);
	for (uint32_t g = 0; g < 4; g++) {
		assert_int_equal(s->gpus[g].lanes.used, 0);
		assert_int_equal(s->gpus[g].lanes.n_jobs, 0);
		assert_int_equal(s->gpus[g].lanes.n_lanes, 0);
		assert_int_equal(s->gpus[g].n_running, 0);
	}
	assert_int_equal(s->n_jobs, 0);
	assert_true(s->n_iterations > n);
	share_free(s);
}

/* 100,000 in all */
static void memory_is_safe_and_comes_back(void **state)
{
	(void)state;
	random_walk(SHARE_TIME, 30000);
	random_walk(SHARE_LANES, 40000);
	random_walk(SHARE_MPS, 30000);
}

static void what_never_fits_is_refused(void **state)
{
	struct share *s = make(SHARE_LANES, &scheduler_fair, 2, 100);
	struct share_want w = { .persistent_bytes = 10,
				.peak_bytes = 101,
				.n_gpus = 1 };
	struct err err = { 0 };
	struct share_job *job;

	(void)state;
	assert_int_equal(share_join(s, &w, NULL, &job, &err), -E2BIG);
	assert_non_null(strstr(err.text, "out of GPU memory"));
	w.peak_bytes = 9;
	assert_int_equal(share_join(s, &w, NULL, &job, NULL), -EINVAL);
	w.peak_bytes = 100;
	w.n_gpus = 3;
	assert_int_equal(share_join(s, &w, NULL, &job, NULL), -EINVAL);
	w.n_gpus = 0;
	assert_int_equal(share_join(s, &w, NULL, &job, NULL), -EINVAL);
	assert_int_equal(s->n_jobs, 0);
	w.n_gpus = 2;
	for (size_t i = 0; i < MAX_JOBS; i++)
		assert_int_equal(share_join(s, &w, NULL, &job, NULL), 0);
	assert_int_equal(share_join(s, &w, NULL, &job, NULL), -EAGAIN);
	share_free(s);
}

static void several_gpus_or_none(void **state)
{
	struct share *s = make(SHARE_TIME, &scheduler_rr, 2, 100);
	struct client small = { .work_ns = 10, .left = 5 };
	struct client big = { .work_ns = 10, .left = 5 };

	(void)state;
	join(s, &small, 50, 60, 1);
	join(s, &big, 50, 60, 2);
	assert_true(small.job->resident);
	assert_false(big.job->resident);
	assert_int_equal(s->gpus[1].lanes.used, 0);
	share_leave(s, small.job);
	assert_true(big.job->resident);
	assert_int_equal(big.job->gpus, 3);
	share_free(s);
}

/* Jobs of one GPU whose ends never fall together must not starve it. */
static void a_job_with_several_gpus_gets_its_turn(void **state)
{
	struct share *s = make(SHARE_TIME, &scheduler_rr, 2, 1000);
	struct client c[5] = { { .work_ns = 7001, .left = UINT32_MAX },
			       { .work_ns = 9001, .left = UINT32_MAX },
			       { .work_ns = 8009, .left = UINT32_MAX },
			       { .work_ns = 6007, .left = UINT32_MAX },
			       { .work_ns = 10000, .left = UINT32_MAX } };

	(void)state;
	for (size_t i = 0; i < 5; i++)
		join(s, &c[i], 10, 20, i == 4 ? 2 : 1);
	play(s, c, 5, NS_PER_S / 10);
	/* one turn each of three */
	assert_true(c[4].done * 3 >= c[0].done);
	assert_true(c[4].done > NS_PER_S / 10 / 60000);
	share_free(s);
}

static void the_speedup_table_sets_the_pace(void **state)
{
	static const char yaml[] = "name: t\nsource: s\nverified: true\n"
				   "rows: [[1, 1], [2, 1.5]]\n";
	struct share_profile p;
	struct share_config c = { .mode = SHARE_MPS,
				  .scheduler = &scheduler_fair,
				  .speedup = &p,
				  .n_gpus = 1,
				  .max_jobs = 4,
				  .memory_bytes = 100,
				  .done = done };
	struct client jobs[3] = { { .work_ns = 3000000, .left = 100 },
				  { .work_ns = 3000000, .left = 100 },
				  { .work_ns = 3000000, .left = 100 } };
	struct share *s;

	(void)state;
	assert_int_equal(share_profile_parse(yaml, strlen(yaml), "t", &p, NULL),
			 0);
	assert_int_equal(share_new(&c, &s), 0);
	join(s, &jobs[0], 1, 30, 1);
	join(s, &jobs[1], 1, 30, 1);
	play(s, jobs, 2, SHARE_NEVER);
	/* each at 3/4 of its pace */
	assert_in_range(jobs[0].end, 399999900, 400000100);
	share_free(s);
	for (size_t i = 0; i < 3; i++)
		jobs[i] = (struct client){ .work_ns = 3000000, .left = 100 };
	assert_int_equal(share_new(&c, &s), 0);
	for (size_t i = 0; i < 3; i++)
		join(s, &jobs[i], 1, 30, 1);
	play(s, jobs, 3, SHARE_NEVER);
	/* beyond the table the last row holds: each at 1/2 */
	assert_in_range(jobs[0].end, 599999900, 600000100);
	share_free(s);
	share_profile_free(&p);
}

static void bad_tables_are_refused(void **state)
{
	static const char *const bad[] = {
		"rows: []",
		"rows: [[1, 2]]",
		"rows: [[1, 1], [3, 2]]",
		"rows: [[1, 1], [2, 2.5]]",
		"rows: [[1, 1], [2, -1]]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct share_profile p;
		struct err err = { 0 };
		char yaml[200];
		int n = snprintf(yaml, sizeof(yaml),
				 "name: t\nsource: s\nverified: true\n%s\n",
				 bad[i]);

		assert_int_equal(share_profile_parse(yaml, (size_t)n, "t", &p,
						     &err),
				 -EINVAL);
		assert_true(err.text[0]);
		share_profile_free(&p);
	}
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
	struct share *s = make(mode, scheduler, 1, 1000);
	struct rng rng = rng_stream(7, "mix", 0);
	static struct client c[60];
	double sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		uint64_t work = (50 + rng_below(&rng, 400)) * NS_PER_MS;
		uint64_t persistent = 10 + rng_below(&rng, 20);
		uint64_t ns = (uint64_t)(60e9 * exp(1.8 * rng_normal(&rng)));

		c[i] = (struct client){ .work_ns = work,
					.left = 1 + ns / work };
		join(s, &c[i], persistent,
		     persistent + 50 + rng_below(&rng, 400), 1);
	}
	play(s, c, ARRAY_SIZE(c), SHARE_NEVER);
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
	struct share *s = make(SHARE_TIME, &scheduler_srtf, 1, 1000);
	struct client c[2] = { { .work_ns = 10 * NS_PER_MS, .left = 1000 },
			       { .work_ns = NS_PER_MS, .left = 10 } };

	(void)state;
	join(s, &c[0], 10, 20, 1);
	play(s, c, 1, 15 * NS_PER_MS);
	join(s, &c[1], 10, 20, 1);
	play(s, c, 2, SHARE_NEVER);
	assert_int_equal(c[1].end, 30 * NS_PER_MS);
	share_free(s);
}

/* Whenever the two smallest of those here fit together, two are resident and
 * run at the same time. */
static void pack_runs_several(void **state)
{
	struct share *s = make(SHARE_LANES, &scheduler_pack, 1, 1000);
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
			join(s, x, 10, 20 + rng_below(&rng, 981), 1);
		}
		for (size_t k = 0; k < ARRAY_SIZE(c); k++)
			feed(s, &c[k]);
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

static void copies_take_turns_on_the_link(void **state)
{
	struct share *s = make(SHARE_TIME, &scheduler_fair, 1, 1000);
	struct share_iteration a, b, rest;
	struct client c[2] = { { .work_ns = 5, .left = 100 },
			       { .work_ns = 5, .left = 100 } };

	(void)state;
	join(s, &c[0], 1, 2, 1);
	join(s, &c[1], 1, 2, 1);
	share_submit(s, c[0].job, 0, 100, 5, &a);
	share_submit(s, c[1].job, 0, 100, 5, &b);
	assert_int_equal(a.copy_end, 100);
	assert_int_equal(b.copy_start, 100);
	assert_int_equal(b.copy_end, 200);
	for (size_t i = 0; i < SHARE_DEPTH - 1; i++)
		assert_int_equal(share_submit(s, c[0].job, 0, 0, 5, &rest), 0);
	assert_int_equal(share_submit(s, c[0].job, 0, 0, 5, &rest), -EBUSY);
	share_advance(s, 1000);
	assert_int_equal(c[1].last_start, 200);
	share_free(s);
}

static void who_leaves_gives_back_the_link(void **state)
{
	struct share *s = make(SHARE_TIME, &scheduler_fair, 1, 1000);
	struct share_want loads = { .peak_bytes = 2,
				    .n_gpus = 1,
				    .load_ns = 1000 };
	struct share_iteration it;
	struct share_job *job;
	struct client c[3] = { 0 };

	(void)state;
	join(s, &c[0], 1, 2, 1);
	join(s, &c[1], 1, 2, 1);
	share_submit(s, c[0].job, 0, 100, 5, &it);
	share_submit(s, c[1].job, 0, 100, 5, &it);
	share_submit(s, c[0].job, 0, 100, 5, &it);
	assert_int_equal(it.copy_end, 300);
	assert_int_equal(share_join(s, &loads, &c[2], &job, NULL), 0);
	share_leave(s, job);
	share_leave(s, c[0].job);
	/* what the other was told stays so */
	join(s, &c[2], 1, 2, 1);
	share_submit(s, c[2].job, 0, 100, 5, &it);
	assert_int_equal(it.copy_start, 200);
	share_leave(s, c[1].job);
	share_leave(s, c[2].job);
	join(s, &c[0], 1, 2, 1);
	share_submit(s, c[0].job, 0, 100, 5, &it);
	assert_int_equal(it.copy_start, 0);
	share_free(s);
}

static void utilisation_is_of_the_last_second(void **state)
{
	struct share *s = make(SHARE_TIME, &scheduler_fair, 1, 1000);
	struct client c = { .work_ns = NS_PER_S / 2, .left = 10 };
	struct share_iteration it;

	(void)state;
	join(s, &c, 1, 2, 1);
	share_advance(s, 10 * NS_PER_S);
	assert_true(share_utilisation(s, 0) == 0);
	share_submit(s, c.job, 0, 0, NS_PER_S / 2, &it);
	share_advance(s, 10 * NS_PER_S + NS_PER_S / 4);
	assert_true(fabs(share_utilisation(s, 0) - .25) < .001);
	share_advance(s, 11 * NS_PER_S);
	assert_true(fabs(share_utilisation(s, 0) - .5) < .001);
	share_advance(s, 11 * NS_PER_S + NS_PER_S / 4);
	assert_true(fabs(share_utilisation(s, 0) - .25) < .001);
	share_advance(s, 1000 * NS_PER_S);
	assert_true(share_utilisation(s, 0) == 0);
	share_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_alone_runs_at_its_own_pace),
		cmocka_unit_test(fair_with_and_without_beginning_anew),
		cmocka_unit_test(three_clients_one_after_the_other),
		cmocka_unit_test(memory_is_safe_and_comes_back),
		cmocka_unit_test(what_never_fits_is_refused),
		cmocka_unit_test(several_gpus_or_none),
		cmocka_unit_test(a_job_with_several_gpus_gets_its_turn),
		cmocka_unit_test(the_speedup_table_sets_the_pace),
		cmocka_unit_test(bad_tables_are_refused),
		cmocka_unit_test(srtf_before_fair_before_fifo),
		cmocka_unit_test(srtf_switches_between_iterations),
		cmocka_unit_test(pack_runs_several),
		cmocka_unit_test(copies_take_turns_on_the_link),
		cmocka_unit_test(who_leaves_gives_back_the_link),
		cmocka_unit_test(utilisation_is_of_the_last_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
