/* SPDX-License-Identifier: MIT */
/* Shared by tests of libgpemu: a dataset, an epoch of it, two engines. */
#ifndef GPEMU_TESTS_CONTRACT_LIB_RIG_H
#define GPEMU_TESTS_CONTRACT_LIB_RIG_H

#include "tests/unit/test.h"

#include <gpemu.h>

/* Samples, and steps of four each in an epoch. Sample i has i * 777 bytes,
 * all i + 1; two classes. */
enum { LIB_N = 26, LIB_STEPS = 7 };

/* Its path; made and removed by the group's setup and teardown. */
extern char lib_dir[64];
int lib_make_data(void **state);
int lib_remove_data(void **state);

/* The file of sample i; make all files again. */
void lib_path(unsigned i, char path[96]);
void lib_mend_data(void);

/* Open the dataset with fast options, and up to 16 more. */
struct gpemu *lib_open(const struct gpemu_engine *engine,
		       const char *const more[]);
/* Opening must fail, with `code` and these words. */
void lib_no_open(const struct gpemu_engine *engine, const char *option,
		 int code, const char *words);
/* Its bytes, label and name, or with an error zeros. */
void lib_check_sample(const struct gpemu_sample *s, int error);
/* An epoch: each sample once, whole. */
void lib_whole_epoch(struct gpemu *g, uint64_t want);

/* One sample at a time; as many in flight as allowed, completed last in first
 * out. */
extern const struct gpemu_engine lib_engine_one, lib_engine_many;

#endif
