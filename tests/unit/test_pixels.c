/* SPDX-License-Identifier: MIT */
/*
 * --prep decode against Pillow 9.4: tests/assets/prep holds images, and
 * Pillow's output for some crops. Made by
 *
 *	tests/cli/compare-pixels --table build/tests/cli/pixels
 * tests/assets/prep
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "loader/prep/resample.h"
#include "loader/prep/planes.h"
#include "loader/prep/prep.h"

enum { SEED = 1, MOST = 1 << 16, SIDE_MAX = 96 };

extern const struct prep_ops prep_decode;

static const char *const images[] = { "420", "422", "444" };

/* By eighths at which the image is decoded: mean and largest error allowed, of
 * 0..255. Measured: 1.45, 0.76, 0.46, 0.32; and 26. */
static const double mean_allowed[] = { [1] = 2, [2] = 1.1, [4] = .9, [8] = .5 };
enum { ERROR_ALLOWED = 40 };

struct tally {
	double sum[PLANES_EIGHTHS + 1];
	size_t n[PLANES_EIGHTHS + 1];
};

static FILE *open_asset(const char *name, const char *ending)
{
	const char *profiles = getenv("GPEMU_PROFILES");
	char path[4096];
	FILE *f;

	assert_non_null(profiles);
	snprintf(path, sizeof(path), "%s/../tests/assets/prep/%s.%s", profiles,
		 name, ending);
	f = fopen(path, "re");
	assert_non_null(f);
	return f;
}

static size_t read_image(const char *name, uint8_t raw[MOST])
{
	_cleanup_fclose_ FILE *f = open_asset(name, "jpg");
	size_t n = fread(raw, 1, MOST, f);

	assert_true(n > 0 && n < MOST);
	return n;
}

static void prepare(const struct prep_config *c, const uint8_t *raw, size_t n,
		    uint64_t sample, void *out)
{
	void *state = calloc(1, prep_decode.plugin.state_size);
	struct rng rng = rng_stream(SEED, "prep", sample);
	struct err err = { 0 };

	assert_non_null(state);
	assert_int_equal(prep_decode.init(state, c, &err), 0);
	assert_int_equal(prep_decode.run(state, raw, n, &rng, out), 0);
	prep_decode.fini(state);
	free(state);
}

/* The table's crop is that of the sample's stream. */
static void check_crop(const struct crop *want, int mirrored, uint64_t sample)
{
	struct rng rng = rng_stream(SEED, "prep", sample);
	struct crop crop = crop_random(&rng, 320, 240, .08);

	assert_memory_equal(&crop, want, sizeof(crop));
	assert_int_equal(rng_below(&rng, 2), mirrored);
}

static void compare(const uint8_t *raw, size_t n, FILE *table, uint32_t side,
		    uint64_t sample, const struct crop *crop, struct tally *t)
{
	static uint8_t got[3 * SIDE_MAX * SIDE_MAX]
		__attribute__((aligned(64)));
	static uint8_t want[sizeof(got)];
	struct prep_config c = { .side = side, .output = PREP_UINT8 };
	unsigned e = planes_eighths(crop->width, crop->height, side);
	size_t values = prep_image_bytes(c.side, c.output);

	assert_int_equal(fread(want, values, 1, table), 1);
	prepare(&c, raw, n, sample, got);
	for (size_t i = 0; i < values; i++) {
		int error = abs(got[i] - want[i]);

		assert_true(error <= ERROR_ALLOWED);
		t->sum[e] += error;
	}
	t->n[e] += values;
}

static void compare_image(const char *name, struct tally *t)
{
	_cleanup_fclose_ FILE *table = open_asset(name, "rgb");
	static uint8_t raw[MOST];
	size_t n = read_image(name, raw);
	uint32_t side, before = 0;
	uint64_t sample = 0;
	struct crop c;
	int mirrored;

	while (fscanf(table, "%u %u %u %u %d %u", &c.x, &c.y, &c.width,
		      &c.height, &mirrored, &side) == 6) {
		assert_int_equal(fgetc(table), '\n');
		assert_true(side <= SIDE_MAX);
		sample = side == before ? sample + 1 : 0;
		before = side;
		check_crop(&c, mirrored, sample);
		compare(raw, n, table, side, sample, &c, t);
	}
	assert_int_equal(before, SIDE_MAX); /* the last one was there */
}

static void errors_against_pillow_are_small(void **state)
{
	struct tally t = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(images); i++)
		compare_image(images[i], &t);
	for (unsigned e = 1; e <= PLANES_EIGHTHS; e *= 2) {
		assert_true(t.n[e] > 0);
		assert_true(t.sum[e] / (double)t.n[e] < mean_allowed[e]);
	}
}

/* The bytes are those floats before normalisation, rounded to the nearest. */
static void floats_are_the_bytes_normalised(void **state)
{
	static const double mean[] = { .485, .456, .406 };
	static const double deviation[] = { .229, .224, .225 };
	static float floats[3 * SIDE_MAX * SIDE_MAX]
		__attribute__((aligned(64)));
	static uint8_t bytes[3 * SIDE_MAX * SIDE_MAX]
		__attribute__((aligned(64)));
	struct prep_config c = { .side = SIDE_MAX };
	static uint8_t raw[MOST];
	size_t n = read_image("420", raw);
	unsigned low = 255, high = 0;

	(void)state;
	for (uint64_t sample = 0; sample < 5; sample++) {
		c.output = PREP_FP32;
		prepare(&c, raw, n, sample, floats);
		c.output = PREP_UINT8;
		prepare(&c, raw, n, sample, bytes);
		for (unsigned i = 0; i < ARRAY_SIZE(bytes); i++) {
			unsigned k = i / (SIDE_MAX * SIDE_MAX);
			double v = (floats[i] * deviation[k] + mean[k]) * 255;

			assert_true(fabs(v - bytes[i]) < .501);
			low = bytes[i] < low ? bytes[i] : low;
			high = bytes[i] > high ? bytes[i] : high;
		}
	}
	assert_true(low < 10 && high > 245);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_against_pillow_are_small),
		cmocka_unit_test(floats_are_the_bytes_normalised),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
