/* SPDX-License-Identifier: MIT */
/*
 * Splits reads: above this point a request is whole, below it consists of
 * objects.
 *
 * A read of a file has one or two parts, each a piece of an object. Under the
 * lock each part asks the layers below for its object, unless its handle holds
 * it. Then, without the lock, the fetches of new objects start. The request
 * counts the objects that are still in flight, plus one for its own set-up. The
 * last completion sends the answer up, from the objects' memory.
 *
 * Accesses are counted in the order in which objects are first requested, not
 * in which they arrive: for its policy an object is cached from the moment of
 * its miss. So hits depend only on the order of the reads, and gpemu-cachesim
 * can count the same.
 *
 * If no layer keeps objects of a file, a read goes to the device unsplit.
 *
 * If an object has no bytes, or is gone in the middle of its reads, accounting
 * and device time stay the same. Meanwhile the request reads its bytes from the
 * source again, for itself (fs/server/budget.h).
 */
#include "fs/server/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/thread.h"
#include "common/util.h"
#include "fs/server/flight.h"
#include "fs/server/handle.h"
#include "fs/server/object.h"
#include "fs/server/stack.h"

/* Before the reply: its receiver may read the stats at once. */
static void count_delivered(struct server *s, uint64_t bytes)
{
	__atomic_fetch_add(&s->delivered_bytes, bytes, __ATOMIC_RELAXED);
}

/* Read the bytes of a request once it has memory; it may have waited. */
static void read_bytes(struct server *s, struct read_request *r, bool later)
{
	r->raw.buf = malloc(r->bytes);
	if (!r->raw.buf)
		r->raw.error = -ENOMEM;
	r->raw.later = later || r->later;
	fetch_read(s->fetcher, &r->raw);
}

static void go_on(struct server *s, struct budget_wait *w,
		  const struct read_request *own)
{
	while (w) {
		struct read_request *r =
			container_of(w, struct read_request, room);

		w = w->next;
		read_bytes(s, r, r != own);
	}
}

/* Read into r->raw as soon as there is memory. */
static void want_bytes(struct server *s, struct read_request *r)
{
	r->room.bytes = r->bytes;
	go_on(s, budget_answer(&s->budget, &r->room), r);
}

/* After the reply: free the request's own buffer. */
static void free_bytes(struct server *s, void *buf, struct budget_wait room)
{
	free(buf);
	go_on(s, budget_answered(&s->budget, &room), NULL);
}

bool server_borrow(struct server *s, struct budget_wait *w)
{
	return budget_try_answer(&s->budget, w);
}

void server_return(struct server *s, struct budget_wait *w)
{
	if (w->has)
		go_on(s, budget_answered(&s->budget, w), NULL);
}

void read_stop(struct server *s)
{
	struct budget_wait *w = budget_stop(&s->budget);

	while (w) {
		struct read_request *r =
			container_of(w, struct read_request, room);

		w = w->next;
		fetch_end(s->fetcher, &r->raw);
	}
}

/* A failed read was not paid for: the next chunk reads the device again. */
static void forget_failed(struct server *s, struct read_request *r)
{
	LOCK_SCOPE(&s->lock);
	for (int i = 0; i < r->n_parts; i++) {
		const struct object *o = r->parts[i].object;

		if (o && (o->error || !o->data) &&
		    r->handle->visit.paid == o->key)
			r->handle->visit.paid = 0;
	}
}

static void gather(struct read_request *r, struct iovec iov[READ_PARTS],
		   struct object *objects[READ_PARTS])
{
	for (int i = 0; i < r->n_parts; i++) {
		const struct read_part *p = &r->parts[i];

		objects[i] = p->object;
		if (p->object && p->object->error && !r->error)
			r->error = p->object->error;
		iov[i].iov_len = p->bytes;
		if (r->error) /* there may be no buffer */
			continue;
		iov[i].iov_base = r->again ? (unsigned char *)r->raw.buf +
						     (i ? r->parts[0].bytes : 0)
					   : p->object->data + p->offset;
	}
	if (r->error)
		forget_failed(r->server, r);
}

static void finish_read(struct read_request *r)
{
	struct object *objects[READ_PARTS] = { 0 };
	struct iovec iov[READ_PARTS] = { 0 };
	struct answer a = { .iov = iov };
	struct server *s = r->server;
	struct budget_wait room = r->room;
	void *buf = r->again ? r->raw.buf : NULL;
	bool again = r->again;

	gather(r, iov, objects);
	a.error = r->error;
	a.n_iov = r->error ? 0 : r->n_parts;
	if (!r->error)
		count_delivered(s, r->bytes);
	layer_answer(&s->split, r, &a);
	for (int i = 0; i < READ_PARTS; i++)
		object_put(objects[i]);
	if (again)
		free_bytes(s, buf, room);
}

/* A fetch, and the layer that starts it. */
struct begin {
	struct fetch *fetch;
	struct layer *by;
};

static struct ask ask_of(struct server *s, const struct read_request *r,
			 uint32_t extent)
{
	uint32_t node = r->handle->node;
	uint64_t file_bytes = s->c.tree->nodes[node].bytes;
	uint64_t offset = (uint64_t)extent * OBJECT_EXTENT;

	return (struct ask){ .what = { .key = object_key(node, extent),
				       .bytes = MIN(file_bytes - offset,
						    OBJECT_EXTENT),
				       .file_bytes = file_bytes },
			     .node = node,
			     .arrival = r->arrival,
			     .first = visit_first(&r->handle->visit, extent),
			     .later = r->later,
			     .starter = s->split.start };
}

/* Ask the stack; number the access before, count it after. */
static int ask(struct server *s, struct ask *a, struct read_part *p)
{
	int r;

	if (a->first)
		p->seq = ++s->seq;
	r = layer_ask(&s->split, a);
	if (a->first)
		server_count(s, a);
	p->hit = a->hit;
	p->object = a->object;
	return r;
}

/*
 * The object of an extent, with a reference, for p; *ret: the fetch to be
 * started, if any. No object: it was paid for and no layer has it any more.
 * -ENOMEM.
 */
static int obtain(struct server *s, struct read_request *r, uint32_t extent,
		  struct read_part *p, struct begin *ret)
{
	struct handle *h = r->handle;
	struct ask a = ask_of(s, r, extent);
	struct object *o;
	int e;

	*ret = (struct begin){ 0 };
	a.paid = h->visit.paid == a.what.key;
	if (a.paid && h->held) {
		p->object = object_get(h->held);
	} else {
		e = ask(s, &a, p);
		if (e < 0 || !p->object)
			return e;
		*ret = (struct begin){ a.start, a.starter };
	}
	o = p->object;
	if (o->state == OBJECT_FETCHING && !a.fresh && !a.paid &&
	    o->fetch.op == STORAGE_READ)
		s->coalesced++;
	h->visit.paid = a.what.key;
	handle_hold(s, h,
		    o->data && p->offset + p->bytes < o->bytes ? o : NULL);
	return 0;
}

/* The part of the request that starts at `at`. */
static struct read_part part_at(struct read_request *r, uint64_t at)
{
	uint64_t from = at / OBJECT_EXTENT * OBJECT_EXTENT;
	uint64_t end = r->offset + r->bytes;

	return (struct read_part){ .offset = at - from,
				   .bytes = MIN(end, from + OBJECT_EXTENT) - at,
				   .request = r,
				   .number = (uint32_t)r->n_parts };
}

/* Under the lock: split the request into parts, note what to wait for. */
static int prepare(struct server *s, struct read_request *r,
		   struct begin start[READ_PARTS])
{
	uint64_t at = r->offset, end = r->offset + r->bytes;
	int n_start = 0;

	handle_turn(s, r->handle, r->offset, r->bytes);
	while (at < end) {
		struct read_part *p = &r->parts[r->n_parts];

		*p = part_at(r, at);
		r->error = obtain(s, r, (uint32_t)(at / OBJECT_EXTENT), p,
				  &start[n_start]);
		if (r->error < 0)
			break;
		if (start[n_start].fetch)
			start[n_start++].fetch->answered = p->bytes;
		r->n_parts++;
		r->again = r->again || !p->object || !p->object->data;
		if (p->object && p->object->state == OBJECT_FETCHING) {
			p->next = p->object->waiters;
			p->object->waiters = p;
			r->pending++;
		}
		at += p->bytes;
	}
	r->again = r->again && !r->error;
	r->pending += r->again;
	return n_start;
}

static void raw_done(struct fetch *f, bool stopping)
{
	struct read_request *r = container_of(f, struct read_request, raw);
	struct iovec iov = { .iov_base = f->buf, .iov_len = f->bytes };
	struct answer a = { .error = stopping ? -ECONNABORTED : f->error,
			    .iov = &iov };
	struct budget_wait room = r->room;
	struct server *s = r->server;
	void *buf = f->buf;

	a.n_iov = !a.error;
	for (int i = 0; i < r->n_parts; i++)
		r->parts[i].deadline = f->deadline;
	if (!a.error)
		count_delivered(s, r->bytes);
	layer_answer(&s->split, r, &a);
	free_bytes(s, buf, room);
}

/* Under the lock: count the objects the read would have accessed. */
static void count_raw(struct server *s, struct read_request *r)
{
	uint64_t at = r->offset, end = r->offset + r->bytes;

	handle_turn(s, r->handle, r->offset, r->bytes);
	while (at < end) {
		struct read_part *p = &r->parts[r->n_parts];
		struct ask a = ask_of(s, r, (uint32_t)(at / OBJECT_EXTENT));

		*p = part_at(r, at);
		a.bypass = true;
		if (a.first)
			ask(s, &a, p);
		r->n_parts++;
		at += p->bytes;
	}
}

/* Then read without objects. */
static void read_raw(struct server *s, struct read_request *r)
{
	r->raw = (struct fetch){ .op = STORAGE_READ,
				 .node = r->handle->node,
				 .offset = r->offset,
				 .bytes = r->bytes,
				 .answered = r->bytes,
				 .before = r->before,
				 .arrival = r->arrival,
				 .apart = true,
				 .done = raw_done };
	layer_start(&s->split, &r->raw);
	want_bytes(s, r);
}

static void again_done(struct fetch *f, bool stopping)
{
	struct read_request *r = container_of(f, struct read_request, raw);
	struct server *s = r->server;

	if (stopping || f->error) {
		pthread_mutex_lock(&s->lock);
		for (int i = 0; i < r->n_parts && !stopping; i++)
			if (r->parts[i].object && !r->parts[i].object->data)
				stack_forget(s, r->parts[i].object);
		server_unlock(s);
		r->error = stopping ? -ECONNABORTED : f->error;
	}
	read_settle(r);
}

/* The objects lack some of the bytes: read the whole request again. */
static void read_again(struct server *s, struct read_request *r)
{
	r->raw = (struct fetch){ .op = STORAGE_N_OPS,
				 .node = r->handle->node,
				 .offset = r->offset,
				 .bytes = r->bytes,
				 .arrival = r->arrival,
				 .done = again_done };
	__atomic_fetch_add(&s->reread_bytes, r->bytes, __ATOMIC_RELAXED);
	want_bytes(s, r);
}

static void read_objects(struct layer *l, struct read_request *r)
{
	struct server *s = l->server;
	struct begin start[READ_PARTS];
	int n_start = 0;
	bool kept, again;

	r->ready = finish_read;
	pthread_mutex_lock(&s->lock);
	kept = s->n_keepers || layer_keeps(l, r->handle->node);
	if (kept)
		n_start = prepare(s, r, start);
	else
		count_raw(s, r);
	again = r->again;
	server_unlock(s);
	if (!kept) {
		read_raw(s, r);
		return;
	}
	for (int i = 0; i < n_start; i++)
		start[i].by->ops->start(start[i].by, start[i].fetch);
	if (again)
		read_again(s, r);
	read_settle(r);
}

const struct layer_ops read_split = {
	.plugin.name = "split",
	.read = read_objects,
};
