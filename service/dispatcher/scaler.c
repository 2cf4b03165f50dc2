/* SPDX-License-Identifier: MIT */
#include "service/dispatcher/scaler.h"

#include <inttypes.h>
#include <utlist.h>

#include "common/log.h"
#include "common/util.h"
#include "service/decide/scale.h"

/* Time-outs before a smaller estimate counts. arbitrary: the first batches of
 * an epoch say little, and a worker is soon drained but slowly started */
enum { PATIENCE = 4 };

/* What uses batches that are made for it alone: the consumers of rounds, each
 * as far as it reported, or all trainers as one. Returns how many. */
static size_t targets_of(const struct dispatcher *d, const struct job *j,
			 uint64_t ret[PREPD_CONSUMERS])
{
	size_t n = j->share.how == SHARE_ROUNDS ? j->share.consumers : 1;
	const struct guest *g;

	if (!j->target_ns)
		return 0;
	for (size_t i = 0; i < n; i++)
		ret[i] = j->target_ns;
	DL_FOREACH (d->guests, g) {
		if (n > 1 && g->target_ns && state_is_trainer(g, j->id))
			ret[g->consumer] = g->target_ns;
	}
	return n;
}

/* The workers that this job alone needs; 0: not known. */
static uint64_t estimate(struct dispatcher *d, const struct job *j)
{
	uint64_t ns[REGISTRY_MOST], target[PREPD_CONSUMERS], wanted;
	size_t n = 0, n_targets = targets_of(d, j, target);

	for (int i = 0; i < REGISTRY_MOST; i++)
		if (j->worker[i].ns &&
		    registry_find(&d->registry, j->worker[i].id))
			ns[n++] = j->worker[i].ns;
	if (scale_estimate(ns, n, target, n_targets, &wanted))
		return 0;
	return wanted;
}

static void estimate_all(struct dispatcher *d)
{
	uint64_t wanted = 0, now = tick_now(d->c.tick);
	bool shrinks = now >= d->shrink_at;

	for (uint32_t i = 0; i < d->book.n; i++) {
		uint64_t n = estimate(d, d->book.job[i]);

		wanted = MAX(wanted, n);
		/* these need the workers that they began with */
		shrinks = shrinks && d->book.job[i]->share.how != SHARE_ROUNDS;
	}
	if (!wanted || (wanted < d->wanted && !shrinks))
		return;
	d->shrink_at = now + PATIENCE * d->c.timeout_ns;
	if (wanted == d->wanted)
		return;
	log_info("%" PRIu64 " workers needed, %" PRIu32 " connected", wanted,
		 d->registry.n);
	d->wanted = wanted;
}

void scaler_cost(struct dispatcher *d, uint64_t job, uint64_t worker,
		 uint64_t ns)
{
	struct job *j = book_find(&d->book, job);
	struct job_worker *w = j ? state_job_worker(d, j, worker) : NULL;

	if (!w)
		return;
	w->ns = ns;
	estimate_all(d);
}

void scaler_target(struct guest *trainer, uint64_t ns)
{
	struct dispatcher *d = trainer->d;
	struct job *j = book_find(&d->book, trainer->id);
	const struct guest *g;

	if (!j)
		return;
	trainer->target_ns = j->target_ns = ns;
	DL_FOREACH (d->guests, g) {
		if (g->target_ns && state_is_trainer(g, j->id))
			j->target_ns = MIN(j->target_ns, g->target_ns);
	}
	estimate_all(d);
}

/* One, to begin with, makes the first batches, from which the others follow. */
void scaler_round(struct dispatcher *d)
{
	uint64_t n = d->wanted ? scale_next(MAX(d->registry.n, 1), d->wanted)
			       : 1;
	uint32_t target = (uint32_t)MIN(n, d->c.workers_most);

	if (target == __atomic_load_n(&d->target, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&d->target, target, __ATOMIC_RELAXED);
	fleet_wake(&d->fleet);
}
