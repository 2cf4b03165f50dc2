/* SPDX-License-Identifier: MIT */
/*
 * Token files of language models: NAME.bin, an array of token ids. nanoGPT
 * writes it alone, as uint16; llm.c and modded-nanoGPT put a header before it,
 * with the type; Megatron has NAME.idx beside it, with the type and the
 * documents.
 *
 * Packed, the default of both: the file is one stream of tokens, and a sample
 * is a window of it,
 *
 *	tokens	0 1 2 3 4 5 6 7 8 9 ...
 *	sample	|--0----|			sequence_length 3: three
 *		      |--1----|			inputs, and each one's
 *			    |--2----|		successor as its label
 *
 * so windows start sequence_length tokens apart and share one token, and the
 * tokens behind the last full window are left out. With `documents` no sample
 * crosses the end of a document: one that fits a window is a sample of its own
 * length, a longer one is divided like the stream. A document is one sequence
 * of the index or more, one behind the other.
 */
#include "loader/dataset/format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/util.h"
#include "loader/format/mmidx.h"
#include "loader/format/token_width.h"

struct options {
	uint64_t sequence_length;
	uint64_t token_bytes; /* 0: as the file says, 2 where nothing does */
	uint64_t vocabulary;  /* 0: as meta.pkl says, if there is one */
	bool documents;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(sequence_length, CONF_UINT, struct options), .min = 1,
	  .max = 1 << 24, .arg = "N",
	  .help = "tokens per sample, without the last label" },
	{ CONF_KEY(token_bytes, CONF_UINT, struct options), .min = 0, .max = 8,
	  .arg = "0|1|2|4|8",
	  .help = "bytes per token; 0: as the header or NAME.idx says, or 2" },
	{ CONF_KEY(vocabulary, CONF_UINT, struct options), .max = INT32_MAX,
	  .arg = "N",
	  .help = "size of the vocabulary; the start of each file is checked "
		  "for ids outside it; 0: vocab_size of nanoGPT's meta.pkl, or "
		  "unknown" },
	{ CONF_KEY(documents, CONF_BOOL, struct options), .arg = "on|off",
	  .help = "no sample crosses the end of a document; needs NAME.idx" },
	{ 0 },
};
/* Source: the block_size of nanoGPT's GPT-2, train.py */
static const struct options defaults = { .sequence_length = 1024 };

struct file {
	struct peek *p;
	struct dataset_part *ret;
	struct err *err;
	uint64_t length, token_bytes, vocabulary;
	uint64_t start; /* of the tokens: behind the header */
};

static int add_tokens(struct file *f, uint64_t offset, uint64_t tokens)
{
	int r = part_add(f->ret, NULL, 0, offset, tokens * f->token_bytes, 0);

	return r < 0 ? err_set(f->err, r, "%s", strerror(-r)) : 0;
}

/* Windows over `tokens` tokens at `offset`; of a document also a shorter one at
 * its end. */
static int divide(struct file *f, uint64_t offset, uint64_t tokens, bool rest)
{
	uint64_t at = 0;
	int r = 0;

	for (; r == 0 && tokens - at > f->length; at += f->length)
		r = add_tokens(f, offset + at * f->token_bytes, f->length + 1);
	/* what is left may be the label of the last window and no more; a
	 * document of one token has no label */
	if (r < 0 || !rest || tokens - at <= 1)
		return r;
	return add_tokens(f, offset + at * f->token_bytes, tokens - at);
}

/* Sequence `i`, or -EINVAL. All of them together, *total, have no more tokens
 * than the file: an index that names the same ones again and again would make
 * any number of samples. */
static int check_range(const struct file *f, uint64_t i, int32_t tokens,
		       uint64_t offset, uint64_t *total)
{
	uint64_t size = f->p->size;

	if (tokens < 0 || offset > size ||
	    (uint64_t)tokens > (size - offset) / f->token_bytes)
		return err_set(f->err, -EINVAL,
			       "sequence %" PRIu64
			       " of the index is not inside the file",
			       i);
	*total += (uint64_t)tokens;
	if (*total > size / f->token_bytes)
		return err_set(f->err, -EINVAL,
			       "up to sequence %" PRIu64
			       " the index has more tokens than the file",
			       i);
	return 0;
}

/* Sequences of an index in their order, MMIDX_MOST of them in memory. */
struct sequences {
	struct peek *index;
	const struct mmidx *x;
	uint64_t first, n, total; /* in memory; tokens of those before */
	int32_t tokens[MMIDX_MOST];
	int64_t offset[MMIDX_MOST];
};

static int get_sequence(struct file *f, struct sequences *s, uint64_t i,
			uint64_t *ret_offset, uint64_t *ret_tokens)
{
	int r = 0;

	/* before: the bounds of a file that changes while it is read */
	if (i < s->first || i >= s->first + s->n) {
		s->first = i;
		s->n = MIN(s->x->n - i, (uint64_t)MMIDX_MOST);
		r = mmidx_read(s->index, s->x, i, (size_t)s->n, s->tokens,
			       s->offset, f->err);
		if (r < 0) {
			err_prefix(f->err, "its .idx");
			return r;
		}
	}
	*ret_offset = (uint64_t)s->offset[i - s->first];
	r = check_range(f, i, s->tokens[i - s->first], *ret_offset, &s->total);
	*ret_tokens = r < 0 ? 0 : (uint64_t)s->tokens[i - s->first];
	return r;
}

/* The document of the sequences [i, end), which lie one behind the other. */
static int add_document(struct file *f, struct sequences *s, uint64_t i,
			uint64_t end)
{
	uint64_t start = 0, tokens = 0, at, n;
	int r;

	for (; i < end; i++) {
		r = get_sequence(f, s, i, &at, &n);
		if (r < 0)
			return r;
		if (!tokens)
			start = at;
		/* an empty one is nowhere */
		if (n && at != start + tokens * f->token_bytes)
			return err_set(f->err, -EINVAL,
				       "sequence %" PRIu64
				       " of the index does not follow the one "
				       "before it in the same document",
				       i);
		tokens += n;
	}
	return divide(f, start, tokens, true);
}

static int add_documents(struct file *f, struct peek *index,
			 const struct mmidx *x)
{
	_cleanup_free_ struct sequences *s = calloc(1, sizeof(*s));
	_cleanup_free_ uint64_t *bound = calloc(MMIDX_MOST + 1, sizeof(*bound));
	int r = s && bound ? 0 : -ENOMEM;

	if (r == 0) {
		s->index = index;
		s->x = x;
	}
	for (uint64_t i = 0; r == 0 && i < x->documents; i += MMIDX_MOST) {
		size_t n = (size_t)MIN(x->documents - i, (uint64_t)MMIDX_MOST);

		r = mmidx_bounds(index, x, i, n, bound, f->err);
		if (r < 0)
			err_prefix(f->err, "its .idx");
		for (size_t k = 0; r == 0 && k < n; k++)
			r = add_document(f, s, bound[k], bound[k + 1]);
	}
	return r;
}

static char *beside(const char *path)
{
	return util_text("%.*s.idx", (int)(strlen(path) - 4), path);
}

/* The whole file as one stream; with an index, up to its last sequence at
 * least. */
static int add_stream(struct file *f, struct peek *index, const struct mmidx *x)
{
	uint64_t size = f->p->size - f->start, total = 0;
	int32_t tokens;
	int64_t offset;
	int r = 0;

	if (size % f->token_bytes)
		return err_set(
			f->err, -EINVAL,
			"truncated: %" PRIu64
			" bytes are not a multiple of the token size, %" PRIu64,
			size, f->token_bytes);
	if (x && x->n)
		r = mmidx_read(index, x, x->n - 1, 1, &tokens, &offset, f->err);
	if (r == 0 && x && x->n)
		r = check_range(f, x->n - 1, tokens, (uint64_t)offset, &total);
	return r < 0 ? r : divide(f, f->start, size / f->token_bytes, false);
}

/* NAME.idx of NAME.bin; -ENOENT: there is none. */
static int open_index(const struct peek *p, int *ret, struct stat *st)
{
	size_t n = p->path ? strlen(p->path) : 0;
	_cleanup_free_ char *path = NULL;

	if (n < 4)
		return -ENOENT;
	path = beside(p->path);
	if (!path)
		return -ENOMEM;
	*ret = openat(p->dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*ret < 0 || fstat(*ret, st) < 0)
		return -errno;
	return S_ISREG(st->st_mode) ? 0 : -EINVAL;
}

/* token_bytes=N against what the file says. */
static int agree(const struct file *f, const struct options *o)
{
	return o->token_bytes && o->token_bytes != f->token_bytes
		       ? err_set(f->err, -EINVAL,
				 "tokens of %" PRIu64
				 " bytes, not token_bytes=%" PRIu64,
				 f->token_bytes, o->token_bytes)
		       : 0;
}

static int by_index(struct file *f, const struct options *o, int fd,
		    uint64_t size)
{
	struct mmidx x = { 0 };
	struct peek index;
	int r = peek_init(&index, fd, size);

	if (r == 0)
		r = mmidx_parse(&index, &x, f->err);
	f->token_bytes = x.token_bytes;
	if (r == 0)
		r = agree(f, o);
	if (r < 0)
		err_prefix(f->err, "its .idx");
	f->ret->token_from = TOKENS_BY_INDEX;
	if (r == 0)
		r = token_check(f->p, 0, x.token_bytes, f->vocabulary, false,
				f->err);
	if (r == 0)
		r = o->documents ? add_documents(f, &index, &x)
				 : add_stream(f, &index, &x);
	peek_fini(&index);
	return r;
}

static int without_index(struct file *f, const struct options *o)
{
	uint32_t bytes = o->token_bytes ? (uint32_t)o->token_bytes
					: 2; /* nanoGPT's uint16 */
	int r;

	if (o->documents)
		return err_set(f->err, -EINVAL,
			       "documents need the index of Megatron: no "
			       ".idx of that name");
	f->ret->token_from = o->token_bytes ? TOKENS_BY_OPTION
					    : TOKENS_BY_DEFAULT;
	r = token_header(f->p, &bytes, f->err);
	f->token_bytes = bytes;
	if (r > 0) {
		f->ret->token_from = TOKENS_BY_HEADER;
		f->start = TOKEN_HEADER;
		r = agree(f, o);
	}
	if (r == 0)
		r = token_check(f->p, f->start, bytes, f->vocabulary,
				f->ret->token_from == TOKENS_BY_DEFAULT,
				f->err);
	return r < 0 ? r : add_stream(f, NULL, NULL);
}

/* What the meta.pkl of nanoGPT's character-level datasets says, in the folder
 * of the file. 0: there is none, or it says nothing. */
static uint64_t vocabulary_beside(const struct peek *p)
{
	const char *slash = p->path ? strrchr(p->path, '/') : NULL;
	_cleanup_free_ uint8_t *bytes = malloc(PEEK_MOST);
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	ssize_t n = 0;

	if (!p->path || !bytes ||
	    asprintf(&path, "%.*smeta.pkl",
		     slash ? (int)(slash + 1 - p->path) : 0, p->path) < 0)
		return 0;
	fd = openat(p->dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		n = pread(fd, bytes, PEEK_MOST, 0);
	return n > 0 ? token_pickled_vocabulary(bytes, (size_t)n) : 0;
}

static int scan(struct peek *p, const void *options, struct dataset_part *ret,
		struct err *err)
{
	const struct options *o = options ? options : &defaults;
	struct file f = { .p = p,
			  .ret = ret,
			  .err = err,
			  .length = o->sequence_length,
			  .vocabulary = o->vocabulary ? o->vocabulary
						      : vocabulary_beside(p) };
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (o->token_bytes & (o->token_bytes - 1))
		return err_set(err, -EINVAL,
			       "tokens have 1, 2, 4 or 8 bytes, "
			       "not %u",
			       (unsigned)o->token_bytes);
	r = open_index(p, &fd, &st);
	if (r < 0 && r != -ENOENT)
		return err_set(err, r, "its .idx: %s", strerror(-r));
	r = r == 0 ? by_index(&f, o, fd, (uint64_t)st.st_size)
		   : without_index(&f, o);
	ret->token_bytes = (uint32_t)f.token_bytes;
	return r;
}

static bool named(const char *name)
{
	return util_ends_in(name, ".bin");
}

const struct format_ops format_tokens = {
	.plugin = { .name = "tokens",
		    .summary = "token ids of language models (.bin of nanoGPT, "
			       "llm.c and Megatron): a window is a sample",
		    PLUGIN_OPTIONS(fields, defaults) },
	.named = named,
	.explicit = true, /* many files are called .bin */
	.beside = beside,
	.scan = scan,
};
