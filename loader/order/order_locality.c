/* SPDX-License-Identifier: MIT */
/*
 * Locality-aware loading (LADL): the global batches are those of `shuffle`, new
 * in each epoch; which rank takes which sample of a batch follows from the
 * ranks' caches. The sum of a batch's gradients does not depend on that.
 *
 * In epoch 0 the ranks take turns, and each keeps what it reads until its cache
 * is full; nothing is replaced. So the seed tells every rank who holds what. In
 * a later epoch, of each global batch, a rank first takes the samples that it
 * holds, up to its part:
 *
 *	holds	  | want
 *	rank 0	##|########|		keeps 8, 2 too few: takes 2
 *	rank 1	  |########|##		keeps 8, 2 too many
 *	nobody	##		to the ranks that have too few, from storage
 *
 * Samples that nobody holds go to the ranks that lack most. Then the rank with
 * the most samples too many gives to the one that lacks most, again and again,
 * out of two heaps: at most p - 1 transfers for p ranks, O(p log p) time. A
 * rank reads what it is given through its mount: from the cache that holds it,
 * if mounts share theirs, or else from storage.
 *
 * With full caches the share of samples that move is about
 * sqrt((1 - 1/p) / (2 pi b)) for b samples a rank and step.
 *
 * If the mounts of the ranks say whose cache holds each sample (gpemu-fs
 * --peers), that counts in place of epoch 0, and from epoch 0 on.
 *
 * Source: Yang and Cong, "Accelerating Data Loading in Deep Neural Network
 * Training", HiPC 2019, section III and algorithm 1.
 */
#include "loader/order/order.h"

#include <errno.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/heap.h"
#include "common/rng.h"
#include "common/util.h"

struct options {
	uint64_t cache_bytes;
};

static const struct conf_field fields[] = {
	{ "cache", CONF_SIZE, offsetof(struct options, cache_bytes),
	  .max = 1e18, .arg = "SIZE",
	  .help = "cache of each rank, without --peers; 0: holds all that it "
		  "reads" },
	{ 0 },
};

static const struct options defaults = { .cache_bytes = 0 };

/* Samples that a rank has too many, or too few. */
struct excess {
	uint32_t n, rank;
};

static inline bool more(const struct excess *a, const struct excess *b)
{
	return a->n != b->n ? a->n > b->n : a->rank < b->rank;
}

DEFINE_HEAP(excess, struct excess, more, heap_unplaced)

#define NOBODY ORDER_NOBODY

struct balance {
	uint32_t p;
	uint32_t *holder; /* n: the rank that has a sample in its cache */
	/* of a step: */
	uint32_t *rank;		   /* of each sample: who takes it */
	uint32_t *next;		   /* of each: another that its holder gives */
	uint32_t *lacks;	   /* p: how many samples more a rank takes */
	uint32_t *gives;	   /* p: its first too many; NOBODY: none */
	struct excess *many, *few; /* p: heaps */
	size_t n_many, n_few;
};

static void balance_fini(struct balance *b)
{
	free(b->holder);
	free(b->rank);
	free(b->next);
	free(b->lacks);
	free(b->gives);
	free(b->many);
	free(b->few);
}

static int balance_init(struct balance *b, size_t n, uint32_t p, size_t step)
{
	b->p = p;
	b->holder = calloc(n, sizeof(*b->holder));
	b->rank = calloc(step, sizeof(*b->rank));
	b->next = calloc(step, sizeof(*b->next));
	b->lacks = calloc(p, sizeof(*b->lacks));
	b->gives = calloc(p, sizeof(*b->gives));
	b->many = calloc(p, sizeof(*b->many));
	b->few = calloc(p, sizeof(*b->few));
	return b->holder && b->rank && b->next && b->lacks && b->gives &&
			       b->many && b->few
		       ? 0
		       : -ENOMEM;
}

static void shuffle(const struct order_input *in, uint64_t epoch, uint32_t *ret)
{
	struct rng rng = rng_stream(in->seed, "order", epoch);

	rng_permutation_u32(&rng, ret, in->n);
}

/* Who holds what after epoch 0, whose order is `first`. */
static int find_holders(struct balance *b, const struct order_input *in,
			uint64_t cache_bytes, const uint32_t *first)
{
	_cleanup_free_ uint64_t *used = calloc(b->p, sizeof(*used));

	if (!used)
		return -ENOMEM;
	for (size_t i = 0; i < in->n; i++) {
		uint32_t r = (uint32_t)(i % b->p), sample = first[i];
		uint64_t size = cache_bytes ? in->size[sample] : 0;

		b->holder[sample] = NOBODY;
		if (size > cache_bytes - used[r])
			continue;
		used[r] += size;
		b->holder[sample] = r;
	}
	return 0;
}

/* Each rank takes of the batch what it holds, as far as it wants that many. */
static void take_own(struct balance *b, const uint32_t *batch, size_t n)
{
	b->n_many = b->n_few = 0;
	for (uint32_t r = 0; r < b->p; r++) {
		b->lacks[r] = (uint32_t)(n / b->p + (r < n % b->p));
		b->gives[r] = NOBODY;
		b->many[r] = (struct excess){ .rank = r };
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t r = b->holder[batch[i]];

		b->rank[i] = NOBODY;
		if (r == NOBODY)
			continue;
		if (b->lacks[r]) {
			b->lacks[r]--;
			b->rank[i] = r;
			continue;
		}
		b->next[i] = b->gives[r];
		b->gives[r] = i;
		b->many[r].n++;
	}
}

/* The heaps of those with too many and too few. */
static void make_heaps(struct balance *b)
{
	for (uint32_t r = 0; r < b->p; r++) {
		struct excess many = b->many[r];

		if (many.n) {
			b->many[b->n_many++] = many;
			excess_up(b->many, b->n_many - 1);
		}
		if (b->lacks[r]) {
			b->few[b->n_few++] = (struct excess){ b->lacks[r], r };
			excess_up(b->few, b->n_few - 1);
		}
	}
}

/* `n` of the first in a heap are settled. */
static void settle_excess(struct excess *v, size_t *n_v, uint32_t n)
{
	v[0].n -= n;
	if (v[0].n == 0)
		v[0] = v[--*n_v];
	excess_fix(v, *n_v, 0);
}

static void balance(struct balance *b, const uint32_t *batch, size_t n)
{
	take_own(b, batch, n);
	make_heaps(b);
	for (uint32_t i = 0; i < n; i++)
		if (b->holder[batch[i]] == NOBODY) {
			b->rank[i] = b->few[0].rank;
			settle_excess(b->few, &b->n_few, 1);
		}
	while (b->n_many) {
		uint32_t from = b->many[0].rank, to = b->few[0].rank;
		uint32_t k = MIN(b->many[0].n, b->few[0].n);

		for (uint32_t moved = 0; moved < k; moved++) {
			uint32_t i = b->gives[from];

			b->gives[from] = b->next[i];
			b->rank[i] = to;
		}
		settle_excess(b->many, &b->n_many, k);
		settle_excess(b->few, &b->n_few, k);
	}
}

/* The schedule gives rank r the positions r, r + p, r + 2 p ... of a step. */
static void lay_out(struct balance *b, const uint32_t *batch, size_t n,
		    uint32_t *ret)
{
	for (uint32_t r = 0; r < b->p; r++)
		b->lacks[r] = r;
	for (size_t i = 0; i < n; i++) {
		ret[b->lacks[b->rank[i]]] = batch[i];
		b->lacks[b->rank[i]] += b->p;
	}
}

static int fill_locality(const struct order_input *in, uint32_t *ret,
			 struct err *err)
{
	const struct options *o = in->options ? in->options : &defaults;
	bool known = in->holder;
	uint32_t p = MAX(in->world, 1);
	size_t step = (size_t)MAX(in->batch, 1) * p;
	_cleanup_(balance_fini) struct balance b = { 0 };
	_cleanup_free_ uint32_t *order = NULL;

	shuffle(in, in->epoch, ret);
	if ((in->epoch == 0 && !known) || p == 1)
		return 0;
	if (!known && o->cache_bytes && !in->size)
		return err_set(err, -EINVAL,
			       "--order locality with cache= needs the sizes "
			       "of the samples");
	order = calloc(in->n, sizeof(*order));
	if (!order || balance_init(&b, in->n, p, MIN(step, in->n)) < 0)
		return err_set(err, -ENOMEM, "out of memory for an order");
	if (known)
		memcpy(b.holder, in->holder, in->n * sizeof(*b.holder));
	else
		shuffle(in, 0, order);
	if (!known && find_holders(&b, in, o->cache_bytes, order) < 0)
		return err_set(err, -ENOMEM, "out of memory for an order");
	shuffle(in, in->epoch, order);
	for (size_t at = 0; at < in->n; at += step) {
		size_t n = MIN(step, in->n - at);

		balance(&b, order + at, n);
		lay_out(&b, order + at, n, ret + at);
	}
	return 0;
}

const struct order_ops order_locality = {
	.plugin = { .name = "locality",
		    .summary = "LADL: each rank takes the samples of a global "
			       "batch that its cache holds",
		    .options = fields,
		    .defaults = &defaults,
		    .options_size = sizeof(struct options) },
	.by_holder = true,
	.fill = fill_locality,
};
