/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include "common/util.h"
#include "loader/prep/resample.h"
#include "loader/prep/planes.h"
#include "loader/prep/prep.h"
#include "loader/prep/unusable.h"

enum { OUT = 3 * 224 * 224 };

static const struct prep_config config = { .side = 224 };

struct jpeg {
	unsigned char *bytes;
	unsigned long n;
};

struct host {
	const struct prep_ops *ops;
	void *state;
	float *out;
};

static struct host host_new(void)
{
	struct err err = { 0 };
	struct host h = { 0 };

	h.ops = container_of(plugin_find(prep_table, "prep", "decode", &err),
			     const struct prep_ops, plugin);
	h.state = calloc(1, h.ops->plugin.state_size);
	h.out = util_aligned_alloc(64, OUT * sizeof(float));
	assert_non_null(h.state);
	assert_non_null(h.out);
	assert_int_equal(h.ops->init(h.state, &config, &err), 0);
	assert_int_equal(h.ops->sample_bytes(h.state), OUT * sizeof(float));
	return h;
}

static void host_free(struct host *h)
{
	h->ops->fini(h->state);
	free(h->state);
	free(h->out);
}

static int run(struct host *h, const struct jpeg *j, uint64_t sample)
{
	struct rng rng = rng_stream(5, "prep", sample);

	memset(h->out, 0x55, OUT * sizeof(float));
	return h->ops->run(h->state, j->bytes, j->n, &rng, h->out);
}

static bool all_zero(const struct host *h)
{
	for (unsigned i = 0; i < OUT; i++)
		if (h->out[i] != 0)
			return false;
	return true;
}

/* Red grows to the right, green downwards, blue is noise. */
static struct jpeg jpeg_new(int w, int h, int format, int subsampling,
			    int flags)
{
	int n = tjPixelSize[format];
	unsigned char *p = malloc((size_t)w * (size_t)h * (size_t)n);
	struct rng rng = rng_stream(1, "jpeg", 0);
	tjhandle tj = tjInitCompress();
	struct jpeg j = { 0 };

	assert_non_null(p);
	for (int i = 0; i < w * h; i++) {
		p[i * n] = (unsigned char)(i % w * 255 / w);
		if (n > 1)
			p[i * n + 1] = (unsigned char)(i / w * 255 / h);
		if (n > 2)
			p[i * n + 2] =
				(unsigned char)(100 + rng_below(&rng, 40));
		if (n > 3)
			p[i * n + 3] = 255;
	}
	assert_int_equal(tjCompress2(tj, p, w, 0, h, format, &j.bytes, &j.n,
				     subsampling, 90, flags),
			 0);
	tjDestroy(tj);
	free(p);
	return j;
}

static double mean(const float *v)
{
	double s = 0;

	for (unsigned i = 0; i < OUT / 3; i++)
		s += v[i];
	return s / (OUT / 3);
}

static void decodes_what_was_encoded(void **state)
{
	const int sampling[] = { TJSAMP_420, TJSAMP_422, TJSAMP_444, TJSAMP_440,
				 TJSAMP_411 };
	/* sizes at which whole, half, quarter and eighth are decoded */
	const int size[] = { 97, 333, 640, 1400, 2900 };
	struct host h = host_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(size); i++) {
		struct jpeg j = jpeg_new(size[i], size[i] * 3 / 4, TJPF_RGB,
					 sampling[i], 0);
		double red = 0, green = 0, blue = 0;

		for (uint64_t s = 0; s < 40; s++) {
			assert_int_equal(run(&h, &j, s), 0);
			red += mean(h.out) / 40;
			green += mean(h.out + OUT / 3) / 40;
			blue += mean(h.out + OUT / 3 * 2) / 40;
		}
		/* crops are centred on average: the middle of each channel */
		assert_true(fabs(red - (.5 - .485) / .229) < .25);
		assert_true(fabs(green - (.5 - .456) / .224) < .25);
		assert_true(fabs(blue - (119.5 / 255 - .406) / .225) < .05);
		tjFree(j.bytes);
	}
	host_free(&h);
}

/* Every pixel lies on the ramps, so the crop has the right position. */
static void colours_are_in_their_place(void **state)
{
	struct jpeg j = jpeg_new(500, 375, TJPF_RGB, TJSAMP_420, 0);
	struct host h = host_new();

	(void)state;
	for (uint64_t s = 0; s < 20; s++) {
		assert_int_equal(run(&h, &j, s), 0);

		const float *red = h.out, *green = h.out + OUT / 3;
		bool mirrored = red[223] < red[0];

		for (unsigned y = 1; y < 224; y++)
			assert_true(green[y * 224] > green[y * 224 - 224] - .1);
		for (unsigned x = 1; x < 224; x++)
			assert_true((red[x] > red[x - 1] - .1) != mirrored ||
				    fabsf(red[x] - red[x - 1]) < .1f);
	}
	tjFree(j.bytes);
	host_free(&h);
}

static void grey_is_grey(void **state)
{
	struct jpeg j = jpeg_new(400, 300, TJPF_GRAY, TJSAMP_GRAY, 0);
	struct host h = host_new();

	(void)state;
	assert_int_equal(run(&h, &j, 3), 0);
	for (unsigned i = 0; i < OUT / 3; i++) {
		float v = h.out[i] * .229f + .485f;

		assert_float_equal(h.out[OUT / 3 + i] * .224f + .456f, v, 1e-4);
		assert_float_equal(h.out[2 * OUT / 3 + i] * .225f + .406f, v,
				   1e-4);
	}
	tjFree(j.bytes);
	host_free(&h);
}

/* Inverted inks without black: the same as RGB of these values. */
static void inks_become_light(void **state)
{
	struct jpeg j = jpeg_new(400, 300, TJPF_CMYK, TJSAMP_444, 0);
	struct host h = host_new();
	struct planes p = { 0 };

	(void)state;
	assert_int_equal(planes_header(&p, j.bytes, j.n), 0);
	assert_int_equal(planes_decode(&p, PLANES_EIGHTHS, 0, 300), 0);
	assert_true(p.is_rgb);
	for (unsigned x = 0; x < 400; x++) {
		const struct plane *red = &p.plane[0], *green = &p.plane[1];

		assert_true(abs(red->pixels[x] - (int)x * 255 / 400) < 24);
		assert_true(green->pixels[x + 150 * green->stride] > 127 - 24);
		assert_true(green->pixels[x + 150 * green->stride] < 127 + 24);
	}
	assert_int_equal(run(&h, &j, 3), 0);
	planes_fini(&p);
	tjFree(j.bytes);
	host_free(&h);
}

static void same_stream_same_bytes(void **state)
{
	struct jpeg j = jpeg_new(500, 375, TJPF_RGB, TJSAMP_420, 0);
	struct jpeg other = jpeg_new(1200, 900, TJPF_RGB, TJSAMP_422, 0);
	struct host a = host_new(), b = host_new();

	(void)state;
	assert_int_equal(run(&b, &other, 1), 0);
	for (uint64_t s = 0; s < 8; s++) {
		assert_int_equal(run(&a, &j, s), 0);
		assert_int_equal(run(&b, &j, s), 0);
		assert_memory_equal(a.out, b.out, OUT * sizeof(float));
		assert_int_equal(run(&b, &j, s + 1), 0);
		assert_memory_not_equal(a.out, b.out, OUT * sizeof(float));
	}
	tjFree(j.bytes);
	tjFree(other.bytes);
	host_free(&a);
	host_free(&b);
}

/* Pixels, which are whole numbers, and normalised afterwards: as torchvision
 * does it, and at most half a level of a pixel from doing it at once. */
static void the_last_step_apart_makes_the_same(void **state)
{
	const struct prep_config pixels = { .side = 224, .output = PREP_UINT8 };
	struct jpeg j = jpeg_new(500, 375, TJPF_RGB, TJSAMP_420, 0);
	struct host h = host_new();
	const struct prep_last *last = h.ops->last;
	void *there = calloc(1, h.ops->plugin.state_size);
	uint8_t *pixel = util_aligned_alloc(64, OUT);
	float *out = malloc(OUT * sizeof(float));
	struct rng rng = rng_stream(5, "prep", 1);
	struct err err = { 0 };
	double most = 0;
	size_t n;

	(void)state;
	assert_true(last->bytes(&config, &n));
	assert_int_equal(n, OUT);
	assert_false(last->bytes(&pixels, &n));
	assert_int_equal(h.ops->init(there, &pixels, &err), 0);
	assert_int_equal(h.ops->sample_bytes(there), OUT);
	assert_int_equal(h.ops->run(there, j.bytes, j.n, &rng, pixel), 0);
	assert_int_equal(run(&h, &j, 1), 0);
	assert_int_equal(last->run(h.state, pixel, OUT, out), 0);
	for (unsigned i = 0; i < OUT; i++)
		if (fabs((double)out[i] - h.out[i]) > most)
			most = fabs((double)out[i] - h.out[i]);
	assert_true(most > 0 && most < .5001 / (.224 * 255));
	assert_int_equal(last->run(h.state, pixel, OUT - 1, h.out), -EBADMSG);
	assert_true(all_zero(&h));
	h.ops->fini(there);
	free(there);
	free(pixel);
	free(out);
	tjFree(j.bytes);
	host_free(&h);
}

static void every_truncation_is_refused(struct host *h, struct jpeg j)
{
	unsigned long n = j.n;

	for (j.n = 0; j.n < n - 2; j.n += 1 + j.n / 50) {
		/* a copy of its own, so that ASan sees a step too far */
		struct jpeg cut = { malloc(j.n + 1), j.n };

		assert_non_null(cut.bytes);
		memcpy(cut.bytes, j.bytes, j.n);
		cut.bytes = realloc(cut.bytes, j.n ? j.n : 1);
		assert_int_equal(run(h, &cut, 7),
				 j.n == 0  ? -UNUSABLE_EMPTY
				 : j.n < 3 ? -UNUSABLE_UNKNOWN
					   : -UNUSABLE_TRUNCATED);
		assert_true(all_zero(h));
		free(cut.bytes);
	}
}

static void truncated_is_broken(void **state)
{
	struct jpeg j = jpeg_new(160, 120, TJPF_RGB, TJSAMP_420, 0);
	struct jpeg p =
		jpeg_new(160, 120, TJPF_RGB, TJSAMP_420, TJFLAG_PROGRESSIVE);
	struct host h = host_new();

	(void)state;
	every_truncation_is_refused(&h, j);
	every_truncation_is_refused(&h, p);
	assert_int_equal(run(&h, &p, 7), 0);
	assert_false(all_zero(&h));
	tjFree(j.bytes);
	tjFree(p.bytes);
	host_free(&h);
}

/* After any damage: 0, or an error and zeros, and the next image is correct. */
static void damage_does_not_crash(void **state)
{
	struct jpeg j = jpeg_new(160, 120, TJPF_RGB, TJSAMP_420, 0);
	struct rng rng = rng_stream(1, "damage", 0);
	struct host h = host_new();

	(void)state;
	for (int i = 0; i < 400; i++) {
		struct jpeg bad = { malloc(j.n), j.n };

		assert_non_null(bad.bytes);
		memcpy(bad.bytes, j.bytes, j.n);
		for (int k = 0; k < 4; k++)
			bad.bytes[rng_below(&rng, i & 1 ? 700 : j.n)] =
				(unsigned char)rng_u64(&rng);

		int r = run(&h, &bad, 7);

		assert_true(r == 0 || (r < 0 && all_zero(&h)));
		free(bad.bytes);
		assert_int_equal(run(&h, &j, 7), 0);
	}
	tjFree(j.bytes);
	host_free(&h);
}

static void absurd_dimensions_are_refused(void **state)
{
	struct jpeg j = jpeg_new(160, 120, TJPF_RGB, TJSAMP_420, 0);
	struct planes p = { 0 };
	struct host h = host_new();
	unsigned long at = 2;

	(void)state;
	while (j.bytes[at + 1] != 0xc0) /* the frame header */
		at += 2u + j.bytes[at + 2] * 256u + j.bytes[at + 3];
	for (int i = 5; i < 9; i++)
		j.bytes[at + (unsigned)i] = 0xff;
	assert_int_equal(run(&h, &j, 7), -UNUSABLE_LARGE);
	assert_true(all_zero(&h));
	assert_int_equal(planes_header(&p, j.bytes, j.n), -UNUSABLE_LARGE);
	planes_fini(&p);
	tjFree(j.bytes);
	host_free(&h);
}

static void other_files_are_refused(void **state)
{
	static const struct {
		const char *bytes, *text;
		size_t n;
	} files[] = {
		{ "PK\003\004 this is no picture", "a ZIP archive", 20 },
		{ "RIFF\0\0\0\0WEBPVP8 ",
		  "a WebP image: only JPEG and PNG are decoded", 16 },
		{ "GIF89a", "a GIF image: only JPEG and PNG are decoded", 6 },
		{ "words", "not an image", 5 },
		{ "\x89PNG\r\n\x1a\n", "a truncated image", 8 },
		{ "", "empty", 0 },
	};
	struct host h = host_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct jpeg j = { (unsigned char *)files[i].bytes, files[i].n };
		int r = run(&h, &j, 7);

		assert_true(r < 0);
		assert_string_equal(unusable_text(r), files[i].text);
		assert_true(all_zero(&h));
	}
	host_free(&h);
}

static void try_broken(const struct prep_ops *ops, void *state)
{
	const size_t n = ops->sample_bytes ? ops->sample_bytes(state) : 0;
	unsigned char *out = util_aligned_alloc(64, n);
	struct rng rng = rng_stream(1, "broken", 0);

	/* without sample_bytes, run is never called */
	assert_true(n > 0);
	assert_non_null(out);
	memset(out, 1, n);

	/* transforms that read no bytes may report no error */
	int r = ops->run(state, "", 0, &rng, out);

	assert_true(r <= 0);
	for (size_t i = 0; r < 0 && i < n; i++)
		assert_int_equal(out[i], 0);
	free(out);
}

/* For every registered plug-in: two instances, broken bytes, fini. */
static void every_stage_keeps_the_contract(void **state)
{
	static const struct prep_profile profile = { 0 };

	(void)state;
	for (size_t i = 0; prep_table[i]; i++) {
		const struct prep_ops *ops = container_of(
			prep_table[i], const struct prep_ops, plugin);
		struct prep_config c = { .side = 224, .profile = &profile };
		struct err err = { 0 };
		void *instance[2];

		assert_ptr_equal(plugin_find(prep_table, "prep",
					     ops->plugin.name, &err),
				 prep_table[i]);
		assert_true(strlen(ops->plugin.summary) > 0);
		for (int k = 0; k < 2; k++) {
			instance[k] = calloc(1, ops->plugin.state_size + 1);
			assert_non_null(instance[k]);
			if (ops->init)
				assert_int_equal(
					ops->init(instance[k], &c, &err), 0);
		}
		for (int k = 0; k < 2; k++) {
			assert_true(!ops->run || !ops->cost);
			if (ops->run)
				try_broken(ops, instance[k]);
			if (ops->fini)
				ops->fini(instance[k]);
			free(instance[k]);
		}
	}
}

/*
 * Quantiles .05 .25 .5 .75 .95 of 200,000 draws of torchvision 0.14's
 * RandomResizedCrop.get_params(im, (.08, 1), (3/4, 4/3)), torch.manual_seed(0):
 * area over the image's, width over height, the centre's x over the width.
 */
static const struct {
	unsigned w, h;
	double want[3][5];
} crops[] = {
	{ 500,
	  375,
	  { { 0.1142, 0.2511, 0.4225, 0.5940, 0.8136 },
	    { 0.7808, 0.9000, 1.0472, 1.1903, 1.3048 },
	    { 0.2730, 0.4060, 0.5000, 0.5940, 0.7260 } } },
	{ 1000,
	  200,
	  { { 0.0879, 0.1202, 0.1617, 0.2419, 0.2670 },
	    { 0.7975, 0.9670, 1.1526, 1.3237, 1.3350 },
	    { 0.1410, 0.3565, 0.4995, 0.6430, 0.8590 } } },
};

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void crops_are_distributed_as_torchvisions(void **state)
{
	enum { DRAWS = 200000 };
	static const double q[5] = { .05, .25, .5, .75, .95 };
	static double v[3][DRAWS];

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(crops); k++) {
		double w = crops[k].w, h = crops[k].h;
		struct rng rng = rng_stream(1, "crops", k);

		for (unsigned i = 0; i < DRAWS; i++) {
			struct crop c =
				crop_random(&rng, crops[k].w, crops[k].h, .08);

			assert_true(c.x + c.width <= crops[k].w);
			assert_true(c.y + c.height <= crops[k].h);
			v[0][i] = c.width * (double)c.height / (w * h);
			v[1][i] = c.width / (double)c.height;
			v[2][i] = (c.x + c.width / 2.) / w;
		}
		for (unsigned m = 0; m < 3; m++) {
			qsort(v[m], DRAWS, sizeof(v[m][0]), ascending);
			/* more than five standard errors of both samples */
			for (unsigned i = 0; i < 5; i++)
				assert_float_equal(v[m][(int)(q[i] * DRAWS)],
						   crops[k].want[m][i], .012);
		}
	}
}

/* With the area uniform in 0.6..1 the mean is 0.8, rejected draws aside, which
 * are the large ones. */
static void crops_have_their_least_area(void **state)
{
	enum { DRAWS = 20000 };
	struct rng rng = rng_stream(1, "crops", 9);
	double sum = 0;

	(void)state;
	for (unsigned i = 0; i < DRAWS; i++) {
		struct crop c = crop_random(&rng, 500, 500, .6);
		double area = c.width * (double)c.height / 250000;

		assert_true(area > .6 - .003); /* whole pixels */
		sum += area;
	}
	assert_in_range(sum / DRAWS * 100, 70, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_stage_keeps_the_contract),
		cmocka_unit_test(decodes_what_was_encoded),
		cmocka_unit_test(colours_are_in_their_place),
		cmocka_unit_test(crops_are_distributed_as_torchvisions),
		cmocka_unit_test(crops_have_their_least_area),
		cmocka_unit_test(grey_is_grey),
		cmocka_unit_test(inks_become_light),
		cmocka_unit_test(same_stream_same_bytes),
		cmocka_unit_test(the_last_step_apart_makes_the_same),
		cmocka_unit_test(truncated_is_broken),
		cmocka_unit_test(damage_does_not_crash),
		cmocka_unit_test(absurd_dimensions_are_refused),
		cmocka_unit_test(other_files_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
