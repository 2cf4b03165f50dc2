/* SPDX-License-Identifier: MIT */
/* Arrays, and archives of arrays. */
#include "tests/unit/shard.h"

extern const struct format_ops format_npy, format_npz;

static void npy(struct bytes *b, const char *dict, size_t n_data)
{
	add(b, "\x93NUMPY\x01\x00", 8);
	add_le(b, strlen(dict), 2);
	add_text(b, dict);
	for (size_t i = 0; i < n_data; i++)
		add_le(b, i, 1);
}

#define DICT(descr, order, shape)                                              \
	"{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape "," \
	" "                                                                    \
	"}"

static void arrays_are_records(void **state)
{
	static const struct {
		const char *dict;
		size_t bytes, n, each;
	} ok[] = {
		{ DICT("'<f4'", "False", "(5, 2)"), 40, 5, 8 },
		{ DICT("'|u1'", "False", "(3,)"), 3, 3, 1 },
		{ DICT("'<i8'", "False", "()"), 8, 1, 8 },
		{ DICT("'<U3'", "False", "(2,)"), 24, 2, 12 },
		{ DICT("'<M8[ns]'", "False", "(2, 1)"), 16, 2, 8 },
		{ DICT("'<f8'", "True", "(1, 2, 3)"), 48, 1, 48 },
		{ DICT("'<f8'", "True", "(3,)"), 24, 3, 8 },
		{ DICT("'<f8'", "False", "(0, 7)"), 0, 0, 0 },
		{ DICT("'<f8'", "False", "(1, 0)"), 0, 1, 0 },
		{ "{ \"shape\":(2L,),'descr':'b1' ,'fortran_order':False}\n", 2,
		  2, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ok); i++) {
		struct bytes b = { 0 };
		struct dataset_part p;

		npy(&b, ok[i].dict, ok[i].bytes);
		p = good(&format_npy, &b);
		assert_int_equal(p.n, ok[i].n);
		for (size_t k = 0; k < p.n; k++) {
			assert_int_equal(p.sample[k].size, ok[i].each);
			assert_int_equal(p.sample[k].offset,
					 b.n - ok[i].bytes + k * ok[i].each);
		}
		part_fini(&p);
		/* a truncated array is not read at all */
		if (ok[i].bytes)
			for (size_t n = 0; n < b.n; n++) {
				struct bytes cut = { b.v, n };

				refused(&format_npy, &cut, "");
			}
		drop(&b);
	}
}

static void bad_arrays_are_refused(void **state)
{
	static const struct {
		const char *dict, *why;
	} bad[] = {
		{ DICT("'|O'", "False", "(5,)"), "objects" },
		{ DICT("[('a', '<f4')]", "False", "(5,)"), "several types" },
		{ DICT("'<f4'", "True", "(2, 3)"), "Fortran" },
		{ DICT("'<f4'", "Maybe", "(2, 3)"), "fortran_order" },
		{ DICT("'<f4'", "False", "(-1,)"), "shape" },
		{ DICT("'<f4'", "False", "(2, 99)"), "truncated" },
		{ DICT("'<f4'", "False", "(4611686018427387904,)"), "large" },
		{ DICT("'<f4'", "False", "(99999999999999999999,)"), "large" },
		{ DICT("'<f4'", "False", "(4294967296, 4294967296)"), "large" },
		{ DICT("'<f4'", "False", "(9999999, 0)"), "no bytes" },
		{ DICT("'<f0'", "False", "(9999999,)"), "no bytes" },
		{ DICT("'<f4'", "False", "(2 3)"), "shape" },
		{ DICT("'<f4'", "False", "2"), "tuple" },
		{ DICT("'<x4'", "False", "(2,)"), "type" },
		{ DICT("'<f4;'", "False", "(2,)"), "type" },
		{ "{'descr': '<f4', 'shape': (1,)}", "missing" },
		{ "{'descr': '<f4', 'descr': '<f4'}", "duplicate key" },
		{ "{'other': 1}", "unknown key" },
		{ "{'descr': '<f4", "a name that is not terminated" },
		{ "[]", "not a dictionary" },
		{ "", "not a dictionary" },
		{ DICT("'<f4'", "False", "(1,)") " {", "text after" },
	};
	char dimensions[400] = "{'shape': (";
	struct bytes b = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		npy(&b, bad[i].dict, 64);
		refused(&format_npy, &b, bad[i].why);
		drop(&b);
	}
	for (int i = 0; i < 70; i++)
		strcat(dimensions, "1,");
	npy(&b, dimensions, 64);
	refused(&format_npy, &b, "dimensions");
	drop(&b);
	add(&b, "\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
	refused(&format_npy, &b, "truncated");
	b.v[6] = 9;
	refused(&format_npy, &b, "version");
	drop(&b);
}

/* --- npz ---------------------------------------------------------------- */

struct zip {
	struct bytes b, central;
	unsigned n, method, flags;
	uint64_t lie; /* added to the sizes in the directory */
};

static void zip_member(struct zip *z, const char *name, const char *dict,
		       size_t n_data)
{
	struct bytes data = { 0 };
	size_t at = z->b.n;

	npy(&data, dict, n_data);
	add_le(&z->b, 0x04034b50, 4);
	add_zeros(&z->b, 22);
	add_le(&z->b, strlen(name), 2);
	add_le(&z->b, 3, 2);
	add_text(&z->b, name);
	add(&z->b, "ext", 3);
	add(&z->b, data.v, data.n);
	add_le(&z->central, 0x02014b50, 4);
	add_le(&z->central, 0, 4);
	add_le(&z->central, z->flags, 2);
	add_le(&z->central, z->method, 2);
	add_le(&z->central, 0, 8);
	add_le(&z->central, data.n + z->lie, 4);
	add_le(&z->central, data.n + z->lie, 4);
	add_le(&z->central, strlen(name), 2);
	add_zeros(&z->central, 12);
	add_le(&z->central, at, 4);
	add_text(&z->central, name);
	z->n++;
	drop(&data);
}

static void zip_end(struct zip *z, uint64_t directory_lie, const char *comment)
{
	size_t at = z->b.n;

	add(&z->b, z->central.v, z->central.n);
	add_le(&z->b, 0x06054b50, 4);
	add_le(&z->b, 0, 4);
	add_le(&z->b, z->n, 2);
	add_le(&z->b, z->n, 2);
	add_le(&z->b, z->central.n, 4);
	add_le(&z->b, at + directory_lie, 4);
	add_le(&z->b, strlen(comment), 2);
	add_text(&z->b, comment);
	drop(&z->central);
}

static void the_array_x_or_the_first(void **state)
{
	static const char dict[] = DICT("'|u1'", "True", "(2, 2)");
	static const char *const names[][2] = { { "a.npy", "x.npy" },
						{ "a.npy", "b.npy" } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct zip z = { 0 };
		struct dataset_part p;

		zip_member(&z, "readme", "", 0);
		zip_member(&z, names[i][0], dict, 4);
		zip_member(&z, names[i][1], DICT("'|u1'", "False", "(7,)"), 7);
		zip_end(&z, 0, i ? "a comment" : "");
		p = good(&format_npz, &z.b);
		assert_int_equal(p.n, 1);
		assert_int_equal(p.sample[0].size, i ? 4 : 7);
		assert_int_equal(z.b.v[p.sample[0].offset + 1], 1);
		part_fini(&p);
		for (size_t n = 0; n < z.b.n; n++) {
			struct bytes cut = { z.b.v, n };

			refused(&format_npz, &cut, "");
		}
		drop(&z.b);
	}
}

static void npz_refuse(struct zip z, uint64_t directory_lie, const char *why)
{
	zip_member(&z, "x.npy", DICT("'|u1'", "False", "(4,)"), 4);
	zip_end(&z, directory_lie, "");
	refused(&format_npz, &z.b, why);
	drop(&z.b);
}

static void bad_archives_are_refused(void **state)
{
	struct zip z = { 0 };

	(void)state;
	npz_refuse((struct zip){ .method = 8 }, 0, "compressed");
	npz_refuse((struct zip){ .flags = 1 }, 0, "compressed");
	npz_refuse((struct zip){ .lie = 1000 }, 0, "its array is incomplete");
	/* a member that overlaps the directory */
	npz_refuse((struct zip){ .lie = 1 }, 0, "its array is incomplete");
	npz_refuse((struct zip){ .lie = (uint64_t)-60 }, 0, "truncated");
	npz_refuse((struct zip){ 0 }, 1, "damaged");
	npz_refuse((struct zip){ 0 }, 100000, "outside");
	npz_refuse((struct zip){ 0 }, 0xffffffff, "damaged");
	zip_end(&z, 0, "");
	refused(&format_npz, &z.b, "no array");
	drop(&z.b);
}

static void shards_are_named(void **state)
{
	(void)state;
	assert_true(format_npz.named("a.npz"));
	assert_true(format_npy.named("a.npy"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_are_records),
		cmocka_unit_test(bad_arrays_are_refused),
		cmocka_unit_test(the_array_x_or_the_first),
		cmocka_unit_test(bad_archives_are_refused),
		cmocka_unit_test(shards_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
