/* SPDX-License-Identifier: MIT */
/*
 * W-TinyLFU (Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache
 * admission policy", ACM Transactions on Storage 13(4), 2017, section 4): new
 * objects enter a small LRU window. An object that overflows the window is a
 * candidate for the main cache, an SLRU: it is admitted if it was accessed more
 * often than the main cache's victim, else it is evicted itself.
 *
 * A count-min sketch estimates the number of accesses, also of objects that are
 * not cached. It has 4 rows of counters up to 15. All are halved each time the
 * sketch has counted `sample` accesses per cache entry. Left out: the paper's
 * doorkeeper, a Bloom filter that saves memory.
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
enum { MAX_COUNT = 15, ROWS = 4 };
/* counters in a row per entry: collisions are rare, since the sample has 10
 * accesses per entry, most of them of repeated keys */
enum { COUNTERS_PER_ENTRY = 4, LEAST_COUNTERS = 4096 };

enum segment { WINDOW, PROBATION, PROTECTED, N_SEGMENTS };

struct tinylfu {
	struct policy_list segment[N_SEGMENTS];
	uint64_t window_bytes, protected_bytes;
	uint64_t arriving; /* bytes of the object admitted last */
	uint8_t *counts;   /* ROWS rows of mask + 1 */
	uint64_t mask;
	uint64_t n_counted, sample;
};

struct tinylfu_entry {
	struct policy_link link;
	enum segment segment;
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
	s->counts = calloc(ROWS, width);
	return s->counts ? 0 : -ENOMEM;
}

static void tinylfu_fini(void *state)
{
	struct tinylfu *s = state;

	free(s->counts);
}

static uint8_t *counter(const struct tinylfu *s, uint64_t key, int row)
{
	/* odd constants of large order (Steele and Vigna, "Computationally
	 * easy, spectrally good multipliers", 2022), one for each row */
	static const uint64_t multiplier[ROWS] = { 0xd1342543de82ef95,
						   0xaf251af3b0f025b5,
						   0xb564ef22ec7aece5,
						   0xf7c2ebc08f67f2b5 };
	uint64_t h = (key ^ key >> 32) * multiplier[row];

	h ^= h >> 32;
	return &s->counts[(uint64_t)row * (s->mask + 1) + (h & s->mask)];
}

static int estimate(const struct tinylfu *s, uint64_t key)
{
	int least = MAX_COUNT;

	for (int row = 0; row < ROWS; row++)
		least = MIN(least, *counter(s, key, row));
	return least;
}

static void count(struct tinylfu *s, uint64_t key)
{
	for (int row = 0; row < ROWS; row++) {
		uint8_t *n = counter(s, key, row);

		*n += *n < MAX_COUNT;
	}
	if (++s->n_counted < s->sample)
		return;
	s->n_counted /= 2;
	for (uint64_t i = 0; i < ROWS * (s->mask + 1); i++)
		s->counts[i] /= 2;
}

static bool tinylfu_admit(void *state, const struct cache_object *object)
{
	struct tinylfu *s = state;

	count(s, object->key);
	s->arriving = object->bytes;
	return true;
}

static void move(struct tinylfu *s, struct cache_entry *e, enum segment to)
{
	struct tinylfu_entry *x = cache_entry_data(e);

	policy_list_move(&s->segment[x->segment], &s->segment[to], e);
	x->segment = to;
}

static struct cache_entry *tail(struct tinylfu *s, enum segment segment)
{
	return s->segment[segment].head ? policy_list_tail(&s->segment[segment])
					: NULL;
}

static void tinylfu_inserted(void *state, struct cache_entry *entry,
			     const struct cache_object *object)
{
	struct tinylfu *s = state;

	(void)object;
	policy_list_push(&s->segment[WINDOW], entry);
	/* no eviction needed: the main cache has room for the overflow */
	while (s->segment[WINDOW].bytes > s->window_bytes &&
	       tail(s, WINDOW) != entry)
		move(s, tail(s, WINDOW), PROBATION);
}

static void tinylfu_hit(void *state, struct cache_entry *entry,
			const struct cache_object *object)
{
	struct tinylfu *s = state;
	struct tinylfu_entry *x = cache_entry_data(entry);

	count(s, object->key);
	move(s, entry, x->segment == WINDOW ? WINDOW : PROTECTED);
	while (s->segment[PROTECTED].bytes > s->protected_bytes)
		move(s, tail(s, PROTECTED), PROBATION);
}

static void tinylfu_removed(void *state, struct cache_entry *entry)
{
	struct tinylfu *s = state;
	struct tinylfu_entry *x = cache_entry_data(entry);

	policy_list_remove(&s->segment[x->segment], entry);
}

static struct cache_entry *tinylfu_victim(void *state)
{
	struct tinylfu *s = state;
	struct cache_entry *candidate = tail(s, WINDOW);
	struct cache_entry *victim = tail(s, PROBATION);

	if (!victim)
		victim = tail(s, PROTECTED);
	if (!victim || !candidate)
		return victim ? victim : candidate;
	if (s->segment[WINDOW].bytes + s->arriving <= s->window_bytes)
		return victim; /* the window has room for the new object */
	if (estimate(s, candidate->key) <= estimate(s, victim->key))
		return candidate;
	move(s, candidate, PROBATION);
	return victim;
}

const struct policy_ops policy_tinylfu = {
	.plugin = { .name = "tinylfu",
		    .summary = "W-TinyLFU: admit what is accessed more often",
		    .state_size = sizeof(struct tinylfu),
		    .options = tinylfu_fields,
		    .defaults = &tinylfu_defaults,
		    .options_size = sizeof(tinylfu_defaults) },
	.entry_size = sizeof(struct tinylfu_entry),
	.overhead_bytes = 2 * ROWS * COUNTERS_PER_ENTRY,
	.init = tinylfu_init,
	.fini = tinylfu_fini,
	.admit = tinylfu_admit,
	.inserted = tinylfu_inserted,
	.hit = tinylfu_hit,
	.removed = tinylfu_removed,
	.victim = tinylfu_victim,
};
