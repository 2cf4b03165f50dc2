/* SPDX-License-Identifier: MIT */
#include "loader/options/train_data.h"

#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "loader/options/train_node.h"

static int resolve_index(const char *word, enum format_index *ret,
			 struct err *err)
{
	static const char *const words[] = {
		[FORMAT_INDEX_AUTO] = "auto",
		[FORMAT_INDEX_OFF] = "off",
		[FORMAT_INDEX_REBUILD] = "rebuild",
	};

	return WORD_INTO(words, "--index", word, ret, err);
}

int train_bad_parse(const char *text, struct train_bad *ret, struct err *err)
{
	static const char *const words[] = {
		[SIFT_DROP] = "drop",
		[SIFT_REPLACE] = "replace",
		[SIFT_ZEROS] = "zeros",
	};
	size_t n = strcspn(text, ",");
	bool percent = n && text[n - 1] == '%';
	char number[32] = "";
	double value = -1;
	int sift = SIFT_DROP;

	if (n - percent < sizeof(number))
		memcpy(number, text, n - percent);
	if (text[n])
		sift = WORD_FIND(words, "way", text + n + 1, err);
	if (sift < 0)
		return sift;
	if (units_parse_double(number, &value) < 0 || !(value >= 0) ||
	    value > (percent ? 100 : UINT32_MAX) ||
	    (!percent && value != (double)(uint32_t)value))
		return err_set(
			err, -EINVAL,
			"'%s' is not a number of samples, or 0%% to 100%% of "
			"an epoch's, and then ,drop ,replace or ,zeros",
			text);
	*ret = (struct train_bad){ .percent = percent ? value : -1,
				   .n = percent ? 0 : (uint64_t)value,
				   .sift = (enum sift)sift };
	return 0;
}

int train_data_resolve(const struct train_options *o, struct train_choice *ret,
		       struct err *err)
{
	int r = resolve_index(o->index, &ret->index, err);

	return r < 0 ? r : train_bad_parse(o->bad_samples, &ret->bad, err);
}

int train_data_open(const struct train_options *o, const struct train_choice *c,
		    struct dataset *ret, struct format_result *ret_how,
		    struct err *err)
{
	const struct plugin_choice *format = &c->format_choice;
	const struct prep_ops *prep = c->prep;
	struct format_request q = {
		.path = o->data,
		.format = format->plugin ? format->plugin->name : "auto",
		.options = format->options,
		/* transforms that really decode an image */
		.images = prep->sample_bytes && !prep->int64_rows &&
			  !prep->cost,
		.index = c->index,
		.threads = (unsigned)o->scan_threads,
	};

	return format_open(&q, ret, ret_how, err);
}

struct schedule_config train_data_schedule(const struct train_options *o,
					   const struct train_choice *c,
					   const struct dataset *d)
{
	struct schedule_config ret = {
		.order = c->order,
		.in = { .seed = o->common.seed,
			.n = d->n,
			.size = d->size,
			.label = d->label,
			.n_labels = d->n_classes,
			.batch = (uint32_t)train_step_samples(o),
			.world = (uint32_t)o->world_size,
			.options = c->order_choice.options },
		.data = d,
		.rank = o->rank,
		.world = o->world_size,
		.drop_last = o->drop_last,
	};

	ret.in.group = dataset_together(d, &ret.in.n_groups);
	return ret;
}

struct pipeline_config train_data_pipeline(const struct train_options *o,
					   const struct train_choice *c,
					   const struct train_prep *prep,
					   const struct dataset_mount *m,
					   const struct dataset *d)
{
	return (struct pipeline_config){
		.data = d,
		.engine = c->engine,
		.engine_options = c->loader_choice.options,
		.prep = c->prep,
		.seed = o->common.seed,
		.workers = (uint32_t)o->workers,
		.queue_depth = (uint32_t)o->queue_depth,
		.batch = (uint32_t)train_pipeline_batch(o, c),
		.superbatch = 1,
		.prefetch = (uint32_t)o->prefetch,
		.prep_config = &prep->config,
		.mount_dev = m->dir ? &m->dev : NULL,
		.cores = prep->cores,
	};
}

/* Null: samples are no tokens. */
static json_t *tokens_json(const struct dataset *d)
{
	static const char *const from[TOKENS_N_FROM] = {
		[TOKENS_BY_DEFAULT] = "default",
		[TOKENS_BY_OPTION] = "option",
		[TOKENS_BY_INDEX] = "index",
		[TOKENS_BY_HEADER] = "header",
	};

	return d->token_bytes ? json_pack("{s:I, s:s}", "bytes",
					  (json_int_t)d->token_bytes, "from",
					  from[d->token_from])
			      : json_null();
}

json_t *train_data_json(const struct dataset *d,
			const struct format_result *how)
{
	/* null: no dataset; or, in a simulation, a list that nothing opened */
	if (!how->format)
		return d->n ? json_pack("{s:I, s:I, s:o}", "samples",
					(json_int_t)d->n, "bytes",
					(json_int_t)d->bytes, "notes",
					notes_json(&d->notes))
			    : json_null();
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:o?, s:o, "
			 "s:o}",
			 "format", how->format->plugin.name, "samples",
			 (json_int_t)d->n, "classes", (json_int_t)d->n_classes,
			 "bytes", (json_int_t)d->bytes, "shards",
			 (json_int_t)d->n_containers, "groups",
			 (json_int_t)d->n_groups, "list_s",
			 (double)how->list_ns / (double)NS_PER_S, "from_index",
			 how->from_index, "index", json_bytes(how->index),
			 "notes", notes_json(&d->notes), "tokens",
			 tokens_json(d));
}
