/* SPDX-License-Identifier: MIT */
/*
 * The evaluation of one check: at which points, over the repetitions, and what
 * they decide. For run_verdict.c and run_verdict_published.c.
 */
#ifndef GPEMU_RUNNER_RESULT_RUN_JUDGE_H
#define GPEMU_RUNNER_RESULT_RUN_JUDGE_H

#include "runner/result/run_result.h"
#include "runner/result/run_score.h"
#include "runner/spec/run_evidence.h"

struct judge {
	const struct result *res;
	const struct workload *w;
	const struct conf_node *where;
	const struct evidence *evidence;
	enum evidence_kind kind; /* of the next verdict */
	const char *reason;	 /* of the next verdict; or NULL */
	bool *depends;		 /* by axis */
	size_t point, repetition;
	bool disturbed; /* the run of a value since judge_ask was */
	bool null;	/* values are those without the effect */
	bool vain;	/* the check holds without the effect, too */
	/* the sides in each repetition that has all their values */
	struct expr_result *found;
	size_t n_found;
	double *scratch; /* [repetitions] */
	struct verdicts *v;
};

/* Free with judge_fini, failed or not. -ENOMEM. */
int judge_init(struct judge *j, const struct result *res,
	       const struct conf_node *where, const struct evidence *evidence,
	       struct verdicts *v);
void judge_fini(struct judge *j);

/* Shall the check be made at this point, the first of a combination that
 * `where` selects? Then it becomes the judge's point, and nothing is found. */
bool judge_ask(struct judge *j, size_t point);

/* The value of a metric in the judge's repetition. -ENOENT: there is none. */
int judge_value(struct judge *j, size_t point, const struct metric *m,
		double *ret);

/* The comparisons of a check, all of which must hold. */
struct decision {
	enum verdict_state state; /* passes, fails or undecided */
	size_t n;		  /* repetitions; 0: nothing was judged */
	size_t needed;		  /* repetitions to decide; SIZE_MAX: never */
	struct interval interval; /* from two repetitions on */
	const char *of;		  /* of what it is: "difference "; "": ours */
};

/* One more comparison: it holds while `margin` (of `n` repetitions) is positive
 * or, unless `strict`, at least -`rounding`. */
void decision_add(struct decision *d, const double *margin, size_t n,
		  bool strict, double rounding);
/* Decide the comparisons of what is found, and the means of its sides. Of two
 * sides the first is ours, of more the second. n_found > 0. */
void judge_decide(struct judge *j, struct decision *ret,
		  struct expr_result *ret_mean);

/* Decide the check at the judge's point. Negative: it cannot be decided. */
typedef int (*decide_fn)(struct judge *j, void *ctx, struct decision *ret);
/*
 * Decide a check without the effect (`null` of the workload), if it is of a
 * kind that reproduces. One that holds there, too, becomes of kind input.
 */
void judge_null(struct judge *j, decide_fn decide, void *ctx);

/* The result in three texts, which the verdict takes over; NULL: no memory. */
struct found {
	char *numbers, *ours, *wanted;
};

/* Add a verdict at the judge's point. -ENOMEM. */
int judge_add(struct judge *j, const char *check, const struct decision *d,
	      struct found f);
/* Add a check that could not be made, and why (taken over). */
int judge_add_missing(struct judge *j, const char *check, char *why);
/* End a check whose verdicts are those since `before`: if there is none, add
 * the same; if its reason contradicts none of them, they have failed. -ENOMEM.
 */
int judge_settle(struct judge *j, size_t before, const char *check);

/* run_verdict_published.c: judge the values of others. -ENOMEM. */
struct published;
int judge_published(struct judge *j, const struct published *p);

#endif
