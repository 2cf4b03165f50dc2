/* SPDX-License-Identifier: MIT */
/*
 * What other programs took from a running cell.
 *
 * The cell is sampled while it runs, so that a short burst of load shows in its
 * windows even if the mean hides it. In a window
 *
 *	other	CPU time of other programs: busy time of the CPUs that this
 *		process may use, less the cell's own (kernel threads count as
 *		other programs)
 *	waited	time in which threads of the cell were ready and had no CPU;
 *		they also wait for each other
 *	stolen	time in which the host did not run a busy virtual CPU
 *
 * Other programs cannot have delayed the cell by more CPU time than they used,
 * nor by more than it waited. So of each window
 *
 *	taken = min(window, min(other, waited) + the cell's part of stolen)
 *
 * is an upper bound on the time by which they delayed the cell.
 */
#ifndef GPEMU_RUNNER_RUN_RUN_WATCH_H
#define GPEMU_RUNNER_RUN_RUN_WATCH_H

#include <jansson.h>
#include <stdint.h>

#include "common/program/child.h"

/* The time between two samples. measured: a sample of a mount and a loader with
 * 80 threads takes 1.5 ms of CPU time on a busy machine */
#define WATCH_NS (NS_PER_S / 2)

/* Counters of the system; all of them only grow. What the kernel does not
 * report is 0. */
struct watch_sample {
	uint64_t wall_ns;
	double idle_s, stolen_s; /* summed over the CPUs */
	double own_s, waited_s;	 /* of this process and its children */
	double pressure_cpu_s, pressure_io_s; /* of the system */
	double disk_busy_s; /* in which the disks served requests, summed */
	double own_mib, disk_mib; /* read and written: the cell, the system */
};

struct watch_thread {
	int tid;
	uint64_t waited_ns;
};

struct run_watch {
	unsigned cpus;
	struct watch_sample first, last;
	size_t n; /* windows */
	double other_s, waited_s, stolen_s, taken_s;
	double most;   /* other_s of the worst window, as a share of its CPUs */
	double owed_s; /* <= 0: CPU time of others counted too early */
	/* threads of the last sample, by tid */
	struct watch_thread *threads;
	size_t n_threads, capacity;
};

/* A pure step: account for the window from the last sample to `s`. */
void watch_add(struct run_watch *w, const struct watch_sample *s);

/* Begin, with the first sample, as watch_look. Free with watch_fini. */
void watch_begin(struct run_watch *w, struct child *const *children, size_t n);
/* Take a sample; `children`, of this process, run. Those without a pid are
 * skipped. */
void watch_look(struct run_watch *w, struct child *const *children, size_t n);
void watch_fini(struct run_watch *w);

/* taken_s as a share of the time watched; 0: nothing watched. */
double watch_taken(const struct run_watch *w);
/* The time of waits for the disk that others' use of it may explain, as a
 * share of the time watched; 0 for a cell that uses no disk. The kernel counts
 * a thread that sleeps in io_uring as one that waits for the disk; so no more
 * counts than the disks were busy. */
double watch_taken_io(const struct run_watch *w);
/* {cpus, windows, window_s, seconds, own_cpu_s, other_cpu_share,
 * other_cpu_share_max, cpu_wait_s, stolen_s, taken_s, taken_share,
 * taken_io_share, pressure_cpu_s, pressure_io_s, disk_busy_s,
 * own_disk_mib, other_disk_mib} */
json_t *watch_json(const struct run_watch *w);

#endif
