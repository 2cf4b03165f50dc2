/* SPDX-License-Identifier: MIT */
#include "emu/gpu/fsdp.h"

#include <stdbool.h>

#include "common/util.h"
#include "emu/gpu/link.h"

/* One pass over the units, first to last. */
struct pass {
	const struct fsdp *f;
	uint64_t compute_ns, gather_ns, reduce_ns; /* of a unit */
	uint64_t compute; /* the device is busy until */
	uint64_t link;	  /* the link is busy until */
};

static uint64_t collective(const struct fsdp *f, uint64_t bytes)
{
	uint64_t hops = f->ranks - 1;

	return link_ns(f->bytes_per_s, bytes * hops / f->ranks) +
	       hops * f->latency_ns;
}

/*
 * Unit k may be gathered once unit k - 1 - prefetch is computed, that is, when
 * the computation of the next one begins. `here`: the first is there already.
 */
static void run(struct pass *p, bool here)
{
	uint32_t n = p->f->units, ahead = p->f->prefetch + 1, gathered = 0;
	uint64_t end[FSDP_UNITS_MAX]; /* of unit k's computation */
	uint64_t at[FSDP_UNITS_MAX];  /* unit k's parameters are there */
	uint64_t start = p->compute;

	for (uint32_t k = 0; k < n; k++) {
		uint64_t ready;

		for (; gathered < n && gathered <= k + p->f->prefetch;
		     gathered++) {
			uint64_t from = gathered < ahead
						? start
						: end[gathered - ahead];

			if (gathered == 0 && here) {
				at[0] = start;
				continue;
			}
			p->link = MAX(p->link, from) + p->gather_ns;
			at[gathered] = p->link;
		}
		ready = MAX(p->compute, at[k]);
		p->compute = end[k] = ready + p->compute_ns;
		if (p->reduce_ns)
			p->link = MAX(p->link, end[k]) + p->reduce_ns;
	}
}

uint64_t fsdp_exposed_ns(const struct fsdp *f, uint64_t forward_ns,
			 uint64_t backward_ns)
{
	struct pass p = { .f = f };
	uint64_t alone;

	if (f->ranks < 2)
		return 0;
	p.compute_ns = forward_ns / f->units;
	p.gather_ns = collective(f, f->weight_bytes / f->units);
	run(&p, false);
	alone = p.compute_ns * f->units;
	if (backward_ns) {
		p.compute_ns = backward_ns / f->units;
		p.reduce_ns = collective(f, f->gradient_bytes / f->units);
		run(&p, true);
		alone += p.compute_ns * f->units;
	}
	return MAX(p.compute, p.link) - alone;
}
