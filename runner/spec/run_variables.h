/* SPDX-License-Identifier: MIT */
/* {mount}, {seed} and the other variables of a command of the user's. */
#ifndef GPEMU_RUNNER_SPEC_RUN_VARIABLES_H
#define GPEMU_RUNNER_SPEC_RUN_VARIABLES_H

#include "runner/spec/run_workload.h"

/* Borrowed, all of them. */
struct variables {
	const char *mnt, *record, *bin, *socket;
	char seed[24], scale[32]; /* variables_set_numbers */
	const json_t *exec;	  /* keys of the user's */
};

/* What stands between braces in a command, from `s` on: its length and where
 * it begins in *ret, or 0: there is no more. */
size_t variables_next(const char *s, const char **ret);
/* {seed} and {time_scale} of a cell. */
void variables_set_numbers(struct variables *v, const struct workload *w,
			   const struct cell *cell);
/* `word` with its variables replaced, by nothing where no key of the cell has
 * the name; malloc'ed. */
char *variables_expand(const char *word, const struct variables *v);
/* A text of job `job` with its variables replaced, but {bin}, {mount},
 * {record} and {gpud}, which are not the same in each run; malloc'ed. */
char *variables_expand_fixed(const struct workload *w, const struct cell *cell,
			     size_t job, const char *text);

#endif
