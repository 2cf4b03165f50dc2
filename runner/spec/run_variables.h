/* SPDX-License-Identifier: MIT */
/* {mount}, {seed} and the other variables of a user's command. */
#ifndef GPEMU_RUNNER_SPEC_RUN_VARIABLES_H
#define GPEMU_RUNNER_SPEC_RUN_VARIABLES_H

#include "runner/spec/run_workload.h"

/* All borrowed. */
struct variables {
	const char *mnt, *record, *bin, *share, *socket, *prepd, *prepd_key;
	char seed[24], scale[32]; /* variables_set_numbers */
	const json_t *exec;	  /* the user's keys */
};

/* The next name in braces from `s` on: returns its length, and its start in
 * *ret; 0: no more. */
size_t variables_next(const char *s, const char **ret);
/* Is it one of {mount} {record} {bin} {share} {seed} {time_scale} {gpud}
 * {prepd} {prepd_key}? */
bool variables_is_own(const char *name, size_t n);
/*
 * The next axis or setting in braces from `s` on that has a value at the point,
 * such as {node} or {fs.cache_size}: as variables_next, but no own names and no
 * `keys` of exec (an object, or NULL).
 */
size_t variables_next_setting(const struct workload *w, size_t point,
			      const json_t *keys, const char *s,
			      const char **ret);
/* A text with these substituted; malloc'ed. */
char *variables_expand_settings(const struct workload *w, size_t point,
				const json_t *keys, const char *text);
/* {seed} and {time_scale} of a cell. */
void variables_set_numbers(struct variables *v, const struct workload *w,
			   const struct cell *cell);
/* `word` with its variables substituted; unknown ones become empty; malloc'ed.
 */
char *variables_expand(const char *word, const struct variables *v);
/* A text of job `job` with its variables substituted, except {bin}, {share},
 * {mount}, {record}, {gpud}, {prepd} and {prepd_key}, which differ between
 * runs; malloc'ed. */
char *variables_expand_fixed(const struct workload *w, const struct cell *cell,
			     size_t job, const char *text);

#endif
