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
#include "loader/dataset/format.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/conf/conf.h"
#include "common/util.h"
#include "loader/format/payload.h"
#include "loader/format/tar.h"

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
	{ "payload", CONF_STRING, offsetof(struct options, payload),
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
	struct part *ret;
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
	struct part *p = t->ret;
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

static bool has_labels(const struct part *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->sample[i].label != PART_BY_FOLDER)
			return true;
	return false;
}

static int end_shard(struct tar *t)
{
	struct part *p = t->ret;
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

static int scan(struct peek *p, const void *options, struct part *ret,
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
		    .options = fields,
		    .defaults = &defaults,
		    .options_size = sizeof(defaults) },
	.named = named,
	.looks = looks,
	.scan = scan,
};
