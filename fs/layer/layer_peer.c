/* SPDX-License-Identifier: MIT */
/*
 * A partitioned cache: the caches of several nodes hold each object once, and
 * copies in the remaining space (fs/peer/place.h). The caches above admit only
 * what this node keeps. A fetch goes to the owner of the object, or to the
 * storage if no node owns it or the owner does not reply.
 *
 *	start	of another node's object: to the owner --> bytes, or --+
 *		else, and after that: the layer below <----------------+
 *	open	of another node's file: free, like that of a cached one
 *	serve	another node requests an object of this one: from the cache, or
 *		from the storage into the cache
 *
 * So each object is read from storage once, whichever node needs it first, and
 * never again while its owner is connected and keeps it.
 *
 * Only the owner serves, so a request never leads to another one. For the
 * caches it is an access like any other: they count it, and admit the object
 * on a miss. The mount counts neither a hit nor a miss. The read_request that
 * waits for the object belongs to no open file, and holds a reference until
 * the bytes are sent.
 */
#include <errno.h>

#include "common/tick.h"
#include "common/util.h"
#include "fs/layer/trace.h"
#include "fs/peer/foresee.h"
#include "fs/peer/peer_net.h"
#include "fs/peer/peers.h"
#include "fs/server/flight.h"
#include "fs/server/stack.h"

struct peering {
	struct peers *peers;
	struct place *place;
};

/* --- requesting ----------------------------------------------------------- */

static void peer_start(struct layer *l, struct fetch *f)
{
	struct peering *p = l->state;

	/* an object with memory for its bytes */
	if (f->op == STORAGE_READ && f->buf && !f->apart && !f->n_pieces &&
	    peers_want(p->peers, f))
		return;
	layer_start(l, f);
}

/* From now on it takes the time of the storage. */
static void miss(void *ctx, struct fetch *f)
{
	struct layer *l = ctx;

	f->arrival = tick_now(l->server->c.tick);
	f->later = true;
	layer_start(l, f);
}

static void peer_metadata(struct layer *l, struct fetch *f)
{
	const struct peering *p = l->state;

	/* not a probe of the calibration */
	if (fetch_opens(f) && !f->takes &&
	    place_bytes(p->place, object_key(f->node, 0)) &&
	    peers_have(p->peers, object_key(f->node, 0)))
		f->done(f, false);
	else
		layer_metadata(l, f);
}

static bool peer_admits(struct layer *l, uint64_t key, unsigned tier)
{
	const struct peering *p = l->state;

	return place_keeps(p->place, key, tier) && layer_admits(l, key, tier);
}

/* All nodes get the same future, and place alike. */
static int peer_place(struct layer *l, const struct future *f, struct err *err)
{
	const struct peering *p = l->state;
	struct server *s = l->server;
	struct foresee_tiers tiers = { .bytes = s->tiers };

	/* constant: the cache of a mount with peers does not change */
	while (tiers.n < MOST_LAYERS && s->tiers[tiers.n])
		tiers.n++;
	return foresee(p->place, f, &tiers, err);
}

static bool peer_owner(struct layer *l, uint32_t node, uint32_t *ret)
{
	const struct peering *p = l->state;
	uint64_t key = object_key(node, 0);

	if (!place_bytes(p->place, key))
		return false;
	*ret = place_owner(p->place, key);
	return *ret != PLACE_NONE;
}

/* --- serving -------------------------------------------------------------- */

struct serving {
	struct peer_ask ask; /* the first member */
	struct read_request request;
	struct peers *peers;
	uint64_t arrival;
	bool asked, hit; /* this node has the object, and had it */
};

static void release(struct peer_ask *a)
{
	struct serving *v = container_of(a, struct serving, ask);

	object_put(v->request.parts[0].object);
	free(v);
}

/* A line in the trace. It has no place in the order of accesses: a simulated
 * cache has no peers. */
static void trace_serving(const struct serving *v, const struct object *o)
{
	const struct server *s = v->request.server;
	struct trace_record r = { .time = v->arrival,
				  .node = (uint32_t)(v->ask.key >> 32),
				  .offset = (uint64_t)(uint32_t)v->ask.key *
					    OBJECT_EXTENT,
				  .bytes = v->ask.bytes,
				  .error = (uint16_t)(o ? -o->error : ENOENT),
				  .op = TRACE_SERVE,
				  .result = v->hit ? TRACE_HIT : TRACE_MISS };
	uint64_t now = tick_now(s->c.tick);

	r.achieved = now > r.time ? now - r.time : 0;
	if (s->c.trace && v->asked)
		trace_add(s->c.trace, &r);
}

/* The object is ready, or failed, or there is none. Any thread. */
static void served(struct read_request *r)
{
	struct serving *v = container_of(r, struct serving, request);
	const struct object *o = r->parts[0].object;

	v->ask.data = o && !o->error ? o->data : NULL;
	trace_serving(v, o);
	peers_answer(v->peers, &v->ask);
}

/* Under the lock: `o` is the reply; takes its reference. */
static void wait_for(struct serving *v, struct object *o)
{
	struct read_part *p = &v->request.parts[0];

	p->object = o;
	if (o->state != OBJECT_FETCHING)
		return;
	p->next = o->waiters;
	o->waiters = p;
	v->request.pending++;
}

static void serve(void *ctx, struct peer_ask *ask)
{
	struct serving *v = container_of(ask, struct serving, ask);
	struct layer *l = ctx;
	const struct peering *p = l->state;
	struct server *s = l->server;
	uint64_t bytes = place_bytes(p->place, ask->key);
	uint32_t node = (uint32_t)(ask->key >> 32);
	struct ask a = { .what = { .key = ask->key, .bytes = bytes },
			 .node = node,
			 .arrival = tick_now(s->c.tick),
			 .first = true,
			 .later = true,
			 .remote = true,
			 .starter = s->split.start };

	ask->release = release;
	v->peers = p->peers;
	v->request = (struct read_request){ .server = s,
					    .pending = 1,
					    .ready = served };
	v->request.parts[0].request = &v->request;
	v->arrival = a.arrival;
	v->asked = v->hit = false;
	if (bytes && bytes == ask->bytes &&
	    place_owner(p->place, ask->key) == s->c.peers->self) {
		a.what.file_bytes = s->c.tree->nodes[node].bytes;
		pthread_mutex_lock(&s->lock);
		if (layer_ask(&s->split, &a) == 0)
			wait_for(v, a.object);
		v->asked = true;
		v->hit = a.hit;
		server_unlock(s);
	}
	if (a.start)
		a.starter->ops->start(a.starter, a.start);
	read_settle(&v->request);
}

/* --- life ----------------------------------------------------------------- */

static int peer_init(struct layer *l, struct err *err)
{
	const struct server *s = l->server;
	struct peering *p = l->state;
	struct peers_config c = { .tick = s->c.tick,
				  .net = s->c.peers,
				  .tree = s->c.tree,
				  .seed = s->c.seed,
				  .capacity_bytes = s->capacity,
				  .extent_bytes = OBJECT_EXTENT,
				  .miss = miss,
				  .serve = serve,
				  .ask_size = sizeof(struct serving),
				  .ctx = l };
	int r;

	if (!s->c.peers)
		return LAYER_IDLE;
	r = peers_new(&c, &p->peers, err);
	if (r == 0)
		p->place = peers_place(p->peers);
	return r;
}

static int peer_begin(struct layer *l, struct err *err)
{
	const struct peering *p = l->state;

	return peers_start(p->peers, err);
}

static void peer_stop(struct layer *l)
{
	const struct peering *p = l->state;

	peers_stop(p->peers);
}

static void peer_fini(struct layer *l)
{
	const struct peering *p = l->state;

	peers_free(p->peers);
}

/* The other nodes have computed the placement from this cache's size. */
static int peer_renew(struct layer *l, const struct layer_change *c, void **ret,
		      struct err *err)
{
	(void)l;
	*ret = NULL;
	return c ? err_set(err, -EINVAL,
			   "the cache of a mount with --peers cannot change: "
			   "the other nodes rely on it")
		 : 0;
}

/* --- numbers -------------------------------------------------------------- */

static void peer_reset(struct layer *l)
{
	const struct peering *p = l->state;

	peers_reset(p->peers);
}

static size_t peer_stats(struct layer *l, struct layer_stat ret[LAYER_STATS])
{
	const struct peering *p = l->state;
	struct place_sums sums = place_sums(p->place);
	uint64_t connected, in, out;
	struct peer_counts n = peers_counts(p->peers, &connected);

	peers_bytes(p->peers, &in, &out);
	const struct layer_stat all[] = {
		{ "hits", n.hits },
		{ "hit_bytes", n.hit_bytes },
		{ "notfound", n.notfound },
		{ "unanswered", n.unanswered },
		{ "skipped", n.skipped },
		{ "connected", connected },
		{ "lost", n.lost },
		{ "timeouts", n.timeouts },
		{ "refused", n.refused },
		{ "served", n.served },
		{ "served_bytes", n.served_bytes },
		{ "served_notfound", n.served_notfound },
		{ "sent_bytes", out },
		{ "received_bytes", in },
		{ "owned_bytes", sums.owned },
		{ "surplus_bytes", sums.surplus },
	};

	_Static_assert(ARRAY_SIZE(all) <= LAYER_STATS, "they fit");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		ret[i] = all[i];
	return ARRAY_SIZE(all);
}

/* The part is the mount's "peer", too. */
static void peer_json(struct layer *l, json_t *stats, json_t *part)
{
	const struct peering *p = l->state;

	peers_json(p->peers, part);
	json_object_set(stats, "peer", part);
}

const struct layer_ops layer_peer = {
	.plugin = { .name = "peer",
		    .summary = "fetch from the caches of other nodes",
		    .state_size = sizeof(struct peering) },
	.rank = LAYER_FETCH,
	.init = peer_init,
	.begin = peer_begin,
	.fini = peer_fini,
	.stop = peer_stop,
	.start = peer_start,
	.metadata = peer_metadata,
	.admits = peer_admits,
	.owner = peer_owner,
	.place = peer_place,
	.renew = peer_renew,
	.reset = peer_reset,
	.stats = peer_stats,
	.json = peer_json,
};
