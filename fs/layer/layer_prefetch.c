/* SPDX-License-Identifier: MIT */
/*
 * Clairvoyant prefetching. A loader announces its accesses (server_future); a
 * thread asks the layers below for the objects of the next ones, in their
 * order, and holds them until they are accessed: the staging buffer.
 *
 *	accesses	... used used | staged staged in flight | next next ...
 *	                    reads ----^                         ^---- thread
 *
 * The staged bytes are bounded, and so are the fetches in flight, behind which
 * a read of anything else may have to wait. An access takes its object out of
 * the buffer. What it cost below is paid by the prefetch: an access of the
 * caches, an open and a read of the device or another node. So caches, and the
 * hits of the mount, count as if the reads themselves had come so early.
 *
 * Accesses come roughly in order. One that comes before its prefetch goes to
 * the layers below, and the thread skips it. A future that is wrong costs a few
 * buffers of fetches (fs/layer/plan.h).
 *
 * Source: Dryden et al., "Clairvoyant Prefetching for Distributed Machine
 * Learning I/O", SC 2021 (NoPFS): prefetch in access order, drop after use.
 * Where objects are cached is the matter of the layer `peer`.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/system/memory.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/layer/plan.h"
#include "fs/server/flight.h"
#include "fs/server/hash.h"
#include "fs/server/stack.h"

/* An object fetched ahead. Lives until it is neither staged nor in flight. */
struct ahead {
	uint64_t key;
	uint64_t at; /* which access */
	struct object *object;
	struct layer *layer;
	bool staged, landed;
	bool hit, admitted, rejected; /* in the layers below */
	/* the fetch, after the open that it costs */
	struct fetch open, *start;
	struct layer *starter;
	struct read_request wait; /* for the object */
	struct ahead *prev, *next;
	UT_hash_handle hh;
};

struct prefetching {
	uint64_t limit, depth; /* constant */
	pthread_t thread;
	bool runs;

	pthread_mutex_t lock; /* guards the next two; inside the server's */
	pthread_cond_t wake;
	bool called, stopping;

	/* the server's lock guards all below */
	struct plan *plan;   /* or NULL */
	struct plan *over;   /* to be freed without the lock */
	struct ahead *index; /* uthash by key */
	struct ahead *queue; /* by access */
	uint64_t bytes;	     /* staged */
	uint64_t n_flying;
	bool passed; /* one was missed since the thread last looked */
	bool paused; /* a fetch failed: until the next access */
	struct {
		uint64_t prefetched;	       /* objects */
		uint64_t local, peer, storage; /* of these: from there */
		uint64_t used;		       /* accessed while staged */
		uint64_t late;		 /* of these: before they arrived */
		uint64_t missed, wasted; /* accesses without, and the reverse */
		uint64_t abandoned;	 /* futures that were wrong */
		uint64_t most_bytes;	 /* staged at once */
	} counts;
};

static void wake(struct prefetching *p)
{
	pthread_mutex_lock(&p->lock);
	p->called = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

/* --- the buffer, under the server's lock ---------------------------------- */

static struct ahead *find(const struct prefetching *p, uint64_t key)
{
	struct ahead *x;

	HASH_FIND(hh, p->index, &key, sizeof(key), x);
	return x;
}

static void release(struct ahead *x)
{
	if (x->staged || !x->landed)
		return;
	server_put_object(x->object);
	free(x);
}

static bool stage(struct prefetching *p, struct ahead *x, uint64_t bytes)
{
	if (!HASH_TRY_ADD(p->index, key, x))
		return false;
	DL_APPEND(p->queue, x);
	x->staged = true;
	p->bytes += bytes;
	p->counts.most_bytes = MAX(p->counts.most_bytes, p->bytes);
	return true;
}

static void take_out(struct prefetching *p, struct ahead *x, uint64_t bytes)
{
	HASH_DEL(p->index, x);
	DL_DELETE(p->queue, x);
	x->staged = false;
	p->bytes -= bytes;
}

static void waste(struct prefetching *p, struct ahead *x)
{
	p->counts.wasted++;
	take_out(p, x, x->object->bytes);
	release(x);
}

static void waste_all(struct prefetching *p)
{
	while (p->queue)
		waste(p, p->queue);
}

/* Under the lock. There is no plan to be freed yet: a new one frees it. */
static void end_plan(struct prefetching *p)
{
	waste_all(p);
	p->over = TAKE_PTR(p->plan);
	p->paused = false;
}

/* It was not staged. */
static void miss(struct prefetching *p, uint64_t key)
{
	/* all accesses have come: this one is of the time after */
	if (!plan_left(p->plan) && !p->queue) {
		end_plan(p);
		return;
	}
	p->counts.missed++;
	p->passed = true;
	p->paused = false;
	switch (plan_missed(p->plan, key)) {
	case PLAN_FITS: break;
	case PLAN_STRAYS: waste_all(p); break;
	case PLAN_IS_WRONG: p->counts.abandoned++; end_plan(p);
	}
}

static void use(struct prefetching *p, struct ahead *x)
{
	uint64_t at = x->at, epoch = plan_epoch(p->plan);

	p->counts.used++;
	p->counts.late += x->object->state == OBJECT_FETCHING;
	plan_met(p->plan);
	p->paused = false;
	take_out(p, x, x->object->bytes);
	release(x);
	/* an epoch behind: not accessed in it */
	while (epoch && p->queue && p->queue->at + epoch < at)
		waste(p, p->queue);
}

static int prefetch_ask(struct layer *l, struct ask *a)
{
	struct prefetching *p = l->state;
	struct ahead *x = a->remote ? NULL : find(p, a->what.key);

	if (x) {
		a->object = object_get(x->object);
		if (a->first) {
			a->hit = x->hit;
			a->admitted = x->admitted;
			a->rejected = x->rejected;
			use(p, x);
			wake(p);
		}
		return 0;
	}
	if (a->first && !a->remote && p->plan) {
		miss(p, a->what.key);
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

	if (f->op == STORAGE_OPEN && !f->takes) {
		pthread_mutex_lock(&s->lock);
		there = find(p, object_key(f->node, 0));
		pthread_mutex_unlock(&s->lock);
	}
	if (there)
		f->done(f, false);
	else
		layer_metadata(l, f);
}

/* --- fetching ahead: the thread ------------------------------------------- */

/* `x` is staged for an earlier access, which may still come. If an access has
 * passed it since, it serves the next one instead. */
static bool waits(struct prefetching *p, struct ahead *x)
{
	if (!p->passed)
		return true;
	p->passed = false;
	x->at = plan_at(p->plan);
	DL_DELETE(p->queue, x);
	DL_APPEND(p->queue, x);
	return false;
}

/* Accesses that are looked at under the lock, and the pause before the next
 * ones. arbitrary: a hit waits for some 20 us, and a second passes a million */
enum { MOST_LOOKS = 128, BREATH_NS = 20 * NS_PER_US };

enum search { NONE_NOW, FOUND, NOT_OVER };

/* Under the server's lock: the next object to be fetched. */
static enum search find_next(struct prefetching *p, struct ask *ret)
{
	unsigned looks = MOST_LOOKS;

	while (!p->paused && p->plan &&
	       plan_next(p->plan, &looks, &ret->what)) {
		struct ahead *x = find(p, ret->what.key);
		bool fits = ret->what.bytes <= p->limit;

		if (x && waits(p, x))
			return NONE_NOW;
		if (!x && fits &&
		    (ret->what.bytes > p->limit - p->bytes ||
		     p->n_flying == p->depth))
			return NONE_NOW;
		plan_step(p->plan);
		ret->node = (uint32_t)(ret->what.key >> 32);
		if (!x && fits)
			return FOUND;
	}
	return looks ? NONE_NOW : NOT_OVER;
}

/* The object is there, or failed. Any thread. */
static void landed(struct read_request *r)
{
	struct ahead *x = container_of(r, struct ahead, wait);
	struct prefetching *p = x->layer->state;
	struct server *s = x->layer->server;

	pthread_mutex_lock(&s->lock);
	p->n_flying--;
	x->landed = true;
	if (x->hit)
		p->counts.local++;
	else if (x->object->fetch.remote)
		p->counts.peer++;
	else if (x->object->state == OBJECT_READY)
		p->counts.storage++;
	release(x);
	server_unlock(s);
	wake(p);
}

/* Under the server's lock: ask for it, and wait for it. */
static bool ask(struct layer *l, struct ahead *x, struct ask *a)
{
	struct prefetching *p = l->state;
	struct read_part *part = &x->wait.parts[0];

	x->key = a->what.key;
	x->at = plan_at(p->plan);
	if (!stage(p, x, a->what.bytes))
		return false;
	if (layer_ask(l, a) < 0) {
		take_out(p, x, a->what.bytes);
		return false;
	}
	x->object = a->object;
	x->hit = a->hit;
	x->admitted = a->admitted;
	x->rejected = a->rejected;
	x->start = a->start;
	x->starter = a->starter;
	p->counts.prefetched++;
	p->n_flying++;
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
	struct ahead *x = container_of(f, struct ahead, open);

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
static void start(struct ahead *x, uint64_t now)
{
	x->open = (struct fetch){ .op = STORAGE_OPEN,
				  .node = (uint32_t)(x->key >> 32),
				  .arrival = now,
				  .deadline = now,
				  .done = opened };
	if ((uint32_t)x->key)
		opened(&x->open, false);
	else if (x->starter->ops->rank == LAYER_CACHE)
		x->starter->ops->metadata(x->starter, &x->open);
	else
		layer_metadata(last_cache(x->layer), &x->open);
}

/* Fetch one object, if one is found. */
static enum search fetch_one(struct layer *l)
{
	struct prefetching *p = l->state;
	struct ahead *x = calloc(1, sizeof(*x));
	struct server *s = l->server;
	struct ask a = { .arrival = tick_now(s->c.tick),
			 .first = true,
			 .later = true,
			 .starter = s->split.start };
	struct plan *over;
	enum search r;
	bool asked;

	if (!x)
		return NONE_NOW;
	x->layer = l;
	x->wait = (struct read_request){ .server = s, .ready = landed };
	x->wait.parts[0].request = &x->wait;
	pthread_mutex_lock(&s->lock);
	r = find_next(p, &a);
	asked = r == FOUND && ask(l, x, &a);
	over = TAKE_PTR(p->over);
	server_unlock(s);
	plan_free(over);
	if (!asked) {
		free(x);
		return r;
	}
	if (x->start)
		start(x, a.arrival);
	read_settle(&x->wait);
	return FOUND;
}

static void *run(void *layer)
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
	struct plan *fresh = plan_new(f, s->c.tree), *over, *before;

	if (!fresh)
		return err_set(err, -ENOMEM, "out of memory");
	pthread_mutex_lock(&s->lock);
	over = TAKE_PTR(p->over);
	end_plan(p);
	before = TAKE_PTR(p->over);
	p->plan = fresh;
	server_unlock(s);
	plan_free(over);
	plan_free(before);
	wake(p);
	return 0;
}

/* What is staged is read as objects. */
static bool prefetch_keeps(struct layer *l, uint32_t node)
{
	const struct prefetching *p = l->state;

	return p->plan || layer_keeps(l, node);
}

static struct object *prefetch_peek(struct layer *l, uint64_t key, bool kept)
{
	const struct prefetching *p = l->state;
	const struct ahead *x = kept ? NULL : find(p, key);

	return x ? x->object : NULL;
}

/* false: this layer is no cache. */
static bool prefetch_forget(struct layer *l, const struct object *o)
{
	struct prefetching *p = l->state;
	struct ahead *x = find(p, o->key);

	if (x && x->object == o) {
		waste(p, x);
		p->paused = true;
	}
	return false;
}

static void prefetch_event(struct layer *l, enum layer_event event,
			   uint64_t key, uint64_t seq)
{
	(void)key;
	(void)seq;
	if (event == LAYER_DROP_CACHE || event == LAYER_SET_CACHE)
		waste_all(l->state);
}

static void prefetch_reset(struct layer *l)
{
	struct prefetching *p = l->state;

	memset(&p->counts, 0, sizeof(p->counts));
	p->counts.most_bytes = p->bytes;
}

static size_t prefetch_stats(struct layer *l,
			     struct layer_stat ret[LAYER_STATS])
{
	const struct prefetching *p = l->state;
	const struct layer_stat all[] = {
		{ "prefetched", p->counts.prefetched },
		{ "from_cache", p->counts.local },
		{ "from_peer", p->counts.peer },
		{ "from_storage", p->counts.storage },
		{ "used", p->counts.used },
		{ "late", p->counts.late },
		{ "missed", p->counts.missed },
		{ "wasted", p->counts.wasted },
		{ "abandoned", p->counts.abandoned },
		{ "in_flight", p->n_flying },
		{ "announced", p->plan ? plan_left(p->plan) : 0 },
		{ "staged_bytes", p->bytes },
		{ "most_bytes", p->counts.most_bytes },
		{ "limit_bytes", p->limit },
	};

	_Static_assert(ARRAY_SIZE(all) <= LAYER_STATS, "they fit");
	memcpy(ret, all, sizeof(all));
	return ARRAY_SIZE(all);
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
	p->limit = c->prefetch_bytes;
	p->depth = MAX(c->prefetch_depth, 1);
	return p->limit <= memory_limit() / 2
		       ? 0
		       : err_set(err, -EINVAL,
				 "--prefetch is more than half of the memory "
				 "that this machine or its control group has");
}

static int prefetch_begin(struct layer *l, struct err *err)
{
	struct prefetching *p = l->state;
	int r = thread_start(&p->thread, NULL, run, l);

	p->runs = r == 0;
	return r < 0 ? err_set(err, r, "prefetch: %s", strerror(-r)) : 0;
}

/* Objects in flight land by themselves, or with the device. */
static void prefetch_stop(struct layer *l)
{
	struct prefetching *p = l->state;
	struct server *s = l->server;
	struct plan *over;

	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	if (p->runs)
		pthread_join(p->thread, NULL);
	p->runs = false;
	pthread_mutex_lock(&s->lock);
	over = TAKE_PTR(p->over);
	end_plan(p);
	server_unlock(s);
	plan_free(over);
}

static void prefetch_fini(struct layer *l)
{
	struct prefetching *p = l->state;

	if (!p->limit) /* idle */
		return;
	plan_free(p->over);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
}

const struct layer_ops layer_prefetch = {
	.plugin = { .name = "prefetch",
		    .summary = "fetch what a loader announces ahead of its "
			       "reads (NoPFS)",
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
