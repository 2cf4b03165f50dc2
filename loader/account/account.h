/* SPDX-License-Identifier: MIT */
/*
 * Where the time of an epoch went. All times are emulated ns unless the name
 * says wall or cpu.
 *
 * The GPU's timeline is compute, and idle time before each step: first for
 * want of the batch (data wait), then for the copy to the device (transfer
 * stall). Of a data wait,
 *
 *	      idle               complete          ready
 *	GPU   |------------------data wait-----------|--copy--|--compute--
 *	batch   ...reads, preparation...  |---pin----|
 *
 * what comes after `complete` is the pin stage's. Before, the batch was being
 * read and prepared: the read clock advances by the share of the time that
 * its workers spent waiting for or doing reads, rather than preparing. With
 * an engine whose workers own a batch its worker alone counts; else, since
 * every worker has a part in every batch, all of them. Reads that are on
 * their way while a worker has better things to do do not hold anybody up,
 * and are not counted: they are not why the batch is late.
 *
 *	pin stall   = complete .. ready, as far as the GPU was idle
 *	fetch stall = read share * (idle .. complete)
 *	prep stall  = the rest of idle .. complete
 *
 * so that data wait = fetch + prep + pin stall, for each GPU and in each sum.
 *
 * While a checkpoint is taken the GPU stands still between two steps: the
 * checkpoint stall, which is neither of these, and is not compute time.
 *
 * Several GPUs: what concerns a GPU is added up over them here, and the record
 * gives the mean of a GPU, and each of them. Between the GPUs' own ends and
 * the end of the step there are then the wait for the slowest one (barrier
 * wait) and the reduction of the gradients (all-reduce). Where each has a batch
 * of its own they come one after the other, and all GPUs want the last: as far
 * as the slowest was late because its batch was, the others' wait for it is a
 * data wait as its own. The record, the timeline and the log of steps all have
 * the same parts: struct stalls, added up.
 */
#ifndef GPEMU_LOADER_ACCOUNT_ACCOUNT_H
#define GPEMU_LOADER_ACCOUNT_ACCOUNT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/hist.h"
#include "emu/gpu/gpus.h"
#include "loader/pipeline/delivery.h"
#include "loader/pipeline/worker.h"

/* One GPU's part, all in emulated ns. */
struct account_gpu {
	uint64_t compute_ns, au_compute_ns, prep_ns;
	uint64_t data_wait_ns, transfer_stall_ns;
	uint64_t fetch_stall_ns, prep_stall_ns, pin_stall_ns; /* data wait */
	uint64_t barrier_wait_ns, allreduce_ns;
	uint64_t optimizer_ns; /* of compute_ns */
};

struct account {
	uint32_t gpus; /* how many; 0 before the first step */
	uint64_t epoch;
	uint64_t steps, samples, failed_samples;
	/* new to their epoch; and of the batches' classes the entropy in bits,
	 * its sum and of how many batches (visited.h) */
	uint64_t distinct_samples;
	double class_bits;
	uint64_t n_class_bits;
	uint64_t bytes; /* of the samples' files; work.bytes_read: all that
			 * was read, failed samples included */
	uint64_t batch_bytes; /* delivered to the device */
	uint64_t elapsed_ns;
	uint64_t wall_ns, cpu_ns;
	uint64_t compute_ns, transfer_ns, pin_ns; /* what the stages took */
	uint64_t data_wait_ns, fetch_stall_ns, prep_stall_ns, pin_stall_ns;
	uint64_t transfer_stall_ns;
	uint64_t prep_gpu_ns, barrier_wait_ns, allreduce_ns;
	uint64_t optimizer_ns; /* of compute_ns */
	/* written in this epoch, how long that took, and how long the GPU
	 * stood still for it; the caller fills in the first three */
	uint64_t checkpoints, checkpoint_bytes, checkpoint_ns;
	uint64_t checkpoint_stall_ns;
	uint64_t first_batch_ns; /* from the epoch's start */
	/* accelerator utilisation: both without the first step */
	uint64_t au_compute_ns, au_elapsed_ns;
	struct work work; /* of the workers */
	struct hist step;
	struct hist queue; /* batches that were ready when one was asked for */
	bool on_mount;	   /* hits and misses are known */
	uint64_t hits, misses;
	struct account_gpu gpu[GPUS_MAX];
};

/* A data wait and whose it was; the transfer stall is the GPU's own. */
struct stalls {
	uint64_t fetch_ns, prep_ns, pin_ns;
};
static inline uint64_t stalls_ns(const struct stalls *s)
{
	return s->fetch_ns + s->prep_ns + s->pin_ns;
}
/* Of a GPU that fell idle at `idle`, got `d`, and did `s`. */
struct stalls account_stalls(uint64_t idle, const struct delivery *d,
			     const struct gpu_step *s);
/* The last `ns` of that wait, <= s->data_wait_ns: another GPU waited for this
 * one at the barrier. */
struct stalls account_late(uint64_t ns, uint64_t idle, const struct delivery *d,
			   const struct gpu_step *s);

/* A step of `gpus` GPUs begins; then its batches, and each GPU's part in it:
 * GPU `i` fell idle at `idle`, took (its share of) `d`, and did `s`; of its
 * barrier wait, `late` was for a batch. */
void account_begin_step(struct account *a, uint32_t gpus);
void account_batch(struct account *a, const struct delivery *d);
void account_gpu(struct account *a, uint32_t i, uint64_t idle,
		 const struct delivery *d, const struct gpu_step *s,
		 const struct stalls *late);
/* Sums and histograms; `epoch` and first_batch_ns keep the first's. */
void account_merge(struct account *into, const struct account *from);

/* Compute time over elapsed time, without the first step; < 0: one step. */
double account_au(const struct account *a);
double account_samples_per_s(const struct account *a);
/* Of what is added up over the GPUs. */
uint64_t account_mean(const struct account *a, uint64_t ns);

/* As design: the record's epoch, or with `total` without its number. */
json_t *account_json(const struct account *a, bool total);

#endif
