/* SPDX-License-Identifier: MIT */
/*
 * `gpemu-run export`: the runs of a result folder as one tidy table (RFC 4180),
 * one observation per line and one variable per column.
 *
 * Each line has the run: workload, cell, a column for each axis, repetition,
 * seed, and what was constant: every key of the configuration, version, host.
 * Then either
 *
 *	metric,unit,value	one line per run and metric, or with `epochs`
 *	job,epoch,...		one line per run, job and epoch, with the
 *				numbers of the record as they are
 *
 * A column that has a unit ends in it: epoch_s, cell_wall_s, memory_bytes,
 * samples_per_s. Runs that failed have no line.
 */
#ifndef GPEMU_RUNNER_RESULT_RUN_EXPORT_H
#define GPEMU_RUNNER_RESULT_RUN_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/err.h"

/* -ENOENT: `folder` has no study.json; -EINVAL; -ENOMEM. */
int export_folder(const char *folder, bool epochs, FILE *f, struct err *err);

#endif
