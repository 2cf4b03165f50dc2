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
#include "fs/cache/policy/policy_list.h"

struct twoq_options {
	double ratio;
};

static const struct conf_field twoq_fields[] = {
	{ "ratio", CONF_DOUBLE, offsetof(struct twoq_options, ratio),
	  .max = 1000, .arg = "N",
	  .help = "largest ratio of the active queue to the inactive one" },
	{ 0 },
};

/* Source: Linux's mm/vmscan.c, inactive_is_low: 1 for less than 1 GB,
 * sqrt(10 x GB) above */
static const struct twoq_options twoq_defaults = { .ratio = 1 };

/* Ghosts per expected cache entry. Distances beyond the active queue, which is
 * smaller than the cache, never count. */
#define GHOSTS_PER_ENTRY 1

struct twoq {
	struct policy_list inactive, active;
	struct ghosts ghosts;
	double ratio;
	uint64_t age;	  /* bytes evicted or activated so far */
	uint64_t refault; /* key of the object that goes to ACTIVE at once */
	bool refaults;
	struct cache_entry *victim;
};

struct twoq_entry {
	struct policy_link link;
	bool active;
};

static int twoq_init(void *state, const struct policy_params *params,
		     struct err *err)
{
	const struct twoq_options *o = params->options ? params->options
						       : &twoq_defaults;
	struct twoq *s = state;

	(void)err;
	s->ratio = o->ratio;
	return ghosts_init(&s->ghosts,
			   GHOSTS_PER_ENTRY * policy_expected_entries(params));
}

static void twoq_fini(void *state)
{
	struct twoq *s = state;

	ghosts_fini(&s->ghosts);
}

static bool twoq_admit(void *state, const struct cache_object *object)
{
	struct twoq *s = state;
	struct ghost *g = ghosts_find(&s->ghosts, object->key);

	s->refaults = false;
	if (!g)
		return true;
	s->refaults = s->age - g->value <= s->active.bytes;
	s->refault = object->key;
	ghosts_remove(&s->ghosts, g);
	return true;
}

static void shrink_active(struct twoq *s)
{
	while (s->active.head &&
	       (!s->inactive.head ||
		(double)s->active.bytes >
			s->ratio * (double)s->inactive.bytes)) {
		struct cache_entry *e = policy_list_tail(&s->active);
		struct twoq_entry *x = cache_entry_data(e);

		x->active = false;
		policy_list_move(&s->active, &s->inactive, e);
	}
}

static void twoq_inserted(void *state, struct cache_entry *entry,
			  const struct cache_object *object)
{
	struct twoq *s = state;
	struct twoq_entry *x = cache_entry_data(entry);

	x->active = s->refaults && s->refault == object->key;
	policy_list_push(x->active ? &s->active : &s->inactive, entry);
	if (x->active)
		s->age += entry->bytes;
	s->refaults = false;
}

static void twoq_hit(void *state, struct cache_entry *entry,
		     const struct cache_object *object)
{
	struct twoq *s = state;
	struct twoq_entry *x = cache_entry_data(entry);

	(void)object;
	if (x->active)
		return; /* its page is only marked; it does not move */
	x->active = true;
	policy_list_move(&s->inactive, &s->active, entry);
	s->age += entry->bytes;
}

static void twoq_removed(void *state, struct cache_entry *entry)
{
	struct twoq *s = state;
	struct twoq_entry *x = cache_entry_data(entry);

	policy_list_remove(x->active ? &s->active : &s->inactive, entry);
	if (s->victim != entry)
		return; /* removed by the host, not evicted */
	s->victim = NULL;
	s->age += entry->bytes;
	ghosts_push(&s->ghosts, 0, entry->key, entry->bytes, s->age);
}

static struct cache_entry *twoq_victim(void *state)
{
	struct twoq *s = state;

	/* as the kernel does: only when room is needed */
	shrink_active(s);
	s->victim = policy_list_tail(&s->inactive);
	return s->victim;
}

const struct policy_ops policy_2q = {
	.plugin = { .name = "2q",
		    .summary = "2Q as Linux's page cache: inactive and active",
		    .state_size = sizeof(struct twoq),
		    .options = twoq_fields,
		    .defaults = &twoq_defaults,
		    .options_size = sizeof(twoq_defaults) },
	.entry_size = sizeof(struct twoq_entry),
	.overhead_bytes = GHOSTS_PER_ENTRY * GHOST_BYTES,
	.init = twoq_init,
	.fini = twoq_fini,
	.admit = twoq_admit,
	.inserted = twoq_inserted,
	.hit = twoq_hit,
	.removed = twoq_removed,
	.victim = twoq_victim,
};
