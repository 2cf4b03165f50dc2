/* SPDX-License-Identifier: MIT */
/*
 * Open files. A handle that is in the middle of an object holds it, so that
 * its next chunk is there whether it is cached or not. This is memory beside
 * the cache, and given up when something else needs it, by the handle that
 * has held longest.
 */
#include "fs/server_private.h"

#include <stdlib.h>

#include <utlist.h>

struct handle *server_open(struct server *s, uint32_t node)
{
	uint64_t bytes = s->c.tree->nodes[node].bytes;
	size_t extents = bytes / OBJECT_EXTENT + 1;
	struct handle *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->node = node;
	h->seen = extents <= 64 ? &h->seen_small
				: calloc(extents / 64 + 1, sizeof(*h->seen));
	if (!h->seen) {
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
	if (h->seen != &h->seen_small)
		free(h->seen);
	free(h);
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

bool server_fill(struct server *s, struct object *o)
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
