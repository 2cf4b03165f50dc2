/* SPDX-License-Identifier: MIT */
/*
 * Servers that share a partitioned cache over loopback. All that is read is
 * compared with the dataset.
 */
#include "tests/contract/peer_rig.h"

#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

enum { MOST_NODES = 3 };
#define PATIENT (20 * NS_PER_S)

struct nodes {
	struct peer_net nets[MOST_NODES];
	struct server *s[MOST_NODES];
	uint32_t n;
};

static struct server *start_node(struct fixture *f, struct nodes *c, uint32_t i)
{
	f->peers = &c->nets[i];
	c->s[i] = rig_start(f, "minio", "ideal");
	f->peers = NULL;
	return c->s[i];
}

/* All of them, connected. */
static void start(struct fixture *f, struct nodes *c, uint32_t n,
		  double fraction)
{
	*c = (struct nodes){ .n = n };
	nets_init(c->nets, n, PATIENT);
	f->fraction = fraction;
	for (uint32_t i = 0; i < n; i++)
		start_node(f, c, i);
	for (uint32_t i = 0; i < n; i++)
		peer_wait(c->s[i], "connected", n - 1);
}

static void stop(struct fixture *f, struct nodes *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		server_free(c->s[i]);
	nets_fini(c->nets, c->n);
	f->fraction = 0;
}

static json_int_t sum(struct nodes *c, const char *name)
{
	json_int_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += rig_stat(c->s[i], name);
	return n;
}

/* Each file is read by one node, another one in each epoch. */
static void read_epoch(struct fixture *f, struct nodes *c, uint32_t epoch)
{
	for (int i = 0; i < N_FILES; i++)
		assert_int_equal(
			rig_read(f, c->s[((uint32_t)i + epoch) % c->n], i), 0);
}

static void storage_is_read_once(void **state)
{
	static const struct {
		uint32_t n;
		double fraction;
	} cases[] = { { 2, .65 }, { 3, .4 } };

	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct nodes c;

		start(*state, &c, cases[k].n, cases[k].fraction);
		for (uint32_t epoch = 0; epoch < 4; epoch++) {
			read_epoch(*state, &c, epoch);
			assert_int_equal(sum(&c, "backend_reads"), N_FILES);
		}
		for (uint32_t i = 0; i < c.n; i++) {
			assert_true(peer_stat(c.s[i], "hits") > 0);
			assert_true(peer_stat(c.s[i], "served") > 0);
			assert_int_equal(peer_stat(c.s[i], "lost"), 0);
			assert_int_equal(peer_stat(c.s[i], "refused"), 0);
			assert_int_equal(peer_stat(c.s[i], "notfound"), 0);
			assert_true(rig_stat(c.s[i], "used_bytes") <=
				    rig_stat(c.s[i], "capacity_bytes"));
		}
		stop(*state, &c);
	}
}

/* What no node keeps is read each time, by the one that needs it. */
static void what_fits_nowhere_is_read_again(void **state)
{
	json_int_t before, in_epoch[3];
	struct nodes c;

	start(*state, &c, 2, .3);
	read_epoch(*state, &c, 0);
	for (uint32_t epoch = 1; epoch < 4; epoch++) {
		before = sum(&c, "backend_reads");
		read_epoch(*state, &c, epoch);
		in_epoch[epoch - 1] = sum(&c, "backend_reads") - before;
	}
	assert_in_range(in_epoch[0], 1, N_FILES - 1);
	assert_int_equal(in_epoch[1], in_epoch[0]);
	assert_int_equal(in_epoch[2], in_epoch[0]);
	stop(*state, &c);
}

static void readers_of_one_object_share_a_question(void **state)
{
	struct wait w[N_FILES][4];
	struct nodes c;

	start(*state, &c, 2, .65);
	for (int i = 0; i < N_FILES; i++)
		for (int k = 0; k < 4; k++)
			rig_start_read(*state, c.s[k % 2], &w[i][k], i);
	for (int i = 0; i < N_FILES; i++)
		for (int k = 0; k < 4; k++)
			assert_int_equal(rig_end_read(*state, c.s[k % 2],
						      &w[i][k], i),
					 0);
	assert_int_equal(sum(&c, "backend_reads"), N_FILES);
	stop(*state, &c);
}

static void opened(struct fetch *f, bool stopping)
{
	wait_answer(container_of(f, struct wait, fetch), stopping);
}

/* Does the open of the i-th file take time? */
static bool open_costs(struct fixture *f, struct server *s, int i)
{
	struct wait w;

	wait_init(&w, NULL);
	w.fetch = (struct fetch){ .op = STORAGE_OPEN,
				  .node = f->node[i],
				  .arrival = tick_now(f->tick),
				  .done = opened };
	server_metadata(s, &w.fetch);
	wait_for(&w);
	return w.fetch.deadline > w.fetch.arrival;
}

static void an_open_of_what_another_node_owns_is_free(void **state)
{
	struct fixture *f = *state;
	struct nodes c = { .n = 2 };
	int n[2] = { 0 };

	nets_init(c.nets, 2, PATIENT);
	f->fraction = .5;
	f->peers = &c.nets[0];
	c.s[0] = rig_start(f, "minio", "nfs");
	f->peers = NULL;
	for (int i = 0; i < N_FILES; i++)
		n[0] += open_costs(f, c.s[0], i);
	start_node(f, &c, 1);
	peer_wait(c.s[0], "connected", 1);
	for (int i = 0; i < N_FILES; i++)
		n[1] += open_costs(f, c.s[0], i);
	assert_int_equal(n[0], N_FILES);
	assert_in_range(n[1], N_FILES / 3, N_FILES * 2 / 3);
	stop(f, &c);
}

static void a_dead_node_costs_reads_and_is_found_again(void **state)
{
	struct nodes c;
	json_int_t before;

	start(*state, &c, 2, .65);
	read_epoch(*state, &c, 0);
	server_free(c.s[1]);
	peer_wait(c.s[0], "lost", 1);
	before = rig_stat(c.s[0], "backend_reads");
	for (int i = 0; i < N_FILES; i++)
		assert_int_equal(rig_read(*state, c.s[0], i), 0);
	assert_true(rig_stat(c.s[0], "backend_reads") > before);
	assert_true(peer_stat(c.s[0], "skipped") > 0);
	assert_int_equal(peer_stat(c.s[0], "connected"), 0);
	start_node(*state, &c, 1);
	peer_wait(c.s[0], "connected", 1);
	peer_wait(c.s[1], "connected", 1);
	/* it has its objects again after one epoch */
	read_epoch(*state, &c, 0);
	read_epoch(*state, &c, 1);
	before = sum(&c, "backend_reads");
	read_epoch(*state, &c, 2);
	assert_int_equal(sum(&c, "backend_reads"), before);
	stop(*state, &c);
}

static void the_end_answers_what_is_pending(void **state)
{
	struct fixture *f = *state;
	struct wait w[N_FILES];
	struct nodes c;
	int r;

	start(f, &c, 2, .65);
	for (int i = 0; i < N_FILES; i++)
		rig_start_read(f, c.s[0], &w[i], i);
	server_stop(c.s[0]);
	for (int i = 0; i < N_FILES; i++) {
		assert_true(wait_is_done(&w[i]));
		r = rig_end_read(f, c.s[0], &w[i], i);
		assert_true(r == 0 || r == -ECONNABORTED);
	}
	stop(f, &c);
}

static void the_cache_cannot_change(void **state)
{
	const struct units_capacity size = { .fraction = .2 };
	struct err err = { 0 };
	struct nodes c;

	start(*state, &c, 2, .65);
	assert_int_equal(server_set_cache(c.s[0], NULL, &size, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--peers"));
	assert_int_equal(server_drop_cache(c.s[0], NULL), 0);
	read_epoch(*state, &c, 0);
	assert_int_equal(server_reset(c.s[0], NULL), 0);
	assert_int_equal(peer_stat(c.s[0], "hits"), 0);
	stop(*state, &c);
}

/* Bytes that really pass take the time of the card, and its latency. */
static void the_card_takes_its_time(void **state)
{
	struct fixture *f = *state;
	struct nodes c = { .n = 2 };
	uint64_t begin, took, bytes, n;

	nets_init(c.nets, 2, PATIENT);
	for (int i = 0; i < 2; i++)
		nic_limit(c.nets[i].nic, 4e6, 3 * NS_PER_MS);
	f->fraction = .65;
	start_node(f, &c, 0);
	start_node(f, &c, 1);
	peer_wait(c.s[0], "connected", 1);
	begin = tick_now(f->tick);
	for (int i = 0; i < N_FILES; i++)
		assert_int_equal(rig_read(f, c.s[0], i), 0);
	took = tick_now(f->tick) - begin;
	bytes = (uint64_t)peer_stat(c.s[0], "hit_bytes");
	n = (uint64_t)peer_stat(c.s[0], "hits");
	assert_true(n > 0);
	/* one after the other: out of one card, into the other, and the
	 * latency both ways */
	assert_true(took >= bytes * 250 + n * 6 * NS_PER_MS);
	assert_true((uint64_t)peer_stat(c.s[0], "received_bytes") > bytes);
	stop(f, &c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storage_is_read_once),
		cmocka_unit_test(what_fits_nowhere_is_read_again),
		cmocka_unit_test(readers_of_one_object_share_a_question),
		cmocka_unit_test(an_open_of_what_another_node_owns_is_free),
		cmocka_unit_test(a_dead_node_costs_reads_and_is_found_again),
		cmocka_unit_test(the_end_answers_what_is_pending),
		cmocka_unit_test(the_cache_cannot_change),
		cmocka_unit_test(the_card_takes_its_time),
	};
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
