/* SPDX-License-Identifier: MIT */
#include "fs/cache/cache_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "common/util.h"

/* arbitrary: grows by doubling */
enum { FIRST_SLOTS = 256 };

/* 128 million entries of 32 bytes: address space for 8,192 caches of a
 * simulation of 1,024 nodes. Distances fit an int32_t up to a billion. */
#define MOST_BYTES ((size_t)4 << 30)
/* The range gets memory in steps of a huge page of x86 and Arm. */
#define STEP_BYTES ((size_t)2 << 20)

/* Of a limit of address space, this part. arbitrary: 1/8 */
#define LIMIT_PART 8

/* LeakSanitizer, where it is linked, is to find what entries point to. */
extern void __lsan_register_root_region(const void *p, size_t n)
	__attribute__((weak));
extern void __lsan_unregister_root_region(const void *p, size_t n)
	__attribute__((weak));

static size_t most_bytes(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_AS, &r) || r.rlim_cur / LIMIT_PART > MOST_BYTES)
		return MOST_BYTES;
	return (size_t)r.rlim_cur / LIMIT_PART / STEP_BYTES * STEP_BYTES;
}

/* Address space only. Less where the process has a limit for it. */
static int reserve(struct cache_index *x)
{
	for (size_t n = most_bytes(); n >= STEP_BYTES; n /= 2) {
		void *p = mmap(NULL, n, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			       0);

		if (p == MAP_FAILED)
			continue;
		x->entries = p;
		x->reserved = n;
		if (__lsan_register_root_region)
			__lsan_register_root_region(p, n);
		return 0;
	}
	return -ENOMEM;
}

int cache_index_init(struct cache_index *x, size_t data_bytes,
		     uint32_t n_numbers)
{
	size_t bytes = sizeof(struct cache_entry) + data_bytes;

	if (data_bytes > STEP_BYTES)
		return -ENOMEM;
	*x = (struct cache_index){
		.stride = (bytes + ENTRY_UNIT - 1) / ENTRY_UNIT * ENTRY_UNIT,
		.mask = FIRST_SLOTS - 1,
	};
	x->slots = calloc(FIRST_SLOTS, sizeof(*x->slots));
	if (n_numbers) {
		x->numbered = calloc(n_numbers, sizeof(*x->numbered));
		if (!x->numbered)
			return -ENOMEM;
		util_want_huge(x->numbered, n_numbers * sizeof(*x->numbered));
	}
	return x->slots ? reserve(x) : -ENOMEM;
}

void cache_index_fini(struct cache_index *x)
{
	if (x->entries && __lsan_unregister_root_region)
		__lsan_unregister_root_region(x->entries, x->reserved);
	if (x->entries)
		munmap(x->entries, x->reserved);
	free(x->slots);
	free(x->numbered);
	*x = (struct cache_index){ 0 };
}

static void put_slot(uint64_t *slots, uint32_t mask, uint64_t slot)
{
	uint32_t i = (uint32_t)(slot >> 32) & mask;

	while (slots[i])
		i = (i + 1) & mask;
	slots[i] = slot;
}

/* Free slot i: shift the displaced slots behind it back. */
static void close_gap(struct cache_index *x, uint32_t i)
{
	for (uint32_t j = (i + 1) & x->mask; x->slots[j];
	     j = (j + 1) & x->mask) {
		uint32_t home = (uint32_t)(x->slots[j] >> 32) & x->mask;

		/* may it move to i, cyclically between its home and j? */
		if (((j - home) & x->mask) < ((j - i) & x->mask))
			continue;
		x->slots[i] = x->slots[j];
		i = j;
	}
	x->slots[i] = 0;
}

static uint64_t slot_of(const struct cache_index *x,
			const struct cache_entry *e)
{
	uint64_t at = (uint64_t)((const char *)e - x->entries) / ENTRY_UNIT;

	return (uint64_t)cache_index_hash(e->key) << 32 | (at + 1);
}

static void reuse(struct cache_index *x, struct cache_entry *e)
{
	e->key = 0;
	if (x->free)
		x->last_free->key = (uintptr_t)e;
	else
		x->free = e;
	x->last_free = e;
}

/* Free the slot, and the entry for reuse. */
static void release(struct cache_index *x, struct cache_entry *e)
{
	uint64_t slot = slot_of(x, e);
	uint32_t i = (uint32_t)(slot >> 32) & x->mask;

	while (x->slots[i] != slot)
		i = (i + 1) & x->mask;
	close_gap(x, i);
	reuse(x, e);
}

static void release_all(struct cache_index *x)
{
	for (int i = 0; i < INDEX_LEAVING; i++) {
		if (x->leaving[i])
			release(x, x->leaving[i]);
		x->leaving[i] = NULL;
	}
}

void cache_index_remove(struct cache_index *x, struct cache_entry *e)
{
	struct cache_entry **at = &x->leaving[x->n_removed % INDEX_LEAVING];

	x->n--;
	e->state = ENTRY_FREE;
	if (x->numbered) {
		x->numbered[e->number] = 0;
		reuse(x, e);
		return;
	}
	if (*at)
		release(x, *at);
	*at = e;
	x->n_removed++;
	cache_index_prefetch_slot(x, e->key);
}

/* Keep the table at most half full. */
static int grow_table(struct cache_index *x)
{
	uint32_t mask = x->mask * 2 + 1;
	uint64_t *slots;

	if (x->n < x->mask / 2)
		return 0;
	if (mask == UINT32_MAX)
		return -ENOMEM;
	slots = calloc((size_t)mask + 1, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	util_want_huge(slots, ((size_t)mask + 1) * sizeof(*slots));
	release_all(x);
	for (uint32_t i = 0; i <= x->mask; i++)
		if (x->slots[i])
			put_slot(slots, mask, x->slots[i]);
	free(x->slots);
	x->slots = slots;
	x->mask = mask;
	return 0;
}

/* Memory for the next step. Small caches get small pages. */
static int grow_entries(struct cache_index *x)
{
	char *at = x->entries + x->usable;

	if (x->usable + STEP_BYTES > x->reserved ||
	    mprotect(at, STEP_BYTES, PROT_READ | PROT_WRITE) < 0)
		return -ENOMEM;
	if (x->usable)
		madvise(at, STEP_BYTES, MADV_HUGEPAGE);
	x->usable += STEP_BYTES;
	return 0;
}

static struct cache_entry *take_entry(struct cache_index *x)
{
	struct cache_entry *e = x->free;

	if (e) {
		x->free = (struct cache_entry *)(uintptr_t)e->key;
		return e;
	}
	if (x->used + x->stride > x->usable && grow_entries(x) < 0)
		return NULL;
	e = (struct cache_entry *)(x->entries + x->used);
	x->used += x->stride;
	return e;
}

void cache_index_renew(const struct cache_index *x, struct cache_entry *e,
		       uint64_t bytes)
{
	uint32_t number = e->number;

	/* `bytes` here and not by the caller: to read back what was written in
	 * parts is to wait for it */
	*e = (struct cache_entry){ .key = e->key,
				   .bytes = bytes,
				   .state = ENTRY_CACHED };
	if (x->numbered)
		e->number = number;
	for (size_t i = 0; i < (x->stride - sizeof(*e)) / sizeof(*e->data); i++)
		e->data[i] = 0;
}

struct cache_entry *cache_index_add(struct cache_index *x, uint64_t key,
				    uint32_t number, uint64_t bytes)
{
	struct cache_entry *e;

	if (!x->numbered && grow_table(x) < 0)
		return NULL;
	e = take_entry(x);
	if (!e)
		return NULL;
	e->key = key;
	e->number = number;
	cache_index_renew(x, e, bytes);
	if (x->numbered)
		x->numbered[number] = (uint32_t)slot_of(x, e);
	else
		put_slot(x->slots, x->mask, slot_of(x, e));
	x->n++;
	return e;
}

struct cache_entry *cache_index_next(const struct cache_index *x,
				     enum cache_entry_state state,
				     size_t *cursor)
{
	while (*cursor < x->used) {
		struct cache_entry *e =
			(struct cache_entry *)(x->entries + *cursor);

		*cursor += x->stride;
		if (e->state == state)
			return e;
	}
	return NULL;
}

uint64_t cache_index_bytes(const struct cache_index *x)
{
	uint64_t n_slots = (uint64_t)x->mask + 1;

	while (x->numbered && x->used / x->stride > (n_slots - 1) / 2)
		n_slots *= 2;
	return n_slots * sizeof(*x->slots) + x->used;
}
