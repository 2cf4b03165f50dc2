/* SPDX-License-Identifier: MIT */
/*
 * For each schedule a process with its name, which has two counters, and one
 * for each of its nodes. Slices of a track must not overlap: those that do are
 * in several tracks, which have the name of one GPU.
 */
#include "sched/chart/perfetto.h"

#include <errno.h>
#include <inttypes.h>

#include "common/text/trace_events.h"
#include "common/util.h"

struct writer {
	struct trace_events events;
	const struct sched_workload *w;
	const struct cluster *c;
	const struct history_named *of;
	uint32_t pid; /* of the schedule; its nodes have those behind it */
};

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

/* --- counters ------------------------------------------------------------- */

struct mark {
	uint64_t at_ns;
	int waiting, running; /* so many more */
};

static int earlier(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static void write_counter(struct writer *w, const char *name, uint64_t at_ns,
			  int64_t value)
{
	fprintf(trace_events_next(&w->events),
		"{\"ph\":\"C\",\"pid\":%" PRIu32
		",\"name\":\"%s\",\"ts\":%.3f,\"args\":{\"jobs\":%" PRId64 "}}",
		w->pid, name, us(at_ns), value);
}

static int write_counters(struct writer *w)
{
	const struct history *h = w->of->history;
	_cleanup_free_ struct mark *marks =
		malloc((w->w->n + 2 * h->n + 1) * sizeof(*marks));
	int64_t waiting = 0, running = 0;
	size_t n = 0;

	if (!marks)
		return -ENOMEM;
	for (size_t i = 0; i < w->w->n; i++)
		marks[n++] = (struct mark){ w->w->jobs[i].arrival_ns, 1, 0 };
	for (size_t i = 0; i < h->n; i++) {
		const struct history_run *r = &h->runs[i];
		bool done = h->last[r->job] == i + 1;

		marks[n++] = (struct mark){ r->from_ns, -1, 1 };
		marks[n++] = (struct mark){ r->until_ns, !done, -1 };
	}
	qsort(marks, n, sizeof(*marks), earlier);
	for (size_t i = 0; i < n; i++) {
		waiting += marks[i].waiting;
		running += marks[i].running;
		if (i + 1 < n && marks[i + 1].at_ns == marks[i].at_ns)
			continue;
		write_counter(w, "jobs waiting", marks[i].at_ns, waiting);
		write_counter(w, "jobs running", marks[i].at_ns, running);
	}
	return 0;
}

/* --- tracks --------------------------------------------------------------- */

static void name_node(struct writer *w, uint32_t node)
{
	_cleanup_free_ char *name = NULL;

	if (asprintf(&name, "%s, node %" PRIu32, w->of->name, node) < 0) {
		name = NULL;
		return;
	}
	trace_events_process(&w->events, w->pid + 1 + node, name);
}

static void name_tracks(struct writer *w, const struct history_row *row,
			uint32_t tid)
{
	char name[32];

	for (uint32_t k = 0; k < row->n_lanes; k++) {
		if (row->gpu < 0)
			snprintf(name, sizeof(name), "CPUs");
		else
			snprintf(name, sizeof(name), "GPU %d", row->gpu);
		trace_events_track(&w->events, w->pid + 1 + row->node, tid + k,
				   name);
	}
}

/* Numbers the tracks of each node from 1, and names those that are used. */
static void write_tracks(struct writer *w, const struct history_rows *rows,
			 uint32_t *tids)
{
	uint32_t next = 1;

	for (size_t i = 0; i < rows->n; i++) {
		const struct history_row *row = &rows->rows[i];

		if (!i || rows->rows[i - 1].node != row->node) {
			name_node(w, row->node);
			next = 1;
		}
		tids[i] = next;
		name_tracks(w, row, next);
		next += row->n_lanes;
	}
}

/* --- runs ----------------------------------------------------------------- */

/* The part of the run on the node. */
static const struct sched_part *part_on(const struct history *h,
					const struct history_run *r,
					uint32_t node, bool cpus)
{
	size_t k = 0;

	while (k + 1 < r->n_parts && (h->parts[r->first + k].node != node ||
				      !h->parts[r->first + k].gpus != cpus))
		k++;
	return &h->parts[r->first + k];
}

static void write_run(struct writer *w, const struct history_rows *rows,
		      const uint32_t *tids, const struct history_bar *bar)
{
	const struct history *h = w->of->history;
	const struct history_row *row = &rows->rows[bar->row];
	const struct history_run *r = &h->runs[bar->run];
	const struct sched_job *job = &w->w->jobs[r->job];
	const struct sched_part *p = part_on(h, r, row->node, row->gpu < 0);
	FILE *f = trace_events_next(&w->events);

	fprintf(f,
		"{\"ph\":\"X\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		",\"ts\":%.3f,\"dur\":%.3f,\"name\":",
		w->pid + 1 + row->node, tids[bar->row] + bar->lane,
		us(r->from_ns), us(r->until_ns - r->from_ns));
	trace_events_text(f, job->name);
	fputs(",\"args\":{\"user\":", f);
	trace_events_text(f, w->w->users[job->user]);
	fputs(",\"class\":", f);
	trace_events_text(f, w->w->classes[job->class]);
	fprintf(f,
		",\"gpus\":%" PRIu32 ",\"gpu_milli\":%" PRIu32
		",\"nodes\":%zu,\"cpus_here\":%g,\"memory_mib_here\":%" PRIu64
		"}}",
		job->n_gpus, job->gpu_milli, r->n_parts, p->cpu_milli / 1e3,
		p->memory_mib);
}

static int write_schedule(struct writer *w)
{
	_cleanup_free_ uint32_t *tids = NULL;
	struct history_rows rows;
	int r = history_rows_make(w->of->history, w->c, &rows);

	if (r == 0) {
		tids = calloc(rows.n + 1, sizeof(*tids));
		r = tids ? 0 : -ENOMEM;
	}
	if (r == 0) {
		trace_events_process(&w->events, w->pid, w->of->name);
		write_tracks(w, &rows, tids);
		r = write_counters(w);
	}
	for (size_t i = 0; r == 0 && i < rows.n_bars; i++)
		write_run(w, &rows, tids, &rows.bars[i]);
	history_rows_fini(&rows);
	return r;
}

int perfetto_write(const char *path, const struct sched_workload *w,
		   const struct cluster *c, const struct history_named *v,
		   size_t n, struct err *err)
{
	struct writer x = { .w = w, .c = c, .pid = 1 };
	int r = trace_events_open(&x.events, path, err), e;

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < n; i++) {
		x.of = &v[i];
		r = write_schedule(&x);
		x.pid += (uint32_t)c->n + 1;
	}
	e = trace_events_close(&x.events, r < 0 ? NULL : err);
	return r < 0 ? r : e;
}
