/* SPDX-License-Identifier: MIT */
/*
 * A layer that counts whole requests, and those that fail. It changes nothing:
 * each call goes on to the next layer.
 */
#include "fs/server/layer.h"

struct count {
	uint64_t requests, bytes, failed; /* atomic: any thread */
};

static void add_count(uint64_t *n, uint64_t more)
{
	__atomic_fetch_add(n, more, __ATOMIC_RELAXED);
}

static uint64_t value(const uint64_t *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

static void count_read(struct layer *l, struct read_request *r)
{
	struct count *c = l->state;

	add_count(&c->requests, 1);
	add_count(&c->bytes, r->bytes);
	layer_read(l, r);
}

static void count_answer(struct layer *l, struct read_request *r,
			 const struct answer *a)
{
	struct count *c = l->state;

	add_count(&c->failed, a->error < 0);
	layer_answer(l, r, a);
}

/* The kernel keeps no file, so that each read comes here. */
static bool count_watches(struct layer *l, uint32_t node)
{
	(void)l;
	(void)node;
	return true;
}

static void count_reset(struct layer *l)
{
	struct count *c = l->state;

	__atomic_store_n(&c->requests, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&c->bytes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&c->failed, 0, __ATOMIC_RELAXED);
}

static size_t count_stats(struct layer *l, struct layer_stat ret[LAYER_STATS])
{
	const struct count *c = l->state;

	ret[0].name = "count_requests";
	ret[0].value = value(&c->requests);
	ret[1].name = "count_bytes";
	ret[1].value = value(&c->bytes);
	ret[2].name = "count_failed";
	ret[2].value = value(&c->failed);
	return 3;
}

const struct layer_ops layer_count = {
	.plugin = { .name = "count",
		    .summary = "count requests",
		    .state_size = sizeof(struct count) },
	.rank = LAYER_REQUEST,
	.many = true,
	.read = count_read,
	.answer = count_answer,
	.watches = count_watches,
	.reset = count_reset,
	.stats = count_stats,
};
