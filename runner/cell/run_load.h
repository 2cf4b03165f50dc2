/* SPDX-License-Identifier: MIT */
/*
 * Load tests: what additional load does to a cell, instead of a bound on what
 * other load may have done.
 *
 * The bound of run_watch.h is loose for a cell with many threads: they wait for
 * each other. So the cell runs once more, beside busy processes of gpemu-run.
 * What counts is what the workload reads from the record: its metrics.
 *
 * Let h(x) be the change of a metric beside other programs that use the share x
 * of the CPUs. h(0) is 0. Assume that h grows at least in proportion to x (load
 * first takes the slack, then time), and that the other programs are of the
 * kind of the busy processes. With the shares a in the first run and b > a in
 * the second, and the measured change h(b) - h(a),
 *
 *	h(c) <= change * c / (b - a)	for c up to b.
 *
 * It is one pair of runs. Their spread adds to the change, so it counts in full
 * also where the factor is below 1; but it can also hide a change of its own
 * size. The test is evidence, not a bound.
 *
 * A cell whose metrics change too much to be cleared stays disturbed, but by
 * then it is known by how much: twice the change of a metric is the doubt of
 * its value. A check that holds wherever in it the values lie has held.
 *
 * Not every cell needs a test of its own. Three measures say which cells are
 * most at risk: the bound itself, the part of its waits for a CPU that the
 * bound is (a loader with one thread has a tight bound, and may lose all of
 * it), and its own CPU time. measured: none of them alone puts the cells of
 * datastall-fig3 in the order of what load does to them. A cell is cleared if
 * one cell that is at least as much at risk by all three has passed its test.
 *
 * Pure functions on records. The busy processes are those of run_burn.h; who
 * runs what is in run_load_test.h.
 */
#ifndef GPEMU_RUNNER_CELL_RUN_LOAD_H
#define GPEMU_RUNNER_CELL_RUN_LOAD_H

#include <jansson.h>
#include <stdbool.h>

#include "runner/spec/run_metric.h"

/* With b / a below this a test says too little: the factor exceeds 2. */
#define LOAD_LEAST_RATIO 1.5

/* Shares of the CPUs, measured while the cell's jobs ran. */
struct load_test {
	double others;	/* CPU time of other programs in the first run */
	double beside;	/* the same in the second run, additional load included
			 */
	double change;	/* the largest of a metric, relative; of one in %, in
			 * points; as a share. INFINITY: none can be compared */
	const char *of; /* which metric, borrowed; "" */
	bool points;	/* that metric is in % */
};

/*
 * Can a load test clear the record, with the workload's `noise` of `limit`? The
 * CPU time that other programs used is all that disturbed it, the host stole
 * less than `limit`, there is room for additional load, and it has not been
 * tested.
 */
bool load_can_clear(const json_t *record, double limit);
/* The CPU time of other programs, a share of the CPUs. */
double load_others(const json_t *record);

enum { LOAD_MEASURES = 3 };
struct load_risk {
	double by[LOAD_MEASURES]; /* more: more at risk */
	double others;		  /* load_others() */
};
struct load_risk load_risk(const json_t *record);

/* Busy processes beside a cell. */
struct load_plan {
	double share;	 /* of the CPUs that they use */
	unsigned n;	 /* processes */
	double period_s; /* from burst to burst */
	double burst_s;	 /* CPU time of each in each period */
};

/* The load for the second run of a cell: more than others made in the first,
 * in bursts on as many CPUs. */
struct load_plan load_plan(const json_t *record);

/* Compare the `n` metrics of a run with those of a second one beside additional
 * load. One that neither record has is left out. */
struct load_test load_compare(const json_t *first, const json_t *second,
			      const struct metric *const *metrics, size_t n);
/* {metric: change, as above}, null: it cannot be compared. NULL: no memory. */
json_t *load_changes(const json_t *first, const json_t *second,
		     const struct metric *const *metrics, size_t n);
/* "%" or "points", of the change. */
const char *load_unit(const struct load_test *t);
/* The largest change by other programs that use the share `others`, as far as
 * the assumptions above hold; INFINITY: the test does not say. */
double load_delay(const struct load_test *t, double others);

/* A cell of the workload in the course of its load tests. */
struct load_cell {
	struct load_risk risk;
	bool testable; /* it may still be tested, or cleared by others */
	bool tested;   /* by itself */
	struct load_test test;
};
/* The cell whose test clears that cell: of those that were tested and are at
 * least as much at risk by each measure, the one with the least load_delay, at
 * most `tolerance`. NULL: it is not cleared. */
const struct load_cell *load_clears(const struct load_cell *cells, size_t n,
				    const struct load_risk *risk,
				    double tolerance);

/*
 * The cell to test next, of `n`: of those that the passed tests do not clear,
 * the one that is at least as much at risk as the most others. `n`: none.
 */
size_t load_next(const struct load_cell *cells, size_t n, double tolerance);

/*
 * `load_test` of the record of a cell that ran beside `others`, by a test of
 * the cell `id` with `changes` (borrowed; or NULL): {cell, stands, seen,
 * other_cpu_share, other_cpu_share_tested, change, of, delay, delays{metric},
 * tolerance}; infinite numbers are null.
 */
json_t *load_json(const struct load_test *t, const json_t *changes,
		  const char *id, double others, double tolerance);
/* The id of the cell whose load test cleared the record; NULL: none did. */
const char *load_cleared_by(const json_t *record);
/* By how much other programs may have changed the value `v` of a metric in the
 * record of a disturbed cell, in its unit; INFINITY: no load test says. */
double load_doubt(const json_t *record, const struct metric *m, double v);

#endif
