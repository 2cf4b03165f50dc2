/* SPDX-License-Identifier: MIT */
/* Shared GPUs on an event clock: memory and the speed. */
#include "tests/unit/share_rig.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "share/utilisation.h"

static void one_alone_runs_at_its_own_pace(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fair, 1, 100);
	struct client c = { .work_ns = 1000003, .left = 1000 };

	(void)state;
	share_rig_join(s, &c, 1, 50, 1);
	share_rig_play(s, &c, 1, SHARE_NEVER);
	assert_int_equal(c.end, 1000 * 1000003ull);
	assert_int_equal(s->gpus[0].busy.ns, c.end);
	assert_int_equal(s->gpus[0].lanes.used, 0);
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

/* The first job in the queue does not fit now. */
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
	struct share *s = share_rig_new(mode, &scheduler_pack, 4, 1000);
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
			share_rig_join(s, x, persistent,
				       persistent + rng_below(&rng, 801),
				       1 + (uint32_t)rng_below(&rng, 4));
		}
		for (size_t k = 0; k < ARRAY_SIZE(c); k++)
			share_rig_feed(s, &c[k]);
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
	struct share *s = share_rig_new(SHARE_LANES, &scheduler_fair, 2, 100);
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
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_rr, 2, 100);
	struct client small = { .work_ns = 10, .left = 5 };
	struct client big = { .work_ns = 10, .left = 5 };

	(void)state;
	share_rig_join(s, &small, 50, 60, 1);
	share_rig_join(s, &big, 50, 60, 2);
	assert_true(small.job->resident);
	assert_false(big.job->resident);
	assert_int_equal(s->gpus[1].lanes.used, 0);
	share_leave(s, small.job);
	assert_true(big.job->resident);
	assert_int_equal(big.job->gpus, 3);
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
				  .done = share_rig_done };
	struct client jobs[3] = { { .work_ns = 3000000, .left = 100 },
				  { .work_ns = 3000000, .left = 100 },
				  { .work_ns = 3000000, .left = 100 } };
	struct share *s;

	(void)state;
	assert_int_equal(share_profile_parse(yaml, strlen(yaml), "t", &p, NULL),
			 0);
	assert_int_equal(share_new(&c, &s), 0);
	share_rig_join(s, &jobs[0], 1, 30, 1);
	share_rig_join(s, &jobs[1], 1, 30, 1);
	share_rig_play(s, jobs, 2, SHARE_NEVER);
	/* each at 3/4 of its speed */
	assert_in_range(jobs[0].end, 399999900, 400000100);
	share_free(s);
	for (size_t i = 0; i < 3; i++)
		jobs[i] = (struct client){ .work_ns = 3000000, .left = 100 };
	assert_int_equal(share_new(&c, &s), 0);
	for (size_t i = 0; i < 3; i++)
		share_rig_join(s, &jobs[i], 1, 30, 1);
	share_rig_play(s, jobs, 3, SHARE_NEVER);
	/* beyond the table the last row holds: each at 1/2 */
	assert_in_range(jobs[0].end, 599999900, 600000100);
	share_free(s);
	share_profile_free(&p);
}

/* Two that always have work, of 3 ms, and a third that comes with `late`. */
static void play_slices(const struct scheduler_ops *scheduler, uint32_t milli,
			struct client jobs[3])
{
	static const char yaml[] = "name: t\nsource: s\nverified: true\n"
				   "gpus: [G]\nrows: [[1, 1], [2, .8]]\n";
	struct share_profile p;
	struct share_config c = { .mode = SHARE_TIME,
				  .scheduler = scheduler,
				  .slicing = &p,
				  .n_gpus = 1,
				  .max_jobs = 4,
				  .memory_bytes = 100,
				  .done = share_rig_done };
	struct share_quota q = { .bytes = { 50 } };
	struct share *s;

	assert_int_equal(share_profile_parse(yaml, strlen(yaml), "t", &p, NULL),
			 0);
	assert_int_equal(share_new(&c, &s), 0);
	assert_int_equal(share_set_part(s, &q, 0, milli, NULL), 0);
	for (size_t i = 0; i < 3; i++) {
		struct share_want w = { .persistent_bytes = 1,
					.peak_bytes = 10,
					.n_gpus = 1,
					.iteration_ns = 3000000,
					.quota = milli && i ? NULL : &q };

		jobs[i].work_ns = 3000000;
		if (jobs[i].left)
			assert_int_equal(share_join(s, &w, &jobs[i],
						    &jobs[i].job, NULL),
					 0);
	}
	share_rig_play(s, jobs, 3, SHARE_NEVER);
	share_free(s);
	share_profile_free(&p);
}

static void time_slicing_costs_those_who_take_turns(void **state)
{
	struct client two[3] = { { .left = 100 }, { .left = 100 } };
	struct client three[3] = { { .left = 100 },
				   { .left = 100 },
				   { .left = 100 } };
	struct client one[3] = { { .left = 100 } };
	struct client uneven[3] = { { .left = 100 }, { .left = 50 } };
	struct client apart[3] = { { .left = 100 }, { .left = 50 } };

	(void)state;
	/* alone nothing, two and more .8 of the GPU */
	play_slices(&scheduler_rr, 0, one);
	assert_in_range(one[0].end, 300000000, 300000100);
	play_slices(&scheduler_fair, 0, two);
	assert_in_range(MAX(two[0].end, two[1].end), 749240000, 749260000);
	play_slices(&scheduler_rr, 0, three);
	assert_in_range(three[2].end, 1124240000, 1124260000);
	/* once it is alone, nothing */
	play_slices(&scheduler_rr, 0, uneven);
	assert_in_range(uneven[1].end, 371000000, 375000100);
	assert_in_range(uneven[0].end, 524000000, 526000000);
	/* nobody takes turns with those of another part */
	play_slices(&scheduler_rr, 500, apart);
	assert_in_range(apart[0].end, 600000000, 600000300);
	assert_in_range(apart[1].end, 300000000, 300000300);
}

static void bad_tables_are_refused(void **state)
{
	static const char *const bad[] = {
		"rows: []",
		"rows: [[1, 2]]",
		"rows: [[1, 1], [3, 2]]",
		"rows: [[1, 1], [2, 2.5]]",
		"rows: [[1, 1], [2, -1]]",
		"gpus: [G]\nrows: [[1, 1], [2, 1.1]]",
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

/* Of GPU 0. */
static double utilisation(const struct share *s)
{
	return utilisation_at(&s->gpus[0].busy, s->now);
}

static void utilisation_is_of_the_last_second(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fair, 1, 1000);
	struct client c = { .work_ns = NS_PER_S / 2, .left = 10 };
	struct share_iteration it;

	(void)state;
	share_rig_join(s, &c, 1, 2, 1);
	share_advance(s, 10 * NS_PER_S);
	assert_true(utilisation(s) == 0);
	share_submit(s, c.job, 0, 0, NS_PER_S / 2, &it);
	share_advance(s, 10 * NS_PER_S + NS_PER_S / 4);
	assert_true(fabs(utilisation(s) - .25) < .001);
	share_advance(s, 11 * NS_PER_S);
	assert_true(fabs(utilisation(s) - .5) < .001);
	share_advance(s, 11 * NS_PER_S + NS_PER_S / 4);
	assert_true(fabs(utilisation(s) - .25) < .001);
	share_advance(s, 1000 * NS_PER_S);
	assert_true(utilisation(s) == 0);
	share_free(s);
}

/* Join with so much memory of a quota on `n_gpus`; the job. */
static struct share_job *join_quota(struct share *s, struct share_quota *q,
				    uint64_t peak, uint32_t n_gpus)
{
	struct share_want w = { .persistent_bytes = peak / 2,
				.peak_bytes = peak,
				.n_gpus = n_gpus,
				.quota = q };
	struct share_job *job;

	assert_int_equal(share_join(s, &w, NULL, &job, NULL), 0);
	return job;
}

static void a_quota_is_a_smaller_gpu(void **state)
{
	struct share *s = share_rig_new(SHARE_MPS, &scheduler_fifo, 3, 100);
	struct share_quota a = { .bytes = { 0, 40, 30 } },
			   b = { .bytes = { 100, 60 } };
	struct share_job *first, *second, *third, *other;
	struct share_want large = { .peak_bytes = 41,
				    .n_gpus = 1,
				    .quota = &a },
			  wide = { .peak_bytes = 31, .n_gpus = 2, .quota = &a };

	(void)state;
	assert_int_equal(share_join(s, &large, NULL, &first, NULL), -E2BIG);
	assert_int_equal(share_join(s, &wide, NULL, &first, NULL), -E2BIG);
	/* of its GPUs alone, those with enough */
	first = join_quota(s, &a, 31, 1);
	assert_int_equal(first->gpus, 2);
	second = join_quota(s, &a, 30, 1);
	assert_int_equal(second->gpus, 4);
	/* no more than the quota, though the GPU has room */
	third = join_quota(s, &a, 10, 1);
	assert_false(third->resident);
	/* and nobody waits behind it */
	other = join_quota(s, &b, 60, 2);
	assert_int_equal(other->gpus, 3);
	assert_int_equal(a.used[1], 31);
	share_leave(s, first);
	assert_int_equal(third->gpus, 2);
	assert_int_equal(a.used[1], 10);
	/* a quota that shrinks lets those stay that have joined */
	a.bytes[2] = 0;
	assert_true(second->resident);
	share_leave(s, second);
	share_leave(s, third);
	share_leave(s, other);
	/* a job without memory stays on them, too */
	first = join_quota(s, &a, 0, 1);
	assert_int_equal(first->gpus, 2);
	share_leave(s, first);
	for (int g = 0; g < 3; g++)
		assert_int_equal(a.used[g] + b.used[g], 0);
	share_free(s);
}

static void a_quota_has_a_utilisation_of_its_own(void **state)
{
	struct share *s = share_rig_new(SHARE_MPS, &scheduler_fair, 1, 100);
	struct share_quota a = { .bytes = { 40 } }, b = { .bytes = { 40 } };
	struct share_job *job[] = { join_quota(s, &a, 10, 1),
				    join_quota(s, &a, 10, 1),
				    join_quota(s, &b, 10, 1) };
	struct client c = { .left = 9 };
	struct share_iteration it;

	(void)state;
	share_advance(s, 10 * NS_PER_S);
	/* each of two runs at half its pace, in 0.2 s; together they count
	 * once */
	for (int i = 0; i < 2; i++) {
		job[i]->owner = &c;
		share_submit(s, job[i], 0, 0, NS_PER_S / 10, &it);
	}
	share_advance(s, 10 * NS_PER_S + NS_PER_S / 2);
	job[2]->owner = &c;
	share_submit(s, job[2], 0, 0, NS_PER_S / 4, &it);
	share_advance(s, 11 * NS_PER_S);
	assert_true(fabs(utilisation(s) - .45) < .001);
	assert_true(fabs(utilisation_at(&a.busy[0], s->now) - .2) < .001);
	assert_true(fabs(utilisation_at(&b.busy[0], s->now) - .25) < .001);
	assert_int_equal(a.busy[0].ns, NS_PER_S / 5);
	assert_int_equal(b.busy[0].ns, NS_PER_S / 4);
	share_advance(s, 13 * NS_PER_S);
	assert_true(utilisation_at(&a.busy[0], s->now) == 0);
	share_free(s);
}

/* An iteration of a second of work, begun now, takes so many. */
static void takes(struct share *s, struct share_job *job, struct client *c,
		  double seconds)
{
	struct share_iteration it;
	uint64_t from = s->now, done = c->done;

	job->owner = c;
	c->left++;
	assert_int_equal(share_submit(s, job, 0, 0, NS_PER_S, &it), 0);
	while (c->done == done)
		share_advance(s, share_next(s));
	assert_true(fabs((double)(c->end - from) - seconds * NS_PER_S) < 10);
}

/* In each mode of sharing: the part of the others does not matter, nor whether
 * they run; two jobs of one quota share its part. */
static void a_part_of_the_time_is_kept(void **state)
{
	for (int mode = SHARE_TIME; mode <= SHARE_MPS; mode++) {
		struct share *s = share_rig_new(mode, &scheduler_fair, 1, 100);
		struct share_quota half = { .bytes = { 40 } },
				   fifth = { .bytes = { 20 } };
		struct share_job *a, *b, *other;
		struct client ca = { 0 }, cb = { 0 }, co = { 0 };
		struct share_iteration it;
		struct err err = { 0 };

		(void)state;
		assert_int_equal(share_set_part(s, &half, 0, 500, &err), 0);
		assert_int_equal(share_set_part(s, &fifth, 0, 200, &err), 0);
		a = join_quota(s, &half, 40, 1);
		b = join_quota(s, &fifth, 20, 1);
		other = join_quota(s, NULL, 30, 1);
		/* they hold their peaks */
		assert_true(s->gpus[0].lanes.used >= 60 + 15);
		takes(s, a, &ca, 2);
		takes(s, b, &cb, 5);
		/* the rest, whether the parts are used or not */
		takes(s, other, &co, 1 / .3);
		cb.left++;
		share_submit(s, b, 1, 0, 9 * NS_PER_S, &it);
		co.left++;
		other->owner = &co;
		share_submit(s, other, 1, 0, 9 * NS_PER_S, &it);
		takes(s, a, &ca, 2);
		/* no change while a job is there, and no more than all */
		assert_int_equal(share_set_part(s, &half, 0, 100, &err),
				 -EBUSY);
		share_leave(s, a);
		assert_int_equal(share_set_part(s, &half, 0, 801, &err),
				 -ENOSPC);
		/* nothing would be left for the other one */
		assert_int_equal(share_set_part(s, &half, 0, 800, &err),
				 -EBUSY);
		assert_int_equal(share_set_part(s, &half, 0, 799, &err), 0);
		share_advance(s, s->now + 10000 * NS_PER_S);
		assert_int_equal(co.done, 2);
		share_leave(s, other);
		assert_int_equal(share_set_part(s, &half, 0, 800, &err), 0);
		share_end_parts(s, &half);
		assert_int_equal(s->gpus[0].part_milli, 200);
		assert_int_equal(s->gpus[0].n_running, 0);
		assert_int_equal(s->gpus[0].n_apart, 0);
		share_free(s);
	}
}

/* Who has no part of a GPU whose time is given away waits, or takes another. */
static void a_gpu_given_away_admits_no_others(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fair, 2, 100);
	struct share_quota all = { .bytes = { 0, 50 } };
	struct share_job *one, *two;

	(void)state;
	assert_int_equal(share_set_part(s, &all, 1, SHARE_WHOLE, NULL), 0);
	one = join_quota(s, NULL, 10, 1);
	two = join_quota(s, NULL, 10, 2);
	assert_int_equal(one->gpus, 1);
	assert_false(two->resident);
	share_end_parts(s, &all);
	assert_int_equal(two->gpus, 3);
	share_free(s);
}

/* Also where jobs are admitted in turn. */
static void who_waits_for_time_is_in_nobodys_way(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fifo, 1, 100);
	struct share_quota all = { .bytes = { 50 } };
	struct share_job *waits, *job;

	(void)state;
	assert_int_equal(share_set_part(s, &all, 0, SHARE_WHOLE, NULL), 0);
	waits = join_quota(s, NULL, 70, 1);
	assert_false(waits->resident);
	job = join_quota(s, &all, 40, 1);
	assert_true(job->resident);
	/* its memory would not help */
	assert_false(share_blocks(s, job));
	share_end_parts(s, &all);
	assert_false(waits->resident);
	assert_true(share_blocks(s, job));
	share_leave(s, job);
	assert_true(waits->resident);
	share_free(s);
}

static void who_holds_memory_blocks_whom_it_would_help(void **state)
{
	struct share *s = share_rig_new(SHARE_MPS, &scheduler_fair, 2, 100);
	struct share_quota a = { .bytes = { 60 } }, b = { .bytes = { 30 } };
	struct share_job *of_a = join_quota(s, &a, 60, 1),
			 *of_b = join_quota(s, &b, 30, 1),
			 *other = join_quota(s, NULL, 10, 1), *waits;

	(void)state;
	assert_int_equal(other->gpus, 2);
	/* b is full, and of it alone */
	waits = join_quota(s, &b, 30, 1);
	assert_false(share_blocks(s, of_a));
	assert_true(share_blocks(s, of_b));
	share_leave(s, waits);
	/* the first GPU is full, by two; the other one has room */
	waits = join_quota(s, NULL, 90, 2);
	assert_false(waits->resident);
	assert_true(share_blocks(s, of_a));
	assert_true(share_blocks(s, of_b));
	assert_false(share_blocks(s, other));
	/* it could not have both in any case */
	share_mark(s, 1, true);
	assert_false(share_blocks(s, of_a));
	share_free(s);
}

/* Many slow jobs of a small part: their end is later than a uint64_t holds. */
static void an_end_that_is_too_far_is_never(void **state)
{
	enum { JOBS = 55, YEARS = 30 };
	struct share *s = share_rig_new(SHARE_MPS, &scheduler_fair, 1, 1000);
	struct share_quota q = { .bytes = { 1000 } };
	struct share_want w = { .peak_bytes = 1, .n_gpus = 1, .quota = &q };
	struct share_iteration it;
	struct share_job *job;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(share_set_part(s, &q, 0, 10, &err), 0);
	for (uint64_t i = 0; i < JOBS; i++) {
		assert_int_equal(share_join(s, &w, NULL, &job, &err), 0);
		assert_int_equal(share_submit(s, job, i, 0,
					      YEARS * 365ull * 86400 * NS_PER_S,
					      &it),
				 0);
	}
	share_advance(s, NS_PER_S);
	assert_int_equal(s->gpus[0].n_running, JOBS);
	assert_int_equal(share_next(s), SHARE_NEVER);
	share_free(s);
}

static void a_failed_gpu_admits_nobody(void **state)
{
	struct share *s = share_rig_new(SHARE_TIME, &scheduler_fair, 2, 100);
	struct share_job *one, *two;

	(void)state;
	share_mark(s, 0, true);
	one = join_quota(s, NULL, 10, 1);
	assert_int_equal(one->gpus, 2);
	two = join_quota(s, NULL, 10, 2);
	assert_false(two->resident);
	share_mark(s, 0, false);
	assert_int_equal(two->gpus, 3);
	share_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_alone_runs_at_its_own_pace),
		cmocka_unit_test(memory_is_safe_and_comes_back),
		cmocka_unit_test(what_never_fits_is_refused),
		cmocka_unit_test(several_gpus_or_none),
		cmocka_unit_test(the_speedup_table_sets_the_pace),
		cmocka_unit_test(time_slicing_costs_those_who_take_turns),
		cmocka_unit_test(bad_tables_are_refused),
		cmocka_unit_test(utilisation_is_of_the_last_second),
		cmocka_unit_test(a_quota_is_a_smaller_gpu),
		cmocka_unit_test(a_quota_has_a_utilisation_of_its_own),
		cmocka_unit_test(a_part_of_the_time_is_kept),
		cmocka_unit_test(a_gpu_given_away_admits_no_others),
		cmocka_unit_test(who_waits_for_time_is_in_nobodys_way),
		cmocka_unit_test(who_holds_memory_blocks_whom_it_would_help),
		cmocka_unit_test(an_end_that_is_too_far_is_never),
		cmocka_unit_test(a_failed_gpu_admits_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
