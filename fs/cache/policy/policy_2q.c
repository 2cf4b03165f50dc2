/* SPDX-License-Identifier: MIT */
/*
 * Two queues as in Linux's page cache, which readers of plain files get. A
 * relative of 2Q (Johnson and Shasha, "2Q: a low overhead high performance
 * buffer management replacement algorithm", VLDB 1994):
 *
 *	miss -> INACTIVE --hit--> ACTIVE --too large--> INACTIVE
 *	           | tail: victim
 *	           v
 *	         ghost --accessed again, soon enough--> ACTIVE
 *
 * "Soon enough" is the refault distance of Linux's mm/workingset.c: the bytes
 * evicted or activated since the eviction. If it is at most the size of the
 * active queue, the object would have been a hit with that much more room in
 * the inactive queue. So it goes straight to the active queue.
 *
 * The active queue moves its tail to the inactive one while it is larger than
 * `ratio` times the inactive one. Left out: mapped pages, dirty pages, pages of
 * other owners, and the kernel's batches and per-CPU queues.
 */
#include "common/conf/conf.h"
#include "fs/cache/policy/policy_ghost.h"

struct twoq_options {
	double ratio;
};

static const struct conf_field twoq_fields[] = {
	{ CONF_KEY(ratio, CONF_DOUBLE, struct twoq_options), .max = 1000,
	  .arg = "N",
	  .help = "largest ratio of the active queue to the inactive one" },
	{ 0 },
};

/* Source: Linux's mm/vmscan.c, inactive_is_low: 1 for less than 1 GB,
 * sqrt(10 x GB) above */
static const struct twoq_options twoq_defaults = { .ratio = 1 };

/* Ghosts per expected cache entry. Distances beyond the active queue, which is
 * smaller than the cache, never count. */
#define GHOSTS_PER_ENTRY 1

enum { INACTIVE, ACTIVE, N_QUEUES };

struct twoq {
	struct policy_list queue[N_QUEUES];
	struct ghosts ghosts;
	double ratio;
	uint64_t age;	  /* bytes evicted or activated so far */
	uint64_t refault; /* key of the object that goes to ACTIVE at once */
	bool refaults;
	struct cache_entry *victim;
};

struct twoq_entry {
	struct policy_link link;
	uint64_t age; /* of a ghost: twoq.age at its eviction */
};

static int twoq_init(void *state, const struct policy_params *params,
		     struct err *err)
{
	const struct twoq_options *o = params->options ? params->options
						       : &twoq_defaults;
	struct twoq *s = state;

	(void)err;
	s->ratio = o->ratio;
	s->ghosts.max = GHOSTS_PER_ENTRY * policy_expected_entries(params);
	return 0;
}

static bool twoq_admit(void *state, const struct cache_object *object,
		       struct cache_entry *ghost)
{
	struct twoq *s = state;
	const struct twoq_entry *x;

	s->refaults = false;
	if (!ghost)
		return true;
	x = cache_entry_data(ghost);
	s->refaults = s->age - x->age <= s->queue[ACTIVE].bytes;
	s->refault = object->key;
	ghosts_remove(&s->ghosts, ghost);
	return true;
}

static void move(struct twoq *s, struct cache_entry *e, unsigned to)
{
	policy_list_move(&s->queue[e->queue], &s->queue[to], e);
	e->queue = to;
}

static void shrink_active(struct twoq *s)
{
	const struct policy_list *active = &s->queue[ACTIVE];
	const struct policy_list *inactive = &s->queue[INACTIVE];

	while (active->tail &&
	       (!inactive->tail ||
		(double)active->bytes > s->ratio * (double)inactive->bytes))
		move(s, active->tail, INACTIVE);
}

static void twoq_inserted(void *state, struct cache_entry *entry,
			  const struct cache_object *object)
{
	struct twoq *s = state;

	if (s->refaults && s->refault == object->key) {
		entry->queue = ACTIVE;
		s->age += entry->bytes;
	}
	policy_list_push(&s->queue[entry->queue], entry);
	s->refaults = false;
}

static void twoq_hit(void *state, struct cache_entry *entry, uint64_t next_use)
{
	struct twoq *s = state;

	(void)next_use;
	if (entry->queue == ACTIVE)
		return; /* its page is only marked; it does not move */
	move(s, entry, ACTIVE);
	s->age += entry->bytes;
}

static void twoq_removed(void *state, struct cache_entry *entry)
{
	struct twoq *s = state;
	struct twoq_entry *x = cache_entry_data(entry);

	policy_list_remove(&s->queue[entry->queue], entry);
	if (s->victim != entry)
		return; /* removed by the host, not evicted */
	s->victim = NULL;
	s->age += entry->bytes;
	x->age = s->age;
	ghosts_push(&s->ghosts, 0, entry);
}

static struct cache_entry *twoq_victim(void *state)
{
	struct twoq *s = state;

	/* as the kernel does: only when room is needed */
	shrink_active(s);
	s->victim = s->queue[INACTIVE].tail;
	return s->victim;
}

static struct cache_entry *twoq_forget(void *state)
{
	struct twoq *s = state;

	return ghosts_forget(&s->ghosts);
}

const struct policy_ops policy_2q = {
	.plugin = { .name = "2q",
		    .summary = "2Q as Linux's page cache: inactive and active",
		    .state_size = sizeof(struct twoq),
		    PLUGIN_OPTIONS(twoq_fields, twoq_defaults) },
	.entry_size = sizeof(struct twoq_entry),
	.n_ghosts = GHOSTS_PER_ENTRY,
	.init = twoq_init,
	.admit = twoq_admit,
	.inserted = twoq_inserted,
	.hit = twoq_hit,
	.removed = twoq_removed,
	.victim = twoq_victim,
	.forget = twoq_forget,
};
