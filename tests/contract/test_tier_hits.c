/* SPDX-License-Identifier: MIT */
/* A hit of a tier takes the time of the tier's storage. */
#include "tests/contract/server_rig.h"

#include "common/units.h"
#include "common/util.h"

enum { N_HITS = 20 };

static int any_storage(const void *storage, struct err *err)
{
	(void)storage;
	(void)err;
	return 0;
}

static int largest_file(const struct fixture *f)
{
	int at = 0;

	for (int i = 1; i < N_FILES; i++)
		if (f->bytes[i] > f->bytes[at])
			at = i;
	return at;
}

/* The shortest emulated time of a hit: threads may wake up late. */
static uint64_t shortest_hit_ns(struct fixture *f, const char *tier, int file)
{
	struct tiers tiers = { 0 };
	uint64_t shortest = UINT64_MAX;
	struct err err = { 0 };
	struct server *s;

	if (tiers_parse(tier, false, any_storage, &tiers, &err) < 0)
		fail_msg("%s", err.text);
	f->tiers = &tiers;
	s = rig_start(f, NULL, "ideal");
	assert_int_equal(rig_read(f, s, file), 0);
	for (int i = 0; i < N_HITS; i++) {
		uint64_t start = tick_now(f->tick);

		assert_int_equal(rig_read(f, s, file), 0);
		shortest = MIN(shortest, tick_now(f->tick) - start);
	}
	assert_int_equal(rig_stat(s, "hits"), N_HITS);
	assert_int_equal(rig_stat(s, "misses"), 1);
	server_free(s);
	f->tiers = NULL;
	tiers_fini(&tiers);
	return shortest;
}

static void a_hit_takes_the_time_of_its_tier(void **state)
{
	struct fixture *f = *state;
	int file = largest_file(f);
	/* of a disk: the bytes at 112 MB/s, without the head */
	uint64_t least = f->bytes[file] * 1000 / 112;

	uint64_t disk = shortest_hit_ns(f, "hdd:lru:100%", file);

	assert_true(disk >= least);
	/* both take the time in which the bytes are compared, too */
	assert_true(shortest_hit_ns(f, "dram:lru:100%", file) + least / 2 <
		    disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hit_takes_the_time_of_its_tier),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
