/* SPDX-License-Identifier: MIT */
/*
 * The last transform of batches that others make: every sample once, in their
 * order, transformed; an epoch that begins in the middle of another, an end, a
 * stop; and where the time of a wait went. The others are of this test.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/pipeline/finish.h"

enum { BATCH = 5, BATCHES = 40, BUFFERS = 4, THREADS = 3, WIDE = 100 };
enum { EPOCHS = 20 };
enum { BROKEN = 7, UNREAD = 11 }; /* one of so many samples */

/* --- the others: batch i has the samples from i * BATCH on ---------------- */

struct others {
	pthread_mutex_t lock;
	pthread_cond_t changed;	  /* a cut, a stop */
	uint64_t epoch, n, given; /* batches */
	uint64_t silent_from;	  /* no more come, until stop */
	uint64_t n_out;		  /* batches that are not released */
	int error;		  /* at the end */
	struct remote_arrival arrival;
	uint64_t n_counted;
	bool stopped, closed;
	uint32_t id[EPOCHS][BATCHES][BATCH];
	struct place place[EPOCHS][BATCHES][BATCH];
};

static int begin(void *state, uint64_t epoch, const uint32_t *order, uint64_t n,
		 struct err *err)
{
	struct others *o = state;

	(void)order;
	(void)err;
	pthread_mutex_lock(&o->lock);
	o->epoch = epoch;
	o->n = n / BATCH;
	o->given = 0;
	pthread_mutex_unlock(&o->lock);
	return 0;
}

static void fill(struct others *o, struct remote_batch *ret)
{
	uint64_t b = o->given++;
	struct place *place = o->place[o->epoch][b];

	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t id = (uint32_t)(b * BATCH + i);

		o->id[o->epoch][b][i] = id;
		place[i] = (struct place){ .data = &o->id[o->epoch][b][i],
					   .n = sizeof(id),
					   .sample = id,
					   .error = id % UNREAD ? 0 : -EIO };
	}
	o->n_out++;
	*ret = (struct remote_batch){ .n = BATCH,
				      .place = place,
				      .epoch = o->epoch,
				      .arrival = o->arrival,
				      .own = o };
}

/* A batch now; 1: none until something changes. */
static int look(struct others *o, struct remote_batch *ret, struct err *err)
{
	if (o->stopped)
		return -ECANCELED;
	if (o->given == o->n)
		return o->error ? err_set(err, o->error, "their error")
				: -ENODATA;
	if (o->given >= o->silent_from)
		return 1;
	fill(o, ret);
	return 0;
}

static int next(void *state, uint64_t until, struct remote_batch *ret,
		struct err *err)
{
	struct others *o = state;
	int r;

	assert_true(until == TICK_NEVER);
	pthread_mutex_lock(&o->lock);
	while ((r = look(o, ret, err)) == 1)
		pthread_cond_wait(&o->changed, &o->lock);
	pthread_mutex_unlock(&o->lock);
	return r;
}

/* As of a wait that was theirs until it arrived. */
static double count(void *state, const struct remote_arrival *a, uint64_t idle)
{
	struct others *o = state;

	(void)idle;
	pthread_mutex_lock(&o->lock);
	o->n_counted++;
	pthread_mutex_unlock(&o->lock);
	return a->read_share;
}

static void release(void *state, struct remote_batch *b)
{
	struct others *o = state;

	pthread_mutex_lock(&o->lock);
	assert_ptr_equal(b->own, o);
	assert_true(o->n_out-- > 0);
	pthread_mutex_unlock(&o->lock);
}

static uint64_t cut(void *state, uint64_t n)
{
	struct others *o = state;

	pthread_mutex_lock(&o->lock);
	o->n = MAX(MIN(o->n, (n + BATCH - 1) / BATCH), o->given);
	n = o->n * BATCH;
	pthread_cond_broadcast(&o->changed);
	pthread_mutex_unlock(&o->lock);
	return n;
}

static void stop(void *state)
{
	struct others *o = state;

	pthread_mutex_lock(&o->lock);
	o->stopped = true;
	pthread_cond_broadcast(&o->changed);
	pthread_mutex_unlock(&o->lock);
}

static void close_others(void *state)
{
	struct others *o = state;

	assert_int_equal(o->n_out, 0);
	o->closed = true;
}

static json_t *json(void *state)
{
	(void)state;
	return json_pack("{s:{}}", "stall_s");
}

static const struct remote_ops others_ops = {
	.close = close_others,
	.begin = begin,
	.cut = cut,
	.next = next,
	.count = count,
	.release = release,
	.stop = stop,
	.json = json,
};

/* --- transforms: the last one repeats the number -------------------------- */

static struct tick *slow_clock; /* that it takes 30 ms of; NULL: none */

static bool number_bytes(const struct prep_config *c, size_t *ret)
{
	(void)c;
	*ret = sizeof(uint32_t);
	return true;
}

static int repeat(const void *state, const void *in, size_t n, void *out)
{
	uint32_t id;

	(void)state;
	assert_int_equal(n, sizeof(id));
	memcpy(&id, in, n);
	memset(out, (int)(id % 251), WIDE);
	if (slow_clock)
		tick_wait(slow_clock, tick_now(slow_clock) + 30 * NS_PER_MS);
	return id % BROKEN ? 0 : -EBADMSG;
}

static const struct prep_last last = {
	.name = "repetition",
	.bytes = number_bytes,
	.run = repeat,
};
static const struct prep_ops prep = { .last = &last };

/* --- the rig -------------------------------------------------------------- */

struct rig {
	struct others o;
	struct tick *tick;
	struct finish *f;
	unsigned char *buffer[BUFFERS];
};

static void open_rig(struct rig *r, struct tick *tick, uint32_t threads)
{
	struct err err = { 0 };
	struct finish_config c = { .prep = &prep,
				   .sample_bytes = WIDE,
				   .tick = tick,
				   .threads = threads,
				   .batch = BATCH,
				   .buffer = r->buffer,
				   .n_buffers = BUFFERS };

	*r = (struct rig){ .tick = tick, .o.silent_from = UINT64_MAX };
	pthread_mutex_init(&r->o.lock, NULL);
	pthread_cond_init(&r->o.changed, NULL);
	for (int i = 0; i < BUFFERS; i++)
		r->buffer[i] = util_aligned_alloc(
			64, finish_buffer_bytes(BATCH, WIDE));
	if (finish_new(&c, &others_ops, &r->o, &r->f, &err) < 0)
		fail_msg("%s", err.text);
}

static void close_rig(struct rig *r)
{
	finish_ops.close(r->f);
	assert_true(r->o.closed);
	pthread_cond_destroy(&r->o.changed);
	pthread_mutex_destroy(&r->o.lock);
	for (int i = 0; i < BUFFERS; i++)
		free(r->buffer[i]);
	tick_free(r->tick);
}

static void begin_epoch(struct rig *r, uint64_t epoch, uint64_t batches)
{
	struct err err = { 0 };

	assert_int_equal(
		finish_ops.begin(r->f, epoch, NULL, batches * BATCH, &err), 0);
}

static int take(struct rig *r, uint64_t until, struct remote_batch *b)
{
	struct err err = { 0 };
	int code = finish_ops.next(r->f, until, b, &err);

	assert_true(code >= 0 || code == -ENODATA || code == -ECANCELED ||
		    err.text[0]);
	return code;
}

static void check_batch(const struct remote_batch *b, uint64_t number)
{
	assert_int_equal(b->n, BATCH);
	for (uint32_t i = 0; i < b->n; i++) {
		const struct place *p = &b->place[i];
		const unsigned char *data = p->data;
		uint32_t id = (uint32_t)(number * BATCH + i);
		bool read = id % UNREAD;

		assert_int_equal(p->sample, id);
		assert_int_equal(p->n, WIDE);
		assert_int_equal((uintptr_t)data % 64, 0);
		assert_int_equal(p->error, !read	 ? -EIO
					   : id % BROKEN ? 0
							 : -EBADMSG);
		for (int k = 0; k < WIDE; k++)
			assert_int_equal(data[k], read ? id % 251 : 0);
	}
}

/* --- tests ---------------------------------------------------------------- */

static void every_batch_comes_once_and_in_order(void **state)
{
	struct remote_batch b[2]; /* two are held at a time */
	struct rig r;

	(void)state;
	open_rig(&r, tick_new(1, 0), THREADS);
	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		begin_epoch(&r, epoch, BATCHES);
		for (uint64_t i = 0; i < BATCHES; i++) {
			assert_int_equal(take(&r, TICK_NEVER, &b[i % 2]), 0);
			check_batch(&b[i % 2], i);
			if (i)
				finish_ops.release(r.f, &b[(i + 1) % 2]);
		}
		assert_int_equal(take(&r, TICK_NEVER, &b[0]), -ENODATA);
		finish_ops.release(r.f, &b[(BATCHES + 1) % 2]);
	}
	close_rig(&r);
}

static void an_epoch_may_begin_in_the_middle_of_another(void **state)
{
	struct remote_batch b;
	struct rig r;

	(void)state;
	open_rig(&r, tick_new(1, 0), THREADS);
	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
		begin_epoch(&r, epoch, BATCHES);
		for (uint64_t i = 0; i < epoch; i++) {
			assert_int_equal(take(&r, TICK_NEVER, &b), 0);
			assert_int_equal(b.epoch, epoch);
			check_batch(&b, i);
			finish_ops.release(r.f, &b);
		}
	}
	close_rig(&r);
}

static void a_cut_epoch_ends_early(void **state)
{
	struct remote_batch b;
	uint64_t n, i = 0;
	struct rig r;

	(void)state;
	open_rig(&r, tick_new(1, 0), THREADS);
	begin_epoch(&r, 0, BATCHES);
	assert_int_equal(take(&r, TICK_NEVER, &b), 0);
	finish_ops.release(r.f, &b);
	n = finish_ops.cut(r.f, 10 * BATCH) / BATCH;
	assert_true(n >= 10 && n < BATCHES);
	while (take(&r, TICK_NEVER, &b) == 0) {
		check_batch(&b, ++i);
		finish_ops.release(r.f, &b);
	}
	assert_int_equal(i, n - 1);
	close_rig(&r);
}

static void their_error_comes_after_their_batches(void **state)
{
	struct remote_batch b;
	struct rig r;

	(void)state;
	open_rig(&r, tick_new(1, 0), THREADS);
	r.o.error = -EPROTO;
	begin_epoch(&r, 0, 3);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(take(&r, TICK_NEVER, &b), 0);
		check_batch(&b, i);
		finish_ops.release(r.f, &b);
	}
	assert_int_equal(take(&r, TICK_NEVER, &b), -EPROTO);
	close_rig(&r);
}

static void a_wait_has_an_end(void **state)
{
	struct remote_batch b;
	struct rig r;

	(void)state;
	open_rig(&r, tick_new(1, 0), THREADS);
	r.o.silent_from = 1;
	begin_epoch(&r, 0, BATCHES);
	assert_int_equal(take(&r, TICK_NEVER, &b), 0);
	assert_int_equal(take(&r, tick_now(r.tick) + NS_PER_MS, &b), 1);
	assert_int_equal(finish_ops.n_ready(r.f), 0);
	finish_ops.release(r.f, &b);
	finish_ops.stop(r.f);
	assert_int_equal(take(&r, TICK_NEVER, &b), -ECANCELED);
	close_rig(&r);
}

/* Nothing more is on its way, and nobody says so but the cut. */
static void a_cut_ends_what_was_silent(void **state)
{
	struct remote_batch b;
	struct rig r;

	(void)state;
	open_rig(&r, tick_new(1, 0), THREADS);
	r.o.silent_from = 1;
	begin_epoch(&r, 0, BATCHES);
	assert_int_equal(take(&r, TICK_NEVER, &b), 0);
	finish_ops.release(r.f, &b);
	assert_int_equal(finish_ops.cut(r.f, 0), BATCH);
	assert_int_equal(take(&r, TICK_NEVER, &b), -ENODATA);
	close_rig(&r);
}

static double stall_of(struct rig *r)
{
	json_auto_t *j = finish_ops.json(r->f);

	return json_number_value(
		json_object_get(json_object_get(j, "stall_s"), "last_step"));
}

static void the_last_step_is_no_read(void **state)
{
	struct tick *clock = tick_new_fake();
	struct remote_batch b;
	double share;
	struct rig r;

	(void)state;
	open_rig(&r, clock, 1);
	/* idle at 0, all arrives at 50 ms; BATCH - 1 samples of 30 ms each */
	r.o.arrival.arrived_ns = 50 * NS_PER_MS;
	r.o.arrival.read_share = .8;
	slow_clock = clock;
	tick_wait(clock, r.o.arrival.arrived_ns);
	begin_epoch(&r, 0, 1);
	assert_int_equal(take(&r, TICK_NEVER, &b), 0);
	slow_clock = NULL;
	assert_int_equal(b.arrival.ready_ns,
			 (50 + 30 * (BATCH - 1)) * NS_PER_MS);
	assert_int_equal(r.o.n_counted, 0);
	share = finish_ops.count(r.f, &b.arrival, 0);
	assert_int_equal(r.o.n_counted, 1);
	assert_true(fabs(share - .8 * 50 / 170) < 1e-9);
	assert_true(fabs(stall_of(&r) - .12) < 1e-9);
	/* the GPU had work until 100 ms, and then until it was long ready */
	share = finish_ops.count(r.f, &b.arrival, 100 * NS_PER_MS);
	assert_true(fabs(share) < 1e-9);
	assert_true(fabs(stall_of(&r) - .19) < 1e-9);
	finish_ops.count(r.f, &b.arrival, 500 * NS_PER_MS);
	assert_true(fabs(stall_of(&r) - .19) < 1e-9);
	finish_ops.release(r.f, &b);
	close_rig(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_batch_comes_once_and_in_order),
		cmocka_unit_test(an_epoch_may_begin_in_the_middle_of_another),
		cmocka_unit_test(a_cut_epoch_ends_early),
		cmocka_unit_test(their_error_comes_after_their_batches),
		cmocka_unit_test(a_wait_has_an_end),
		cmocka_unit_test(a_cut_ends_what_was_silent),
		cmocka_unit_test(the_last_step_is_no_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
