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
#include "fs/cache/policy/policy_list.h"

enum { B1, B2, NOWHERE };

struct arc {
	struct policy_list t1, t2;
	struct ghosts ghosts; /* queues B1 and B2 */
	uint64_t capacity;
	double p; /* target for the bytes of T1 */
	/* the object admitted last, and the queue of its ghost */
	uint64_t key, bytes;
	int from;
	struct cache_entry *victim; /* it becomes a ghost */
};

struct arc_entry {
	struct policy_link link;
	bool in_t2;
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
	return ghosts_init(&s->ghosts, 2 * policy_expected_entries(params));
}

static void arc_fini(void *state)
{
	struct arc *s = state;

	ghosts_fini(&s->ghosts);
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
	const struct ghost_queue *b = s->ghosts.queue;
	uint64_t rest;

	while (b[B1].n && s->t1.bytes + b[B1].bytes + s->bytes > s->capacity)
		ghosts_remove(&s->ghosts, ghosts_oldest(&s->ghosts, B1));
	/* the coming size of T1 and B1; T1 alone may have to shrink */
	rest = MIN(s->t1.bytes + b[B1].bytes + s->bytes, s->capacity);
	rest = 2 * s->capacity - rest;
	while (b[B2].n && s->t2.bytes + b[B2].bytes > rest)
		ghosts_remove(&s->ghosts, ghosts_oldest(&s->ghosts, B2));
}

static bool arc_admit(void *state, const struct cache_object *object)
{
	struct arc *s = state;
	struct ghost *g = ghosts_find(&s->ghosts, object->key);

	s->key = object->key;
	s->bytes = g ? g->bytes : object->bytes;
	s->from = g ? (int)g->queue : NOWHERE;
	if (object->bytes > s->capacity)
		return false;
	if (!g) {
		limit_ghosts(s);
		return true;
	}
	if (s->bytes) /* empty files carry no information */
		adapt(s);
	ghosts_remove(&s->ghosts, g);
	return true;
}

static void arc_inserted(void *state, struct cache_entry *entry,
			 const struct cache_object *object)
{
	struct arc *s = state;
	struct arc_entry *x = cache_entry_data(entry);

	x->in_t2 = s->from != NOWHERE && s->key == object->key;
	policy_list_push(x->in_t2 ? &s->t2 : &s->t1, entry);
}

static void arc_hit(void *state, struct cache_entry *entry,
		    const struct cache_object *object)
{
	struct arc *s = state;
	struct arc_entry *x = cache_entry_data(entry);

	(void)object;
	policy_list_move(x->in_t2 ? &s->t2 : &s->t1, &s->t2, entry);
	x->in_t2 = true;
}

static void arc_removed(void *state, struct cache_entry *entry)
{
	struct arc *s = state;
	struct arc_entry *x = cache_entry_data(entry);

	policy_list_remove(x->in_t2 ? &s->t2 : &s->t1, entry);
	if (s->victim != entry)
		return; /* removed by the host, or left T1 without a ghost */
	s->victim = NULL;
	ghosts_push(&s->ghosts, x->in_t2 ? B2 : B1, entry->key, entry->bytes,
		    0);
}

/* T1 alone fills the cache: its tail leaves no ghost */
static bool t1_is_all(const struct arc *s)
{
	return s->from == NOWHERE && s->t1.head &&
	       s->t1.bytes + s->bytes > s->capacity;
}

static struct cache_entry *arc_victim(void *state)
{
	struct arc *s = state;
	double t1 = (double)s->t1.bytes;

	if (t1_is_all(s))
		return policy_list_tail(&s->t1);
	if (s->t1.head &&
	    (t1 > s->p || (s->from == B2 && t1 == s->p) || !s->t2.head))
		s->victim = policy_list_tail(&s->t1);
	else
		s->victim = policy_list_tail(&s->t2);
	return s->victim;
}

const struct policy_ops policy_arc = {
	.plugin = { .name = "arc",
		    .summary = "balance recency and frequency, by misses on "
			       "evicted objects",
		    .state_size = sizeof(struct arc) },
	.entry_size = sizeof(struct arc_entry),
	.overhead_bytes = 2 * GHOST_BYTES,
	.init = arc_init,
	.fini = arc_fini,
	.admit = arc_admit,
	.inserted = arc_inserted,
	.hit = arc_hit,
	.removed = arc_removed,
	.victim = arc_victim,
};
