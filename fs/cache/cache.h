/* SPDX-License-Identifier: MIT */
/*
 * A cache of objects with a hard capacity in bytes, run by a policy. It decides
 * and counts; it stores no bytes. The host attaches the cached data as `user`.
 *
 * Not thread-safe: the host's lock covers every call.
 */
#ifndef GPEMU_FS_CACHE_CACHE_H
#define GPEMU_FS_CACHE_CACHE_H

#include "fs/cache/policy.h"

struct cache;

enum cache_result {
	CACHE_HIT,	/* *ret_entry is it */
	CACHE_ADMITTED, /* a miss; *ret_entry is new, its user is NULL */
	CACHE_REJECTED, /* a miss; *ret_entry is NULL */
};

struct cache_counts {
	uint64_t hits, misses;
	uint64_t hit_bytes, miss_bytes;
	uint64_t evictions;
	uint64_t rejected; /* misses that were not admitted */
};

void cache_counts_add(struct cache_counts *sum, const struct cache_counts *n);

/* What a host that numbers its objects keeps of each. As small as can be: it is
 * read in no order. */
struct cache_item {
	uint64_t key;
	uint64_t bytes : 63;
	uint64_t part : 1; /* of a file of `whole` bytes */
};

struct cache_items {
	const struct cache_item *v; /* by number */
	const uint64_t *whole;	    /* the same; only those of parts are set */
};

static inline struct cache_object
cache_items_object(const struct cache_items *items, uint32_t number,
		   uint64_t next_use)
{
	const struct cache_item *o = &items->v[number];

	return (struct cache_object){
		.key = o->key,
		.bytes = o->bytes,
		.file_bytes = o->part ? items->whole[number] : o->bytes,
		.next_use = next_use,
		.number = number,
	};
}

/* Called for each entry that leaves while its user is not NULL. */
typedef void (*cache_drop_fn)(void *user, void *ctx);

/* -ENOMEM, -EINVAL (an offline policy), or what the policy's init says. */
int cache_new(const struct policy_ops *ops, const struct policy_params *params,
	      cache_drop_fn drop, void *ctx, struct cache **ret,
	      struct err *err);
void cache_free(struct cache *c);
/* Replace the drop callback. */
void cache_on_drop(struct cache *c, cache_drop_fn drop, void *ctx);

/*
 * One access to an object: counted and passed to the policy; a miss is admitted
 * if policy and capacity allow. Without memory the result is CACHE_REJECTED.
 */
enum cache_result cache_access(struct cache *c, const struct cache_object *o,
			       struct cache_entry **ret_entry);
/*
 * n accesses, one after the other: `numbers` are those of the objects in
 * `items`, `next_use` what the policy is told of each access (NULL: nothing).
 * Knowing what comes next, it hides the time of most memory accesses.
 */
void cache_replay(struct cache *c, const struct cache_items *items,
		  const uint32_t *numbers, const uint64_t *next_use, size_t n);
/* The same as cache_access, but a miss is never admitted. NULL: a miss. */
struct cache_entry *cache_access_only(struct cache *c,
				      const struct cache_object *o);
/*
 * Admit an object before its first access, if policy and capacity allow. Not
 * counted, except its evictions. NULL: not admitted. An object that is cached
 * already is left unchanged.
 */
struct cache_entry *cache_offer(struct cache *c, const struct cache_object *o);
/* The importance of an object has changed (policy_params), cached or not. */
void cache_reweigh(struct cache *c, uint64_t key);
/* Would an object of so many bytes fit without an eviction? */
bool cache_has_room(const struct cache *c, uint64_t bytes);
/* Look without counting; NULL when it is not cached. */
struct cache_entry *cache_peek(struct cache *c, uint64_t key);

/* Hints that a key will be accessed, for hosts that know: in some 16 requests,
 * in some 8. Both together hide the time of most memory accesses. */
void cache_expect(const struct cache *c, uint64_t key);
void cache_expect_soon(const struct cache *c, uint64_t key);

/* The next cached entry; *cursor is 0 at first. NULL: no more. Entries may be
 * removed meanwhile, and none added. */
struct cache_entry *cache_next(const struct cache *c, size_t *cursor);
/* The size of its object, without what counts beside it. */
uint64_t cache_object_bytes(const struct cache *c, const struct cache_entry *e);

void *cache_user(const struct cache_entry *e);
void cache_set_user(struct cache_entry *e, void *user);
/* Remove an entry (its fetch failed); not counted as an eviction. */
void cache_remove(struct cache *c, struct cache_entry *e);

uint64_t cache_used(const struct cache *c);
/* Memory taken by the index, the entries and the policy. */
uint64_t cache_metadata_bytes(const struct cache *c);
uint64_t cache_capacity(const struct cache *c);
uint64_t cache_objects(const struct cache *c);
const struct policy_ops *cache_policy(const struct cache *c);
/* The policy as a user writes it, with the options that are not defaults. */
const char *cache_policy_text(const struct cache *c);
/* Since the last cache_reset_counts. */
const struct cache_counts *cache_counts(const struct cache *c);
void cache_reset_counts(struct cache *c);

#endif
