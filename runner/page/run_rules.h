/* SPDX-License-Identifier: MIT */
/*
 * Checks an experiment against the rules of MLPerf Storage. Reported for
 * workloads with `rules:`; violations fail nothing.
 *
 *	dataset-size     the dataset is at least 5 times as large as the memory
 *	                 that could cache it: the cache of the job's mount, or
 *	                 of the mounts of all its nodes; without a mount, the
 *	                 memory of the host
 *	cold-cache       no run starts with data cached by an earlier one: each
 *	                 has its own mount, or bypasses the page cache
 *	steps-per-epoch  500 steps per accelerator (closed division)
 *	au               the utilisation of `rules:`, default 90 %
 *
 * Source: MLPerf Storage (github.com/mlcommons/storage), Rules.md, and
 * calculate_training_data_size of its mlpstorage/rules.py.
 */
#ifndef GPEMU_RUNNER_PAGE_RUN_RULES_H
#define GPEMU_RUNNER_PAGE_RUN_RULES_H

#include "runner/result/run_result.h"

enum { RULE_SIZE, RULE_COLD, RULE_STEPS, RULE_AU, N_RULES };

struct rule {
	size_t n;	 /* points that could be checked */
	size_t n_broken; /* of these: points that violate it */
	double worst;	 /* multiple of the memory, steps, percent */
};

struct rules {
	bool asked_for; /* false: print nothing */
	struct rule rule[N_RULES];
	double au; /* required percentage */
};

/* Check the records of all points. */
void rules_of(struct rules *ret, const struct result *res);
/* Check the workload before it runs, by the records of simulated jobs (struct
 * estimate). */
void rules_expected(struct rules *ret, const struct runner *r,
		    const json_t *simulated);

/* A line "WARN rule: found, required" per violation, and the names of rules
 * that hold or could not be checked. */
void rules_print(const struct rules *rules, const struct runner *r, FILE *f);
/* [{rule, wanted, found, points, broken}] */
json_t *rules_json(const struct rules *rules, const struct runner *r);

#endif
