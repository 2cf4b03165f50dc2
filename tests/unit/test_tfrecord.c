/* SPDX-License-Identifier: MIT */
#include "tests/unit/shard.h"

#include "common/conf/plugin_choice.h"
#include "loader/format/crc32c.h"
#include "loader/format/example.h"

extern const struct format_ops format_tfrecord;

static void record(struct bytes *b, const void *data, size_t n)
{
	size_t at = b->n;

	add_le(b, n, 8);
	add_le(b, crc32c_mask(crc32c(0, b->v + at, 8)), 4);
	at = b->n;
	add(b, data, n);
	add_le(b, crc32c_mask(crc32c(0, b->v + at, n)), 4);
}

static void crc_is_castagnoli(void **state)
{
	uint8_t v[32];

	(void)state;
	/* RFC 3720, appendix B.4 */
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	memset(v, 0, sizeof(v));
	assert_int_equal(crc32c(0, v, 32), 0x8a9136aa);
	memset(v, 0xff, sizeof(v));
	assert_int_equal(crc32c(0, v, 32), 0x62a8ab43);
	/* in two pieces */
	assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void records_are_samples(void **state)
{
	struct bytes b = { 0 };
	struct dataset_part p;

	(void)state;
	p = good(&format_tfrecord, &b);
	assert_int_equal(p.n, 0);
	record(&b, "one", 3);
	record(&b, "", 0);
	record(&b, "three", 5);
	p = good(&format_tfrecord, &b);
	assert_int_equal(p.n, 3);
	sample_is(&b, &p, 0, NULL, "one", PART_BY_FOLDER);
	sample_is(&b, &p, 1, NULL, "", PART_BY_FOLDER);
	sample_is(&b, &p, 2, NULL, "three", PART_BY_FOLDER);
	part_fini(&p);
	cut_anywhere(&format_tfrecord, &b, 2);
	drop(&b);
}

static void records_with_wrong_sums(void **state)
{
	static const struct plugin *const table[] = { &format_tfrecord.plugin,
						      NULL };
	struct plugin_choice verify;
	struct bytes b = { 0 };
	struct dataset_part p;

	(void)state;
	record(&b, "one", 3);
	record(&b, "two", 3);
	for (size_t bit = 0; bit < 12 * 8; bit++) {
		b.v[19 + bit / 8] ^= 1u << (bit % 8);
		refused(&format_tfrecord, &b, "byte 19: the checksum");
		b.v[19 + bit / 8] ^= 1u << (bit % 8);
	}
	b.v[19 + 12] ^= 1;
	p = good(&format_tfrecord, &b);
	part_fini(&p);
	assert_int_equal(plugin_choose(table, "format", "tfrecord:verify=on",
				       &verify, NULL),
			 0);
	refused_with(&format_tfrecord, &b, verify.options,
		     "of its data is wrong");
	plugin_choice_fini(&verify);
	drop(&b);
	/* a length that is huge, or negative, with the right checksum */
	add_le(&b, UINT64_MAX - 15, 8);
	add_le(&b, crc32c_mask(crc32c(0, b.v, 8)), 4);
	add_text(&b, "some bytes behind it");
	refused(&format_tfrecord, &b, "longer than the file");
	drop(&b);
	add_text(&b, "\x1f\x8b\x08 and then compressed");
	refused(&format_tfrecord, &b, "gzip");
	drop(&b);
}

/* A protobuf field of bytes, of a length below 128. */
static struct bytes message(int number, const void *v, size_t n)
{
	struct bytes b = { 0 };

	add_le(&b, (uint64_t)number << 3 | 2, 1);
	add_le(&b, n, 1);
	add(&b, v, n);
	return b;
}

/* `inner` becomes a field of `number`. */
static void wrap(struct bytes *inner, int number)
{
	struct bytes b = message(number, inner->v, inner->n);

	drop(inner);
	*inner = b;
}

/* feature { key: "...", value: { `kind`: list } } */
static void feature(struct bytes *b, const char *key, int kind,
		    const char *list, size_t n)
{
	struct bytes entry = message(1, key, strlen(key));
	struct bytes value = message(kind, list, n);

	wrap(&value, 2);
	add(&entry, value.v, value.n);
	wrap(&entry, 1);
	add(b, entry.v, entry.n);
	drop(&entry);
	drop(&value);
}

static struct bytes example(const char *label, size_t n)
{
	struct bytes b = { 0 };

	feature(&b, "image/height", 3, "\x0a\x01\x05", 3);
	feature(&b, "image/encoded", 1, "\x0a\x05image\x0a\x01x", 10);
	feature(&b, "image/class/label", 3, label, n);
	feature(&b, "image/class/text", 1,
		"\x0a\x03"
		"cat",
		5);
	wrap(&b, 1);
	return b;
}

static void an_example_is_its_image(void **state)
{
	struct bytes packed = example("\x0a\x02\x81\x01", 4);
	struct bytes single = example("\x08\x03", 2), b = { 0 };
	struct dataset_part p;

	(void)state;
	record(&b, packed.v, packed.n);
	record(&b, single.v, single.n);
	record(&b, packed.v, packed.n - 1); /* no longer an Example */
	p = good(&format_tfrecord, &b);
	assert_int_equal(p.n, 3);
	sample_is(&b, &p, 0, NULL, "image", 129);
	sample_is(&b, &p, 1, NULL, "image", 3);
	assert_int_equal(p.sample[2].size, packed.n - 1);
	assert_int_equal(p.sample[2].label, PART_BY_FOLDER);
	part_fini(&p);
	drop(&b);
	drop(&packed);
	drop(&single);
	/* -1 as protobuf writes it */
	single = example("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	record(&b, single.v, single.n);
	refused(&format_tfrecord, &b, "a label");
	drop(&b);
	drop(&single);
}

/* The number of records, and the first feature, of a note. */
static void note_is(const struct dataset_part *p, const char *key, unsigned n,
		    const char *name)
{
	for (size_t i = 0; i < p->notes.n; i++) {
		const struct note *x = &p->notes.note[i];

		if (strcmp(x->key, key))
			continue;
		assert_int_equal(x->n, n);
		assert_string_equal(x->name[0], name);
		return;
	}
	fail_msg("no note %s", key);
}

/* As TensorFlow Datasets writes them; `label` of kind 1 (bytes) or 3. */
static void add_tfds(struct bytes *b, const char *image, int kind)
{
	struct bytes e = { 0 };

	feature(&e, "file_name", 1, "\x0a\x01x", 3);
	feature(&e, image, 1, "\x0a\x05image", 7);
	feature(&e, "label", kind,
		kind == 3 ? "\x0a\x01\x02"
			  : "\x0a\x01"
			    "2",
		3);
	wrap(&e, 1);
	record(b, e.v, e.n);
	drop(&e);
}

static void features_have_usual_names_or_chosen_ones(void **state)
{
	static const struct plugin *const table[] = { &format_tfrecord.plugin,
						      NULL };
	struct plugin_choice c;
	struct bytes b = { 0 };
	struct err err;
	struct dataset_part p;

	(void)state;
	add_tfds(&b, "image", 3);
	add_tfds(&b, "pixels", 3);
	add_tfds(&b, "image", 1);
	p = good(&format_tfrecord, &b);
	assert_int_equal(p.n, 3);
	sample_is(&b, &p, 0, NULL, "image", 2);
	assert_int_equal(p.sample[1].label, 2);
	assert_true(p.sample[1].size > 5); /* the record */
	sample_is(&b, &p, 2, NULL, "image", PART_BY_FOLDER);
	note_is(&p, "image_feature", 2, "image");
	note_is(&p, "label_feature", 2, "label");
	note_is(&p, "records_without_image", 1, "file_name");
	note_is(&p, "labels_of_another_type", 1, "label");
	part_fini(&p);
	assert_int_equal(plugin_choose(table, "format",
				       "tfrecord:image=pixels,label=image", &c,
				       NULL),
			 0);
	assert_int_equal(scan_with(&format_tfrecord, &b, c.options, &p, &err),
			 0);
	sample_is(&b, &p, 1, NULL, "image", PART_BY_FOLDER);
	note_is(&p, "image_feature", 1, "pixels");
	note_is(&p, "records_without_image", 2, "file_name");
	part_fini(&p);
	plugin_choice_fini(&c);
	drop(&b);
}

static void a_damaged_example_is_no_example(void **state)
{
	const struct example_names names = { "image/encoded,image",
					     "image/class/label" };
	struct bytes b = example("\x08\x03", 2);
	struct example e;
	struct peek p;

	(void)state;
	/* every byte, every value: found inside, or refused */
	for (size_t i = 0; i < b.n; i++)
		for (int v = 0; v < 256; v++) {
			uint8_t *own = malloc(b.n);
			int r;

			memcpy(own, b.v, b.n);
			own[i] = (uint8_t)v;
			peek_init_memory(&p, own, b.n);
			r = example_find(&p, 0, b.n, &names, &e);
			assert_true(r == 0 || r == -EBADMSG);
			if (r == 0 && e.image.found)
				assert_true(e.offset <= b.n &&
					    e.size <= b.n - e.offset);
			free(own);
		}
	drop(&b);
}

static void shards_are_named(void **state)
{
	(void)state;
	assert_true(format_tfrecord.named("a.tfrecord"));
	assert_true(format_tfrecord.named("a.tfrecords"));
	assert_true(format_tfrecord.named("a.tfrecord-00001-of-00002"));
	assert_true(format_tfrecord.named("train-00001-of-01024"));
	assert_false(format_tfrecord.named("-00001-of-01024"));
	assert_false(format_tfrecord.named("a.tfrecord.gz"));
	assert_false(format_tfrecord.named("train-0001-of-1024"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_is_castagnoli),
		cmocka_unit_test(records_are_samples),
		cmocka_unit_test(records_with_wrong_sums),
		cmocka_unit_test(an_example_is_its_image),
		cmocka_unit_test(features_have_usual_names_or_chosen_ones),
		cmocka_unit_test(a_damaged_example_is_no_example),
		cmocka_unit_test(shards_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
