/* SPDX-License-Identifier: MIT */
/*
 * ARC (Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache",
 * FAST 2003, figure 4): T1 holds objects accessed once recently, T2 those
 * accessed at least twice, both in LRU order. B1 and B2 hold the ghosts of
 * their evictions. A miss that hits B1 means that T1 was too small, one that
 * hits B2 that T2 was: the target p for T1 moves.
 *
 * The paper counts pages, this code bytes: p, the queues and the limits (T1 +
 * B1 at most the capacity, all four at most twice that). A miss on a ghost
 * moves p by the object's size times the paper's max(1, ratio). With objects of
 * one size this is the paper's algorithm.
 */
#include "common/util.h"
#include "fs/cache/policy/policy_ghost.h"

enum { T1, T2, N_QUEUES };
enum { B1, B2, NOWHERE };

struct arc {
	struct policy_list t[N_QUEUES];
	struct ghosts ghosts; /* queues B1 and B2 */
	uint64_t capacity;
	double p; /* target for the bytes of T1 */
	/* the object admitted last, and the queue of its ghost */
	uint64_t key, bytes;
	unsigned from;
	struct cache_entry *victim; /* it becomes a ghost */
};

static int arc_init(void *state, const struct policy_params *params,
		    struct err *err)
{
	struct arc *s = state;

	(void)err;
	s->capacity = params->capacity_bytes;
	s->from = NOWHERE;
	/* with T1 and T2 full there are as many ghosts as entries; twice that
	 * for when a control command empties the cache, or sizes differ */
	s->ghosts.max = 2 * policy_expected_entries(params);
	return 0;
}

static void adapt(struct arc *s)
{
	double b1 = (double)s->ghosts.queue[B1].bytes;
	double b2 = (double)s->ghosts.queue[B2].bytes;
	double bytes = (double)s->bytes;

	if (s->from == B1)
		s->p = MIN(s->p + bytes * MAX(b2 / b1, 1), (double)s->capacity);
	else
		s->p = MAX(s->p - bytes * MAX(b1 / b2, 1), 0);
}

/* Case IV of the paper: a new object; trim the ghosts. */
static void limit_ghosts(struct arc *s)
{
	const struct policy_list *b = s->ghosts.queue, *t = s->t;
	uint64_t rest;

	while (b[B1].tail && t[T1].bytes + b[B1].bytes + s->bytes > s->capacity)
		ghosts_drop(&s->ghosts, B1);
	/* the coming size of T1 and B1; T1 alone may have to shrink */
	rest = MIN(t[T1].bytes + b[B1].bytes + s->bytes, s->capacity);
	rest = 2 * s->capacity - rest;
	while (b[B2].tail && t[T2].bytes + b[B2].bytes > rest)
		ghosts_drop(&s->ghosts, B2);
}

static bool arc_admit(void *state, const struct cache_object *object,
		      struct cache_entry *ghost)
{
	struct arc *s = state;

	s->key = object->key;
	s->bytes = ghost ? ghost->bytes : object->bytes;
	s->from = ghost ? ghost->queue : NOWHERE;
	if (object->bytes > s->capacity)
		return false;
	if (!ghost) {
		limit_ghosts(s);
		return true;
	}
	if (s->bytes) /* empty files carry no information */
		adapt(s);
	ghosts_remove(&s->ghosts, ghost);
	return true;
}

static void arc_inserted(void *state, struct cache_entry *entry,
			 const struct cache_object *object)
{
	struct arc *s = state;

	entry->queue = s->from != NOWHERE && s->key == object->key ? T2 : T1;
	policy_list_push(&s->t[entry->queue], entry);
}

static void arc_hit(void *state, struct cache_entry *entry, uint64_t next_use)
{
	struct arc *s = state;

	(void)next_use;
	policy_list_move(&s->t[entry->queue], &s->t[T2], entry);
	entry->queue = T2;
}

static void arc_removed(void *state, struct cache_entry *entry)
{
	struct arc *s = state;

	policy_list_remove(&s->t[entry->queue], entry);
	if (s->victim != entry)
		return; /* removed by the host, or left T1 without a ghost */
	s->victim = NULL;
	ghosts_push(&s->ghosts, entry->queue == T2 ? B2 : B1, entry);
}

/* T1 alone fills the cache: its tail leaves no ghost */
static bool t1_is_all(const struct arc *s)
{
	return s->from == NOWHERE && s->t[T1].tail &&
	       s->t[T1].bytes + s->bytes > s->capacity;
}

static struct cache_entry *arc_victim(void *state)
{
	struct arc *s = state;
	const struct policy_list *t = s->t;
	double t1 = (double)t[T1].bytes;

	if (t1_is_all(s))
		return t[T1].tail;
	if (t[T1].tail &&
	    (t1 > s->p || (s->from == B2 && t1 == s->p) || !t[T2].tail))
		s->victim = t[T1].tail;
	else
		s->victim = t[T2].tail;
	return s->victim;
}

static struct cache_entry *arc_forget(void *state)
{
	struct arc *s = state;

	return ghosts_forget(&s->ghosts);
}

const struct policy_ops policy_arc = {
	.plugin = { .name = "arc",
		    .summary = "balance recency and frequency, by misses on "
			       "evicted objects",
		    .state_size = sizeof(struct arc) },
	.entry_size = sizeof(struct policy_link),
	.n_ghosts = 1,
	.init = arc_init,
	.admit = arc_admit,
	.inserted = arc_inserted,
	.hit = arc_hit,
	.removed = arc_removed,
	.victim = arc_victim,
	.forget = arc_forget,
};
