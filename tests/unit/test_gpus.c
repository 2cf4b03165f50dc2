/* SPDX-License-Identifier: MIT */
/* GPUs that train together, against times worked out by hand. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpus.h"
#include "emu/profile/profile_gpu.h"
#include "emu/node/profile_node.h"

static void a_link_serves_one_after_the_other(void **state)
{
	struct link l = { 1e9, 0 }; /* a byte a ns */
	struct link none = { 0, 0 };

	(void)state;
	assert_int_equal(link_send(&l, 10, 100), 110);
	assert_int_equal(link_send(&l, 50, 100), 210);	/* 60 in the queue */
	assert_int_equal(link_send(&l, 400, 100), 500); /* idle between */
	assert_int_equal(link_send(&none, 400, 100), 400);
}

/* In any order of arrival, k transfers end when they would under a fluid
 * share. */
static void a_link_conserves_work(void **state)
{
	uint64_t at = 0, sum = 0, end = 0;
	struct link l = { 1e9, 0 };

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t bytes = i * 7919 % 40 + 100, before = end;

		at += i * 104729 % 60;
		assert_true(at <= before || i == 0);
		end = link_send(&l, at, bytes);
		assert_true(end >= before);
		sum += bytes;
	}
	assert_int_equal(end, sum);
}

static struct collective of(enum collective_algorithm a, uint32_t ranks)
{
	return (struct collective){ .algorithm = a,
				    .ranks = ranks,
				    .bytes_per_s = 1e9,
				    .latency_ns = 1000 };
}

/* The time of an all-reduce of one bucket, behind a pass that takes none. */
static uint64_t reduce(struct collective c, uint64_t bytes)
{
	struct collective_pass pass = { 0 };

	c.bytes = bytes;
	return collective_overlapped(&c, &pass, 1);
}

static void reductions_follow_their_laws(void **state)
{
	struct collective c = of(COLLECTIVE_RING, 8);

	(void)state;
	/* 14/8 of 800 kB, 14 hops */
	assert_int_equal(reduce(c, 800000), 1400000 + 14000);
	c.algorithm = COLLECTIVE_TREE;
	/* twice 800 kB, three levels up and down */
	assert_int_equal(reduce(c, 800000), 1600000 + 6000);
	c.algorithm = COLLECTIVE_AUTO;
	assert_int_equal(reduce(c, 800000), 1414000);
	assert_int_equal(reduce(c, 800), 1600 + 6000);
	c.ranks = 6; /* three levels hold them */
	assert_int_equal(reduce(c, 600), 1200 + 6000);
	c.ranks = 1;
	assert_int_equal(reduce(c, 800000), 0);
}

/* Buckets of 1 and 25 MiB; a MiB of gradients every ms, 4 ranks, each a ms
 * later than the one before. */
static void buckets_hide_behind_the_backward_pass(void **state)
{
	struct collective c = of(COLLECTIVE_RING, 4);
	struct collective_pass pass[4];
	uint64_t ms = NS_PER_MS, last;

	(void)state;
	c.bytes = 51 * MIB;
	c.latency_ns = 0;
	for (uint64_t i = 0; i < 4; i++)
		pass[i] = (struct collective_pass){ i * ms, (51 + i) * ms };
	/* a fast link: only the last bucket shows, 25 MiB at 1.5 of a ns
	 * a byte over 100 */
	c.bytes_per_s = 100e9;
	last = (uint64_t)(25 * MIB * 1.5 / 100);
	assert_int_equal(collective_overlapped(&c, pass, 4), 54 * ms + last);
	/* a slow link is busy from the second bucket on, which is complete on
	 * all GPUs at 3 + 26 ms */
	c.bytes_per_s = 1e9;
	last = (uint64_t)(50 * MIB * 1.5);
	assert_int_equal(collective_overlapped(&c, pass, 4), 29 * ms + last);
	/* alone, a bucket waits only for the others' backward pass */
	c.ranks = 1;
	assert_int_equal(collective_overlapped(&c, pass, 4), 54 * ms);
}

/* Two units, whose gathers and reductions take 100 ns each; forward they are
 * computed in 100 ns, backward in 200. */
static void shards_are_gathered_and_reduced(void **state)
{
	struct fsdp f = { .ranks = 2,
			  .units = 2,
			  .prefetch = 1,
			  .weight_bytes = 400,
			  .gradient_bytes = 400,
			  .bytes_per_s = 1e9 };

	(void)state;
	/* the first gather and the last reduction have nothing to hide behind
	 */
	assert_int_equal(fsdp_exposed_ns(&f, 200, 400), 200);
	assert_int_equal(fsdp_exposed_ns(&f, 200, 0), 100);
	/* both gathers forward; backward one, behind the first reduction, and
	 * the last reduction */
	f.prefetch = 0;
	assert_int_equal(fsdp_exposed_ns(&f, 200, 400), 500);
	/* a slow link is all there is: 3 gathers, 2 reductions, and between the
	 * passes the last unit's computation */
	f.prefetch = 1;
	f.bytes_per_s = 1e6;
	assert_int_equal(fsdp_exposed_ns(&f, 200, 400), 500000 + 100 - 600);
	f.ranks = 1;
	assert_int_equal(fsdp_exposed_ns(&f, 200, 400), 0);
}

/* Copies that take no time, then a step of two GPUs. */
static uint64_t two_gpus(struct gpus *g, const struct gpus_part *part,
			 struct gpu_step *s)
{
	struct gpus_part parts[2] = { *part, *part };

	for (uint32_t i = 0; i < 2; i++)
		gpus_copy(g, i, 0, part, &s[i]);
	return gpus_step(g, 2, parts, s);
}

static void accumulated_gradients_are_reduced_once(void **state)
{
	struct gpus_config c = {
		.n = 2,
		.reduce = { .ranks = 2, .bytes = 1000, .bytes_per_s = 1e9 }
	};
	struct gpus_part part = { .forward_ns = 10, .backward_ns = 20 };
	struct gpu_step s[2];
	struct gpus g;

	(void)state;
	gpus_init(&g, &c, 0);
	g.accumulates = true;
	assert_int_equal(two_gpus(&g, &part, s), 30);
	assert_int_equal(s[0].allreduce_ns, 0);
	assert_int_equal(two_gpus(&g, &part, s), 60);
	g.accumulates = false;
	assert_int_equal(two_gpus(&g, &part, s), 90 + 1000);
	assert_int_equal(s[0].allreduce_ns, 1000);
	/* sharded: the waits for parameters count, too */
	gpus_init(&g, &c, 0);
	g.config.reduce.bytes = 0;
	part.sharded_ns = 5;
	assert_int_equal(two_gpus(&g, &part, s), 35);
	assert_int_equal(s[1].allreduce_ns, 5);
	assert_int_equal(s[1].barrier_wait_ns, 0);
	assert_int_equal(s[1].compute_end, 30);
}

static void batches_are_cut_as_torch_cuts_them(void **state)
{
	(void)state;
	assert_int_equal(gpus_cut(8, 4, 3), 2);
	assert_int_equal(gpus_cut(5, 4, 0), 2);
	assert_int_equal(gpus_cut(5, 4, 2), 1);
	assert_int_equal(gpus_cut(5, 4, 3), 0);
	assert_int_equal(gpus_cut(1, 64, 0), 1);
	assert_int_equal(gpus_cut(UINT32_MAX, 1, 0), UINT32_MAX);
}

/* The four GPUs of two roots, each of which takes 1 byte a ns. */
static void copies_share_their_root(void **state)
{
	struct gpus_config c = { .n = 4,
				 .root_bytes_per_s = 1e9,
				 .gpus_per_root = 2 };
	struct gpus_part part = { .copy_ns = 60,
				  .copy_bytes = 100,
				  .forward_ns = 5,
				  .backward_ns = 10 };
	static const uint64_t copied[] = { 200, 300, 200, 300 };
	struct gpus_part parts[4] = { part, part, part, part };
	struct gpu_step s[4];
	struct gpus g;

	(void)state;
	gpus_init(&g, &c, 100);
	for (uint32_t i = 0; i < 4; i++) {
		gpus_copy(&g, i, 100, &part, &s[i]);
		assert_int_equal(s[i].copy_end, copied[i]);
	}
	assert_int_equal(gpus_step(&g, 4, parts, s), 315);
	assert_int_equal(s[0].transfer_stall_ns, 100);
	assert_int_equal(s[1].transfer_stall_ns, 200);
	assert_int_equal(s[0].barrier_wait_ns, 100);
	assert_int_equal(s[1].barrier_wait_ns, 0);
	/* the copies of the next step hide behind this one */
	gpus_copy(&g, 0, 100, &part, &s[0]);
	assert_int_equal(s[0].copy_start, 200);
	assert_int_equal(s[0].copy_end, 400); /* the root is busy to 300 */
	/* no root at all: the GPU's own time */
	c.root_bytes_per_s = 0;
	gpus_init(&g, &c, 100);
	gpus_copy(&g, 1, 100, &part, &s[1]);
	assert_int_equal(s[1].copy_end, 160);
	/* a slot narrower than the GPU */
	c.slot_bytes_per_s = 1e9;
	gpus_init(&g, &c, 100);
	gpus_copy(&g, 1, 100, &part, &s[1]);
	assert_int_equal(s[1].copy_end, 200);
}

static void a_straggler_keeps_all_waiting(void **state)
{
	struct gpus_config c = { .n = 3,
				 .reduce = { .algorithm = COLLECTIVE_TREE,
					     .ranks = 3,
					     .latency_ns = 2,
					     .bytes = 4 } };
	struct gpus_part parts[3] = { { .forward_ns = 10, .backward_ns = 20 },
				      { .forward_ns = 10, .backward_ns = 27 } };
	struct gpu_step s[3];
	struct gpus g;

	(void)state;
	gpus_init(&g, &c, 0);
	gpus_copy(&g, 0, 4, &parts[0], &s[0]);
	gpus_copy(&g, 1, 0, &parts[1], &s[1]);
	/* the third has no batch in this step */
	assert_int_equal(gpus_step(&g, 2, parts, s), 37 + 8);
	assert_int_equal(s[0].data_wait_ns, 4);
	assert_int_equal(s[0].barrier_wait_ns, 3);
	assert_int_equal(s[0].allreduce_ns, 8);
	assert_int_equal(s[1].barrier_wait_ns, 0);
	assert_int_equal(s[2].barrier_wait_ns, 45);
	assert_int_equal(s[2].compute_end - s[2].compute_start, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(g.gpu[i].compute_end, 45);
}

/*
 * 26 MiB of gradients in a bucket of 1 and one of 25 MiB, on two GPUs, a MiB
 * in a ms: a tree takes twice that. Backward lasts 26 ms, so that gradients
 * come at the same pace. Buckets are ready at 10 + 1 and 10 + 26 ms.
 *
 *	link  |--2 ms--|              |-------------- 50 ms ------------|
 *	      11       13             36                                86
 */
static void the_optimiser_follows_the_last_bucket(void **state)
{
	struct gpus_config c = {
		.n = 2,
		.reduce = { .algorithm = COLLECTIVE_TREE,
			    .ranks = 2,
			    .bytes_per_s = (double)MIB * 1e3,
			    .bytes = 26 * MIB },
	};
	struct gpus_part part = { .forward_ns = 10 * NS_PER_MS,
				  .backward_ns = 26 * NS_PER_MS,
				  .optimizer_ns = 7 * NS_PER_MS };
	struct gpus_part parts[2] = { part, part };
	struct gpu_step s[2];
	struct gpus g;

	(void)state;
	gpus_init(&g, &c, 0);
	for (uint32_t i = 0; i < 2; i++)
		gpus_copy(&g, i, 0, &part, &s[i]);
	assert_int_equal(gpus_step(&g, 2, parts, s), 93 * NS_PER_MS);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(s[i].compute_end, 36 * NS_PER_MS);
		assert_int_equal(s[i].allreduce_ns, 50 * NS_PER_MS);
		assert_int_equal(s[i].optimizer_ns, 7 * NS_PER_MS);
		assert_int_equal(s[i].step_end, 93 * NS_PER_MS);
	}
	/* one GPU alone: one after the other */
	c.n = c.reduce.ranks = 1;
	gpus_init(&g, &c, 0);
	gpus_copy(&g, 0, 0, &part, &s[0]);
	assert_int_equal(gpus_step(&g, 1, parts, s), 43 * NS_PER_MS);
	assert_int_equal(s[0].allreduce_ns, 0);
	/* DataParallel: replicate and reduce 26 ms each, then GPU 0 alone */
	c.n = c.reduce.ranks = 2;
	c.parallel = GPUS_DP;
	gpus_init(&g, &c, 0);
	gpus_copy(&g, 0, 0, &part, &s[0]);
	assert_int_equal(gpus_step(&g, 2, parts, s),
			 (13 + 36 + 13 + 7) * NS_PER_MS);
	assert_int_equal(s[0].optimizer_ns, 7 * NS_PER_MS);
	assert_int_equal(s[1].optimizer_ns, 0);
	assert_int_equal(s[1].barrier_wait_ns, 7 * NS_PER_MS);
	/* inference: the model is copied out, and nothing is copied back */
	c.inference = true;
	for (int i = 0; i < 2; i++)
		parts[i].backward_ns = parts[i].optimizer_ns = 0;
	gpus_init(&g, &c, 0);
	gpus_copy(&g, 0, 0, &part, &s[0]);
	assert_int_equal(gpus_step(&g, 2, parts, s), 23 * NS_PER_MS);
}

static struct gpus_part part_of(const struct gpu_profile *p,
				const struct gpu_model *m, uint32_t n,
				uint64_t bytes, bool pinned)
{
	struct gpus_part part = gpus_compute_of(p, m, n, bytes);
	struct gpus_part copy;

	if (n == 0)
		return part;
	copy = gpus_copy_of(p, m, bytes, pinned);
	part.copy_ns = copy.copy_ns;
	part.copy_bytes = copy.copy_bytes;
	return part;
}

/* The backward time of a row contains its optimiser; a part of a step does
 * not. */
static void a_part_tells_the_optimiser_apart(void **state)
{
	struct gpu_row rows[] = {
		{ .batch = 1, .backward_ms = 20, .optimizer_ms = 6 },
		{ .batch = 3, .backward_ms = 30, .optimizer_ms = 8 },
	};
	struct gpu_model m = { .rows = { rows, 2 } };
	struct gpu_profile p = { .sample_bytes = 1 };
	struct gpus_part part = part_of(&p, &m, 2, 2, true);

	(void)state;
	assert_int_equal(part.backward_ns, 18 * NS_PER_MS);
	assert_int_equal(part.optimizer_ns, 7 * NS_PER_MS);
	rows[1].optimizer_ms = 0; /* not for all rows: unknown */
	part = part_of(&p, &m, 2, 2, true);
	assert_int_equal(part.backward_ns, 25 * NS_PER_MS);
	assert_int_equal(part.optimizer_ns, 0);
}

/* Each GPU's time between two steps is always accounted for. */
static void all_of_a_step_is_accounted_for(void **state)
{
	for (int mode = 0; mode < 4; mode++) {
		struct gpus_config c = {
			.n = 5,
			.parallel = mode & 1 ? GPUS_DP : GPUS_DDP,
			.transfer = mode & 2 ? GPU_TRANSFER_BLOCKING
					     : GPU_TRANSFER_OVERLAP,
			.root_bytes_per_s = 2e9,
			.host_ns = 4000000,
			.reduce = { .ranks = 5,
				    .bytes_per_s = 1e9,
				    .latency_ns = 3,
				    .bytes = 4 * MIB },
		};
		struct rng rng = rng_stream(1, "gpus", (uint64_t)mode);
		struct gpus g;

		gpus_init(&g, &c, 0);
		for (int n = 0; n < 500; n++) {
			uint32_t used = 1 + (uint32_t)rng_below(&rng, 5);
			uint64_t idle = g.gpu[0].compute_end, end;
			struct gpus_part p[5] = { { 0 } };
			struct gpu_step s[5];

			for (uint32_t i = 0; i < used; i++) {
				p[i].copy_ns = rng_below(&rng, 2000000);
				p[i].copy_bytes = rng_below(&rng, 2000000);
				p[i].part_bytes = p[i].copy_bytes;
				p[i].prep_ns = rng_below(&rng, 100000);
				p[i].forward_ns = rng_below(&rng, 3000000);
				p[i].backward_ns = rng_below(&rng, 6000000);
				p[i].optimizer_ns = rng_below(&rng, 500000);
				p[i].warmup_ns = rng_below(&rng, 2) * 70000;
			}
			for (uint32_t i = 0; i < (mode & 1 ? 1 : used); i++)
				gpus_copy(&g, i, idle + rng_below(&rng, 900000),
					  &p[i], &s[i]);
			end = gpus_step(&g, used, p, s);
			for (int i = 0; i < 5; i++)
				assert_int_equal(
					idle + s[i].data_wait_ns +
						s[i].transfer_stall_ns +
						s[i].host_stall_ns +
						s[i].prep_ns +
						s[i].compute_end -
						s[i].compute_start +
						s[i].barrier_wait_ns +
						s[i].allreduce_ns +
						s[i].optimizer_ns,
					end);
		}
	}
	(void)state;
}

static void jitter_has_mean_one_and_its_deviation(void **state)
{
	struct rng rng = rng_stream(7, "jitter", 0);
	double sum = 0, square = 0;
	int n = 100000;

	(void)state;
	assert_true(gpu_jitter(&rng, 0) == 1);
	for (int i = 0; i < n; i++) {
		double x = gpu_jitter(&rng, .05);

		sum += x;
		square += x * x;
	}
	assert_true(fabs(sum / n - 1) < .001);
	assert_true(fabs(sqrt(square / n - sum / n * (sum / n)) - .05) < .001);
}

/*
 * AlexNet under DataParallel on two P100s. The profiles are fitted to the
 * steps of 128 and 1024 samples (and one GPU's of 64); those of 256 and 512
 * are predictions.
 */
static void published_dataparallel_steps_are_met(void **state)
{
	static const struct {
		uint32_t batch;
		double s;
	} published[] = {
		{ 128, .1377 }, { 256, .2606 }, { 512, .505 }, { 1024, .996 }
	};
	const struct gpu_model *m;
	struct node_profile node;
	struct gpu_profile gpu;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(node_profile_load("2xp100", &node, &err), 0);
	assert_int_equal(gpu_profile_load(node.gpu, &gpu, &err), 0);
	m = gpu_profile_model(&gpu, "alexnet", &err);
	for (size_t i = 0; i < ARRAY_SIZE(published); i++) {
		struct gpus_config c = { .n = 2,
					 .parallel = GPUS_DP,
					 .reduce = { .ranks = 2 } };
		uint32_t half = published[i].batch / 2;
		struct gpus_part part[2];
		struct gpu_cost cost;
		struct gpu_step s[2];
		struct gpus g;
		double step;

		c.reduce.bytes = m->parameters * 4;
		node_peer_link(&node, 12.4e9, 1, &c.reduce.bytes_per_s,
			       &c.reduce.latency_ns, &err);
		gpu_profile_cost(&gpu, m, half, &cost);
		part[0] = (struct gpus_part){
			.part_bytes = half * gpu.sample_bytes,
			.forward_ns = cost.forward_ns,
			.backward_ns = cost.backward_ns,
		};
		part[1] = part[0];
		gpus_init(&g, &c, 0);
		gpus_copy(&g, 0, 0, &part[0], &s[0]);
		step = (double)gpus_step(&g, 2, part, s) / 1e9;
		print_message("batch %4u: %.4f s published, %.4f s (%+.2f "
			      "%%)\n",
			      published[i].batch, published[i].s, step,
			      100 * (step / published[i].s - 1));
		assert_true(fabs(step / published[i].s - 1) < .03);
	}
	gpu_profile_free(&gpu);
	node_profile_free(&node);
}

static void gradients_take_the_best_link(void **state)
{
	static const char yaml[] =
		"name: t\nsource: s\nverified: true\ngpus: 2\ncores: 4\n"
		"memory: 1G\npcie: {latency: 7us, source: s}\n";
	struct node_profile p;
	struct err err = { 0 };
	uint64_t latency;
	double rate;

	(void)state;
	assert_int_equal(
		node_profile_parse(yaml, strlen(yaml), "t.yaml", &p, &err), 0);
	assert_int_equal(node_peer_link(&p, 12e9, 1, &rate, &latency, &err), 0);
	assert_true(rate == 12e9 && latency == 7000);
	assert_int_equal(node_peer_link(&p, 12e9, 2, &rate, &latency, &err),
			 -ENODEV);
	p.pcie.gpu_gb_per_s = 6;
	assert_int_equal(node_peer_link(&p, 12e9, 1, &rate, &latency, &err), 0);
	assert_true(rate == 6e9);
	p.nvlink = (struct node_link){ .gb_per_s = 150, .latency_ns = 1 };
	p.nic = (struct node_link){ .gb_per_s = 5, .latency_ns = 9 };
	node_peer_link(&p, 12e9, 1, &rate, &latency, &err);
	assert_true(rate == 150e9 && latency == 1);
	node_peer_link(&p, 12e9, 2, &rate, &latency, &err);
	assert_true(rate == 5e9 && latency == 9);
	node_profile_free(&p);
}

static void a_part_costs_what_its_bytes_do(void **state)
{
	struct gpu_row row = {
		.batch = 1, .forward_ms = 1, .backward_ms = 2, .transfer_ms = 3
	};
	struct gpu_model own = { .sample_bytes = 2000,
				 .rows = { .items = &row, .n = 1 } };
	struct gpu_model plain = { .rows = own.rows };
	struct gpu_profile p = { .sample_bytes = 1000,
				 .pinned = { .per_sample_ms = 1 } };
	struct gpus_part part = part_of(&p, &plain, 4, 4000, true);

	(void)state;
	assert_int_equal(part.copy_bytes, 4000);
	assert_int_equal(part.copy_ns, 4 * NS_PER_MS);
	assert_int_equal(part.backward_ns, 8 * NS_PER_MS);
	/* the same samples in bytes instead of floats */
	part = part_of(&p, &plain, 4, 1000, true);
	assert_int_equal(part.copy_bytes, 1000);
	assert_int_equal(part.part_bytes, 1000);
	assert_int_equal(part.copy_ns, NS_PER_MS);
	assert_int_equal(part.backward_ns, 8 * NS_PER_MS);
	part = part_of(&p, &own, 4, 8000, true);
	assert_int_equal(part.copy_ns, 8 * NS_PER_MS);
	/* its row is for 2,000 bytes */
	part = part_of(&p, &own, 4, 8000, false);
	assert_int_equal(part.copy_ns, 12 * NS_PER_MS);
	part = part_of(&p, &own, 4, 2000, false);
	assert_int_equal(part.copy_ns, 3 * NS_PER_MS);
	assert_int_equal(part_of(&p, &own, 0, 0, true).copy_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_serves_one_after_the_other),
		cmocka_unit_test(a_link_conserves_work),
		cmocka_unit_test(reductions_follow_their_laws),
		cmocka_unit_test(buckets_hide_behind_the_backward_pass),
		cmocka_unit_test(shards_are_gathered_and_reduced),
		cmocka_unit_test(accumulated_gradients_are_reduced_once),
		cmocka_unit_test(batches_are_cut_as_torch_cuts_them),
		cmocka_unit_test(copies_share_their_root),
		cmocka_unit_test(a_straggler_keeps_all_waiting),
		cmocka_unit_test(the_optimiser_follows_the_last_bucket),
		cmocka_unit_test(a_part_tells_the_optimiser_apart),
		cmocka_unit_test(all_of_a_step_is_accounted_for),
		cmocka_unit_test(jitter_has_mean_one_and_its_deviation),
		cmocka_unit_test(published_dataparallel_steps_are_met),
		cmocka_unit_test(gradients_take_the_best_link),
		cmocka_unit_test(a_part_costs_what_its_bytes_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
