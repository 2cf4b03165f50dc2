/* SPDX-License-Identifier: MIT */
/*
 * A window of token ids becomes the two rows that a language model is trained
 * on: its inputs, and for each of them the next token as label, both in int64,
 * as torch.long has it and as nanoGPT's get_batch makes them. A document that
 * is shorter is padded: inputs with 0, labels with -100, which PyTorch's cross
 * entropy ignores.
 */
#include "loader/prep/prep.h"

#include <errno.h>
#include <string.h>

#include "common/conf/conf.h"
#include "loader/prep/wider.h"

enum { IGNORED = -100 };

struct options {
	uint64_t sequence_length, token_bytes;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(sequence_length, CONF_UINT, struct options), .min = 1,
	  .max = 1 << 24, .arg = "N", .help = "inputs of a sample" },
	{ CONF_KEY(token_bytes, CONF_UINT, struct options), .min = 0, .max = 8,
	  .arg = "0|1|2|4|8",
	  .help = "bytes of a token in the file; 0: as --format tokens has "
		  "it, or 2" },
	{ 0 },
};
/* as format_tokens.c */
static const struct options defaults = { .sequence_length = 1024 };
enum { TOKEN_BYTES = 2 }; /* nanoGPT's uint16 */

struct tokens {
	size_t length, token_bytes;
};

static int init_tokens(void *state, const struct prep_config *c,
		       struct err *err)
{
	const struct options *o = c->options ? c->options : &defaults;
	struct tokens *t = state;

	t->length = o->sequence_length;
	t->token_bytes = o->token_bytes	  ? o->token_bytes
			 : c->token_bytes ? c->token_bytes
					  : TOKEN_BYTES;
	if (c->token_bytes && t->token_bytes != c->token_bytes)
		return err_set(err, -EINVAL,
			       "token_bytes=%zu: the dataset's tokens have %u",
			       t->token_bytes, c->token_bytes);
	if (t->token_bytes & (t->token_bytes - 1))
		return err_set(err, -EINVAL,
			       "tokens have 1, 2, 4 or 8 bytes, not %zu",
			       t->token_bytes);
	return 0;
}

static size_t sample_bytes(const void *state)
{
	const struct tokens *t = state;

	return 2 * t->length * sizeof(int64_t);
}

/* Loads through memcpy: a window begins at any byte. */
#define WIDEN(type)                                                        \
	WIDER static void widen_##type(const char *restrict raw, size_t n, \
				       int64_t *restrict to)               \
	{                                                                  \
		for (size_t i = 0; i < n; i++) {                           \
			type v;                                            \
                                                                           \
			memcpy(&v, raw + i * sizeof(v), sizeof(v));        \
			to[i] = (int64_t)v;                                \
		}                                                          \
	}
WIDEN(uint8_t)
WIDEN(uint16_t)
WIDEN(uint32_t)
WIDEN(uint64_t)

static void widen(const struct tokens *t, const char *raw, size_t n,
		  int64_t *to)
{
	switch (t->token_bytes) {
	case 1: widen_uint8_t(raw, n, to); break;
	case 2: widen_uint16_t(raw, n, to); break;
	case 4: widen_uint32_t(raw, n, to); break;
	default: widen_uint64_t(raw, n, to);
	}
}

static int make_rows(const void *state, const void *raw, size_t n, void *out)
{
	const struct tokens *t = state;
	size_t tokens = n / t->token_bytes;
	int64_t *x = out, *y = x + t->length;
	size_t n_x = tokens < t->length ? tokens : t->length;
	size_t n_y = tokens ? tokens - 1 : 0;

	if (n % t->token_bytes || tokens > t->length + 1) {
		memset(out, 0, sample_bytes(state));
		return -EBADMSG;
	}
	widen(t, raw, n_x, x);
	memset(x + n_x, 0, (t->length - n_x) * sizeof(*x));
	if (n_y)
		widen(t, (const char *)raw + t->token_bytes, n_y, y);
	for (size_t i = n_y; i < t->length; i++)
		y[i] = IGNORED;
	return 0;
}

static int run_tokens(void *state, const void *raw, size_t n, struct rng *rng,
		      void *out)
{
	(void)rng;
	return make_rows(state, raw, n, out);
}

/* The ids of the window, as in the file. */
static bool window_bytes(const struct prep_config *c, size_t *ret)
{
	(void)c;
	*ret = 0;
	return true;
}

static const struct prep_last last = {
	.name = "rows of int64",
	.option = "prep",
	.value = "none",
	.bytes = window_bytes,
	.run = make_rows,
};

const struct prep_ops prep_tokens = {
	.plugin = { .name = "tokens",
		    .summary = "inputs and labels of a language model in "
			       "int64, from a window of token ids",
		    .state_size = sizeof(struct tokens),
		    PLUGIN_OPTIONS(fields, defaults) },
	.init = init_tokens,
	.sample_bytes = sample_bytes,
	.int64_rows = 2,
	.light = true,
	.run = run_tokens,
	.last = &last,
};
