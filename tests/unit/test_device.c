/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/device/device.h"

#define S "{source: test, verified: true"
/* A profile with these groups, otherwise ideal. */
#define PROFILE(channels, link, iops, read)               \
	"name: t\nsource: test\n"                         \
	"channels: " S channels "}\nlink: " S link "}\n"  \
	"iops: " S iops "}\n"                             \
	"open: " S "}\nlookup: " S "}\nreaddir: " S "}\n" \
	"read: " S read "}\n"

struct rig {
	struct storage_profile *profile;
	struct device *device;
};

static struct rig rig_new(const char *yaml, uint64_t seed)
{
	struct rig r = { 0 };
	struct err err = { 0 };

	if (storage_profile_parse(yaml, strlen(yaml), "t.yaml", &r.profile,
				  &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(device_new(r.profile, seed, &r.device), 0);
	return r;
}

static struct rig rig_load(const char *name)
{
	struct rig r = { 0 };
	struct err err = { 0 };

	if (storage_profile_load(name, &r.profile, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(device_new(r.profile, 1, &r.device), 0);
	return r;
}

static void rig_free(struct rig *r)
{
	device_free(r->device);
	storage_profile_free(r->profile);
}

/* A read of a fresh object. */
static uint64_t read_at(struct rig *r, uint64_t bytes, uint64_t now)
{
	static uint64_t object; /* any that differs from the last */

	return device_schedule(r->device, STORAGE_READ, ++object, 0, bytes,
			       now);
}

/*
 * `n` reads with `depth` of them in flight at any time; the ns they take. As a
 * client does: it sends the next when the earliest answer arrives.
 */
static double closed_loop(struct rig *r, size_t n, size_t depth, uint64_t bytes)
{
	uint64_t done[256] = { 0 }, last = 0;

	assert_true(depth <= ARRAY_SIZE(done));
	for (size_t i = 0; i < n; i++) {
		size_t first = 0;

		for (size_t k = 1; k < depth; k++)
			if (done[k] < done[first])
				first = k;
		done[first] = read_at(r, bytes, done[first]);
		last = MAX(last, done[first]);
	}
	return (double)last;
}

static void assert_within(double got, double want, double share)
{
	if (!(fabs(got - want) <= want * share))
		fail_msg("%g is not within %g %% of %g", got, share * 100,
			 want);
}

static void ideal_adds_nothing(void **state)
{
	struct rig r = rig_load("ideal");

	(void)state;
	for (int op = 0; op < STORAGE_N_OPS; op++)
		for (uint64_t now = 0; now < 1000; now += 7)
			assert_int_equal(device_schedule(r.device, op, now, 0,
							 1 << 20, now),
					 now);
	rig_free(&r);
}

static void const_latency_is_exact(void **state)
{
	struct rig r = rig_new(
		PROFILE("", "", "", ", latency: {kind: const, value: 100us}"),
		1);

	(void)state;
	/* ten thousand in flight at once, none waits for another */
	for (int i = 0; i < 10000; i++)
		assert_int_equal(read_at(&r, 4096, 5000), 105000);
	rig_free(&r);
}

static void channels_queue_first_come_first_served(void **state)
{
	struct rig r =
		rig_new(PROFILE(", count: 2", "", "",
				", occupancy: {kind: const, value: 1ms}"),
			1);

	(void)state;
	assert_int_equal(read_at(&r, 1, 0), 1 * NS_PER_MS);
	assert_int_equal(read_at(&r, 1, 0), 1 * NS_PER_MS);
	assert_int_equal(read_at(&r, 1, 0), 2 * NS_PER_MS);
	assert_int_equal(read_at(&r, 1, 500000), 2 * NS_PER_MS);
	assert_int_equal(read_at(&r, 1, 500000), 3 * NS_PER_MS);
	/* an idle device has forgotten it */
	assert_int_equal(read_at(&r, 1, 9 * NS_PER_MS), 10 * NS_PER_MS);
	rig_free(&r);
}

static void k_channels_are_k_times_as_fast(void **state)
{
	char yaml[600];

	(void)state;
	for (int k = 1; k <= 64; k *= 4) {
		snprintf(yaml, sizeof(yaml),
			 PROFILE(", count: %d", "", "",
				 ", occupancy: {kind: const, value: 80us}"),
			 k);
		struct rig r = rig_new(yaml, 1);

		assert_within(closed_loop(&r, 64000, 128, 4096),
			      64000 * 80e3 / k, .001);
		rig_free(&r);
	}
}

static void iops_cap_holds(void **state)
{
	struct rig r = rig_new(PROFILE("", "", ", per_s: 5500", ""), 1);

	(void)state;
	assert_within(closed_loop(&r, 55000, 64, 4096), 10e9, .001);
	rig_free(&r);
}

static void burst_is_earned_by_rest(void **state)
{
	struct rig r =
		rig_new(PROFILE("", "", ", per_s: 1000, burst: 4", ""), 1);
	uint64_t now = 0, i;

	(void)state;
	/* starts without credit */
	for (i = 0; i < 5; i++)
		assert_int_equal(read_at(&r, 1, now), i * NS_PER_MS);
	now = 100 * NS_PER_MS;
	for (i = 0; i < 4; i++)
		assert_int_equal(read_at(&r, 1, now), now);
	assert_int_equal(read_at(&r, 1, now), now + NS_PER_MS);
	rig_free(&r);
}

/* What has no room passes at the begin of the window that has. */
static void a_quota_counts_by_windows(void **state)
{
	struct rig ops = rig_new(
		PROFILE("", "", "}\nquota: " S ", window: 10ms, per_s: 300",
			""),
		1);
	struct rig bytes = rig_new(
		PROFILE("", "", "}\nquota: " S ", window: 10ms, mb_per_s: 1",
			""),
		1);
	uint64_t i;

	(void)state;
	for (i = 0; i < 7; i++)
		assert_int_equal(read_at(&ops, 1, 0), i / 3 * 10 * NS_PER_MS);
	/* the third window has room for two; rest earns no more */
	assert_int_equal(read_at(&ops, 1, 1000 * NS_PER_MS + 5),
			 1000 * NS_PER_MS + 5);
	for (i = 1; i < 4; i++)
		assert_int_equal(read_at(&ops, 1, 1000 * NS_PER_MS + 5),
				 i < 3 ? 1000 * NS_PER_MS + 5
				       : 1010 * NS_PER_MS);
	/* 10,000 bytes in each: 25,000 pass with the third */
	assert_int_equal(read_at(&bytes, 25000, 0), 20 * NS_PER_MS);
	assert_int_equal(read_at(&bytes, 5000, 0), 20 * NS_PER_MS);
	assert_int_equal(read_at(&bytes, 1, 0), 30 * NS_PER_MS);
	rig_free(&ops);
	rig_free(&bytes);
}

/* A read alone takes its measured time; many have what the link has. */
static void times_are_those_of_a_read_alone(void **state)
{
	struct rig r = rig_new(
		PROFILE(", mb_per_s: 100, times: [[4K, 10us], [128K, 50us]]",
			", mb_per_s: 1000", "", ""),
		1);

	(void)state;
	assert_int_equal(read_at(&r, 2 * KIB, 0), 5000);
	assert_int_equal(read_at(&r, 66 * KIB, NS_PER_S), NS_PER_S + 30000);
	assert_int_equal(read_at(&r, 128 * KIB, 2 * NS_PER_S),
			 2 * NS_PER_S + 50000);
	/* beyond them at the rate, which is 10 ns a byte */
	assert_int_equal(read_at(&r, 128 * KIB + 100, 3 * NS_PER_S),
			 3 * NS_PER_S + 51000);
	rig_free(&r);
	r = rig_new(PROFILE(", times: [[128K, 50us]]", ", mb_per_s: 1000", "",
			    ""),
		    1);
	assert_within(closed_loop(&r, 1000, 64, 128 * KIB), 1000 * 128 * 1024.,
		      .01);
	rig_free(&r);
}

static void long_reads_take_more_slots(void **state)
{
	struct rig r =
		rig_new(PROFILE("", "", ", per_s: 3000, slot: 256K", ""), 1);

	(void)state;
	/* 1 MiB counts four times */
	assert_within(closed_loop(&r, 7500, 64, MIB), 10e9, .001);
	assert_within(closed_loop(&r, 30000, 64, 256 * KIB) - 10e9, 10e9, .001);
	rig_free(&r);
}

static void bandwidths_hold(void **state)
{
	struct rig link = rig_new(PROFILE("", ", mb_per_s: 1000", "",
					  ", occupancy: {kind: lognormal, "
					  "median: 1ms, sigma: .5}"),
				  1);
	struct rig channel = rig_new(PROFILE(", count: 4, mb_per_s: 100",
					     ", mb_per_s: 1000", "", ""),
				     1);

	(void)state;
	/* 20 GB through 1 GB/s; 4 GB through 4 x 100 MB/s */
	assert_within(closed_loop(&link, 20000, 64, 1000000), 20e9, .01);
	assert_within(closed_loop(&channel, 4000, 64, 1000000), 10e9, .01);
	rig_free(&link);
	rig_free(&channel);
}

/* Whatever the profile says, or less than that; from the next read on. */
static void a_limit_holds(void **state)
{
	struct rig none = rig_new(PROFILE("", "", "", ""), 1);
	struct rig link = rig_new(PROFILE("", ", mb_per_s: 1000", "", ""), 1);

	(void)state;
	device_limit(none.device, 100, 0);
	device_limit(link.device, 100, 0);
	assert_int_equal(read_at(&none, 1000000, 0), 10000000);
	assert_int_equal(read_at(&link, 1000000, 0), 10000000);
	/* what is still to be moved is so as fast as before */
	device_limit(none.device, 0, 5000000);
	device_limit(link.device, 2000, 5000000);
	assert_int_equal(read_at(&none, 1000000, 5000000), 5000000);
	assert_int_equal(read_at(&link, 1000000, 5000000), 6500000);
	rig_free(&none);
	rig_free(&link);
}

/* More than a clock of 64 bits holds. */
static void a_slow_link_has_no_free_reads(void **state)
{
	struct rig r = rig_new(PROFILE("", "", "", ""), 1);
	uint64_t last = 0;

	(void)state;
	device_limit(r.device, .001, 0);
	for (int i = 0; i < 100; i++) {
		uint64_t done = read_at(&r, 1ull << 39, 0);

		assert_true(done > last || done >= 1000000000 * NS_PER_S);
		last = done;
	}
	device_limit(r.device, .002, 0);
	assert_true(read_at(&r, 1ull << 39, 0) > 100000000 * NS_PER_S);
	rig_free(&r);
}

static void alone_a_read_takes_the_slower_of_channel_and_link(void **state)
{
	struct rig r =
		rig_new(PROFILE(", count: 1, mb_per_s: 100", ", mb_per_s: 50",
				"", ", occupancy: {kind: const, value: 1ms}"),
			1);

	(void)state;
	assert_int_equal(read_at(&r, 1000000, 0), 21 * NS_PER_MS);
	rig_free(&r);
}

/* In pieces a read takes as long as in one, and is one request. */
static void a_read_that_goes_on_takes_its_bytes(void **state)
{
	static const char *const profiles[] = {
		PROFILE(", mb_per_s: 100", ", mb_per_s: 1000", ", per_s: 10",
			", latency: {kind: const, value: 30ms}"),
		PROFILE(", count: 1, mb_per_s: 100", "", "",
			", occupancy: {kind: const, value: 30ms}"),
		PROFILE("", ", mb_per_s: 100", "",
			", latency: {kind: const, value: 30ms}"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		struct rig r = rig_new(profiles[i], 1);
		uint64_t at = read_at(&r, 100000, 0);

		assert_within((double)at, 31e6, 0.1);
		for (uint64_t n = 1; n < 10; n++)
			at = device_go_on(r.device, n * 100000, 100000, at);
		assert_int_equal(at, 40 * NS_PER_MS);
		rig_free(&r);
	}
}

static void striped_reads_use_all_channels(void **state)
{
	struct rig r = rig_new(PROFILE(", count: 4, mb_per_s: 100, stripe: 64K",
				       "", "", ""),
			       1);

	(void)state;
	/* 64 KiB at 100 MB/s is 655.36 us */
	assert_int_equal(read_at(&r, 4 * 64 * KIB, 0), 655360);
	/* across a boundary: 1 KiB on one channel, 63 KiB on another */
	assert_int_equal(device_schedule(r.device, STORAGE_READ, 1, 63 * KIB,
					 64 * KIB, NS_PER_S),
			 NS_PER_S + 645120);
	rig_free(&r);
}

static double mean_of(const char *read, size_t n)
{
	char yaml[800];
	double sum = 0;

	snprintf(yaml, sizeof(yaml), PROFILE("", "", "", ", latency: %s"),
		 read);
	struct rig r = rig_new(yaml, 7);

	for (size_t i = 0; i < n; i++)
		sum += (double)read_at(&r, 1, 0);
	/* the profile's own rate is the same */
	assert_within(dist_time_mean(&r.profile->op[STORAGE_READ].latency),
		      sum / (double)n, .01);
	rig_free(&r);
	return sum / (double)n;
}

static void distributions_have_their_means(void **state)
{
	const size_t n = 200000;

	(void)state;
	assert_within(mean_of("{kind: const, value: 3ms}", 10), 3e6, 0);
	assert_within(mean_of("{kind: uniform, min: 1ms, max: 3ms}", n), 2e6,
		      .01);
	assert_within(mean_of("{kind: normal, mean: 5ms, sd: 1ms}", n), 5e6,
		      .01);
	assert_within(mean_of("{kind: lognormal, median: 30ms, sigma: 0.6}", n),
		      30e6 * exp(.18), .01);
	assert_within(mean_of("{kind: gamma, mean: 4ms, shape: 2.5}", n), 4e6,
		      .01);
	assert_within(mean_of("{kind: gamma, mean: 4ms, shape: 0.5}", n), 4e6,
		      .01);
	/* half uniform in 0..2, half in 2..10 */
	assert_within(mean_of("{kind: empirical, quantiles: "
			      "[[0, 0], [0.5, 2ms], [1, 10ms]]}",
			      n),
		      .5 * 1e6 + .5 * 6e6, .01);
	assert_within(mean_of("{kind: const, value: 1ms, tail: "
			      "{probability: 0.1, multiply: [5, 15]}}",
			      n),
		      .9 * 1e6 + .1 * 10e6, .01);
	assert_within(mean_of("{kind: const, value: 1ms, tail: {probability: "
			      "0.1, replace: {kind: const, value: 51ms}}}",
			      n),
		      .9 * 1e6 + .1 * 51e6, .015);
}

/* The disk has the random read rate that its source measured. */
static void hdd_reads_as_fast_as_measured(void **state)
{
	struct rig hdd = rig_load("hdd");
	const struct storage_measured *v = hdd.profile->random_reads.items;
	const size_t n = 20000;

	(void)state;
	assert_int_equal(hdd.profile->random_reads.n, 5);
	for (size_t i = 0; i < hdd.profile->random_reads.n; i++) {
		struct rig r = rig_load("hdd");
		double ns = closed_loop(&r, n, 1, v[i].bytes);

		assert_within((double)(v[i].bytes * n) * 1000 / ns,
			      v[i].mb_per_s, .05);
		rig_free(&r);
	}
	rig_free(&hdd);
}

static int by_place(const void *a, const void *b)
{
	uint64_t x = device_place(*(const uint32_t *)a, 0);
	uint64_t y = device_place(*(const uint32_t *)b, 0);

	return x < y ? -1 : x > y;
}

/* ms a file for 10,000 files of ImageNet's mean size, `depth` at a time, each
 * `window` of them sorted by place. */
static double sorted_ms(const char *profile, size_t depth, size_t window)
{
	enum { N = 10000 };
	struct rig r = rig_load(profile);
	uint64_t done[64] = { 0 }, last = 0;
	uint32_t object[N];

	for (uint32_t i = 0; i < N; i++)
		object[i] = i;
	for (size_t i = 0; i < N; i += window)
		qsort(object + i, MIN(window, N - i), sizeof(*object),
		      by_place);
	for (size_t i = 0; i < N; i++) {
		uint64_t *first = done;

		for (size_t k = 1; k < depth; k++)
			if (done[k] < *first)
				first = &done[k];
		*first = device_schedule(r.device, STORAGE_READ, object[i], 0,
					 115360, *first);
		last = MAX(last, *first);
	}
	rig_free(&r);
	return (double)last / 1e6 / N;
}

/*
 * Source: GPEmu authors' gpufs, io-order/results, 10,000 files in the order of
 * their places by 1 to 64 threads. The profile has one of these numbers, that
 * of one thread on a disk without NCQ (64.3 s); the others are predicted.
 */
static void reads_in_the_order_of_their_places_seek_less(void **state)
{
	static const struct {
		size_t depth;
		double s;
	} measured[] = {
		{ 1, 69.1 },  { 2, 50.5 },  { 4, 44.1 },  { 8, 36.5 },
		{ 16, 33.3 }, { 32, 32.1 }, { 64, 32.4 },
	};

	(void)state;
	assert_within(sorted_ms("hdd-whole", 1, 10000), 6.43, .01);
	for (size_t i = 0; i < ARRAY_SIZE(measured); i++)
		assert_within(sorted_ms("hdd-whole", measured[i].depth, 10000),
			      measured[i].s / 10, .15);
}

/*
 * Source: as above, a million reads by 32 threads: 4.77 ms each unsorted, 5.03
 * sorted by 100 (no gain), 3.88 by 1,000, 3.35 by 10,000.
 */
static void sorting_fewer_than_the_device_does_gains_nothing(void **state)
{
	double unsorted = sorted_ms("hdd-whole", 32, 1);

	(void)state;
	assert_within(unsorted, 4.92, .02);
	for (size_t window = 2; window < 64; window *= 2)
		assert_within(sorted_ms("hdd-whole", 32, window), unsorted,
			      .02);
	assert_within(sorted_ms("hdd-whole", 32, 100), unsorted, .05);
	assert_within(sorted_ms("hdd-whole", 32, 1000) / unsorted, 3.88 / 4.77,
		      .08);
	assert_within(sorted_ms("hdd-whole", 32, 10000) / unsorted, 3.35 / 4.77,
		      .08);
	/* a device without positions ignores them */
	assert_within(sorted_ms("hdd", 32, 10000), sorted_ms("hdd", 32, 1),
		      .01);
}

static void going_on_needs_no_seek(void **state)
{
	struct rig r = rig_load("hdd");
	uint64_t now = 0, before;

	(void)state;
	now = device_schedule(r.device, STORAGE_READ, 1, 0, 65536, 0);
	before = now;
	for (uint64_t at = 65536; at < 100 * 65536; at += 65536)
		now = device_schedule(r.device, STORAGE_READ, 1, at, 65536,
				      now);
	/* at the rate of the profile: 112 MB/s */
	assert_within((double)(now - before), 99 * 65536. * 1000 / 112, .001);
	/* another file at the same offset is elsewhere */
	assert_true(device_schedule(r.device, STORAGE_READ, 2, 100 * 65536, 1,
				    now) > now + 400000);
	rig_free(&r);
}

/* The members of a tar: a header of 512 bytes, a member, a small label with its
 * header, and so on. */
static void a_short_gap_is_passed_not_sought(void **state)
{
	enum { N = 100, MEMBER = 115200, STEP = MEMBER + 1536 };
	struct rig r = rig_load("hdd");
	uint64_t now, before, gap;

	(void)state;
	before = now =
		device_schedule(r.device, STORAGE_READ, 1, 512, MEMBER, 0);
	for (uint64_t i = 1; i < N; i++)
		now = device_schedule(r.device, STORAGE_READ, 1, 512 + i * STEP,
				      MEMBER, now);
	/* as a reader of the whole file: 112 MB/s */
	assert_within((double)(now - before), (N - 1.) * STEP * 1000 / 112,
		      .001);
	/* it takes the time of its bytes: never more than a mean movement,
	 * 453 us and half a turn */
	for (gap = 4096; gap < 1 << 22; gap *= 2) {
		uint64_t done = device_schedule(
			r.device, STORAGE_READ, 1,
			512 + (uint64_t)N * STEP + 2 * gap, 0, now);
		double passed = gap == 4096 ? 0 : (double)gap * 1000 / 112;

		if (passed && passed < 4.6195e6)
			assert_within((double)(done - now), passed, .001);
		else if (passed)
			assert_true(done - now >= 453000 &&
				    done - now <= 453000 + 8333000);
		now = done;
	}
	/* what is behind the head comes round a turn later */
	assert_true(device_schedule(r.device, STORAGE_READ, 1, 0, 0, now) >=
		    now + 453000);
	rig_free(&r);
}

/* Without a rate there is no telling how long a gap takes. */
static void without_a_rate_a_gap_is_a_seek(void **state)
{
	struct rig r = rig_new(
		PROFILE("", "", "", ", seek: {kind: const, value: 1ms}"), 1);

	(void)state;
	assert_int_equal(device_schedule(r.device, STORAGE_READ, 1, 0, 10, 0),
			 NS_PER_MS);
	assert_int_equal(device_schedule(r.device, STORAGE_READ, 1, 10, 10, 0),
			 0);
	assert_int_equal(device_schedule(r.device, STORAGE_READ, 1, 21, 10, 0),
			 NS_PER_MS);
	rig_free(&r);
}

/* As the authors' disk with NCQ, whose head moved further. */
static void a_disk_with_a_queue_moves_its_head_less(void **state)
{
	static const struct {
		size_t depth;
		double s; /* for 10,000 files */
	} measured[] = {
		{ 1, 143.4 }, { 2, 110.8 }, { 4, 87.1 },  { 8, 68.6 },
		{ 16, 57.8 }, { 32, 49.2 }, { 64, 45.6 },
	};
	const double bytes = 115360, n = 10000, moves = 143.4 - 10.3;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(measured); i++) {
		struct rig r = rig_load("hdd");
		double s = closed_loop(&r, (size_t)n, measured[i].depth,
				       (uint64_t)bytes) /
			   1e9;
		double transfer = n * bytes / 112e6;

		/* the same share of this disk's movements, 46.2 s */
		assert_within((s - transfer) / 46.2,
			      (measured[i].s - 10.3) / moves, .03);
		rig_free(&r);
	}
}

/* Nor does an open whose inode is in memory count as one in the queue. */
static void what_the_device_does_not_do_waits_for_nothing(void **state)
{
	struct rig r = rig_load("hdd");
	uint64_t first = read_at(&r, 1, 0);

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(device_schedule(r.device, STORAGE_OPEN, 1, 0,
						 0, 1000),
				 1000);
	/* the second of two: 0.755 of a movement of 0.5 to 8.8 ms */
	assert_true(read_at(&r, 1, 1000) > first + 300000);
	assert_true(read_at(&r, 1, 1000) > first + 500000);
	rig_free(&r);
}

static void asking_again_a_little_early_is_no_queue(void **state)
{
	struct rig a = rig_load("hdd"), b = rig_load("hdd");
	uint64_t early = 0, late = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		late = device_schedule(a.device, STORAGE_READ, i, 0, 65536,
				       late);
		early = device_schedule(b.device, STORAGE_READ, i, 0, 65536,
					early > 50000 ? early - 50000 : 0);
		assert_int_equal(early, late);
	}
	rig_free(&a);
	rig_free(&b);
}

static const char *const NOISY = PROFILE(
	", count: 3, mb_per_s: 90", ", mb_per_s: 200", ", per_s: 2000",
	", occupancy: {kind: gamma, mean: 1ms, shape: 2}, latency: {kind: "
	"lognormal, median: 2ms, sigma: 1}, seek: {kind: uniform, min: 1ms, "
	"max: 2ms}, rotation: 8ms");

static void same_seed_same_answers_and_two_do_not_mix(void **state)
{
	struct rig a = rig_new(NOISY, 5), b = rig_new(NOISY, 5),
		   c = rig_new(NOISY, 6);
	uint64_t first[200];
	size_t differ = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		first[i] = device_schedule(a.device, STORAGE_READ, i, 0, 1000,
					   i * 1000);
	/* b runs next to c; c has another seed */
	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		differ += device_schedule(c.device, STORAGE_READ, i, 0, 1000,
					  i * 1000) != first[i];
		assert_int_equal(device_schedule(b.device, STORAGE_READ, i, 0,
						 1000, i * 1000),
				 first[i]);
	}
	assert_true(differ > ARRAY_SIZE(first) / 2);
	rig_free(&a);
	rig_free(&b);
	rig_free(&c);
}

static void nothing_is_done_before_it_arrives(void **state)
{
	struct rig r = rig_new(NOISY, 9);
	struct rng rng = rng_stream(1, "test", 0);
	uint64_t now = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		now += rng_below(&rng, 3 * NS_PER_MS);
		assert_true(
			device_schedule(r.device,
					(enum storage_op)(i % STORAGE_N_OPS),
					rng_below(&rng, 4), 0,
					rng_below(&rng, MIB), now) >= now);
	}
	rig_free(&r);
}

/* --- writes --------------------------------------------------------------- */

static uint64_t write_at(struct rig *r, uint64_t offset, uint64_t bytes,
			 uint64_t now)
{
	return device_schedule(r->device, STORAGE_WRITE, 1, offset, bytes, now);
}

static uint64_t sync_at(struct rig *r, uint64_t now)
{
	return device_schedule(r->device, STORAGE_SYNC, 1, 0, 0, now);
}

static void writes_fill_the_buffer_then_wait_for_flash(void **state)
{
	struct rig r = rig_load("nvme");
	uint64_t n = 4096, piece = 128 * KIB, first, at;

	(void)state;
	/* 1 MiB at the link's 3360 MB/s, and the firmware */
	first = at = write_at(&r, 0, MIB, 0);
	assert_within((double)at, 1048576 / 3.36 + 4460, 1e-3);
	for (uint64_t i = 0; i < n; i++)
		at = write_at(&r, MIB + i * piece, piece, at);
	/* 16 pages of 32 KiB in 185 us */
	assert_within((double)(at - first),
		      (double)(n * piece) * 185e3 / (16 * 32768), .01);
	rig_free(&r);
}

static void a_sync_waits_for_the_buffer(void **state)
{
	struct rig r = rig_load("nvme");
	uint64_t at = write_at(&r, 0, 4 * KIB, 0), done;

	(void)state;
	assert_within((double)at, 4096 / 3.36 + 4460, 1e-3);
	done = sync_at(&r, at);
	assert_within((double)(done - at), 185e3, 1e-3);
	/* nothing is left to wait for */
	assert_int_equal(sync_at(&r, done), done);
	rig_free(&r);
}

#define ONE_CHANNEL                                               \
	PROFILE(", count: 1", "", "",                             \
		", occupancy: {kind: const, value: 10us}")        \
	"buffer: " S ", size: 8K, unit: 4K}\n"                    \
	"write: " S ", occupancy: {kind: const, value: 100us}}\n" \
	"sync: " S ", latency: {kind: const, value: 7us}}\n"

static void reads_and_writes_share_channels(void **state)
{
	struct rig r = rig_new(ONE_CHANNEL, 1);

	(void)state;
	/* two units leave at 100 and 200 us, the read after them; the third
	 * enters with the first's end, and leaves after the read */
	assert_int_equal(write_at(&r, 0, 8 * KIB, 0), 0);
	assert_int_equal(read_at(&r, 4096, 0), 210000);
	assert_int_equal(write_at(&r, 8 * KIB, 4 * KIB, 0), 100000);
	assert_int_equal(sync_at(&r, 0), 317000);
	rig_free(&r);
}

static void small_writes_share_a_unit(void **state)
{
	struct rig r = rig_new(ONE_CHANNEL, 1);

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(write_at(&r, i * 512, 512, 0), 0);
	assert_int_equal(sync_at(&r, 0), 107000);
	rig_free(&r);
}

static void parts_pass_the_link_behind_a_buffer_in_the_client(void **state)
{
	/* a part of 8 MiB: 100 ms, and 100 ms for its bytes; 10 ms of link */
	struct rig r =
		rig_new(PROFILE("", ", mb_per_s: 838.8608", "",
				"") "buffer: " S
				    ", size: 16M, unit: 8M, in_client: true}\n"
				    "write: " S
				    ", occupancy: {kind: const, value: 100ms},"
				    " mb_per_s: 83.88608}\n",
			1);

	(void)state;
	assert_int_equal(write_at(&r, 0, 16 * MIB, 0), 0);
	assert_int_equal(read_at(&r, 8 * MIB, 0), 30000000);
	assert_int_equal(write_at(&r, 16 * MIB, 8 * MIB, 0), 200000000);
	assert_int_equal(sync_at(&r, 0), 400000000);
	rig_free(&r);
}

static void without_keys_writes_cost_what_reads_do(void **state)
{
	struct rig r = rig_load("hdd"), w = rig_load("hdd");
	uint64_t a = 0, b = 0;

	(void)state;
	/* one after the other: both are heads that go on */
	device_schedule(r.device, STORAGE_READ, 1, 0, MIB, 0);
	write_at(&w, 0, MIB, 0);
	a = device_schedule(r.device, STORAGE_READ, 1, MIB, MIB, NS_PER_S);
	b = write_at(&w, MIB, MIB, NS_PER_S);
	assert_int_equal(a, b);
	assert_within((double)(b - NS_PER_S), 1048576 / .112, 1e-3);
	rig_free(&r);
	rig_free(&w);
}

static void no_write_is_faster_than_its_channels(void **state)
{
	struct rig r = rig_new(ONE_CHANNEL, 1);
	struct rng rng = rng_stream(2, "test", 0);
	uint64_t at = 0, sum = 0;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		uint64_t n = rng_below(&rng, 20 * KIB), done;

		done = write_at(&r, sum, n, at);
		assert_true(done >= at);
		sum += n;
		at = done;
		/* all but what the buffer holds has left by then */
		if (sum > 8 * KIB)
			assert_true(at >= (sum - 8 * KIB) / 4096 * 100000);
	}
	assert_int_equal(sync_at(&r, at), (sum + 4095) / 4096 * 100000 + 7000);
	rig_free(&r);
}

static void assert_refused(const char *yaml, const char *why)
{
	struct storage_profile *p = NULL;
	struct err err = { 0 };

	assert_true(storage_profile_parse(yaml, strlen(yaml), "t.yaml", &p,
					  &err) < 0);
	assert_non_null(strstr(err.text, why));
}

static void impossible_write_keys_are_refused(void **state)
{
	(void)state;
	assert_refused(PROFILE("", "", "", "") "buffer: " S
					       ", size: 4K, unit: 8K}\n",
		       "size must be 1 to");
	assert_refused(PROFILE("", "", "", ", mb_per_s: 5"),
		       "mb_per_s is for writes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ideal_adds_nothing),
		cmocka_unit_test(const_latency_is_exact),
		cmocka_unit_test(channels_queue_first_come_first_served),
		cmocka_unit_test(k_channels_are_k_times_as_fast),
		cmocka_unit_test(iops_cap_holds),
		cmocka_unit_test(burst_is_earned_by_rest),
		cmocka_unit_test(a_quota_counts_by_windows),
		cmocka_unit_test(times_are_those_of_a_read_alone),
		cmocka_unit_test(long_reads_take_more_slots),
		cmocka_unit_test(bandwidths_hold),
		cmocka_unit_test(a_limit_holds),
		cmocka_unit_test(a_slow_link_has_no_free_reads),
		cmocka_unit_test(
			alone_a_read_takes_the_slower_of_channel_and_link),
		cmocka_unit_test(striped_reads_use_all_channels),
		cmocka_unit_test(a_read_that_goes_on_takes_its_bytes),
		cmocka_unit_test(distributions_have_their_means),
		cmocka_unit_test(hdd_reads_as_fast_as_measured),
		cmocka_unit_test(reads_in_the_order_of_their_places_seek_less),
		cmocka_unit_test(
			sorting_fewer_than_the_device_does_gains_nothing),
		cmocka_unit_test(going_on_needs_no_seek),
		cmocka_unit_test(a_short_gap_is_passed_not_sought),
		cmocka_unit_test(without_a_rate_a_gap_is_a_seek),
		cmocka_unit_test(a_disk_with_a_queue_moves_its_head_less),
		cmocka_unit_test(what_the_device_does_not_do_waits_for_nothing),
		cmocka_unit_test(asking_again_a_little_early_is_no_queue),
		cmocka_unit_test(same_seed_same_answers_and_two_do_not_mix),
		cmocka_unit_test(nothing_is_done_before_it_arrives),
		cmocka_unit_test(writes_fill_the_buffer_then_wait_for_flash),
		cmocka_unit_test(a_sync_waits_for_the_buffer),
		cmocka_unit_test(reads_and_writes_share_channels),
		cmocka_unit_test(small_writes_share_a_unit),
		cmocka_unit_test(
			parts_pass_the_link_behind_a_buffer_in_the_client),
		cmocka_unit_test(without_keys_writes_cost_what_reads_do),
		cmocka_unit_test(no_write_is_faster_than_its_channels),
		cmocka_unit_test(impossible_write_keys_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
