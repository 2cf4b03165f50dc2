/* SPDX-License-Identifier: MIT */
/*
 * A list of workloads, run one after the other and summarised on one page:
 *
 *	name: all                       a word; names the result folder
 *	question: Which results ...?    one line
 *	budget: 25m                     limit of the total wall time
 *	workloads: [demo.yaml, ...]     files, relative to this one
 *
 * Each workload has its usual result folder, results/NAME, so that cells with a
 * record do not run again; with --output DIR it is DIR/NAME.
 */
#ifndef GPEMU_RUNNER_RUN_SUITE_H
#define GPEMU_RUNNER_RUN_SUITE_H

#include "runner/result/run_score.h"
#include "runner/run_experiment.h"

struct suite {
	char *path; /* as given, for messages */
	struct conf_node *root;
	char *name;
	char *question;
	uint64_t budget_ns;	    /* 0: none */
	struct conf_list workloads; /* char * */
};

/* The result of one workload. */
struct suite_part {
	char *path;	    /* of its file */
	char *out;	    /* its result folder; NULL: results/NAME */
	bool failed;	    /* the workload, a cell or a check */
	char *error;	    /* why there is no summary, or NULL */
	json_t *summary;    /* NULL: the workload did not finish */
	json_t *rows;	    /* suite_rows of it */
	struct score score; /* of its verdicts */
	double seconds;	    /* wall time of all cells */
	struct experiment e;
};

/* Is the file a list of workloads? False if it cannot be read. */
bool suite_is(const char *path);

/*
 * Read and check the list, but not the files in it. -EINVAL and
 * "file:line:column: what". Free with suite_free, failed or not.
 */
int suite_parse(const char *bytes, size_t n, const char *path,
		struct suite *ret, struct err *err);
void suite_free(struct suite *s);
/* All keys of such a file, as conf_print_keys does. */
void suite_print_keys(FILE *f);

/*
 * Check all workloads, then run them (or with `check` estimate their time, or
 * print their commands), and report. Returns the exit status. A failure in one
 * does not stop the others; an error in any file stops all before anything
 * runs. *ret_stop: the signal that stopped it.
 */
int suite_main(const char *path, const struct run_options *o, bool check,
	       struct stop *ret_stop);

/* --- run_suite_page.c ------------------------------------------------- */

/*
 * The checks of a summary, one row per check, with all its points: [{check,
 * kind, published, ours, interval, verdict, note, doubt}]. The verdict of
 * values that are not judged is "shown", and their kind "".
 */
json_t *suite_rows(const json_t *summary);

struct suite_total {
	double seconds;
	size_t n_failed, n_undecided; /* workloads */
	bool over;		      /* the budget */
	struct score score;	      /* of all verdicts */
};
struct suite_total suite_sum(const struct suite *s,
			     const struct suite_part *parts);

/* The table as text. */
void suite_print(const struct suite *s, const struct suite_part *parts,
		 size_t width, FILE *f);
/* {gpemu, suite, question, seconds, budget_s, host, workloads: [...]} */
json_t *suite_json(const struct suite *s, const struct suite_part *parts);
/* What fills the page. `out`: its folder, for the links. */
json_t *suite_page_json(const struct suite *s, const struct suite_part *parts,
			const char *out);

#endif
