/* SPDX-License-Identifier: MIT */
/* Token files: windows, documents, and the rows that are trained on. */
#include "loader/dataset/format_open.h"
#include "tests/unit/shard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/conf/plugin_choice.h"
#include "loader/dataset/detect.h"
#include "loader/format/token_width.h"
#include "loader/prep/prep.h"

extern const struct format_ops format_tokens;
extern const struct prep_ops prep_tokens;

static struct plugin_choice choose(const struct plugin *const table[],
				   const char *text)
{
	struct plugin_choice c;
	struct err err = { 0 };

	if (plugin_choose(table, "choice", text, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static struct bytes tokens(size_t n, unsigned each)
{
	struct bytes b = { 0 };

	for (size_t i = 0; i < n; i++)
		add_le(&b, 1 + i, each);
	return b;
}

/* Each token but the last is an input of exactly one window, up to what does
 * not fill one. */
static void every_window_exactly_once(void **state)
{
	static const size_t lengths[] = { 1, 3, 8 };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
		size_t length = lengths[k];
		char text[64];
		struct plugin_choice c;

		snprintf(text, sizeof(text), "tokens:sequence_length=%zu",
			 length);
		c = choose(format_table, text);
		for (size_t n = 0; n < 40; n++) {
			struct bytes b = tokens(n, 2);
			struct dataset_part p;
			struct err err;
			size_t want = n ? (n - 1) / length : 0;

			assert_int_equal(scan_with(&format_tokens, &b,
						   c.options, &p, &err),
					 0);
			assert_int_equal(p.n, want);
			for (size_t i = 0; i < p.n; i++) {
				assert_int_equal(p.sample[i].offset,
						 2 * length * i);
				assert_int_equal(p.sample[i].size,
						 2 * (length + 1));
			}
			part_fini(&p);
			drop(&b);
		}
		plugin_choice_fini(&c);
	}
}

/* --- files with an index -------------------------------------------------- */

/* Of n sequences, and documents with these bounds, or each sequence one. */
static struct bytes index_with(const int32_t *lengths, size_t n, unsigned type,
			       unsigned each, const uint64_t *bounds,
			       size_t n_bounds)
{
	struct bytes b = { 0 };
	uint64_t at = 0;

	add(&b, "MMIDIDX\0", 9);
	add_le(&b, 1, 8);
	add_le(&b, type, 1);
	add_le(&b, n, 8);
	add_le(&b, n_bounds, 8);
	for (size_t i = 0; i < n; i++)
		add_le(&b, (uint64_t)lengths[i], 4);
	for (size_t i = 0; i < n; i++) {
		add_le(&b, at, 8);
		at += (uint64_t)lengths[i] * each;
	}
	for (size_t i = 0; i < n_bounds; i++)
		add_le(&b, bounds ? bounds[i] : i, 8);
	return b;
}

static struct bytes index_of(const int32_t *lengths, size_t n, unsigned type,
			     unsigned each)
{
	return index_with(lengths, n, type, each, NULL, n + 1);
}

static void put(int dirfd, const char *name, struct bytes *b)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, b->v, b->n), b->n);
	close(fd);
	drop(b);
}

struct folder {
	char path[64];
	int fd;
};

static struct folder folder_new(void)
{
	struct folder f = { .path = "/tmp/gpemu-tokens-XXXXXX" };

	assert_non_null(mkdtemp(f.path));
	f.fd = open(f.path, O_RDONLY | O_DIRECTORY);
	assert_true(f.fd >= 0);
	return f;
}

static void folder_remove(struct folder *f)
{
	unlinkat(f->fd, "t.bin", 0);
	unlinkat(f->fd, "t.idx", 0);
	close(f->fd);
	rmdir(f->path);
}

/* Open the folder; 0, or -errno with a text. */
static int list(const struct folder *f, const char *format, struct dataset *d,
		struct err *err)
{
	struct plugin_choice c = choose(format_table, format);
	struct format_request q = { .path = f->path,
				    .format = "tokens",
				    .options = c.options,
				    .index = FORMAT_INDEX_OFF };
	struct format_result how;
	int r;

	*err = (struct err){ 0 };
	r = format_open(&q, d, &how, err);
	format_result_fini(&how);
	plugin_choice_fini(&c);
	return r;
}

static void documents_of_varying_length(void **state)
{
	/* none, short, one window, that and a label, two and a piece, one
	 * without a label */
	static const int32_t lengths[] = { 0, 2, 4, 5, 11, 1 };
	static const struct {
		uint64_t at, n;
	} want[] = { { 0, 2 },	{ 2, 4 },  { 6, 5 },
		     { 11, 5 }, { 15, 5 }, { 19, 3 } };
	struct folder f = folder_new();
	struct bytes b = tokens(23, 4);
	struct bytes x = index_of(lengths, ARRAY_SIZE(lengths), 4, 4);
	struct dataset d;
	struct err err;

	(void)state;
	put(f.fd, "t.bin", &b);
	put(f.fd, "t.idx", &x);
	if (list(&f, "tokens:sequence_length=4,documents=on", &d, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(d.n, ARRAY_SIZE(want));
	for (size_t i = 0; i < d.n; i++) {
		assert_int_equal(d.offset[i], 4 * want[i].at);
		assert_int_equal(d.size[i], 4 * want[i].n);
	}
	assert_int_equal(d.token_bytes, 4);
	dataset_close(&d);
	/* packed, the index says how large a token is */
	assert_int_equal(list(&f, "tokens:sequence_length=4", &d, &err), 0);
	assert_int_equal(d.n, 5);
	assert_int_equal(d.size[0], 20);
	dataset_close(&d);
	unlinkat(f.fd, "t.idx", 0);
	assert_int_equal(list(&f, "tokens:documents=on", &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "documents need the index"));
	dataset_close(&d);
	folder_remove(&f);
}

/* Also over the end of what is read at once. */
static void a_document_is_the_sequences_between_its_bounds(void **state)
{
	enum { N = 9000 };
	static int32_t lengths[N];
	static const struct {
		size_t n, n_bounds, n_samples;
		uint64_t bounds[6];
		uint64_t tokens[4]; /* of each sample */
	} all[] = {
		{ 4, 3, 2, { 0, 2, 4 }, { 400, 400 } },
		{ 4, 2, 1, { 0, 4 }, { 800 } },
		{ 4, 6, 2, { 0, 0, 1, 1, 4, 4 }, { 200, 600 } },
		{ 4, 5, 4, { 0, 1, 2, 3, 4 }, { 200, 200, 200, 200 } },
		{ 5, 2, 1, { 0, 5 }, { 1000 } },
		/* 1 800 000 tokens: two windows and the rest */
		{ N, 4, 4, { 0, 1, 8998, N }, { 200, 1000001, 799400, 400 } },
	};
	struct folder f = folder_new();

	(void)state;
	for (size_t i = 0; i < N; i++)
		lengths[i] = 200;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct bytes b = tokens(200 * all[i].n, 1);
		struct bytes x = index_with(lengths, all[i].n, 1, 1,
					    all[i].bounds, all[i].n_bounds);
		struct dataset d;
		struct err err;

		put(f.fd, "t.bin", &b);
		put(f.fd, "t.idx", &x);
		if (list(&f, "tokens:documents=on,sequence_length=1000000", &d,
			 &err) < 0)
			fail_msg("%zu: %s", i, err.text);
		assert_int_equal(d.n, all[i].n_samples);
		for (size_t k = 0; k < d.n; k++)
			assert_int_equal(d.size[k], all[i].tokens[k]);
		dataset_close(&d);
	}
	folder_remove(&f);
}

static void damaged_documents_are_refused(void **state)
{
	static const int32_t lengths[] = { 3, 4, 5 };
	static const struct {
		size_t n;
		uint64_t bounds[4];
		const char *why;
	} bad[] = {
		{ 3, { 0, 5, 3 }, "its .idx: byte 78: a document that ends" },
		{ 4, { 0, 2, 1, 3 }, "its .idx: byte 86: a document that" },
		{ 4, { 0, UINT64_MAX, 2, 3 }, "its .idx: byte 78: a document" },
		{ 3, { 0, 5, 1 }, "its .idx: byte 86: the last document does" },
		{ 2,
		  { 0, 4 },
		  "its .idx: byte 78: the last document does not" },
		{ 1, { 0 }, "its .idx: byte 70: the last document does not" },
		{ 3, { 1, 2, 3 }, "its .idx: byte 70: the first document" },
		{ 0, { 0 }, "its .idx: byte 26: no bounds of documents" },
	};
	struct folder f = folder_new();
	struct bytes b = tokens(12, 2);
	struct bytes x;
	struct dataset d;
	struct err err;

	(void)state;
	put(f.fd, "t.bin", &b);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		x = index_with(lengths, 3, 8, 2, bad[i].bounds, bad[i].n);
		put(f.fd, "t.idx", &x);
		assert_int_equal(list(&f, "tokens:documents=on", &d, &err),
				 -EINVAL);
		if (!strstr(err.text, bad[i].why) || !strstr(err.text, "t.bin"))
			fail_msg("'%s', not '%s'", err.text, bad[i].why);
		dataset_close(&d);
	}
	/* 2^61 of them: 8 bytes each are 0 in 64 bits */
	x = index_of(lengths, 3, 8, 2);
	memset(x.v + 26, 0, 8);
	x.v[33] = 0x20;
	put(f.fd, "t.idx", &x);
	assert_int_equal(list(&f, "tokens", &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "byte 26: more documents than"));
	dataset_close(&d);
	/* the second sequence elsewhere, in the document of the first */
	x = index_with(lengths, 3, 8, 2, (const uint64_t[]){ 0, 2, 3 }, 3);
	x.v[46 + 8] = 14;
	put(f.fd, "t.idx", &x);
	assert_int_equal(list(&f, "tokens:documents=on", &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "sequence 1 of the index does "
					 "not follow the one before it"));
	dataset_close(&d);
	folder_remove(&f);
}

static void damaged_indexes_are_refused(void **state)
{
	static const int32_t lengths[] = { 3, 4 };
	static const struct {
		size_t at, keep;
		uint8_t v;
		const char *why;
	} bad[] = {
		{ 0, 0, 'X', "its .idx: byte 0: not an index of Megatron" },
		{ 9, 0, 2, "its .idx: byte 9: not version 1" },
		{ 17, 0, 6, "its .idx: byte 17: not an integer type" },
		{ 17, 0, 99, "its .idx: byte 17: not an integer type" },
		{ 25, 0, 1, "its .idx: byte 18: more sequences" },
		{ 0, 33, 'M', "its .idx: byte 0: truncated" },
		{ 0, 41, 'M', "its .idx: byte 18: more sequences" },
		{ 34, 0, 9, "sequence 0 of the index is not inside" },
		{ 50, 0, 99, "sequence 1 of the index is not inside" },
	};
	struct folder f = folder_new();
	struct bytes b = tokens(7, 2);

	(void)state;
	put(f.fd, "t.bin", &b);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct bytes x = index_of(lengths, 2, 8, 2);
		struct dataset d;
		struct err err;

		x.v[bad[i].at] = bad[i].v;
		if (bad[i].keep)
			x.n = bad[i].keep;
		put(f.fd, "t.idx", &x);
		assert_int_equal(list(&f,
				      "tokens:sequence_length=2,documents=on",
				      &d, &err),
				 -EINVAL);
		if (!strstr(err.text, bad[i].why))
			fail_msg("'%s', not '%s'", err.text, bad[i].why);
		dataset_close(&d);
	}
	folder_remove(&f);
}

/* An index that names the same tokens again would make samples without end, and
 * one that names more than there are is of another file, or this one is cut. */
static void a_file_and_its_index_agree(void **state)
{
	static const int32_t lengths[] = { 3, 4 }, again[] = { 3, 4, 0 };
	static const struct {
		const char *format;
		size_t tokens, cut;
		bool again;
		const char *why;
	} bad[] = {
		{ "tokens:documents=on", 7, 0, true,
		  "up to sequence 2 the index has more tokens than" },
		{ "tokens", 6, 0, false,
		  "sequence 1 of the index is not inside" },
		{ "tokens", 8, 1, false, "15 bytes are not a multiple" },
		{ "tokens:token_bytes=4", 7, 0, false,
		  "its .idx: tokens of 2 bytes, not token_bytes=4" },
	};
	struct folder f = folder_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct bytes b = tokens(bad[i].tokens, 2);
		struct bytes x = bad[i].again ? index_of(again, 3, 8, 2)
					      : index_of(lengths, 2, 8, 2);
		struct dataset d;
		struct err err;

		if (bad[i].again) { /* the third at the place of the second */
			x.v[34 + 8] = 4;
			x.v[34 + 12 + 16] = 6;
		}
		b.n -= bad[i].cut;
		put(f.fd, "t.bin", &b);
		put(f.fd, "t.idx", &x);
		assert_int_equal(list(&f, bad[i].format, &d, &err), -EINVAL);
		if (!strstr(err.text, bad[i].why))
			fail_msg("'%s', not '%s'", err.text, bad[i].why);
		dataset_close(&d);
	}
	folder_remove(&f);
}

static void files_have_tokens_of_one_size(void **state)
{
	static const int32_t lengths[] = { 8 };
	struct folder f = folder_new();
	struct bytes two = tokens(8, 2), four = tokens(8, 4);
	struct bytes x = index_of(lengths, 1, 4, 4);
	struct dataset d;
	struct err err;

	(void)state;
	put(f.fd, "s.bin", &two);
	put(f.fd, "t.bin", &four);
	put(f.fd, "t.idx", &x);
	assert_int_equal(list(&f, "tokens:sequence_length=2", &d, &err),
			 -EINVAL);
	assert_non_null(
		strstr(err.text, "t.bin: tokens of 4 bytes, in s.bin of 2"));
	dataset_close(&d);
	unlinkat(f.fd, "s.bin", 0);
	folder_remove(&f);
}

static void age(int dirfd, const char *name, time_t s)
{
	struct timespec t[2] = { { .tv_sec = s }, { .tv_sec = s } };

	assert_int_equal(utimensat(dirfd, name, t, 0), 0);
}

/* The .idx says what the samples are, so the kept index of samples depends on
 * it. */
static void a_changed_idx_is_read_again(void **state)
{
	static const int32_t one[] = { 8 }, two[] = { 4, 4 };
	struct folder f = folder_new();
	struct plugin_choice c = choose(format_table, "tokens:documents=on");
	struct format_request q = { .path = f.path,
				    .format = "tokens",
				    .options = c.options,
				    .index = FORMAT_INDEX_REBUILD };
	struct bytes b = tokens(8, 2), x = index_of(one, 1, 8, 2);
	struct bytes y = index_of(two, 2, 8, 2);
	struct format_result how;
	struct err err = { 0 };
	struct dataset d;

	(void)state;
	put(f.fd, "t.bin", &b);
	put(f.fd, "t.idx", &x);
	for (unsigned i = 0; i < 3; i++) {
		q.index = i ? FORMAT_INDEX_AUTO : FORMAT_INDEX_REBUILD;
		if (i == 2)
			put(f.fd, "t.idx", &y);
		age(f.fd, "t.bin", 1000);
		age(f.fd, "t.idx", i < 2 ? 1000 : 2000);
		if (format_open(&q, &d, &how, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(how.from_index, i == 1);
		assert_int_equal(d.n, i == 2 ? 2 : 1);
		assert_int_equal(d.token_bytes, 2);
		format_result_fini(&how);
		dataset_close(&d);
	}
	plugin_choice_fini(&c);
	unlinkat(f.fd, ".gpemu-index", 0);
	folder_remove(&f);
}

static void auto_never_chooses_them(void **state)
{
	const struct format_ops *shards;
	struct detect names = { 0 };

	(void)state;
	detect_name(&names, "t.bin");
	assert_int_equal(detect_format(&names, &shards, NULL), 0);
	assert_null(shards);
}

/* --- headers, widths, vocabularies ---------------------------------------- */

/* llm.c's: 256 int32, then n tokens. */
static struct bytes with_header(uint32_t magic, uint32_t version, uint32_t n,
				unsigned each)
{
	struct bytes b = { 0 };

	add_le(&b, magic, 4);
	add_le(&b, version, 4);
	add_le(&b, n, 4);
	add_zeros(&b, 500);
	add_zeros(&b, 512);
	for (uint32_t i = 0; i < n; i++)
		add_le(&b, each == 4 ? 128000 - i : i, each);
	return b;
}

static void a_header_is_skipped_and_has_the_width(void **state)
{
	static const struct {
		uint32_t magic, version, bytes;
	} all[] = { { 20240520, 1, 2 }, { 20240801, 7, 4 } };
	struct plugin_choice c =
		choose(format_table, "tokens:sequence_length=10");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct bytes b = with_header(all[i].magic, all[i].version, 91,
					     all[i].bytes);
		struct err err;
		struct dataset_part p;

		if (scan_with(&format_tokens, &b, c.options, &p, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(p.n, 9);
		assert_int_equal(p.token_bytes, all[i].bytes);
		assert_int_equal(p.token_from, TOKENS_BY_HEADER);
		for (size_t k = 0; k < p.n; k++) {
			assert_int_equal(p.sample[k].offset,
					 1024 + 10 * k * all[i].bytes);
			assert_int_equal(p.sample[k].size, 11 * all[i].bytes);
		}
		part_fini(&p);
		drop(&b);
	}
	plugin_choice_fini(&c);
}

static void what_is_no_stream_of_tokens_is_refused(void **state)
{
	static const struct {
		uint32_t magic, version;
		int cut;
		const char *format, *why;
	} all[] = {
		{ 20240520, 2, 0, "tokens",
		  "its header (llm.c, tokens of GPT-2) has version 2, not 1" },
		{ 20240520, 1, 1, "tokens",
		  "its header counts 9 tokens of 2 bytes, and 17 bytes "
		  "follow" },
		{ 20240520, 1, 2, "tokens", "9 tokens of 2 bytes, and 16 byt" },
		{ 20240520, 1, -2, "tokens", "9 tokens of 2 bytes, and 20 by" },
		{ 20240522, 1, 0, "tokens", "a file of llm.c with an evaluat" },
		{ 20240520, 1, 0, "tokens:token_bytes=4",
		  "tokens of 2 bytes, not token_bytes=4" },
		{ 20240520, 1, 0, "tokens:vocabulary=8",
		  "token 8 is 8, outside the vocabulary of 8" },
		{ 20240520, 1, 0, "tokens:vocabulary=65537",
		  "a vocabulary of 65537 does not fit tokens of 2 bytes" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct bytes b =
			with_header(all[i].magic, all[i].version, 9, 2);
		struct plugin_choice c = choose(format_table, all[i].format);
		struct err err;
		struct dataset_part p;

		if (all[i].cut < 0)
			add_zeros(&b, (size_t)-all[i].cut);
		else
			b.n -= (size_t)all[i].cut;
		assert_int_equal(scan_with(&format_tokens, &b, c.options, &p,
					   &err),
				 -EINVAL);
		if (!strstr(err.text, all[i].why))
			fail_msg("'%s', not '%s'", err.text, all[i].why);
		part_fini(&p);
		plugin_choice_fini(&c);
		drop(&b);
	}
}

/* Without header, index and option. */
static void four_bytes_are_not_read_as_two(void **state)
{
	struct bytes four = { 0 }, characters = { 0 };
	struct err err;
	struct dataset_part p;

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		add_le(&four, 1000 * i, 4);
		add_le(&characters, i % 65, 2);
	}
	assert_int_equal(scan_with(&format_tokens, &four, NULL, &p, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "look like four bytes each"));
	part_fini(&p);
	assert_int_equal(scan_with(&format_tokens, &characters, NULL, &p, &err),
			 0);
	part_fini(&p);
	drop(&four);
	drop(&characters);
}

static void shards_with_and_without_header_are_named(void **state)
{
	struct folder f = folder_new();
	struct bytes b = with_header(20240520, 1, 20, 2), bare = tokens(20, 2);
	struct dataset d;
	struct err err;

	(void)state;
	put(f.fd, "s.bin", &b);
	put(f.fd, "t.bin", &bare);
	assert_int_equal(list(&f, "tokens:sequence_length=2", &d, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "s.bin has a header before its "
					 "tokens, t.bin has none"));
	dataset_close(&d);
	unlinkat(f.fd, "s.bin", 0);
	folder_remove(&f);
}

static void nanogpts_meta_has_the_vocabulary(void **state)
{
	/* pickle.dumps({"vocab_size": N}) of protocols 4, 4, 2; of a text */
	static const struct {
		const char *text;
		size_t n;
		uint64_t vocabulary;
		int r;
	} all[] = {
#define PICKLE(s) s, sizeof(s) - 1
		{ PICKLE("\x80\x04}\x94\x8c\nvocab_size\x94KAs."), 65, 0 },
		{ PICKLE("\x80\x04}\x94\x8c\nvocab_size\x94K\x05s."), 5,
		  -EINVAL },
		{ PICKLE("\x80\x02}q\0X\n\0\0\0vocab_sizeq\1J\xc5\x87\1\0s."),
		  100293, -EINVAL },
		{ PICKLE("vocab_size"), 0, 0 },
		{ PICKLE("vocab_size\x94M\1"), 0, 0 },
	};
	struct folder f = folder_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct bytes b = tokens(20, 2), meta = { 0 };
		struct dataset d;
		struct err err;

		assert_int_equal(
			token_pickled_vocabulary((const uint8_t *)all[i].text,
						 all[i].n),
			all[i].vocabulary);
		add(&meta, all[i].text, all[i].n);
		put(f.fd, "t.bin", &b);
		put(f.fd, "meta.pkl", &meta);
		assert_int_equal(list(&f, "tokens:sequence_length=2", &d, &err),
				 all[i].r);
		assert_non_null(strstr(err.text, all[i].r ? "vocabulary" : ""));
		dataset_close(&d);
	}
	unlinkat(f.fd, "meta.pkl", 0);
	folder_remove(&f);
}

/* --- transforms ----------------------------------------------------------- */

static void rows_are_inputs_and_labels(void **state)
{
	static const unsigned each[] = { 1, 2, 4, 8 };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(each); k++) {
		_cleanup_free_ void *own =
			calloc(1, prep_tokens.plugin.state_size);
		struct prep_config config = { 0 };
		struct bytes b = tokens(5, each[k]);
		int64_t out[8];
		struct plugin_choice c;
		char text[64];
		struct err err = { 0 };

		snprintf(text, sizeof(text),
			 "tokens:sequence_length=4,token_bytes=%u", each[k]);
		c = choose(prep_table, text);
		config.options = c.options;
		assert_int_equal(prep_tokens.init(own, &config, &err), 0);
		assert_int_equal(prep_tokens.sample_bytes(own), sizeof(out));
		assert_int_equal(prep_tokens.run(own, b.v, b.n, NULL, out), 0);
		for (int64_t i = 0; i < 4; i++) {
			assert_int_equal(out[i], i + 1);
			assert_int_equal(out[4 + i], i + 2);
		}
		/* they are the whole of it, so others may leave them out */
		memset(out, 0, sizeof(out));
		assert_int_equal(prep_tokens.last->run(own, b.v, b.n, out), 0);
		for (int64_t i = 0; i < 4; i++)
			assert_int_equal(out[4 + i], i + 2);
		/* the dataset knows better than a default, and than a user */
		config.token_bytes = each[k] == 1 ? 2 : 1;
		assert_int_equal(prep_tokens.init(own, &config, &err), -EINVAL);
		config.token_bytes = each[k];
		assert_int_equal(prep_tokens.init(own, &config, &err), 0);
		/* a short document is padded */
		assert_int_equal(
			prep_tokens.run(own, b.v, 3 * each[k], NULL, out), 0);
		assert_int_equal(out[2], 3);
		assert_int_equal(out[3], 0);
		assert_int_equal(out[5], 3);
		assert_int_equal(out[6], -100);
		assert_int_equal(out[7], -100);
		/* neither a part of a token nor a longer window */
		assert_int_equal(prep_tokens.run(own, b.v, 6 * each[k], NULL,
						 out),
				 -EBADMSG);
		if (each[k] > 1)
			assert_int_equal(prep_tokens.run(own, b.v, b.n - 1,
							 NULL, out),
					 -EBADMSG);
		plugin_choice_fini(&c);
		drop(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_window_exactly_once),
		cmocka_unit_test(documents_of_varying_length),
		cmocka_unit_test(
			a_document_is_the_sequences_between_its_bounds),
		cmocka_unit_test(damaged_documents_are_refused),
		cmocka_unit_test(damaged_indexes_are_refused),
		cmocka_unit_test(a_file_and_its_index_agree),
		cmocka_unit_test(files_have_tokens_of_one_size),
		cmocka_unit_test(a_changed_idx_is_read_again),
		cmocka_unit_test(auto_never_chooses_them),
		cmocka_unit_test(a_header_is_skipped_and_has_the_width),
		cmocka_unit_test(what_is_no_stream_of_tokens_is_refused),
		cmocka_unit_test(four_bytes_are_not_read_as_two),
		cmocka_unit_test(shards_with_and_without_header_are_named),
		cmocka_unit_test(nanogpts_meta_has_the_vocabulary),
		cmocka_unit_test(rows_are_inputs_and_labels),
	};

	return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
