/* SPDX-License-Identifier: MIT */
/* One line of a self-test: the request and its result. */
#ifndef GPEMU_FS_SELFTEST_SELFTEST_LINE_H
#define GPEMU_FS_SELFTEST_SELFTEST_LINE_H

#include <jansson.h>

#include "fs/selftest/selftest_client.h"
#include "fs/selftest/selftest_model.h"

struct selftest_config;

enum line_kind {
	LINE_LATENCY,  /* mean ns of an operation alone */
	LINE_RATE,     /* operations a second at most */
	LINE_STREAM,   /* bytes a second at most */
	LINE_MEASURED, /* bytes a second of one random reader: published */
};

enum line_verdict { LINE_OK, LINE_MISS, LINE_SKIPPED };

struct line {
	enum line_kind kind;
	struct model_load load;
	double time_scale;
	size_t n;	/* operations to do */
	double want;	/* emulated: ns, operations or 10^6 bytes a second */
	double allowed; /* allowed deviation from `want`, same unit */
	double ceiling; /* emulated: the mount's own rate, on the ideal device
			 * with as many streams; 0: not measured */
	struct model_run model; /* of a latency: its distribution */
	double luck; /* LINE_MEASURED: the mean of the draws of the mount's
		      * device over the mean of the distribution */
	/* results */
	struct client_run run; /* of the last try */
	unsigned tries;
	double got;
	double ks; /* of a latency; < 0: the distribution is constant */
	enum line_verdict verdict;
	const char *why; /* skipped */
};

/* The mount's own latency, wall. */
struct line_base {
	double read_ns; /* median of one reader's 4 KiB reads */
	size_t n_files;
};

/*
 * One line for each number of a profile. `ret` is malloc'ed; free it with
 * lines_free. -ENOMEM.
 */
int lines_new(const struct storage_profile *p, struct line **ret,
	      size_t *ret_n);
void lines_free(struct line *lines, size_t n);
/* Set a line's streams (line_streams), then its scale (time_scale > 0: that
 * one) and its number of operations (line_plan). In between, for a rate, the
 * caller sets line->ceiling, wall. -ENOMEM. */
int line_streams(struct line *l, const struct storage_profile *p,
		 uint64_t seed);
int line_plan(struct line *l, const struct storage_profile *p, uint64_t seed,
	      double time_scale);
/* Set got, ks and the verdict from line->run; `seed`: the mount's. -ENOMEM. */
int line_judge(struct line *l, const struct storage_profile *p, uint64_t seed);

/* Print the table, line by line. */
void line_print_head(FILE *f, const struct selftest_config *c,
		     const char *source, const struct line_base *base);
void line_print(FILE *f, const struct line *l);
/* The record; NULL: no memory. */
json_t *lines_json(const struct selftest_config *c, const char *source,
		   const struct line_base *base, const struct line *lines,
		   size_t n, bool passed);

#endif
