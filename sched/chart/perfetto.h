/* SPDX-License-Identifier: MIT */
/*
 * A schedule as a timeline in the Trace Event Format
 * (common/text/trace_events.h): a process for each node, a track for each GPU.
 */
#ifndef GPEMU_SCHED_CHART_PERFETTO_H
#define GPEMU_SCHED_CHART_PERFETTO_H

#include "common/err.h"
#include "sched/chart/history.h"
#include "sched/trace/workload.h"

/* All schedules in one file. Times are those of the trace. -errno with a text,
 * -ENOMEM. */
int perfetto_write(const char *path, const struct sched_workload *w,
		   const struct cluster *c, const struct history_named *v,
		   size_t n, struct err *err);

#endif
