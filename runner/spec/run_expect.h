/* SPDX-License-Identifier: MIT */
/*
 * The expected results of an experiment, and published values:
 *
 *	expect:
 *	  - that: hit_ratio == 100 * fs.cache_size +- 1     closed form
 *	    where: {fs.cache_policy: minio}
 *	    kind: self
 *	  - {that: seconds[sff] / seconds[lru] < 0.7, kind: order}
 *	  - {falling: seconds, along: fs.cache_size, slack: 3%, kind: order}
 *	published:
 *	  paper:
 *	    {source: "...", metric: fetch_stall, along: train.model,
 *	     values: {alexnet: 41, vgg11: 2}, tolerance: 8, rank: 0.9,
 *	     kind: prediction}
 *
 * run_evidence.h says what the kinds mean.
 *
 * An expectation must hold at every point that `where` selects, once for each
 * value of the axes that it does not select itself. In `that`, a name is a
 * metric (its median), `published.NAME`, an axis or a setting such as
 * fs.cache_size (20% is 0.2, sizes are bytes, durations seconds).
 */
#ifndef GPEMU_RUNNER_SPEC_RUN_EXPECT_H
#define GPEMU_RUNNER_SPEC_RUN_EXPECT_H

#include "runner/spec/run_expr.h"
#include "runner/spec/run_metric.h"
#include "runner/spec/run_workload.h"

enum evidence_kind {
	EVIDENCE_INPUT,	     /* compares with a number that was put in */
	EVIDENCE_SELF,	     /* a closed form, or simulator against mount */
	EVIDENCE_CALIBRATED, /* fitted to other points of what is published */
	EVIDENCE_PREDICTION, /* nothing fitted, against what is published */
	EVIDENCE_ORDER,	     /* only which is larger */
	EVIDENCE_KINDS,
};

/* Of one check, as the file says it. */
struct evidence {
	char *kind_text;
	/* calibrated: the fitted points, {axis: label or labels} or a list of
	 * these; or a text */
	struct conf_node *fitted;
	/* why we contradict a published value; it is then an error of the check
	 * to hold at all of its points. NULL: none */
	char *reason;
	enum evidence_kind kind; /* set by evidence_check */
};

/* "3%" or "0.2". */
struct tolerance {
	bool given, relative;
	double value;
};

struct expect {
	char *name;		/* NULL: named by its text */
	char *that;		/* or: */
	char *rising, *falling; /* a metric, along an axis, */
	char *along;		/* from label to label, */
	struct conf_list of;	/* in this order; all: as the axis lists */
	char *slack_text; /* tolerated step in the wrong direction: absolute, or
			     "3%" */
	struct conf_node *where; /* axis: label, or list of labels */
	struct evidence evidence;
	/* set by expect_check */
	struct expr *expr;
	struct tolerance slack;
};

struct published {
	char *name;
	char *source;
	char *metric, *along;
	struct conf_node *values; /* label of `along`: number */
	struct conf_node *where;
	char *tolerance_text; /* NULL: shown beside ours, not checked */
	bool ranked;	      /* checked by rank */
	double rank;	      /* minimum of Spearman's correlation */
	char *doubt; /* why the published value may be wrong, or NULL */
	struct evidence evidence;
	struct tolerance tolerance;
};

extern const struct conf_field expect_fields[];
extern const struct conf_field published_fields[];

/*
 * Check and parse those of a workload. -EINVAL with "file:line:column: ". Free
 * with expect_free.
 */
int expect_check(struct workload *w, struct err *err);
void expect_free(struct workload *w);

/* Or only drawn? */
bool published_is_judged(const struct published *p);
/* The published value at a point, 0; or -ENOENT. */
int published_at(const struct workload *w, const struct published *p,
		 size_t point, double *ret);
/* NULL: there is none of that name. */
const struct published *published_find(const struct workload *w,
				       const char *name);

/* What nobody measures: a published value or a setting, at a point. -ENOENT;
 * -EINVAL: it is no number. */
int expect_constant(const struct workload *w, const struct expr_ref *ref,
		    size_t point, double *ret);
/*
 * The point at which a reference in an expression at `*point` is evaluated,
 * with `*` selectors at the `i`-th of their labels whose point exists. -ERANGE:
 * there is no i-th one; for i = 0, none at all.
 */
int expect_move(const struct workload *w, const struct expr_ref *ref, size_t i,
		size_t *point);

#endif
