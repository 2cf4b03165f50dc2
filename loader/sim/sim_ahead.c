/* SPDX-License-Identifier: MIT */
#include "loader/sim/sim_ahead.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "common/util.h"
#include "fs/peer/foresee.h"
#include "loader/sim/sim_own.h"

/* --- life ----------------------------------------------------------------- */

static void drop(struct ahead_item *item)
{
	struct own_ahead *x = own_ahead(item);

	if (x->landed)
		free(x);
}

int sim_ahead_init(struct own *o)
{
	const struct fs_config *fs = o->all->c.fs;

	if (!fs->prefetch)
		return 0;
	o->ahead = (struct ahead){ .limit = fs->prefetch,
				   .depth = fs->prefetch_depth,
				   .drop = drop };
	o->flying = calloc(o->ahead.depth, sizeof(*o->flying));
	return o->flying ? 0 : -ENOMEM;
}

void sim_ahead_fini(struct own *o)
{
	if (!o->flying)
		return;
	announced_free(TAKE_PTR(o->ahead.over));
	ahead_announce(&o->ahead, NULL);
	announced_free(o->ahead.over);
	for (uint64_t i = 0; i < o->ahead.depth; i++)
		free(o->flying[i]);
	free(o->flying);
}

bool sim_ahead_is_on(const struct sim_mounts *m)
{
	return m->c.fs->prefetch > 0;
}

/* --- a future ------------------------------------------------------------- */

static void keep(void *ctx, uint32_t rank, uint32_t object, unsigned tier)
{
	const struct sim_mounts *m = ctx;

	place_add(m->own[rank].tier[tier].kept, object);
}

static int place(struct sim_mounts *m, const struct future *f)
{
	struct foresee_tiers tiers = { .bytes = m->tier_bytes };
	uint16_t *owner;
	int r;

	while (tiers.n < m->tiers.n && m->tier_bytes[tiers.n])
		tiers.n++;
	for (uint32_t i = 0; i < m->c.nodes; i++)
		for (size_t k = 0; k < m->tiers.n; k++) {
			m->own[i].tier[k].kept = place_bits(m->place);
			if (!m->own[i].tier[k].kept)
				return -ENOMEM;
		}
	r = foresee_all(m->place, f, &tiers, keep, m, &owner);
	if (r == 0)
		place_reown(m->place, owner);
	return r;
}

static int announce(struct own *o, struct future *f)
{
	struct announced *fresh = announced_new(f, o->node, o->all->c.tree);

	if (!fresh)
		return -ENOMEM;
	announced_free(TAKE_PTR(o->ahead.over));
	ahead_announce(&o->ahead, fresh);
	announced_free(TAKE_PTR(o->ahead.over));
	o->called = true;
	return 0;
}

int sim_ahead_announce(struct sim_mounts *m, struct future *f, struct err *err)
{
	int r = m->place && !m->foresees ? place(m, f) : 0;

	m->foresees = true;
	for (uint32_t i = 0; r == 0 && i < m->c.nodes; i++)
		r = announce(&m->own[i], f);
	return r < 0 ? err_set(err, r, "out of memory for a future") : 0;
}

/* --- fetches -------------------------------------------------------------- */

int sim_ahead_next(struct sim_mounts *m, uint32_t node, uint32_t *ret)
{
	struct own *o = &m->own[node];
	unsigned looks = UINT_MAX; /* nobody waits for a lock */
	struct cache_object what;
	struct own_ahead *x;

	o->called = o->called && ahead_next(&o->ahead, &looks, &what);
	if (!o->called)
		return 0;
	x = calloc(1, sizeof(*x));
	if (!x || !ahead_stage(&o->ahead, &x->item, &what)) {
		free(x);
		return -ENOMEM;
	}
	x->reader = SIM_NOBODY;
	x->hit = sim_read_object(m, node, &x->read, what.key);
	*ret = 0;
	while (o->flying[*ret])
		++*ret;
	o->flying[*ret] = x;
	return 1;
}

static void land(struct own *o, struct own_ahead *x)
{
	ahead_landed(&o->ahead, x->hit ? AHEAD_FROM_CACHE
				: x->read.owner == PLACE_NONE
					? AHEAD_FROM_STORAGE
					: AHEAD_FROM_PEER);
	x->landed = true;
	o->called = true;
	if (!x->item.staged)
		free(x);
}

uint64_t sim_ahead_fetch(struct sim_mounts *m, uint32_t node, uint32_t fetch,
			 uint64_t now, uint32_t *ret_reader)
{
	struct own *o = &m->own[node];
	struct own_ahead *x = o->flying[fetch];
	uint64_t at = sim_read_go(m, node, &x->read, now);

	*ret_reader = SIM_NOBODY;
	if (at != SIM_READ_DONE)
		return at;
	o->flying[fetch] = NULL;
	*ret_reader = x->reader;
	land(o, x);
	return at;
}
