/* SPDX-License-Identifier: MIT */
#include "fs/server/flight.h"

#include "common/util.h"
#include "fs/server/handle.h"
#include "fs/server/hash.h"
#include "fs/server/object.h"
#include "fs/server/request.h"
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

	o->error = stopping ? -ECONNABORTED : f->error;
	flight_land(o->server, &o, 1, f->deadline);
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

struct object *flight_again(struct server *s, struct object *o,
			    uint64_t arrival)
{
	struct object *fresh = flight_new(s, o->key, arrival);

	if (fresh) {
		fresh->fetch.done = done;
		object_borrow(fresh, o);
	}
	return fresh;
}

void flight_cancel(struct server *s, struct object *o)
{
	HASH_DEL(s->flights, o);
	if (o->data)
		s->filling_bytes -= o->bytes;
	server_put_object(o);
}

struct object *flight_join(struct server *s, struct ask *a)
{
	struct object *o = flight_find(s, a->what.key);

	if (!o && !a->paid) {
		o = flight_begin(s, a->what.key, a->arrival);
		a->fresh = o;
	}
	if (a->fresh) {
		o->fetch.later = a->later;
		a->start = &o->fetch;
	}
	return o ? object_get(o) : NULL;
}

/* Under the lock: append the parts that wait for `o` at `end`; returns the new
 * end. */
static struct read_part **arrive(struct server *s, struct object *o,
				 uint64_t deadline, struct read_part **end)
{
	*end = o->waiters;
	for (; *end; end = &(*end)->next)
		(*end)->deadline = deadline;
	o->state = o->error ? OBJECT_FAILED : OBJECT_READY;
	o->waiters = NULL;
	HASH_DEL(s->flights, o);
	if (o->data && !o->borrows)
		s->filling_bytes -= o->bytes;
	if (o->error)
		stack_forget(s, o);
	return end;
}

void flight_land(struct server *s, struct object *const *objects, size_t n,
		 uint64_t deadline)
{
	struct read_part *waiters = NULL, **end = &waiters;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < n; i++)
		end = arrive(s, objects[i], deadline, end);
	server_unlock(s);
	while (waiters) {
		struct read_part *next = waiters->next;

		read_settle(waiters->request);
		waiters = next;
	}
	for (size_t i = 0; i < n; i++)
		object_put(objects[i]);
}
