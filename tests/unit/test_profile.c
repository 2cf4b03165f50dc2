/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/text/rows.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_dataset.h"
#include "emu/profile/profile_gpu.h"
#include "emu/node/profile_node.h"
#include "emu/profile/profile_prep.h"
#include "emu/profile/profile_share.h"
#include "emu/profile/profile_storage.h"

static void every_profile_loads(void **state)
{
	static const size_t least[] = { 16, 10, 10, 3, 5, 1 };
	(void)state;
	for (int k = 0; k < PROFILE_N_KINDS; k++) {
		struct err err = { 0 };
		struct storage_profile *s;
		struct dataset_profile d;
		struct share_profile h;
		struct prep_profile c;
		struct node_profile o;
		struct gpu_profile g;
		char **names;
		size_t n = 0;
		int r = profile_names((enum profile_kind)k, &names, &err);

		for (; r == 0 && names[n]; n++) {
			if (k == PROFILE_GPU) {
				r = gpu_profile_load(names[n], &g, &err);
				gpu_profile_free(&g);
			} else if (k == PROFILE_DATASET) {
				r = dataset_profile_load(names[n], &d, &err);
				dataset_profile_free(&d);
			} else if (k == PROFILE_SHARE) {
				r = share_profile_load(names[n], &h, &err);
				share_profile_free(&h);
			} else if (k == PROFILE_PREP) {
				r = prep_profile_load(names[n], &c, &err);
				prep_profile_free(&c);
			} else if (k == PROFILE_NODE) {
				r = node_profile_load(names[n], &o, &err);
				node_profile_free(&o);
			} else {
				r = storage_profile_load(names[n], &s, &err);
				if (r == 0)
					storage_profile_free(s);
			}
		}
		if (r < 0)
			fail_msg("%s", err.text);
		assert_true(n >= least[k]);
		profile_names_free(names);
	}
}

static void a_gpu_has_its_cost_of_time_slicing(void **state)
{
	struct share_profile p;
	struct gpu_profile g;

	(void)state;
	assert_int_equal(gpu_profile_load("h100", &g, NULL), 0);
	assert_int_equal(share_profile_of_gpu(g.name, &p, NULL), 1);
	assert_string_equal(p.name, "timeslice-h100");
	/* two jobs as measured, to which it was fitted; three were held out:
	 * measured 7.9971, 7.9960, 7.9950 steps per second, 25.866 alone */
	assert_true(fabs(25.866 * share_profile_speedup(&p, 2) / 2 / 11.9898 -
			 1) < .0005);
	assert_true(fabs(25.866 * share_profile_speedup(&p, 3) / 3 / 7.9960 -
			 1) < .001);
	share_profile_free(&p);
	gpu_profile_free(&g);
	assert_int_equal(share_profile_of_gpu("Tesla V100-PCIE-32GB", &p, NULL),
			 0);
	assert_int_equal(p.rows.n, 0);
	share_profile_free(&p);
}

static void datasets_are_linear_between_points(void **state)
{
	static const char yaml[] =
		"name: t\nsource: s\nverified: true\nformat: jpeg\n"
		"files: 10\nsizes: [[0, 100], [0.5, 200], [1, 1000]]\n";
	struct dataset_profile p;

	(void)state;
	assert_int_equal(dataset_profile_parse(yaml, strlen(yaml), "t.yaml", &p,
					       NULL),
			 0);
	assert_int_equal(p.samples_per_file, 1);
	assert_true(dataset_profile_quantile(&p, 0) == 100);
	assert_true(dataset_profile_quantile(&p, .25) == 150);
	assert_true(dataset_profile_quantile(&p, .75) == 600);
	assert_true(dataset_profile_quantile(&p, 1) == 1000);
	/* .5 * 150 + .5 * 600 */
	assert_true(dataset_profile_mean(&p) == 375);
	dataset_profile_free(&p);
	assert_int_equal(dataset_profile_load("imagenet", &p, NULL), 0);
	assert_int_equal(p.files, 1281167);
	/* Source: GPEmu artifact, plots/new/sff/size: p50 108.1 KB, p90 186.7
	 */
	assert_true(fabs(dataset_profile_quantile(&p, .5) / 108.1e3 - 1) < .03);
	assert_true(fabs(dataset_profile_quantile(&p, .9) / 186.7e3 - 1) < .03);
	dataset_profile_free(&p);
}

/* --- bad input -------------------------------------------------------- */

#define GROUP "{source: s, verified: true}\n"
static void preprocessing_has_a_cost(void **state)
{
	static const char yaml[] =
		"name: t\nsource: s\nverified: true\nper_mb: 10ms\n"
		"sample: {kind: uniform, min: 2ms, max: 4ms}\n";
	struct rng rng = rng_stream(1, "cost", 0);
	struct err err = { 0 };
	struct prep_profile p;
	double sum = 0;

	(void)state;
	assert_int_equal(prep_profile_load("pytorch-pillow", &p, &err), 0);
	assert_int_equal(prep_profile_cost(&p, 12345, &rng), 6452000);
	prep_profile_free(&p);

	assert_int_equal(prep_profile_parse(yaml, strlen(yaml), "t", &p, &err),
			 0);
	for (int i = 0; i < 10000; i++) {
		double ns = (double)prep_profile_cost(&p, 500000, &rng);

		assert_true(ns >= 7e6 && ns <= 9e6);
		sum += ns / 10000;
	}
	/* five standard errors of the mean */
	assert_float_equal(sum, 8e6, 5 * 2e6 / sqrt(12) / 100);
	prep_profile_free(&p);
}

static void bad_prep_profiles(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ "name: t\nsource: s\nverified: true\n", "sample" },
		{ "name: t\nverified: true\nsample: {kind: const}\n",
		  "source" },
		{ "name: t\nsource: s\nverified: true\n"
		  "sample: {kind: const, value: 3}\n",
		  "t:4:" },
		{ "name: t\nsource: s\nverified: true\n"
		  "sample: {kind: const, value: 3ms}\nper_byte: 1ns\n",
		  "t:5:1: unknown" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct prep_profile p;
		struct err err = { 0 };

		assert_int_equal(prep_profile_parse(bad[i].yaml,
						    strlen(bad[i].yaml), "t",
						    &p, &err),
				 -EINVAL);
		if (!strstr(err.text, bad[i].text))
			fail_msg("%zu: %s", i, err.text);
		prep_profile_free(&p);
	}
}

#define STORAGE(read)                                                        \
	"name: t\nsource: s\nchannels: " GROUP "link: " GROUP "iops: " GROUP \
	"open: " GROUP "lookup: " GROUP "readdir: " GROUP                    \
	"read: {source: s, verified: true, latency: " read "}\n"

static void bad_storage_profiles(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ STORAGE("{kind: pareto}"),
		  "t.yaml:9:44: unknown kind 'pareto' (known: const uniform "
		  "normal lognormal gamma empirical)" },
		{ STORAGE("{kind: const, value: -1ms}"),
		  "t.yaml:9:65: value: '-1ms' is out of range" },
		{ STORAGE("{kind: const, value: 1}"),
		  "t.yaml:9:65: value: '1' is not a duration with its unit, "
		  "such as 80us or 5ms" },
		{ STORAGE("{kind: const, mean: 1ms}"),
		  "t.yaml:9:44: 'mean' is not a parameter of 'const'" },
		{ STORAGE("{kind: uniform, min: 2ms, max: 1ms}"),
		  "t.yaml:9:44: min is above max" },
		{ STORAGE("{kind: gamma, mean: 2ms}"),
		  "t.yaml:9:44: 'gamma' needs 'shape'" },
		{ STORAGE("{kind: lognormal, median: 2ms}"),
		  "t.yaml:9:44: 'lognormal' needs 'sigma'" },
		{ STORAGE("{kind: normal, sd: 2ms}"),
		  "t.yaml:9:44: 'normal' needs 'mean'" },
		{ STORAGE("{kind: empirical, quantiles: [[0, 1ms]]}"),
		  "t.yaml:9:44: quantiles must go from 0 to 1, with two "
		  "rows or more" },
		{ STORAGE("{kind: empirical, quantiles: [[0, 2ms], [1, "
			  "1ms]]}"),
		  "t.yaml:9:44: quantiles must ascend" },
		{ STORAGE("{kind: const, tail: {probability: 0.1}}"),
		  "t.yaml:9:64: a tail needs one of 'multiply' and "
		  "'replace'" },
		{ "name: t\n", "t.yaml:1:1: 'source' is missing" },
		{ "name: t\nsource: s\nprice: {read_usd_per_1000: 1}\n",
		  "t.yaml:3:8: 'source' is missing" },
		{ "name: t\nsource: s\n"
		  "price: {source: s, usd_per_gib: -1}\n",
		  "t.yaml:3:33: usd_per_gib: -1 is outside 0..1000" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct storage_profile *p;
		struct err err = { 0 };

		assert_int_equal(storage_profile_parse(bad[i].yaml,
						       strlen(bad[i].yaml),
						       "t.yaml", &p, &err),
				 -EINVAL);
		assert_string_equal(err.text, bad[i].text);
	}
}

/* Source: Amazon S3 FAQs, the example of S3 Express One Zone: 9,000,000 GET
 * requests of 10 KB are 0.27 USD, and 0.05 USD for the bytes; 1,000,000 PUT
 * requests of 10 KB are 1.13 USD, and 0.03 USD for the bytes. */
static void requests_cost_what_the_provider_says(void **state)
{
	const uint64_t n = 9000000;
	struct storage_profile *p;
	double get, put, bytes;

	(void)state;
	assert_int_equal(storage_profile_load("s3-express", &p, NULL), 0);
	get = storage_cost_usd(p, STORAGE_READ, 0);
	bytes = storage_cost_usd(p, STORAGE_READ, 10 * KIB) - get;
	assert_float_equal(get * (double)n, .27, 1e-9);
	assert_float_equal(bytes * (double)n, .05, .005);
	/* no bytes come with a listing */
	assert_float_equal(storage_cost_usd(p, STORAGE_READDIR, GIB), 1.13e-6,
			   1e-12);
	/* a mount puts parts of 8 MiB: 128 for each GiB */
	assert_float_equal(storage_cost_usd(p, STORAGE_WRITE, GIB),
			   128 * 1.13e-6 + .0032, 1e-9);
	storage_profile_expose(p);
	put = storage_cost_usd(p, STORAGE_WRITE, 0);
	bytes = storage_cost_usd(p, STORAGE_WRITE, 10 * KIB) - put;
	assert_float_equal(put * 1e6, 1.13, 1e-9);
	assert_float_equal(bytes * 1e6, .03, .005);
	storage_profile_free(p);
	assert_int_equal(storage_profile_load("nvme", &p, NULL), 0);
	assert_null(p->price.source);
	assert_true(storage_cost_usd(p, STORAGE_READ, GIB) == 0);
	storage_profile_free(p);
}

#define DATASET(sizes)                                                         \
	"name: t\nsource: s\nverified: true\nformat: jpeg\nfiles: 10\nsizes: " \
	"[" sizes "]\n"

static void bad_dataset_profiles(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ DATASET("[0, 1]"),
		  "t.yaml:6:8: sizes needs at least two points" },
		{ DATASET("[0.1, 1], [1, 2]"),
		  "t.yaml:6:9: the first quantile must be 0" },
		{ DATASET("[0, 1], [0.9, 2]"),
		  "t.yaml:6:17: the last quantile must be 1" },
		{ DATASET("[0, 1], [0.5, 3], [1, 2]"),
		  "t.yaml:6:27: quantiles must ascend, and their sizes must "
		  "not fall" },
		{ DATASET("[0, 1], [1, 2]") "classes: 11\n",
		  "t.yaml:7:10: more classes than files" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct dataset_profile p;
		struct err err = { 0 };

		assert_int_equal(dataset_profile_parse(bad[i].yaml,
						       strlen(bad[i].yaml),
						       "t.yaml", &p, &err),
				 -EINVAL);
		assert_string_equal(err.text, bad[i].text);
		dataset_profile_free(&p);
	}
}

/* A table with columns b and a: its first row, and then what is wrong. */
static int read_ba(const char *text, struct rows *c, double ret[2],
		   struct err *err)
{
	static const char *const words[] = { "b", "a" };
	int at[2], r;

	*c = (struct rows){ .name = "t.csv",
			    .at = text,
			    .end = text + strlen(text),
			    .err = err };
	r = rows_begin_table(c, words, 2, 2, at);
	for (int row = 0; r == 0 && rows_next(c); row++) {
		double v;

		r = rows_check_width(c);
		for (int i = 0; r == 0 && i < 2; i++)
			r = rows_number(c, at[i], words[i], 0, 9,
					row ? &v : &ret[i]);
	}
	return r;
}

static void bad_tables(void **state)
{
	static const struct {
		const char *csv, *text;
	} bad[] = {
		{ "", "t.csv:1:1: no rows" },
		{ "a,c\n1,2\n", "t.csv:1:1: no column 'b' in the header" },
		{ "a,b\n1,2\n1\n",
		  "t.csv:3:1: 1 cells where the header has 2" },
		{ "a,b\n1,2,3\n", "t.csv:2:1: 3 cells where the header has 2" },
		/* the requested order; quotes, blanks, comments, an order mark;
		 * any line ends, no newline at the end */
		{ "\xef\xbb\xbf"
		  "a,x,b\r\n# quoted\r\n"
		  "\"1\",\"y,z\", 2\r\n3,,nan",
		  "t.csv:4:4: b: 'nan' is not a number" },
	};
	double v[2] = { 0 };
	struct rows c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = { 0 };

		assert_int_equal(read_ba(bad[i].csv, &c, v, &err), -EINVAL);
		assert_string_equal(err.text, bad[i].text);
	}
	assert_true(v[0] == 2 && v[1] == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_profile_loads),
		cmocka_unit_test(a_gpu_has_its_cost_of_time_slicing),
		cmocka_unit_test(datasets_are_linear_between_points),
		cmocka_unit_test(bad_storage_profiles),
		cmocka_unit_test(requests_cost_what_the_provider_says),
		cmocka_unit_test(preprocessing_has_a_cost),
		cmocka_unit_test(bad_prep_profiles),
		cmocka_unit_test(bad_dataset_profiles),
		cmocka_unit_test(bad_tables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
