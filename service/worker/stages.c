/* SPDX-License-Identifier: MIT */
#include "service/worker/stages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "loader/options/train_job.h"
#include "loader/options/train_resolve.h"
#include "loader/options/train_table.h"

static int set_text(char **option, const char *text, struct err *err)
{
	char *copy;

	if (!text)
		return 0;
	copy = strdup(text);
	if (!copy)
		return err_set(err, -ENOMEM, "out of memory");
	free(*option);
	*option = copy;
	return 0;
}

/* What the trainer names, if it is at or below --data; else --data itself. So a
 * trainer chooses among the datasets there, and can have them elsewhere. */
static int place_data(struct train_options *o, const char *root,
		      struct err *err)
{
	_cleanup_free_ char *theirs = o->data ? realpath(o->data, NULL) : NULL;
	_cleanup_free_ char *top = realpath(root, NULL);
	size_t n = top ? strlen(top) : 0;
	bool below;

	if (!top)
		return err_set(err, -errno, "%s: %s", root, strerror(errno));
	below = theirs && (n == 1 || (!strncmp(theirs, top, n) &&
				      (!theirs[n] || theirs[n] == '/')));
	return set_text(&o->data, below ? theirs : root, err);
}

static int merge(struct train_options *o, const struct stages_options *own,
		 struct err *err)
{
	double theirs = o->time_scale;
	int r = own->data ? place_data(o, own->data, err) : 0;

	if (r == 0)
		r = set_text(&o->loader, own->loader, err);
	if (r == 0)
		r = set_text(&o->pin_mode, "off", err);
	o->workers = own->workers;
	/* transforms on the real cores have no number of them */
	o->cores = plugin_is(o->prep, "emulated") ? own->cores : 0;
	if (own->queue_depth)
		o->queue_depth = own->queue_depth;
	if (own->prefetch)
		o->prefetch = own->prefetch;
	if (r == 0 && theirs != own->time_scale)
		r = err_set(err, -EINVAL,
			    "its --time-scale is %g, that of the trainer %g",
			    own->time_scale, theirs);
	return r;
}

static int resolve(struct stages *s, struct err *err)
{
	struct train_options *o = &s->options;
	int r = train_options_resolve(o, &s->choice, err);

	if (r == 0 && (!s->choice.engine->next || s->choice.order->by_holder))
		r = err_set(err, -EINVAL,
			    "--loader %s, --order %s: not on a worker",
			    o->loader, o->order);
	if (r == 0 && s->choice.order->file_of &&
	    s->choice.order->file_of(s->choice.order_choice.options))
		r = err_set(err, -EINVAL,
			    "--order %s: workers open no file that a trainer "
			    "names",
			    s->choice.order->plugin.name);
	return r;
}

int stages_open(struct stages *s, const char *definition,
		const struct stages_options *own, struct err *err)
{
	struct train_options *o = &s->options;
	struct schedule_config c;
	int r;

	*s = (struct stages){ .data.dirfd = -1 };
	train_options_init(o);
	r = train_job_read(definition, o, err);
	if (r == 0)
		r = merge(o, own, err);
	if (r == 0)
		r = resolve(s, err);
	if (r == 0)
		r = train_prep_open(o, &s->choice, &s->prep, err);
	if (r == 0)
		r = train_data_open(o, &s->choice, &s->data, &s->how, err);
	if (r == 0)
		r = train_job_check(definition, &s->data, err);
	if (r < 0)
		return r;
	s->prep.config.token_bytes = s->data.token_bytes;
	mount_find(o->data, &s->mount);
	if (s->choice.order->by_group && !s->data.group &&
	    !s->data.n_containers)
		r = mount_groups(&s->mount, o->data, &s->data, err);
	if (r < 0)
		return r;
	c = train_data_schedule(o, &s->choice, &s->data);
	return schedule_open(&c, &s->schedule, err);
}

void stages_close(struct stages *s)
{
	schedule_close(&s->schedule);
	mount_fini(&s->mount);
	format_result_fini(&s->how);
	dataset_close(&s->data);
	train_prep_close(&s->prep);
	train_choice_fini(&s->choice);
	conf_free(train_fields, &s->options);
}

int stages_order(struct stages *s, uint64_t epoch, struct err *err)
{
	return schedule_fill(&s->schedule, epoch, err);
}

void stages_own_order(struct stages *s, uint64_t epoch, uint64_t worker,
		      uint64_t pass)
{
	uint32_t *order = s->schedule.order;
	uint64_t rank =
		rng_key(s->options.common.seed, "rank", s->options.rank);
	uint64_t key = rng_key(rank, "worker", worker);
	struct rng rng = rng_stream(rng_key(key, "pass", pass), "epoch", epoch);

	for (uint32_t i = 0; i < s->data.n; i++)
		order[i] = i;
	rng_shuffle_u32(&rng, order, s->data.n);
}

struct pipeline_config stages_pipeline(struct stages *s, struct tick *tick)
{
	struct pipeline_config c = train_data_pipeline(
		&s->options, &s->choice, &s->prep, &s->mount, &s->data);

	c.tick = tick;
	return c;
}
