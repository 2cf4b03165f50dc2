/* SPDX-License-Identifier: MIT */
/* Gantt charts: a row for each GPU, a bar for each run of a job on it. */
#ifndef GPEMU_SCHED_CHART_GANTT_H
#define GPEMU_SCHED_CHART_GANTT_H

#include "common/err.h"
#include "sched/chart/history.h"
#include "sched/trace/workload.h"

/* Before schedules are made: would `n` panels be too many, or too large, even
 * if no job lost what it has? -EINVAL with a text. */
int gantt_check(const char *path, const struct sched_workload *w,
		const struct cluster *c, size_t n, struct err *err);
/*
 * Draw a panel for each schedule of the workload on the cluster, one above the
 * other, into a file that gnuplot_check() accepts. -EINVAL with a text: more
 * than can be read, or drawn. -errno with a text, -ENOMEM.
 */
int gantt_draw(const char *path, const struct sched_workload *w,
	       const struct cluster *c, const struct history_named *panels,
	       size_t n, struct err *err);

#endif
