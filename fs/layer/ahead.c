/* SPDX-License-Identifier: MIT */
#include "fs/layer/ahead.h"

#include <utlist.h>

#include "common/util.h"

const char *const ahead_names[AHEAD_COUNTS] = {
	[AHEAD_PREFETCHED] = "prefetched",
	[AHEAD_FROM_CACHE] = "from_cache",
	[AHEAD_FROM_PEER] = "from_peer",
	[AHEAD_FROM_STORAGE] = "from_storage",
	[AHEAD_USED] = "used",
	[AHEAD_LATE] = "late",
	[AHEAD_MISSED] = "missed",
	[AHEAD_WASTED] = "wasted",
	[AHEAD_ABANDONED] = "abandoned",
};

/* --- the buffer ----------------------------------------------------------- */

struct ahead_item *ahead_find(const struct ahead *a, uint64_t key)
{
	struct ahead_item *x;

	HASH_FIND(hh, a->index, &key, sizeof(key), x);
	return x;
}

bool ahead_stage(struct ahead *a, struct ahead_item *x,
		 const struct cache_object *o)
{
	x->key = o->key;
	x->bytes = o->bytes;
	x->at = announced_at(a->plan);
	if (!HASH_TRY_ADD(a->index, key, x))
		return false;
	DL_APPEND(a->queue, x);
	x->staged = true;
	a->bytes += x->bytes;
	a->most_bytes = MAX(a->most_bytes, a->bytes);
	a->counts[AHEAD_PREFETCHED]++;
	a->n_flying++;
	return true;
}

static void take_out(struct ahead *a, struct ahead_item *x)
{
	HASH_DEL(a->index, x);
	DL_DELETE(a->queue, x);
	x->staged = false;
	a->bytes -= x->bytes;
}

void ahead_unstage(struct ahead *a, struct ahead_item *x)
{
	take_out(a, x);
	a->counts[AHEAD_PREFETCHED]--;
	a->n_flying--;
}

void ahead_landed(struct ahead *a, enum ahead_count from)
{
	a->n_flying--;
	if (from != AHEAD_COUNTS)
		a->counts[from]++;
}

void ahead_waste(struct ahead *a, struct ahead_item *x)
{
	a->counts[AHEAD_WASTED]++;
	take_out(a, x);
	a->drop(x);
}

void ahead_waste_all(struct ahead *a)
{
	while (a->queue)
		ahead_waste(a, a->queue);
}

/* --- accesses ------------------------------------------------------------- */

/* `over` is NULL. */
static void end_plan(struct ahead *a)
{
	ahead_waste_all(a);
	a->over = TAKE_PTR(a->plan);
	a->paused = false;
}

void ahead_announce(struct ahead *a, struct announced *plan)
{
	end_plan(a);
	a->plan = plan;
}

void ahead_miss(struct ahead *a, uint64_t key)
{
	/* all accesses have come: this one is of the time after */
	if (!announced_left(a->plan) && !a->queue) {
		end_plan(a);
		return;
	}
	a->counts[AHEAD_MISSED]++;
	a->passed = true;
	a->paused = false;
	switch (announced_missed(a->plan, key)) {
	case ANNOUNCED_FITS: break;
	case ANNOUNCED_STRAYS: ahead_waste_all(a); break;
	case ANNOUNCED_IS_WRONG: a->counts[AHEAD_ABANDONED]++; end_plan(a);
	}
}

void ahead_use(struct ahead *a, struct ahead_item *x, bool landed)
{
	uint64_t at = x->at, epoch = announced_epoch(a->plan);

	a->counts[AHEAD_USED]++;
	a->counts[AHEAD_LATE] += !landed;
	announced_met(a->plan);
	a->paused = false;
	take_out(a, x);
	a->drop(x);
	/* an epoch behind: not accessed in it */
	while (epoch && a->queue && a->queue->at + epoch < at)
		ahead_waste(a, a->queue);
}

/* --- fetches -------------------------------------------------------------- */

/* The next object is staged for an earlier access, which may still come. If an
 * access was missed since, that one may have been passed: then it is for
 * whichever comes first. */
static bool waits(struct ahead *a)
{
	bool passed = a->passed;

	a->passed = false;
	return !passed;
}

bool ahead_next(struct ahead *a, unsigned *looks, struct cache_object *ret)
{
	while (!a->paused && a->plan && announced_next(a->plan, looks, ret)) {
		struct ahead_item *x = ahead_find(a, ret->key);
		bool fits = ret->bytes <= a->limit;
		bool room = ret->bytes <= a->limit - a->bytes &&
			    a->n_flying < a->depth;

		if (x ? waits(a) : fits && !room)
			break;
		announced_step(a->plan);
		if (!x && fits)
			return true;
	}
	return false;
}
