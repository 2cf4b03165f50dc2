/* SPDX-License-Identifier: MIT */
/* The memory of libgpemu's batches: its layout, keeping it, waiting for it. */
#include "tests/contract/lib_rig.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

enum { BATCH = 4 };

/* --- its layout ----------------------------------------------------------- */

/* All samples are of `size` bytes, each at its place. */
static void check_layout(const struct gpemu_batch *b, size_t size, bool shared)
{
	assert_non_null(b->data);
	assert_true(shared ? b->stride_bytes == 0 : b->stride_bytes >= size);
	for (uint32_t i = 0; i < b->n; i++) {
		assert_int_equal(b->samples[i].size_bytes, size);
		assert_ptr_equal(b->samples[i].data,
				 (char *)b->data + i * b->stride_bytes);
	}
}

static void test_layout(void **state)
{
	static const struct {
		const char *prep, *output, *pin;
		uint32_t type, shape[3];
		size_t bytes;
	} kind[] = {
		{ "prep=decode",
		  "prep_output=fp32",
		  "pin=off",
		  GPEMU_FP32,
		  { 3, 8, 8 },
		  4 * 192 },
		{ "prep=decode",
		  "prep_output=uint8",
		  "pin=on",
		  GPEMU_UINT8,
		  { 3, 8, 8 },
		  192 },
		{ "prep=decode",
		  "prep_output=fp32",
		  "pin=direct",
		  GPEMU_FP32,
		  { 3, 8, 8 },
		  4 * 192 },
		{ "prep=emulated",
		  "prep_output=fp32",
		  "pin=on",
		  GPEMU_FP32,
		  { 3, 8, 8 },
		  4 * 192 },
		{ "prep=tokens:sequence_length=5,token_bytes=1",
		  "prep_output=fp32",
		  "pin=off",
		  GPEMU_INT64,
		  { 2, 5, 0 },
		  80 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(kind) / sizeof(*kind); i++) {
		const char *const more[] = { kind[i].output,
					     kind[i].pin,
					     kind[i].prep,
					     "image_size=8",
					     "bad_samples=100%,zeros",
					     NULL };
		bool emulated = kind[i].prep[5] == 'e';
		struct gpemu *g = lib_open(NULL, more);
		const struct gpemu_info *info = gpemu_info(g);
		const struct gpemu_batch *b;

		assert_int_equal(info->type, kind[i].type);
		assert_memory_equal(info->shape, kind[i].shape,
				    sizeof(info->shape));
		assert_int_equal(info->n_kept, !emulated);
		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		while (gpemu_next(g, &b) == 1) {
			/* emulated transforms are pinned, too: copies */
			check_layout(b, kind[i].bytes,
				     emulated && b->stride_bytes == 0);
			assert_int_equal(gpemu_submit(g, b, NULL), 0);
		}
		assert_int_equal(gpemu_end_epoch(g, NULL), 0);
		gpemu_close(g);
	}
}

/* One good sample in the place of all others is none that emulation made. */
static void test_replaced(void **state)
{
	static const unsigned char grey[] = {
		0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00,
		0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x01,
		0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3a,
		0x7e, 0x9b, 0x55, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41,
		0x54, 0x78, 0x9c, 0x63, 0x68, 0x00, 0x00, 0x00, 0x82, 0x00,
		0x81, 0x77, 0xcd, 0x72, 0xb6, 0x00, 0x00, 0x00, 0x00, 0x49,
		0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
	};
	const char *options[] = { "prep=decode",
				  "prep_output=uint8",
				  "image_size=8",
				  "batch=2",
				  "index=off",
				  "pin=off",
				  "time-scale=0.001",
				  "bad_samples=50%,replace",
				  NULL,
				  NULL };
	const struct gpemu_batch *b;
	char data[96], path[128], error[512] = "";
	struct gpemu *g;

	(void)state;
	snprintf(data, sizeof(data), "data=%s/images", lib_dir);
	options[8] = data;
	assert_int_equal(mkdir(data + 5, 0700), 0);
	for (unsigned i = 0; i < 2; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%u.png", data + 5, i);
		f = fopen(path, "we");
		fwrite(grey, sizeof(grey) - 30 * i, 1, f);
		assert_int_equal(fclose(f), 0);
	}
	if (gpemu_open(options, NULL, &g, error, sizeof(error)) < 0)
		fail_msg("%s", error);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_next(g, &b), 1);
	assert_int_equal(b->n, 2);
	assert_null(b->data);
	for (unsigned i = 0; i < b->n; i++) {
		const unsigned char *pixel = b->samples[i].data;

		assert_int_equal(b->samples[i].index, 0);
		assert_int_equal(b->samples[i].error, 0);
		assert_int_equal(*pixel, 0x80);
	}
	gpemu_close(g);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%u.png", data + 5, i);
		unlink(path);
	}
	rmdir(data + 5);
}

static void test_bytes(void **state)
{
	static const char *const more[] = { "drop_last=on", NULL };
	struct gpemu *g = lib_open(NULL, more);
	const struct gpemu_info *info = gpemu_info(g);
	const struct gpemu_batch *b;

	(void)state;
	assert_int_equal(info->n_samples, LIB_N);
	assert_int_equal(info->n_classes, 2);
	assert_int_equal(info->batch, BATCH);
	assert_int_equal(info->n_batches, LIB_N / BATCH);
	assert_int_equal(info->type, GPEMU_BYTES);
	assert_int_equal(info->shape[0], 0);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_next(g, &b), 1);
	/* no two have the same size */
	assert_null(b->data);
	gpemu_close(g);
}

static void test_without_bytes(void **state)
{
	static const char *const more[] = { "loader=null", "samples=10", NULL };
	struct gpemu *g = lib_open(NULL, more);
	struct gpemu_memory *memory;
	const struct gpemu_batch *b;

	(void)state;
	assert_int_equal(gpemu_info(g)->n_samples, 10);
	assert_int_equal(gpemu_info(g)->n_batches, 3);
	assert_int_equal(gpemu_info(g)->n_kept, 0);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_next(g, &b), 1);
	assert_null(b->data);
	assert_int_equal(gpemu_keep(g, b, &memory), -ENOBUFS);
	gpemu_close(g);
}

/* --- tokens --------------------------------------------------------------- */

/* A token is its place in the file. */
enum { LENGTH = 63, WINDOWS = 1000, TOKENS = WINDOWS * LENGTH + 1 };

static void make_tokens(char path[96])
{
	FILE *f;

	snprintf(path, 96, "%s/tokens.bin", lib_dir);
	f = fopen(path, "we");
	assert_non_null(f);
	for (unsigned i = 0; i < TOKENS; i++) {
		uint16_t token = (uint16_t)i;

		assert_int_equal(fwrite(&token, sizeof(token), 1, f), 1);
	}
	assert_int_equal(fclose(f), 0);
}

static void check_rows(const struct gpemu_sample *s)
{
	const int64_t *x = s->data, *y = x + LENGTH;

	assert_int_equal(s->error, 0);
	for (uint64_t i = 0; i < LENGTH; i++) {
		assert_int_equal(x[i], s->index * LENGTH + i);
		assert_int_equal(y[i], s->index * LENGTH + i + 1);
	}
}

/* Every window exactly once, with its inputs and labels. */
static void token_epoch(struct gpemu *g)
{
	unsigned char times[WINDOWS] = { 0 };
	const struct gpemu_batch *b;
	int r;

	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	while ((r = gpemu_next(g, &b)) == 1) {
		for (uint32_t i = 0; i < b->n; i++) {
			check_rows(&b->samples[i]);
			times[b->samples[i].index]++;
		}
		assert_int_equal(gpemu_submit(g, b, NULL), 0);
	}
	assert_int_equal(r, 0);
	assert_int_equal(gpemu_end_epoch(g, NULL), 0);
	for (unsigned i = 0; i < WINDOWS; i++)
		assert_int_equal(times[i], 1);
}

static void test_tokens(void **state)
{
	static const char *const loaders[] = { "loader=sync", "loader=mmap",
					       "loader=async",
					       "loader=threads" };
	char path[96], data[112], error[512] = "";

	(void)state;
	make_tokens(path);
	snprintf(data, sizeof(data), "data=%s", path);
	for (unsigned i = 0; i < ARRAY_SIZE(loaders); i++) {
		const char *const options[] = {
			data,
			loaders[i],
			"format=tokens:sequence_length=63",
			"prep=tokens:sequence_length=63",
			"batch=48",
			"workers=2",
			"epochs=2",
			"index=off",
			"time-scale=0.000001",
			NULL
		};
		struct gpemu *g;

		if (gpemu_open(options, NULL, &g, error, sizeof(error)) < 0)
			fail_msg("%s", error);
		assert_int_equal(gpemu_info(g)->n_samples, WINDOWS);
		token_epoch(g);
		token_epoch(g);
		gpemu_close(g);
	}
	unlink(path);
}

/* --- keeping it ----------------------------------------------------------- */

struct kept {
	struct gpemu_memory *memory;
	struct gpemu_sample sample[BATCH];
	uint32_t n;
};

static void keep(struct gpemu *g, const struct gpemu_batch *b, struct kept *k)
{
	assert_int_equal(gpemu_keep(g, b, &k->memory), 0);
	k->n = b->n;
	memcpy(k->sample, b->samples, b->n * sizeof(*b->samples));
}

/* Only the bytes: the names are gone with the run. */
static void check_kept(const struct kept *k)
{
	for (uint32_t i = 0; i < k->n; i++) {
		const struct gpemu_sample *s = &k->sample[i];
		const unsigned char *byte = s->data;

		for (size_t at = 0; at < s->size_bytes; at++)
			if (byte[at] != s->index + 1)
				fail_msg("sample %d: byte %zu is %u",
					 (int)s->index, at, byte[at]);
	}
}

/* Each batch is kept while the next one is taken and submitted. */
static void keep_each_in_turn(struct gpemu *g)
{
	const struct gpemu_batch *b;
	struct kept k = { 0 };
	unsigned n = 0;
	int r;

	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	while ((r = gpemu_next(g, &b)) == 1) {
		check_kept(&k);
		gpemu_drop(k.memory);
		keep(g, b, &k);
		assert_int_equal(gpemu_submit(g, b, NULL), 0);
		check_kept(&k);
		n += k.n;
	}
	assert_int_equal(r, 0);
	assert_int_equal(gpemu_end_epoch(g, NULL), 0);
	check_kept(&k);
	gpemu_drop(k.memory);
	assert_int_equal(n, LIB_N);
}

/* One is kept through an epoch, its cut, another one, and the end. */
static void keep_one_for_good(struct gpemu *g)
{
	struct gpemu_memory *other;
	const struct gpemu_batch *b;
	struct kept k, late;

	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_next(g, &b), 1);
	keep(g, b, &k);
	assert_int_equal(gpemu_keep(g, b, &other), -EBUSY);
	assert_int_equal(gpemu_submit(g, b, NULL), 0);
	assert_int_equal(gpemu_keep(g, b, &other), -EINVAL);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(gpemu_next(g, &b), 1);
		assert_int_equal(gpemu_release(g, b), 0);
	}
	/* with a second one the loader could not go on */
	assert_int_equal(gpemu_next(g, &b), 1);
	keep(g, b, &late);
	assert_int_equal(gpemu_release(g, b), 0);
	assert_int_equal(gpemu_next(g, &b), -EBUSY);
	check_kept(&late);
	gpemu_drop(late.memory);
	assert_int_equal(gpemu_next(g, &b), 1);
	keep(g, b, &late);
	assert_int_equal(gpemu_end_epoch(g, NULL), 0);
	check_kept(&k);
	check_kept(&late);
	gpemu_drop(late.memory);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_next(g, &b), 1);
	/* the cut began with new memory */
	keep(g, b, &late);
	assert_int_equal(gpemu_close(g), 0);
	check_kept(&k);
	check_kept(&late);
	gpemu_drop(late.memory);
	gpemu_drop(k.memory);
}

static void test_keep(void **state)
{
	static const struct {
		const char *pin, *gpus, *batch, *batching;
	} kind[] = {
		{ "pin=off", "gpus=1", "batch=4", "batching=in_order" },
		{ "pin=on", "gpus=1", "batch=4", "batching=in_order" },
		{ "pin=inline", "gpus=1", "batch=4", "batching=in_order" },
		{ "pin=direct", "gpus=1", "batch=4", "batching=in_order" },
		/* a batch for both GPUs */
		{ "pin=off", "gpus=2", "batch=2", "batching=in_order" },
		{ "pin=on", "gpus=2", "batch=2", "batching=in_order" },
		{ "pin=inline", "gpus=2", "batch=2", "batching=in_order" },
		{ "pin=direct", "gpus=2", "batch=2", "batching=in_order" },
		/* its samples are in windows of their own */
		{ "pin=off", "gpus=1", "batch=4", "batching=ready" },
		{ "pin=on", "gpus=1", "batch=4", "batching=ready" },
		{ "pin=inline", "gpus=1", "batch=4", "batching=ready" },
		{ "pin=off", "gpus=1", "batch=4", "batching=ready:bound=0" },
		{ "pin=off", "gpus=2", "batch=2", "batching=ready" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(kind) / sizeof(*kind); i++) {
		const char *const options[] = { kind[i].pin,  "parallel=dp",
						kind[i].gpus, kind[i].batch,
						"epochs=3",   "prefetch=1",
						"workers=1",  kind[i].batching,
						NULL };
		struct gpemu *g = lib_open(NULL, options);

		assert_int_equal(gpemu_info(g)->n_kept, 1);
		keep_each_in_turn(g);
		assert_int_equal(gpemu_close(g), 0);
		keep_one_for_good(lib_open(NULL, options));
	}
	gpemu_drop(NULL);
}

/* A batch for each GPU in turn: those of a step wait for the last one. */
static void test_keep_in_turn(void **state)
{
	static const char *const more[][6] = {
		{ "gpus=3", "pin=off", "prefetch=1", "workers=1" },
		{ "gpus=3", "pin=on", "superbatch=2" },
		{ "gpus=3", "pin=direct", "loader=sync", "prefetch=1" },
		{ "gpus=3", "pin=off", "batching=ready", "prefetch=1" },
		{ "gpus=3", "pin=on", "batching=ready", "workers=1" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(more) / sizeof(*more); i++) {
		struct gpemu *g = lib_open(NULL, more[i]);

		keep_each_in_turn(g);
		assert_int_equal(gpemu_close(g), 0);
	}
}

/* A batch that is not kept any more is still held, until it is submitted. */
static void test_drop_what_is_held(void **state)
{
	static const char *const more[] = { "prefetch=1", "workers=1", NULL };
	struct gpemu *g = lib_open(NULL, more);
	const struct gpemu_batch *b;
	struct kept k;

	(void)state;
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_next(g, &b), 1);
	keep(g, b, &k);
	gpemu_drop(k.memory);
	/* the loader could read other samples into its memory */
	usleep(50000);
	check_kept(&k);
	assert_int_equal(gpemu_submit(g, b, NULL), 0);
	gpemu_close(g);
}

/* --- dropped by several threads ------------------------------------------- */

static _Atomic(struct gpemu_memory *) to_drop[3];
static atomic_bool no_more;

static void *drop_all(void *arg)
{
	_Atomic(struct gpemu_memory *) *slot = arg;

	for (bool last = false; !last;) {
		last = atomic_load(&no_more);
		gpemu_drop(atomic_exchange(slot, NULL));
		sched_yield();
	}
	return NULL;
}

/* Into the first slot that is free: as if each thread had a queue. */
static void drop_elsewhere(struct gpemu_memory *memory)
{
	for (unsigned i = 0;; i++) {
		struct gpemu_memory *none = NULL;

		if (atomic_compare_exchange_strong(&to_drop[i % 3], &none,
						   memory))
			return;
	}
}

static void one_epoch(struct gpemu *g)
{
	const struct gpemu_batch *b;
	unsigned n = 0;
	int r;

	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	while ((r = gpemu_next(g, &b)) == 1 || r == -EBUSY) {
		struct kept k;

		if (r == -EBUSY)
			continue; /* too many are kept just now */
		keep(g, b, &k);
		n += b->n;
		assert_int_equal(gpemu_submit(g, b, NULL), 0);
		check_kept(&k);
		drop_elsewhere(k.memory);
	}
	assert_int_equal(r, 0);
	assert_int_equal(n, LIB_N);
	assert_int_equal(gpemu_end_epoch(g, NULL), 0);
}

static void test_drop_by_threads(void **state)
{
	static const char *const more[] = {
		"prefetch=1", "workers=1",  "batching=ready",
		"batch=4",    "epochs=300", "pin=off",
		NULL
	};
	struct gpemu *g = lib_open(NULL, more);
	pthread_t threads[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, drop_all,
						&to_drop[i]),
				 0);
	for (unsigned i = 0; i < 300; i++)
		one_epoch(g);
	atomic_store(&no_more, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	gpemu_close(g);
}

/* Locked memory for one batch, not for two. */
static void test_no_room(void **state)
{
	static const char *const more[] = { "pin=on", "pin_budget=100K", NULL };
	struct gpemu *g = lib_open(NULL, more);
	struct gpemu_memory *memory;
	const struct gpemu_batch *b;

	(void)state;
	assert_int_equal(gpemu_info(g)->n_kept, 0);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_next(g, &b), 1);
	assert_int_equal(gpemu_keep(g, b, &memory), -ENOBUFS);
	assert_int_equal(gpemu_end_epoch(g, NULL), 0);
	gpemu_close(g);
}

/* --- waiting for it ------------------------------------------------------- */

static atomic_bool gate_open;

static int behind_gate(void *state, struct gpemu_feed *feed,
		       struct gpemu_fetch **ret, char *error, size_t n)
{
	while (!gate_open)
		usleep(500);
	return lib_engine_one.next(state, feed, ret, error, n);
}

static void test_next_within(void **state)
{
	static const char *const pin[] = { "pin=off", "pin=on", "pin=inline" };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		const char *const more[] = { pin[i], "epochs=2", NULL };
		struct gpemu_engine e = lib_engine_one;
		const struct gpemu_batch *b;
		struct gpemu *g;

		gate_open = false;
		e.next = behind_gate;
		g = lib_open(&e, more);
		assert_int_equal(gpemu_next_within(g, 0, &b), -EINVAL);
		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		assert_int_equal(gpemu_next_within(g, 0, &b), -EAGAIN);
		assert_int_equal(gpemu_next_within(g, 2000000, &b), -EAGAIN);
		assert_non_null(strstr(gpemu_error(g), "no batch"));
		gate_open = true;
		assert_int_equal(gpemu_next_within(g, 60000000000u, &b), 1);
		assert_int_equal(b->n, BATCH);
		assert_int_equal(gpemu_end_epoch(g, NULL), 0);
		lib_whole_epoch(g, 1);
		gpemu_close(g);
	}
}

/* Nobody is there to make its batches. */
static void test_next_within_of_a_service(void **state)
{
	char data[80];
	const char *options[] = { data,
				  "index=off",
				  "prep=none",
				  "pin=off",
				  "time_scale=0.001",
				  "loader=service:wait=1h",
				  "dispatcher=127.0.0.1:1",
				  NULL };
	const struct gpemu_batch *b;
	struct gpemu *g;

	(void)state;
	snprintf(data, sizeof(data), "data=%s", lib_dir);
	assert_int_equal(gpemu_open(options, NULL, &g, NULL, 0), 0);
	/* the memory is for the batches that come */
	assert_int_equal(gpemu_info(g)->n_kept, 0);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_next_within(g, 0, &b), -EAGAIN);
	assert_int_equal(gpemu_next_within(g, 2000000, &b), -EAGAIN);
	assert_int_equal(gpemu_close(g), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_without_bytes),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_keep),
		cmocka_unit_test(test_keep_in_turn),
		cmocka_unit_test(test_drop_what_is_held),
		cmocka_unit_test(test_drop_by_threads),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_next_within),
		cmocka_unit_test(test_next_within_of_a_service),
	};

	return cmocka_run_group_tests(tests, lib_make_data, lib_remove_data);
}
