/* SPDX-License-Identifier: MIT */
#include "tests/unit/profile_rig.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "emu/profile/profile_table.h"

#define HEAD                                                      \
	"name: T\naliases: [t]\nsource: test\nmemory_mib: 1000\n" \
	"usable_memory: 0.9\nsample_bytes: 100\n"                 \
	"pinned: {base_ms: 1, per_sample_ms: 0.5, source: s}\n"   \
	"pin_copy: {base_ms: 2, per_sample_ms: 0.25, source: s}\n"
#define MODEL(name, last, limit, rows)                                        \
	"  " name ": {parameters: 5, model_transfer_ms: 3, last_batch: " last \
	", last_is_limit: " limit ", tolerance_pct: 1, rows: [" rows "]}\n"
#define ROWS "[2, 10, 20, 1, 100, 50], [4, 14, 30, 2, 180, 60]"

static const char *const GPU = HEAD "models:\n" MODEL("m", "4", "false", ROWS)
	MODEL("limited", "4", "true", ROWS)
		MODEL("one", "4", "false", "[4, 8, 16, 2, 400, 40]");

static struct gpu_profile parse_gpu(void)
{
	struct gpu_profile p;
	struct err err = { 0 };

	if (gpu_profile_parse(GPU, strlen(GPU), "t.yaml", &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static void a_measured_step(void **state)
{
	struct gpu_profile p = parse_gpu();
	struct gpu_cost c = cost(&p, "m", 4);

	(void)state;
	assert_int_equal(c.origin, GPU_MEASURED);
	assert_int_equal(c.forward_ns, 14000000);
	assert_int_equal(c.backward_ns, 30000000);
	assert_int_equal(c.transfer_pageable_ns, 2000000);
	assert_int_equal(c.transfer_pinned_ns, 3000000);
	assert_int_equal(c.pin_copy_ns, 3000000);
	assert_true(c.peak_mib == 180 && c.persistent_mib == 60);
	gpu_profile_free(&p);
}

static void between_and_beyond(void **state)
{
	struct gpu_profile p = parse_gpu();
	struct gpu_cost c = cost(&p, "m", 3);

	(void)state;
	assert_int_equal(c.origin, GPU_INTERPOLATED);
	assert_int_equal(c.forward_ns, 12000000);
	assert_int_equal(c.backward_ns, 25000000);
	assert_true(c.peak_mib == 140);
	c = cost(&p, "m", 10); /* 14 + 3 x 4, 30 + 3 x 10, 180 + 3 x 80 */
	assert_int_equal(c.origin, GPU_EXTRAPOLATED);
	assert_int_equal(c.forward_ns, 26000000);
	assert_int_equal(c.backward_ns, 60000000);
	assert_true(c.peak_mib == 420);
	c = cost(&p, "m", 1); /* below the first row */
	assert_int_equal(c.origin, GPU_EXTRAPOLATED);
	assert_int_equal(c.forward_ns, 8000000);
	c = cost(&p, "one", 8); /* one row: through the origin */
	assert_int_equal(c.origin, GPU_EXTRAPOLATED);
	assert_int_equal(c.forward_ns, 16000000);
	assert_int_equal(cost(&p, "one", 4).origin, GPU_MEASURED);
	gpu_profile_free(&p);
}

static void the_largest_batch(void **state)
{
	struct gpu_profile p = parse_gpu();

	(void)state;
	/* 180 + 40 (b - 4) <= 900: b <= 22 */
	assert_int_equal(
		gpu_profile_largest_batch(&p, gpu_profile_model(&p, "m", NULL)),
		22);
	assert_int_equal(gpu_profile_largest_batch(
				 &p, gpu_profile_model(&p, "limited", NULL)),
			 4);
	/* a batch that ran did fit, even if the estimate says otherwise */
	p.usable_memory = 0.1;
	assert_int_equal(
		gpu_profile_largest_batch(&p, gpu_profile_model(&p, "m", NULL)),
		4);
	gpu_profile_free(&p);
}

static void another_memory(void **state)
{
	struct gpu_profile p = parse_gpu();

	(void)state;
	/* 180 + 40 (b - 4) <= .9 * 150, where b = 4 was measured with 180 */
	gpu_profile_resize(&p, 150);
	assert_int_equal(
		gpu_profile_largest_batch(&p, gpu_profile_model(&p, "m", NULL)),
		2);
	/* an out-of-memory point is of the memory that was measured */
	gpu_profile_resize(&p, 2000);
	assert_int_equal(gpu_profile_largest_batch(
				 &p, gpu_profile_model(&p, "limited", NULL)),
			 44);
	gpu_profile_free(&p);
	/* a profile whose memory was edited: what peaks above it does not fit
	 */
	p = parse_gpu();
	p.memory_mib = 150;
	assert_int_equal(gpu_profile_largest_batch(
				 &p, gpu_profile_model(&p, "limited", NULL)),
			 2);
	gpu_profile_free(&p);
}

#define NO_LAWS                                                         \
	"name: T\nsource: test\nmemory_mib: 1000\nusable_memory: 0.9\n" \
	"sample_bytes: 100\n"
#define COPIES                                                            \
	"copies: {rows: [[100, 1, 2, 3], [200, 3, 4, 5], [400, 3, 4, 9]]" \
	", source: s}\n"

static void copies_as_a_table(void **state)
{
	static const char yaml[] = NO_LAWS COPIES
		"models:\n  m: {parameters: 100, rows: [[3, 8, 16]]}\n";
	static const struct {
		uint64_t bytes;
		double ms[3];
	} known[] = {
		{ 0, { 0, 0, 0 } },	 { 1, { 1, 2, 3 } },
		{ 100, { 1, 2, 3 } },	 { 150, { 2, 3, 4 } },
		{ 300, { 3, 4, 7 } },	 { 400, { 3, 4, 9 } },
		{ 1200, { 9, 12, 27 } },
	};
	char *bytes = NULL;
	size_t n = 0;
	struct gpu_profile p;

	(void)state;
	assert_int_equal(gpu_profile_parse(yaml, strlen(yaml), "t", &p, NULL),
			 0);
	/* writing and reading changes nothing */
	FILE *f = open_memstream(&bytes, &n);

	gpu_profile_write(&p, f);
	fclose(f);
	gpu_profile_free(&p);
	assert_int_equal(gpu_profile_parse(bytes, n, "t", &p, NULL), 0);
	free(bytes);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		for (int how = 0; how < 3; how++)
			assert_int_equal(gpu_copy_ns(&p, NULL, how,
						     known[i].bytes),
					 known[i].ms[how] * 1e6);
	/* the model's parameters in fp32, and a batch of 300 bytes */
	assert_int_equal(cost(&p, "m", 3).transfer_pageable_ns, 3000000);
	assert_int_equal(
		gpu_model_transfer_ns(gpu_profile_model(&p, "m", NULL)),
		3000000);
	assert_true(gpu_link_bytes_per_s(&p) == 400 / 4e-3);
	gpu_profile_free(&p);
}

static void names_and_aliases(void **state)
{
	static const char *const names[] = { "v100", "tesla-v100-pcie-32gb",
					     "Tesla_V100-PCIE-32GB",
					     "Tesla V100-PCIE-32GB" };
	struct gpu_profile p;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		err = (struct err){ 0 };
		if (gpu_profile_load(names[i], &p, &err) < 0)
			fail_msg("%s", err.text);
		assert_string_equal(p.name, "Tesla V100-PCIE-32GB");
		gpu_profile_free(&p);
	}
	err = (struct err){ 0 };
	assert_int_equal(gpu_profile_load("v1000", &p, &err), -ENOENT);
	assert_non_null(strstr(err.text, "unknown gpu profile 'v1000'"));
	assert_non_null(strstr(err.text, "tesla-v100-pcie-32gb (v100"));
	gpu_profile_free(&p);
	err = (struct err){ 0 };
	assert_int_equal(gpu_profile_load("", &p, &err), -EINVAL);
	gpu_profile_free(&p);
}

/* A row of times only: the link says how long copies take. */
static void copies_that_nobody_measured(void **state)
{
	static const char yaml[] = HEAD
		"models:\n  m: {parameters: 50, rows: [[4, 8, 16]]}\n"
		"  n: {parameters: 50, rows: [[4, 8, 16, 9]]}\n";
	struct gpu_profile p;
	const struct gpu_model *m;
	char text[GPU_BATCHES_TEXT];

	(void)state;
	assert_int_equal(
		gpu_profile_parse(yaml, strlen(yaml), "t.yaml", &p, NULL), 0);
	m = gpu_profile_model(&p, "m", NULL);
	assert_false(m->copies_measured);
	assert_int_equal(m->last_batch, 4);
	assert_false(m->last_is_limit || m->tolerance_pct > 0);
	/* 1 ms + 0.5 ms per 100 bytes: of 400 bytes, and of 200 */
	assert_int_equal(cost(&p, "m", 4).transfer_pageable_ns, 3000000);
	assert_int_equal(gpu_model_transfer_ns(m), 2000000);
	assert_string_equal(gpu_model_batches(m, text), "4");
	m = gpu_profile_model(&p, "n", NULL);
	assert_true(m->copies_measured);
	assert_int_equal(cost(&p, "n", 4).transfer_pageable_ns, 9000000);
	gpu_profile_free(&p);
}

/* A profile, written and read again. */
static void reread(const char *yaml, struct gpu_profile *ret)
{
	_cleanup_free_ char *text = NULL;
	struct gpu_profile p;
	struct err err = { 0 };
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (gpu_profile_parse(yaml, strlen(yaml), "t.yaml", &p, &err) < 0)
		fail_msg("%s", err.text);
	gpu_profile_write(&p, f);
	fclose(f);
	gpu_profile_free(&p);
	if (gpu_profile_parse(text, n, "again.yaml", ret, &err) < 0)
		fail_msg("%s", err.text);
}

/* Optional parts: columns of a row, the size of a model's samples. */
static void more_than_the_published_tables_have(void **state)
{
	static const char more[] = HEAD "models:\n" MODEL(
		"m", "4", "false",
		ROWS) "  m:bf16:channels_last: {parameters: 5, sample_bytes: "
		      "300, "
		      "model_transfer_ms: 3, host_ms: 1.5, warmup_ms: [300, "
		      "20.5], last_batch: 4, last_is_limit: "
		      "false, "
		      "tolerance_pct: 1, rows: [[2, 10, 20, 1, 100, 50, 6, 2], "
		      "[4, 14, 30, 2, 180, 60, 8, 1]]}\n";
	struct gpu_profile again;

	(void)state;
	reread(more, &again);

	const struct gpu_model *b =
		gpu_profile_model(&again, "m:bf16:channels_last", NULL);
	const double *warmup = b->warmup_ms.items;
	struct gpu_cost c = cost(&again, "m:bf16:channels_last", 3);

	assert_true(b->host_ms == 1.5 && b->warmup_ms.n == 2);
	assert_true(warmup[0] == 300 && warmup[1] == 20.5);

	assert_int_equal(c.backward_ns, 25000000);
	assert_int_equal(c.optimizer_ns, 7000000);
	assert_true(c.spread_pct == 1.5);
	/* the law is for 100 bytes: 1 ms + 0.5 ms x 3 samples x 3 */
	assert_int_equal(c.transfer_pinned_ns, 5500000);
	assert_int_equal(c.pin_copy_ns, 4250000);
	c = cost(&again, "m", 3);
	assert_int_equal(c.optimizer_ns, 0);
	assert_int_equal(c.transfer_pinned_ns, 2500000);
	gpu_profile_free(&again);
}

/*
 * The laws are for 100 bytes. A row of "m" is 2 samples of 100 bytes in 1 ms
 * and 4 in 2; one of "own" has samples of 300, in the same times.
 */
static void bytes_cost_the_same_whatever_they_are(void **state)
{
	static const char yaml[] = HEAD "models:\n" MODEL(
		"m", "4", "false",
		ROWS) "  own: "
		      "{parameters: 5, sample_bytes: 300, model_transfer_ms: "
		      "3, "
		      "last_batch: 4, last_is_limit: false, tolerance_pct: 1, "
		      "rows: [" ROWS "]}\n";
	static const struct {
		const char *model;
		enum gpu_copy how;
		uint64_t bytes, ns;
	} want[] = {
		{ "m", GPU_COPY_PINNED, 0, 0 },
		{ "m", GPU_COPY_TO_PINNED, 0, 0 },
		{ "m", GPU_COPY_PAGEABLE, 0, 0 },
		/* 1 ms + 0.5 ms each 100 bytes; 2 ms + 0.25 ms */
		{ "m", GPU_COPY_PINNED, 100, 1500000 },
		{ "own", GPU_COPY_PINNED, 100, 1500000 },
		{ "m", GPU_COPY_PINNED, 50, 1250000 },
		{ "own", GPU_COPY_PINNED, 4000, 21000000 },
		{ "m", GPU_COPY_TO_PINNED, 400, 3000000 },
		{ "own", GPU_COPY_TO_PINNED, 400, 3000000 },
		{ "own", GPU_COPY_TO_PINNED, 1, 2002500 },
		/* 200 bytes 1 ms, 400 bytes 2 ms, on at 5 us a byte */
		{ "m", GPU_COPY_PAGEABLE, 250, 1250000 },
		{ "m", GPU_COPY_PAGEABLE, 100, 500000 },
		{ "m", GPU_COPY_PAGEABLE, 40000, 200000000 },
		/* 600 bytes 1 ms, 1200 bytes 2 ms */
		{ "own", GPU_COPY_PAGEABLE, 900, 1500000 },
		{ "own", GPU_COPY_PAGEABLE, 1000000, 1666666667 },
	};
	struct gpu_profile p;
	struct err err = { 0 };

	(void)state;
	if (gpu_profile_parse(yaml, strlen(yaml), "t.yaml", &p, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const struct gpu_model *m =
			gpu_profile_model(&p, want[i].model, NULL);

		assert_int_equal(gpu_copy_ns(&p, m, want[i].how, want[i].bytes),
				 want[i].ns);
	}
	/* 100 bytes in 0.5 ms */
	assert_true(gpu_link_bytes_per_s(&p) == 200000);
	assert_int_equal(
		gpu_sample_bytes(&p, gpu_profile_model(&p, "own", NULL)), 300);
	gpu_profile_free(&p);
}

/* Even with an extreme law, clocks must not wrap. */
static void absurd_copies_end(void **state)
{
	struct gpu_profile p = { .sample_bytes = 1,
				 .pinned = { .per_sample_ms = 1e9 } };

	(void)state;
	assert_int_equal(gpu_copy_ns(&p, NULL, GPU_COPY_PINNED, UINT64_MAX),
			 UINT64_C(1000000000000000000));
}

/* A sample has 100 bytes, one of "big" has 300. */
static void no_line_crosses_a_jump_of_the_transfer(void **state)
{
	static const char yaml[] = HEAD
		"transfer_jump: {bytes: 500, source: the reason}\n"
		"models:\n" MODEL("m", "8", "false",
				  ROWS ", [6, 18, 40, 13, 260, 70], "
				       "[8, 22, 50, 15, 340, 80]")
			MODEL("short", "6", "false",
			      ROWS ", [6, 18, 40, 13, 260, 70]")
				MODEL("below", "4", "false",
				      ROWS) "  big: {parameters: 5, "
					    "sample_bytes: 300, "
					    "model_transfer_ms: 3, last_batch: "
					    "4, last_is_limit: false, "
					    "tolerance_pct: 1, rows: [" ROWS
					    "]}\n";
	static const struct {
		const char *model;
		uint64_t batch, transfer_ns;
	} want[] = {
		{ "m", 1, 500000 },
		{ "m", 3, 1500000 },
		{ "m", 4, 2000000 },
		{ "m", 5, 12000000 },
		{ "m", 6, 13000000 },
		{ "m", 7, 14000000 },
		{ "m", 10, 18750000 }, /* at the rate of 8: 15 ms */
		{ "short", 3, 1500000 },
		{ "short", 12, 26000000 }, /* one row: through the origin */
		{ "below", 6, 3000000 },   /* no row: as without a jump */
		{ "big", 3, 1500000 },
	};
	struct gpu_profile again;

	(void)state;
	reread(yaml, &again);
	assert_string_equal(again.transfer_jump.source, "the reason");
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(cost(&again, want[i].model, want[i].batch)
					 .transfer_pageable_ns,
				 want[i].transfer_ns);
	/* the other columns have no jump */
	assert_int_equal(cost(&again, "m", 5).forward_ns, 16000000);
	assert_int_equal(cost(&again, "m", 5).origin, GPU_INTERPOLATED);
	/* 500 bytes are 5 samples: the jump is before them */
	assert_int_equal(gpu_profile_jump_batch(
				 &again, gpu_profile_model(&again, "m", NULL)),
			 4);
	assert_int_equal(
		gpu_profile_jump_batch(&again,
				       gpu_profile_model(&again, "big", NULL)),
		1);
	gpu_profile_free(&again);
}

static void a_board_and_its_power(void **state)
{
	static const char yaml[] = HEAD
		"board: {compute_capability: 7.5, power_limit_w: 250, "
		"power_idle_w: 50, power_min_w: 100, pcie_width: 16, "
		"brand: Tesla, ecc: true, source: the card}\n"
		"models:\n" MODEL("m", "4", "false", ROWS);
	struct gpu_profile p, again;

	(void)state;
	reread(yaml, &again);
	assert_string_equal(again.board.source, "the card");
	assert_true(again.board.compute_capability == 7.5);
	assert_true(again.board.pcie_width == 16);
	assert_true(again.board.clock_mhz == 0);
	assert_string_equal(again.board.brand, "Tesla");
	assert_true(again.board.ecc && !again.board.mig);
	assert_true(again.board.power_min_w == 100);
	assert_true(gpu_board_power_w(&again.board, 0) == 50);
	assert_true(gpu_board_power_w(&again.board, .5) == 150);
	assert_true(gpu_board_power_w(&again.board, 1) == 250);
	gpu_profile_free(&again);
	/* without an idle power there is no line */
	p = parse_gpu();
	assert_true(gpu_board_power_w(&p.board, .5) == 0);
	gpu_profile_free(&p);
}

/* --- bad input -------------------------------------------------------- */

static void bad_gpu_profiles(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ HEAD "models: {}\n", "t.yaml:9:9: no models" },
		{ HEAD "models:\n" MODEL("m", "4", "true", ""),
		  "t.yaml:10:104: no rows" },
		{ HEAD "models:\n" MODEL("m", "2", "true",
					 "[4, 1, 1, 1, 2, 1], "
					 "[2, 1, 1, 1, 2, 1]"),
		  "t.yaml:10:125: batch sizes must ascend" },
		{ HEAD
		  "models:\n" MODEL("m", "5", "true", "[4, 1, 1, 1, 2, 1]"),
		  "t.yaml:10:56: last_batch must be the last row's" },
		{ HEAD
		  "models:\n" MODEL("m", "4", "true", "[4, -1, 1, 1, 2, 1]"),
		  "t.yaml:10:109: forward_ms: -1 is outside 0..1000000000" },
		{ HEAD
		  "models:\n" MODEL("m", "4", "true", "[4, 1, 1, 1, 2, 3]"),
		  "t.yaml:10:105: persistent_mib is above peak_mib" },
		{ HEAD
		  "models:\n" MODEL("m", "4", "true", "[4, 1, 1, 1, 2, 1, 2]"),
		  "t.yaml:10:105: optimizer_ms is above backward_ms, of which "
		  "it is a part" },
		{ HEAD, "t.yaml:1:1: 'models' is missing" },
		{ HEAD COPIES "models:\n" MODEL("m", "4", "true", ROWS),
		  "t.yaml:9:9: copies stand instead of pinned, pin_copy and "
		  "transfer_jump" },
		{ NO_LAWS "copies: {rows: [[2, 1, 1, 1], [2, 1, 1, 1]], "
			  "source: s}\nmodels:\n" MODEL("m", "4", "true", ROWS),
		  "t.yaml:6:9: bytes must ascend" },
		{ NO_LAWS "copies: {rows: [], source: s}\n"
			  "models:\n" MODEL("m", "4", "true", ROWS),
		  "t.yaml:6:9: no rows" },
		{ HEAD "transfer_jump: {bytes: 0, source: s}\n",
		  "t.yaml:9:24: bytes: 0 is outside 1..1e+15" },
		{ HEAD "transfer_jump: {bytes: 1}\n",
		  "t.yaml:9:16: 'source' is missing" },
		{ HEAD "board: {clock_mhz: 0, source: s}\n",
		  "t.yaml:9:20: clock_mhz: 0 is outside 1..100000" },
		{ HEAD "board: {clock_mhz: 5}\n",
		  "t.yaml:9:8: 'source' is missing" },
		{ HEAD "board: {power_limit_w: 5, power_idle_w: 6, "
		       "source: s}\n",
		  "t.yaml:9:8: power_idle_w is above power_limit_w" },
		{ HEAD "board: {power_limit_w: 5, power_min_w: 6, "
		       "source: s}\n",
		  "t.yaml:9:8: power_limit_w is not within power_min_w and "
		  "power_max_w" },
		{ "name: T\nmodel: x\n",
		  "t.yaml:2:1: unknown key 'model'; did you mean 'models'?" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct gpu_profile p;
		struct err err = { 0 };

		assert_int_equal(gpu_profile_parse(bad[i].yaml,
						   strlen(bad[i].yaml),
						   "t.yaml", &p, &err),
				 -EINVAL);
		assert_string_equal(err.text, bad[i].text);
		gpu_profile_free(&p);
	}
}

/* --- thinning --------------------------------------------------------- */

/* All columns on one line. */
static void straight(struct table_point *points, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		points[i].batch = i + 1;
		for (size_t c = 0; c < TABLE_COLUMNS; c++)
			points[i].v[c] = 10 + 2. * (double)(i + 1);
	}
}

static void straight_lines_need_two_rows(void **state)
{
	struct table_point points[100];
	struct table_model m = { .points = points, .n = 100 };
	struct gpu_row *rows;
	size_t n;

	(void)state;
	straight(points, m.n);
	assert_int_equal(table_thin(&m, 0, .01, &rows, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0].batch, 1);
	assert_int_equal(rows[1].batch, 100);
	free(rows);
	/* a step and a spike in one column stay: five rows more */
	for (size_t i = 50; i < m.n; i++)
		points[i].v[1] += 50;
	points[20].v[1] *= 2;
	assert_int_equal(table_thin(&m, 0, .001, &rows, &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(rows[2].batch, 21);
	assert_true(rows[2].backward_ms == 104);
	free(rows);
}

static void rows_stay_at_either_end_of_a_jump(void **state)
{
	struct table_point points[100];
	struct table_model m = { .points = points, .n = 100 };
	struct gpu_row *rows;
	size_t n;

	(void)state;
	straight(points, m.n);
	assert_int_equal(table_thin(&m, 40, .01, &rows, &n), 0);
	assert_int_equal(n, 4);
	assert_int_equal(rows[1].batch, 40);
	assert_int_equal(rows[2].batch, 41);
	free(rows);
	/* one point on a side, and none */
	assert_int_equal(table_thin(&m, 1, .01, &rows, &n), 0);
	assert_int_equal(n, 3);
	free(rows);
	assert_int_equal(table_thin(&m, 100, .01, &rows, &n), 0);
	assert_int_equal(n, 2);
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_measured_step),
		cmocka_unit_test(between_and_beyond),
		cmocka_unit_test(the_largest_batch),
		cmocka_unit_test(another_memory),
		cmocka_unit_test(copies_as_a_table),
		cmocka_unit_test(names_and_aliases),
		cmocka_unit_test(copies_that_nobody_measured),
		cmocka_unit_test(more_than_the_published_tables_have),
		cmocka_unit_test(bytes_cost_the_same_whatever_they_are),
		cmocka_unit_test(absurd_copies_end),
		cmocka_unit_test(no_line_crosses_a_jump_of_the_transfer),
		cmocka_unit_test(a_board_and_its_power),
		cmocka_unit_test(bad_gpu_profiles),
		cmocka_unit_test(straight_lines_need_two_rows),
		cmocka_unit_test(rows_stay_at_either_end_of_a_jump),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
