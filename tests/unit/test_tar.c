/* SPDX-License-Identifier: MIT */
#include "loader/format/payload.h"
#include "tests/unit/shard.h"

extern const struct format_ops format_tar;

static void tar_sum(uint8_t *h)
{
	unsigned sum = 0;
	char text[8] = "";

	memset(h + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += h[i];
	snprintf(text, sizeof(text), "%06o", sum);
	memcpy(h + 148, text, 8);
}

/* A header whose size field is as given; `n` bytes of data behind it. */
static void tar_raw(struct bytes *b, const char *name, char type,
		    const char size[12], const void *data, size_t n)
{
	uint8_t h[512] = { 0 };

	memcpy(h, name, MIN(strlen(name), 100));
	memcpy(h + 124, size, 12);
	h[156] = (uint8_t)type;
	memcpy(h + 257, "ustar\00000", 8);
	tar_sum(h);
	add(b, h, 512);
	add(b, data, n);
	add_zeros(b, (512 - n % 512) % 512);
}

static void tar_member(struct bytes *b, const char *name, char type,
		       const void *data, size_t n)
{
	char size[16];

	snprintf(size, sizeof(size), "%011zo", n);
	tar_raw(b, name, type, size, data, n);
}

static void tar_file(struct bytes *b, const char *name, const char *text)
{
	tar_member(b, name, '0', text, strlen(text));
}

static void tar_groups_members_by_key(void **state)
{
	struct bytes b = { 0 };
	struct dataset_part p;

	(void)state;
	tar_member(&b, "./d/", '5', "", 0);
	tar_file(&b, "./d/1.jpg", "one");
	tar_file(&b, "./d/1.cls", " 7\n");
	tar_file(&b, "./d/1.seg.png", "not it");
	tar_file(&b, "d/2.PNG", "second choice");
	tar_file(&b, "d/2.jpg", "two");
	tar_file(&b, "d/3.json", "{}");	    /* nothing to read */
	tar_file(&b, "d/.hidden.jpg", "x"); /* no key */
	tar_file(&b, "d/noext", "x");
	tar_member(&b, "d/4.jpg", '2', "", 0); /* a link */
	tar_file(&b, "e.v2/5.jpg", "");
	p = good(&format_tar, &b);
	assert_int_equal(p.n, 3);
	sample_is(&b, &p, 0, "d/1.jpg", "one", 7);
	sample_is(&b, &p, 1, "d/2.jpg", "two", PART_BY_FOLDER);
	sample_is(&b, &p, 2, "e.v2/5.jpg", "", PART_BY_FOLDER);
	part_fini(&p);
	cut_anywhere(&format_tar, &b, 3);
	drop(&b);
}

/* "n name name", or "" for none of this kind. */
static void note_is(const struct dataset_part *p, const char *key,
		    const char *want)
{
	char text[400] = "";

	for (size_t i = 0; i < p->notes.n; i++) {
		const struct note *n = &p->notes.note[i];
		int at = sprintf(text, "%d", (int)n->n);

		for (int k = 0; k < NOTE_NAMES && n->name[k][0]; k++)
			at += sprintf(text + at, " %s", n->name[k]);
		if (!strcmp(n->key, key))
			break;
		text[0] = 0;
	}
	assert_string_equal(text, want);
}

static void tar_counts_what_is_no_sample(void **state)
{
	struct bytes b = { 0 };
	struct dataset_part p;

	(void)state;
	tar_file(&b, "__index__", "WebDataset's own");
	tar_file(&b, "1.jpg", "one");
	tar_file(&b, "1.cls", "3");
	tar_file(&b, "1.json", "{}");
	tar_file(&b, "1.seg.png", "beside");
	tar_file(&b, "22.05.jpg", "no");
	tar_file(&b, "22.10.jpg", "no");
	tar_file(&b, "v1.5-shot.jpg", "no");
	tar_file(&b, "3.json", "{}"); /* a failed download */
	tar_file(&b, "3.txt", "a caption");
	tar_member(&b, "4.jpg", '1', "", 0); /* a hard link */
	tar_file(&b, "4.cls", "4");
	tar_file(&b, "./._5.jpg", "AppleDouble");
	tar_file(&b, "5.jpg", "five"); /* without a label */
	p = good(&format_tar, &b);
	assert_int_equal(p.n, 2);
	sample_is(&b, &p, 0, "1.jpg", "one", 3);
	sample_is(&b, &p, 1, "5.jpg", "five", PART_BY_FOLDER);
	note_is(&p, "samples_without_payload", "4 22 v1 4");
	note_is(&p, "members_with_dots", "3 22.05.jpg 22.10.jpg v1.5-shot.jpg");
	note_is(&p, "members_skipped", "2 4.jpg ._5.jpg");
	note_is(&p, "shards_without_labels", "");
	for (size_t i = 0; i < p.notes.n; i++)
		assert_true(note_is_valid(&p.notes.note[i]));
	part_fini(&p);
	drop(&b);
}

static void tar_texts_are_data_if_nothing_else_is(void **state)
{
	struct bytes b = { 0 };
	struct dataset_part p;

	(void)state;
	tar_file(&b, "1.txt", "one");
	tar_file(&b, "2.txt", "two");
	p = good(&format_tar, &b);
	assert_int_equal(p.n, 2);
	note_is(&p, "samples_without_payload", "");
	note_is(&p, "shards_without_labels", "1");
	part_fini(&p);
	drop(&b);
}

static void tar_labels_apart_are_refused(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	tar_file(&b, "1.jpg", "one");
	tar_file(&b, "2.jpg", "two");
	tar_file(&b, "1.cls", "1");
	tar_file(&b, "2.cls", "2");
	refused(&format_tar, &b, "such as 1.cls");
	drop(&b);
}

static void tar_ends_at_zeros(void **state)
{
	struct bytes b = { 0 };
	struct dataset_part p;

	(void)state;
	tar_file(&b, "1.jpg", "one");
	add_zeros(&b, 512);
	add_zeros(&b, 512);
	tar_file(&b, "2.jpg", "behind the end");
	p = good(&format_tar, &b);
	assert_int_equal(p.n, 1);
	part_fini(&p);
	drop(&b);
}

static void tar_long_names_and_sizes(void **state)
{
	static const char wide[12] = { (char)0x80, [11] = 3 };
	char name[400] = "";
	struct bytes b = { 0 };
	struct dataset_part p;

	(void)state;
	memset(name, 'n', 300);
	strcpy(name + 300, ".jpg");
	tar_member(&b, "././@LongLink", 'L', name, strlen(name) + 1);
	tar_file(&b, "short", "gnu");
	tar_member(&b, "pax", 'g', "19 comment=abcdefg\n", 19);
	tar_member(&b, "pax", 'x', "18 path=pax/1.jpg\n10 size=3\n", 28);
	tar_raw(&b, "short", '0', "00000000000", "pax", 3);
	tar_raw(&b, "2.jpg", '0', wide, "256", 3);
	p = good(&format_tar, &b);
	assert_int_equal(p.n, 3);
	sample_is(&b, &p, 0, name, "gnu", PART_BY_FOLDER);
	sample_is(&b, &p, 1, "pax/1.jpg", "pax", PART_BY_FOLDER);
	sample_is(&b, &p, 2, "2.jpg", "256", PART_BY_FOLDER);
	part_fini(&p);
	cut_anywhere(&format_tar, &b, 3);
	drop(&b);
}

static void tar_refuse(char type, const char size[12], const char *data,
		       const char *why)
{
	struct bytes b = { 0 };

	tar_raw(&b, "1.jpg", type, size, data, strlen(data));
	tar_file(&b, "2.jpg", "two");
	refused(&format_tar, &b, why);
	drop(&b);
}

static void tar_refuses_what_is_damaged(void **state)
{
	static const char negative[12] = { (char)0xff, (char)0xff, 1 },
			  huge[12] = { (char)0x80, 0, 0, 1 },
			  most[12] = { (char)0x80, 0,	       0,
				       0,	   (char)0x7f, (char)0xff };
	struct bytes b = { 0 };

	(void)state;
	refused(&format_tar, &b, "empty");
	tar_refuse('0', "00000004000", "", "truncated");
	tar_refuse('0', "77777777777", "", "truncated");
	tar_refuse('0', negative, "", "damaged size");
	tar_refuse('0', huge, "", "damaged size");
	tar_refuse('0', most, "", "truncated");
	tar_refuse('0', "0000000000z", "", "damaged size");
	tar_refuse('S', "00000000000", "", "sparse");
	tar_refuse('x', "00000000020", "99 path=a.jpg\nxx", "extended");
	tar_refuse('x', "00000000020", "1 path=aaaa.jpg\n", "extended");
	tar_refuse('x', "00000000020", "16 size=-------\n", "damaged size");
	tar_refuse('x', "00000000020", "16 nothinghere!\n", "extended");
	tar_refuse('x', "00000000021", "17 GNU.sparse.a=\n", "sparse");
	tar_refuse('g', "00000000020", "16 path=aaa.jpg\n", "for all");
	tar_file(&b, "1.jpg", "one");
	b.v[0] ^= 1;
	refused(&format_tar, &b, "not the header");
	drop(&b);
	tar_file(&b, "1.jpg", "one");
	tar_file(&b, "1.jpg", "one again");
	refused(&format_tar, &b, "two members of one name");
	drop(&b);
	tar_file(&b, "1.jpg", "one");
	tar_file(&b, "1.cls", "cat");
	refused(&format_tar, &b, "class number");
	drop(&b);
	tar_file(&b, "1.cls", "-1");
	refused(&format_tar, &b, "class number");
	drop(&b);
	tar_file(&b, "1.webm", "one");
	refused(&format_tar, &b, "1.webm");
	drop(&b);
	tar_member(&b, "L", 'L', "1.jpg", 6);
	refused(&format_tar, &b, "without a member");
	drop(&b);
}

static void payloads_have_ranks(void **state)
{
	(void)state;
	assert_int_equal(payload_rank("jpg,png", "jpg", 3), 0);
	assert_int_equal(payload_rank("jpg,png", "PNG", 3), 1);
	assert_int_equal(payload_rank("jpg,png", "pn", 2), -1);
	assert_int_equal(payload_rank("jpg,seg.png", "seg.png", 7), 1);
	assert_int_equal(payload_rank("jpg", "", 0), -1);
}

static void shards_are_named(void **state)
{
	(void)state;
	assert_true(format_tar.named("a-000.tar"));
	assert_false(format_tar.named(".tar"));
	assert_false(format_tar.named("a.tar.gz"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tar_groups_members_by_key),
		cmocka_unit_test(tar_counts_what_is_no_sample),
		cmocka_unit_test(tar_texts_are_data_if_nothing_else_is),
		cmocka_unit_test(tar_labels_apart_are_refused),
		cmocka_unit_test(tar_ends_at_zeros),
		cmocka_unit_test(tar_long_names_and_sizes),
		cmocka_unit_test(tar_refuses_what_is_damaged),
		cmocka_unit_test(payloads_have_ranks),
		cmocka_unit_test(shards_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
