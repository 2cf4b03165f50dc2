/* SPDX-License-Identifier: MIT */
/*
 * Named random streams, all derived from the one seed of a run: the same
 * seed, name and index give the same numbers on every machine, and drawing
 * from one stream never moves another. xoshiro256++ (Blackman and Vigna,
 * "Scrambled Linear Pseudorandom Number Generators", 2021), seeded through
 * XXH3 of the name.
 *
 * A stream is a plain value: copy it to replay it. Do not share one between
 * threads; give each its own index.
 */
#ifndef GPEMU_COMMON_RNG_H
#define GPEMU_COMMON_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t s[4];
};

struct rng rng_stream(uint64_t seed, const char *name, uint64_t index);

uint64_t rng_u64(struct rng *r);
/* [0, 1), 53 bits. */
double rng_double(struct rng *r);
/* [0, n), unbiased; n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);
/* Standard normal. */
double rng_normal(struct rng *r);
/* Gamma with mean shape * scale; shape > 0. */
double rng_gamma(struct rng *r, double shape, double scale);
/*
 * Random access to an endless stream: its bytes [offset, offset + n). A word
 * depends only on the key and its position (SplitMix64 by counter: Steele et
 * al., "Fast Splittable Pseudorandom Number Generators", 2014), so any part can
 * be made, by any thread, at several GB/s.
 */
void rng_bytes_at(uint64_t key, uint64_t offset, void *buf, size_t n);
/* A key for rng_bytes_at, distinct for each name and index, like streams. */
uint64_t rng_key(uint64_t seed, const char *name, uint64_t index);
/* Fisher-Yates over n 32-bit values. */
void rng_shuffle_u32(struct rng *r, uint32_t *v, size_t n);
/* The same of 0 .. n - 1. */
void rng_permutation_u32(struct rng *r, uint32_t *ret, size_t n);

#endif
