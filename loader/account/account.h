/* SPDX-License-Identifier: MIT */
/*
 * Where the time of an epoch went. All times are emulated ns unless the name
 * says wall or cpu.
 *
 * The GPU's timeline is compute, and idle time before each step: first the wait
 * for the batch (data wait), then for the copy to the device (transfer stall).
 * Of a data wait,
 *
 *	      idle               complete          ready
 *	GPU   |------------------data wait-----------|--copy--|--compute--
 *	batch   ...reads, transforms....  |---pin----|
 *
 * the part after `complete` is the pin stage's. Before, the batch was being
 * read and transformed. The read share is the share of that time which its
 * workers spent waiting for or doing reads, as opposed to transforms. With an
 * engine whose workers own a batch, only the batch's worker counts; else all
 * workers do, since each has a part in every batch. Reads in flight while a
 * worker runs transforms do not count: they are not why the batch is late.
 *
 *	pin stall   = complete .. ready, as far as the GPU was idle
 *	fetch stall = read share * (idle .. complete)
 *	prep stall  = the rest of idle .. complete
 *
 * so that data wait = fetch + prep + pin stall, for each GPU and in each sum.
 *
 * During a checkpoint the GPU stands still between two steps. This is the
 * checkpoint stall; it is neither data wait nor transfer stall nor compute
 * time.
 *
 * Several GPUs: values of a GPU are summed over the GPUs here; the record gives
 * the mean of a GPU, and each of them. Between the end of a GPU's compute and
 * the end of the step are the wait for the slowest GPU (barrier wait) and the
 * reduction of the gradients (all-reduce). Where each GPU has its own batch,
 * the batches come one after the other, and all GPUs wait for the last one. As
 * far as the slowest GPU was late because of its batch, the others' barrier
 * wait counts as data wait. The record, the timeline and the log of steps all
 * have the same parts: struct stalls, added up.
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

/* One GPU's part of the account, in emulated ns. */
struct account_gpu {
	uint64_t compute_ns, prep_ns;
	/* accelerator utilisation, with au_elapsed_ns: without the first step
	 */
	uint64_t au_compute_ns;
	uint64_t data_wait_ns, transfer_stall_ns, host_stall_ns;
	uint64_t fetch_stall_ns, prep_stall_ns, pin_stall_ns; /* of data wait */
	uint64_t barrier_wait_ns, allreduce_ns;
	uint64_t optimizer_ns; /* of compute_ns */
};

struct train_account {
	uint32_t gpus;	     /* number; 0 before the first step */
	uint32_t more_nodes; /* whose accounts were joined */
	uint64_t epoch;
	uint64_t steps, samples, failed_samples;
	uint64_t drawn_samples; /* that were to be in the batches */
	/* samples new to their epoch; the summed class entropy of batches in
	 * bits, and the number of these batches (visited.h) */
	uint64_t distinct_samples;
	double class_bits;
	uint64_t n_class_bits;
	uint64_t bytes; /* of the samples' files; work.bytes_read counts all
			 * reads, failed samples included */
	uint64_t batch_bytes; /* copied to the device */
	uint64_t elapsed_ns;
	uint64_t wall_ns, cpu_ns;
	uint64_t transfer_ns, pin_ns; /* time of the stages */
	/* written in this epoch, the time of the writes, and the GPU's stall
	 * for them; the caller fills in the first three */
	uint64_t checkpoints, checkpoint_bytes, checkpoint_ns;
	uint64_t checkpoint_stall_ns;
	uint64_t first_batch_ns; /* from the start of the epoch */
	uint64_t au_elapsed_ns;
	struct work work; /* of the workers */
	struct hist step;
	struct hist queue; /* batches ready at each request */
	bool on_mount;	   /* hits and misses are valid */
	uint64_t hits, misses;
	struct account_gpu all;		  /* of all GPUs, added up */
	struct account_gpu gpu[GPUS_MAX]; /* of one node */
};

/* A data wait by cause; the transfer stall is separate. */
struct stalls {
	uint64_t fetch_ns, prep_ns, pin_ns;
};
static inline uint64_t stalls_ns(const struct stalls *s)
{
	return s->fetch_ns + s->prep_ns + s->pin_ns;
}
/* The stalls of a GPU that fell idle at `idle`, took `d`, and did `s`. */
struct stalls account_stalls(uint64_t idle, const struct delivery *d,
			     const struct gpu_step *s);
/* The stalls in the last `ns` of a wait of these parts, <= stalls_ns(of):
 * another GPU waited for this one at the barrier. */
struct stalls account_late(uint64_t ns, const struct stalls *of);

/* Begin a step of `gpus` GPUs; then add its batches, and each GPU's part: GPU
 * `i` fell idle at `idle`, took (its share of) `d`, and did `s`; `late` is the
 * part of its barrier wait that was for a batch. */
void account_begin_step(struct train_account *a, uint32_t gpus);
void account_batch(struct train_account *a, const struct delivery *d);
void account_gpu(struct train_account *a, uint32_t i, uint64_t idle,
		 const struct delivery *d, const struct gpu_step *s,
		 const struct stalls *late);
/* Adds sums and histograms; keeps `epoch` and first_batch_ns of the first. */
void account_merge(struct train_account *into,
		   const struct train_account *from);

/* Adds what another node did at the same time. Time that passes for the nodes
 * together is that of the one where it was longest. The parts of each GPU are
 * no longer known. */
void account_join(struct train_account *into, const struct train_account *from);

/* Compute time over elapsed time, without the first step; < 0: one step. */
double account_au(const struct train_account *a);
double account_samples_per_s(const struct train_account *a);
/* The mean of a GPU, for values summed over the GPUs. */
uint64_t account_mean(const struct train_account *a, uint64_t ns);

/* The record's epoch, or with `total` the same without its number. */
json_t *account_json(const struct train_account *a, bool total);

#endif
