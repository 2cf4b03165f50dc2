/* SPDX-License-Identifier: MIT */
/*
 * What a storage profile promises a client: by formula from the profile's own
 * numbers where there is one, else by running the device model in virtual time
 * with a seed of its own. Never from measurements.
 */
#ifndef GPEMU_FS_SELFTEST_SELFTEST_MODEL_H
#define GPEMU_FS_SELFTEST_SELFTEST_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "emu/profile/profile_storage.h"

/* Operations of one kind by `streams` clients in a closed loop: each sends its
 * next operation when the last one is answered. */
struct model_load {
	enum storage_op op;
	uint64_t bytes;	 /* of a read, else 0 */
	bool sequential; /* each read begins where the last one ended */
	size_t streams;
};

/* The mean latency of one operation of this kind alone, emulated ns: the sum of
 * its parts' means; 0: the profile gives none. For at most one stripe. */
double model_mean_ns(const struct storage_profile *p,
		     const struct model_load *load);
/* Operations a second with enough streams: the lowest limit of the IOPS cap,
 * the channels and the link; for a device that reorders, at the longest queue
 * of its profile. 0: the profile sets no limit. */
double model_rate(const struct storage_profile *p,
		  const struct model_load *load);
/* Does the device move a head, so that parallel streams slow each other
 * down? */
bool model_seeks(const struct storage_profile *p);

struct model_run {
	uint64_t *ns; /* n latencies, ascending; owned */
	size_t n;     /* set by the caller */
	double mean_ns;
	double sd_ns;
	double rate; /* operations a second, without the first rounds */
};
/* Run the load through a device of its own. -ENOMEM. */
int model_run(const struct storage_profile *p, const struct model_load *load,
	      uint64_t seed, struct model_run *run);
void model_run_fini(struct model_run *run);
/* The q-quantile of n ascending values; 0 when there are none. */
double model_quantile(const uint64_t *ns, size_t n, double q);

/*
 * The number of streams that brings the device within 0.2 % of model_rate, at
 * most 4096. -ENOMEM.
 */
int model_depth(const struct storage_profile *p, const struct model_load *load,
		uint64_t seed, size_t *ret);
/*
 * The relative standard deviation of the rate over n operations at
 * load->streams. -ENOMEM.
 */
int model_noise(const struct storage_profile *p, const struct model_load *load,
		uint64_t seed, size_t n, double *ret);

#endif
