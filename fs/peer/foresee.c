/* SPDX-License-Identifier: MIT */
#include "fs/peer/foresee.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* Which node gives an object to the others: the least of all that keep it. */
struct giver {
	uint32_t tier, access, rank;
};

struct foreseeing {
	const struct place *place;
	const struct future *future;
	const struct foresee_tiers *tiers;
	/* of each node of the tree, for one rank at a time */
	uint32_t *n_accesses, *access; /* how many; the first */
	uint32_t *files, *sorted;      /* those with accesses */
	uint32_t *starts;	       /* by n_accesses */
	struct giver *givers;	       /* of each object */
	void (*keep)(void *ctx, uint32_t rank, uint32_t object, unsigned tier);
	void *ctx;
};

static void fini(struct foreseeing *s)
{
	free(s->n_accesses);
	free(s->access);
	free(s->files);
	free(s->sorted);
	free(s->starts);
	free(s->givers);
}

static int init_foresee(struct foreseeing *s)
{
	uint32_t n_nodes = place_config(s->place)->tree->n_nodes;
	size_t n = (size_t)place_objects(s->place) + 1;

	s->n_accesses = calloc(n_nodes, sizeof(*s->n_accesses));
	s->access = malloc(n_nodes * sizeof(*s->access));
	s->files = malloc(n_nodes * sizeof(*s->files));
	s->sorted = malloc(n_nodes * sizeof(*s->sorted));
	s->givers = malloc(n * sizeof(*s->givers));
	if (!s->n_accesses || !s->access || !s->files || !s->sorted ||
	    !s->givers)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		s->givers[i].tier = PLACE_NOWHERE;
	return 0;
}

/* Count the accesses of a rank; returns the number of files in s->files, in
 * the order of their first accesses. */
static uint32_t count(struct foreseeing *s, uint32_t rank, uint32_t *ret_most)
{
	uint32_t n = 0;

	*ret_most = 0;
	for (uint64_t i = 0; i < s->future->n; i++) {
		uint32_t node = future_access(s->future, rank, i);

		if (node == TREE_NONE)
			continue;
		if (!s->n_accesses[node]) {
			s->access[node] = (uint32_t)i;
			s->files[n++] = node;
		}
		s->n_accesses[node]++;
		*ret_most = MAX(*ret_most, s->n_accesses[node]);
	}
	return n;
}

/* Into s->sorted, the most accesses first; equals keep their order. */
static int sort(struct foreseeing *s, uint32_t n, uint32_t most)
{
	uint32_t at = 0;

	free(s->starts);
	s->starts = calloc((size_t)most + 1, sizeof(*s->starts));
	if (!s->starts)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		s->starts[s->n_accesses[s->files[i]]]++;
	for (uint32_t k = most + 1; k-- > 0;) {
		uint32_t len = s->starts[k];

		s->starts[k] = at;
		at += len;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t node = s->files[i];

		s->sorted[s->starts[s->n_accesses[node]]++] = node;
	}
	return 0;
}

/* The fastest tier with room for it, or NOWHERE. */
static unsigned find_tier(const struct foreseeing *s, uint64_t *room,
			  uint64_t bytes)
{
	for (unsigned t = 0; t < s->tiers->n; t++) {
		if (bytes > room[t])
			continue;
		room[t] -= bytes;
		return t;
	}
	return PLACE_NOWHERE;
}

static bool gives_before(const struct giver *a, const struct giver *b)
{
	if (a->tier != b->tier)
		return a->tier < b->tier;
	return a->access != b->access ? a->access < b->access
				      : a->rank < b->rank;
}

/* The rank g->rank keeps an object in a tier. */
static void keep_object(struct foreseeing *s, uint32_t object,
			const struct giver *g)
{
	s->keep(s->ctx, g->rank, object, g->tier);
	if (gives_before(g, &s->givers[object]))
		s->givers[object] = *g;
}

static void fill_room(struct foreseeing *s, uint32_t rank, uint32_t n,
		      uint64_t *room)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t node = s->sorted[i], e = 0;
		uint64_t bytes;

		for (;
		     (bytes = place_bytes(s->place, (uint64_t)node << 32 | e));
		     e++) {
			const struct giver g = { .tier = find_tier(s, room,
								   bytes),
						 .access = s->access[node],
						 .rank = rank };

			if (g.tier != PLACE_NOWHERE)
				keep_object(s, place_first(s->place, node) + e,
					    &g);
		}
	}
}

static int place_rank(struct foreseeing *s, uint32_t rank)
{
	_cleanup_free_ uint64_t *room = malloc(s->tiers->n * sizeof(*room) + 1);
	uint32_t most, n = count(s, rank, &most);
	int r = room ? sort(s, n, most) : -ENOMEM;

	if (r < 0)
		return r;
	memcpy(room, s->tiers->bytes, s->tiers->n * sizeof(*room));
	fill_room(s, rank, n, room);
	/* for the next rank */
	for (uint32_t i = 0; i < n; i++)
		s->n_accesses[s->files[i]] = 0;
	return 0;
}

static uint16_t *owners(const struct foreseeing *s)
{
	uint32_t n = place_objects(s->place);
	uint16_t *owner = malloc(((size_t)n + 1) * sizeof(*owner));

	for (uint32_t i = 0; owner && i < n; i++)
		owner[i] = s->givers[i].tier == PLACE_NOWHERE
				   ? PLACE_UNOWNED
				   : (uint16_t)s->givers[i].rank;
	return owner;
}

int foresee_all(const struct place *p, const struct future *f,
		const struct foresee_tiers *tiers,
		void (*kept)(void *ctx, uint32_t rank, uint32_t object,
			     unsigned tier),
		void *ctx, uint16_t **ret_owner)
{
	_cleanup_(fini) struct foreseeing s = { .place = p,
						.future = f,
						.tiers = tiers,
						.keep = kept,
						.ctx = ctx };
	int r = init_foresee(&s);

	for (uint32_t rank = 0; r == 0 && rank < f->world; rank++)
		r = place_rank(&s, rank);
	if (r < 0)
		return r;
	*ret_owner = owners(&s);
	return *ret_owner ? 0 : -ENOMEM;
}

/* --- one node's ----------------------------------------------------------- */

struct own {
	uint32_t rank;
	uint16_t *who; /* codes of all objects */
};

static void keep_own(void *ctx, uint32_t rank, uint32_t object, unsigned tier)
{
	const struct own *o = ctx;

	if (rank == o->rank)
		o->who[object] = place_code(PLACE_NOBODY, tier);
}

static struct place_sums add_up(const struct place *p, const struct own *o)
{
	const struct tree *t = place_config(p)->tree;
	struct place_sums sums = { 0 };

	for (uint32_t node = 0; node < t->n_nodes; node++) {
		const uint16_t *who = &o->who[place_first(p, node)];
		uint64_t bytes, key = (uint64_t)node << 32;

		for (; (bytes = place_bytes(p, key)); key++, who++) {
			uint32_t owner = place_code_owner(*who);

			if (owner == PLACE_NOBODY)
				sums.none += bytes;
			else if (owner == o->rank)
				sums.owned += bytes;
			else if (place_code_tier(*who) != PLACE_NOWHERE)
				sums.surplus += bytes;
		}
	}
	return sums;
}

static int check_future(const struct place *p, const struct future *f,
			struct err *err)
{
	const struct place_config *c = place_config(p);

	if (f->world == c->n_nodes && f->rank == c->self)
		return 0;
	return err_set(err, -EINVAL,
		       "the announced accesses are of rank %" PRIu32
		       " of %" PRIu32 ", but this mount is --node %" PRIu32
		       " of %" PRIu32 " peers",
		       f->rank, f->world, c->self, c->n_nodes);
}

int foresee(struct place *p, const struct future *f,
	    const struct foresee_tiers *tiers, struct err *err)
{
	uint32_t n = place_objects(p);
	_cleanup_free_ uint16_t *who = malloc(((size_t)n + 1) * sizeof(*who));
	_cleanup_free_ uint16_t *owner = NULL;
	struct own own = { .rank = f->rank, .who = who };
	struct place_sums sums;
	int r = check_future(p, f, err);

	if (r < 0)
		return r;
	for (uint32_t i = 0; who && i < n; i++)
		who[i] = place_code(PLACE_NOBODY, PLACE_NOWHERE);
	r = who ? foresee_all(p, f, tiers, keep_own, &own, &owner) : -ENOMEM;
	if (r < 0)
		return err_set(err, r, "out of memory for a placement");
	for (uint32_t i = 0; i < n; i++)
		if (owner[i] != PLACE_UNOWNED)
			who[i] = place_code(owner[i], place_code_tier(who[i]));
	sums = add_up(p, &own);
	return place_replace(p, who, &sums);
}
