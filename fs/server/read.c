/* SPDX-License-Identifier: MIT */
/*
 * The read path.
 *
 * A read of a file is one or two parts, each a piece of an object. Under the
 * lock each part finds its object: held by the handle, cached, in flight, or
 * new; then, without the lock, new objects start their fetch. The request
 * keeps a count of the objects that are not there yet plus one for its own
 * set-up; whoever brings it to zero sends the reply, from the objects' memory.
 *
 * The cache's books are kept in the order in which objects are first asked
 * for, not in which they arrive: an object is in the cache, as far as its
 * policy is concerned, from the moment of its miss. So the hits depend on the
 * order of the reads alone and gpemu-cachesim can count the same.
 *
 * Where files are read in groups a new object is one of several that its fetch
 * brings: fs/server/group_read.c.
 *
 * With a policy that bypasses the cache a read goes to the device as it is.
 *
 * Where an object has no bytes, or is gone in the middle of being read, all was
 * counted and paid for as ever, and the request has its bytes read again from
 * the source, meanwhile, for itself (fs/server/budget.h).
 */
#include "fs/server/server_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* Before the reply: whoever has it may look. */
static void count_delivered(struct server *s, uint64_t bytes)
{
	__atomic_fetch_add(&s->delivered_bytes, bytes, __ATOMIC_RELAXED);
}

/* The bytes of a request that waited for memory, or did not have to. */
static void read_bytes(struct server *s, struct read_request *r, bool later)
{
	r->raw.buf = malloc(r->bytes);
	if (!r->raw.buf)
		r->raw.error = -ENOMEM;
	fetch_read(s->fetcher, &r->raw, later);
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

/* Into r->raw, when there is memory. */
static void want_bytes(struct server *s, struct read_request *r)
{
	r->room.bytes = r->bytes;
	go_on(s, budget_answer(&s->budget, &r->room), r);
}

/* After the reply: of a request that had bytes of its own. */
static void free_bytes(struct server *s, void *buf, struct budget_wait room)
{
	free(buf);
	go_on(s, budget_answered(&s->budget, &room), NULL);
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

/* What failed was not paid for: the next chunk of it is a read of the device
 * again. */
static void forget_failed(struct server *s, struct read_request *r)
{
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < r->n_parts; i++) {
		const struct object *o = r->parts[i].object;

		if (o && (o->error || !o->data) && r->handle->paid == o->key)
			r->handle->paid = 0;
	}
	pthread_mutex_unlock(&s->lock);
}

static void gather(struct read_request *r, struct iovec iov[READ_PARTS],
		   struct read_part parts[READ_PARTS])
{
	for (int i = 0; i < r->n_parts; i++) {
		const struct read_part *p = &r->parts[i];

		parts[i] = *p;
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

static void finish(struct read_request *r)
{
	struct iovec iov[READ_PARTS] = { 0 };
	struct read_part parts[READ_PARTS];
	struct server *s = r->server;
	struct trace_reply told;
	struct budget_wait room = r->room;
	void *buf = r->again ? r->raw.buf : NULL;
	bool again = r->again;
	int n = r->n_parts;

	gather(r, iov, parts);
	trace_reply_init(s, r, &told);
	if (!r->error)
		count_delivered(s, r->bytes);
	r->reply(r, r->error, iov, r->error ? 0 : n);
	for (int i = 0; i < n; i++) {
		const struct object *o = parts[i].object;

		trace_part(s, &told, &parts[i], o ? o->fetch.deadline : 0);
		object_put(parts[i].object);
	}
	if (again)
		free_bytes(s, buf, room);
}

static void object_done(struct fetch *f, bool stopping)
{
	struct object *o = container_of(f, struct object, fetch);
	struct server *s = o->server;
	struct read_part *w;

	pthread_mutex_lock(&s->lock);
	w = read_arrived(s, o, stopping ? -ECONNABORTED : f->error);
	server_unlock(s);
	read_wake(w);
	object_put(o);
}

/* First time in this open? Marks it. */
static bool first_seen(struct handle *h, uint32_t extent)
{
	uint64_t bit = 1ull << (extent % 64), *word = &h->seen[extent / 64];
	bool first = !(*word & bit);

	*word |= bit;
	return first;
}

static struct object *find_object(struct server *s, struct handle *h,
				  struct cache_entry *e, uint64_t key)
{
	bool paid = h->paid == key;
	struct object *o;

	if (paid && h->held)
		return h->held;
	o = e ? cache_user(e) : NULL;
	if (!o)
		HASH_FIND(hh, s->flights, &key, sizeof(key), o);
	if (o && o->state == OBJECT_FETCHING && !paid &&
	    o->fetch.op == STORAGE_READ)
		s->coalesced++;
	return o ? o : group_buffer_find(&s->buffer, key);
}

/* A missing object: in flight from now on. NULL: no memory. */
static struct object *new_object(struct server *s, const struct read_request *r,
				 uint32_t extent)
{
	uint32_t node = r->handle->node;
	struct object *o = object_new(s, node, extent,
				      s->c.tree->nodes[node].bytes, r->arrival);

	o = object_fly(&s->flights, o);
	if (!o)
		return NULL;
	o->fetch.done = object_done;
	server_fill(s, o);
	return o;
}

/* Of what is cached: if it has no bytes, and there is memory now, another
 * object takes its place, which is in flight, past the device. Who has the one
 * before looks at it without the lock: that stays as it is. */
static struct object *refill(struct server *s, const struct read_request *r,
			     uint32_t extent, struct cache_entry *e,
			     struct fetch **ret_start)
{
	struct object *old = cache_user(e), *o = NULL;

	if (!old->data && old->state == OBJECT_READY)
		o = new_object(s, r, extent);
	if (!o)
		return old;
	if (!o->data) {
		HASH_DEL(s->flights, o);
		object_put(o);
		return old;
	}
	o->fetch.op = STORAGE_N_OPS;
	o->brought = old->brought;
	cache_set_user(e, object_get(o));
	server_put_object(old);
	*ret_start = &o->fetch;
	return o;
}

/*
 * The object of an extent, with a reference, for p; *ret_start when a fetch is
 * still to be started. None: it was paid for, and is nowhere any more.
 * -ENOMEM.
 */
static int obtain(struct server *s, struct read_request *r, uint32_t extent,
		  struct read_part *p, struct fetch **ret_start)
{
	struct handle *h = r->handle;
	uint64_t file_bytes = s->c.tree->nodes[h->node].bytes;
	uint64_t offset = (uint64_t)extent * OBJECT_EXTENT;
	struct cache_object co = { .key = object_key(h->node, extent),
				   .bytes = MIN(file_bytes - offset,
						OBJECT_EXTENT),
				   .file_bytes = file_bytes };
	bool first = first_seen(h, extent), fresh = false;
	enum cache_result result = CACHE_HIT;
	struct cache_entry *e;
	struct object *o;

	*ret_start = NULL;
	if (first)
		result = cache_access(s->cache, &co, &e);
	else
		e = cache_peek(s->cache, co.key);
	o = find_object(s, h, e, co.key);
	if (first)
		p->asked = trace_asked(s, result == CACHE_HIT ||
						  (o && o->brought));
	if (!o && h->paid == co.key)
		return 0;
	if (!o) {
		o = new_object(s, r, extent);
		if (!o && e)
			cache_remove(s->cache, e);
		if (!o)
			return -ENOMEM;
		fresh = true; /* the first reference is the flight's */
	} else if (e && cache_user(e) == o) {
		o = refill(s, r, extent, e, ret_start);
	}
	if (e && !cache_user(e))
		cache_set_user(e, object_get(o));
	p->object = object_get(o); /* the buffer may let go of it */
	if (first)
		group_asked(s, o, result == CACHE_HIT,
			    result == CACHE_REJECTED);
	if (fresh)
		*ret_start = group_has(s, h->node)
				     ? group_bring(s, o, h->node, r->arrival)
				     : &o->fetch;
	h->paid = co.key;
	handle_hold(s, h,
		    o->data && p->offset + p->bytes < o->bytes ? o : NULL);
	return 0;
}

/* Under the lock: split the request into parts, note what to wait for. */
static int prepare(struct server *s, struct read_request *r,
		   struct fetch *start[READ_PARTS])
{
	uint64_t at = r->offset, end = r->offset + r->bytes;
	int n_start = 0;

	while (at < end) {
		uint32_t extent = (uint32_t)(at / OBJECT_EXTENT);
		uint64_t from = (uint64_t)extent * OBJECT_EXTENT;
		struct read_part *p = &r->parts[r->n_parts];

		*p = (struct read_part){
			.offset = at - from,
			.bytes = MIN(end, from + OBJECT_EXTENT) - at,
			.request = r,
			.number = (uint32_t)r->n_parts,
		};
		r->error = obtain(s, r, extent, p, &start[n_start]);
		if (r->error < 0)
			break;
		if (start[n_start])
			start[n_start++]->answered = p->bytes;
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
	int error = stopping ? -ECONNABORTED : f->error;
	struct read_part parts[READ_PARTS];
	struct budget_wait room = r->room;
	struct server *s = r->server;
	uint64_t deadline = f->deadline;
	struct trace_reply told;
	void *buf = f->buf;
	int n = r->n_parts;

	memcpy(parts, r->parts, sizeof(parts));
	r->error = error;
	trace_reply_init(s, r, &told);
	if (!error)
		count_delivered(s, r->bytes);
	r->reply(r, error, &iov, error ? 0 : 1);
	for (int i = 0; i < n; i++)
		trace_part(s, &told, &parts[i], deadline);
	free_bytes(s, buf, room);
}

/* Count what a bypassed cache would have been asked for, then just read. */
static void read_raw(struct server *s, struct read_request *r)
{
	r->raw = (struct fetch){ .op = STORAGE_READ,
				 .node = r->handle->node,
				 .offset = r->offset,
				 .bytes = r->bytes,
				 .answered = r->bytes,
				 .arrival = r->arrival,
				 .done = raw_done };
	fetch_charge(s->fetcher, &r->raw);
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
				read_uncache(s, r->parts[i].object);
		server_unlock(s);
		r->error = stopping ? -ECONNABORTED : f->error;
	}
	read_settle(r);
}

/* What objects do not have of it, and with that all of it. */
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

static void count_raw(struct server *s, struct read_request *r)
{
	uint64_t file_bytes = s->c.tree->nodes[r->handle->node].bytes;
	uint32_t first = (uint32_t)(r->offset / OBJECT_EXTENT);
	uint32_t last = (uint32_t)((r->offset + r->bytes - 1) / OBJECT_EXTENT);
	struct cache_entry *e;

	for (uint32_t x = first; x <= last; x++) {
		uint64_t offset = (uint64_t)x * OBJECT_EXTENT;
		uint64_t from = MAX(offset, r->offset);
		struct read_part *p = &r->parts[r->n_parts];
		struct cache_object co = {
			.key = object_key(r->handle->node, x),
			.bytes = MIN(file_bytes - offset, OBJECT_EXTENT),
			.file_bytes = file_bytes
		};

		*p = (struct read_part){
			.number = (uint32_t)r->n_parts++,
			.offset = from - offset,
			.bytes = MIN(r->offset + r->bytes,
				     offset + OBJECT_EXTENT) -
				 from,
		};
		if (first_seen(r->handle, x)) {
			cache_access(s->cache, &co, &e);
			p->asked = trace_asked(s, false);
		}
	}
}

void server_read(struct server *s, struct read_request *r)
{
	uint64_t file_bytes = s->c.tree->nodes[r->handle->node].bytes;

	r->server = s;
	r->n_parts = r->error = 0;
	r->again = false;
	r->ready = finish;
	r->pending = 1;
	if (!gate_enter(&s->gate)) {
		trace_refused(s, r, -ECONNABORTED);
		return;
	}
	if (r->offset >= file_bytes || !r->bytes) {
		r->reply(r, 0, NULL, 0);
	} else {
		r->bytes = MIN(r->bytes,
			       MIN(file_bytes - r->offset, OBJECT_EXTENT));
		if (!faults_meet_read(s, r))
			server_read_now(s, r);
	}
	gate_leave(&s->gate);
}

void server_read_now(struct server *s, struct read_request *r)
{
	struct fetch *start[READ_PARTS + 1];
	int n_start = 0;
	bool bypass, again;

	pthread_mutex_lock(&s->lock);
	/* what a group brings has to wait somewhere */
	bypass = cache_policy(s->cache)->bypass &&
		 !group_has(s, r->handle->node);
	if (bypass)
		count_raw(s, r);
	else
		n_start = prepare(s, r, start);
	again = r->again;
	server_unlock(s);
	if (bypass) {
		read_raw(s, r);
		return;
	}
	for (int i = 0; i < n_start; i++)
		fetch_start(s->fetcher, start[i]);
	if (again)
		read_again(s, r);
	read_settle(r);
}

static bool first_object_cached(struct server *s, uint32_t node)
{
	bool there;

	pthread_mutex_lock(&s->lock);
	there = cache_peek(s->cache, object_key(node, 0)) ||
		group_buffer_find(&s->buffer, object_key(node, 0));
	server_unlock(s);
	return there;
}

struct object *server_peek_whole(struct server *s, uint32_t node)
{
	struct cache_entry *e;
	struct object *o = NULL;

	if (s->c.tree->nodes[node].bytes > OBJECT_EXTENT)
		return NULL;
	pthread_mutex_lock(&s->lock);
	e = cache_peek(s->cache, object_key(node, 0));
	if (e && cache_user(e))
		o = cache_user(e);
	o = o && o->state == OBJECT_READY ? object_get(o) : NULL;
	server_unlock(s);
	return o;
}

bool server_count_hit(struct server *s, uint32_t node)
{
	uint64_t bytes = s->c.tree->nodes[node].bytes;
	struct cache_object co = { .key = object_key(node, 0),
				   .bytes = bytes,
				   .file_bytes = bytes };
	struct cache_entry *e;
	bool hit;

	pthread_mutex_lock(&s->lock);
	hit = cache_peek(s->cache, co.key);
	if (hit) {
		cache_access(s->cache, &co, &e);
		trace_passthrough(s, node);
		s->passed_through++;
		if (cache_user(e))
			group_asked(s, cache_user(e), true, false);
		count_delivered(s, bytes);
	}
	server_unlock(s);
	return hit;
}

void server_metadata(struct server *s, struct fetch *f)
{
	f->buf = NULL;
	f->offset = f->bytes = 0;
	f->error = 0;
	f->deadline = f->arrival;
	if (!gate_enter(&s->gate)) {
		f->done(f, true);
		return;
	}
	/* the calibration's probes meet no faults */
	if (f->takes || !faults_meet_metadata(s, f))
		server_metadata_now(s, f);
	gate_leave(&s->gate);
}

void server_metadata_now(struct server *s, struct fetch *f)
{
	if (f->op == STORAGE_OPEN && first_object_cached(s, f->node))
		f->done(f, false);
	else
		fetch_start(s->fetcher, f);
}
