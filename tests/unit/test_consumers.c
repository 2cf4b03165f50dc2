/* SPDX-License-Identifier: MIT */
/* A worker's part in coordinated reads: what its consumers have, and the order
 * in which it makes rounds. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "service/worker/buckets.h"
#include "service/worker/consumers.h"

static void a_job_without_rounds_has_one_consumer(void **state)
{
	const struct share alone = { 0 };
	struct consumers c;

	(void)state;
	consumers_init(&c, &alone);
	assert_int_equal(c.n, 1);
	assert_true(consumers_may(&c, UINT64_MAX));
	assert_int_equal(consumers_ack(&c, 0, 4, 3), -EPROTO);
	assert_int_equal(consumers_ack(&c, 0, 3, 3), 0);
	assert_int_equal(consumers_acked(&c), 3);
	/* an old message takes nothing back */
	assert_int_equal(consumers_ack(&c, 0, 1, 3), 0);
	assert_int_equal(consumers_acked(&c), 3);
}

static void a_round_leaves_when_all_have_room(void **state)
{
	const struct share share = { .how = SHARE_ROUNDS, .consumers = 3 };
	struct consumers c;

	(void)state;
	consumers_init(&c, &share);
	consumers_request(&c, 0, 5);
	consumers_request(&c, 1, 2);
	assert_false(consumers_may(&c, 0));
	consumers_request(&c, 2, 9);
	assert_true(consumers_may(&c, 1));
	assert_false(consumers_may(&c, 2));
	/* a connection that begins again has less room; what was requested
	 * stays so */
	consumers_request(&c, 1, 1);
	assert_true(consumers_may(&c, 1));
	consumers_request(&c, 1, 99);
	assert_true(consumers_may(&c, 4));
	assert_false(consumers_may(&c, 5));
	consumers_reset(&c);
	assert_false(consumers_may(&c, 0));
}

/* Batches 0, 3, 6 are those of consumer 0, of seven. */
static void memory_is_free_when_its_consumer_has_it(void **state)
{
	const struct share share = { .how = SHARE_ROUNDS, .consumers = 3 };
	struct consumers c;

	(void)state;
	consumers_init(&c, &share);
	assert_int_equal(consumers_ack(&c, 0, 3, 7), 0);
	assert_int_equal(consumers_ack(&c, 1, 3, 7), -EPROTO);
	assert_int_equal(consumers_ack(&c, 1, 1, 7), 0);
	assert_int_equal(consumers_acked(&c), 2);
	assert_int_equal(consumers_ack(&c, 2, 2, 7), 0);
	assert_int_equal(consumers_acked(&c), 4);
	assert_int_equal(consumers_ack(&c, 1, 2, 7), 0);
	assert_int_equal(consumers_acked(&c), 7);
	assert_int_equal(consumers_ack(&c, 1, UINT64_MAX, 7), -EPROTO);
}

/* --- lengths -------------------------------------------------------------- */

enum { SAMPLES = 5000, WIDTH = 64, BATCH = 4, CONSUMERS = 3, PASSES = 3 };

/* The inputs of a language model: one token is a label. */
static uint64_t bucket_of(uint64_t bytes)
{
	return (bytes / 2 - 2) / WIDTH;
}

/* Rounds of one bucket, each sample once in a pass but for those that are
 * left, which come in a later one. */
static void check_rounds(struct buckets *b, const uint64_t *size,
			 uint32_t *order, uint32_t *times)
{
	const uint32_t *round;
	uint64_t spread, n = 0;

	for (uint32_t pass = 0; pass < PASSES; pass++) {
		buckets_begin(b, order, SAMPLES);
		while ((round = buckets_next(b, &spread))) {
			for (uint32_t i = 0; i < BATCH * CONSUMERS; i++) {
				assert_int_equal(bucket_of(size[round[i]]),
						 bucket_of(size[round[0]]));
				times[round[i]]++;
				n++;
			}
			assert_true(spread < WIDTH);
		}
	}
	assert_true(n <= (uint64_t)PASSES * SAMPLES);
	assert_true(n > (uint64_t)PASSES * SAMPLES - 16 * BATCH * CONSUMERS);
	for (uint32_t i = 0; i < SAMPLES; i++)
		assert_true(times[i] <= PASSES);
}

static void a_round_has_one_bucket(void **state)
{
	struct share share = { .how = SHARE_ROUNDS,
			       .consumers = CONSUMERS,
			       .bucket = WIDTH };
	uint64_t *size = calloc(SAMPLES, sizeof(*size));
	uint32_t *order = calloc(2 * SAMPLES, sizeof(*order));
	struct dataset data = { .size = size, .n = SAMPLES, .token_bytes = 2 };
	struct rng rng = rng_stream(1, "lengths", 0);
	struct buckets *b;
	struct err err = { 0 };

	(void)state;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		order[i] = i;
		size[i] = 2 * (2 + rng_below(&rng, 16 * WIDTH));
		data.largest = MAX(data.largest, size[i]);
	}
	rng_shuffle_u32(&rng, order, SAMPLES);
	assert_int_equal(buckets_new(&share, BATCH, 10, &data, &b, &err), 0);
	check_rounds(b, size, order, order + SAMPLES);
	buckets_free(b);
	/* every length is the same */
	share.bucket = 0;
	assert_int_equal(buckets_new(&share, BATCH, 10, &data, &b, &err), 0);
	buckets_begin(b, order, SAMPLES);
	for (uint32_t i = 0; i < SAMPLES / (BATCH * CONSUMERS); i++) {
		uint64_t spread;

		assert_memory_equal(buckets_next(b, &spread),
				    order + (size_t)i * BATCH * CONSUMERS,
				    sizeof(*order) * BATCH * CONSUMERS);
	}
	buckets_free(b);
	share.bucket = 1;
	data.largest = 1 << 20;
	assert_int_equal(buckets_new(&share, BATCH, 10, &data, &b, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "larger bucket="));
	free(size);
	free(order);
}

/* What a round of 10 batches ahead still uses is not written over. */
static void samples_in_use_stay(void **state)
{
	const struct share share = { .how = SHARE_ROUNDS, .consumers = 2 };
	uint64_t size[40], spread;
	uint32_t order[40];
	struct dataset data = { .size = size, .n = 40, .largest = 9 };
	const uint32_t *first;
	struct buckets *b;
	struct err err = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		order[i] = i;
		size[i] = 9;
	}
	assert_int_equal(buckets_new(&share, 1, 10, &data, &b, &err), 0);
	buckets_begin(b, order, 40);
	first = buckets_next(b, &spread);
	for (uint32_t i = 0; i < 10 / 2; i++)
		assert_ptr_not_equal(buckets_next(b, &spread), first);
	assert_int_equal(first[0], 0);
	assert_int_equal(first[1], 1);
	buckets_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_without_rounds_has_one_consumer),
		cmocka_unit_test(a_round_leaves_when_all_have_room),
		cmocka_unit_test(memory_is_free_when_its_consumer_has_it),
		cmocka_unit_test(a_round_has_one_bucket),
		cmocka_unit_test(samples_in_use_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
