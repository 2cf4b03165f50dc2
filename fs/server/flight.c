/* SPDX-License-Identifier: MIT */
#include "fs/server/flight.h"

#include "common/util.h"
#include "fs/server/hash.h"
#include "fs/server/stack.h"

struct object *flight_find(const struct server *s, uint64_t key)
{
	struct object *o;

	HASH_FIND(hh, s->flights, &key, sizeof(key), o);
	return o;
}

struct object *flight_new(struct server *s, uint64_t key, uint64_t arrival)
{
	uint32_t node = (uint32_t)(key >> 32);
	struct object *o = object_new(s, node, (uint32_t)key,
				      s->c.tree->nodes[node].bytes, arrival);

	if (o && !HASH_TRY_ADD(s->flights, key, o)) {
		object_put(o);
		return NULL;
	}
	return o;
}

static void done(struct fetch *f, bool stopping)
{
	struct object *o = container_of(f, struct object, fetch);
	struct server *s = o->server;
	struct read_part *w;

	pthread_mutex_lock(&s->lock);
	w = flight_arrived(s, o, f->deadline,
			   stopping ? -ECONNABORTED : f->error);
	server_unlock(s);
	flight_wake(w);
	object_put(o);
}

struct object *flight_begin(struct server *s, uint64_t key, uint64_t arrival)
{
	struct object *o = flight_new(s, key, arrival);

	if (o) {
		o->fetch.done = done;
		handle_fill(s, o);
	}
	return o;
}

void flight_cancel(struct server *s, struct object *o)
{
	HASH_DEL(s->flights, o);
	if (o->data)
		s->filling_bytes -= o->bytes;
	server_put_object(o);
}

struct read_part *flight_arrived(struct server *s, struct object *o,
				 uint64_t deadline, int error)
{
	struct read_part *waiters = o->waiters;

	o->error = error;
	o->state = error ? OBJECT_FAILED : OBJECT_READY;
	o->waiters = NULL;
	HASH_DEL(s->flights, o);
	if (o->data)
		s->filling_bytes -= o->bytes;
	for (struct read_part *w = waiters; w; w = w->next)
		w->deadline = deadline;
	if (error)
		stack_forget(s, o);
	return waiters;
}

void flight_wake(struct read_part *w)
{
	while (w) {
		struct read_part *next = w->next;

		read_settle(w->request);
		w = next;
	}
}
