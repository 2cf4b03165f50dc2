/* SPDX-License-Identifier: MIT */
/* Synthetic datasets: any part equals the whole, and JPEGs are valid. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "common/rng.h"
#include "common/util.h"
#include "emu/image/image.h"
#include "emu/image/synth.h"
#include "emu/image/synth_jpeg.h"
#include "loader/prep/planes.h"

static struct synth *open_spec(const char *spec)
{
	struct err err = { 0 };
	struct synth *s;

	if (synth_open(spec, &s, &err) < 0 || synth_prepare(s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static uint8_t *whole(const struct synth *s, uint64_t i)
{
	uint8_t *v = malloc(synth_size(s, i) + 1);

	assert_non_null(v);
	synth_read(s, i, 0, v, synth_size(s, i));
	return v;
}

static void any_part_equals_the_whole(void **state)
{
	static const char *const specs[] = {
		"imagenet,files=40,content=random", "imagenet,files=40",
		"imagenet,files=3,scale=10,content=jpeg"
	};
	struct rng rng = rng_stream(1, "part", 0);

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(specs); k++) {
		struct synth *s = open_spec(specs[k]);

		for (uint64_t i = 0; i < synth_files(s)->files; i++) {
			_cleanup_free_ uint8_t *all = whole(s, i);
			uint64_t size = synth_size(s, i);

			for (int t = 0; t < 50; t++) {
				size_t at = rng_below(&rng, size + 1);
				size_t n = rng_below(&rng, size - at + 1);
				_cleanup_free_ uint8_t *part = malloc(n + 1);

				n = t % 2 ? n : MIN(n, 7);
				synth_read(s, i, at, part, n);
				assert_memory_equal(part, all + at, n);
			}
		}
		synth_close(s);
	}
}

static void a_seed_decides_every_byte(void **state)
{
	struct synth *a = open_spec("imagenet,files=30,seed=5");
	struct synth *b = open_spec("imagenet,files=30,seed=5");
	struct synth *c = open_spec("imagenet,files=30,seed=6");
	int same = 0;

	(void)state;
	for (uint64_t i = 0; i < 30; i++) {
		_cleanup_free_ uint8_t *x = whole(a, i), *y = whole(b, i),
				       *z = whole(c, i);

		assert_int_equal(synth_size(a, i), synth_size(b, i));
		assert_memory_equal(x, y, synth_size(a, i));
		same += synth_size(a, i) == synth_size(c, i) &&
			!memcmp(x, z, synth_size(a, i));
	}
	assert_int_equal(same, 0);
	synth_close(a);
	synth_close(b);
	synth_close(c);
}

/* The critical part is the gap between image and file: none, less than the 4
 * bytes of the smallest comment, one comment, and just over one and two. */
static void every_size_decodes(void **state)
{
	struct dataset_files d = {
		.files = 1, .classes = 1, .seed = 1, .scale = 1, .jpeg = true
	};
	const uint64_t size = 3000;
	struct synth_jpeg *s;
	struct planes planes = { 0 };
	uint8_t *v = malloc(200000);
	uint64_t sizes = 0;

	(void)state;
	assert_int_equal(synth_jpeg_new(&d, &size, &s, NULL), 0);
	for (uint64_t base = 3000; base < 140000; base += 65537)
		for (uint64_t n = base; n < base + 12; n++, sizes++) {
			memset(v, 0, n);
			synth_jpeg_read(s, 0, n, 0, v, n);
			assert_int_equal(planes_header(&planes, v, n), 0);
			assert_int_equal(planes_decode(&planes, PLANES_EIGHTHS,
						       0, UINT16_MAX),
					 0);
			assert_true(image_jpeg_padding(v, n) >= n - 3000);
			/* byte by byte it is the same file */
			for (uint64_t at = n - 200; at < n; at++) {
				uint8_t byte;

				synth_jpeg_read(s, 0, n, at, &byte, 1);
				assert_int_equal(byte, v[at]);
			}
		}
	assert_int_equal(sizes, 36);
	planes_fini(&planes);
	synth_jpeg_free(s);
	free(v);
}

static void files_differ_though_pictures_repeat(void **state)
{
	struct synth *s = open_spec("imagenet,files=300,scale=0.7");
	XXH64_hash_t *seen = calloc(300, sizeof(*seen));

	(void)state;
	for (uint64_t i = 0; i < 300; i++) {
		_cleanup_free_ uint8_t *v = whole(s, i);

		seen[i] = XXH3_64bits(v, synth_size(s, i));
		for (uint64_t k = 0; k < i; k++)
			assert_true(seen[k] != seen[i]);
	}
	free(seen);
	synth_close(s);
}

/* What only lists the files, a simulation, makes no pictures. */
static void sizes_need_no_pictures(void **state)
{
	struct err err = { 0 };
	struct synth *s;
	clock_t start = clock(), listed, made; /* of the CPUs */
	uint64_t bytes = 0;

	(void)state;
	assert_int_equal(synth_open("imagenet,files=400", &s, &err), 0);
	for (uint64_t i = 0; i < 400; i++)
		bytes += synth_size(s, i);
	listed = clock();
	assert_int_equal(synth_prepare(s, &err), 0);
	made = clock();
	assert_true(bytes > 0);
	assert_true(made - listed > 5 * (listed - start));
	synth_close(s);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *spec, *text;
	} bad[] = {
		{ "nope", "unknown dataset profile 'nope' (known:" },
		{ "imagenet,fils=3", "unknown option 'fils'; did you mean "
				     "'files'? (known: files" },
		{ "imagenet,files", "files has no value" },
		{ "imagenet,", "an option is missing after ','" },
		{ "imagenet,files=3,", "files: '3,' is not " },
		{ "imagenet,files=", "files: '' is not " },
		{ "imagenet,files=3,files=4", "files is given twice" },
		{ "imagenet,files=x", "files: " },
		{ "imagenet,files=0", "files: " },
		{ "imagenet,files=9000000000", "files: " },
		{ "imagenet,content=png", "unknown content 'png' (known:" },
		{ "imagenet,files=3,classes=4", "more classes than files" },
		{ "imagenet,files=9,scale=0.001", "content=random" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = { 0 };
		struct synth *s;

		assert_true(synth_open(bad[i].spec, &s, &err) < 0);
		if (!strstr(err.text, bad[i].text))
			fail_msg("%s: %s", bad[i].spec, err.text);
		assert_int_equal(strncmp(err.text, "synth: ", 7), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_part_equals_the_whole),
		cmocka_unit_test(a_seed_decides_every_byte),
		cmocka_unit_test(every_size_decodes),
		cmocka_unit_test(files_differ_though_pictures_repeat),
		cmocka_unit_test(sizes_need_no_pictures),
		cmocka_unit_test(what_is_wrong_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
