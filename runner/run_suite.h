/* SPDX-License-Identifier: MIT */
/*
 * A file that lists workloads, to be run one after the other and judged on one
 * page:
 *
 *	name: all                       a word; names the result folder
 *	question: Which results ...?    one line
 *	budget: 25m                     wall time that all of them may take
 *	workloads: [demo.yaml, ...]     files, seen from this one
 *
 * The results of each are where it puts them itself, results/NAME, so that
 * what has its record is not run again; with --output DIR they are in DIR/NAME.
 */
#ifndef GPEMU_RUNNER_RUN_SUITE_H
#define GPEMU_RUNNER_RUN_SUITE_H

#include "runner/run_experiment.h"

struct suite {
	char *path; /* as given, for messages */
	struct conf_node *root;
	char *name;
	char *question;
	uint64_t budget_ns;	    /* 0: none */
	struct conf_list workloads; /* char * */
};

/* What came of one of the workloads. */
struct suite_part {
	char *path;	 /* of its file */
	char *out;	 /* its result folder; NULL: results/NAME */
	bool failed;	 /* it, a cell or a check of it */
	char *error;	 /* why there is no summary, or NULL */
	json_t *summary; /* or NULL: it did not come to an end */
	json_t *rows;	 /* suite_rows of it */
	double seconds;	 /* wall: what it takes to run all of it */
	struct experiment e;
};

/* Is that a file that lists workloads? What cannot be read is not. */
bool suite_is(const char *path);

/*
 * Read and check a file, but not those that it names. -EINVAL and
 * "file:line:column: what". Free with suite_free, failed or not.
 */
int suite_parse(const char *bytes, size_t n, const char *path,
		struct suite *ret, struct err *err);
int suite_load(const char *path, struct suite *ret, struct err *err);
void suite_free(struct suite *s);
/* All keys of such a file, as conf_print_keys does. */
void suite_print_keys(FILE *f);

/*
 * Check all of its workloads, then run them (or with `check` say how long they
 * take; or print their commands), and report. The exit status. What fails in
 * one does not stop the others; a mistake in any file stops all, before
 * anything runs. *ret_stop: the signal that ended it.
 */
int suite_main(const char *path, const struct run_options *o, bool check,
	       struct stop *ret_stop);

/* --- run_suite_page.c ------------------------------------------------- */

/*
 * The checks of a summary, one row each, those at several points in one:
 * [{check, published, ours, verdict: pass | fail | shown, doubt}].
 */
json_t *suite_rows(const json_t *summary);

struct suite_total {
	double seconds;
	size_t n_failed; /* workloads */
	bool over;	 /* the budget */
};
struct suite_total suite_sum(const struct suite *s,
			     const struct suite_part *parts);

/* The table for people. */
void suite_print(const struct suite *s, const struct suite_part *parts,
		 FILE *f);
/* {gpemu, suite, question, seconds, budget_s, host, workloads: [...]} */
json_t *suite_json(const struct suite *s, const struct suite_part *parts);
/* The page. `out`: the folder that it is in, for its links. */
void suite_html(const struct suite *s, const struct suite_part *parts,
		const char *out, FILE *f);

#endif
