/* SPDX-License-Identifier: MIT */
/*
 * Distributions of durations, as profiles give them:
 *
 *	{kind: lognormal, median: 2ms, sigma: 0.4,
 *	 tail: {probability: 0.01, multiply: [5, 10]}}
 *
 * A profile's own table of fields holds a struct dist_time as a CONF_RECORD
 * of dist_time_fields, checked by dist_time_check.
 */
#ifndef GPEMU_EMU_PROFILE_DIST_H
#define GPEMU_EMU_PROFILE_DIST_H

#include <stdint.h>

#include "common/conf/conf.h"
#include "common/err.h"
#include "common/rng.h"

/* An hour: longer than any operation, short enough that sums stay exact, also
 * those of a heavy tail's draws. */
#define DIST_MAX_NS 3.6e12

enum dist_kind {
	DIST_CONST,	/* value; also when no distribution is given: 0 */
	DIST_UNIFORM,	/* min, max */
	DIST_NORMAL,	/* mean, sd; cut at 0 */
	DIST_LOGNORMAL, /* median, sigma (of the logarithm) */
	DIST_GAMMA,	/* mean, shape */
	DIST_EMPIRICAL, /* quantiles, linear between them */
	DIST_N_KINDS
};

struct dist_quantile {
	double q; /* 0..1, ascending, first 0, last 1 */
	uint64_t ns;
};
/* Of a CONF_LIST of rows, and what must hold of such a list. */
extern const struct conf_field dist_quantile_fields[];
int dist_check_quantiles(const struct conf_list *quantiles, struct err *err);
/* The line between them at u, 0..1; its mean. ns. */
double dist_quantile(const struct conf_list *quantiles, double u);
double dist_quantiles_mean(const struct conf_list *quantiles);

/* A distribution of durations. */
struct dist {
	char *kind_name;
	enum dist_kind kind; /* of kind_name */
	uint64_t value_ns;
	uint64_t min_ns, max_ns;
	uint64_t mean_ns, sd_ns;
	uint64_t median_ns;
	double sigma;
	double shape;
	struct conf_list quantiles; /* struct dist_quantile */
};

/* With probability p a draw is multiplied by a factor that is uniform in
 * min..max, or replaced by a draw from another distribution. */
struct dist_tail {
	double probability; /* 0: no tail */
	struct {
		double min, max;
	} multiply; /* both 0: replace */
	struct dist replace;
};

struct dist_time {
	struct dist body;
	struct dist_tail tail;
};

extern const struct conf_field dist_time_fields[];
/* A `check` of struct conf_field. */
int dist_time_check(const void *object, struct err *err);
/*
 * From a text, as options give it: "323ms", or KIND:KEY=VALUE,... as in
 * "normal:mean=323ms,sd=30ms"; without quantiles and tail. -EINVAL with a text.
 * Free with dist_time_free, failed or not.
 */
int dist_time_parse(const char *text, struct dist_time *ret, struct err *err);
/* A `check` of struct conf_field: such a text, a char **. */
int dist_time_check_text(const void *object, struct err *err);
/* That text, malloc'ed, which reads back to the same; NULL: no memory. */
char *dist_time_text(const struct dist_time *t);
void dist_time_free(struct dist_time *t);
/* The kind of a checked kind_name. */
void dist_time_resolve(struct dist_time *t);

/* "const", "uniform", ... */
const char *dist_name(enum dist_kind kind);
/* Expected value in ns (a normal's cut at 0 is not counted). */
double dist_time_mean(const struct dist_time *t);
/* The standard deviation of one without tail and quantiles, ns. */
double dist_time_sd(const struct dist_time *t);

/* One draw in ns, an hour at most. */
uint64_t dist_time_draw(const struct dist_time *t, struct rng *rng);

#endif
