/* SPDX-License-Identifier: MIT */
/*
 * Layers that only observe: one of each rank, for every gap of a stack. They
 * count the reads that pass, and check them against fs/server/layer.h. Also an
 * example of a small layer: this file, and its words in
 * tests/contract/meson.build.
 */
#include <assert.h>

#include "fs/server/object.h"
#include "fs/server/stack.h"

struct probe {
	/* atomic */
	uint64_t reads, answers, metadata, answered;
	uint64_t asks, offers, starts, events;
};

static void count(uint64_t *n)
{
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

/* The lock is held: by this thread, as far as a call can tell. */
static bool is_locked(struct server *s)
{
	if (pthread_mutex_trylock(&s->lock))
		return true;
	pthread_mutex_unlock(&s->lock);
	return false;
}

static void probe_read(struct layer *l, struct read_request *r)
{
	struct probe *p = l->state;

	count(&p->reads);
	assert(r->server == l->server && r->bytes && !r->n_parts);
	layer_read(l, r);
}

static void probe_answer(struct layer *l, struct read_request *r,
			 const struct answer *a)
{
	struct probe *p = l->state;
	size_t bytes = 0;

	count(&p->answers);
	for (int i = 0; i < a->n_iov; i++)
		bytes += a->iov[i].iov_len;
	assert(a->error <= 0 && (a->error ? !a->n_iov : bytes == r->bytes));
	layer_answer(l, r, a);
}

static void probe_metadata(struct layer *l, struct fetch *f)
{
	struct probe *p = l->state;

	count(&p->metadata);
	assert(f->done && f->op != STORAGE_READ);
	layer_metadata(l, f);
}

static void probe_metadata_answered(struct layer *l, const struct fetch *f,
				    int error)
{
	struct probe *p = l->state;

	count(&p->answered);
	layer_metadata_answered(l, f, error);
}

static int probe_ask(struct layer *l, struct ask *a)
{
	struct probe *p = l->state;
	int r;

	count(&p->asks);
	assert(is_locked(l->server));
	assert(!a->object && !a->start && !a->fresh);
	r = layer_ask(l, a);
	assert(r <= 0 && (r == 0 || !a->object));
	assert(!a->object || a->object->key == a->what.key);
	assert(r || a->object || a->paid || a->bypass);
	assert(!a->fresh || (a->start && !a->hit));
	assert(!a->start || a->object->state == OBJECT_FETCHING);
	return r;
}

static void probe_offer(struct layer *l, struct object *o)
{
	struct probe *p = l->state;

	count(&p->offers);
	assert(is_locked(l->server) && o->prefetched_by);
	layer_offer(l, o);
}

static void probe_start(struct layer *l, struct fetch *f)
{
	struct probe *p = l->state;

	count(&p->starts);
	assert(f->done);
	layer_start(l, f);
}

static void probe_event(struct layer *l, enum layer_event event, uint64_t key,
			uint64_t seq)
{
	struct probe *p = l->state;

	(void)event;
	(void)key;
	assert(is_locked(l->server) && seq == l->server->seq);
	count(&p->events);
}

static void probe_reset(struct layer *l)
{
	assert(is_locked(l->server));
	*(struct probe *)l->state = (struct probe){ 0 };
}

static size_t probe_stats(struct layer *l, struct layer_stat ret[LAYER_STATS])
{
	const struct probe *p = l->state;
	const struct layer_stat all[] = {
		{ "probe_reads", p->reads },
		{ "probe_answers", p->answers },
		{ "probe_asks", p->asks },
		{ "probe_offers", p->offers },
		{ "probe_starts", p->starts },
		{ "probe_events", p->events },
		{ "probe_metadata", p->metadata },
		{ "probe_answered", p->answered },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ret[i] = all[i];
	return sizeof(all) / sizeof(all[0]);
}

#define PROBE(word, its_rank, ...)                                \
	const struct layer_ops layer_##word = {                   \
		.plugin = { .name = #word,                        \
			    .summary = "count what passes",       \
			    .state_size = sizeof(struct probe) }, \
		.rank = its_rank,                                 \
		.many = true,                                     \
		.metadata = probe_metadata,                       \
		.metadata_answered = probe_metadata_answered,     \
		.event = probe_event,                             \
		.reset = probe_reset,                             \
		.stats = probe_stats,                             \
		__VA_ARGS__                                       \
	}

PROBE(probe_request, LAYER_REQUEST, .read = probe_read, .answer = probe_answer);
PROBE(probe_ahead, LAYER_AHEAD, .ask = probe_ask, .offer = probe_offer);
PROBE(probe_cache, LAYER_CACHE, .ask = probe_ask, .offer = probe_offer);
PROBE(probe_fetch, LAYER_FETCH, .ask = probe_ask, .offer = probe_offer,
      .start = probe_start);
PROBE(probe_device, LAYER_DEVICE, .ask = probe_ask, .start = probe_start);
