/* SPDX-License-Identifier: MIT */
/*
 * Traces of an inference service's KV cache, as Mooncake has published them: a
 * JSON object a line, with "timestamp" in ms and "hash_ids", the blocks of 512
 * tokens of a prompt, from its begin. An id names a block together with all
 * before it, so that equal ids are a common prefix. Source: Qin et al.,
 * Mooncake, FAST'25, and FAST25-release/README.md of its repository.
 *
 * A request of ours is one block. Its bytes are those of its keys and values;
 * the last block of a prompt counts as a whole one.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "cachesim/layout.h"
#include "common/util.h"

struct options {
	uint64_t token_bytes, block;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(token_bytes, CONF_SIZE, struct options), .min = 1,
	  .max = 1 << 30, .arg = "SIZE", .help = "keys and values of a token" },
	{ CONF_KEY(block, CONF_UINT, struct options), .min = 1, .max = 1 << 20,
	  .arg = "TOKENS", .help = "tokens of a hash id" },
	{ 0 },
};

/* LLaMA-3 70B, the paper's model: 80 layers, 8 heads of keys and values of 128
 * numbers each, 2 bytes a number. Its 1 TB of memory for 3 million tokens is
 * as much. */
static const struct options defaults = { .token_bytes = 80 * 8 * 128 * 2 * 2,
					 .block = 512 };

struct reader {
	struct sim_input *in;
	struct sim_trace *t;
	struct cache_index index;
	uint64_t line, block_bytes;
};

static int bad(const struct reader *k, int column, const char *what,
	       struct err *err)
{
	return err_set(err, -EINVAL, "%s:%" PRIu64 ":%d: %s", k->in->name,
		       k->line, column, what);
}

static int request(struct reader *k, const json_t *j, struct err *err)
{
	const json_t *ids = json_object_get(j, "hash_ids"), *id;
	const json_t *ms = json_object_get(j, "timestamp");
	size_t i;
	int r = 0;

	if (!json_is_array(ids))
		return bad(k, 1, "no list \"hash_ids\"", err);
	if (ms && !json_is_number(ms))
		return bad(k, 1, "\"timestamp\" must be a number of ms", err);
	if (ms)
		sim_read_time(&k->t->read, json_number_value(ms) / 1e3);
	k->t->read.records++;
	json_array_foreach (ids, i, id) {
		if (!json_is_integer(id) || json_integer_value(id) < 0)
			return bad(k, 1,
				   "hash_ids must be non-negative integers",
				   err);
		r = sim_trace_add_key(k->t, &k->index,
				      (uint64_t)json_integer_value(id),
				      k->block_bytes);
		if (r < 0)
			return r;
	}
	return 0;
}

static int lines(struct reader *k, struct err *err)
{
	const char *line, *end;
	int r;

	while ((r = sim_input_line(k->in, &line, &end)) > 0) {
		json_auto_t *j = NULL;
		json_error_t e;

		k->line++;
		while (line < end && (*line == ' ' || *line == '\r'))
			line++;
		if (line == end)
			continue;
		j = json_loadb(line, (size_t)(end - line),
			       JSON_REJECT_DUPLICATES, &e);
		r = j ? request(k, j, err) : bad(k, e.column, e.text, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int read_all(struct sim_input *in, const void *options,
		    struct sim_trace *t, struct err *err)
{
	const struct options *o = options;
	struct reader k = { .in = in,
			    .t = t,
			    .block_bytes = o->token_bytes * o->block };
	int r = cache_index_init(&k.index, sizeof(uint32_t), 0);

	if (r == 0)
		r = lines(&k, err);
	cache_index_fini(&k.index);
	return r < 0 ? r : sim_trace_finish(t);
}

static bool looks(const char *head, size_t n)
{
	return n > 2 && head[0] == '{' && memmem(head, n, "\"hash_ids\"", 10);
}

const struct layout_ops layout_mooncake = {
	.plugin = { .name = "mooncake",
		    .summary = "prompts of an inference service, as blocks "
			       "of its KV cache",
		    PLUGIN_OPTIONS(fields, defaults) },
	.looks = looks,
	.read = read_all,
};
