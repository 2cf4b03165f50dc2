/* SPDX-License-Identifier: MIT */
/*
 * The layer that fetches ahead, without a mount: what a loader announces is
 * there before it is read, within the buffer; what it announces wrongly does no
 * harm (tests/contract/test_layers.c has the contract of all layers).
 */
#include "tests/contract/peer_rig.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/source/future.h"

enum { EPOCHS = 5 };

/* --- announcing ----------------------------------------------------------- */

/* Of each rank in turn: indexes of files. */
struct list {
	uint32_t rank, world, epochs, first, rest;
	int file[EPOCHS * N_FILES];
};

static int announce(const struct fixture *f, struct server *s,
		    const struct list *n)
{
	uint32_t v[2 + FUTURE_FIELDS + EPOCHS * N_FILES];
	uint32_t all = n->world * (n->first + (n->epochs - 1) * n->rest);
	struct err err = { 0 };

	memcpy(v, FUTURE_MAGIC, 8);
	v[2 + FUTURE_VERSION] = htole32(FUTURE_IS_VERSION);
	v[2 + FUTURE_RANK] = htole32(n->rank);
	v[2 + FUTURE_WORLD] = htole32(n->world);
	v[2 + FUTURE_EPOCHS] = htole32(n->epochs);
	v[2 + FUTURE_FIRST] = htole32(n->first);
	v[2 + FUTURE_REST] = htole32(n->rest);
	v[2 + FUTURE_FLAGS] = 0;
	for (uint32_t i = 0; i < all; i++)
		v[2 + FUTURE_FIELDS + i] = htole32(f->node[n->file[i]] + 1);
	return server_future(s, n, 0, v,
			     (2 + FUTURE_FIELDS + all) * sizeof(v[0]), &err);
}

/* Shuffled epochs. */
static struct list shuffled(uint32_t rank, uint32_t world)
{
	struct list n = { .rank = rank,
			  .world = world,
			  .epochs = EPOCHS,
			  .first = N_FILES / world,
			  .rest = N_FILES / world };

	for (uint32_t e = 0; e < EPOCHS; e++) {
		struct rng rng = rng_stream(5, "epoch", e);
		uint32_t at[N_FILES];

		for (uint32_t i = 0; i < N_FILES; i++)
			at[i] = i;
		rng_shuffle_u32(&rng, at, N_FILES);
		for (uint32_t i = 0; i < N_FILES; i++)
			n.file[e * N_FILES + i] = (int)at[i];
	}
	return n;
}

/* --- looking -------------------------------------------------------------- */

static json_int_t stat_of(struct server *s, const char *name)
{
	json_auto_t *j = server_stats(s);

	return json_integer_value(
		json_object_get(json_object_get(j, "prefetch"), name));
}

static void wait_until(struct server *s, const char *name, json_int_t value)
{
	for (int i = 0; stat_of(s, name) != value; i++) {
		if (i == 80000)
			fail_msg("%s stays %lld", name,
				 (long long)stat_of(s, name));
		tick_pause(NS_PER_MS / 4);
	}
}

/* All bytes of the first files of the list that fit into the buffer. */
static uint64_t bytes_that_fit(const struct fixture *f, const struct list *n,
			       uint64_t limit, int *ret_n)
{
	uint64_t sum = 0;

	for (*ret_n = 0; *ret_n < N_FILES; ++*ret_n) {
		uint64_t bytes = f->bytes[n->file[*ret_n]];

		if (sum + bytes > limit)
			break;
		sum += bytes;
	}
	return sum;
}

static struct server *start(struct fixture *f, const char *policy,
			    const char *storage, uint64_t prefetch)
{
	f->prefetch = prefetch;
	return rig_start(f, policy, storage);
}

/* --- tests ---------------------------------------------------------------- */

static void what_is_announced_is_read_before_its_read(void **state)
{
	struct fixture *f = *state;
	const uint64_t limit = 5 * (f->tree.file_bytes / N_FILES);
	struct list n = shuffled(0, 1);
	struct server *s = start(f, "none", "nvme", limit);
	int fit;
	uint64_t bytes = bytes_that_fit(f, &n, limit, &fit);

	assert_in_range(fit, 2, N_FILES - 1);
	assert_int_equal(announce(f, s, &n), 0);
	wait_until(s, "from_storage", fit);
	assert_int_equal(rig_stat(s, "backend_reads"), fit);
	assert_int_equal(stat_of(s, "staged_bytes"), bytes);
	/* no read of these goes to the storage */
	for (int i = 0; i < fit; i++)
		assert_int_equal(rig_read(f, s, n.file[i]), 0);
	assert_int_equal(stat_of(s, "used"), fit);
	assert_int_equal(stat_of(s, "late"), 0);
	assert_int_equal(stat_of(s, "missed"), 0);
	server_free(s);
}

static int any_storage(const void *storage, struct err *err)
{
	(void)storage;
	(void)err;
	return 0;
}

/* What the layer stages while its reader stands still. */
struct staging {
	int next, n; /* the next access to stage; staged so far */
	uint64_t bytes;
	bool has[N_FILES];
};

/* Wait until the buffer is full, or the next file is in it already. How far
 * ahead a fetch is decides what a cache or a group reads: on a busy machine it
 * may even come after the read. */
static void wait_for_staging(const struct fixture *f, struct server *s,
			     const struct list *n, uint64_t limit,
			     struct staging *all)
{
	for (; all->next < EPOCHS * N_FILES; all->next++, all->n++) {
		int file = n->file[all->next];

		if (all->has[file] || all->bytes + f->bytes[file] > limit)
			break;
		all->has[file] = true;
		all->bytes += f->bytes[file];
	}
	wait_until(s, "prefetched", all->n);
	wait_until(s, "in_flight", 0);
}

static void read_announced(struct fixture *f, struct server *s,
			   const struct list *n, uint64_t limit)
{
	struct staging all = { 0 };

	assert_int_equal(announce(f, s, n), 0);
	for (int i = 0; i < EPOCHS * N_FILES; i++) {
		wait_for_staging(f, s, n, limit, &all);
		assert_int_equal(rig_read(f, s, n->file[i]), 0);
		all.has[n->file[i]] = false;
		all.bytes -= f->bytes[n->file[i]];
	}
}

/* Each access costs the storage the same as without prefetching. `rig`: a copy,
 * as what is set in it must not reach the tests after a failed one. */
static void check_all(struct fixture rig, const char *policy, double fraction)
{
	struct fixture *f = &rig;
	const uint64_t limit = 4 * (f->tree.file_bytes / N_FILES);
	struct list n = shuffled(0, 1);
	struct server *s[2];

	f->fraction = fraction;
	s[0] = start(f, policy, "nvme", 0);
	s[1] = start(f, policy, "nvme", limit);
	assert_int_equal(announce(f, s[0], &n), -EOPNOTSUPP);
	for (int i = 0; i < EPOCHS * N_FILES; i++)
		assert_int_equal(rig_read(f, s[0], n.file[i]), 0);
	read_announced(f, s[1], &n, limit);
	assert_int_equal(stat_of(s[1], "announced"), 0);
	assert_int_equal(stat_of(s[1], "used"), EPOCHS * N_FILES);
	assert_int_equal(stat_of(s[1], "late"), 0);
	assert_int_equal(stat_of(s[1], "missed"), 0);
	assert_int_equal(stat_of(s[1], "wasted"), 0);
	assert_in_range(stat_of(s[1], "most_bytes"), 1, limit);
	assert_int_equal(stat_of(s[1], "from_cache") +
				 stat_of(s[1], "from_storage"),
			 stat_of(s[1], "used"));
	assert_int_equal(rig_stat(s[0], "backend_reads"),
			 rig_stat(s[1], "backend_reads"));
	assert_int_equal(rig_stat(s[0], "hits"), rig_stat(s[1], "hits"));
	assert_int_equal(rig_stat(s[0], "misses"), rig_stat(s[1], "misses"));
	for (int k = 0; k < 2; k++)
		server_free(s[k]);
}

static void hits_and_misses_are_those_without_it(void **state)
{
	const struct fixture *f = *state;

	check_all(*f, "none", 0);
	check_all(*f, "minio", .5);
	check_all(*f, "lru", .5);
	check_all(*f, "lru", 1);
}

/* A hit of the second tier takes time, and is fetched ahead, too. */
static void it_stands_above_tiers_and_groups(void **state)
{
	struct fixture f = *(struct fixture *)*state;
	struct tiers t = { 0 };
	struct group_map *map;
	struct err err = { 0 };

	assert_int_equal(tiers_parse("dram:minio:30% nvme:lru:50%", false,
				     any_storage, &t, &err),
			 0);
	f.tiers = &t;
	check_all(f, NULL, 0);
	f.tiers = NULL;
	tiers_fini(&t);
	assert_int_equal(group_map_new(&f.tree, 4, "sequential", 1, &map, &err),
			 0);
	f.groups = map;
	check_all(f, "lru", .5);
	group_map_free(map);
}

static void *read_some(void *at)
{
	struct {
		struct fixture *f;
		struct server *s;
		const struct list *n;
		int k;
	} *r = at;

	for (int i = r->k; i < EPOCHS * N_FILES; i += 4)
		assert_int_equal(rig_read(r->f, r->s, r->n->file[i]), 0);
	return NULL;
}

/* Four readers, of which each is as far as it gets. */
static void reads_out_of_order_get_their_bytes(void **state)
{
	struct fixture *f = *state;
	const uint64_t limit = 3 * (f->tree.file_bytes / N_FILES);
	struct list n = shuffled(0, 1);
	struct server *s = start(f, "lru", "nvme", limit);
	struct {
		struct fixture *f;
		struct server *s;
		const struct list *n;
		int k;
	} r[4];
	pthread_t t[4];

	assert_int_equal(announce(f, s, &n), 0);
	for (int k = 0; k < 4; k++) {
		r[k].f = f;
		r[k].s = s;
		r[k].n = &n;
		r[k].k = k;
		assert_int_equal(pthread_create(&t[k], NULL, read_some, &r[k]),
				 0);
	}
	for (int k = 0; k < 4; k++)
		pthread_join(t[k], NULL);
	/* what comes when all is over is of the time after, and not counted */
	assert_in_range(stat_of(s, "used") + stat_of(s, "missed"),
			(EPOCHS - 1) * N_FILES, EPOCHS * N_FILES);
	assert_in_range(stat_of(s, "most_bytes"), 1, limit);
	server_free(s);
}

/* Files 0 to 9 are announced, the others are read. */
static void a_wrong_future_costs_a_few_buffers(void **state)
{
	struct fixture *f = *state;
	const uint64_t limit = 3 * (f->tree.file_bytes / N_FILES);
	struct list n = { .world = 1,
			  .epochs = 2,
			  .first = N_FILES / 2,
			  .rest = N_FILES / 2 };
	struct server *s = start(f, "minio", "ideal", limit);
	int reads = 0, fit;

	for (int i = 0; i < N_FILES; i++)
		n.file[i] = i % (N_FILES / 2);
	assert_int_equal(announce(f, s, &n), 0);
	bytes_that_fit(f, &n, limit, &fit);
	wait_until(s, "from_storage", fit);
	for (; !stat_of(s, "abandoned"); reads += 100) {
		assert_in_range(reads, 0, 10000);
		for (int i = 0; i < 100; i++)
			assert_int_equal(rig_read(f, s, N_FILES - 1 - i % 10),
					 0);
	}
	assert_in_range(stat_of(s, "prefetched"), fit, N_FILES);
	assert_int_equal(stat_of(s, "wasted"), stat_of(s, "prefetched"));
	assert_int_equal(stat_of(s, "staged_bytes"), 0);
	assert_in_range(rig_stat(s, "backend_reads"), N_FILES / 2, N_FILES);
	/* and a right one is welcome again */
	assert_int_equal(server_reset(s, NULL), 0);
	n = shuffled(0, 1);
	assert_int_equal(announce(f, s, &n), 0);
	for (int i = 0; i < N_FILES; i++)
		assert_int_equal(rig_read(f, s, n.file[i]), 0);
	assert_int_equal(stat_of(s, "used") + stat_of(s, "missed"), N_FILES);
	server_free(s);
}

static json_int_t n_staged(struct server *s)
{
	return stat_of(s, "prefetched") - stat_of(s, "used") -
	       stat_of(s, "wasted");
}

/* A loader skips a file in each epoch; another one starts in the middle. */
static void a_future_that_is_nearly_right_keeps_working(void **state)
{
	struct fixture *f = *state;
	const uint64_t limit = 8 * (f->tree.file_bytes / N_FILES);
	struct list n = shuffled(0, 1);
	struct server *s = start(f, "none", "ideal", limit);

	assert_int_equal(announce(f, s, &n), 0);
	for (int i = 0; i < EPOCHS * N_FILES; i++) {
		if (i % N_FILES == 7)
			continue;
		/* more than the one that is left; none comes while that one is
		 * the next to be fetched */
		for (int k = 0; k < 800 && n_staged(s) < 2; k++)
			tick_pause(NS_PER_MS / 4);
		wait_until(s, "in_flight", 0);
		assert_int_equal(rig_read(f, s, n.file[i]), 0);
	}
	/* the one that is left takes room in the buffer */
	assert_true(stat_of(s, "used") > EPOCHS * (N_FILES - 1) / 2);
	assert_in_range(stat_of(s, "wasted"), 0, 2 * EPOCHS);
	assert_int_equal(announce(f, s, &n), 0);
	for (int i = N_FILES / 2; i < N_FILES; i++)
		assert_int_equal(rig_read(f, s, n.file[i]), 0);
	server_free(s);
}

static void it_ends_with_fetches_in_flight(void **state)
{
	struct fixture *f = *state;
	char path[] = "/tmp/gpemu-prefetch-XXXXXX.yaml";
	int fd = mkstemps(path, 5);
	struct list n = shuffled(0, 1);
	struct wait w[2];
	struct server *s;

	assert_true(fd >= 0);
	dprintf(fd, "name: slow\nsource: a test\nopen:\n  source: a test\n"
		    "  latency: {kind: const, value: 100ms}\n"
		    "read:\n  source: a test\n"
		    "  latency: {kind: const, value: 60s}\n");
	close(fd);
	for (int opened = 0; opened < 2; opened++) {
		s = start(f, "minio", path, 8 * MAX_BYTES);
		assert_int_equal(announce(f, s, &n), 0);
		wait_until(s, "in_flight", 4);
		if (opened)
			tick_pause(150 * NS_PER_MS);
		/* one that is in flight, one that is not announced so soon */
		rig_start_read(f, s, &w[0], n.file[0]);
		rig_start_read(f, s, &w[1], n.file[N_FILES - 1]);
		server_stop(s);
		for (int i = 0; i < 2; i++)
			assert_int_equal(
				rig_end_read(f, s, &w[i],
					     n.file[i ? N_FILES - 1 : 0]),
				-ECONNABORTED);
		assert_int_equal(stat_of(s, "in_flight"), 0);
		assert_int_equal(announce(f, s, &n), -ECONNABORTED);
		server_free(s);
	}
	unlink(path);
}

static struct source_ops failing;
static const struct source_ops *whole;
static bool fails; /* atomic */

static int maybe_fail(void *state, const struct tree *tree, uint32_t node,
		      void *buf, size_t n, uint64_t offset, bool nowait)
{
	if (__atomic_load_n(&fails, __ATOMIC_RELAXED))
		return -EIO;
	return whole->read(state, tree, node, buf, n, offset, nowait);
}

/* A prefetch that failed is tried again by the read. */
static void a_failure_is_that_of_the_read(void **state)
{
	struct fixture *f = *state;
	struct list n = shuffled(0, 1);
	struct server *s;

	whole = f->source;
	failing = *f->source;
	failing.read = maybe_fail;
	f->source = &failing;
	__atomic_store_n(&fails, true, __ATOMIC_RELAXED);
	s = start(f, "lru", "ideal", 64 * MIB);
	assert_int_equal(announce(f, s, &n), 0);
	while (!stat_of(s, "wasted"))
		sched_yield();
	assert_int_equal(rig_read(f, s, n.file[0]), -EIO);
	/* it does not go on and on */
	wait_until(s, "in_flight", 0);
	assert_in_range(stat_of(s, "prefetched"), 1, N_FILES);
	__atomic_store_n(&fails, false, __ATOMIC_RELAXED);
	for (int i = 0; i < N_FILES; i++)
		assert_int_equal(rig_read(f, s, n.file[i]), 0);
	server_free(s);
	f->source = whole;
}

static void commands_while_it_works(void **state)
{
	struct fixture *f = *state;
	struct list n = shuffled(0, 1);
	struct server *s =
		start(f, "minio", "nvme", f->tree.file_bytes / N_FILES * 4);

	for (int i = 0; i < EPOCHS * N_FILES; i++) {
		if (i % 17 == 0)
			assert_int_equal(announce(f, s, &n), 0);
		if (i % 11 == 0)
			assert_int_equal(server_drop_cache(s, NULL), 0);
		if (i % 13 == 0)
			assert_int_equal(server_reset(s, NULL), 0);
		assert_int_equal(rig_read(f, s, n.file[i % N_FILES]), 0);
	}
	server_free(s);
}

/* Both have half of the files: the caches fill with what each needs most, and
 * give the rest to each other. */
static void two_nodes_place_by_the_future(void **state)
{
	struct fixture *f = *state;
	struct peer_net nets[2];
	struct server *s[2];
	struct list n[2];
	json_int_t reads = 0, from_peer = 0;

	nets_init(nets, 2, 20 * NS_PER_S);
	f->fraction = .6;
	for (int k = 0; k < 2; k++) {
		f->peers = &nets[k];
		n[k] = shuffled((uint32_t)k, 2);
		s[k] = start(f, "minio", "ideal", 4 * MAX_BYTES);
	}
	f->peers = NULL;
	f->fraction = 0;
	for (int k = 0; k < 2; k++)
		peer_wait(s[k], "connected", 1);
	assert_int_equal(announce(f, s[0], &n[1]), -EINVAL);
	for (int k = 0; k < 2; k++)
		assert_int_equal(announce(f, s[k], &n[k]), 0);
	for (int i = 0; i < EPOCHS * N_FILES; i++)
		assert_int_equal(rig_read(f, s[i % 2], n[0].file[i]), 0);
	for (int k = 0; k < 2; k++) {
		reads += rig_stat(s[k], "backend_reads");
		from_peer += stat_of(s[k], "from_peer");
		assert_int_equal(stat_of(s[k], "used") +
					 stat_of(s[k], "missed"),
				 EPOCHS * N_FILES / 2);
		server_free(s[k]);
	}
	assert_true(from_peer > 0);
	assert_in_range(reads, N_FILES, 3 * N_FILES);
	nets_fini(nets, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_announced_is_read_before_its_read),
		cmocka_unit_test(hits_and_misses_are_those_without_it),
		cmocka_unit_test(it_stands_above_tiers_and_groups),
		cmocka_unit_test(reads_out_of_order_get_their_bytes),
		cmocka_unit_test(a_wrong_future_costs_a_few_buffers),
		cmocka_unit_test(a_future_that_is_nearly_right_keeps_working),
		cmocka_unit_test(it_ends_with_fetches_in_flight),
		cmocka_unit_test(a_failure_is_that_of_the_read),
		cmocka_unit_test(commands_while_it_works),
		cmocka_unit_test(two_nodes_place_by_the_future),
	};
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
