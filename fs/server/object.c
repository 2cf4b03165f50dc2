/* SPDX-License-Identifier: MIT */
#include "fs/server/object.h"

#include <stdlib.h>

#include "common/thread.h"
#include "common/util.h"
#include "fs/server/state.h"

struct object *object_new(struct server *server, uint32_t node, uint32_t extent,
			  uint64_t file_bytes, uint64_t arrival)
{
	struct object *o = calloc(1, sizeof(*o));
	uint64_t offset = (uint64_t)extent * OBJECT_EXTENT;

	if (!o)
		return NULL;
	o->key = object_key(node, extent);
	o->server = server;
	o->bytes = MIN(file_bytes - offset, OBJECT_EXTENT);
	o->refs = 1;
	o->fetch = (struct fetch){ .op = STORAGE_READ,
				   .node = node,
				   .offset = offset,
				   .bytes = o->bytes,
				   .arrival = arrival };
	return o;
}

bool object_fill(struct object *o, struct budget *budget)
{
	if (!budget_take(budget, o->bytes))
		return false;
	o->data = malloc(o->bytes);
	if (!o->data) {
		budget_give(budget, o->bytes);
		return false;
	}
	o->budget = budget;
	o->fetch.buf = o->data;
	return true;
}

void object_borrow(struct object *o, struct object *from)
{
	o->lender = object_get(from->borrows ? from->lender : from);
	o->borrows = true;
	o->data = o->lender->data;
}

/* Its bytes leave the budget: the object is about to be freed. */
static void object_give(struct object *o)
{
	if (o->borrows)
		return;
	if (o->budget)
		budget_give(o->budget, o->bytes);
	o->budget = NULL;
}

struct object *object_get(struct object *o)
{
	__atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED);
	return o;
}

void server_on_backing_close(struct server *s, void (*fn)(int id, void *ctx),
			     void *ctx)
{
	LOCK_SCOPE(&s->backing_lock);
	s->backing_close = fn;
	s->backing_ctx = ctx;
}

static void close_backing(struct server *s, int id)
{
	LOCK_SCOPE(&s->backing_lock);
	if (s->backing_close)
		s->backing_close(id, s->backing_ctx);
}

void object_put(struct object *o)
{
	if (!o || __atomic_fetch_sub(&o->refs, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	if (o->backing_id)
		close_backing(o->server, o->backing_id);
	object_give(o);
	if (o->borrows)
		object_put(o->lender);
	else
		free(o->data);
	free(o);
}

void server_unlock(struct server *s)
{
	struct object *dead = TAKE_PTR(s->dead);

	pthread_mutex_unlock(&s->lock);
	while (dead) {
		struct object *next = dead->next_dead;

		object_put(dead);
		dead = next;
	}
}

void server_put_object(struct object *o)
{
	/* the last reference: no lookup can find it now */
	if (o && __atomic_load_n(&o->refs, __ATOMIC_ACQUIRE) == 1) {
		object_give(o);
		o->next_dead = o->server->dead;
		o->server->dead = o;
	} else {
		object_put(o);
	}
}
