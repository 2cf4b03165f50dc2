/* SPDX-License-Identifier: MIT */
/* An index: a round trip is exact, and any change of its bytes gives an error
 * or a valid dataset. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/util.h"
#include "loader/dataset/index.h"
#include "loader/dataset/part.h"

enum { RECIPE = 12345, SHARDS = 3, EACH = 5 };

/* The same samples as shards or as files. */
static void make(struct dataset *d, bool shards)
{
	static const struct note_kind kind = { "files_aside", "aside" };
	struct builder b = { .d = d };
	struct err err = { 0 };

	*d = (struct dataset){ .dirfd = -1 };
	for (unsigned s = 0; s < SHARDS; s++) {
		struct origin o = { .size = 1000, .mtime_ns = -5, .ino = s };
		struct dataset_part p = { .n_groups = 2 };
		char name[32];

		for (unsigned i = 0; i < EACH; i++) {
			int n = snprintf(name, sizeof(name), "c%u/%u", i % 3,
					 i);

			assert_int_equal(part_add(&p, name, (size_t)n, 100 * i,
						  10 * i, PART_BY_FOLDER),
					 0);
			p.sample[i].group = i > 2;
		}
		snprintf(name, sizeof(name), "shard%u", s);
		assert_int_equal(builder_origin(&b, name, &o, &err), 0);
		assert_int_equal(shards ? builder_container(&b, &p, &err)
					: builder_files(&b, &p, &err),
				 0);
		part_fini(&p);
	}
	assert_int_equal(builder_finish(&b, &err), 0);
	assert_int_equal(notes_add(&d->notes, &kind, 3, "README"), 0);
	d->n_containers = shards ? SHARDS : 0;
	d->n_groups = shards ? d->n_groups : 0;
}

static void what_is_the_same_for_all_is_not_looked_up(void **state)
{
	uint64_t zeros[2] = { 0 };
	struct dataset even = { .n = 3, .bytes = 210, .largest = 70 };
	struct dataset empty = { .n = 2, .size = zeros };
	uint64_t at[] = { 7, 9 };
	struct dataset spaced = { .n = 3, .stride = 100, .offset = at };
	struct dataset apart = { .n = 2, .offset = at };
	struct dataset d;

	(void)state;
	make(&d, true);
	for (size_t i = 0; i < d.n; i++)
		assert_int_equal(dataset_size(&d, i), d.size[i]);
	dataset_close(&d);
	assert_int_equal(dataset_size(&even, 2), 70);
	assert_int_equal(dataset_offset(&spaced, 2), 207);
	assert_int_equal(dataset_offset(&apart, 1), 9);
	assert_int_equal(dataset_size(&empty, 1), 0);
}

static void a_dataset_is_built_of_parts(void **state)
{
	struct dataset d;

	(void)state;
	make(&d, true);
	assert_int_equal(d.n, SHARDS * EACH);
	assert_int_equal(d.n_classes, 3);
	assert_int_equal(d.n_groups, 2 * SHARDS);
	assert_int_equal(d.bytes, SHARDS * 100);
	assert_int_equal(d.largest, 40);
	for (unsigned i = 0; i < d.n; i++) {
		assert_int_equal(d.label[i], i % EACH % 3);
		assert_int_equal(d.container[i], i / EACH);
		assert_int_equal(d.group[i], i / EACH * 2 + (i % EACH > 2));
		assert_int_equal(d.offset[i], i % EACH * 100);
	}
	dataset_close(&d);
}

static void labels_of_numbers_win(void **state)
{
	struct dataset_part p = { 0 };
	struct dataset d = { .dirfd = -1 };
	struct builder b = { .d = &d };
	struct origin o = { 0 };

	(void)state;
	assert_int_equal(part_add(&p, "b/1", 3, 0, 1, PART_BY_FOLDER), 0);
	assert_int_equal(part_add(&p, "a/1", 3, 0, 1, 9), 0);
	assert_int_equal(builder_origin(&b, "x", &o, NULL), 0);
	assert_int_equal(builder_container(&b, &p, NULL), 0);
	assert_int_equal(builder_finish(&b, NULL), 0);
	assert_int_equal(d.label[0], 0);
	assert_int_equal(d.label[1], 9);
	assert_int_equal(d.n_classes, 10);
	part_fini(&p);
	dataset_close(&d);
}

static void same(const struct dataset *a, const struct dataset *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->n_classes, b->n_classes);
	assert_int_equal(a->n_groups, b->n_groups);
	assert_int_equal(a->n_containers, b->n_containers);
	assert_int_equal(a->n_origins, b->n_origins);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->largest, b->largest);
	assert_int_equal(a->notes.n, 1);
	assert_memory_equal(a->notes.note, b->notes.note, sizeof(struct note));
	assert_memory_equal(a->size, b->size, a->n * 8);
	assert_memory_equal(a->label, b->label, a->n * 4);
	for (size_t i = 0; i < a->n; i++)
		assert_string_equal(dataset_path(a, i), dataset_path(b, i));
	for (size_t i = 0; i < a->n_origins; i++) {
		assert_string_equal(a->names + a->origin[i].path,
				    b->names + b->origin[i].path);
		assert_int_equal(a->origin[i].mtime_ns, b->origin[i].mtime_ns);
	}
	assert_int_equal(!a->container, !b->container);
	if (!a->container)
		return;
	assert_memory_equal(a->container, b->container, a->n * 4);
	assert_memory_equal(a->group, b->group, a->n * 4);
	assert_memory_equal(a->offset, b->offset, a->n * 8);
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	for (int shards = 0; shards < 2; shards++) {
		struct dataset d, back;
		struct err err = { 0 };
		void *v;
		size_t n;

		make(&d, shards);
		assert_int_equal(index_format(&d, RECIPE, &v, &n), 0);
		if (index_parse(v, n, RECIPE, &back, &err) < 0)
			fail_msg("%s", err.text);
		same(&d, &back);
		assert_int_equal(index_parse(v, n, RECIPE + 1, &back, &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, "options"));
		for (size_t cut = 0; cut < n; cut++) {
			void *own = malloc(cut + 1);

			memcpy(own, v, cut);
			assert_int_equal(index_parse(own, cut, RECIPE, &back,
						     NULL),
					 -EINVAL);
			free(own);
		}
		free(v);
		dataset_close(&d);
	}
}

static void keeps_its_promises(const struct dataset *d)
{
	for (size_t i = 0; i < d->n; i++) {
		assert_true(strlen(dataset_path(d, i)) < d->names_bytes);
		assert_true(d->label[i] < d->n_classes);
		assert_true(d->size[i] <= d->largest);
		if (!d->container)
			continue;
		assert_true(d->container[i] < d->n_containers);
		assert_true(d->group[i] < d->n_groups);
		assert_true(d->offset[i] <= d->origin[d->container[i]].size);
		assert_true(d->size[i] <=
			    d->origin[d->container[i]].size - d->offset[i]);
	}
}

static void a_damaged_index_is_an_error_or_valid(void **state)
{
	struct rng rng = rng_stream(1, "mutate", 0);
	uint32_t refused = 0, accepted = 0;
	struct dataset d, back;
	void *v;
	size_t n;

	(void)state;
	make(&d, true);
	assert_int_equal(index_format(&d, RECIPE, &v, &n), 0);
	for (int round = 0; round < 100000; round++) {
		uint8_t *own = malloc(n);

		memcpy(own, v, n);
		for (uint64_t k = rng_below(&rng, 3); k < 3; k++) {
			uint64_t at = rng_below(&rng, n);

			own[at] = rng_below(&rng, 2)
					  ? own[at] ^ (1u << rng_below(&rng, 8))
					  : (uint8_t)-rng_below(&rng, 2);
		}
		if (index_parse(own, n, RECIPE, &back, NULL) == 0) {
			keeps_its_promises(&back);
			accepted++;
		} else {
			refused++;
		}
		free(own);
	}
	assert_true(refused > 10000);
	/* names and times may be anything */
	assert_true(accepted > 10000);
	free(v);
	dataset_close(&d);
}

static void a_file_is_checked_and_replaced(void **state)
{
	char dir[] = "/tmp/gpemu-index-XXXXXX", path[64];
	struct dataset d, back;
	struct err err = { 0 };
	struct stat st;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/index", dir);
	make(&d, false);
	assert_int_equal(index_read(path, RECIPE, &back, &err), -ENOENT);
	assert_int_equal(index_write(path, RECIPE, &d, &err), 0);
	err = (struct err){ 0 };
	if (index_read(path, RECIPE, &back, &err) < 0)
		fail_msg("%s", err.text);
	same(&d, &back);
	assert_int_equal(stat(path, &st), 0);
	dataset_close(&back);
	/* every bit counts */
	for (off_t i = 0; i < st.st_size; i++) {
		int c;

		f = fopen(path, "r+e");
		fseek(f, i, SEEK_SET);
		c = fgetc(f);
		fseek(f, i, SEEK_SET);
		fputc(c ^ 1 << i % 8, f);
		fclose(f);
		err = (struct err){ 0 };
		assert_int_equal(index_read(path, RECIPE, &back, &err),
				 -EINVAL);
		assert_non_null(strstr(err.text, path));
		f = fopen(path, "r+e");
		fseek(f, i, SEEK_SET);
		fputc(c, f);
		fclose(f);
	}
	assert_int_equal(truncate(path, 7), 0);
	assert_int_equal(index_read(path, RECIPE, &back, NULL), -EINVAL);
	assert_int_equal(index_write(path, RECIPE, &d, NULL), 0);
	assert_int_equal(index_read(path, RECIPE, &back, NULL), 0);
	dataset_close(&back);
	unlink(path);
	/* no other file was left behind */
	assert_int_equal(rmdir(dir), 0);
	err = (struct err){ 0 };
	assert_int_equal(index_write(path, RECIPE, &d, &err), -ENOENT);
	dataset_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_the_same_for_all_is_not_looked_up),
		cmocka_unit_test(a_dataset_is_built_of_parts),
		cmocka_unit_test(labels_of_numbers_win),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(a_damaged_index_is_an_error_or_valid),
		cmocka_unit_test(a_file_is_checked_and_replaced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
