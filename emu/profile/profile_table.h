/* SPDX-License-Identifier: MIT */
/*
 * Measurements of a profiler on one GPU, every batch size of every model, and
 * their reduction to the few rows of a profile.
 */
#ifndef GPEMU_EMU_PROFILE_PROFILE_TABLE_H
#define GPEMU_EMU_PROFILE_PROFILE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "emu/profile/profile_gpu.h"

enum { TABLE_COLUMNS = 5 };

/* Times in ms, memory in MiB, in the order of struct gpu_row. */
struct table_point {
	uint64_t batch;
	double v[TABLE_COLUMNS];
	uint32_t n_runs; /* whose mean this is; 0: one */
};

struct table_model {
	char *name;
	struct table_point *points; /* batch ascending */
	size_t n;		    /* measured points */
	bool limit;		    /* the next batch size ran out of memory */
	bool memory_replaced;
	/* optional: */
	uint64_t parameters;   /* 0: not given */
	uint64_t sample_bytes; /* 0: the profile's */
	char *source;	       /* of its points, or NULL */
	double cv; /* standard deviation over mean of step times; 0: unknown */
};

struct table {
	struct table_model *models;
	size_t n;
};

/* "forward_ms", ... */
const char *table_column_name(size_t column);

/*
 * Add "model,batch_size,forward_s,backward_s,transfer_s,peak_mib,
 * persistent_mib" to a table; the rows of a model are contiguous. Safe on any
 * input. Free with table_free, failed or not.
 */
int table_parse(const char *bytes, size_t n, const char *name, struct table *t,
		struct err *err);
void table_free(struct table *t);
/*
 * Add a point to a model, new if need be: *ret, valid until the next one. A
 * point that is there becomes the mean of its runs with `average`; without it,
 * -EEXIST. -ENOMEM.
 */
int table_add(struct table *t, const char *model,
	      const struct table_point *point, bool average,
	      struct table_model **ret);
struct table_model *table_find(const struct table *t, const char *name);
/* Did anyone measure this column? */
bool table_column_given(const struct table_model *m, size_t column);
/*
 * How far, relative, a step deviates from the line between its neighbours, at
 * most: what is known of the batch sizes between those measured. 0: there are
 * none between; 1: too few points to tell.
 */
double table_gap_error(const struct table_model *m);

/*
 * Keep the batch sizes up to the last measured one, given by `gpu` and the
 * model in "gpu,model,last_measured_batch_compute".
 */
int table_cover(struct table *t, const char *path, const char *gpu,
		struct err *err);

/*
 * The same with the canonical table read from `memory_from` (may be NULL).
 * `path` names this table in errors.
 */
int table_clean_memory_from(struct table *t, const char *path,
			    const char *memory_from, double memory_mib,
			    struct err *err);

/*
 * The allowed deviation of a line from point `i`, in units of the column:
 * `tolerance` (0.01) of its value, or, if larger, three standard deviations of
 * the noise there, up to twice the tolerance (see profile_thin.c).
 */
double table_tolerance(const struct table_model *m, size_t i, size_t column,
		       double tolerance);

/*
 * The fewest rows such that straight lines between them stay within
 * table_tolerance of every point. Rows are points, rounded to four digits.
 * Batch sizes up to `jump` and above it are separate tables
 * (gpu_profile_jump_batch; 0: a single one). *ret is malloc'ed. -ENOMEM.
 */
int table_thin(const struct table_model *m, uint64_t jump, double tolerance,
	       struct gpu_row **ret, size_t *ret_n);

/* Sort ascending; the median of n >= 1 values, which it sorts. */
void table_sort(double *v, size_t n);
double table_median(double *v, size_t n);

/* The relative deviation of the profile from a point. */
double table_error(const struct gpu_profile *p, const struct gpu_model *m,
		   const struct table_point *point, size_t column);

/*
 * The error that a profile of these points states for its steps: the largest
 * deviation of its lines from a point, or of an inner point from the line
 * between its neighbours, relative. 0: a single point; 1: too few points to
 * tell.
 */
double table_stated_error(const struct gpu_profile *p,
			  const struct gpu_model *m,
			  const struct table_model *t);

#endif
