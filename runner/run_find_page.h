/* SPDX-License-Identifier: MIT */
/* The results of --find-max-gpus: JSON, table, plot and page. */
#ifndef GPEMU_RUNNER_RUN_FIND_PAGE_H
#define GPEMU_RUNNER_RUN_FIND_PAGE_H

#include "runner/run_experiment.h"

/*
 * A point: {axes{}, label, max_gpus, au, au_above, samples_per_s, runs,
 * by_gpus: [{gpus, au, samples_per_s, n}], tries, error}. AU are medians in
 * percent; au_above, with one more GPU, is null if not tried. With an `error`
 * max_gpus is null.
 */
json_t *find_point_json(const struct workload *w, size_t point,
			const json_t *tries, uint64_t most, const char *error);
/* {gpemu, workload, question, file, au, time_scale, seed, profiles, host,
 * points, runs}; NULL: no memory. */
json_t *find_json(const struct runner *r, double au, json_t *points,
		  json_t *origins);

/* The table (also on stdout unless quiet), the plot, the page, the JSON. */
int find_report(struct runner *r, const struct run_options *o,
		const json_t *found, struct err *err);

#endif
