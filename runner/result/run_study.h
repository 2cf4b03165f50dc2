/* SPDX-License-Identifier: MIT */
/*
 * A result folder by itself: OUT/study.json holds what its records are of, so
 * that they can be read on another machine, without the workload file, the
 * profiles and the programs that made them.
 *
 *	gpemu		version of gpemu-run
 *	file		path of the workload file, as given
 *	workload	the file's contents, with what it extends and overrides
 *	overrides	[KEY=VALUE], as given
 *	repetitions, seed, time_scale, mounted
 *	profiles, files	{NAME: {file, hash, ...}}: run_profiles.h,
 *			run_identity.h
 *	defaults	of the programs
 *	cells		[hash], in hex, by index
 */
#ifndef GPEMU_RUNNER_RESULT_RUN_STUDY_H
#define GPEMU_RUNNER_RESULT_RUN_STUDY_H

#include "runner/run/runner.h"

struct study {
	json_t *j;
	struct workload w;
	struct runner r; /* of `w`; has no programs: nothing can run */
};

/* Write OUT/study.json, atomically. -errno with a text. */
int study_write(const struct runner *r, struct err *err);

/* Read that of `folder`, the folder of `r`. A study does not move. -ENOENT:
 * there is none; -EINVAL. Free with study_close, failed or not. */
int study_open(struct study *s, const char *folder, struct err *err);
void study_close(struct study *s);

/*
 * Are both of the same cells, made from the same inputs? -EINVAL: the text says
 * what differs first: the workload, its numbers, the version of gpemu, a
 * profile or a file by its hash.
 */
int study_same(const struct study *a, const struct study *b, struct err *err);

#endif
