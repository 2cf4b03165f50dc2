/* SPDX-License-Identifier: MIT */
/*
 * Parallel work on items 0..n-1, with a progress bar. The first error, SIGINT
 * or SIGTERM stops it cleanly.
 */
#ifndef GPEMU_LOADER_DATA_DATA_WORK_H
#define GPEMU_LOADER_DATA_DATA_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/program/progress.h"

struct data_work {
	const char *label; /* of the bar */
	const char *unit;  /* "files": unit of the rate in the bar */
	uint64_t n;
	unsigned n_threads;
	enum progress_mode progress;
	size_t worker_size; /* state per thread, zeroed; at least 1 */
	/* Both run on the worker's thread. NULL: nothing to do. */
	int (*init)(void *worker, void *ctx, struct err *err);
	void (*fini)(void *worker, void *ctx); /* also after a failed init */
	int (*item)(void *worker, void *ctx, uint64_t i, struct err *err);
};

/*
 * 0, or the first error; -EINTR: a signal came before all were done; items in
 * progress were finished. *ret_done (may be NULL) is the number of items done.
 * Blocks SIGINT, SIGTERM and SIGUSR1 in the calling thread while it runs.
 */
int data_work_run(const struct data_work *w, void *ctx, uint64_t *ret_done,
		  struct err *err);

#endif
