/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "tests/unit/resample.h"

enum { W = 200, H = 150, OUT = 64 };

static void noise(uint8_t *pixels, const char *name)
{
	struct rng r = rng_stream(1, name, 0);

	rng_bytes_at(rng_u64(&r), 0, pixels, W * H);
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

/* The crop is cut out first: pixels next to it have no influence. */
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

/*
 * Pillow 9.4's answers for the picture below, cropped to the box:
 *	im = Image.new("L", (200, 150)); im.putdata([(x * 7 + y * 13 +
 *	x * y % 11 * 9) % 256 for y in range(150) for x in range(200)])
 *	im.crop(box).resize((8, 8), Image.BILINEAR)
 */
static const struct {
	struct resample_box box;
	uint8_t want[64];
} pillow[] = {
	{ { 10, 20, 128, 96 },
	  { 124, 124, 136, 118, 137, 115, 137, 124, 133, 128, 124, 133, 120,
	    136, 125, 134, 118, 133, 125, 128, 129, 124, 134, 118, 139, 120,
	    137, 122, 127, 128, 122, 141, 123, 134, 119, 133, 121, 131, 129,
	    124, 124, 121, 139, 119, 139, 120, 132, 125, 132, 127, 125, 134,
	    121, 133, 120, 132, 112, 135, 123, 123, 140, 119, 142, 112 } },
	{ { 3, 5, 24, 16 },
	  { 155, 172, 182, 202, 146, 110, 115, 70,  181, 194, 191, 156, 114,
	    90,	 75,  75,  197, 214, 192, 95,  104, 44,	 50,  94,  189, 153,
	    157, 139, 100, 63,	68,  92,  138, 100, 66,	 68,  82,  105, 107,
	    138, 78,  69,  53,	82,  106, 129, 133, 167, 54,  70,  81,	105,
	    134, 153, 159, 188, 73,  94,  99,  134, 154, 177, 182, 192 } },
	{ { 0, 0, 200, 150 },
	  { 129, 125, 126, 131, 128, 124, 126, 131, 129, 128, 128, 127, 129,
	    127, 126, 127, 128, 128, 128, 127, 128, 127, 126, 126, 128, 129,
	    127, 126, 128, 128, 127, 125, 125, 127, 128, 128, 127, 127, 129,
	    128, 127, 127, 128, 129, 127, 128, 129, 128, 127, 127, 128, 128,
	    126, 127, 128, 128, 130, 125, 125, 130, 128, 127, 127, 125 } },
};

/* Pillow rounds to whole numbers between its two passes and after them. */
static void agrees_with_pillow(void **state)
{
	static uint8_t pixels[W * H];
	struct resample_input in = { pixels, W, W, H };
	struct resample r = { 0 };
	float out[64];

	(void)state;
	for (unsigned i = 0; i < W * H; i++) {
		unsigned x = i % W, y = i / W;

		pixels[i] = (uint8_t)(x * 7 + y * 13 + x * y % 11 * 9);
	}
	for (size_t k = 0; k < ARRAY_SIZE(pillow); k++) {
		assert_int_equal(resample_plane(&r, &in, &pillow[k].box, false,
						8, 8, out),
				 0);
		for (unsigned i = 0; i < 64; i++)
			assert_float_equal(out[i], pillow[k].want[i], 1.01);
	}
	resample_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_size_is_identity),
		cmocka_unit_test(constant_stays_constant),
		cmocka_unit_test(mean_is_preserved),
		cmocka_unit_test(agrees_with_the_definition),
		cmocka_unit_test(agrees_with_pillow),
		cmocka_unit_test(outside_has_no_influence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
