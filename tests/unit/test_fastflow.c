/* SPDX-License-Identifier: MIT */
/*
 * FastFlow's decision against the sweep over all parts that it replaces, on a
 * model of two servers; its turns; its file of profiles.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/util.h"
#include "service/decide/fastflow_cache.h"

/* A sample takes a core 1 s to prepare, and `receive` s of a local one to
 * receive. The GPU takes `gpu` samples/s. */
struct servers {
	double local, remote; /* cores */
	double receive, gpu;
};

/* Samples/s with a part prepared remotely. */
static double rate(const struct servers *s, double part)
{
	double local = s->local / (1 - part + part * s->receive);
	double remote = part > 0 ? s->remote / part : INFINITY;

	return MIN(s->gpu, MIN(local, remote));
}

static struct fastflow_profile profile_of(const struct servers *s)
{
	struct fastflow_profile p = { .gpu = s->gpu,
				      .local = rate(s, 0),
				      .prep_cpu = 1,
				      .remote_nodes = 1 };

	p.split[FASTFLOW_BATCH].rate = rate(s, 1);
	p.split[FASTFLOW_BATCH].receive_cpu = s->receive;
	return p;
}

static struct fastflow_decision decide(const struct servers *s,
				       enum fastflow_form form)
{
	struct fastflow_profile p = profile_of(s);
	struct fastflow_decision d;

	assert_int_equal(fastflow_decide(&p, form, &d), 0);
	return d;
}

static double best_rate(const struct servers *s)
{
	double best = 0;

	for (int i = 0; i <= 1000; i++)
		best = MAX(best, rate(s, i / 1000.));
	return best;
}

/* How far the part is from one within half a percent of the best. */
static double distance(const struct servers *s, double part)
{
	double best = best_rate(s), ret = 1;

	for (int i = 0; i <= 1000; i++)
		if (rate(s, i / 1000.) >= .995 * best)
			ret = MIN(ret, fabs(part - i / 1000.));
	return ret;
}

/* GAN ADA, which takes 10 cores, and Transformer ASR, which takes 20, as GPEmu
 * splits the cores. */
static void the_part_is_near_the_best_of_a_sweep(void **state)
{
	static const double cores[][2] = { { 3, 3 }, { 3, 6 }, { 6, 3 } };
	static const double needed[] = { 10, 20 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cores); i++)
		for (size_t k = 0; k < ARRAY_SIZE(needed); k++) {
			struct servers s = { cores[i][0], cores[i][1], .1,
					     needed[k] };
			double part = decide(&s, FASTFLOW_PAPER).part;
			double either = MAX(rate(&s, 0), rate(&s, 1));

			assert_true(distance(&s, part) <= .1);
			/* times: at most 1.05 of the better of none and all;
			 * with equal cores .80 of it */
			assert_true(rate(&s, part) >= either / 1.05);
			if (i == 0)
				assert_true(rate(&s, part) >= either / .8);
		}
}

static void so_it_is_for_any_servers(void **state)
{
	struct rng rng = rng_stream(1, "fastflow", 0);

	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct servers s = { 1 + 15 * rng_double(&rng),
				     1 + 15 * rng_double(&rng),
				     .1 * rng_double(&rng),
				     1 + 39 * rng_double(&rng) };
		struct fastflow_decision d = decide(&s, FASTFLOW_PAPER);

		if (s.gpu < 1.1 * rate(&s, 0)) {
			/* the little that could be gained is left */
			assert_true(d.part == 0);
			assert_true(best_rate(&s) <= 1.1 * rate(&s, 0));
			continue;
		}
		if (distance(&s, d.part) > .1)
			fail_msg("%g and %g cores, %g to receive, GPU %g: %g",
				 s.local, s.remote, s.receive, s.gpu, d.part);
	}
}

static void check_close(double got, double want)
{
	if (fabs(got - want) > 1e-9)
		fail_msg("%.12g is not %.12g", got, want);
}

static void numbers_by_hand(void **state)
{
	struct servers s = { 3, 6, .1, 100 };
	struct fastflow_decision d = decide(&s, FASTFLOW_PAPER);

	(void)state;
	/* lower = 97 * 1.1 is above upper: 6 / (3 + 6) */
	check_close(d.lower, 106.7);
	check_close(d.upper, 6);
	check_close(d.part, 2. / 3);
	/* lower = 2 * 1.1 is below: 6 / 8 */
	s.gpu = 8;
	s.local = 6;
	d = decide(&s, FASTFLOW_PAPER);
	check_close(d.lower, 2.2);
	check_close(d.part, .75);
	/* the code: max(6, 2.2) / 8, and with L > R the middle of 3 and 2.2 */
	check_close(decide(&s, FASTFLOW_CODE).part, .75);
	s.remote = 3;
	check_close(decide(&s, FASTFLOW_CODE).part, 2.6 / 8);
	/* a gain of 1/8 is enough for the paper, not for the code */
	s.gpu = 6.75;
	assert_true(decide(&s, FASTFLOW_PAPER).part > 0);
	assert_true(decide(&s, FASTFLOW_CODE).part == 0);
}

static void the_best_split_is_chosen(void **state)
{
	struct fastflow_profile p = {
		.gpu = 100, .local = 10, .prep_cpu = 1, .remote_nodes = 2
	};
	struct fastflow_decision d;

	(void)state;
	p.split[FASTFLOW_PREP].rate = 12; /* 10 * .5 + 12 */
	p.split[FASTFLOW_PREP].receive_cpu = .5;
	p.split[FASTFLOW_ELEMENT].rate = 9; /* 10 * .9 + 9 */
	p.split[FASTFLOW_ELEMENT].receive_cpu = .1;
	assert_int_equal(fastflow_decide(&p, FASTFLOW_PAPER, &d), 0);
	assert_int_equal(d.split, FASTFLOW_ELEMENT);
	/* the code counts nodes: 2 * 9 of 10 + 2 * 9 */
	assert_int_equal(fastflow_decide(&p, FASTFLOW_CODE, &d), 0);
	check_close(d.part, 18. / 28);
	/* none was measured */
	memset(p.split, 0, sizeof(p.split));
	assert_int_equal(fastflow_decide(&p, FASTFLOW_PAPER, &d), 0);
	assert_true(d.part == 0);
	p.local = NAN;
	assert_int_equal(fastflow_decide(&p, FASTFLOW_PAPER, &d), -EINVAL);
	p.local = 0;
	assert_int_equal(fastflow_decide(&p, FASTFLOW_PAPER, &d), -EINVAL);
}

static void turns_keep_the_part(void **state)
{
	(void)state;
	for (int i = 0; i <= 100; i++) {
		struct fastflow_turns t = { 0 };
		double part = i / 100.;

		for (int k = 1; k <= 1000; k++) {
			fastflow_turn(&t, part);
			assert_int_equal(t.n, k);
			assert_true(fabs((double)t.n_remote - part * k) < 1);
		}
		assert_int_equal(t.n_remote, i * 10);
	}
}

/* --- the file ------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void check_same(const struct fastflow_profile *a,
		       const struct fastflow_profile *b)
{
	check_close(a->gpu, b->gpu);
	check_close(a->local, b->local);
	check_close(a->prep_cpu, b->prep_cpu);
	assert_int_equal(a->remote_nodes, b->remote_nodes);
	for (int i = 0; i < FASTFLOW_SPLITS; i++) {
		check_close(a->split[i].rate, b->split[i].rate);
		check_close(a->split[i].receive_cpu, b->split[i].receive_cpu);
	}
}

static void profiles_are_kept(void **state)
{
	const struct servers s = { 3, 6, .1, 100 };
	struct fastflow_key key = { "decode\xff", "resnet50", "2 x 6 cores" };
	struct fastflow_profile p = profile_of(&s), got;
	char dir[] = "/tmp/gpemu-fastflow-XXXXXX", path[64];
	struct err err = { 0 };
	char name[16];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profiles.json", dir);
	assert_int_equal(fastflow_cache_get(path, &key, &got), -ENOENT);
	assert_int_equal(fastflow_cache_put(path, &key, &p, &err), 0);
	assert_int_equal(fastflow_cache_get(path, &key, &got), 0);
	check_same(&got, &p);
	/* another job, another node; and the newest counts */
	key.remote = "2 x 3 cores";
	assert_int_equal(fastflow_cache_get(path, &key, &got), -ENOENT);
	key.remote = "2 x 6 cores";
	p.local = 4;
	assert_int_equal(fastflow_cache_put(path, &key, &p, &err), 0);
	assert_int_equal(fastflow_cache_get(path, &key, &got), 0);
	assert_true(got.local == 4);
	/* it does not grow without bound; the oldest leave */
	for (int i = 0; i < FASTFLOW_CACHED; i++) {
		snprintf(name, sizeof(name), "job %d", i);
		assert_int_equal(fastflow_cache_put(path,
						    &(struct fastflow_key){
							    name, "m", "r" },
						    &p, &err),
				 0);
	}
	assert_int_equal(fastflow_cache_get(path, &key, &got), -ENOENT);
	p.gpu = NAN;
	assert_int_equal(fastflow_cache_put(path, &key, &p, &err), -EINVAL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void garbage_counts_as_absent(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[1, 2]",
		"\"text\"",
		"{\"fastflow_profiles\": 7}",
		"{\"fastflow_profiles\": [7, null, {}, []]}",
		"{\"fastflow_profiles\": [{\"pipeline\": \"a\", \"model\": "
		"\"b\", \"remote\": \"c\"}]}",
		"{\"fastflow_profiles\": [{\"pipeline\": \"a\", \"model\": "
		"\"b\", \"remote\": \"c\", \"gpu\": 1, \"local\": 1, "
		"\"prep_cpu\": 1, \"remote_nodes\": 1e300, \"splits\": {}}]}",
		"{\"fastflow_profiles\": [{\"pipeline\": \"a\", \"model\": "
		"\"b\", \"remote\": \"c\", \"gpu\": 1, \"local\": -1, "
		"\"prep_cpu\": 1, \"remote_nodes\": 1, \"splits\": "
		"[[1,1],[1,1],[1,\"x\"]]}]}",
	};
	const struct fastflow_key key = { "a", "b", "c" };
	const struct servers s = { 3, 6, .1, 100 };
	struct fastflow_profile p = profile_of(&s), got;
	char dir[] = "/tmp/gpemu-fastflow-XXXXXX", path[64];
	struct err err = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/profiles.json", dir);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		write_text(path, texts[i]);
		assert_int_equal(fastflow_cache_get(path, &key, &got), -ENOENT);
		assert_int_equal(fastflow_cache_put(path, &key, &p, &err), 0);
		assert_int_equal(fastflow_cache_get(path, &key, &got), 0);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_part_is_near_the_best_of_a_sweep),
		cmocka_unit_test(so_it_is_for_any_servers),
		cmocka_unit_test(numbers_by_hand),
		cmocka_unit_test(the_best_split_is_chosen),
		cmocka_unit_test(turns_keep_the_part),
		cmocka_unit_test(profiles_are_kept),
		cmocka_unit_test(garbage_counts_as_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
