/* SPDX-License-Identifier: MIT */
/*
 * The permutation that PyTorch draws on the CPU for seed + epoch:
 *
 *	g = torch.Generator(); g.manual_seed(seed + epoch)
 *	torch.randperm(n, generator=g)
 *
 * DistributedSampler(seed=seed) visits it after set_epoch(epoch), and so does
 * RandomSampler with a generator seeded like this before the epoch. Source:
 * ATen/native/TensorFactories.cpp (randperm_cpu), ATen/core/MT19937RNGEngine.h
 * and torch/utils/data/distributed.py of PyTorch 1.13; for n >= 2^32/20 later
 * versions draw 64 bits a sample, and differ.
 */
#include "loader/order/order.h"

/* Source: Matsumoto and Nishimura, "Mersenne Twister", 1998: MT19937 */
enum { N = 624, M = 397 };
#define MATRIX 0x9908b0dfu
#define UPPER 0x80000000u
#define LOWER 0x7fffffffu

struct mt {
	uint32_t state[N];
	unsigned next;
};

/* Like torch, uses the lower 32 bits of a 64-bit seed. */
static void mt_init(struct mt *mt, uint64_t seed)
{
	mt->state[0] = (uint32_t)seed;
	for (uint32_t i = 1; i < N; i++) {
		uint32_t x = mt->state[i - 1];

		mt->state[i] = 1812433253u * (x ^ (x >> 30)) + i;
	}
	mt->next = N;
}

static void mt_refill(struct mt *mt)
{
	for (unsigned i = 0; i < N; i++) {
		uint32_t y = (mt->state[i] & UPPER) |
			     (mt->state[(i + 1) % N] & LOWER);

		mt->state[i] = mt->state[(i + M) % N] ^ (y >> 1) ^
			       (y & 1 ? MATRIX : 0);
	}
	mt->next = 0;
}

static uint32_t mt_u32(struct mt *mt)
{
	uint32_t y;

	if (mt->next == N)
		mt_refill(mt);
	y = mt->state[mt->next++];
	y ^= y >> 11;
	y ^= (y << 7) & 0x9d2c5680u;
	y ^= (y << 15) & 0xefc60000u;
	return y ^ (y >> 18);
}

static int fill_torch(const struct order_input *in, uint32_t *ret,
		      struct err *err)
{
	struct mt mt;

	(void)err;
	mt_init(&mt, in->seed + in->epoch);
	for (size_t i = 0; i < in->n; i++)
		ret[i] = (uint32_t)i;
	for (size_t i = 0; i + 1 < in->n; i++) {
		size_t j = i + mt_u32(&mt) % (in->n - i);
		uint32_t t = ret[i];

		ret[i] = ret[j];
		ret[j] = t;
	}
	return 0;
}

const struct order_ops order_torch = {
	.plugin = { .name = "torch",
		    .summary = "torch.randperm for seed + epoch, bit for bit" },
	.fill = fill_torch,
};
