/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "loader/resample.h"

enum { W = 200, H = 150, OUT = 64 };

static void noise(uint8_t *pixels, const char *name)
{
	struct rng r = rng_stream(1, name, 0);

	rng_bytes(&r, pixels, W * H);
}

static const struct resample_box whole = { 0, 0, W, H };

/* Weight of input pixel `i` in an output whose centre is `centre`. */
static double triangle(double i, double centre, double radius)
{
	double d = fabs(i + .5 - centre) / radius;

	return d < 1 ? 1 - d : 0;
}

/* The definition, straight from the formula: every pixel of the box. */
static double reference(const uint8_t *pixels, const struct resample_box *b,
			unsigned out_w, unsigned out_h, unsigned ox,
			unsigned oy)
{
	double sx = b->width / out_w, sy = b->height / out_h;
	double cx = b->x + (ox + .5) * sx, cy = b->y + (oy + .5) * sy;
	double sum = 0, weights = 0;

	for (int y = (int)b->y; y < ceil(b->y + b->height); y++)
		for (int x = (int)b->x; x < ceil(b->x + b->width); x++) {
			double w = triangle(x, cx, fmax(sx, 1)) *
				   triangle(y, cy, fmax(sy, 1));

			sum += w * pixels[y * W + x];
			weights += w;
		}
	return sum / weights;
}

static void check(const struct resample_box *box, unsigned out_w,
		  unsigned out_h, bool mirror)
{
	static uint8_t pixels[W * H];
	struct resample_input in = { pixels, W, W, H };
	struct resample r = { 0 };
	float *out = calloc((size_t)out_w * out_h, sizeof(*out));

	assert_non_null(out);
	noise(pixels, "reference");
	assert_int_equal(
		resample_plane(&r, &in, box, mirror, out_w, out_h, out), 0);
	for (unsigned y = 0; y < out_h; y += 3)
		for (unsigned x = 0; x < out_w; x += 3) {
			unsigned at = mirror ? out_w - 1 - x : x;
			double want =
				reference(pixels, box, out_w, out_h, x, y);

			assert_true(fabs(out[y * out_w + at] - want) < 1);
		}
	resample_fini(&r);
	free(out);
}

static void same_size_is_identity(void **state)
{
	static uint8_t pixels[W * H];
	static float out[W * H];
	struct resample_input in = { pixels, W, W, H };
	struct resample r = { 0 };

	(void)state;
	noise(pixels, "identity");
	assert_int_equal(resample_plane(&r, &in, &whole, false, W, H, out), 0);
	for (unsigned i = 0; i < W * H; i++)
		assert_float_equal(out[i], pixels[i], 1e-3);
	assert_int_equal(resample_plane(&r, &in, &whole, true, W, H, out), 0);
	for (unsigned y = 0; y < H; y++)
		for (unsigned x = 0; x < W; x++)
			assert_float_equal(out[y * W + x],
					   pixels[y * W + W - 1 - x], 1e-3);
	resample_fini(&r);
}

static void constant_stays_constant(void **state)
{
	static uint8_t pixels[W * H];
	static float out[OUT * OUT];
	struct resample_input in = { pixels, W, W, H };
	struct resample r = { 0 };
	struct rng rng = rng_stream(1, "constant", 0);

	(void)state;
	memset(pixels, 137, sizeof(pixels));
	for (int i = 0; i < 200; i++) {
		double w = .2 + rng_double(&rng) * (W - .2);
		double h = .2 + rng_double(&rng) * (H - .2);
		struct resample_box b = { (W - w) * rng_double(&rng),
					  (H - h) * rng_double(&rng), w, h };

		assert_int_equal(
			resample_plane(&r, &in, &b, i & 1, OUT, OUT, out), 0);
		for (unsigned o = 0; o < OUT * OUT; o++)
			assert_float_equal(out[o], 137, 1e-3);
	}
	resample_fini(&r);
}

static void mean_is_preserved(void **state)
{
	static uint8_t pixels[W * H];
	static float out[50 * 50];
	struct resample_input in = { pixels, W, W, H };
	struct resample r = { 0 };
	double before = 0, after = 0;

	(void)state;
	noise(pixels, "mean");
	assert_int_equal(resample_plane(&r, &in, &whole, false, 50, 50, out),
			 0);
	for (unsigned i = 0; i < W * H; i++)
		before += pixels[i];
	for (unsigned i = 0; i < 50 * 50; i++)
		after += out[i];
	assert_true(fabs(before / (W * H) - after / (50 * 50)) < .5);
	resample_fini(&r);
}

static void agrees_with_the_definition(void **state)
{
	(void)state;
	check(&whole, OUT, OUT, false);
	check(&whole, OUT, OUT, true);
	check(&(struct resample_box){ 10, 20, 37, 23 }, OUT, OUT, true);
	check(&(struct resample_box){ 10.5, 20.25, 91.5, 101.75 }, 30, 20,
	      false);
	check(&(struct resample_box){ W - 3, H - 3, 3, 3 }, 17, 33, false);
	check(&(struct resample_box){ 0, 0, W, 1 }, 100, 1, false);
}

/* The crop is cut out first: what lies beside it never bleeds in. */
static void outside_has_no_influence(void **state)
{
	static uint8_t pixels[W * H];
	static float out[OUT * OUT];
	struct resample_input in = { pixels, W, W, H };
	struct resample_box b = { 40, 30, 100, 90 };
	struct resample r = { 0 };

	(void)state;
	memset(pixels, 255, sizeof(pixels));
	for (unsigned y = 30; y < 120; y++)
		memset(pixels + y * W + 40, 10, 100);
	assert_int_equal(resample_plane(&r, &in, &b, false, OUT, OUT, out), 0);
	for (unsigned o = 0; o < OUT * OUT; o++)
		assert_float_equal(out[o], 10, 1e-3);
	resample_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_size_is_identity),
		cmocka_unit_test(constant_stays_constant),
		cmocka_unit_test(mean_is_preserved),
		cmocka_unit_test(agrees_with_the_definition),
		cmocka_unit_test(outside_has_no_influence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
