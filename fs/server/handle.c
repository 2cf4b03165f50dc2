/* SPDX-License-Identifier: MIT */
#include "fs/server/handle.h"

#include <stdlib.h>

#include <utlist.h>

#include "fs/server/state.h"

/* arbitrary: the bits of 2000 open files of 1 TiB */
enum { MOST_SEEN_BYTES = 64 << 20 };

/* The bits of a large file; NULL: no memory. */
static uint64_t *seen_new(struct server *s, size_t words)
{
	uint64_t bytes = words * sizeof(uint64_t);
	uint64_t all =
		__atomic_add_fetch(&s->seen_bytes, bytes, __ATOMIC_RELAXED);
	uint64_t *seen = all <= MOST_SEEN_BYTES || all == bytes
				 ? calloc(1, bytes)
				 : NULL;

	if (!seen)
		__atomic_fetch_sub(&s->seen_bytes, bytes, __ATOMIC_RELAXED);
	return seen;
}

static uint64_t bytes_of(const struct server *s, uint32_t node)
{
	return s->c.tree->nodes[node].bytes;
}

struct handle *server_open(struct server *s, uint32_t node)
{
	size_t words = visit_words(bytes_of(s, node));
	struct handle *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->node = node;
	h->visit.seen = words == 1 ? &h->seen_small : seen_new(s, words);
	if (!h->visit.seen) {
		free(h);
		return NULL;
	}
	return h;
}

void server_close(struct server *s, struct handle *h)
{
	if (h->was_held) {
		pthread_mutex_lock(&s->lock);
		handle_hold(s, h, NULL);
		server_unlock(s);
	}
	if (h->visit.seen != &h->seen_small) {
		__atomic_fetch_sub(&s->seen_bytes,
				   visit_words(bytes_of(s, h->node)) *
					   sizeof(*h->visit.seen),
				   __ATOMIC_RELAXED);
		free(h->visit.seen);
	}
	free(h);
}

void handle_turn(struct server *s, struct handle *h, uint64_t offset,
		 uint64_t bytes)
{
	if (visit_turn(&h->visit, s->epoch, bytes_of(s, h->node), offset,
		       offset + bytes))
		handle_hold(s, h, NULL);
}

void handle_hold(struct server *s, struct handle *h, struct object *o)
{
	if (h->held == o)
		return;
	if (h->held) {
		DL_DELETE(s->holders, h);
		s->held_bytes -= h->held->bytes;
		server_put_object(h->held);
	}
	h->held = o ? object_get(o) : NULL;
	if (o) {
		h->was_held = true;
		DL_APPEND(s->holders, h);
		s->held_bytes += o->bytes;
	}
}

bool handle_fill(struct server *s, struct object *o)
{
	while (!object_fill(o, &s->budget)) {
		if (!s->holders ||
		    budget_lacks(&s->budget, o->bytes) > s->held_bytes)
			return false;
		handle_hold(s, s->holders, NULL);
	}
	s->filling_bytes += o->bytes;
	return true;
}
