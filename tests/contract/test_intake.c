/* SPDX-License-Identifier: MIT */
/*
 * Batches that are prepared here and batches that are received, as one epoch:
 * each sample once, whatever the part, and if the part is only known in the
 * middle. And what --offload auto makes of the times of batches. The service is
 * one of this test.
 */
#include "tests/contract/engine_rig.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/pipeline/intake.h"
#include "loader/train/offload.h"

enum { MOST = 400, PER_SPLIT = 4 };

extern const struct prep_ops prep_none;

/* --- a service ------------------------------------------------------------ */

static struct {
	uint32_t batch;
	const uint32_t *order;
	uint64_t n, given;
	uint64_t lost_from; /* what is behind is lost */
	struct rng ready;
	struct place place[BATCH];
} fake;

static uint32_t n_buffers(const void *options)
{
	(void)options;
	return 1;
}

static size_t buffer_bytes(uint32_t n, uint64_t bytes)
{
	return n + bytes;
}

static int open_fake(const struct remote_config *c, void **ret, struct err *err)
{
	(void)err;
	fake.batch = c->batch;
	*ret = &fake;
	return 0;
}

static void close_fake(void *state)
{
	(void)state;
}

static int begin(void *state, uint64_t epoch, const uint32_t *order, uint64_t n,
		 struct err *err)
{
	(void)state;
	(void)epoch;
	(void)err;
	assert_true(n > 0);
	fake.order = order;
	fake.n = n;
	fake.given = 0;
	return 0;
}

/* To the end of a split, and of what was given. */
static uint64_t cut(void *state, uint64_t n)
{
	uint64_t split = (uint64_t)PER_SPLIT * fake.batch;

	(void)state;
	n = (MAX(n, fake.given) + split - 1) / split * split;
	fake.n = MIN(fake.n, n);
	return fake.n;
}

static int next(void *state, uint64_t until, struct remote_batch *ret,
		struct err *err)
{
	uint32_t n = (uint32_t)MIN(fake.batch, fake.n - fake.given);

	(void)state;
	(void)until;
	(void)err;
	if (n == 0 || fake.given >= fake.lost_from)
		return -ENODATA;
	for (uint32_t i = 0; i < n; i++)
		fake.place[i] =
			(struct place){ .data = "",
					.sample = fake.order[fake.given + i] };
	fake.given += n;
	*ret = (struct remote_batch){ .n = n,
				      .place = fake.place,
				      .own = &fake };
	return 0;
}

static double count(void *state, const struct remote_arrival *a, uint64_t idle)
{
	(void)state;
	(void)a;
	(void)idle;
	return 1;
}

static void release(void *state, struct remote_batch *b)
{
	assert_ptr_equal(b->own, state);
}

static uint32_t n_ready(void *state)
{
	(void)state;
	return rng_below(&fake.ready, 2);
}

static void stop(void *state)
{
	(void)state;
}

static json_t *json(void *state)
{
	(void)state;
	return json_pack("{s:[i, i]}", "workers", 1, 2);
}

static const struct remote_ops remote = {
	.n_buffers = n_buffers,
	.buffer_bytes = buffer_bytes,
	.open = open_fake,
	.close = close_fake,
	.begin = begin,
	.cut = cut,
	.next = next,
	.count = count,
	.release = release,
	.n_ready = n_ready,
	.stop = stop,
	.json = json,
};

static const struct engine_ops engine_fake = {
	.plugin = { .name = "fake" },
	.any_order = true,
	.remote = &remote,
};

/* --- an epoch ------------------------------------------------------------- */

static struct intake *new_intake(const struct fixture *f, uint32_t batch,
				 double part, uint64_t alone)
{
	static const struct remote_service service = { .most_bytes = 4096 };
	const struct intake_config c = {
		.pipeline = { .data = &f->data,
			      .engine = &engine_sync,
			      .prep = &prep_none,
			      .tick = f->tick,
			      .workers = 2,
			      .queue_depth = 2,
			      .batch = batch,
			      .superbatch = 1,
			      .prefetch = 2 },
		.remote = &engine_fake,
		.service = &service,
		.part = part,
		.alone = alone,
	};
	struct err err = { 0 };
	struct intake *i;

	fake.ready = rng_stream(1, "ready", batch);
	fake.lost_from = UINT64_MAX;
	if (intake_new(&c, &i, &err) < 0)
		fail_msg("%s", err.text);
	return i;
}

struct epoch {
	uint32_t order[MOST];
	uint64_t n;
	unsigned due[N];	  /* times a sample is yet to come */
	uint64_t n_here, n_there; /* samples */
};

static void begin_epoch(struct epoch *e, struct intake *i, uint64_t n)
{
	*e = (struct epoch){ .n = n };
	for (uint64_t k = 0; k < n; k++) {
		e->order[k] = (uint32_t)(k * 5 % N);
		e->due[e->order[k]]++;
	}
	intake_begin(i, 0, e->order, n);
}

/* The next batch, to be released; false: there are no more. */
static bool take(struct epoch *e, struct intake *i, struct delivery *d)
{
	struct err err = { 0 };
	int r = intake_next(i, TICK_NEVER, TICK_NEVER, d, &err);

	if (r == -ENODATA)
		return false;
	if (r < 0)
		fail_msg("%s", err.text);
	for (uint32_t k = 0; k < d->n; k++)
		assert_int_not_equal(e->due[d->place[k].sample]--, 0);
	if (d->received)
		e->n_there += d->n;
	else
		e->n_here += d->n;
	assert_int_equal(intake_left(i), e->n - e->n_here - e->n_there);
	return true;
}

static void take_some(struct epoch *e, struct intake *i, uint64_t batches)
{
	struct delivery d;

	while (batches-- && take(e, i, &d))
		intake_release(i, &d);
}

static void each_sample_comes_once_whatever_the_part(void **state)
{
	static const double parts[] = { 0, .01, .25, .5, .77, 1 };
	static const uint64_t sizes[] = { 1, BATCH, BATCH + 1, N, MOST };
	const struct fixture *f = *state;
	static struct epoch e;

	for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
		struct intake *i = new_intake(f, BATCH, parts[k], 0);

		for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
			double batches = ceil((double)sizes[s] / BATCH);

			begin_epoch(&e, i, sizes[s]);
			take_some(&e, i, MOST);
			assert_int_equal(e.n_here + e.n_there, sizes[s]);
			assert_int_equal(ceil((double)e.n_there / BATCH),
					 round(parts[k] * batches));
		}
		intake_free(i);
	}
}

static void the_part_may_be_known_later(void **state)
{
	static const double parts[] = { 0, .1, .5, 1 };
	const struct fixture *f = *state;
	static struct epoch e;

	for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
		struct intake *i = new_intake(f, BATCH, -1, 20);
		double left = MOST / BATCH - 20 - 10;

		begin_epoch(&e, i, MOST);
		take_some(&e, i, 20);
		assert_int_equal(e.n_here, 20 * BATCH);
		intake_receive(i);
		take_some(&e, i, 10);
		assert_int_equal(e.n_there, 10 * BATCH);
		intake_settle(i, parts[k]);
		take_some(&e, i, MOST);
		assert_int_equal(e.n_here + e.n_there, MOST);
		assert_true(fabs((double)e.n_there / BATCH - 10 -
				 parts[k] * left) <= PER_SPLIT);
		/* and from the beginning of the next */
		begin_epoch(&e, i, MOST);
		take_some(&e, i, MOST);
		assert_int_equal(e.n_there, round(parts[k] * MOST));
		intake_free(i);
	}
}

static void nothing_need_be_received(void **state)
{
	static struct epoch e;
	struct intake *i = new_intake(*state, BATCH, -1, 20);

	begin_epoch(&e, i, MOST);
	take_some(&e, i, 20);
	intake_settle(i, 0);
	take_some(&e, i, MOST);
	assert_int_equal(e.n_here, MOST);
	intake_free(i);
}

static void what_the_service_lost_ends_only_its_half(void **state)
{
	static struct epoch e;
	struct intake *i = new_intake(*state, BATCH, .5, 0);

	begin_epoch(&e, i, MOST);
	fake.lost_from = 5 * BATCH;
	for (uint64_t k = 0; k < MOST; k++) {
		struct delivery d;
		struct err err = { 0 };

		if (intake_next(i, TICK_NEVER, TICK_NEVER, &d, &err) < 0)
			break;
		e.n_here += d.received ? 0 : d.n;
		e.n_there += d.received ? d.n : 0;
		intake_release(i, &d);
	}
	assert_int_equal(e.n_here, MOST / 2);
	assert_int_equal(e.n_there, 5 * BATCH);
	assert_int_equal(intake_left(i), 0);
	intake_free(i);
}

/* --- --offload auto ------------------------------------------------------- */

/* An epoch in which a batch, of one sample, takes 10 ms if prepared here, and
 * so many ms if received; offload_begin was called. */
static void measure_epoch(struct offload *o, struct tick *clock,
			  struct intake *i, struct epoch *e, unsigned received)
{
	struct work work = { 0 };
	struct err err = { 0 };
	struct delivery d;

	begin_epoch(e, i, MOST);
	while (take(e, i, &d)) {
		uint64_t ns = (d.received ? received : 10) * NS_PER_MS;

		tick_wait(clock, tick_now(clock) + ns);
		assert_int_equal(offload_taken(o, i, &d, &work, &err), 0);
		intake_release(i, &d);
	}
	assert_int_equal(e->n_here + e->n_there, MOST);
}

static void measure(struct offload *o, struct tick *clock, struct intake *i,
		    struct epoch *e)
{
	assert_false(offload_begin(o));
	measure_epoch(o, clock, i, e, 5);
}

static void the_rates_are_those_of_the_batches(void **state)
{
	const struct offload_config c = {
		.tick = tick_new_fake(),
		.part = -1,
		.gpu = 1000,
		.per_step = 1,
		.way = { FASTFLOW_BATCH },
		.n_ways = 1,
	};
	static struct epoch e;
	struct intake *i = new_intake(*state, 1, -1, FASTFLOW_STEPS);
	struct offload o;
	double rest = MOST - 2 * FASTFLOW_STEPS;

	offload_init(&o, &c);
	assert_int_equal(offload_alone(&o), FASTFLOW_STEPS);
	measure(&o, (struct tick *)c.tick, i, &e);
	assert_true(fabs(o.profile.local - 100) < 1e-6);
	assert_true(fabs(o.profile.split[FASTFLOW_BATCH].rate - 200) < 1e-6);
	assert_true(o.profile.prep_cpu > 0);
	assert_int_equal(o.profile.remote_nodes, 2);
	assert_true(fabs(o.part - 2. / 3) < 1e-6);
	assert_true(fabs((double)e.n_there - FASTFLOW_STEPS - rest * 2 / 3) <=
		    PER_SPLIT);
	assert_int_equal(o.n_here, e.n_here);
	assert_int_equal(o.n_there, e.n_there);
	/* nothing is measured twice */
	measure(&o, (struct tick *)c.tick, i, &e);
	assert_int_equal(e.n_there, round(MOST * 2 / 3.));
	intake_free(i);
	tick_free((struct tick *)c.tick);
}

/* The second takes so many ms, the first 5; which is used from the third epoch
 * on, and for which part? */
static void compare_ways(const struct fixture *f, unsigned second,
			 uint32_t better, double part)
{
	const struct offload_config c = {
		.tick = tick_new_fake(),
		.part = -1,
		.gpu = 1000,
		.per_step = 1,
		.way = { FASTFLOW_BATCH, FASTFLOW_LAST },
		.n_ways = 2,
	};
	struct tick *clock = (struct tick *)c.tick;
	static struct epoch e;
	struct intake *i = new_intake(f, 1, -1, FASTFLOW_STEPS);
	double own = 1e3 / second / (100 + 1e3 / second);
	struct offload o;

	offload_init(&o, &c);
	measure(&o, clock, i, &e);
	assert_int_equal(o.way, 0);
	assert_true(fabs(o.part - 2. / 3) < 1e-6);
	assert_true(offload_begin(&o));
	assert_int_equal(o.way, 1);
	intake_free(i);
	i = new_intake(f, 1, offload_part(&o), FASTFLOW_STEPS);
	measure_epoch(&o, clock, i, &e, second);
	assert_true(fabs((double)e.n_there - FASTFLOW_STEPS -
			 (MOST - FASTFLOW_STEPS) * own) <= PER_SPLIT);
	assert_true(fabs(o.profile.split[FASTFLOW_LAST].rate - 1e3 / second) <
		    1e-6);
	assert_int_equal(offload_begin(&o), better != 1);
	assert_int_equal(o.way, better);
	assert_true(fabs(offload_part(&o) - part) < 1e-6);
	assert_int_equal(o.phase, OFFLOAD_SETTLED);
	assert_false(offload_begin(&o));
	intake_free(i);
	tick_free(clock);
}

static void the_better_of_two_ways_is_used(void **state)
{
	compare_ways(*state, 2, 1, 500. / 600);
	compare_ways(*state, 20, 0, 2. / 3);
}

static void a_gpu_that_hardly_waits_needs_no_service(void **state)
{
	const struct offload_config c = {
		.tick = tick_new_fake(),
		.part = -1,
		.gpu = 109,
		.per_step = 1,
		.way = { FASTFLOW_BATCH },
		.n_ways = 1,
	};
	static struct epoch e;
	struct intake *i = new_intake(*state, 1, -1, FASTFLOW_STEPS);
	struct offload o;

	offload_init(&o, &c);
	measure(&o, (struct tick *)c.tick, i, &e);
	assert_int_equal(e.n_there, 0);
	assert_int_equal(o.phase, OFFLOAD_SETTLED);
	assert_true(o.part == 0);
	intake_free(i);
	tick_free((struct tick *)c.tick);
}

static void a_profile_that_was_kept_is_not_measured_again(void **state)
{
	struct offload_config c = { .tick = tick_new_fake(),
				    .part = -1,
				    .gpu = 1000,
				    .per_step = 1,
				    .way = { FASTFLOW_BATCH },
				    .n_ways = 1,
				    .cache = "intake-profiles.json",
				    .key = { "prep", "model", "service" } };
	static struct epoch e;
	struct intake *i = new_intake(*state, 1, -1, FASTFLOW_STEPS);
	struct offload o, again;

	unlink(c.cache);
	offload_init(&o, &c);
	assert_false(o.cached);
	measure(&o, (struct tick *)c.tick, i, &e);
	offload_init(&again, &c);
	assert_true(again.cached);
	assert_int_equal(again.phase, OFFLOAD_SETTLED);
	assert_true(fabs(again.part - o.part) < 1e-9);
	c.key.model = "another";
	offload_init(&again, &c);
	assert_false(again.cached);
	assert_true(again.part < 0);
	unlink(c.cache);
	intake_free(i);
	tick_free((struct tick *)c.tick);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_comes_once_whatever_the_part),
		cmocka_unit_test(the_part_may_be_known_later),
		cmocka_unit_test(nothing_need_be_received),
		cmocka_unit_test(what_the_service_lost_ends_only_its_half),
		cmocka_unit_test(the_rates_are_those_of_the_batches),
		cmocka_unit_test(the_better_of_two_ways_is_used),
		cmocka_unit_test(a_gpu_that_hardly_waits_needs_no_service),
		cmocka_unit_test(a_profile_that_was_kept_is_not_measured_again),
	};

	return cmocka_run_group_tests(tests, setup_files, teardown);
}
