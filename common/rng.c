/* SPDX-License-Identifier: MIT */
#include "common/rng.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

/* SplitMix64's step: the golden ratio, odd. */
#define GAMMA 0x9e3779b97f4a7c15

/* SplitMix64, as its authors advise for filling xoshiro's state. */
static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = (*x += GAMMA);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

struct rng rng_stream(uint64_t seed, const char *name, uint64_t index)
{
	uint64_t x = XXH3_64bits_withSeed(name, strlen(name), seed);
	struct rng r;

	x ^= splitmix(&(uint64_t){ index });
	for (int i = 0; i < 4; i++)
		r.s[i] = splitmix(&x);
	return r;
}

uint64_t rng_u64(struct rng *r)
{
	uint64_t *s = r->s;
	uint64_t ret = rotl(s[0] + s[3], 23) + s[0];
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return ret;
}

double rng_double(struct rng *r)
{
	return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	/* Lemire, "Fast Random Integer Generation in an Interval", 2019 */
	unsigned __int128 m = (unsigned __int128)rng_u64(r) * n;

	if ((uint64_t)m < n) {
		uint64_t floor = -n % n;

		while ((uint64_t)m < floor)
			m = (unsigned __int128)rng_u64(r) * n;
	}
	return (uint64_t)(m >> 64);
}

double rng_normal(struct rng *r)
{
	/* Box-Muller; the second value is dropped so that streams stay values
	 */
	double u = 1.0 - rng_double(r), v = rng_double(r);

	return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

double rng_gamma(struct rng *r, double shape, double scale)
{
	/* Marsaglia and Tsang, "A Simple Method for Generating Gamma
	 * Variables", 2000; shape < 1 by their boost */
	double boost = 1.0;

	if (shape < 1.0) {
		boost = pow(1.0 - rng_double(r), 1.0 / shape);
		shape += 1.0;
	}
	double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);

	for (;;) {
		double x = rng_normal(r), v = 1.0 + c * x;

		if (v <= 0)
			continue;
		v = v * v * v;
		if (log(1.0 - rng_double(r)) <
		    0.5 * x * x + d - d * v + d * log(v))
			return boost * d * v * scale;
	}
}

uint64_t rng_key(uint64_t seed, const char *name, uint64_t index)
{
	struct rng r = rng_stream(seed, name, index);

	return rng_u64(&r);
}

static uint64_t word_at(uint64_t key, uint64_t i)
{
	return splitmix(&(uint64_t){ key + i * GAMMA });
}

void rng_bytes_at(uint64_t key, uint64_t offset, void *buf, size_t n)
{
	unsigned char *p = buf;
	uint64_t i = offset / 8, v;
	size_t skip = offset % 8;

	if (skip && n) {
		size_t part = n < 8 - skip ? n : 8 - skip;

		v = word_at(key, i++);
		memcpy(p, (unsigned char *)&v + skip, part);
		p += part;
		n -= part;
	}
	for (; n >= 8; n -= 8, p += 8) {
		v = word_at(key, i++);
		memcpy(p, &v, 8);
	}
	if (n) {
		v = word_at(key, i);
		memcpy(p, &v, n);
	}
}

void rng_shuffle_u32(struct rng *r, uint32_t *v, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = rng_below(r, i);
		uint32_t t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
}

void rng_permutation_u32(struct rng *r, uint32_t *ret, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = (uint32_t)i;
	rng_shuffle_u32(r, ret, n);
}
