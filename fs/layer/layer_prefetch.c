/* SPDX-License-Identifier: MIT */
/*
 * Clairvoyant prefetching. A loader announces its accesses (server_future); a
 * thread asks the layers below for the objects of the next ones, in their
 * order, and holds them until they are accessed: the staging buffer
 * (fs/layer/ahead.h).
 *
 * The staged bytes are bounded, and so are the fetches in flight, behind which
 * a read of anything else may have to wait. An access takes its object out of
 * the buffer. What it cost below is paid by the prefetch: an access of the
 * caches, an open and a read of the device or another node. So caches, and the
 * hits of the mount, count as if the reads themselves had come so early.
 *
 * Accesses come roughly in order. One that comes before its prefetch goes to
 * the layers below, and the thread skips it. A future that is wrong costs a few
 * buffers of fetches (fs/layer/announced.h).
 *
 * Where objects are cached is the matter of the layer `peer`.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/memory.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/layer/ahead.h"
#include "fs/server/flight.h"
#include "fs/server/stack.h"

/* An object fetched ahead. Lives until it is neither staged nor in flight. */
struct ahead_object {
	struct ahead_item item;
	struct object *object;
	struct layer *layer;
	bool landed;
	bool hit, admitted, rejected; /* in the layers below */
	/* the fetch, after the open that it costs */
	struct fetch open, *start;
	struct layer *starter;
	struct read_request wait; /* for the object */
};

struct prefetching {
	pthread_t thread;
	bool runs;

	pthread_mutex_t lock; /* guards the next two; inside the server's */
	pthread_cond_t wake;
	bool called, stopping;

	struct ahead buffer; /* the server's lock */
};

static void wake(struct prefetching *p)
{
	LOCK_SCOPE(&p->lock);
	p->called = true;
	pthread_cond_signal(&p->wake);
}

/* --- the buffer, under the server's lock ---------------------------------- */

static struct ahead_object *find_object(const struct prefetching *p,
					uint64_t key)
{
	struct ahead_item *x = ahead_find(&p->buffer, key);

	return x ? container_of(x, struct ahead_object, item) : NULL;
}

static void release(struct ahead_object *x)
{
	if (x->item.staged || !x->landed)
		return;
	server_put_object(x->object);
	free(x);
}

static void drop(struct ahead_item *x)
{
	release(container_of(x, struct ahead_object, item));
}

static int prefetch_ask(struct layer *l, struct ask *a)
{
	struct prefetching *p = l->state;
	struct ahead_object *x = a->remote ? NULL : find_object(p, a->what.key);

	if (x) {
		a->object = object_get(x->object);
		if (a->first) {
			a->hit = x->hit;
			a->admitted = x->admitted;
			a->rejected = x->rejected;
			ahead_use(&p->buffer, &x->item,
				  x->object->state != OBJECT_FETCHING);
			wake(p);
		}
		return 0;
	}
	if (a->first && !a->remote && p->buffer.plan) {
		ahead_miss(&p->buffer, a->what.key);
		wake(p);
	}
	return layer_ask(l, a);
}

/* The open was paid by the prefetch. */
static void prefetch_metadata(struct layer *l, struct fetch *f)
{
	const struct prefetching *p = l->state;
	struct server *s = l->server;
	bool there = false;

	if (fetch_opens(f) && !f->takes) {
		pthread_mutex_lock(&s->lock);
		there = find_object(p, object_key(f->node, 0));
		pthread_mutex_unlock(&s->lock);
	}
	if (there)
		f->done(f, false);
	else
		layer_metadata(l, f);
}

/* --- fetching ahead: the thread ------------------------------------------- */

/* The object is there, or failed. Any thread. */
static void landed(struct read_request *r)
{
	struct ahead_object *x = container_of(r, struct ahead_object, wait);
	struct prefetching *p = x->layer->state;
	struct server *s = x->layer->server;

	pthread_mutex_lock(&s->lock);
	x->landed = true;
	ahead_landed(&p->buffer, x->hit			   ? AHEAD_FROM_CACHE
				 : x->object->fetch.remote ? AHEAD_FROM_PEER
				 : x->object->state == OBJECT_READY
					 ? AHEAD_FROM_STORAGE
					 : AHEAD_COUNTS);
	release(x);
	server_unlock(s);
	wake(p);
}

/* Under the server's lock: ask for it, and wait for it. */
static bool ask(struct layer *l, struct ahead_object *x, struct ask *a)
{
	struct prefetching *p = l->state;
	struct read_part *part = &x->wait.parts[0];

	if (!ahead_stage(&p->buffer, &x->item, &a->what))
		return false;
	if (layer_ask(l, a) < 0) {
		ahead_unstage(&p->buffer, &x->item);
		return false;
	}
	x->object = a->object;
	x->hit = a->hit;
	x->admitted = a->admitted;
	x->rejected = a->rejected;
	x->start = a->start;
	x->starter = a->starter;
	x->wait.pending = 1;
	if (a->object->state == OBJECT_FETCHING) {
		part->next = a->object->waiters;
		a->object->waiters = part;
		x->wait.pending++;
	}
	return true;
}

static void opened(struct fetch *f, bool stopping)
{
	struct ahead_object *x = container_of(f, struct ahead_object, open);

	x->start->deadline = f->deadline;
	if (stopping) {
		x->start->done(x->start, true);
		return;
	}
	x->start->arrival = f->deadline;
	x->starter->ops->start(x->starter, x->start);
}

/* The layer that an open of a file passes last before those that fetch. */
static struct layer *last_cache(struct layer *l)
{
	struct server *s = l->server;

	for (size_t i = 0; i < s->n_layers; i++)
		if (s->layers[i]->ops->rank == LAYER_CACHE)
			l = s->layers[i];
	return l;
}

/* A file is opened where its first object is, like for a read. */
static void start_object(struct ahead_object *x, uint64_t now)
{
	x->open = (struct fetch){ .op = STORAGE_OPEN,
				  .node = (uint32_t)(x->item.key >> 32),
				  .arrival = now,
				  .deadline = now,
				  .done = opened };
	if ((uint32_t)x->item.key)
		opened(&x->open, false);
	else if (x->starter->ops->rank == LAYER_CACHE)
		x->starter->ops->metadata(x->starter, &x->open);
	else
		layer_metadata(last_cache(x->layer), &x->open);
}

/* Accesses that are looked at under the lock, and the pause before the next
 * ones. arbitrary: a hit waits for some 20 us, and a second passes a million */
enum { MOST_LOOKS = 128, BREATH_NS = 20 * NS_PER_US };

enum search { NONE_NOW, FOUND, NOT_OVER };

/* Fetch one object, if one is found. */
static enum search fetch_one(struct layer *l)
{
	struct prefetching *p = l->state;
	struct ahead_object *x = calloc(1, sizeof(*x));
	struct server *s = l->server;
	struct ask a = { .arrival = tick_now(s->c.tick),
			 .first = true,
			 .later = true,
			 .starter = s->split.start };
	struct announced *over;
	unsigned looks = MOST_LOOKS;
	bool found, asked;

	if (!x)
		return NONE_NOW;
	x->layer = l;
	x->wait = (struct read_request){ .server = s, .ready = landed };
	x->wait.parts[0].request = &x->wait;
	pthread_mutex_lock(&s->lock);
	found = ahead_next(&p->buffer, &looks, &a.what);
	a.node = (uint32_t)(a.what.key >> 32);
	asked = found && ask(l, x, &a);
	over = TAKE_PTR(p->buffer.over);
	server_unlock(s);
	announced_free(over);
	if (!asked) {
		free(x);
		return found ? FOUND : looks ? NONE_NOW : NOT_OVER;
	}
	if (x->start)
		start_object(x, a.arrival);
	read_settle(&x->wait);
	return FOUND;
}

static void *run_prefetch(void *layer)
{
	struct layer *l = layer;
	struct prefetching *p = l->state;
	bool stopping = false;

	while (!stopping) {
		enum search r = fetch_one(l);

		if (r == NOT_OVER)
			tick_pause(BREATH_NS);
		pthread_mutex_lock(&p->lock);
		while (r == NONE_NOW && !p->called && !p->stopping)
			pthread_cond_wait(&p->wake, &p->lock);
		p->called = false;
		stopping = p->stopping;
		pthread_mutex_unlock(&p->lock);
	}
	return NULL;
}

/* --- other hooks ---------------------------------------------------------- */

static int prefetch_foresee(struct layer *l, struct future *f, struct err *err)
{
	struct prefetching *p = l->state;
	struct server *s = l->server;
	struct announced *fresh = announced_new(f, f->rank, s->c.tree), *over,
			 *before;

	if (!fresh)
		return err_set(err, -ENOMEM, "out of memory");
	pthread_mutex_lock(&s->lock);
	over = TAKE_PTR(p->buffer.over);
	ahead_announce(&p->buffer, fresh);
	before = TAKE_PTR(p->buffer.over);
	server_unlock(s);
	announced_free(over);
	announced_free(before);
	wake(p);
	return 0;
}

/* What is staged is read as objects. */
static bool prefetch_keeps(struct layer *l, uint32_t node)
{
	const struct prefetching *p = l->state;

	return p->buffer.plan || layer_keeps(l, node);
}

static struct object *prefetch_peek(struct layer *l, uint64_t key, bool kept)
{
	const struct prefetching *p = l->state;
	const struct ahead_object *x = kept ? NULL : find_object(p, key);

	return x ? x->object : NULL;
}

/* false: this layer is no cache. */
static bool prefetch_forget(struct layer *l, const struct object *o)
{
	struct prefetching *p = l->state;
	struct ahead_object *x = find_object(p, o->key);

	if (x && x->object == o) {
		ahead_waste(&p->buffer, &x->item);
		p->buffer.paused = true;
	}
	return false;
}

static void prefetch_event(struct layer *l, enum layer_event event,
			   uint64_t key, uint64_t seq)
{
	struct prefetching *p = l->state;

	(void)key;
	(void)seq;
	if (event == LAYER_DROP_CACHE || event == LAYER_SET_CACHE)
		ahead_waste_all(&p->buffer);
}

static void prefetch_reset(struct layer *l)
{
	struct prefetching *p = l->state;

	memset(p->buffer.counts, 0, sizeof(p->buffer.counts));
	p->buffer.most_bytes = p->buffer.bytes;
}

static size_t prefetch_stats(struct layer *l,
			     struct layer_stat ret[LAYER_STATS])
{
	const struct prefetching *p = l->state;
	const struct ahead *a = &p->buffer;
	const struct layer_stat rest[] = {
		{ "in_flight", a->n_flying },
		{ "announced", a->plan ? announced_left(a->plan) : 0 },
		{ "staged_bytes", a->bytes },
		{ "most_bytes", a->most_bytes },
		{ "limit_bytes", a->limit },
	};

	_Static_assert(AHEAD_COUNTS + ARRAY_SIZE(rest) <= LAYER_STATS,
		       "they fit");
	for (size_t i = 0; i < AHEAD_COUNTS; i++)
		ret[i] = (struct layer_stat){ ahead_names[i], a->counts[i] };
	memcpy(ret + AHEAD_COUNTS, rest, sizeof(rest));
	return AHEAD_COUNTS + ARRAY_SIZE(rest);
}

/* The part is the mount's "prefetch", too. */
static void prefetch_json(struct layer *l, json_t *stats, json_t *part)
{
	(void)l;
	json_object_set(stats, "prefetch", part);
}

/* --- life ----------------------------------------------------------------- */

static int prefetch_init(struct layer *l, struct err *err)
{
	const struct server_config *c = &l->server->c;
	struct prefetching *p = l->state;

	if (!c->prefetch_bytes)
		return LAYER_IDLE;
	tick_mutex_init(&p->lock);
	tick_cond_init(&p->wake);
	p->buffer = (struct ahead){ .limit = c->prefetch_bytes,
				    .depth = MAX(c->prefetch_depth, 1),
				    .drop = drop };
	return p->buffer.limit <= memory_limit() / 2
		       ? 0
		       : err_set(err, -EINVAL,
				 "--prefetch is more than half of the memory "
				 "that this machine or its control group has");
}

static int prefetch_begin(struct layer *l, struct err *err)
{
	struct prefetching *p = l->state;
	int r = thread_start(&p->thread, NULL, run_prefetch, l);

	p->runs = r == 0;
	return r < 0 ? err_set(err, r, "prefetch: %s", strerror(-r)) : 0;
}

/* Objects in flight land by themselves, or with the device. */
static void prefetch_stop(struct layer *l)
{
	struct prefetching *p = l->state;
	struct server *s = l->server;
	struct announced *over;

	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	if (p->runs)
		pthread_join(p->thread, NULL);
	p->runs = false;
	pthread_mutex_lock(&s->lock);
	over = TAKE_PTR(p->buffer.over);
	ahead_announce(&p->buffer, NULL);
	server_unlock(s);
	announced_free(over);
}

static void prefetch_fini(struct layer *l)
{
	struct prefetching *p = l->state;

	if (!p->buffer.limit) /* idle */
		return;
	announced_free(p->buffer.over);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
}

const struct layer_ops layer_prefetch = {
	.plugin = { .name = "prefetch",
		    .summary = "fetch the samples that a loader announces "
			       "before it reads them (NoPFS)",
		    .state_size = sizeof(struct prefetching) },
	.rank = LAYER_AHEAD,
	.init = prefetch_init,
	.begin = prefetch_begin,
	.fini = prefetch_fini,
	.stop = prefetch_stop,
	.ask = prefetch_ask,
	.metadata = prefetch_metadata,
	.keeps = prefetch_keeps,
	.peek = prefetch_peek,
	.forget = prefetch_forget,
	.event = prefetch_event,
	.foresee = prefetch_foresee,
	.reset = prefetch_reset,
	.stats = prefetch_stats,
	.json = prefetch_json,
};
