/* SPDX-License-Identifier: MIT */
/*
 * Part of an engine whose batches are made by other processes, whole and
 * transformed. There are no workers and no transforms in this one; the batches
 * arrive in memory that the host provides, page-locked if the GPU copies from
 * such. One thread, the consumer, calls all of it, but `next`, which may be
 * another, and `release` and `stop`, which may be any.
 */
#ifndef GPEMU_LOADER_ENGINE_REMOTE_H
#define GPEMU_LOADER_ENGINE_REMOTE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/tick.h"
#include "loader/engine/place.h"

/* What the user gives, in addition to the engine's own options. */
struct remote_service {
	const char *address;	/* HOST:PORT */
	const char *key;	/* a file; NULL: none */
	const char *job;	/* definition of the samples, for the others */
	uint64_t rank;		/* of this process among several */
	uint64_t n_samples;	/* of the dataset */
	uint64_t most_bytes;	/* of a batch's samples */
	double nic_bytes_per_s; /* the emulated card; 0: no limit */
	uint64_t nic_latency_ns;
};

struct remote_config {
	const void *options; /* the engine's own; NULL: the defaults */
	const struct remote_service *service;
	struct tick *tick;
	uint32_t batch;
	unsigned char **buffer; /* n_buffers; 4096-aligned */
	uint32_t n_buffers;
	size_t buffer_bytes;
};

/* How a batch came; emulated ns. */
struct remote_arrival {
	uint64_t complete_ns; /* the others had completed it */
	uint64_t starved_ns;  /* and had had nothing to do before */
	uint64_t arrived_ns;
	double read_share; /* of the others' time: 0..1 */
	uint64_t ready_ns; /* for the copy to the device */
};

struct remote_batch {
	uint32_t n;
	uint64_t epoch;		   /* as `begin` had it */
	const struct place *place; /* n; valid until `release` */
	struct remote_arrival arrival;
	void *own;
};

struct remote_ops {
	/* The engine that reads the samples which this process prepares
	 * itself, if it does. */
	const char *(*local)(const void *options);
	/* Does each sample come once in an epoch? */
	bool (*once)(const void *options);
	/* Do all ranks take part in one job, of all samples? */
	bool (*one_job)(const void *options);
	/* Batches that may be on their way at once. */
	uint32_t (*n_buffers)(const void *options);
	/* Bytes of a buffer for `n` samples of `bytes` in all. */
	size_t (*buffer_bytes)(uint32_t n, uint64_t bytes);
	/* -EINVAL and others with a text. The others need not be there yet. */
	int (*open)(const struct remote_config *c, void **ret, struct err *err);
	void (*close)(void *state);
	/* Begin an epoch of order[0..n). `order` stays in use. */
	int (*begin)(void *state, uint64_t epoch, const uint32_t *order,
		     uint64_t n, struct err *err);
	/* From now on the epoch has only the first `n` samples of `order`, or
	 * a few more. Returns how many. */
	uint64_t (*cut)(void *state, uint64_t n);
	/* Wait for a batch, until `until` at most: 1: none yet. -ENODATA: the
	 * epoch has no more. -ECANCELED: stopped. Other: with a text. */
	int (*next)(void *state, uint64_t until, struct remote_batch *ret,
		    struct err *err);
	/* The consumer uses a batch from now on, the GPU being idle since
	 * `idle`. Returns the share of reads in the wait, as struct delivery.
	 * Once for each. */
	double (*count)(void *state, const struct remote_arrival *a,
			uint64_t idle);
	void (*release)(void *state, struct remote_batch *b);
	uint32_t (*n_ready)(void *state);
	void (*stop)(void *state); /* any thread */
	/* For the record; NULL: no memory. */
	json_t *(*json)(void *state);
};

#endif
