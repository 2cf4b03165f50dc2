/* SPDX-License-Identifier: MIT */
/*
 * WebDataset's reads: shards in random order, each from its begin to its end.
 * They are dealt to the ranks, and those of a rank to the streams that it reads
 * at a time, one for each worker:
 *
 *	shards shuffled	| 4 | 0 | 3 | 1 | 5 | 2 |
 *	stream		  0   1   2   3   0   1		2 ranks of 2 streams
 *	rank		  0   1   0   1   0   1
 *
 * The batches of a rank come from its streams in turn. A stream without shards
 * is left out; a rank that has no more goes on with the fullest other stream,
 * so that all ranks visit equally many samples.
 *
 * The shuffle buffer of WebDataset mixes samples after they were read. It has
 * no part in the order of the reads, and none here.
 *
 * Source: webdataset 0.2, shardlists.py (SimpleShardList, split_by_node,
 * split_by_worker), and the batches of PyTorch's DataLoader, worker by worker.
 */
#include "loader/order/order.h"

#include <errno.h>
#include <stdlib.h>

#include "common/conf/conf.h"
#include "common/rng.h"
#include "common/util.h"
#include "loader/order/groups.h"

struct options {
	uint64_t streams;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(streams, CONF_UINT, struct options), .min = 1, .max = 65536,
	  .arg = "N",
	  .help = "shards that a rank reads at a time: one for each worker" },
	{ 0 },
};

static const struct options defaults = { .streams = 1 };

struct stream {
	uint32_t turn; /* its next shard, in g.turn; g.n or more: none */
	size_t at;     /* of that: the next sample, from its first */
	size_t left;   /* samples in all its shards */
};

struct deal {
	struct order_groups g;
	uint32_t n; /* streams of all ranks; rank r has r, r + world, ... */
	struct stream *stream;
};

static void deal_fini(struct deal *d)
{
	groups_fini(&d->g);
	free(d->stream);
}

static size_t shard_n(const struct order_groups *g, uint32_t turn)
{
	uint32_t k = g->turn[turn];

	return g->first[k + 1] - g->first[k];
}

static int deal_init(struct deal *d, const struct order_input *in, uint64_t n)
{
	struct rng rng = rng_stream(in->seed, "order", in->epoch);
	int r = groups_init(&d->g, in);

	if (r < 0)
		return r;
	/* more would have no shard */
	d->n = (uint32_t)MIN(n, d->g.n);
	d->stream = calloc(d->n, sizeof(*d->stream));
	if (!d->stream)
		return -ENOMEM;
	rng_shuffle_u32(&rng, d->g.turn, d->g.n);
	for (uint32_t i = 0; i < d->n; i++)
		d->stream[i].turn = i;
	for (uint32_t i = 0; i < d->g.n; i++)
		d->stream[i % d->n].left += shard_n(&d->g, i);
	return 0;
}

static uint32_t next_sample(struct deal *d, struct stream *s)
{
	while (s->at == shard_n(&d->g, s->turn)) {
		s->turn += d->n;
		s->at = 0;
	}
	s->left--;
	return d->g.sample[d->g.first[d->g.turn[s->turn]] + s->at++];
}

/* The stream of a rank's batch: its own, the `batch`-th in turn, or else the
 * fullest of all. */
static struct stream *pick(struct deal *d, uint32_t rank, uint32_t world,
			   uint64_t batch)
{
	uint64_t own = rank < d->n ? (d->n - 1 - rank) / world + 1 : 0;
	struct stream *most = d->stream;

	for (uint64_t i = 0; i < own; i++) {
		uint64_t k = rank + (batch + i) % own * world;

		if (d->stream[k].left)
			return &d->stream[k];
	}
	for (uint32_t i = 1; i < d->n; i++)
		if (d->stream[i].left > most->left)
			most = &d->stream[i];
	return most;
}

static int fill_webdataset(const struct order_input *in, uint32_t *ret,
			   struct err *err)
{
	const struct options *o = in->options ? in->options : &defaults;
	uint32_t world = MAX(in->world, 1), batch = MAX(in->batch, 1);
	_cleanup_(deal_fini) struct deal d = { 0 };
	_cleanup_free_ struct stream **of = calloc(world, sizeof(*of));

	if (!of || deal_init(&d, in, o->streams * world) < 0)
		return err_set(err, -ENOMEM, "out of memory for an order");
	/* rank r visits the positions r, r + world, ... */
	for (size_t i = 0; i < in->n; i++) {
		uint32_t rank = (uint32_t)(i % world);
		uint64_t k = i / world;

		if (k % batch == 0 || !of[rank]->left)
			of[rank] = pick(&d, rank, world, k / batch);
		ret[i] = next_sample(&d, of[rank]);
	}
	return 0;
}

const struct order_ops order_webdataset = {
	.plugin = { .name = "webdataset",
		    .summary = "WebDataset: shuffled shards, each read from "
			       "start to end",
		    PLUGIN_OPTIONS(fields, defaults) },
	.by_group = true,
	.fill = fill_webdataset,
};
