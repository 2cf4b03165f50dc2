/* SPDX-License-Identifier: MIT */
#include "fs/peer/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "common/heap.h"
#include "common/rng.h"
#include "common/util.h"

_Static_assert((int)PLACE_MOST <= (int)PLACE_UNOWNED &&
		       (int)PLACE_NODES <= (int)PLACE_NOBODY,
	       "a node is not nobody");

struct place {
	struct place_config c;
	uint32_t *first; /* of each node of the tree: its first object */
	uint32_t n;
	uint16_t *owner; /* of each object; with `who` at first */
	uint64_t *room;	 /* of each node: space that its own leave */
	/* for at most PLACE_NODES and `self`, else NULL: of each object its
	 * place_code, from `owner` until place_replace; atomic */
	uint16_t *who;
	struct place_sums sums; /* atomic */
};

/* --- objects -------------------------------------------------------------- */

/* The size of a file; 0 for anything else, also its further names. */
static uint64_t file_bytes(const struct place *p, uint32_t node)
{
	const struct tree_node *n = &p->c.tree->nodes[node];

	return S_ISREG(n->mode) && !n->again ? n->bytes : 0;
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
	p->owner = malloc((n + 1) * sizeof(*p->owner));
	p->room = calloc(p->c.n_nodes, sizeof(*p->room));
	return p->owner && p->room ? 0 : -ENOMEM;
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

uint32_t *place_sizes(const struct place *p)
{
	uint32_t *sizes = malloc(((size_t)p->n + 1) * sizeof(*sizes));
	const struct place_config *c = &p->c;

	for (uint32_t i = 0; sizes && i < c->tree->n_nodes; i++) {
		uint64_t left = file_bytes(p, i);

		for (uint32_t o = p->first[i]; left > 0; o++) {
			sizes[o] = (uint32_t)MIN(left, c->extent_bytes);
			left -= sizes[o];
		}
	}
	return sizes;
}

/* --- owners --------------------------------------------------------------- */

/* An object while it is placed. */
struct item {
	uint32_t object, bytes, rank; /* in the shuffled order */
};

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

struct space {
	uint64_t bytes;
	uint32_t node;
};

/* The most space first; the first node where they are equal. */
static inline bool roomier(const struct space *a, const struct space *b)
{
	return a->bytes != b->bytes ? a->bytes > b->bytes : a->node < b->node;
}

DEFINE_HEAP(space, struct space, roomier, heap_unplaced)

static int place_owners(struct place *p, const uint32_t *sizes)
{
	uint64_t all = p->c.capacity_bytes * p->c.n_nodes;
	uint32_t n = p->c.n_nodes;
	_cleanup_free_ struct space *room = calloc(n, sizeof(*room));
	_cleanup_free_ struct item *v = calloc((size_t)p->n + 1, sizeof(*v));

	if (!room || !v)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n; i++)
		v[i] = (struct item){ .object = i, .bytes = sizes[i] };
	shuffle(v, p->n, rng_stream(p->c.seed, "peer place", 0));
	/* the product may overflow */
	if (all / n != p->c.capacity_bytes || all >= p->c.tree->file_bytes)
		qsort(v, p->n, sizeof(*v), compare_sizes);
	for (uint32_t k = 0; k < n; k++) /* equal ones are a heap */
		room[k] = (struct space){ p->c.capacity_bytes, k };
	for (uint32_t i = 0; i < p->n; i++) {
		uint16_t *owner = &p->owner[v[i].object];

		*owner = PLACE_UNOWNED;
		if (v[i].bytes > room[0].bytes) {
			p->sums.none += v[i].bytes;
			continue;
		}
		*owner = (uint16_t)room[0].node;
		room[0].bytes -= v[i].bytes;
		space_down(room, n, 0);
	}
	for (uint32_t k = 0; k < n; k++)
		p->room[room[k].node] = room[k].bytes;
	return 0;
}

/* --- what a node keeps ---------------------------------------------------- */

static bool has(const uint64_t *kept, uint32_t object)
{
	return kept[object / 64] >> object % 64 & 1;
}

uint64_t *place_bits(const struct place *p)
{
	return calloc((size_t)p->n / 64 + 1, sizeof(uint64_t));
}

void place_add(uint64_t *kept, uint32_t object)
{
	kept[object / 64] |= UINT64_C(1) << object % 64;
}

/* Fill the space with objects of other owners. Returns their bytes. */
static uint64_t place_surplus(const struct place *p, const uint32_t *sizes,
			      const uint32_t *order, uint64_t room,
			      uint64_t *kept)
{
	uint64_t before = room;
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < p->n; i++)
		least = MIN(least, sizes[i]);
	for (uint32_t i = 0; i < p->n && room >= least; i++) {
		uint32_t o = order[i];

		if (p->owner[o] == PLACE_UNOWNED || has(kept, o) ||
		    sizes[o] > room)
			continue;
		place_add(kept, o);
		room -= sizes[o];
	}
	return before - room;
}

int place_keep(const struct place *p, const uint32_t *sizes, uint32_t node,
	       uint64_t **ret_kept, uint64_t *ret_surplus)
{
	_cleanup_free_ uint32_t *order =
		malloc(((size_t)p->n + 1) * sizeof(*order));
	uint64_t *kept = place_bits(p);
	struct rng r = rng_stream(p->c.seed, "peer surplus", node);

	if (!order || !kept) {
		free(kept);
		return -ENOMEM;
	}
	for (uint32_t o = 0; o < p->n; o++) {
		order[o] = o;
		if (p->owner[o] == node)
			place_add(kept, o);
	}
	rng_shuffle_u32(&r, order, p->n);
	*ret_surplus = place_surplus(p, sizes, order, p->room[node], kept);
	*ret_kept = kept;
	return 0;
}

/* --- who has what --------------------------------------------------------- */

static int set_who(struct place *p, const uint32_t *sizes)
{
	_cleanup_free_ uint64_t *kept = NULL;
	int r = place_keep(p, sizes, p->c.self, &kept, &p->sums.surplus);

	if (r < 0)
		return r;
	p->who = malloc(((size_t)p->n + 1) * sizeof(*p->who));
	if (!p->who)
		return -ENOMEM;
	for (uint32_t o = 0; o < p->n; o++)
		p->who[o] = place_code(
			p->owner[o] == PLACE_UNOWNED ? PLACE_NOBODY
						     : p->owner[o],
			has(kept, o) ? PLACE_ANYWHERE : PLACE_NOWHERE);
	p->sums.owned = p->c.capacity_bytes - p->room[p->c.self];
	return 0;
}

int place_new(const struct place_config *c, struct place **ret)
{
	struct place *p = calloc(1, sizeof(*p));
	_cleanup_free_ uint32_t *sizes = NULL;
	int r;

	if (!p)
		return -ENOMEM;
	p->c = *c;
	r = number_objects(p);
	if (r == 0) {
		sizes = place_sizes(p);
		r = sizes ? place_owners(p, sizes) : -ENOMEM;
	}
	if (r == 0 && c->self != PLACE_NONE && c->n_nodes <= PLACE_NODES)
		r = set_who(p, sizes);
	if (r < 0)
		place_free(p);
	else
		*ret = p;
	return r;
}

void place_free(struct place *p)
{
	if (!p)
		return;
	free(p->first);
	free(p->owner);
	free(p->room);
	free(p->who);
	free(p);
}

static uint32_t object_of(const struct place *p, uint64_t key)
{
	return p->first[key >> 32] + (uint32_t)key;
}

/* A future may replace the placement at any time. */
static uint16_t who_has(const struct place *p, uint64_t key)
{
	return __atomic_load_n(&p->who[object_of(p, key)], __ATOMIC_RELAXED);
}

uint32_t place_owner(const struct place *p, uint64_t key)
{
	uint32_t owner = p->who ? place_code_owner(who_has(p, key))
				: p->owner[object_of(p, key)];

	return owner == (p->who ? PLACE_NOBODY : PLACE_UNOWNED) ? PLACE_NONE
								: owner;
}

bool place_has(const struct place *p, const uint64_t *kept, uint64_t key)
{
	return has(kept, object_of(p, key));
}

bool place_keeps(const struct place *p, uint64_t key, unsigned tier)
{
	unsigned at = place_code_tier(who_has(p, key));

	return at == PLACE_ANYWHERE || at == tier;
}

void place_reown(struct place *p, uint16_t *owner)
{
	free(p->owner);
	p->owner = owner;
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
			tree_file(t, i),
		};

		XXH3_128bits_update(h, name, strlen(name) + 1);
		XXH3_128bits_update(h, v, sizeof(v));
	}
	XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(h));
	memcpy(ret, bytes.digest, sizeof(bytes.digest));
	XXH3_freeState(h);
	return 0;
}
