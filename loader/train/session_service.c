/* SPDX-License-Identifier: MIT */
#include "loader/train/session_service.h"

#include <errno.h>

#include "common/util.h"
#include "loader/options/train_job.h"
#include "loader/train/session_pin.h"
#include "service/decide/pecan.h"

/* `last`: this process runs it; NULL: it runs none of the transforms. */
static int add_way(struct session *s, const struct prep_last *last,
		   uint64_t bytes, struct err *err)
{
	const struct train_options *o = &s->options;
	const struct node_profile *node = &s->node.profile;
	bool one_job = s->choice.remote->remote->one_job(
		s->choice.loader_choice.options);
	json_auto_t *job = train_job_json(o, &s->data, one_job, last);
	struct session_way *w = &s->way[s->n_ways++];

	w->job = job ? json_dumps(job, JSON_COMPACT) : NULL;
	if (!w->job)
		return err_set(err, -ENOMEM, "out of memory");
	w->split = last ? FASTFLOW_LAST : FASTFLOW_BATCH;
	w->service = (struct remote_service){
		.address = o->dispatcher,
		.key = o->service_key,
		.job = w->job,
		.rank = o->rank,
		.n_samples = s->data.n,
		.most_bytes = bytes,
	};
	if (o->node) {
		w->service.nic_bytes_per_s = node->nic.gb_per_s * 1e9;
		w->service.nic_latency_ns = node->nic.latency_ns;
	}
	return 0;
}

/* Would Pecan send samples without their last step? */
static bool pecan_parts(const struct session *s, size_t before)
{
	const double raw = (double)s->data.bytes / (double)MAX(s->data.n, 1);
	const struct pecan_transform last = {
		.size = (double)s->prep.sample_bytes /
			MAX(before ? (double)before : raw, 1),
		.commutes = true,
	};
	struct pecan_plan plan;

	return pecan_plan(&last, 1, &plan) == 0 && plan.n_remote == 0;
}

/* The one way without the last step, or both. */
static int add_ways(struct session *s, uint64_t bytes, struct err *err)
{
	const struct prep_last *last = s->choice.prep->last;
	enum last_step where = s->choice.last_step;
	size_t before;
	int r = 0;

	last->bytes(&s->prep.config, &before);
	if (where == LAST_PECAN)
		where = pecan_parts(s, before) ? LAST_HERE : LAST_THERE;
	if (where != LAST_HERE)
		r = add_way(s, NULL, bytes, err);
	if (r < 0 || where == LAST_THERE)
		return r;
	r = session_batch_bytes(s, before, &bytes, err);
	return r < 0 ? r : add_way(s, last, bytes, err);
}

int session_open_service(struct session *s, struct err *err)
{
	uint64_t bytes;
	int r = session_largest_batch(s, &bytes, err);

	if (r < 0)
		return r;
	return s->choice.last_step == LAST_THERE ? add_way(s, NULL, bytes, err)
						 : add_ways(s, bytes, err);
}
