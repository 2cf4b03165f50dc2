/* SPDX-License-Identifier: MIT */
/*
 * The staging buffer of clairvoyant prefetching: which announced object is
 * fetched next, and which ones are there, or in flight, until their access.
 *
 *	accesses	... used used | staged staged in flight | next next ...
 *	                    reads ----^                         ^---- fetches
 *
 * Pure: no thread, no clock, no bytes. gpemu-fs (fs/layer/layer_prefetch.c) and
 * the simulator (loader/sim/sim_read.c) fetch. The caller's lock covers all
 * calls.
 *
 * Source: Dryden et al., "Clairvoyant Prefetching for Distributed Machine
 * Learning I/O", SC 2021 (NoPFS): prefetch in access order, drop after use.
 */
#ifndef GPEMU_FS_LAYER_AHEAD_H
#define GPEMU_FS_LAYER_AHEAD_H

#include "fs/layer/announced.h"
#include "fs/server/hash.h"

/* Fetches in flight: the default, and at most. arbitrary: as many as a fast
 * loader has workers, as a read that was not announced waits behind them */
enum { AHEAD_DEPTH = 16, AHEAD_MOST_DEPTH = 1024 };

/* An object of the buffer: a member of the user's own struct. */
struct ahead_item {
	uint64_t key, bytes;
	uint64_t at; /* which access */
	bool staged; /* it is in the buffer */
	struct ahead_item *prev, *next;
	UT_hash_handle hh;
};

enum ahead_count {
	AHEAD_PREFETCHED,
	/* of these: from there */
	AHEAD_FROM_CACHE,
	AHEAD_FROM_PEER,
	AHEAD_FROM_STORAGE,
	AHEAD_USED,	 /* accessed while staged */
	AHEAD_LATE,	 /* of these: before they arrived */
	AHEAD_MISSED,	 /* accesses without a prefetch */
	AHEAD_WASTED,	 /* prefetches without an access */
	AHEAD_ABANDONED, /* futures that were wrong */
	AHEAD_COUNTS,
};
extern const char *const ahead_names[AHEAD_COUNTS];

/* `limit`, `depth` and `drop` are the user's, the rest zeroed at first. */
struct ahead {
	uint64_t limit; /* bytes staged */
	uint64_t depth; /* fetches in flight */
	/* An item has left the buffer. */
	void (*drop)(struct ahead_item *x);
	struct announced *plan; /* or NULL */
	/* ended; freed by the user, without the lock; NULL if `plan` is not */
	struct announced *over;
	struct ahead_item *index; /* uthash by key */
	struct ahead_item *queue; /* by access */
	uint64_t bytes, most_bytes;
	uint64_t n_flying;
	bool passed; /* one was missed since the last ahead_next */
	bool paused; /* nothing is fetched until the next access */
	uint64_t counts[AHEAD_COUNTS];
};

/* NULL: it is not staged. */
struct ahead_item *ahead_find(const struct ahead *a, uint64_t key);

/* The next object to be fetched. Counts *looks down with each access that it
 * looks at. false: *looks is 0, and the next call goes on; or there is none
 * until the next ahead_use, ahead_miss, ahead_landed or ahead_announce. */
bool ahead_next(struct ahead *a, unsigned *looks, struct cache_object *ret);
/* Put it into the buffer: its fetch begins. false: no memory. */
bool ahead_stage(struct ahead *a, struct ahead_item *x,
		 const struct cache_object *o);
/* The fetch of a staged object did not begin. */
void ahead_unstage(struct ahead *a, struct ahead_item *x);
/* A fetch has ended, in or out of the buffer. `from`: AHEAD_FROM_...;
 * AHEAD_COUNTS: it failed. */
void ahead_landed(struct ahead *a, enum ahead_count from);

/* An access takes `x` out of the buffer. */
void ahead_use(struct ahead *a, struct ahead_item *x, bool landed);
/* An access to an object that is not staged. */
void ahead_miss(struct ahead *a, uint64_t key);
/* Nobody will access it. */
void ahead_waste(struct ahead *a, struct ahead_item *x);
void ahead_waste_all(struct ahead *a);

/* What follows is `plan`, owned now (NULL: nothing). The plan before is `over`
 * then, which must be NULL at the call. */
void ahead_announce(struct ahead *a, struct announced *plan);

#endif
