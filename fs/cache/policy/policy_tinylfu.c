/* SPDX-License-Identifier: MIT */
/*
 * W-TinyLFU (Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache
 * admission policy", ACM Transactions on Storage 13(4), 2017, section 4): new
 * objects enter a small LRU window. An object that overflows the window is a
 * candidate for the main cache, an SLRU: it is admitted if it was accessed more
 * often than the main cache's victim, else it is evicted itself.
 *
 * A count-min sketch estimates the number of accesses, also of objects that are
 * not cached. It has 4 rows of counters up to 15, of 4 bits each. All are
 * halved each time the sketch has counted `sample` accesses per cache entry.
 * Left out: the paper's doorkeeper, a Bloom filter that saves memory.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/conf/conf.h"
#include "common/util.h"
#include "fs/cache/policy/policy_list.h"

struct tinylfu_options {
	double window, protected;
	uint64_t sample;
};

#define FIELD(key, type) #key, type, offsetof(struct tinylfu_options, key)

static const struct conf_field tinylfu_fields[] = {
	{ FIELD(window, CONF_DOUBLE), .max = 1, .arg = "0..1",
	  .help = "share of the capacity for the window" },
	{ FIELD(protected, CONF_DOUBLE), .max = 1, .arg = "0..1",
	  .help = "share of the rest for the protected segment" },
	{ FIELD(sample, CONF_UINT), .min = 1, .max = 1000, .arg = "N",
	  .help = "accesses per entry after which all counts are halved" },
	{ 0 },
};

/* Source: the paper, sections 4 (window 1 %, 80 % of main protected) and 3.2
 * (a sample of 8 to 16 times the cache; counters up to sample / cache) */
static const struct tinylfu_options tinylfu_defaults = { .window = 0.01,
							 .protected = 0.8,
							 .sample = 10 };
enum { MAX_COUNT = 15, BITS = 4, PER_WORD = 64 / BITS, ROWS = 4 };
/* the bits that stay in their counters when a word is shifted by one */
#define HALVED 0x7777777777777777
/* counters in a row per entry: collisions are rare, since the sample has 10
 * accesses per entry, most of them of repeated keys */
enum { COUNTERS_PER_ENTRY = 4, LEAST_COUNTERS = 4096 };

enum segment { WINDOW, PROBATION, PROTECTED, N_SEGMENTS };

struct tinylfu {
	struct policy_list segment[N_SEGMENTS];
	uint64_t window_bytes, protected_bytes;
	uint64_t arriving; /* bytes of the object admitted last */
	/* ROWS rows of mask + 1 counters of 4 bits */
	uint64_t *counts;
	uint64_t mask;
	uint64_t n_counted, sample;
};

static int tinylfu_init(void *state, const struct policy_params *params,
			struct err *err)
{
	const struct tinylfu_options *o = params->options ? params->options
							  : &tinylfu_defaults;
	struct tinylfu *s = state;
	size_t n = policy_expected_entries(params), width = LEAST_COUNTERS;
	double window = o->window * (double)params->capacity_bytes;

	(void)err;
	while (width < COUNTERS_PER_ENTRY * n)
		width *= 2;
	s->window_bytes = (uint64_t)window;
	s->protected_bytes =
		(uint64_t)(o->protected *
			   ((double)params->capacity_bytes - window));
	s->mask = width - 1;
	s->sample = o->sample * n;
	s->counts = calloc(ROWS, width / 2);
	if (!s->counts)
		return -ENOMEM;
	util_want_huge(s->counts, ROWS * width / 2);
	return 0;
}

static void tinylfu_fini(void *state)
{
	struct tinylfu *s = state;

	free(s->counts);
}

struct counter {
	uint64_t *word;
	int shift;
};

static struct counter counter_of(const struct tinylfu *s, uint64_t key, int row)
{
	/* odd constants of large order (Steele and Vigna, "Computationally
	 * easy, spectrally good multipliers", 2022), one for each row */
	static const uint64_t multiplier[ROWS] = { 0xd1342543de82ef95,
						   0xaf251af3b0f025b5,
						   0xb564ef22ec7aece5,
						   0xf7c2ebc08f67f2b5 };
	uint64_t h = (key ^ key >> 32) * multiplier[row], at;

	h ^= h >> 32;
	at = (uint64_t)row * (s->mask + 1) + (h & s->mask);
	return (struct counter){ &s->counts[at / PER_WORD],
				 (int)(at % PER_WORD) * BITS };
}

static void prefetch(const struct tinylfu *s, uint64_t key)
{
	for (int row = 0; row < ROWS; row++)
		__builtin_prefetch(counter_of(s, key, row).word, 1);
}

static int estimate(const struct tinylfu *s, uint64_t key)
{
	int least = MAX_COUNT;

	for (int row = 0; row < ROWS; row++) {
		struct counter n = counter_of(s, key, row);

		least = MIN(least, (int)(*n.word >> n.shift & MAX_COUNT));
	}
	return least;
}

static void count(struct tinylfu *s, uint64_t key)
{
	for (int row = 0; row < ROWS; row++) {
		struct counter n = counter_of(s, key, row);
		bool more = (*n.word >> n.shift & MAX_COUNT) < MAX_COUNT;

		*n.word += (uint64_t)more << n.shift;
	}
	if (++s->n_counted < s->sample)
		return;
	s->n_counted /= 2;
	for (uint64_t i = 0; i < ROWS * (s->mask + 1) / PER_WORD; i++)
		s->counts[i] = s->counts[i] >> 1 & HALVED;
}

static bool tinylfu_admit(void *state, const struct cache_object *object,
			  struct cache_entry *ghost)
{
	struct tinylfu *s = state;

	(void)ghost;
	count(s, object->key);
	s->arriving = object->bytes;
	return true;
}

static void move(struct tinylfu *s, struct cache_entry *e, enum segment to)
{
	policy_list_move(&s->segment[e->queue], &s->segment[to], e);
	e->queue = to;
}

static void tinylfu_inserted(void *state, struct cache_entry *entry,
			     const struct cache_object *object)
{
	struct tinylfu *s = state;
	struct policy_list *window = &s->segment[WINDOW];

	(void)object;
	policy_list_push(window, entry);
	/* no eviction needed: the main cache has room for the overflow */
	while (window->bytes > s->window_bytes && window->tail != entry)
		move(s, window->tail, PROBATION);
}

static void tinylfu_hit(void *state, struct cache_entry *entry,
			uint64_t next_use)
{
	struct tinylfu *s = state;

	(void)next_use;
	count(s, entry->key);
	move(s, entry, entry->queue == WINDOW ? WINDOW : PROTECTED);
	while (s->segment[PROTECTED].bytes > s->protected_bytes)
		move(s, s->segment[PROTECTED].tail, PROBATION);
}

static void tinylfu_removed(void *state, struct cache_entry *entry)
{
	struct tinylfu *s = state;

	policy_list_remove(&s->segment[entry->queue], entry);
}

/* Prefetch what comparing the next newer entry will read. */
static void expect_newer(const struct tinylfu *s, struct cache_entry *e)
{
	e = policy_list_newer(e);
	if (e)
		prefetch(s, e->key);
}

static struct cache_entry *tinylfu_victim(void *state)
{
	struct tinylfu *s = state;
	struct cache_entry *candidate = s->segment[WINDOW].tail;
	struct cache_entry *victim = s->segment[PROBATION].tail;

	if (!victim)
		victim = s->segment[PROTECTED].tail;
	if (!victim || !candidate)
		return victim ? victim : candidate;
	if (s->segment[WINDOW].bytes + s->arriving <= s->window_bytes)
		return victim; /* the window has room for the new object */
	expect_newer(s, candidate);
	if (estimate(s, candidate->key) <= estimate(s, victim->key))
		return candidate;
	expect_newer(s, victim);
	move(s, candidate, PROBATION);
	return victim;
}

static void tinylfu_expect(const void *state, uint64_t key)
{
	prefetch(state, key);
}

const struct policy_ops policy_tinylfu = {
	.plugin = { .name = "tinylfu",
		    .summary = "W-TinyLFU: admit what is accessed more often",
		    .state_size = sizeof(struct tinylfu),
		    PLUGIN_OPTIONS(tinylfu_fields, tinylfu_defaults) },
	.entry_size = sizeof(struct policy_link),
	.overhead_bytes = 2 * ROWS * COUNTERS_PER_ENTRY * BITS / 8,
	.init = tinylfu_init,
	.fini = tinylfu_fini,
	.admit = tinylfu_admit,
	.inserted = tinylfu_inserted,
	.hit = tinylfu_hit,
	.removed = tinylfu_removed,
	.victim = tinylfu_victim,
	.expect = tinylfu_expect,
};
