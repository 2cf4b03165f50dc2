/* SPDX-License-Identifier: MIT */
#include "fs/peer/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "common/rng.h"
#include "common/util.h"

_Static_assert((int)PLACE_NODES <= (int)PLACE_NOBODY, "a node is no NOBODY");

struct place {
	struct place_config c;
	uint32_t *first; /* of each node of the tree: its first object */
	uint16_t *who;	 /* of each object: a place_code; atomic */
	uint32_t n;
	struct place_sums sums; /* atomic */
};

/* --- objects -------------------------------------------------------------- */

/* The size of a file; 0 for anything else. */
static uint64_t file_bytes(const struct place *p, uint32_t node)
{
	const struct tree_node *n = &p->c.tree->nodes[node];

	return S_ISREG(n->mode) ? n->bytes : 0;
}

static int number_objects(struct place *p)
{
	const struct tree *t = p->c.tree;
	uint64_t n = 0;

	p->first = calloc(t->n_nodes, sizeof(*p->first));
	if (!p->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_nodes && n <= UINT32_MAX; i++) {
		p->first[i] = (uint32_t)n;
		n += (file_bytes(p, i) + p->c.extent_bytes - 1) /
		     p->c.extent_bytes;
	}
	if (n >= UINT32_MAX)
		return -EFBIG;
	p->n = (uint32_t)n;
	p->who = malloc((n + 1) * sizeof(*p->who));
	if (!p->who)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		p->who[i] = place_code(PLACE_NOBODY, PLACE_NOWHERE);
	return 0;
}

uint32_t place_objects(const struct place *p)
{
	return p->n;
}

uint32_t place_first(const struct place *p, uint32_t node)
{
	return p->first[node];
}

const struct place_config *place_config(const struct place *p)
{
	return &p->c;
}

uint64_t place_bytes(const struct place *p, uint64_t key)
{
	uint32_t node = (uint32_t)(key >> 32);
	uint64_t at = (uint32_t)key * p->c.extent_bytes, bytes;

	if (node >= p->c.tree->n_nodes)
		return 0;
	bytes = file_bytes(p, node);
	return at < bytes ? MIN(bytes - at, p->c.extent_bytes) : 0;
}

/* --- owners --------------------------------------------------------------- */

/* An object while it is placed. */
struct item {
	uint32_t object, bytes, rank; /* in the shuffled order */
};

/* All, in the order of the tree. */
static void list_items(const struct place *p, struct item *v)
{
	for (uint32_t i = 0; i < p->c.tree->n_nodes; i++) {
		uint64_t left = file_bytes(p, i);

		for (uint32_t o = p->first[i]; left > 0; o++) {
			uint64_t bytes = MIN(left, p->c.extent_bytes);

			*v++ = (struct item){ .object = o,
					      .bytes = (uint32_t)bytes };
			left -= bytes;
		}
	}
}

static void shuffle(struct item *v, uint32_t n, struct rng r)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = (uint32_t)rng_below(&r, i);
		struct item x = v[k];

		v[k] = v[i - 1];
		v[i - 1] = x;
	}
	for (uint32_t i = 0; i < n; i++)
		v[i].rank = i;
}

/* Larger ones first, those of a size in shuffled order. */
static int compare_sizes(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static uint32_t most_room(const uint64_t *room, uint32_t n)
{
	uint32_t best = 0;

	for (uint32_t k = 1; k < n; k++)
		if (room[k] > room[best])
			best = k;
	return best;
}

/* Returns the free space of this node. */
static uint64_t place_owners(struct place *p, const struct item *v)
{
	uint64_t room[PLACE_NODES];

	for (uint32_t k = 0; k < p->c.n_nodes; k++)
		room[k] = p->c.capacity_bytes;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t k = most_room(room, p->c.n_nodes);

		if (v[i].bytes > room[k]) {
			p->sums.none += v[i].bytes;
			continue;
		}
		room[k] -= v[i].bytes;
		p->who[v[i].object] = place_code(
			k, k == p->c.self ? PLACE_ANYWHERE : PLACE_NOWHERE);
		if (k == p->c.self)
			p->sums.owned += v[i].bytes;
	}
	return room[p->c.self];
}

static void place_surplus(struct place *p, const struct item *v, uint64_t room)
{
	for (uint32_t i = 0; i < p->n; i++) {
		uint16_t *who = &p->who[v[i].object];
		uint32_t owner = place_code_owner(*who);

		if (owner == PLACE_NOBODY || owner == p->c.self ||
		    v[i].bytes > room)
			continue;
		*who = place_code(owner, PLACE_ANYWHERE);
		room -= v[i].bytes;
		p->sums.surplus += v[i].bytes;
	}
}

int place_new(const struct place_config *c, struct place **ret)
{
	struct place *p = calloc(1, sizeof(*p));
	_cleanup_free_ struct item *v = NULL;
	uint64_t all = c->capacity_bytes * c->n_nodes, room;
	int r;

	if (!p)
		return -ENOMEM;
	p->c = *c;
	r = number_objects(p);
	if (r == 0) {
		v = calloc((size_t)p->n + 1, sizeof(*v));
		r = v ? 0 : -ENOMEM;
	}
	if (r < 0) {
		place_free(p);
		return r;
	}
	list_items(p, v);
	shuffle(v, p->n, rng_stream(c->seed, "peer place", 0));
	/* the product may overflow */
	if (all / c->n_nodes != c->capacity_bytes || all >= c->tree->file_bytes)
		qsort(v, p->n, sizeof(*v), compare_sizes);
	room = place_owners(p, v);
	list_items(p, v);
	shuffle(v, p->n, rng_stream(c->seed, "peer surplus", c->self));
	place_surplus(p, v, room);
	*ret = p;
	return 0;
}

void place_free(struct place *p)
{
	if (!p)
		return;
	free(p->first);
	free(p->who);
	free(p);
}

/* A future may replace the placement at any time. */
static uint16_t who_has(const struct place *p, uint64_t key)
{
	return __atomic_load_n(&p->who[p->first[key >> 32] + (uint32_t)key],
			       __ATOMIC_RELAXED);
}

uint32_t place_owner(const struct place *p, uint64_t key)
{
	uint32_t owner = place_code_owner(who_has(p, key));

	return owner == PLACE_NOBODY ? PLACE_NONE : owner;
}

bool place_keeps(const struct place *p, uint64_t key, unsigned tier)
{
	unsigned at = place_code_tier(who_has(p, key));

	return at == PLACE_ANYWHERE || at == tier;
}

bool place_replace(struct place *p, const uint16_t *who,
		   const struct place_sums *sums)
{
	bool changed = false;

	for (uint32_t i = 0; i < p->n; i++) {
		changed = changed || p->who[i] != who[i];
		__atomic_store_n(&p->who[i], who[i], __ATOMIC_RELAXED);
	}
	__atomic_store_n(&p->sums.owned, sums->owned, __ATOMIC_RELAXED);
	__atomic_store_n(&p->sums.surplus, sums->surplus, __ATOMIC_RELAXED);
	__atomic_store_n(&p->sums.none, sums->none, __ATOMIC_RELAXED);
	return changed;
}

struct place_sums place_sums(const struct place *p)
{
	return (struct place_sums){
		__atomic_load_n(&p->sums.owned, __ATOMIC_RELAXED),
		__atomic_load_n(&p->sums.surplus, __ATOMIC_RELAXED),
		__atomic_load_n(&p->sums.none, __ATOMIC_RELAXED),
	};
}

/* --- the dataset ---------------------------------------------------------- */

int place_fingerprint(const struct tree *t,
		      unsigned char ret[PLACE_FINGERPRINT])
{
	XXH128_canonical_t bytes;
	XXH3_state_t *h = XXH3_createState();

	if (!h)
		return -ENOMEM;
	XXH3_128bits_reset(h);
	for (uint32_t i = 0; i < t->n_nodes; i++) {
		const struct tree_node *n = &t->nodes[i];
		const char *name = tree_name(t, i);
		bool is_dir = S_ISDIR(n->mode);
		const uint64_t v[] = {
			n->mode & S_IFMT,
			is_dir ? n->n_children : n->bytes,
			is_dir ? n->first_child : (uint64_t)n->mtime_s,
			is_dir ? 0 : n->mtime_ns,
		};

		XXH3_128bits_update(h, name, strlen(name) + 1);
		XXH3_128bits_update(h, v, sizeof(v));
	}
	XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(h));
	memcpy(ret, bytes.digest, sizeof(bytes.digest));
	XXH3_freeState(h);
	return 0;
}
