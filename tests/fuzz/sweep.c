/* SPDX-License-Identifier: MIT */
/*
 * A whole session of workers and a dispatcher with a trainer, as far as it
 * decides what the trainer uses: the first byte chooses how the epoch is
 * divided, then messages follow, each behind its length in two bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "service/client/sweep.h"
#include "tests/fuzz/fuzz.h"

enum { SAMPLES = 24, BATCH = 4, PER_SPLIT = 2 };

/* How often each position may be taken: once. */
static void check_new(const struct sweep *s, const struct msg *m,
		      uint8_t n[SAMPLES])
{
	for (uint32_t i = 0; i < m->count; i++) {
		uint32_t sample = msg_batch_sample(m, i).sample;

		PROMISED(sample < s->n_samples);
		n[sample]++;
		/* without splits each worker has an order of its own */
		PROMISED(s->splits.mode == SPLIT_OFF || n[sample] == 1);
	}
}

static void take(struct sweep *s, const struct msg *m, uint8_t n[SAMPLES])
{
	uint64_t left = s->left, lost;
	int r;

	if (m->type == PREPD_LOST) {
		lost = sweep_lose(s, m->split);
		PROMISED(s->left + lost == left);
	} else if (m->type == PREPD_EPOCH && s->splits.mode != SPLIT_OFF) {
		PROMISED(sweep_cut(s, m->a) <= s->splits.samples);
	} else if (m->type == PREPD_BATCH) {
		r = sweep_batch(s, m);
		PROMISED(r == 0 || r == -EEXIST || r == -ESTALE ||
			 r == -EPROTO);
		if (r == 0)
			check_new(s, m, n);
		else
			PROMISED(s->left == left);
	}
	PROMISED(s->left <= left && s->n_done <= s->splits.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t seen[SAMPLES] = { 0 };
	uint32_t order[SAMPLES];
	struct sweep s;

	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < SAMPLES; i++)
		order[i] = (i * 7 + 3) % SAMPLES;
	PROMISED(sweep_init(&s, data[0] & 1 ? SPLIT_OFF : SPLIT_DYNAMIC, 0,
			    order, SAMPLES, SAMPLES, BATCH, PER_SPLIT) == 0);
	for (data++, n--; n >= 2;) {
		size_t bytes = data[0] | (size_t)data[1] << 8;
		struct msg m;

		data += 2;
		n -= 2;
		if (bytes > n)
			break;
		if (msg_decode(data, bytes, &m) == 0)
			take(&s, &m, seen);
		data += bytes;
		n -= bytes;
	}
	sweep_fini(&s);
	return 0;
}
