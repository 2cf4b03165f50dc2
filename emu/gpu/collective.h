/* SPDX-License-Identifier: MIT */
/*
 * All-reduce: the time for p devices to sum their gradients over links with a
 * rate and a latency. Pure.
 *
 *	ring  2 (p - 1) / p * bytes / rate + 2 (p - 1) * latency
 *	tree  2 * bytes / rate + 2 * ceil(log2 p) * latency
 *
 * Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
 * clusters of workstations", JPDC 2009; Sanders, Speck and Träff, "Two-tree
 * algorithms for full bandwidth broadcast, reduction and scan", 2009.
 *
 * It overlaps the backward pass, in buckets: a bucket is reduced once all
 * devices have its gradients and the previous bucket is done,
 *
 *	device 0   |----forward----|--b0--|--b1--|--b2--|
 *	device 1      |----forward----|--b0--|--b1--|--b2--|
 *	link                                  |-0-|  |-1-|  |-2-|
 *
 * Assumption: gradients arrive evenly over the backward pass, and link traffic
 * does not slow the devices down.
 */
#ifndef GPEMU_EMU_GPU_COLLECTIVE_H
#define GPEMU_EMU_GPU_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum collective_algorithm {
	COLLECTIVE_AUTO, /* the faster one, for each bucket */
	COLLECTIVE_RING,
	COLLECTIVE_TREE,
};

struct collective {
	enum collective_algorithm algorithm;
	uint32_t ranks; /* p; below 2 there is no all-reduce */
	double bytes_per_s;
	uint64_t latency_ns;
	uint64_t bytes; /* gradients */
};

/* The times of a device's first and last gradients. */
struct collective_pass {
	uint64_t start, end;
};

/* "auto", "ring", "tree"; -EINVAL with a text. */
int collective_parse(const char *s, enum collective_algorithm *ret,
		     struct err *err);

/* A bucket of an all-reduce, on the link of each device. */
struct collective_bucket {
	uint64_t ready_ns; /* all devices have its gradients */
	uint64_t bytes;	   /* that cross the link, in each direction */
	uint64_t latency_ns;
};

/* When all buckets are reduced, given the backward passes of the n >= 1
 * devices; never before the last of them ends. */
uint64_t collective_overlapped(const struct collective *c,
			       const struct collective_pass *pass, size_t n);
/* The same; calls `bucket` for each of them, in their order. */
uint64_t collective_each(const struct collective *c,
			 const struct collective_pass *pass, size_t n,
			 void (*bucket)(void *ctx,
					const struct collective_bucket *b),
			 void *ctx);

#endif
