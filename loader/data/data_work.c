/* SPDX-License-Identifier: MIT */
/*
 * A pool (common/pool.h) with a progress bar. The first SIGINT or SIGTERM stops
 * the pool; the second ends the process (common/program/interrupt.h).
 */
#include "loader/data/data_work.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/pool.h"
#include "common/program/interrupt.h"
#include "common/tick.h"
#include "common/units.h"

struct run {
	const struct data_work *work;
	void *ctx;
	struct progress bar;
	uint64_t done;
	int cancel; /* atomic */
};

static int init_worker(void *ctx, void *worker, struct err *err)
{
	struct run *run = ctx;

	return run->work->init(worker, run->ctx, err);
}

static void fini(void *ctx, void *worker)
{
	struct run *run = ctx;

	run->work->fini(worker, run->ctx);
}

static int item(void *ctx, void *worker, size_t i, struct err *err)
{
	struct run *run = ctx;

	return run->work->item(worker, run->ctx, i, err);
}

static void draw(void *ctx, size_t n_done)
{
	struct run *run = ctx;
	double s = (double)(tick_wall() - run->bar.start_wall) / NS_PER_S;
	char note[64];

	run->done = n_done;
	if (!run->bar.shown)
		return;
	snprintf(note, sizeof(note), "%.0f %s/s",
		 s > 0 ? (double)n_done / s : 0, run->work->unit);
	progress_update(&run->bar, n_done, note);
}

static void stop(void *ctx)
{
	struct run *run = ctx;

	__atomic_store_n(&run->cancel, -EINTR, __ATOMIC_RELAXED);
}

int data_work_run(const struct data_work *w, void *ctx, uint64_t *ret_done,
		  struct err *err)
{
	struct run run = { .work = w, .ctx = ctx };
	struct interrupt interrupt = { .fn = stop, .ctx = &run };
	struct pool pool = { .n = w->n,
			     .threads = w->n_threads,
			     .ctx = &run,
			     .state_bytes = w->worker_size,
			     .init = w->init ? init_worker : NULL,
			     .fini = w->fini ? fini : NULL,
			     .work = item,
			     .progress = draw,
			     .cancel = &run.cancel };
	sigset_t before;
	int r;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	interrupt_block();
	r = interrupt_begin(&interrupt);
	if (r < 0)
		err_set(err, r, "cannot start a thread: %s", strerror(-r));
	progress_init(&run.bar, w->label, w->n, w->progress);
	if (r == 0)
		r = pool_run(&pool, err);
	progress_end(&run.bar);
	interrupt_end(&interrupt);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret_done)
		*ret_done = run.done;
	return r;
}
