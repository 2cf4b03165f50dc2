/* SPDX-License-Identifier: MIT */
/*
 * FFCV's quasi-random order. The pages of a dataset pass in random order
 * through a buffer of `window` pages. Each step picks a random page in the
 * buffer and visits its next sample; the samples of a page have a random order
 * of their own. The next page replaces an exhausted one.
 *
 * Pages are filled as FFCV's writer fills them: sample after sample in the
 * order of the dataset, none across a page's end. A sample larger than a page
 * has a page of its own.
 *
 * Source: Leclerc et al., "FFCV: Accelerating Training by Removing Data
 * Bottlenecks", CVPR 2023; ffcv/traversal_order/quasi_random.py and
 * ffcv/memory_allocator.py.
 */
#include "loader/order/order.h"

#include <errno.h>

#include "common/conf/conf.h"
#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"

struct options {
	uint64_t window, page_bytes;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(window, CONF_UINT, struct options), .max = 4294967295.,
	  .arg = "N",
	  .help = "pages in the buffer; 0: twice the samples of a step" },
	{ "page", CONF_SIZE, offsetof(struct options, page_bytes), .min = 1,
	  .max = 1e18, .arg = "SIZE", .help = "bytes of a page" },
	{ 0 },
};

/* Source: FFCV's defaults */
static const struct options defaults = { .window = 0, .page_bytes = 8 * MIB };

struct pages {
	uint32_t n;
	size_t *next, *end; /* n: first unvisited sample of each */
	uint32_t *sample;   /* grouped by page */
	uint32_t *turn;	    /* n: the shuffled pages */
};

static void pages_fini(struct pages *p)
{
	free(p->next);
	free(p->end);
	free(p->sample);
	free(p->turn);
}

static int pages_init(struct pages *p, const struct order_input *in,
		      uint64_t page_bytes)
{
	uint64_t used = 0;

	/* no more pages than samples */
	p->next = calloc(in->n, sizeof(*p->next));
	p->end = calloc(in->n, sizeof(*p->end));
	p->sample = calloc(in->n, sizeof(*p->sample));
	p->turn = calloc(in->n, sizeof(*p->turn));
	if (!p->next || !p->end || !p->sample || !p->turn)
		return -ENOMEM;
	for (size_t i = 0; i < in->n; i++) {
		if (i == 0 || in->size[i] > page_bytes - used) {
			p->turn[p->n] = p->n;
			p->next[p->n++] = i;
			used = 0;
		}
		used += MIN(in->size[i], page_bytes - used);
		p->end[p->n - 1] = i + 1;
		p->sample[i] = (uint32_t)i;
	}
	return 0;
}

static int fill_quasi(const struct order_input *in, uint32_t *ret,
		      struct err *err)
{
	struct rng rng = rng_stream(in->seed, "order", in->epoch);
	const struct options *o = in->options ? in->options : &defaults;
	uint64_t window = o->window ? o->window : 2 * (uint64_t)in->batch;
	_cleanup_(pages_fini) struct pages p = { 0 };
	uint32_t open, n_open;

	if (!in->size)
		return err_set(err, -EINVAL,
			       "the order quasi_random needs the sizes of the "
			       "samples");
	if (pages_init(&p, in, o->page_bytes) < 0)
		return err_set(err, -ENOMEM, "out of memory for an order");
	for (uint32_t i = 0; i < p.n; i++)
		rng_shuffle_u32(&rng, p.sample + p.next[i],
				p.end[i] - p.next[i]);
	rng_shuffle_u32(&rng, p.turn, p.n);
	/* the buffer is the beginning of `turn`: the next page replaces an
	 * exhausted one, or else the last in the buffer does */
	n_open = open = (uint32_t)MIN(window, p.n);
	for (size_t i = 0; i < in->n; i++) {
		uint64_t at = rng_below(&rng, n_open);
		uint32_t page = p.turn[at];

		ret[i] = p.sample[p.next[page]++];
		if (p.next[page] < p.end[page])
			continue;
		p.turn[at] = open < p.n ? p.turn[open++] : p.turn[--n_open];
	}
	return 0;
}

const struct order_ops order_quasi_random = {
	.plugin = { .name = "quasi_random",
		    .summary = "FFCV: random samples from a buffer of random "
			       "pages",
		    PLUGIN_OPTIONS(fields, defaults) },
	.fill = fill_quasi,
};
