/* SPDX-License-Identifier: MIT */
/* Checks before anything runs: the keys of a cell together. */
#ifndef GPEMU_RUNNER_CELL_RUN_COMBINATION_H
#define GPEMU_RUNNER_CELL_RUN_COMBINATION_H

#include "runner/run/runner.h"

/*
 * Let the programs check the configuration of each mount, job, gpemu-gpud and
 * worker of gpemu-prepd of all points, and gpemu-train what a simulation has of
 * gpemu-fs: keys that are each valid may exclude each other. Each distinct
 * configuration is checked once. -EINVAL: the text has the position of the axis
 * that completes the combination, and the labels of the point.
 */
int combination_check(struct runner *r, struct err *err);

#endif
