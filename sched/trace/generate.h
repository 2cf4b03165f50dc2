/* SPDX-License-Identifier: MIT */
/*
 * Workloads from a seed: Poisson arrivals, log-normal lengths, a mix of sizes
 * and of classes.
 */
#ifndef GPEMU_SCHED_TRACE_GENERATE_H
#define GPEMU_SCHED_TRACE_GENERATE_H

#include <stdio.h>

#include "sched/trace/workload.h"

/* Words with weights: "a:20,b:80"; a weight of 1 may be left out. */
struct mix {
	char **words;
	double *weights; /* each and those before it; the last one is 1 */
	size_t n;
};

/* -EINVAL with a text, -ENOMEM. Free with mix_fini, failed or not. */
int mix_parse(const char *text, struct mix *ret, struct err *err);
void mix_fini(struct mix *m);

/* A number of GPUs, from 1 to WORKLOAD_GPUS_MAX; a factor. -EINVAL with a
 * text. */
int generate_gpus(const char *word, uint32_t *ret, struct err *err);
int generate_slowdown(const char *word, double *ret, struct err *err);

struct generate {
	uint64_t seed, jobs, users;
	double jobs_per_hour; /* 0: all at once */
	double median_s;      /* of the work */
	double sigma;	      /* of its logarithm; 0: all alike */
	struct mix gpus;      /* words are numbers of GPUs */
	struct mix classes;
	/* how many times longer a job takes without GPU; none: it needs one */
	struct mix slowdown;
};

/* Each quantity has a random stream of its own, so that changing one leaves
 * the others. -EINVAL with a text, -ENOMEM. */
int generate_workload(const struct generate *g, struct workload *ret,
		      struct err *err);
/* As a trace of the format "jobs". */
int generate_print(const struct workload *w, FILE *f);

#endif
