/* SPDX-License-Identifier: MIT */
#include "loader/train/session_offload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "common/util.h"
#include "loader/train/session_open.h"

__attribute__((format(printf, 1, 2))) static char *text(const char *fmt, ...)
{
	char *ret;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vasprintf(&ret, fmt, ap);
	va_end(ap);
	return r < 0 ? NULL : ret;
}

/* What the rates of the run depend on. The workers of a service are known by
 * their dispatcher. */
static int name_profile(struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	const struct train_choice *c = &s->choice;
	const struct pipeline_config *p = &s->config;
	_cleanup_free_ char *prep =
		plugin_choice_text(&c->prep->plugin, c->prep_choice.options);
	_cleanup_free_ char *loader =
		plugin_choice_text(&c->engine->plugin, c->local_choice.options);

	if (!prep || !loader)
		return err_set(err, -ENOMEM, "out of memory");
	s->offload_key[0] =
		text("%s %s %s %" PRIu64 ", %s, %u workers, %u cores, %zu "
		     "samples of %" PRIu64 " bytes in %s",
		     prep, o->prep_profile ? o->prep_profile : "",
		     o->prep_output, o->image_size, loader, p->workers,
		     p->cores, s->data.n, s->data.bytes, s->data.root);
	s->offload_key[1] = text("%s, batch %u, %" PRIu64 " x %s",
				 s->model->name, p->batch, o->gpus,
				 s->gpu.name);
	s->offload_key[2] = text("%s, %g bytes/s, %s", o->dispatcher,
				 s->way[0].service.nic_bytes_per_s,
				 o->last_step);
	return s->offload_key[0] && s->offload_key[1] && s->offload_key[2]
		       ? 0
		       : err_set(err, -ENOMEM, "out of memory");
}

int session_open_offload(struct session *s, uint64_t n, struct err *err)
{
	const struct train_options *o = &s->options;
	uint64_t batch = s->config.batch, batches = (n + batch - 1) / batch;
	struct offload_config c = {
		.tick = s->tick,
		.part = s->choice.part,
		.gpu = s->report.ceiling.samples_per_s,
		.per_step = s->choice.parallel == GPUS_DP ? 1 : o->gpus,
		.virtual = s->choice.prep->cost,
		.cache = o->offload_cache,
		.n_ways = s->n_ways,
	};
	int r = 0;

	c.way[0] = FASTFLOW_BATCH;
	for (uint32_t i = 0; i < s->n_ways; i++)
		c.way[i] = s->way[i].split;
	if (o->offload_cache)
		r = name_profile(s, err);
	c.key = (struct fastflow_key){ .pipeline = s->offload_key[0],
				       .model = s->offload_key[1],
				       .remote = s->offload_key[2] };
	if (r < 0)
		return r;
	offload_init(&s->offload, &c);
	if (batches >= offload_needs(&s->offload))
		return 0;
	return err_set(err, -EINVAL,
		       "--offload auto measures on %s%d steps, and the first "
		       "epoch has %" PRIu64 ": give a RATIO, none or all",
		       s->offload.part < 0 ? "2 x " : "", FASTFLOW_STEPS,
		       batches / c.per_step);
}

void session_close_offload(struct session *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->offload_key); i++)
		free(s->offload_key[i]);
	for (uint32_t i = 0; i < s->n_ways; i++)
		free(s->way[i].job);
}

/* As many as prepare batches here; no more than batches that can come at
 * once. */
static uint32_t last_threads(const struct session *s)
{
	const struct remote_ops *ops = s->choice.remote->remote;
	uint64_t most = ops->n_buffers(s->choice.loader_choice.options);

	return (uint32_t)MIN(MAX(s->options.workers, 1), most);
}

int session_open_intake(struct session *s, const struct pipeline_config *c,
			struct intake **ret, struct err *err)
{
	const struct session_way *w = &s->way[s->offload.way];
	const struct intake_config i = {
		.sift = s->choice.bad.sift,
		.pipeline = *c,
		.remote = s->choice.remote,
		.remote_options = s->choice.loader_choice.options,
		.service = &w->service,
		.last_threads = w->split == FASTFLOW_LAST ? last_threads(s) : 0,
		.part = offload_part(&s->offload),
		.alone = offload_alone(&s->offload),
	};

	return intake_new(&i, ret, err);
}

void session_offload_taken(struct session *s, const struct delivery *d)
{
	struct err err = { 0 };

	if (offload_taken(&s->offload, s->intake, d, &s->account->work, &err) <
	    0)
		session_tell(s, LOG_LEVEL_WARN, "--offload-cache: %s",
			     err.text);
}
