/* SPDX-License-Identifier: MIT */
/* Times in workloads of DLIO, of which MLPerf Storage's are some. */
#ifndef GPEMU_EMU_IMPORT_DLIO_TIME_H
#define GPEMU_EMU_IMPORT_DLIO_TIME_H

#include "common/conf/conf_tree.h"
#include "emu/profile/dist.h"

/*
 * A number of seconds, or a mapping: `mean` (and `stdev`, then normal), or
 * `type` normal {mean, stdev}, uniform {min, max}, gamma {shape, scale} or
 * {mean, stdev}, exponential {scale}. Source: dlio_benchmark/utils/utility.py,
 * sleep(), commit e1919d7; gamma by mean and stdev is ours.
 *
 * DLIO folds what is below 0 of a normal one up, struct dist cuts it at 0.
 *
 * -EINVAL with "name:line:column: what"; poisson too, whose draws are whole
 * seconds; -ENOMEM. Free with dist_time_free, failed or not.
 */
int dlio_time(const struct conf_node *at, const char *name,
	      struct dist_time *ret, struct err *err);
/* A mean gets a deviation, in seconds, as `computation_time_stdev` beside a
 * number: then it is normal. -EINVAL with a text; it was none. */
int dlio_time_spread(struct dist_time *t, double stdev, struct err *err);

/* The number in a scalar, from `min` to `max`; -EINVAL as above. An
 * interpolation of Hydra, "${...}", is no number. */
int dlio_number(const struct conf_node *at, const char *name, double min,
		double max, double *ret, struct err *err);

#endif
