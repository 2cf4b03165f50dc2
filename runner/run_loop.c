/* SPDX-License-Identifier: MIT */
#include "runner/run_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/program/child.h"
#include "common/log.h"
#include "common/rng.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/cell/run_cell.h"
#include "runner/cell/run_record.h"
#include "runner/cell/run_disturb.h"
#include "runner/run/run_lock.h"
#include "runner/run/run_remove.h"
#include "runner/run_again.h"

/* A worker first stops the programs of its cell in order. */
#define WORKER_GRACE_NS (30 * NS_PER_S)

struct loop {
	struct runner *r;
	struct progress bar;
	struct tally *tally;
	enum loop_cells which;
	size_t *todo, n, position;
	uint64_t begin_ns;
	bool *busy;   /* by position: another gpemu-run has it */
	bool *warm;   /* by point */
	size_t *done; /* cells that this one has run */
	size_t n_done;
};

/* --- order ------------------------------------------------------------ */

/* Has the cell a record that need not be made again? */
static bool has_record(const struct runner *r, const struct cell *cell,
		       enum loop_cells which)
{
	json_auto_t *record = cell_record(r, cell);

	if (!record || which == LOOP_ALL)
		return false;
	return which == LOOP_NEW || !disturb_is(record);
}

/*
 * The `i`-th cell. Random and interleaved: all points of a repetition, then the
 * next, so that slow drift of the machine affects all points alike; random also
 * shuffles each repetition, so that no point always follows the same one.
 */
static void order_cells(const struct workload *w, size_t *order)
{
	size_t n = w->n_points;

	for (size_t i = 0; i < workload_n_cells(w); i++)
		order[i] = w->order == ORDER_LISTED
				   ? i % w->repetitions * n + i / w->repetitions
				   : i;
	for (size_t rep = 0; w->order == ORDER_RANDOM && rep < w->repetitions;
	     rep++) {
		struct rng rng = rng_stream(w->seed, "cell-order", rep);
		size_t *block = order + rep * n;

		for (size_t i = n - 1; i > 0; i--) {
			size_t k = rng_below(&rng, i + 1), swap = block[i];

			block[i] = block[k];
			block[k] = swap;
		}
	}
}

int loop_list(const struct runner *r, enum loop_cells which, size_t **ret,
	      size_t *ret_n)
{
	size_t n_cells = workload_n_cells(r->w);
	_cleanup_free_ size_t *todo = calloc(n_cells, sizeof(*todo));
	_cleanup_free_ bool *mine = NULL;

	*ret_n = 0;
	if (!todo || shard_cells(&r->shard, r->w, &mine) < 0)
		return -ENOMEM;
	order_cells(r->w, todo);
	for (size_t i = 0; i < n_cells; i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };

		if (!mine[todo[i]])
			continue;
		if (workload_cell(r->w, todo[i], r->mounted, &cell) < 0)
			return -ENOMEM;
		if (!has_record(r, &cell, which))
			todo[(*ret_n)++] = todo[i];
	}
	*ret = TAKE_PTR(todo);
	return 0;
}

/* --- one cell --------------------------------------------------------- */

static void say_done(const struct loop *l, const struct cell *cell,
		     const char *label, uint64_t start)
{
	char took[UNITS_TEXT], left[UNITS_TEXT];
	uint64_t now = tick_wall();
	size_t done = l->position + 1;
	double each = (double)(now - l->begin_ns) / (double)done;

	if (l->bar.shown)
		return;
	fprintf(stderr, "cell %zu of %zu  %s, repetition %zu: %s", done, l->n,
		label, cell->repetition + 1,
		units_human_duration((double)(now - start), took));
	if (done < l->n)
		fprintf(stderr, ", %s left",
			units_human_duration(each * (double)(l->n - done),
					     left));
	fputc('\n', stderr);
}

static int warm_up(struct loop *l, const struct cell *cell, const char *label)
{
	const struct workload *w = l->r->w;
	struct err err = { 0 };
	int code = 0;

	if (l->warm[cell->point])
		return 0;
	l->warm[cell->point] = true;
	for (uint64_t i = 0; code == 0 && i < w->warmup; i++) {
		progress_update(&l->bar, l->position, label);
		code = cell_try(l->r, cell, NULL, &err);
	}
	/* if it fails, the cell fails too and reports it */
	return code == -EIO ? 0 : code;
}

/* Run one cell and print its line; 0 even if it failed. */
static int run_one(struct loop *l, size_t index)
{
	struct runner *r = l->r;
	struct cell_outcome out = { 0 };
	struct err err = { 0 };
	char label[90];
	_cleanup_(cell_free) struct cell cell = { 0 };
	uint64_t start;
	int code = workload_cell(r->w, index, r->mounted, &cell);

	if (code < 0)
		return code;
	workload_label(r->w, cell.point, label, sizeof(label));
	progress_update(&l->bar, l->position, label);
	code = warm_up(l, &cell, label);
	start = tick_wall();
	if (code == 0)
		code = cell_run(r, &cell, 1, &out, &err);
	if (code == -EIO) {
		progress_end(&l->bar);
		log_error("cell %s failed: %s", cell.id, err.text);
		l->tally->n_failed++;
		code = 0;
	} else if (code == 0) {
		l->tally->n_done++;
		say_done(l, &cell, label, start);
		l->done[l->n_done++] = index;
	}
	if (code < 0 && !r->stop.signal)
		log_error("%s", err.text);
	return code;
}

/* --- cells of a shared folder ----------------------------------------- */

/* Has another gpemu-run made the record since loop_list()? */
static bool has_record_now(const struct runner *r, const struct cell *cell,
			   enum loop_cells which)
{
	_cleanup_free_ char *records = util_join(r->out, "records");
	_cleanup_close_ int fd = -1;

	/* NFS remembers that a file was missing until its folder is opened */
	if (records)
		fd = open(records, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return has_record(r, cell, which);
}

/* Run the cell at l->position, unless another gpemu-run has it or had it. */
static int take_one(struct loop *l)
{
	struct runner *r = l->r;
	struct err err = { 0 };
	_cleanup_(cell_free) struct cell cell = { 0 };
	int code = workload_cell(r->w, l->todo[l->position], r->mounted, &cell);
	uint64_t byte;

	if (code < 0)
		return code;
	byte = lock_of_cell(cell.id);
	code = runner_try_lock(r, byte, &err);
	l->busy[l->position] = code == -EAGAIN;
	if (code == 0 && has_record_now(r, &cell, l->which))
		l->tally->n_other++;
	else if (code == 0)
		code = run_one(l, l->todo[l->position]);
	if (!l->busy[l->position])
		runner_unlock(r, byte);
	if (err.text[0])
		log_error("%s", err.text);
	return code == -EAGAIN ? 0 : code;
}

/* Wait until no other gpemu-run has the cell at l->position. */
static int wait_for_other(struct loop *l)
{
	struct err err = { 0 };
	_cleanup_(cell_free) struct cell cell = { 0 };
	int code = workload_cell(l->r->w, l->todo[l->position], l->r->mounted,
				 &cell);

	if (code < 0)
		return code;
	code = runner_lock(l->r, lock_of_cell(cell.id), &err);
	if (code == 0)
		runner_unlock(l->r, lock_of_cell(cell.id));
	if (err.text[0])
		log_error("%s", err.text);
	return code;
}

/* What others had is done, or it is ours now. */
static int finish_busy(struct loop *l)
{
	size_t n = 0;
	int code = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->busy[i];
	if (n)
		fprintf(stderr,
			"gpemu-run: waiting for %zu cells that another "
			"gpemu-run is running\n",
			n);
	for (l->position = 0; code == 0 && l->position < l->n; l->position++)
		while (code == 0 && l->busy[l->position]) {
			code = wait_for_other(l);
			if (code == 0)
				code = take_one(l);
		}
	return code;
}

/* --- all -------------------------------------------------------------- */

static void loop_fini(struct loop *l)
{
	size_t n_cells = workload_n_cells(l->r->w);

	free(l->todo);
	free(l->warm);
	free(l->done);
	if (l->busy)
		munmap(l->busy, n_cells * sizeof(*l->busy));
}

/* Memory that is shared with the workers. */
static void *shared_memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int loop_init(struct loop *l, struct runner *r, enum loop_cells which,
		     struct tally *tally)
{
	size_t n_cells = workload_n_cells(r->w), n_mine;
	int code;

	*l = (struct loop){
		.r = r, .tally = tally, .which = which, .begin_ns = tick_wall()
	};
	code = loop_list(r, which, &l->todo, &l->n);
	if (code < 0)
		return code;
	n_mine = shard_n_cells(&r->shard, r->w);
	tally->n_kept = n_mine - l->n;
	if (tally->n_kept)
		fprintf(stderr,
			"gpemu-run: %zu of %zu cells have a record in %s\n",
			tally->n_kept, n_mine, r->out);
	l->warm = calloc(r->w->n_points, sizeof(*l->warm));
	l->done = calloc(n_cells, sizeof(*l->done));
	l->busy = shared_memory(n_cells * sizeof(*l->busy));
	return l->warm && l->done && l->busy ? 0 : -ENOMEM;
}

int loop_run(struct runner *r, enum loop_cells which, enum progress_mode mode,
	     struct tally *ret)
{
	struct loop l;
	int code = loop_init(&l, r, which, ret);

	progress_init(&l.bar, "cells", l.n, mode);
	for (; code == 0 && l.position < l.n; l.position++)
		code = take_one(&l);
	if (code == 0)
		code = finish_busy(&l);
	progress_end(&l.bar);
	if (code == 0 && !r->w->independent)
		code = again_run(r, l.done, l.n_done, true, mode);
	loop_fini(&l);
	return code;
}

/* --- several at once -------------------------------------------------- */

/* State shared by the workers. */
struct shared {
	size_t next; /* atomic: the next cell */
	struct tally tally[RUN_MAX_JOBS];
};

struct worker {
	struct loop l; /* private copy */
	struct shared *shared;
	size_t number;
	struct child child;
};

/* In the worker's process; returns its exit status. */
static int work(void *ctx)
{
	struct worker *w = ctx;
	struct runner r = *w->l.r;
	int code = 0;

	w->l.r = &r;
	w->l.tally = &w->shared->tally[w->number];
	if (asprintf(&r.scratch, "%s/%zu", r.scratch, w->number) < 0 ||
	    mkdir(r.scratch, 0700) < 0)
		return 1;
	progress_init(&w->l.bar, "", 0, PROGRESS_OFF);
	while (code == 0 &&
	       (w->l.position = __atomic_fetch_add(&w->shared->next, 1,
						   __ATOMIC_RELAXED)) < w->l.n)
		code = take_one(&w->l);
	run_remove(r.scratch);
	return code < 0;
}

/* -EINTR: stopped by a signal; -EIO: a worker failed. The others are ended. */
static int wait_for_all(struct runner *r, struct worker *workers, size_t n,
			struct err *err)
{
	struct child *children[RUN_MAX_JOBS];
	size_t left = n, index;
	int status, code = 0;

	for (size_t i = 0; i < n; i++)
		children[i] = &workers[i].child;
	for (; code == 0 && left > 0; left--) {
		code = child_wait_any(children, n, &r->stop, 0, &index,
				      &status);
		if (code == 0 && status != 0)
			code = err_set(err, -EIO,
				       "a worker ended with exit status %d",
				       status);
	}
	for (size_t i = 0; i < n; i++)
		child_end(children[i], WORKER_GRACE_NS);
	return code;
}

static void add_tally(struct tally *sum, const struct tally *t)
{
	sum->n_done += t->n_done;
	sum->n_failed += t->n_failed;
	sum->n_other += t->n_other;
}

int loop_run_jobs(struct runner *r, enum loop_cells which, size_t jobs,
		  struct tally *ret, struct err *err)
{
	_cleanup_free_ struct worker *workers = calloc(jobs, sizeof(*workers));
	struct shared *shared;
	struct loop l;
	size_t n = 0;
	int code;

	if (!r->w->independent)
		return err_set(err, -EINVAL,
			       "--jobs: the cells of %s would disturb each "
			       "other's times; a workload that measures none "
			       "says 'independent: true'",
			       r->w->path);
	shared = shared_memory(sizeof(*shared));
	if (!workers || !shared)
		return -ENOMEM;
	code = loop_init(&l, r, which, ret);
	for (; code == 0 && n < MIN(jobs, l.n); n++) {
		workers[n] = (struct worker){ .l = l,
					      .shared = shared,
					      .number = n };
		code = child_fork(&workers[n].child, work, &workers[n], err);
	}
	if (code == 0)
		code = wait_for_all(r, workers, n, err);
	else
		for (size_t i = 0; i < n; i++)
			child_end(&workers[i].child, WORKER_GRACE_NS);
	for (size_t i = 0; i < n; i++)
		add_tally(ret, &shared->tally[i]);
	if (code == 0)
		code = finish_busy(&l);
	munmap(shared, sizeof(*shared));
	loop_fini(&l);
	return code;
}
