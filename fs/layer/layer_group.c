/* SPDX-License-Identifier: MIT */
/*
 * A group is one read of the device. It is charged once, with the bytes of all
 * its members, even of those in memory already. The bytes of the others are
 * really read, file by file, on a thread of the fetcher. All members arrive
 * when the device has read the whole group.
 *
 *	miss of a member
 *	  -> the others not in memory: in flight, marked `prefetched_by`
 *	  -> offered to the cache, in the group's order, and held by the buffer
 *	first read of a prefetched member: a hit, served by cache, flight or
 *	buffer; the buffer drops it
 *
 * An offer is not counted and is no access for the policy; the first read calls
 * its hit(). The buffer is for a policy that admits little, and for a cache
 * smaller than a group, whose members evict each other: without the buffer each
 * member would read the whole group again. The buffer is bounded and drops its
 * oldest member. That one stays in the cache if it was admitted; otherwise its
 * next read reads the group again. The buffer also holds members that are
 * cached: they share the memory, and a cache larger than the buffer keeps its
 * full capacity, because it still contains objects read so recently.
 *
 * A member without memory (fs/server/budget.h) is prefetched all the same,
 * without its bytes: a group may be larger than the memory.
 *
 * Single flight: while a group is read, all its missing members are in the
 * table of flights. A second reader of any of them waits for the same read.
 */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/util.h"
#include "fs/server/flight.h"
#include "fs/server/handle.h"
#include "fs/server/hash.h"
#include "fs/server/stack.h"

_Static_assert(GROUPING_ALONE == OBJECT_EXTENT,
	       "files that are read in extents are not fetched by a group");

/* arbitrary: several groups of 64 ImageNet files, for loader workers that each
 * read a different group */
#define LEAST_BUFFER (64 * MIB)

/* --- the buffer --------------------------------------------------------- */

/* Members of the groups read last, before their first read, cached or not. The
 * oldest is dropped first. */
struct buffer {
	struct held *index; /* uthash by key */
	struct held *queue; /* oldest first */
	uint64_t bytes;
};

struct grouped {
	const struct group_map *map;
	/* the server's lock guards all below but `limit`, a constant */
	struct buffer *buffer;
	uint64_t limit;
	uint64_t hits, hit_bytes; /* first reads of prefetched members */
};

struct held {
	uint64_t key;
	struct object *object; /* a reference */
	struct held *prev, *next;
	UT_hash_handle hh;
};

static struct held *find_held(const struct buffer *b, uint64_t key)
{
	struct held *h;

	HASH_FIND(hh, b->index, &key, sizeof(key), h);
	return h;
}

/* The reference passes to the caller. */
static struct object *take_out(struct buffer *b, struct held *h)
{
	struct object *o = h->object;

	HASH_DEL(b->index, h);
	DL_DELETE(b->queue, h);
	b->bytes -= o->bytes;
	free(h);
	return o;
}

static void let_go(struct buffer *b, struct held *h)
{
	server_put_object(take_out(b, h));
}

static void hold(struct grouped *g, struct object *o)
{
	struct held *h = o->bytes <= g->limit ? malloc(sizeof(*h)) : NULL;
	struct buffer *b = g->buffer;

	if (!h)
		return;
	while (b->bytes + o->bytes > g->limit)
		let_go(b, b->queue);
	h->key = o->key;
	if (!HASH_TRY_ADD(b->index, key, h)) {
		free(h);
		return;
	}
	h->object = object_get(o);
	b->bytes += o->bytes;
	DL_APPEND(b->queue, h);
}

/* Not for the buffer in use. */
static void buffer_free(struct buffer *b)
{
	while (b && b->queue)
		object_put(take_out(b, b->queue));
	free(b);
}

/* --- one read ----------------------------------------------------------- */

struct group_fetch {
	struct fetch fetch;
	struct server *server;
	uint32_t n;
	struct object **objects;    /* n, each with the flight's reference */
	struct fetch_piece *pieces; /* n */
};

static void group_free(struct group_fetch *g)
{
	free(g->objects);
	free(g->pieces);
	free(g);
}

static struct group_fetch *group_new(uint32_t n)
{
	struct group_fetch *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->objects = calloc(n, sizeof(struct object *));
	g->pieces = calloc(n, sizeof(*g->pieces));
	if (!g->objects || !g->pieces) {
		group_free(g);
		return NULL;
	}
	return g;
}

static void group_done(struct fetch *f, bool stopping)
{
	struct group_fetch *g = container_of(f, struct group_fetch, fetch);

	for (uint32_t i = 0; i < g->n; i++)
		g->objects[i]->error = stopping ? -ECONNABORTED
						: g->pieces[i].error;
	flight_land(g->server, g->objects, g->n, f->deadline);
	group_free(g);
}

static void add_object(struct group_fetch *g, struct object *o, uint32_t node)
{
	g->pieces[g->n] =
		(struct fetch_piece){ .node = node, .bytes = o->bytes };
	g->objects[g->n++] = o;
}

static bool is_there(struct server *s, uint64_t key)
{
	return stack_peek(s, key, false) || flight_find(s, key);
}

/* Offer the prefetched members to the caches above, and hold them. */
static void find_places(struct layer *l, const struct group_fetch *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		struct object *o = g->objects[i];

		if (!o->prefetched_by)
			continue;
		stack_event(l->server, LAYER_OFFER, o->key);
		layer_offer(l, o);
		hold(l->state, o);
	}
}

/* After the caches have made room. A member that neither a cache nor the buffer
 * took needs no bytes. */
static void find_memory(struct server *s, const struct group_fetch *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		struct object *o = g->objects[i];

		if (o->prefetched_by &&
		    __atomic_load_n(&o->refs, __ATOMIC_RELAXED) > 1)
			handle_fill(s, o);
		g->pieces[i].buf = o->data;
	}
}

/* Put all missing members in flight: a->object is already; the others are
 * prefetched. */
static void add_members(struct layer *l, struct group_fetch *g,
			const struct ask *a)
{
	const struct grouped *all = l->state;
	const struct grouping *groups = &all->map->groups;
	uint32_t number = all->map->of_node[a->node];
	struct server *s = l->server;

	for (uint32_t i = groups->first[number]; i < groups->first[number + 1];
	     i++) {
		uint32_t member = groups->file[i];
		uint64_t bytes = s->c.tree->nodes[member].bytes;
		uint64_t key = object_key(member, 0);
		struct object *x = a->object;

		if (!bytes || all->map->of_node[member] == GROUP_NONE)
			continue;
		g->fetch.bytes += bytes;
		if (member != a->node) {
			if (is_there(s, key))
				continue;
			x = flight_new(s, key, a->arrival);
			if (!x)
				continue; /* it will be a miss later */
			x->prefetched_by = l->number;
		}
		add_object(g, x, member);
	}
	g->fetch.n_pieces = g->n;
}

/* a->object is missing and its file is in a group: fetch the whole group.
 * Without memory it is fetched alone. */
static void fetch_group(struct layer *l, struct ask *a)
{
	const struct grouped *all = l->state;
	const struct grouping *groups = &all->map->groups;
	uint32_t number = all->map->of_node[a->node];
	uint32_t first = groups->first[number];
	struct group_fetch *g = group_new(groups->first[number + 1] - first);

	if (!g)
		return;
	g->server = l->server;
	g->fetch = (struct fetch){ .op = STORAGE_READ,
				   .node = groups->file[first],
				   .pieces = g->pieces,
				   .arrival = a->arrival,
				   .done = group_done };
	add_members(l, g, a);
	find_places(l, g);
	find_memory(l->server, g);
	a->offered = true;
	a->start = &g->fetch;
}

/* --- the layer ------------------------------------------------------------ */

static int grouped_ask(struct layer *l, struct ask *a)
{
	const struct grouped *g = l->state;
	struct held *h = find_held(g->buffer, a->what.key);
	int r = 0;

	if (h)
		a->object = object_get(h->object);
	else
		r = layer_ask(l, a);
	if (a->fresh && group_map_has(g->map, a->node))
		fetch_group(l, a);
	else if (a->first && a->object && a->object->prefetched_by)
		stack_accessed(l->server, a->object, a);
	return r;
}

static void grouped_accessed(struct layer *l, struct object *o,
			     const struct ask *a)
{
	struct grouped *g = l->state;
	struct held *h = find_held(g->buffer, o->key);

	(void)a;
	g->hits++;
	g->hit_bytes += o->bytes;
	if (h)
		let_go(g->buffer, h);
}

/* Prefetched members stay here until they are read. */
static bool grouped_keeps(struct layer *l, uint32_t node)
{
	const struct grouped *g = l->state;

	return group_map_has(g->map, node) || layer_keeps(l, node);
}

static struct object *grouped_peek(struct layer *l, uint64_t key, bool kept)
{
	const struct grouped *g = l->state;
	struct held *h = kept ? NULL : find_held(g->buffer, key);

	return h ? h->object : NULL;
}

/* false: this layer is no cache. */
static bool grouped_forget(struct layer *l, const struct object *o)
{
	const struct grouped *g = l->state;
	struct held *h = find_held(g->buffer, o->key);

	if (h && h->object == o)
		let_go(g->buffer, h);
	return false;
}

/* The open of a prefetched file is free. */
static void grouped_metadata(struct layer *l, struct fetch *f)
{
	if (stack_opens(l, f))
		f->done(f, false);
	else
		layer_metadata(l, f);
}

static int grouped_init(struct layer *l, struct err *err)
{
	const struct server_config *c = &l->server->c;
	struct grouped *g = l->state;

	if (!c->groups)
		return LAYER_IDLE;
	g->map = c->groups;
	g->limit = c->group_buffer
			   ? c->group_buffer
			   : MAX(LEAST_BUFFER, 2 * c->groups->largest_bytes);
	g->buffer = calloc(1, sizeof(*g->buffer));
	return g->buffer ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static void grouped_fini(struct layer *l)
{
	struct grouped *g = l->state;

	buffer_free(g->buffer);
}

static int grouped_renew(struct layer *l, const struct layer_change *c,
			 void **ret, struct err *err)
{
	(void)l;
	(void)c;
	*ret = calloc(1, sizeof(struct buffer));
	return *ret ? 0 : err_set(err, -ENOMEM, "out of memory");
}

static void grouped_swap(struct layer *l, void **fresh)
{
	struct grouped *g = l->state;
	struct buffer *old = g->buffer;

	g->buffer = *fresh;
	*fresh = old;
}

static void grouped_discard(struct layer *l, void *old)
{
	(void)l;
	buffer_free(old);
}

static void grouped_reset(struct layer *l)
{
	struct grouped *g = l->state;

	g->hits = g->hit_bytes = 0;
}

static size_t grouped_stats(struct layer *l, struct layer_stat ret[LAYER_STATS])
{
	const struct grouped *g = l->state;

	ret[0] = (struct layer_stat){ "groups", g->map->groups.n_groups };
	ret[1] = (struct layer_stat){ "group_hits", g->hits };
	ret[2] = (struct layer_stat){ "group_hit_bytes", g->hit_bytes };
	ret[3] = (struct layer_stat){ "group_buffer_bytes", g->buffer->bytes };
	return 4;
}

const struct layer_ops layer_group = {
	.plugin = { .name = "group",
		    .summary = "a miss fetches all files of its group",
		    .state_size = sizeof(struct grouped) },
	.rank = LAYER_FETCH,
	.init = grouped_init,
	.fini = grouped_fini,
	.ask = grouped_ask,
	.accessed = grouped_accessed,
	.keeps = grouped_keeps,
	.peek = grouped_peek,
	.forget = grouped_forget,
	.metadata = grouped_metadata,
	.renew = grouped_renew,
	.swap = grouped_swap,
	.discard = grouped_discard,
	.reset = grouped_reset,
	.stats = grouped_stats,
};
