/* SPDX-License-Identifier: MIT */
/*
 * A group is one read of the device: charged once, with the bytes of all its
 * members, whichever of them are in memory already. Bytes that are not are
 * really read, one file after the other, on a thread of the fetcher; all
 * members are there when the device is done with the whole group.
 *
 *	miss of a member
 *	  -> the others that are not there: objects in flight, "brought"
 *	  -> offered to the cache, in the group's order, and held by the buffer
 *	first read of a brought member: a hit, served by cache, flight or
 *	buffer; the buffer lets it go
 *
 * Offering is not asking: it is not counted, and no access as far as the
 * policy is concerned; its hit() comes with the first read. The buffer keeps a
 * policy that admits little, or a cache smaller than a group, whose members
 * push each other out, from reading a group once for each member. It is
 * bounded, and displaces its oldest member, which lives on in the cache if it
 * is there, and else is read again with its group when somebody wants it. It
 * holds members that are cached too: they cost nothing twice, and a cache
 * larger than the buffer sees its capacity unchanged, because what was read
 * that lately it still has.
 *
 * A member for which there is no memory (fs/server/budget.h) is brought all the
 *same, without its bytes: a group may be larger than the memory.
 *
 * Single flight: while a group is read each of its missing members is in the
 * table of flights, so a second reader of any of them waits for the same read.
 */
#include "fs/server/group_read.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/util.h"
#include "fs/server/server_trace.h"

_Static_assert(GROUPING_ALONE == OBJECT_EXTENT,
	       "what is read in extents is not brought by a group");

/* --- the buffer --------------------------------------------------------- */

struct held {
	uint64_t key;
	struct object *object; /* a reference */
	struct held *prev, *next;
	UT_hash_handle hh;
};

static struct held *find_held(const struct group_buffer *b, uint64_t key)
{
	struct held *h;

	HASH_FIND(hh, b->index, &key, sizeof(key), h);
	return h;
}

struct object *group_buffer_find(const struct group_buffer *b, uint64_t key)
{
	struct held *h = find_held(b, key);

	return h ? h->object : NULL;
}

/* Its reference is the caller's. */
static struct object *take_out(struct group_buffer *b, struct held *h)
{
	struct object *o = h->object;

	HASH_DEL(b->index, h);
	DL_DELETE(b->queue, h);
	b->bytes -= o->bytes;
	free(h);
	return o;
}

static void let_go(struct group_buffer *b, struct held *h)
{
	server_put_object(take_out(b, h));
}

static void hold(struct group_buffer *b, struct object *o)
{
	struct held *h = o->bytes <= b->limit ? malloc(sizeof(*h)) : NULL;

	if (!h)
		return;
	while (b->bytes + o->bytes > b->limit)
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

void group_buffer_clear(struct group_buffer *b)
{
	while (b->queue)
		object_put(take_out(b, b->queue));
}

/* --- one read ----------------------------------------------------------- */

struct group_fetch {
	struct fetch fetch;
	struct server *server;
	uint32_t n;
	struct object **objects; /* n, each with the flight's reference */
	struct read_part **waiters;
	struct fetch_piece *pieces; /* n */
};

static void group_free(struct group_fetch *g)
{
	free(g->objects);
	free(g->waiters);
	free(g->pieces);
	free(g);
}

static struct group_fetch *group_new(uint32_t n)
{
	struct group_fetch *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->objects = calloc(n, sizeof(struct object *));
	g->waiters = calloc(n, sizeof(struct read_part *));
	g->pieces = calloc(n, sizeof(*g->pieces));
	if (!g->objects || !g->waiters || !g->pieces) {
		group_free(g);
		return NULL;
	}
	return g;
}

static void group_done(struct fetch *f, bool stopping)
{
	struct group_fetch *g = container_of(f, struct group_fetch, fetch);
	struct server *s = g->server;

	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < g->n; i++) {
		struct object *o = g->objects[i];
		struct held *h = find_held(&s->buffer, o->key);

		o->fetch.deadline = f->deadline;
		g->waiters[i] = read_arrived(
			s, o, stopping ? -ECONNABORTED : g->pieces[i].error);
		if (o->error && h && h->object == o)
			let_go(&s->buffer, h);
	}
	server_unlock(s);
	for (uint32_t i = 0; i < g->n; i++) {
		read_wake(g->waiters[i]);
		object_put(g->objects[i]);
	}
	group_free(g);
}

static void add(struct group_fetch *g, struct object *o, uint32_t node)
{
	g->pieces[g->n] =
		(struct fetch_piece){ .node = node, .bytes = o->bytes };
	g->objects[g->n++] = o;
}

static bool is_there(struct server *s, uint64_t key)
{
	struct cache_entry *e = cache_peek(s->cache, key);
	struct object *o;

	HASH_FIND(hh, s->flights, &key, sizeof(key), o);
	return (e && cache_user(e)) || o || find_held(&s->buffer, key);
}

/* What was brought is offered to the cache, and held. */
static void find_places(struct server *s, const struct group_fetch *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		struct object *o = g->objects[i];
		struct cache_object co = { .key = o->key,
					   .bytes = o->bytes,
					   .file_bytes = o->bytes };
		struct cache_entry *e;

		if (!o->brought)
			continue;
		trace_event(s, TRACE_OFFER, o->key);
		e = cache_offer(s->cache, &co);
		if (e && !cache_user(e))
			cache_set_user(e, object_get(o));
		hold(&s->buffer, o);
	}
}

/* Once the cache has made room; of what it did not take, and the buffer not
 * either, nobody will want the bytes. */
static void find_memory(struct server *s, const struct group_fetch *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		struct object *o = g->objects[i];

		if (o->brought &&
		    __atomic_load_n(&o->refs, __ATOMIC_RELAXED) > 1)
			server_fill(s, o);
		g->pieces[i].buf = o->data;
	}
}

bool group_has(const struct server *s, uint32_t node)
{
	return s->c.groups && s->c.groups->of_node[node] != GROUP_NONE;
}

uint32_t group_lead(const struct server *s, uint32_t node)
{
	const struct group_map *m = s->c.groups;

	return group_has(s, node)
		       ? m->groups.file[m->groups.first[m->of_node[node]]]
		       : node;
}

struct fetch *group_bring(struct server *s, struct object *o, uint32_t node,
			  uint64_t arrival)
{
	const struct grouping *all = &s->c.groups->groups;
	uint32_t number = s->c.groups->of_node[node];
	uint32_t first = all->first[number], end = all->first[number + 1];
	struct group_fetch *g = group_new(end - first);

	if (!g)
		return &o->fetch;
	g->server = s;
	g->fetch = (struct fetch){ .op = STORAGE_READ,
				   .node = all->file[first],
				   .pieces = g->pieces,
				   .arrival = arrival,
				   .done = group_done };
	for (uint32_t i = first; i < end; i++) {
		uint32_t member = all->file[i];
		uint64_t bytes = s->c.tree->nodes[member].bytes;
		struct object *x = o;

		if (!bytes || s->c.groups->of_node[member] == GROUP_NONE)
			continue;
		g->fetch.bytes += bytes;
		if (member != node) {
			if (is_there(s, object_key(member, 0)))
				continue;
			x = object_fly(&s->flights, object_new(s, member, 0,
							       bytes, arrival));
			if (!x)
				continue; /* it will be missed later */
			x->brought = true;
		}
		add(g, x, member);
	}
	g->fetch.n_pieces = g->n;
	find_places(s, g);
	find_memory(s, g);
	return &g->fetch;
}

void group_asked(struct server *s, struct object *o, bool was_hit,
		 bool was_rejected)
{
	struct held *h = find_held(&s->buffer, o->key);

	if (!o->brought)
		return;
	o->brought = false;
	s->group_hits++;
	s->group_hit_bytes += o->bytes;
	if (h)
		let_go(&s->buffer, h);
	if (was_hit)
		return;
	/* the cache counted a miss that cost no read */
	s->unmissed.hits++;
	s->unmissed.hit_bytes += o->bytes;
	s->unmissed.rejected += was_rejected;
}
