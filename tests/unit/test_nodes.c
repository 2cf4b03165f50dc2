/* SPDX-License-Identifier: MIT */
/* Steps of several nodes, without MPI: the test says what the others give. */
#include <errno.h>
#include <string.h>

#include "tests/unit/test.h"
#include "common/units.h"
#include "loader/nodes/sync.h"

enum { NODES = 4 };

static struct comm_cell cells[NODES];
static unsigned n_exchanges;

static int given(struct comm *c, struct err *err)
{
	(void)err;
	n_exchanges++;
	cells[c->rank] = c->mine;
	return 0;
}

static const struct comm_ops ops = { .finish = given };

static struct comm of(uint32_t rank, uint32_t size)
{
	memset(cells, 0, sizeof(cells));
	n_exchanges = 0;
	return (struct comm){
		.ops = &ops, .rank = rank, .size = size, .all = cells
	};
}

static void give(uint32_t rank, const struct sync_record *r)
{
	memcpy(cells[rank].record, r, sizeof(*r));
}

/* A link of 1 GB/s and 1 us, 8 MB of gradients, in one bucket at most. */
static struct collective ring(uint32_t ranks)
{
	return (struct collective){ .algorithm = COLLECTIVE_RING,
				    .ranks = ranks,
				    .bytes_per_s = 1e9,
				    .latency_ns = 1000,
				    .bytes = 1000000 };
}

static void the_last_node_and_the_ring_end_a_step(void **state)
{
	const struct stalls none = { 0 };

	(void)state;
	for (uint32_t p = 2; p <= NODES; p++) {
		struct collective c = ring(p);
		/* 2 (p - 1) / p * bytes / rate + 2 (p - 1) * latency */
		uint64_t law = 2 * (p - 1) * 1000000 / p + 2 * (p - 1) * 1000;
		struct gpus_reach mine = { .pass = { 60 * NS_PER_MS,
						     80 * NS_PER_MS },
					   .optimizer_ns = NS_PER_MS },
				  all;
		struct comm comm = of(0, p);
		struct sync s;
		uint64_t reduced;

		assert_int_equal(sync_init(&s, &comm, &c), 0);
		sync_begin(&s, 50 * NS_PER_MS);
		for (uint32_t i = 1; i < p; i++)
			give(i, &(struct sync_record){
					.start_ns = i * NS_PER_MS,
					.end_ns = (30 + i) * NS_PER_MS,
					.optimizer_ns = i * NS_PER_MS });
		sync_start(&s, 50 * NS_PER_MS, &mine, &none, 0);
		assert_int_equal(sync_finish(&s, &all, &reduced, NULL), 0);
		/* on this node's clock; the last ended 30 + p - 1 ms after the
		 * begin */
		assert_int_equal(all.pass.end, (80 + p - 1) * NS_PER_MS);
		assert_int_equal(reduced, all.pass.end + law);
		assert_int_equal(all.optimizer_ns, (p - 1) * NS_PER_MS);
		assert_ptr_equal(sync_other(&s), &s.node[p - 1].data);
		/* the next step counts from the end of this one */
		assert_int_equal(s.base_ns, reduced + (p - 1) * NS_PER_MS);
		assert_int_equal(n_exchanges, 1);
		sync_fini(&s);
	}
}

/* The second exchange of a step: how much a card delays its node. */
static int delayed(struct comm *c, struct err *err)
{
	(void)err;
	if (n_exchanges++ % 2 == 0) {
		cells[c->rank] = c->mine;
		return 0;
	}
	for (uint64_t i = 0; i < c->size; i++) {
		uint64_t ns = i * 7 * NS_PER_MS;

		memcpy(cells[i].record, &ns, sizeof(ns));
	}
	return 0;
}

static void the_slowest_card_ends_a_step(void **state)
{
	const struct comm_ops late = { .finish = delayed };
	struct gpus_reach mine = { .pass = { 0, 10 * NS_PER_MS } }, all;
	const struct stalls none = { 0 };
	struct collective c = ring(3);
	uint64_t law = 4 * 1000000 / 3 + 4 * 1000, reduced;
	struct comm comm = of(0, 3);
	struct sync s;

	(void)state;
	comm.ops = &late;
	assert_int_equal(sync_init(&s, &comm, &c), 0);
	s.cards = true;
	sync_begin(&s, 0);
	for (uint64_t step = 1; step <= 2; step++) {
		uint64_t end = (10 * NS_PER_MS + law + 14 * NS_PER_MS) * step;

		for (uint32_t i = 1; i < 3; i++)
			give(i,
			     &(struct sync_record){ .end_ns = 10 * NS_PER_MS });
		mine.pass.end = s.base_ns + 10 * NS_PER_MS;
		sync_start(&s, s.base_ns, &mine, &none, 0);
		assert_int_equal(sync_finish(&s, &all, &reduced, NULL), 0);
		assert_int_equal(reduced, end);
		/* the delay is that of the all-reduce, not of the passes */
		assert_int_equal(all.pass.end, end - law - 14 * NS_PER_MS);
		assert_int_equal(s.base_ns, end);
	}
	assert_int_equal(n_exchanges, 4);
	sync_fini(&s);
}

/* Node 1 is 30 ms later than node 0: 10 ms more of reads, 4 of the copy, 6 of
 * its checkpoint. */
static void who_is_late_says_why(void **state)
{
	struct collective c = ring(2);
	struct gpus_reach mine = { .pass = { 0, 10 * NS_PER_MS } }, all;
	struct comm comm = of(0, 2);
	const struct stalls own = { .fetch_ns = 2 * NS_PER_MS };
	struct straggler *late;
	struct sync s;
	uint64_t ns;

	(void)state;
	assert_int_equal(sync_init(&s, &comm, &c), 0);
	sync_begin(&s, 0);
	give(1, &(struct sync_record){ .end_ns = 40 * NS_PER_MS,
				       .data = { .fetch_ns = 9 * NS_PER_MS,
						 .prep_ns = 3 * NS_PER_MS },
				       .transfer_ns = 5 * NS_PER_MS,
				       .held_ns = 6 * NS_PER_MS });
	sync_start(&s, 0, &mine, &own, NS_PER_MS);
	assert_int_equal(sync_finish(&s, &all, &ns, NULL), 0);
	late = &s.straggler[1];
	assert_int_equal(late->n_last, 1);
	assert_int_equal(late->data.fetch_ns, 7500 * NS_PER_US);
	assert_int_equal(late->data.prep_ns, 2500 * NS_PER_US);
	assert_int_equal(late->transfer_ns, 4 * NS_PER_MS);
	assert_int_equal(late->held_ns, 6 * NS_PER_MS);
	assert_int_equal(late->compute_ns, 10 * NS_PER_MS);
	assert_int_equal(s.straggler[0].waited_ns, 30 * NS_PER_MS);
	assert_int_equal(late->waited_ns, 0);
	assert_int_equal(s.straggler[0].n_last, 0);
	assert_int_equal(sync_slowest(&s, &ns), 1);
	assert_int_equal(ns, 30 * NS_PER_MS);
	assert_string_equal(sync_cause(&s, 1), "computation");
	sync_fini(&s);
}

static void a_step_without_waiting_has_no_straggler(void **state)
{
	struct collective c = ring(2);
	struct gpus_reach mine = { .pass = { 0, 10 * NS_PER_MS } }, all;
	const struct stalls none = { 0 };
	struct comm comm = of(0, 2);
	struct sync s;
	uint64_t ns;

	(void)state;
	assert_int_equal(sync_init(&s, &comm, &c), 0);
	sync_begin(&s, 0);
	give(1, &(struct sync_record){ .end_ns = 10 * NS_PER_MS });
	sync_start(&s, 0, &mine, &none, 0);
	assert_int_equal(sync_finish(&s, &all, &ns, NULL), 0);
	assert_int_equal(s.straggler[0].n_last + s.straggler[1].n_last, 0);
	sync_slowest(&s, &ns);
	assert_int_equal(ns, 0);
	sync_fini(&s);
}

static void one_error_ends_all_ranks(void **state)
{
	struct comm comm = of(0, 3);
	struct err err = { 0 };

	(void)state;
	cells[1].status = -ECANCELED;
	cells[2].status = -EIO;
	assert_int_equal(comm_exchange(&comm, NULL, NULL, 0, &err), -EIO);
	assert_string_equal(err.text, "rank 2 failed");
	assert_int_equal(comm.ended, -EIO);
	/* they know: nothing is left to be said */
	assert_int_equal(comm_end(&comm, -ENOMEM, NULL), -EIO);
	assert_int_equal(n_exchanges, 1);
}

static void an_error_is_said_after_what_was_begun(void **state)
{
	struct comm comm = of(1, 3);

	(void)state;
	comm_start(&comm, NULL, 0);
	assert_int_equal(comm_end(&comm, -ENOENT, NULL), -ENOENT);
	assert_int_equal(n_exchanges, 2);
	assert_int_equal(cells[1].status, -ENOENT);
	assert_int_equal(comm.ended_by, 1);
}

static void the_only_rank_hears_itself(void **state)
{
	uint64_t mine = 7, all = 0;
	struct comm c;

	(void)state;
	comm_alone(&c);
	assert_int_equal(comm_exchange(&c, &mine, &all, sizeof(all), NULL), 0);
	assert_int_equal(all, 7);
	assert_int_equal(comm_end(&c, 0, NULL), 0);
	comm_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_node_and_the_ring_end_a_step),
		cmocka_unit_test(the_slowest_card_ends_a_step),
		cmocka_unit_test(who_is_late_says_why),
		cmocka_unit_test(a_step_without_waiting_has_no_straggler),
		cmocka_unit_test(one_error_ends_all_ranks),
		cmocka_unit_test(an_error_is_said_after_what_was_begun),
		cmocka_unit_test(the_only_rank_hears_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
