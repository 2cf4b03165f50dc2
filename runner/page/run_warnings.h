/* SPDX-License-Identifier: MIT */
/*
 * What a reader must know before trusting a result: samples that could not be
 * used, where this machine, not the
 * emulated one, was the bottleneck (runner/cell/run_rig.h), and which runs
 * other load disturbed (runner/cell/run_disturb.h).
 */
#ifndef GPEMU_RUNNER_PAGE_RUN_WARNINGS_H
#define GPEMU_RUNNER_PAGE_RUN_WARNINGS_H

#include <jansson.h>
#include <stdio.h>

/* [{kind: "data", "gpu", "rig" or "disturbed", what, runs, of_runs, worst,
 * why}] of an array of records: of each limit and sign, how many runs have it,
 * and the id of the worst with its reason. NULL: no memory. */
json_t *warnings_json(const json_t *records);

/* Of that array: a line "WARN ..." each; nothing if it is empty. */
void warnings_print(const json_t *warnings, FILE *f);
/* For the report: add the title of each, "disturbed by other load, ". */
void warnings_mark(json_t *warnings);

#endif
