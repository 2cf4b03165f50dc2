/* SPDX-License-Identifier: MIT */
/*
 * What MLPerf Storage would say of an experiment: its rules, each with what
 * was found. They are told of workloads that have `rules:`, and fail nothing.
 *
 *	dataset-size     the dataset has 5 times the bytes of the memory that
 *	                 could hold it: of the mount's cache, which is all that
 *	                 is between loader and device; without a mount, of the
 *	                 host
 *	cold-cache       no run finds data that an earlier one left: each has a
 *	                 mount of its own; without, it reads around the page
 *	                 cache
 *	steps-per-epoch  500 steps of each accelerator (closed division)
 *	au               the utilisation that `rules:` asks for, else 90 %
 *
 * Source: MLPerf Storage (github.com/mlcommons/storage), Rules.md, and
 * calculate_training_data_size of its mlpstorage/rules.py.
 */
#ifndef GPEMU_RUNNER_PAGE_RUN_RULES_H
#define GPEMU_RUNNER_PAGE_RUN_RULES_H

#include "runner/result/run_result.h"

enum { RULE_SIZE, RULE_COLD, RULE_STEPS, RULE_AU, N_RULES };

struct rule {
	size_t n;	 /* points that could be judged, */
	size_t n_broken; /* and those of them that break it */
	double worst;	 /* multiple of the memory, steps, percent */
};

struct rules {
	bool asked_for; /* else there is nothing to print */
	struct rule rule[N_RULES];
	double au; /* percent that are wanted */
};

/* From the records of all points. */
void rules_of(struct rules *ret, const struct result *res);
/* From the file, before anything runs: all but the utilisation, as far as the
 * profiles of the datasets tell. -ENOMEM. */
int rules_expected(struct rules *ret, const struct runner *r);

/* "WARN rule: found, wanted" a line for each that is broken, and the names of
 * those that hold or that nothing is known of. */
void rules_print(const struct rules *rules, const struct runner *r, FILE *f);
/* A table; one more part of the report. */
void rules_html(const struct rules *rules, const struct runner *r, FILE *f);
/* [{rule, wanted, found, points, broken}] */
json_t *rules_json(const struct rules *rules, const struct runner *r);

#endif
