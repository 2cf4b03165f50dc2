/* SPDX-License-Identifier: MIT */
/*
 * What a schedule made of the GPUs, from its history: a live run, which may
 * have been resumed, does not count while it runs. Who takes turns has the same
 * parts as others: they are taken once, by one of those who are there.
 */
#include <errno.h>

#include "common/util.h"
#include "sched/core/frag.h"
#include "sched/sim.h"

struct mark {
	uint64_t at_ns;
	uint32_t run;
	bool begins;
};

struct replay {
	const struct history *h;
	struct cluster cluster;
	struct frag_meter frag;
	struct sched_timeline *use;
	bool *taken; /* by each run */
	uint32_t *waiting;
	size_t n_waiting; /* runs whose parts others have */
	uint64_t now_ns;
	double lost_ns, free_ns; /* thousandths of GPUs times ns */
};

/* Ends first. */
static int earlier(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (int)x->begins - (int)y->begins;
}

static bool take_parts(struct replay *r, uint32_t run)
{
	const struct history_run *of = &r->h->runs[run];
	const struct sched_part *parts = &r->h->parts[of->first];

	for (size_t k = 0; k < of->n_parts; k++)
		if (!cluster_has(&r->cluster, &parts[k]))
			return false;
	for (size_t k = 0; k < of->n_parts; k++)
		cluster_take(&r->cluster, &parts[k]);
	r->taken[run] = true;
	return true;
}

/* Those who wait for what is free now have it. */
static void take_again(struct replay *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_waiting; i++)
		if (!take_parts(r, r->waiting[i]))
			r->waiting[n++] = r->waiting[i];
	r->n_waiting = n;
}

static void end(struct replay *r, uint32_t run)
{
	const struct history_run *of = &r->h->runs[run];
	size_t n = 0;

	for (size_t k = 0; r->taken[run] && k < of->n_parts; k++)
		cluster_give(&r->cluster, &r->h->parts[of->first + k]);
	for (size_t i = 0; i < r->n_waiting; i++)
		if (r->waiting[i] != run)
			r->waiting[n++] = r->waiting[i];
	r->n_waiting = n;
	take_again(r);
}

static void move_clock(struct replay *r, uint64_t at_ns)
{
	uint64_t free = r->cluster.free.gpu_milli;
	double ns = (double)(at_ns - r->now_ns);

	r->lost_ns += frag_meter_see(&r->frag, &r->cluster) * ns;
	r->free_ns += (double)free * ns;
	timeline_add(r->use, at_ns,
		     (double)(r->cluster.whole.gpu_milli - free) / GPU_MILLI);
	r->now_ns = at_ns;
}

static int replay_all(struct replay *r)
{
	_cleanup_free_ struct mark *marks =
		malloc((2 * r->h->n + 1) * sizeof(*marks));
	size_t n = 0;

	if (!marks)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->h->n; i++) {
		const struct history_run *run = &r->h->runs[i];

		if (run->until_ns <= run->from_ns)
			continue;
		marks[n++] = (struct mark){ run->from_ns, i, true };
		marks[n++] = (struct mark){ run->until_ns, i, false };
	}
	qsort(marks, n, sizeof(*marks), earlier);
	for (size_t i = 0; i < n; i++) {
		uint32_t run = marks[i].run;

		move_clock(r, MAX(marks[i].at_ns, r->now_ns));
		if (!marks[i].begins)
			end(r, run);
		else if (!take_parts(r, run))
			r->waiting[r->n_waiting++] = run;
	}
	return 0;
}

int result_replay(const struct sched_workload *w, const struct cluster *c,
		  const struct history *h, struct sim_result *ret)
{
	struct replay r = { .h = h, .use = &ret->use };
	int e = cluster_copy(c, &r.cluster);

	if (e == 0)
		e = frag_meter_init(&r.frag, &r.cluster, w->jobs, w->n);
	r.taken = calloc(h->n + 1, sizeof(*r.taken));
	r.waiting = malloc((h->n + 1) * sizeof(*r.waiting));
	r.now_ns = w->n ? w->jobs[0].arrival_ns : 0;
	timeline_init(r.use, r.now_ns);
	if (e == 0)
		e = r.taken && r.waiting ? replay_all(&r) : -ENOMEM;
	ret->frag = r.free_ns > 0 ? r.lost_ns / r.free_ns : 0;
	ret->frag_known = r.frag.f.n > 0;
	frag_meter_fini(&r.frag);
	cluster_fini(&r.cluster);
	free(r.taken);
	free(r.waiting);
	return e;
}
