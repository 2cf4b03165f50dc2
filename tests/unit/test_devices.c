/* SPDX-License-Identifier: MIT */
/* The interface of a device (emu/gpu/device.h), on local GPUs.
 * tests/cli/share-train.bats tests those of a server. */
#include "tests/unit/test.h"

#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/device.h"

enum { SAMPLES = 10 };

/* A batch: 10 ms to copy, 30 ms to compute. */
static struct gpu_row row = {
	.batch = SAMPLES, .forward_ms = 10, .backward_ms = 20, .transfer_ms = 10
};
static struct gpu_model model = { .name = (char *)"m",
				  .sample_bytes = 1000,
				  .rows = { .items = &row, .n = 1 } };
static const struct gpu_profile profile = {
	.sample_bytes = 1000,
	.pinned = { .per_sample_ms = 1 },
};

struct rig {
	struct tick *tick;
	struct device *device;
	struct gpus_config gpus;
	unsigned n_done, n_begun;
	void *user;
	uint64_t idle_ns, begun_ns;
	struct gpu_step step;
	/* other nodes */
	struct gpus_reach reach;
	bool fails;
};

static void done(void *ctx, const struct device_step *s)
{
	struct rig *r = ctx;

	r->n_done++;
	r->user = s->user;
	r->idle_ns = s->idle_ns;
	r->step = s->gpu[0];
}

static void begun(void *ctx, uint64_t at)
{
	struct rig *r = ctx;

	r->n_begun++;
	r->begun_ns = at;
}

static void start(struct rig *r, enum gpu_transfer transfer)
{
	struct device_job job = { .gpu = &profile,
				  .model = &model,
				  .gpus = &r->gpus,
				  .batch = SAMPLES,
				  .pinned = true };
	uint64_t load_ns;

	*r = (struct rig){ .gpus = { .n = 1, .transfer = transfer } };
	r->tick = job.tick = tick_new_fake();
	r->device = device_local_new();
	assert_non_null(r->device);
	r->device->events = (struct device_events){ done, begun, r };
	assert_int_equal(device_start(r->device, &job, &load_ns, NULL), 0);
	assert_int_equal(load_ns, 0);
	device_begin(r->device, 0);
}

static void stop(struct rig *r)
{
	device_close(r->device);
	tick_free(r->tick);
}

/* Returns when its copy ends. */
static uint64_t step(struct rig *r, struct device_batch *b)
{
	struct device_part part = { b->samples, b->bytes };
	struct gpu_step copy;

	assert_int_equal(device_copy(r->device, 0, b, &copy, NULL), 0);
	device_submit(r->device, &part, b);
	return copy.copy_end;
}

static void a_step_is_reported_and_then_seen_to_begin(void **state)
{
	struct device_batch b = { .samples = SAMPLES,
				  .bytes = SAMPLES * 1000,
				  .ready_ns = 5 * NS_PER_MS };
	struct rig r;

	(void)state;
	start(&r, GPU_TRANSFER_OVERLAP);
	assert_int_equal(step(&r, &b), 15 * NS_PER_MS);
	assert_int_equal(r.n_done, 1);
	assert_int_equal(r.n_begun, 0);
	assert_ptr_equal(r.user, &b);
	assert_int_equal(r.idle_ns, 0);
	assert_int_equal(r.step.data_wait_ns, 5 * NS_PER_MS);
	assert_int_equal(r.step.transfer_stall_ns, 10 * NS_PER_MS);
	assert_int_equal(r.device->idle_ns, 45 * NS_PER_MS);
	assert_int_equal(tick_now(r.tick), 0);
	/* room for another while this one computes */
	assert_int_equal(device_room(r.device, 1, NULL), 0);
	assert_int_equal(r.n_begun, 1);
	assert_int_equal(r.begun_ns, 15 * NS_PER_MS);
	assert_int_equal(tick_now(r.tick), 15 * NS_PER_MS);
	/* which waits for the GPU, not for its copy */
	b.ready_ns = 0;
	assert_int_equal(step(&r, &b), 25 * NS_PER_MS);
	assert_int_equal(r.idle_ns, 45 * NS_PER_MS);
	assert_int_equal(r.step.compute_start, 45 * NS_PER_MS);
	assert_int_equal(device_drain(r.device, NULL), 0);
	assert_int_equal(r.n_done, 2);
	stop(&r);
}

/* Another node takes 7 ms longer. */
static void reach(void *ctx, const struct device_step *s,
		  const struct gpus_reach *r)
{
	struct rig *rig = ctx;

	rig->step = s->gpu[0];
	rig->reach = *r;
}

static int reduced(void *ctx, struct gpus_reach *ret_all, uint64_t *ret_reduced,
		   struct err *err)
{
	struct rig *rig = ctx;

	if (rig->fails)
		return err_set(err, -ECANCELED, "rank 1 was interrupted");
	*ret_all = rig->reach;
	ret_all->pass.end += 7 * NS_PER_MS;
	*ret_reduced = ret_all->pass.end + 2 * NS_PER_MS;
	return 0;
}

static void
a_step_with_other_nodes_is_reported_when_they_are_there(void **state)
{
	struct device_batch b = { .samples = SAMPLES, .bytes = SAMPLES * 1000 };
	struct err err = { 0 };
	struct gpu_step copy;
	struct rig r;

	(void)state;
	start(&r, GPU_TRANSFER_OVERLAP);
	r.device->events.reach = reach;
	r.device->events.reduced = reduced;
	step(&r, &b);
	assert_int_equal(r.n_done, 0);
	assert_int_equal(r.reach.pass.start, 20 * NS_PER_MS);
	assert_int_equal(r.reach.pass.end, 40 * NS_PER_MS);
	/* there is room before that */
	assert_int_equal(device_room(r.device, 1, NULL), 0);
	assert_int_equal(r.n_done, 0);
	assert_int_equal(tick_now(r.tick), 10 * NS_PER_MS);
	/* the next batch is copied meanwhile, and computed after it */
	assert_int_equal(step(&r, &b), 20 * NS_PER_MS);
	assert_int_equal(r.n_done, 1);
	assert_int_equal(r.step.compute_start, 49 * NS_PER_MS);
	assert_int_equal(device_drain(r.device, NULL), 0);
	assert_int_equal(r.n_done, 2);
	assert_int_equal(r.step.barrier_wait_ns, 7 * NS_PER_MS);
	assert_int_equal(r.step.allreduce_ns, 2 * NS_PER_MS);
	assert_int_equal(r.device->idle_ns, 88 * NS_PER_MS);
	/* nothing is reported of a step that another node does not make */
	step(&r, &b);
	r.fails = true;
	assert_int_equal(device_copy(r.device, 0, &b, &copy, &err), -ECANCELED);
	assert_string_equal(err.text, "rank 1 was interrupted");
	assert_int_equal(device_drain(r.device, NULL), -ECANCELED);
	assert_int_equal(r.n_done, 2);
	stop(&r);
}

static void a_held_device_neither_copies_nor_computes(void **state)
{
	struct device_batch b = { .samples = SAMPLES, .bytes = SAMPLES * 1000 };
	struct rig r;

	(void)state;
	start(&r, GPU_TRANSFER_OVERLAP);
	device_hold(r.device, 100 * NS_PER_MS);
	assert_int_equal(r.device->idle_ns, 100 * NS_PER_MS);
	assert_int_equal(step(&r, &b), 110 * NS_PER_MS);
	stop(&r);
}

static void blocking_has_room_when_the_step_is_over(void **state)
{
	struct device_batch b = { .samples = SAMPLES, .bytes = SAMPLES * 1000 };
	struct rig r;

	(void)state;
	start(&r, GPU_TRANSFER_BLOCKING);
	step(&r, &b);
	assert_int_equal(device_room(r.device, 1, NULL), 0);
	assert_int_equal(tick_now(r.tick), 40 * NS_PER_MS);
	stop(&r);
}

static uint64_t slow(const struct tick *tick, const void *memory)
{
	(void)tick;
	assert_string_equal(memory, "bytes");
	return 70 * NS_PER_MS;
}

static void pageable_memory_is_staged_once_there_is_room(void **state)
{
	struct device_batch b = { .samples = SAMPLES,
				  .bytes = SAMPLES * 1000,
				  .ready_ns = 3 * NS_PER_MS,
				  .stage = slow,
				  .memory = "bytes" };
	struct rig r;

	(void)state;
	start(&r, GPU_TRANSFER_OVERLAP);
	/* the staging takes longer than the copy that contains it */
	assert_int_equal(step(&r, &b), 73 * NS_PER_MS);
	assert_int_equal(tick_now(r.tick), 3 * NS_PER_MS);
	stop(&r);
}

static void local_gpus_are_not_shared(void **state)
{
	json_auto_t *j = NULL;
	struct rig r;

	(void)state;
	start(&r, GPU_TRANSFER_OVERLAP);
	j = device_json(r.device);
	assert_true(json_is_null(j));
	assert_false(r.device->ops->shared);
	device_interrupt(r.device);
	stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_reported_and_then_seen_to_begin),
		cmocka_unit_test(
			a_step_with_other_nodes_is_reported_when_they_are_there),
		cmocka_unit_test(a_held_device_neither_copies_nor_computes),
		cmocka_unit_test(blocking_has_room_when_the_step_is_over),
		cmocka_unit_test(pageable_memory_is_staged_once_there_is_room),
		cmocka_unit_test(local_gpus_are_not_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
