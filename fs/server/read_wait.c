/* SPDX-License-Identifier: MIT */
/* What reads wait for: an object arrives, alone or with its group. */
#include "fs/server/server_trace.h"

void read_settle(struct read_request *r)
{
	if (__atomic_sub_fetch(&r->pending, 1, __ATOMIC_ACQ_REL) == 0)
		r->ready(r);
}

void read_uncache(struct server *s, const struct object *o)
{
	struct cache_entry *e = cache_peek(s->cache, o->key);

	if (e && cache_user(e) == o) {
		trace_event(s, TRACE_REMOVE, o->key);
		cache_remove(s->cache, e);
	}
}

struct read_part *read_arrived(struct server *s, struct object *o, int error)
{
	struct read_part *waiters = o->waiters;

	o->error = error;
	o->state = error ? OBJECT_FAILED : OBJECT_READY;
	o->waiters = NULL;
	HASH_DEL(s->flights, o);
	if (o->data)
		s->filling_bytes -= o->bytes;
	if (error)
		read_uncache(s, o);
	return waiters;
}

void read_wake(struct read_part *w)
{
	while (w) {
		struct read_part *next = w->next;

		read_settle(w->request);
		w = next;
	}
}
