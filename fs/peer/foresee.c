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
	struct place *place;
	const struct future *future;
	const struct foresee_tiers *tiers;
	/* of each node of the tree, for one rank at a time */
	uint32_t *n_accesses, *access; /* how many; the first */
	uint32_t *files, *sorted;      /* those with accesses */
	uint32_t *starts;	       /* by n_accesses */
	/* of each object */
	struct giver *givers;
	uint16_t *who;
	struct place_sums sums;
};

static void fini(struct foreseeing *s)
{
	free(s->n_accesses);
	free(s->access);
	free(s->files);
	free(s->sorted);
	free(s->starts);
	free(s->givers);
	free(s->who);
}

static int init(struct foreseeing *s)
{
	uint32_t n_nodes = place_config(s->place)->tree->n_nodes;
	size_t n = (size_t)place_objects(s->place) + 1;

	s->n_accesses = malloc(n_nodes * sizeof(*s->n_accesses));
	s->access = malloc(n_nodes * sizeof(*s->access));
	s->files = malloc(n_nodes * sizeof(*s->files));
	s->sorted = malloc(n_nodes * sizeof(*s->sorted));
	s->givers = malloc(n * sizeof(*s->givers));
	s->who = malloc(n * sizeof(*s->who));
	if (!s->n_accesses || !s->access || !s->files || !s->sorted ||
	    !s->givers || !s->who)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		s->givers[i].tier = PLACE_NOWHERE;
		s->who[i] = place_code(PLACE_NOBODY, PLACE_NOWHERE);
	}
	return 0;
}

/* Count the accesses of a rank; returns the number of files in s->files, in
 * the order of their first accesses. */
static uint32_t count(struct foreseeing *s, uint32_t rank, uint32_t *ret_most)
{
	uint32_t n_nodes = place_config(s->place)->tree->n_nodes, n = 0;

	*ret_most = 0;
	memset(s->n_accesses, 0, n_nodes * sizeof(*s->n_accesses));
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

/* The rank `rank` keeps an object in a tier. */
static void keep(struct foreseeing *s, uint32_t object, const struct giver *g)
{
	uint16_t *who = &s->who[object];

	if (g->rank == s->future->rank)
		*who = place_code(place_code_owner(*who), g->tier);
	if (!gives_before(g, &s->givers[object]))
		return;
	s->givers[object] = *g;
	*who = place_code(g->rank, place_code_tier(*who));
}

static void fill(struct foreseeing *s, uint32_t rank, uint32_t n,
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
				keep(s, place_first(s->place, node) + e, &g);
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
	fill(s, rank, n, room);
	return 0;
}

static void add_up(struct foreseeing *s)
{
	const struct tree *t = place_config(s->place)->tree;

	for (uint32_t node = 0; node < t->n_nodes; node++) {
		uint16_t *who = &s->who[place_first(s->place, node)];
		uint64_t bytes, key = (uint64_t)node << 32;

		for (; (bytes = place_bytes(s->place, key)); key++, who++) {
			uint32_t owner = place_code_owner(*who);

			if (owner == PLACE_NOBODY)
				s->sums.none += bytes;
			else if (owner == s->future->rank)
				s->sums.owned += bytes;
			else if (place_code_tier(*who) != PLACE_NOWHERE)
				s->sums.surplus += bytes;
		}
	}
}

static int check(const struct place *p, const struct future *f, struct err *err)
{
	const struct place_config *c = place_config(p);

	if (f->world == c->n_nodes && f->rank == c->self)
		return 0;
	return err_set(err, -EINVAL,
		       "the future is that of rank %" PRIu32 " of %" PRIu32
		       ", but this mount is --node %" PRIu32 " of %" PRIu32
		       " peers",
		       f->rank, f->world, c->self, c->n_nodes);
}

int foresee(struct place *p, const struct future *f,
	    const struct foresee_tiers *tiers, struct err *err)
{
	_cleanup_(fini) struct foreseeing s = { .place = p,
						.future = f,
						.tiers = tiers };
	int r = check(p, f, err);

	if (r < 0)
		return r;
	r = init(&s);
	for (uint32_t rank = 0; r == 0 && rank < f->world; rank++)
		r = place_rank(&s, rank);
	if (r < 0)
		return err_set(err, r, "out of memory for a placement");
	add_up(&s);
	return place_replace(p, s.who, &s.sums);
}
