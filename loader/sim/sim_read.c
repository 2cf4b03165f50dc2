/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_read.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "common/util.h"
#include "fs/device/calibrate.h"
#include "fs/peer/foresee.h"
#include "fs/peer/peer_proto.h"
#include "fs/server/object.h"
#include "loader/sim/sim_own.h"
#include "net/frame.h"

/* Bytes of a frame that are no data. Source: docs/peers.md */
enum {
	FRAME_BYTES = FRAME_HEADER + SEAL_TAG,
	GET_BYTES = 1 + 8 + 8 + 4 + FRAME_BYTES,
	DATA_BYTES = PEER_DATA_HEAD + FRAME_BYTES,
};

enum stage { OPEN, READ, ASKED, SERVE, ANSWER, ARRIVED, PART, N_STAGES };

struct object_at {
	struct cache_object what;
	uint64_t offset;
};

/* The nth of the pieces of `size` bytes of a file. 0 bytes: it has ended. */
static struct object_at nth_piece(const struct sim_mounts *m, uint32_t file,
				  uint32_t n, uint64_t size)
{
	uint64_t all = m->c.tree->nodes[file].bytes, at = n * size;

	return (struct object_at){
		.what = { .key = object_key(file, n),
			  .bytes = at < all ? MIN(all - at, size) : 0,
			  .file_bytes = all },
		.offset = at,
	};
}

/* The next piece: an object or, without caches, what the kernel reads at once.
 */
static struct object_at piece_of(const struct sim_mounts *m,
				 const struct train_sim_read *r)
{
	return nth_piece(m, r->file, r->piece,
			 m->bypass ? CALIBRATE_BYTES : OBJECT_EXTENT);
}

/* Another node that owns it, or PLACE_NONE. */
static uint32_t owner_of(const struct own *o, uint64_t key)
{
	const struct sim_mounts *m = o->all;
	uint32_t owner = m->place && !m->bypass ? place_owner(m->place, key)
						: PLACE_NONE;

	return owner == o->node ? PLACE_NONE : owner;
}

static uint64_t storage_read(struct own *o, const struct train_sim_read *r,
			     const struct object_at *x, uint64_t now)
{
	o->counts.backend_reads++;
	o->counts.backend_bytes += x->what.bytes;
	return device_schedule(o->device, STORAGE_READ, r->file, x->offset,
			       x->what.bytes, now);
}

static uint64_t tier_read(struct own *o, size_t tier,
			  const struct train_sim_read *r,
			  const struct object_at *x, uint64_t now)
{
	struct device *d = o->tier[tier].device;

	return d ? device_schedule(d, STORAGE_READ, r->file, x->offset,
				   x->what.bytes, now)
		 : now;
}

/* The open of a file costs as much as its first object. */
static uint64_t open_file(struct own *o, struct train_sim_read *r, uint64_t now)
{
	bool fetch = r->reader == SIM_NOBODY;
	uint64_t key = object_key(r->file, 0);
	size_t k = fetch ? r->tier : cache_stack_peek(&o->caches, key);
	struct device *d = k < o->caches.n ? o->tier[k].device : o->device;

	r->stage = READ;
	/* the fetch has paid */
	if (!fetch && ahead_find(&o->ahead, key))
		return now;
	if (k == o->caches.n && o->all->c.tree->nodes[r->file].bytes &&
	    owner_of(o, key) != PLACE_NONE)
		return now;
	return d ? device_schedule(d, STORAGE_OPEN, r->file, 0, 0, now) : now;
}

static uint64_t miss(struct own *o, struct train_sim_read *r,
		     const struct object_at *x, uint64_t now)
{
	uint64_t first;

	r->owner = owner_of(o, x->what.key);
	if (r->owner == PLACE_NONE) {
		r->piece++;
		return storage_read(o, r, x, now);
	}
	r->stage = ASKED;
	r->sent = nic_send(o->nic, now, GET_BYTES, &first);
	return first;
}

/* A miss is counted once for each object, also where the kernel reads less. */
static void count(struct own *o, const struct object_at *x, bool hit)
{
	struct sim_counts *n = &o->counts;

	n->hits += hit;
	n->hit_bytes += hit ? x->what.bytes : 0;
	n->misses += !hit && x->offset % OBJECT_EXTENT == 0;
	n->miss_bytes += hit ? 0 : x->what.bytes;
}

/* It was fetched ahead, or is being fetched. */
static uint64_t use(struct own *o, struct train_sim_read *r,
		    const struct object_at *what, struct own_ahead *x,
		    uint64_t now)
{
	bool landed = x->landed;

	count(o, what, x->hit);
	x->reader = r->reader;
	ahead_use(&o->ahead, &x->item, landed);
	r->piece++;
	return landed ? now : SIM_READ_WAITS;
}

/* The tier that has the object; caches.n: none. */
static size_t access_object(struct own *o, const struct object_at *x)
{
	size_t k = o->all->bypass ? o->caches.n
				  : cache_stack_access(&o->caches, &x->what);

	count(o, x, k < o->caches.n);
	return k;
}

static uint64_t read_piece(struct own *o, struct train_sim_read *r,
			   uint64_t now)
{
	struct object_at x = piece_of(o->all, r);
	struct ahead_item *item;
	size_t k = r->tier;

	if (!x.what.bytes || r->piece == r->end)
		return SIM_READ_DONE;
	if (r->reader != SIM_NOBODY) {
		item = ahead_find(&o->ahead, x.what.key);
		o->called = true;
		if (item)
			return use(o, r, &x, own_ahead(item), now);
		if (o->ahead.plan)
			ahead_miss(&o->ahead, x.what.key);
		k = access_object(o, &x);
	}
	if (k == o->caches.n)
		return miss(o, r, &x, now);
	r->piece++;
	return tier_read(o, k, r, &x, now);
}

/* The request arrives at the owner; then it is there. */
static uint64_t asked(struct own *o, struct train_sim_read *r, uint64_t now)
{
	r->stage = SERVE;
	return nic_receive(o->all->own[r->owner].nic, now, r->sent, GET_BYTES);
}

static uint64_t serve(struct own *o, struct train_sim_read *r, uint64_t now)
{
	struct own *owner = &o->all->own[r->owner];
	struct object_at x = piece_of(o->all, r);
	size_t k = cache_stack_access(&owner->caches, &x.what);

	r->stage = ANSWER;
	return k < owner->caches.n ? tier_read(owner, k, r, &x, now)
				   : storage_read(owner, r, &x, now);
}

static uint64_t answer(struct own *o, struct train_sim_read *r, uint64_t now)
{
	struct object_at x = piece_of(o->all, r);
	uint64_t first;

	r->stage = ARRIVED;
	r->sent = nic_send(o->all->own[r->owner].nic, now,
			   DATA_BYTES + x.what.bytes, &first);
	return first;
}

static uint64_t arrived(struct own *o, struct train_sim_read *r, uint64_t now)
{
	struct object_at x = piece_of(o->all, r);

	o->counts.peer_hits++;
	o->counts.peer_bytes += x.what.bytes;
	r->stage = READ;
	r->piece++;
	return nic_receive(o->nic, now, r->sent, DATA_BYTES + x.what.bytes);
}

/* --- parts of shards, which stay open ------------------------------------- */

/* Without caches: what the kernel reads at once. */
static uint64_t read_raw(struct own *o, struct train_sim_read *r, uint64_t now)
{
	uint64_t n = MIN(r->to - r->at, CALIBRATE_BYTES);
	struct object_at x = { .what = { .bytes = n }, .offset = r->at };

	for (uint32_t e = (uint32_t)(r->at / OBJECT_EXTENT);
	     e <= (r->at + n - 1) / OBJECT_EXTENT; e++) {
		struct object_at whole =
			nth_piece(o->all, r->file, e, OBJECT_EXTENT);

		if (visit_first(&o->shard[r->shard], e))
			count(o, &whole, false);
	}
	r->at += n;
	return storage_read(o, r, &x, now);
}

static struct own_flight *flight_of(const struct own *o, uint64_t key)
{
	/* Fibonacci hashing: Knuth, TAOCP 3, 6.4 */
	return &o->flight[key * 0x9e3779b97f4a7c15ull >>
			  (64 - OWN_FLIGHTS_LOG2)];
}

/* The object that was read last is free, once it is there; a read of one in
 * flight waits for it. */
static uint64_t read_part(struct own *o, struct train_sim_read *r, uint64_t now)
{
	struct visit *v = &o->shard[r->shard];
	struct own_flight *f;
	struct object_at x;
	uint32_t extent = (uint32_t)(r->at / OBJECT_EXTENT);
	bool flies;
	size_t k;

	if (r->at >= r->to)
		return SIM_READ_DONE;
	visit_turn(v, o->epoch, o->all->c.tree->nodes[r->file].bytes, r->at,
		   r->to);
	if (o->all->bypass)
		return read_raw(o, r, now);
	x = nth_piece(o->all, r->file, extent, OBJECT_EXTENT);
	r->at = MIN(r->to, x.offset + OBJECT_EXTENT);
	f = flight_of(o, x.what.key);
	flies = f->key == x.what.key && f->ready_ns > now;
	if (v->paid == x.what.key)
		return flies ? f->ready_ns : now;
	v->paid = x.what.key;
	k = visit_first(v, extent) ? access_object(o, &x)
				   : cache_stack_peek(&o->caches, x.what.key);
	if (!flies)
		*f = (struct own_flight){
			x.what.key, k < o->caches.n
					    ? tier_read(o, k, r, &x, now)
					    : storage_read(o, r, &x, now)
		};
	return f->ready_ns;
}

void sim_read_part(struct train_sim_read *r, uint32_t file, uint32_t shard,
		   uint64_t at, uint64_t to, uint32_t reader)
{
	*r = (struct train_sim_read){ .file = file,
				      .shard = shard,
				      .at = at,
				      .to = to,
				      .reader = reader,
				      .stage = PART };
}

/* ------------------------------------------------------------------------- */

void sim_read_open(struct train_sim_read *r, uint32_t file, uint32_t reader)
{
	*r = (struct train_sim_read){
		.file = file, .end = UINT32_MAX, .reader = reader, .stage = OPEN
	};
}

/* Ask the caches of `node` for an object, to fetch it. true: they had it. */
static bool sim_read_object(struct sim_mounts *m, uint32_t node,
			    struct train_sim_read *r, uint64_t key)
{
	struct own *o = &m->own[node];
	uint32_t extent = (uint32_t)key;
	struct object_at x;

	*r = (struct train_sim_read){ .file = (uint32_t)(key >> 32),
				      .piece = extent,
				      .end = extent + 1,
				      .reader = SIM_NOBODY,
				      .stage = extent ? READ : OPEN };
	x = piece_of(m, r);
	r->tier = (uint32_t)cache_stack_access(&o->caches, &x.what);
	return r->tier < o->caches.n;
}

uint64_t sim_read_go(struct sim_mounts *m, uint32_t node,
		     struct train_sim_read *r, uint64_t now)
{
	static uint64_t (*const stages[N_STAGES])(
		struct own *, struct train_sim_read *, uint64_t) = {
		[OPEN] = open_file, [READ] = read_piece, [ASKED] = asked,
		[SERVE] = serve,    [ANSWER] = answer,	 [ARRIVED] = arrived,
		[PART] = read_part,
	};
	uint64_t at = now;

	while (at <= now)
		at = stages[r->stage](&m->own[node], r, now);
	return at;
}

/* --- fetches ahead ------------------------------------------------------- */

/* --- life ----------------------------------------------------------------- */

static void drop(struct ahead_item *item)
{
	struct own_ahead *x = own_ahead(item);

	if (x->landed)
		free(x);
}

int sim_ahead_init(struct own *o)
{
	const struct fs_config *fs = o->all->c.fs;

	if (!fs->prefetch)
		return 0;
	o->ahead = (struct ahead){ .limit = fs->prefetch,
				   .depth = fs->prefetch_depth,
				   .drop = drop };
	o->flying = calloc(o->ahead.depth, sizeof(*o->flying));
	return o->flying ? 0 : -ENOMEM;
}

void sim_ahead_fini(struct own *o)
{
	if (!o->flying)
		return;
	announced_free(TAKE_PTR(o->ahead.over));
	ahead_announce(&o->ahead, NULL);
	announced_free(o->ahead.over);
	for (uint64_t i = 0; i < o->ahead.depth; i++)
		free(o->flying[i]);
	free(o->flying);
}

bool sim_ahead_is_on(const struct sim_mounts *m)
{
	return m->c.fs->prefetch > 0;
}

/* --- a future ------------------------------------------------------------- */

static void keep_object(void *ctx, uint32_t rank, uint32_t object,
			unsigned tier)
{
	const struct sim_mounts *m = ctx;

	place_add(m->own[rank].tier[tier].kept, object);
}

static int place(struct sim_mounts *m, const struct future *f)
{
	struct foresee_tiers tiers = { .bytes = m->tier_bytes };
	uint16_t *owner;
	int r;

	while (tiers.n < m->tiers.n && m->tier_bytes[tiers.n])
		tiers.n++;
	for (uint32_t i = 0; i < m->c.nodes; i++)
		for (size_t k = 0; k < m->tiers.n; k++) {
			m->own[i].tier[k].kept = place_bits(m->place);
			if (!m->own[i].tier[k].kept)
				return -ENOMEM;
		}
	r = foresee_all(m->place, f, &tiers, keep_object, m, &owner);
	if (r == 0)
		place_reown(m->place, owner);
	return r;
}

static int announce(struct own *o, struct future *f)
{
	struct announced *fresh = announced_new(f, o->node, o->all->c.tree);

	if (!fresh)
		return -ENOMEM;
	announced_free(TAKE_PTR(o->ahead.over));
	ahead_announce(&o->ahead, fresh);
	announced_free(TAKE_PTR(o->ahead.over));
	o->called = true;
	return 0;
}

int sim_ahead_announce(struct sim_mounts *m, struct future *f, struct err *err)
{
	int r = m->place && !m->foresees ? place(m, f) : 0;

	m->foresees = true;
	for (uint32_t i = 0; r == 0 && i < m->c.nodes; i++)
		r = announce(&m->own[i], f);
	return r < 0 ? err_set(err, r, "out of memory for a future") : 0;
}

/* --- fetches -------------------------------------------------------------- */

int sim_ahead_next(struct sim_mounts *m, uint32_t node, uint32_t *ret)
{
	struct own *o = &m->own[node];
	unsigned looks = UINT_MAX; /* nobody waits for a lock */
	struct cache_object what;
	struct own_ahead *x;

	o->called = o->called && ahead_next(&o->ahead, &looks, &what);
	if (!o->called)
		return 0;
	x = calloc(1, sizeof(*x));
	if (!x || !ahead_stage(&o->ahead, &x->item, &what)) {
		free(x);
		return -ENOMEM;
	}
	x->reader = SIM_NOBODY;
	x->hit = sim_read_object(m, node, &x->read, what.key);
	*ret = 0;
	while (o->flying[*ret])
		++*ret;
	o->flying[*ret] = x;
	return 1;
}

static void land(struct own *o, struct own_ahead *x)
{
	ahead_landed(&o->ahead, x->hit ? AHEAD_FROM_CACHE
				: x->read.owner == PLACE_NONE
					? AHEAD_FROM_STORAGE
					: AHEAD_FROM_PEER);
	x->landed = true;
	o->called = true;
	if (!x->item.staged)
		free(x);
}

uint64_t sim_ahead_fetch(struct sim_mounts *m, uint32_t node, uint32_t fetch,
			 uint64_t now, uint32_t *ret_reader)
{
	struct own *o = &m->own[node];
	struct own_ahead *x = o->flying[fetch];
	uint64_t at = sim_read_go(m, node, &x->read, now);

	*ret_reader = SIM_NOBODY;
	if (at != SIM_READ_DONE)
		return at;
	o->flying[fetch] = NULL;
	*ret_reader = x->reader;
	land(o, x);
	return at;
}
