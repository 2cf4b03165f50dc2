/* SPDX-License-Identifier: MIT */
/*
 * WebDataset's tar shards. Consecutive members with the same name up to the
 * first dot of their last component are one sample:
 *
 *	dog/0001.jpg	the bytes of the sample, as --payload chooses
 *	dog/0001.cls	its label, in decimal
 *	dog/0001.json	ignored
 *
 * Names and extensions are split as WebDataset does it.
 *
 * What WebDataset skips, or would hand out without data, is no sample either,
 * and is noted: links, names without key or extension, samples of other members
 * than --payload names. Its own members, such as __index__, are skipped.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/err.h"
#include "loader/dataset/format.h"
#include "common/conf/conf.h"
#include "common/util.h"
#include "loader/dataset/peek.h"
#include "loader/format/payload.h"

/*
 * --- archives -------------------------------------------------------------
 *
 * The members of a tar file, as Python's tarfile reads them.
 *
 * v7, ustar, pax (path and size), GNU long names and base-256 sizes. Sparse
 * members are refused. A block of zeros, or the end of the file between two
 * members, ends the file.
 */

enum { TAR_BLOCK = 512 };

struct tar_reader {
	struct peek *p;
	struct err *err;
	uint64_t at; /* of the next header */
};

struct tar_member {
	char *name; /* owned by the caller of tar_next */
	size_t name_n;
	uint64_t offset, size;
	bool is_file, is_folder; /* neither: a link, a device */
};

/* Offsets in a header. Source: POSIX pax(1), ustar Interchange Format */
enum {
	NAME = 0,
	NAME_BYTES = 100,
	SIZE = 124,
	SIZE_BYTES = 12,
	SUM = 148,
	SUM_BYTES = 8,
	TYPE = 156,
	MAGIC = 257,
	PREFIX = 345,
	PREFIX_BYTES = 155,
};

/* From the extended headers before a member's header. */
struct extended {
	char *name; /* owned; NULL: use the header's */
	size_t name_n;
	uint64_t size;
	bool has_size;
};

/* Report an error of what was read: -EINVAL; of peek_get or peek_copy. */
static int tar_bad(struct tar_reader *t, const char *what)
{
	return err_set(t->err, -EINVAL, "byte %" PRIu64 ": %s", t->at, what);
}

static int tar_failed(struct tar_reader *t, int r)
{
	if (r == -ENODATA)
		return tar_bad(t, "truncated: the file ends inside a member");
	return err_set(t->err, r, "byte %" PRIu64 ": %s", t->at, strerror(-r));
}

static int tar_no_memory(struct tar_reader *t)
{
	return err_set(t->err, -ENOMEM, "out of memory");
}

static char *copy(const void *v, size_t n)
{
	char *s = malloc(n + 1);

	if (!s)
		return NULL;
	memcpy(s, v, n);
	s[n] = 0;
	return s;
}

/* --- one header --------------------------------------------------------- */

/* An octal number padded with blanks, or GNU's base 256. */
static int number(const uint8_t *v, size_t n, uint64_t *ret)
{
	size_t i = 0;

	*ret = 0;
	if (v[0] & 0x80) {
		/* 0xff: negative */
		if (v[0] != 0x80)
			return -EINVAL;
		for (i = 1; i < n; i++) {
			if (*ret >> 55)
				return -EINVAL;
			*ret = *ret << 8 | v[i];
		}
		return 0;
	}
	while (i < n && v[i] == ' ')
		i++;
	for (; i < n && v[i] >= '0' && v[i] <= '7'; i++)
		*ret = *ret << 3 | (uint64_t)(v[i] - '0');
	for (; i < n; i++)
		if (v[i] && v[i] != ' ')
			return -EINVAL;
	return 0;
}

static bool sum_is_right(const uint8_t *h)
{
	uint64_t said;
	uint32_t sum = 8 * ' ', old = 8 * ' ';

	if (number(h + SUM, SUM_BYTES, &said) < 0)
		return false;
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		if (i >= SUM && i < SUM + SUM_BYTES)
			continue;
		sum += h[i];
		/* some old writers summed signed characters */
		old += (uint32_t)(int8_t)h[i];
	}
	return said == sum || said == old;
}

static bool is_zero(const uint8_t *h)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (h[i])
			return false;
	return true;
}

static int header_name(const uint8_t *h, struct tar_member *m)
{
	size_t n = strnlen((const char *)h + NAME, NAME_BYTES), prefix = 0;

	/* "ustar" and a blank is GNU's; its prefix field has another use */
	if (!memcmp(h + MAGIC, "ustar", 6))
		prefix = strnlen((const char *)h + PREFIX, PREFIX_BYTES);
	m->name = malloc(prefix + n + 2);
	if (!m->name)
		return -ENOMEM;
	memcpy(m->name, h + PREFIX, prefix);
	if (prefix)
		m->name[prefix++] = '/';
	memcpy(m->name + prefix, h + NAME, n);
	m->name_n = prefix + n;
	m->name[m->name_n] = 0;
	return 0;
}

/* --- extended headers --------------------------------------------------- */

/* A number in decimal, of `n` digits and nothing else; -EINVAL. */
static int tar_decimal(const char *v, size_t n, uint64_t *ret)
{
	*ret = 0;
	if (!n)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)v[i]) || *ret > INT64_MAX / 10 - 9)
			return -EINVAL;
		*ret = *ret * 10 + (uint64_t)(v[i] - '0');
	}
	return 0;
}

static bool is_key(const char *key, size_t n, const char *want)
{
	return n == strlen(want) && !memcmp(key, want, n);
}

static int set_name(struct tar_reader *t, struct extended *x, const char *v,
		    size_t n)
{
	if (memchr(v, 0, n))
		return tar_bad(t, "a NUL in a name");
	free(x->name);
	x->name = copy(v, n);
	x->name_n = n;
	return x->name ? 0 : tar_no_memory(t);
}

/* "key=value" of a pax header. */
static int pax_record(struct tar_reader *t, struct extended *x, bool global,
		      const char *v, size_t n)
{
	const char *equals = memchr(v, '=', n);
	size_t key_n = equals ? (size_t)(equals - v) : 0;
	const char *value = equals ? equals + 1 : NULL;
	bool path, size;

	if (!equals)
		return tar_bad(t, "a damaged extended header");
	if (key_n >= 11 && !memcmp(v, "GNU.sparse.", 11))
		return tar_bad(t, "a sparse member: not supported");
	path = is_key(v, key_n, "path");
	size = is_key(v, key_n, "size");
	if (global && (path || size))
		return tar_bad(t, "one path or size for all: not supported");
	n -= key_n + 1;
	if (path)
		return set_name(t, x, value, n);
	if (size && tar_decimal(value, n, &x->size) < 0)
		return tar_bad(t, "a damaged size in an extended header");
	x->has_size |= size;
	return 0;
}

/* Records "LENGTH key=value\n"; LENGTH is that of the whole record. */
static int pax(struct tar_reader *t, struct extended *x, bool global,
	       const char *v, size_t n)
{
	int r = 0;

	while (r == 0 && n && *v) {
		const char *blank = memchr(v, ' ', MIN(n, 20));
		uint64_t length = 0;
		size_t digits = blank ? (size_t)(blank - v) : 0;

		if (!blank || tar_decimal(v, digits, &length) < 0 ||
		    length > n || length < digits + 2 || v[length - 1] != '\n')
			return tar_bad(t, "a damaged extended header");
		r = pax_record(t, x, global, blank + 1,
			       (size_t)length - digits - 2);
		v += length;
		n -= (size_t)length;
	}
	return r;
}

static int extend(struct tar_reader *t, struct extended *x,
		  const struct tar_member *m, char type)
{
	_cleanup_free_ char *v = NULL;
	int r;

	if (type == 'K')
		return 0;
	if (m->size > PEEK_MOST)
		return tar_bad(t, "an extended header of more than 64 KiB");
	v = malloc(m->size + 1);
	if (!v)
		return tar_no_memory(t);
	r = peek_copy(t->p, m->offset, m->size, v);
	if (r < 0)
		return tar_failed(t, r);
	if (type == 'L')
		return set_name(t, x, v, strnlen(v, m->size));
	return pax(t, x, type == 'g', v, m->size);
}

/* --- members ------------------------------------------------------------ */

/* Types that have no data, whatever their size field holds. */
static bool has_data(char type)
{
	return !type || !strchr("123456", type);
}

/* Build a member from a header and its extended headers; `x` is used up. */
static int member_of(struct tar_reader *t, const uint8_t *h, struct extended *x,
		     struct tar_member *m)
{
	char type = (char)h[TYPE];

	if (number(h + SIZE, SIZE_BYTES, &m->size) < 0)
		return tar_bad(t, "a damaged size");
	if (x->has_size)
		m->size = x->size;
	if (!has_data(type))
		m->size = 0;
	m->offset = t->at + TAR_BLOCK;
	if (m->size > t->p->size - m->offset)
		return err_set(t->err, -EINVAL,
			       "byte %" PRIu64
			       ": truncated: a member of %" PRIu64
			       " bytes, and the file ends at %" PRIu64,
			       t->at, m->size, t->p->size);
	if (x->name) {
		m->name_n = x->name_n;
		m->name = TAKE_PTR(x->name);
	} else if (header_name(h, m) < 0) {
		return tar_no_memory(t);
	}
	m->is_file = type == '0' || type == '7' || !type;
	m->is_folder = type == '5';
	/* v7 marks folders like this */
	if (!type && m->name_n && m->name[m->name_n - 1] == '/') {
		m->is_file = false;
		m->is_folder = true;
	}
	return 0;
}

/* The next header of any type. 1: end of the shard. */
static int header(struct tar_reader *t, uint8_t h[TAR_BLOCK])
{
	int r;

	if (t->at >= t->p->size)
		return 1;
	r = peek_copy(t->p, t->at, TAR_BLOCK, h);
	if (r < 0)
		return tar_failed(t, r);
	if (is_zero(h))
		return 1;
	return sum_is_right(h) ? 0
			       : tar_bad(t, "not the header of a tar member");
}

/*
 * The next member. 1: none left; -EINVAL: damaged, truncated or not supported,
 * -ENOMEM, errors of read(2); with a text that begins with the position.
 */
static int tar_next(struct tar_reader *t, struct tar_member *m)
{
	struct extended x = { 0 };
	uint8_t h[TAR_BLOCK];
	bool again = true;
	int r = 0;

	while (r == 0 && again) {
		char type;

		*m = (struct tar_member){ 0 };
		r = header(t, h);
		if (r)
			break;
		type = (char)h[TYPE];
		again = type && strchr("xXgLK", type);
		if (type == 'S')
			r = tar_bad(t, "a sparse member: not supported");
		if (r == 0)
			r = member_of(t, h,
				      again ? &(struct extended){ 0 } : &x, m);
		if (r == 0 && again)
			r = extend(t, &x, m, type);
		if (r == 0)
			t->at = m->offset + (m->size + TAR_BLOCK - 1) /
						    TAR_BLOCK * TAR_BLOCK;
		if (r < 0 || again)
			free(m->name);
	}
	if (r == 1 && (x.name || x.has_size))
		r = tar_bad(t,
			    "truncated: an extended header without a member");
	free(x.name);
	return r;
}

/* Does a file that begins with this block begin with a member? */
static bool tar_looks(const uint8_t block[TAR_BLOCK])
{
	return !is_zero(block) && sum_is_right(block);
}

/* The sample that the current members belong to. */
struct sample {
	char *key; /* owned; NULL: none */
	size_t key_n;
	char *name; /* owned: of the payload; NULL: none yet */
	size_t name_n;
	int rank;
	uint64_t offset, size;
	bool has_label;
	uint32_t label;
	struct notes apart; /* members that are data by their last dot only */
};

static const struct note_kind no_payload = {
	"samples_without_payload",
	"samples skipped, without a member of --format tar:payload=EXT,...",
};
static const struct note_kind dotted = {
	"members_with_dots",
	"members that are not the data of a sample, as a key ends at the "
	"first dot of a name",
};
static const struct note_kind skipped = {
	"members_skipped",
	"members skipped: links, or names without key or extension",
};

struct options {
	char *payload;
};

/* "jpg,seg.png": no leading dots, no empty names. */
static int check_payload(const void *object, struct err *err)
{
	const char *list = *(char *const *)object;

	for (const char *at = list;; at++) {
		if (!*at || *at == ',' || *at == '.')
			return err_set(err, -EINVAL,
				       "'%s' is not a list of extensions such "
				       "as jpg,png",
				       list);
		at += strcspn(at, ",");
		if (!*at)
			return 0;
	}
}

static const struct conf_field fields[] = {
	{ CONF_KEY(payload, CONF_STRING, struct options),
	  .check = check_payload, .arg = "EXT,...",
	  .help = "extensions of the data: the first that a sample has is "
		  "read" },
	{ 0 },
};

/* Images, then other contents of shards. Source: the extensions that
 * WebDataset's autodecode knows, the likeliest member of a sample first */
static const struct options defaults = {
	.payload = (char *)"jpg,jpeg,png,ppm,webp,npy,npz,bin,raw,pyd,pth,mp4,"
			   "avi,mov,flac,wav,mp3,txt",
};

struct tar {
	struct tar_reader in;
	const struct options *o;
	struct dataset_part *ret;
	struct sample sample;
	/* an extension that is not in the list, for the message */
	char *other;
	char *lone_label; /* key of a label without payload; NULL: none */
	/* captions, where no option says that they are data: samples that have
	 * nothing else, and the rank of "txt"; -1: an option says */
	size_t n_captions;
	int caption;
};

/* --- samples ------------------------------------------------------------ */

static void forget(struct sample *s)
{
	free(s->key);
	free(s->name);
	notes_fini(&s->apart);
	*s = (struct sample){ 0 };
}

/* A sample of which no member is to be read. */
static int leave_out(struct tar *t)
{
	struct sample *s = &t->sample;
	int r = notes_add(&t->ret->notes, &no_payload, 1, s->key);

	if (s->has_label && !t->lone_label)
		t->lone_label = TAKE_PTR(s->key);
	return r < 0 ? r : notes_merge(&t->ret->notes, &s->apart);
}

static int end_sample(struct tar *t)
{
	struct sample *s = &t->sample;
	int r = 0;

	if (s->name) {
		t->n_captions += s->rank == t->caption;
		r = part_add(t->ret, s->name, s->name_n, s->offset, s->size,
			     s->has_label ? s->label : PART_BY_FOLDER);
	} else if (s->key) {
		r = leave_out(t);
	}
	forget(s);
	if (r == -E2BIG)
		return tar_bad(&t->in, "more than 2^32 - 1 samples");
	return r < 0 ? tar_no_memory(&t->in) : 0;
}

/* Decimal, padded with blanks. */
static int read_label(struct tar *t, const struct tar_member *m)
{
	struct sample *s = &t->sample;
	const uint8_t *v;
	uint64_t label;
	size_t from = 0, to = m->size;
	int r;

	if (m->size > 32)
		return tar_bad(&t->in, "a .cls that is not a class number");
	r = peek_get(t->in.p, m->offset, m->size, &v);
	if (r < 0)
		return tar_failed(&t->in, r);
	while (from < to && isspace(v[from]))
		from++;
	while (to > from && isspace(v[to - 1]))
		to--;
	if (tar_decimal((const char *)v + from, to - from, &label) < 0 ||
	    label >= PART_BY_FOLDER)
		return tar_bad(&t->in, "a .cls that is not a class number");
	if (s->has_label)
		return tar_bad(&t->in, "a second .cls in one sample");
	s->has_label = true;
	s->label = (uint32_t)label;
	return 0;
}

static int take_payload(struct tar *t, struct tar_member *m, int rank)
{
	struct sample *s = &t->sample;

	if (s->name && rank == s->rank)
		return tar_bad(&t->in, "two members of one name in one sample");
	if (s->name && rank > s->rank)
		return 0;
	free(s->name);
	s->name_n = m->name_n;
	s->name = TAKE_PTR(m->name);
	s->rank = rank;
	s->offset = m->offset;
	s->size = m->size;
	return 0;
}

/* Split "a/b.c.d" into "a/b" and "c.d"; false: no extension, or no name. */
static bool take_apart(const struct tar_member *m, size_t *ret_key,
		       const char **ret_ext)
{
	const char *slash = strrchr(m->name, '/');
	const char *base = slash ? slash + 1 : m->name;
	const char *dot = strchr(base, '.');

	if (!dot || dot == base)
		return false;
	*ret_key = (size_t)(dot - m->name);
	*ret_ext = dot + 1;
	return true;
}

/* WebDataset's own members: "__NAME__", alone or as a folder. */
static bool is_meta(const char *name)
{
	size_t n = strcspn(name, "/");

	return n >= 4 && !memcmp(name, "__", 2) &&
	       !memcmp(name + n - 2, "__", 2);
}

static void strip_dot_slash(struct tar_member *m)
{
	while (m->name_n > 2 && m->name[0] == '.' && m->name[1] == '/') {
		memmove(m->name, m->name + 2, m->name_n - 1);
		m->name_n -= 2;
	}
}

static int take_member(struct tar *t, struct tar_member *m)
{
	struct sample *s = &t->sample;
	const char *ext, *dot;
	size_t key_n;
	int rank, r;

	strip_dot_slash(m);
	if (m->is_folder || is_meta(m->name))
		return 0;
	if (!m->is_file || !take_apart(m, &key_n, &ext))
		return notes_add(&t->ret->notes, &skipped, 1, m->name) < 0
			       ? tar_no_memory(&t->in)
			       : 0;
	if (!s->key || s->key_n != key_n || memcmp(s->key, m->name, key_n)) {
		r = end_sample(t);
		if (r < 0)
			return r;
		s->key = strndup(m->name, key_n);
		s->key_n = key_n;
		if (!s->key)
			return tar_no_memory(&t->in);
	}
	if (!strcasecmp(ext, "cls"))
		return read_label(t, m);
	rank = payload_rank(t->o->payload, ext, strlen(ext));
	if (rank >= 0)
		return take_payload(t, m, rank);
	if (!t->other)
		t->other = strdup(m->name);
	dot = strrchr(ext, '.');
	if (dot && payload_rank(t->o->payload, dot + 1, strlen(dot + 1)) >= 0 &&
	    notes_add(&s->apart, &dotted, 1, m->name) < 0)
		return tar_no_memory(&t->in);
	return 0;
}

/* --- the whole shard ------------------------------------------------------ */

/* Leave out samples that are a caption and nothing else. */
static int drop_captions(struct tar *t)
{
	struct dataset_part *p = t->ret;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		const char *name = p->names + p->sample[i].name;

		if (strcasecmp(strrchr(name, '.'), ".txt"))
			p->sample[n++] = p->sample[i];
		else if (notes_add(&p->notes, &no_payload, 1, name) < 0)
			return tar_no_memory(&t->in);
	}
	p->n = n;
	return 0;
}

static bool has_labels(const struct dataset_part *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->sample[i].label != PART_BY_FOLDER)
			return true;
	return false;
}

static int end_shard(struct tar *t)
{
	struct dataset_part *p = t->ret;
	int r = end_sample(t);

	if (r == 0 && t->n_captions < p->n && t->n_captions)
		r = drop_captions(t);
	if (r < 0)
		return r;
	if (!p->n && t->other)
		return err_set(t->in.err, -EINVAL,
			       "no member has an extension of payload=%s; one "
			       "is called %s",
			       t->o->payload, t->other);
	if (p->n && t->lone_label && !has_labels(p))
		return err_set(t->in.err, -EINVAL,
			       "labels (.cls) are not next to their samples, "
			       "such as %s.cls: members of one key must be "
			       "consecutive (tar --sort=name)",
			       t->lone_label);
	return part_note_labels(p, t->in.p->path) < 0 ? tar_no_memory(&t->in)
						      : 0;
}

static int scan_members(struct tar *t)
{
	int r = t->in.p->size ? 0
			      : tar_bad(&t->in, "not a tar file: it is empty");

	while (r == 0) {
		struct tar_member m;

		r = tar_next(&t->in, &m);
		if (r == 0) {
			r = take_member(t, &m);
			free(m.name);
		}
	}
	return r == 1 ? end_shard(t) : r;
}

static int scan(struct peek *p, const void *options, struct dataset_part *ret,
		struct err *err)
{
	const struct options *o = options ? options : &defaults;
	struct tar t = { .in = { p, err, 0 }, .o = o, .ret = ret };
	int r;

	t.caption = strcmp(o->payload, defaults.payload)
			    ? -1
			    : payload_rank(o->payload, "txt", 3);
	r = scan_members(&t);
	forget(&t.sample);
	free(t.other);
	free(t.lone_label);
	return r;
}

static bool named(const char *name)
{
	return util_ends_in(name, ".tar");
}

static bool looks(const uint8_t *head, size_t n)
{
	return n == TAR_BLOCK && tar_looks(head);
}

const struct format_ops format_tar = {
	.plugin = { .name = "tar",
		    .summary = "WebDataset shards: members of one key are a "
			       "sample, .cls is its label",
		    PLUGIN_OPTIONS(fields, defaults) },
	.named = named,
	.looks = looks,
	.scan = scan,
};
