/* SPDX-License-Identifier: MIT */
#include "sched/chart/history.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

int history_init(struct history *h, size_t n_jobs)
{
	*h = (struct history){ 0 };
	h->last = calloc(n_jobs + 1, sizeof(*h->last));
	return h->last ? 0 : -ENOMEM;
}

void history_fini(struct history *h)
{
	free(h->runs);
	free(h->parts);
	free(h->last);
	*h = (struct history){ 0 };
}

static bool has_parts(const struct history *h, const struct history_run *r,
		      const struct sched_job *of)
{
	return r->n_parts == of->n_parts &&
	       !memcmp(&h->parts[r->first], of->parts,
		       of->n_parts * sizeof(*of->parts));
}

int history_begin(struct history *h, uint32_t job, const struct sched_job *of,
		  uint64_t now_ns)
{
	struct history_run *last = h->last[job] ? &h->runs[h->last[job] - 1]
						: NULL;
	int r;

	if (last && last->until_ns == now_ns && has_parts(h, last, of)) {
		last->until_ns = UINT64_MAX;
		return 0;
	}
	r = util_reserve(&h->runs, &h->allocated, h->n + 1, sizeof(*h->runs));
	if (r == 0)
		r = util_reserve(&h->parts, &h->parts_allocated,
				 h->n_parts + of->n_parts + 1,
				 sizeof(*h->parts));
	if (r < 0)
		return r;
	memcpy(&h->parts[h->n_parts], of->parts,
	       of->n_parts * sizeof(*of->parts));
	h->runs[h->n++] = (struct history_run){ job, now_ns, UINT64_MAX,
						h->n_parts, of->n_parts };
	h->n_parts += of->n_parts;
	h->last[job] = h->n;
	return 0;
}

void history_end(struct history *h, uint32_t job, uint64_t now_ns)
{
	struct history_run *last = h->last[job] ? &h->runs[h->last[job] - 1]
						: NULL;

	if (last && last->until_ns == UINT64_MAX)
		last->until_ns = MAX(now_ns, last->from_ns);
}

/* --- rows ----------------------------------------------------------------- */

/* The row of each node's first GPU, or of its CPUs if it has none; its CPUs
 * have the row behind its GPUs. */
static int make_rows(const struct history *h, const struct cluster *c,
		     struct history_rows *ret, uint32_t *first)
{
	_cleanup_free_ bool *cpus = calloc(c->n + 1, sizeof(*cpus));
	size_t n = 0;

	if (!cpus)
		return -ENOMEM;
	for (size_t i = 0; i < h->n_parts; i++)
		if (!h->parts[i].gpus)
			cpus[h->parts[i].node] = true;
	for (uint32_t i = 0; i < c->n; i++) {
		first[i] = (uint32_t)n;
		n += c->nodes[i].n_gpus;
		n += !c->nodes[i].n_gpus || cpus[i];
	}
	ret->rows = calloc(n + 1, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		int gpus = c->nodes[i].n_gpus;

		for (int g = 0; g < gpus; g++)
			ret->rows[ret->n++] =
				(struct history_row){ .node = i, .gpu = g };
		if (!gpus || cpus[i])
			ret->rows[ret->n++] =
				(struct history_row){ .node = i, .gpu = -1 };
	}
	return 0;
}

static int add_bar(struct history_rows *r, uint32_t row, size_t run)
{
	int e = util_reserve(&r->bars, &r->allocated, r->n_bars + 1,
			     sizeof(*r->bars));

	if (e == 0)
		r->bars[r->n_bars++] =
			(struct history_bar){ .row = row,
					      .run = (uint32_t)run };
	return e;
}

/* A bar for each GPU of the run, or one for the CPUs of each node. */
static int add_run(const struct history *h, const struct cluster *c,
		   const uint32_t *first, size_t run, struct history_rows *ret)
{
	const struct history_run *of = &h->runs[run];
	int r = 0;

	if (of->until_ns <= of->from_ns)
		return 0;
	for (size_t k = 0; k < of->n_parts; k++) {
		const struct sched_part *p = &h->parts[of->first + k];

		if (!p->gpus)
			r = add_bar(ret,
				    first[p->node] + c->nodes[p->node].n_gpus,
				    run);
		for (uint32_t g = 0; r == 0 && p->gpus >> g; g++)
			if (p->gpus >> g & 1)
				r = add_bar(ret, first[p->node] + g, run);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Runs are numbered by beginning. */
static int by_row(const void *a, const void *b)
{
	const struct history_bar *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->run < y->run ? -1 : x->run > y->run;
}

/* When each lane is free again, of the bars that overlap: from `begin` on. */
struct lanes {
	uint64_t *free_ns;
	size_t n, allocated;
	size_t begin;
	uint64_t end_ns;
};

/* All bars before `i` end before it begins. */
static void close_lanes(struct lanes *l, struct history_rows *r, size_t i)
{
	for (size_t k = l->begin; k < i; k++)
		r->bars[k].n_lanes = (uint32_t)l->n;
	l->begin = i;
	l->n = 0;
}

static int put_bar(struct lanes *l, const struct history *h,
		   struct history_rows *r, size_t i)
{
	struct history_bar *bar = &r->bars[i];
	const struct history_run *run = &h->runs[bar->run];
	struct history_row *row = &r->rows[bar->row];
	size_t lane = 0;
	int e;

	if (i && (bar[-1].row != bar->row || run->from_ns >= l->end_ns)) {
		close_lanes(l, r, i);
		l->end_ns = 0;
	}
	while (lane < l->n && l->free_ns[lane] > run->from_ns)
		lane++;
	e = util_reserve(&l->free_ns, &l->allocated, lane + 1,
			 sizeof(*l->free_ns));
	if (e < 0)
		return e;
	l->n = MAX(l->n, lane + 1);
	l->free_ns[lane] = run->until_ns;
	l->end_ns = MAX(l->end_ns, run->until_ns);
	bar->lane = (uint32_t)lane;
	row->n_lanes = MAX(row->n_lanes, bar->lane + 1);
	return 0;
}

int history_rows_make(const struct history *h, const struct cluster *c,
		      struct history_rows *ret)
{
	_cleanup_free_ uint32_t *first = calloc(c->n + 1, sizeof(*first));
	struct lanes l = { 0 };
	int r;

	*ret = (struct history_rows){ 0 };
	if (!first)
		return -ENOMEM;
	r = make_rows(h, c, ret, first);
	for (size_t i = 0; r == 0 && i < h->n; i++)
		r = add_run(h, c, first, i, ret);
	if (r == 0 && ret->n_bars)
		qsort(ret->bars, ret->n_bars, sizeof(*ret->bars), by_row);
	for (size_t i = 0; r == 0 && i < ret->n_bars; i++)
		r = put_bar(&l, h, ret, i);
	if (r == 0)
		close_lanes(&l, ret, ret->n_bars);
	free(l.free_ns);
	return r;
}

void history_rows_fini(struct history_rows *r)
{
	free(r->rows);
	free(r->bars);
	*r = (struct history_rows){ 0 };
}
