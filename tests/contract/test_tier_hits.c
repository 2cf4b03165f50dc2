/* SPDX-License-Identifier: MIT */
/* A hit of a tier takes the time of the tier's storage. */
#include "tests/contract/server_rig.h"

#include "common/units.h"

static int any_storage(const void *storage, struct err *err)
{
	(void)storage;
	(void)err;
	return 0;
}

/* The emulated time of the second read of a file, a hit. */
static uint64_t hit_ns(struct fixture *f, const char *tier)
{
	struct tiers tiers = { 0 };
	struct err err = { 0 };
	struct server *s;
	uint64_t start;

	if (tiers_parse(tier, false, any_storage, &tiers, &err) < 0)
		fail_msg("%s", err.text);
	f->tiers = &tiers;
	s = rig_start(f, NULL, "ideal");
	assert_int_equal(rig_read(f, s, 3), 0);
	start = tick_now(f->tick);
	assert_int_equal(rig_read(f, s, 3), 0);
	start = tick_now(f->tick) - start;
	assert_int_equal(rig_stat(s, "hits"), 1);
	assert_int_equal(rig_stat(s, "misses"), 1);
	server_free(s);
	f->tiers = NULL;
	tiers_fini(&tiers);
	return start;
}

/* Of a disk: its seek, and the bytes at 112 MB/s. Memory is not a disk, however
 * late its thread wakes up; the shortest of some reads says it. */
static void a_hit_takes_the_time_of_its_tier(void **state)
{
	struct fixture *f = *state;
	uint64_t least = 453000 + f->bytes[3] * 1000 / 112, memory = UINT64_MAX;

	assert_true(hit_ns(f, "hdd:lru:100%") >= least);
	for (int i = 0; i < 20 && memory >= least; i++) {
		uint64_t ns = hit_ns(f, "dram:lru:100%");

		memory = ns < memory ? ns : memory;
	}
	assert_true(memory < least);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hit_takes_the_time_of_its_tier),
	};

	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
