/* SPDX-License-Identifier: MIT */
/* Groups, and the index of a pack: a round trip is exact, and any change of its
 * bytes gives an error or a valid pack. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/pack/pack.h"
#include "common/rng.h"
#include "common/util.h"

/* --- groups ------------------------------------------------------------- */

enum { N = 103, CLASSES = 10 };

struct set {
	uint64_t bytes[N];
	uint32_t class[N];
	struct grouping_files files;
};

static uint32_t find(const void *ctx, const char *path)
{
	char *end;
	unsigned long i = strtoul(path + 1, &end, 10);

	(void)ctx;
	return *path == 'f' && !*end && i < N ? (uint32_t)i : UINT32_MAX;
}

static void init(struct set *s)
{
	for (uint32_t i = 0; i < N; i++) {
		s->bytes[i] = i % 7 * 1000;
		s->class[i] = i * CLASSES / N;
	}
	s->files = (struct grouping_files){
		.n = N, .bytes = s->bytes, .class = s->class, .find = find
	};
}

static struct grouping group(struct set *s, uint32_t size, const char *order)
{
	struct err err = { 0 };
	struct grouping g;

	if (grouping_new(&s->files, size, order, 1, &g, &err) < 0)
		fail_msg("%s", err.text);
	return g;
}

static void each_file_is_in_one_group(const struct grouping *g)
{
	int seen[N] = { 0 };

	assert_int_equal(g->n_files, N);
	assert_int_equal(g->first[0], 0);
	assert_int_equal(g->first[g->n_groups], N);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(seen[g->file[i]]++, 0);
	for (uint32_t i = 0; i < g->n_groups; i++)
		assert_true(g->first[i] < g->first[i + 1]);
}

static void nothing_is_dropped_at_the_tail(void **state)
{
	static const char *const orders[] = { "sequential", "random",
					      "diffclass" };
	struct set s;

	(void)state;
	init(&s);
	for (size_t o = 0; o < ARRAY_SIZE(orders); o++)
		for (uint32_t size = 1; size <= N + 1; size += 3) {
			struct grouping g = group(&s, size, orders[o]);

			each_file_is_in_one_group(&g);
			assert_int_equal(g.n_groups, (N + size - 1) / size);
			for (uint32_t i = 0; i + 1 < g.n_groups; i++)
				assert_int_equal(g.first[i + 1] - g.first[i],
						 size);
			grouping_free(&g);
		}
}

static void orders_do_what_they_say(void **state)
{
	struct set s;
	struct grouping g;
	uint32_t in_place = 0;

	(void)state;
	init(&s);
	g = group(&s, 8, "sequential");
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(g.file[i], i);
	grouping_free(&g);
	g = group(&s, 8, "random");
	for (uint32_t i = 0; i < N; i++)
		in_place += g.file[i] == i;
	/* one is expected */
	assert_in_range(in_place, 0, 6);
	grouping_free(&g);
	/* a round takes one of each class while all have files left */
	g = group(&s, CLASSES, "diffclass");
	for (uint32_t i = 0; i < 9; i++)
		for (uint32_t k = 0; k < CLASSES; k++)
			assert_int_equal(s.class[g.file[i * CLASSES + k]], k);
	grouping_free(&g);
	/* and continues where the last group ended */
	g = group(&s, 4, "diffclass");
	assert_int_equal(s.class[g.file[4]], 4);
	grouping_free(&g);
}

static void a_large_file_is_alone(void **state)
{
	struct set s;
	struct grouping g;

	(void)state;
	init(&s);
	s.bytes[0] = s.bytes[50] = GROUPING_ALONE + 1;
	s.bytes[51] = GROUPING_ALONE;
	g = group(&s, 10, "sequential");
	each_file_is_in_one_group(&g);
	assert_int_equal(g.n_groups, 11 + 2);
	assert_int_equal(g.file[N - 2], 0);
	assert_int_equal(g.file[N - 1], 50);
	assert_int_equal(g.first[g.n_groups - 1], N - 1);
	grouping_free(&g);
}

/* Writes `text` to a file; its name, to be unlinked and freed. */
static char *write_list(const char *text)
{
	char *path = strdup("/tmp/gpemu-groups-XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

static void groups_from_a_file(void **state)
{
	char *path = write_list("f5\nf4\nf3\nf2");
	struct set s;
	struct grouping g;

	(void)state;
	init(&s);
	g = group(&s, 3, path);
	each_file_is_in_one_group(&g);
	assert_int_equal(g.file[0], 5);
	assert_int_equal(g.file[3], 2);
	assert_int_equal(g.file[4], 0);
	assert_int_equal(g.first[1], 3);
	grouping_free(&g);
	unlink(path);
	free(path);
	path = write_list("[\"f9\",\"f8\"]\n[]\n[\"f7\"]\n");
	g = group(&s, 50, path);
	each_file_is_in_one_group(&g);
	assert_int_equal(g.first[1], 2);
	assert_int_equal(g.first[2], 3);
	assert_int_equal(g.n_groups, 2 + N - 3);
	grouping_free(&g);
	unlink(path);
	free(path);
}

static void a_bad_list_is_refused(void **state)
{
	static const struct {
		const char *text, *want;
	} bad[] = {
		{ "f1\nf2\nf1\n", ":3: 'f1' is listed twice" },
		{ "f1\nnope\n", ":2: no such file: 'nope'" },
		{ "[\"f1\"]\n[\"f2\"\n", ":2:" },
		{ "[\"f1\"]\n[3]\n", ":2: not an array of paths" },
		{ "[\"f1\"]\n{}\n", ":2: not an array of paths" },
	};
	struct set s;

	(void)state;
	init(&s);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char *path = write_list(bad[i].text);
		struct err err = { 0 };
		struct grouping g;
		int r = grouping_new(&s.files, 2, path, 1, &g, &err);

		assert_int_equal(r, -EINVAL);
		if (!strstr(err.text, bad[i].want))
			fail_msg("%s: %s", bad[i].text, err.text);
		unlink(path);
		free(path);
	}
}

static void paths_compare_by_component(void **state)
{
	static const char *const sorted[] = { "a",   "a/b",   "a/b/c", "a/b-c",
					      "a-b", "a-b/c", "b",     "\xff" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sorted); i++)
		for (size_t k = 0; k < ARRAY_SIZE(sorted); k++) {
			int c = grouping_compare(sorted[i], sorted[k]);

			assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
		}
}

/* --- the index ---------------------------------------------------------- */

struct index {
	struct pack_file files[6];
	uint32_t first[4];
	struct pack pack;
	unsigned char *bytes;
	size_t n;
	uint64_t data_end;
};

static void make_index(struct index *x)
{
	static const char *const paths[] = { "b/2", "a/x/1", "root",
					     "a/1", "b/1",   "c/d/e/f" };
	uint64_t at = 0;

	*x = (struct index){ .first = { 0, 2, 5, 6 } };
	for (uint32_t i = 0, g = 0; i < 6; i++) {
		struct pack_file *f = &x->files[i];

		if (x->first[g] == i) {
			at = (at / PACK_ALIGN + 1) * PACK_ALIGN;
			g++;
		}
		*f = (struct pack_file){ .path = paths[i],
					 .offset = at,
					 .bytes = i * 1000,
					 .sum = i * 77,
					 .mtime_ns = -(int64_t)i,
					 .mode = 0444 };
		at += f->bytes;
	}
	x->data_end = at;
	uint32_t sorted[] = { 3, 1, 4, 0, 5, 2 };

	x->pack = (struct pack){ .files = x->files,
				 .n_files = 6,
				 .n_groups = 3,
				 .first = x->first,
				 .group_size = 3,
				 .seed = 9,
				 .order = "random" };
	x->pack.n_classes = pack_classify(x->files, sorted, 6);
	assert_int_equal(pack_write_index(&x->pack, &x->bytes, &x->n), 0);
}

static void what_is_written_is_read(void **state)
{
	struct err err = { 0 };
	struct index x;
	struct pack p;

	(void)state;
	make_index(&x);
	if (pack_parse_index(x.bytes, x.n, x.data_end, &p, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(p.n_classes, 3);
	assert_int_equal(p.n_groups, 3);
	assert_int_equal(p.group_size, 3);
	assert_int_equal(p.seed, 9);
	assert_string_equal(p.order, "random");
	assert_int_equal(p.file_bytes, 15000);
	for (uint32_t i = 0; i < 6; i++) {
		assert_string_equal(p.files[i].path, x.files[i].path);
		assert_int_equal(p.files[i].offset, x.files[i].offset);
		assert_int_equal(p.files[i].bytes, x.files[i].bytes);
		assert_int_equal(p.files[i].sum, x.files[i].sum);
		assert_int_equal(p.files[i].mtime_ns, x.files[i].mtime_ns);
		assert_int_equal(p.files[i].class, x.files[i].class);
	}
	assert_int_equal(p.files[2].class, PACK_NO_CLASS);
	pack_fini(&p);
	free(x.bytes);
}

/* Every accepted pack must satisfy pack.h. */
static void check_valid(const struct pack *p, uint64_t data_end)
{
	for (uint32_t i = 0; i < p->n_files; i++) {
		const struct pack_file *f = &p->files[i];

		assert_true(f->offset <= data_end);
		assert_true(f->bytes <= data_end - f->offset);
		assert_true(f->path[0] && f->path[0] != '/');
		assert_null(strstr(f->path, "//"));
		/* each path once */
		assert_true(!i ||
			    grouping_compare(p->files[p->sorted[i - 1]].path,
					     p->files[p->sorted[i]].path) < 0);
	}
	for (uint32_t g = 0; g < p->n_groups; g++)
		assert_true(p->first[g] < p->first[g + 1]);
}

static void a_damaged_index_is_an_error_or_valid(void **state)
{
	struct rng rng = rng_stream(1, "mutate", 0);
	struct index x;
	uint32_t refused = 0, accepted = 0;

	(void)state;
	make_index(&x);
	for (int round = 0; round < 200000; round++) {
		/* exactly as long as said, so that ASan sees one byte more */
		size_t n = round % 16 ? x.n : rng_below(&rng, x.n + 1);
		unsigned char *v = malloc(n ? n : 1);
		struct err err = { 0 };
		struct pack p;

		memcpy(v, x.bytes, n);
		for (uint64_t k = rng_below(&rng, 3); n && k < 3; k++) {
			uint64_t at = rng_below(&rng, n);
			/* bits, and the numbers that overflow */
			v[at] = rng_below(&rng, 2)
					? v[at] ^ (1u << rng_below(&rng, 8))
					: (unsigned char)-rng_below(&rng, 2);
		}
		if (pack_parse_index(v, n, x.data_end, &p, &err) == 0) {
			check_valid(&p, x.data_end);
			accepted++;
		} else {
			assert_true(err.text[0]);
			refused++;
		}
		pack_fini(&p);
		free(v);
	}
	assert_true(refused > 50000);
	/* checksums, times and seeds may have any value */
	assert_true(accepted > 10000);
	free(x.bytes);
}

/* Single changes of the index that a strict reader must refuse. */
static void refuse_path(uint32_t file, const char *path)
{
	struct err err = { 0 };
	struct index x;
	struct pack p;
	unsigned char *bytes;
	size_t n;

	make_index(&x);
	x.files[file].path = path;
	assert_int_equal(pack_write_index(&x.pack, &bytes, &n), 0);
	assert_int_equal(pack_parse_index(bytes, n, x.data_end, &p, &err),
			 -EINVAL);
	pack_fini(&p);
	free(bytes);
	free(x.bytes);
}

static void bad_paths_are_refused(void **state)
{
	char longest[300];

	(void)state;
	memset(longest, 'a', 299);
	longest[299] = 0;
	refuse_path(0, "");
	refuse_path(0, "/b/2");
	refuse_path(0, "b//2");
	refuse_path(0, "b/");
	refuse_path(0, "b/../../2");
	refuse_path(0, "./b");
	refuse_path(0, longest);
	refuse_path(0, "b/1");	 /* twice */
	refuse_path(0, "b/1/2"); /* below a file */
	refuse_path(0, "a");	 /* a folder */
}

static void headers_are_checked(void **state)
{
	struct pack_header h = { .index_offset = 5000,
				 .index_bytes = 100,
				 .index_sum = 7 },
			   back;
	unsigned char bytes[PACK_HEADER_BYTES],
		zeros[PACK_HEADER_BYTES] = { 0 };
	struct err err = { 0 };

	(void)state;
	pack_write_header(&h, bytes);
	assert_int_equal(pack_parse_header(bytes, 5100, &back, &err), 0);
	assert_int_equal(back.index_offset, 5000);
	assert_int_equal(pack_parse_header(bytes, 5099, &back, &err), -EINVAL);
	assert_non_null(strstr(err.text, "truncated or extended"));
	err = (struct err){ 0 };
	assert_int_equal(pack_parse_header(zeros, 5100, &back, &err), -EINVAL);
	assert_non_null(strstr(err.text, "interrupted"));
	for (unsigned i = 0; i < sizeof(bytes) * 8; i++) {
		bytes[i / 8] ^= 1u << (i % 8);
		assert_int_equal(pack_parse_header(bytes, 5100, &back, NULL),
				 -EINVAL);
		bytes[i / 8] ^= 1u << (i % 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_dropped_at_the_tail),
		cmocka_unit_test(orders_do_what_they_say),
		cmocka_unit_test(a_large_file_is_alone),
		cmocka_unit_test(groups_from_a_file),
		cmocka_unit_test(a_bad_list_is_refused),
		cmocka_unit_test(paths_compare_by_component),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(a_damaged_index_is_an_error_or_valid),
		cmocka_unit_test(bad_paths_are_refused),
		cmocka_unit_test(headers_are_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
