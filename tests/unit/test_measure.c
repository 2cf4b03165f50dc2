/* SPDX-License-Identifier: MIT */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "fs/measure/fit.h"

/* What would be measured of a device with this profile. */
static struct points measured(const struct storage_profile *profile)
{
	struct points p;

	points_all(&p, 64 * MIB);
	for (size_t i = 0; i < p.n; i++)
		assert_int_equal(
			predict_point(profile, &p.point[i], &p.point[i]), 0);
	return p;
}

static struct storage_profile *parsed(const char *yaml)
{
	struct storage_profile *p;
	struct err err = { 0 };

	if (storage_profile_parse(yaml, strlen(yaml), "t", &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static struct storage_profile *fitted(const struct points *points)
{
	static const struct fit_text text = { "t", "a \"test\"", "none" };
	struct storage_profile *p;
	struct err err = { 0 };
	char *bytes = NULL;
	size_t n;
	FILE *f = open_memstream(&bytes, &n);

	if (fit_write(points, &text, f, &err) < 0)
		fail_msg("%s", err.text);
	fclose(f);
	p = parsed(bytes);
	free(bytes);
	return p;
}

/* A profile of a device's points gives the same points. */
static void same(const struct storage_profile *p, const struct points *points,
		 double tolerance)
{
	for (size_t i = 0; i < points->n; i++) {
		const struct point *m = &points->point[i];
		char text[POINT_TEXT];
		struct point s;

		predict_point(p, m, &s);
		if (fabs(s.per_s / m->per_s - 1) > tolerance ||
		    fabs(s.ns[POINT_P50] / m->ns[POINT_P50] - 1) > tolerance)
			fail_msg("%s: %g and %g a second, p50 %g and %g ns",
				 point_text(m, text), m->per_s, s.per_s,
				 m->ns[POINT_P50], s.ns[POINT_P50]);
	}
}

static void a_server(void **state)
{
	struct storage_profile *device = parsed(
		"name: d\nsource: s\n"
		"channels: {source: s, mb_per_s: 200}\n"
		"link: {source: s, mb_per_s: 500}\n"
		"iops: {source: s, per_s: 8000}\n"
		"names: {source: s, kept: 1s}\n"
		"lookup: {source: s, latency: {kind: const, value: 3ms}, "
		"slots: 0}\n"
		"open: {source: s, latency: {kind: const, value: 2ms}, "
		"slots: 0}\n"
		"readdir: {source: s, latency: {kind: const, value: 4ms}, "
		"slots: 0}\n"
		"read: {source: s, latency: {kind: lognormal, median: 1ms, "
		"sigma: 0.5}}\n");
	struct points points = measured(device);
	struct storage_profile *p = fitted(&points);

	(void)state;
	assert_true(fabs(p->channels.mb_per_s / 200 - 1) < .05);
	assert_true(fabs(p->link.mb_per_s / 500 - 1) < .02);
	assert_true(fabs(p->iops.per_s / 8000 - 1) < .02);
	assert_true(p->names.kept_ns == NS_PER_S);
	assert_true(
		fabs(dist_time_mean(&p->op[STORAGE_READ].latency) /
			     dist_time_mean(&device->op[STORAGE_READ].latency) -
		     1) < .02);
	assert_true(fabs(dist_time_mean(&p->op[STORAGE_OPEN].latency) / 2e6 -
			 1) < .01);
	same(p, &points, .06);
	storage_profile_free(p);
	storage_profile_free(device);
}

/* An object store with a link that 16 GETs fill, and one that is never full. */
static void an_object_store(void **state)
{
	struct storage_profile *device = parsed(
		"name: d\nsource: s\n"
		"channels: {source: s, mb_per_s: 80}\n"
		"link: {source: s, mb_per_s: 400}\n"
		"readdir: {source: s, latency: {kind: const, value: 40ms}}\n"
		"read: {source: s, latency: {kind: lognormal, median: 30ms, "
		"sigma: 0.6, tail: {probability: 0.01, multiply: [5, 10]}}}\n");
	double mean = dist_time_mean(&device->op[STORAGE_READ].latency);
	struct points points;
	struct storage_profile *p;

	(void)state;
	for (int narrow = 0; narrow < 2; narrow++) {
		device->link.mb_per_s = narrow ? 400 : 1e6;
		points_bucket(&points, 2000, 1024 * MIB, 300 * KIB, 20 * MIB);
		for (size_t i = 0; i < points.n; i++)
			assert_int_equal(predict_point(device, &points.point[i],
						       &points.point[i]),
					 0);
		p = fitted(&points);
		assert_true(fabs(p->channels.mb_per_s / 80 - 1) < .01);
		assert_true(narrow ? fabs(p->link.mb_per_s / 400 - 1) < .03
				   : p->link.mb_per_s == 0);
		assert_true(fabs(dist_time_mean(&p->op[STORAGE_READ].latency) /
					 mean -
				 1) < .02);
		assert_true(!p->op[STORAGE_LOOKUP].verified);
		assert_true(p->op[STORAGE_LOOKUP].latency.body.kind ==
			    DIST_EMPIRICAL);
		assert_true(
			fabs(dist_time_mean(&p->op[STORAGE_READDIR].latency) /
				     40e6 -
			     1) < .01);
		if (narrow)
			same(p, &points, .06);
		storage_profile_free(p);
	}
	storage_profile_free(device);
}

/* What was announced is not exceeded, and all that the fit needs is there. */
static void budgets(void **state)
{
	static const uint64_t requests[] = {
		200, 333, 777, 2000, 12345, 1000000
	};
	static const uint64_t bytes[] = { 64 * MIB, 100 * MIB, 1024 * MIB,
					  100000 * MIB };
	static const uint64_t largest[] = { 128 * KIB, 300 * KIB, 5 * MIB,
					    900 * MIB };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		for (size_t j = 0; j < ARRAY_SIZE(bytes) * 4; j++) {
			uint64_t b = bytes[j / 4], n, sent = 0, got = 0;
			uint64_t alone = 0, page = j % 2 ? 300 * KIB : 2 * MIB;
			uint64_t pages = MIN(requests[i] / 100, (uint64_t)10);
			struct points p;

			points_bucket(&p, requests[i], b, page, largest[j % 4]);
			for (size_t k = 0; k < p.n; k++) {
				const struct point *at = &p.point[k];

				n = at->want;
				sent += n;
				got += n * (at->kind == POINT_GET ? at->bytes
								  : page);
				assert_true(at->bytes <= largest[j % 4]);
				assert_true(at->kind != POINT_GET ||
					    n >= 3 * at->depth);
				alone += at->kind == POINT_GET &&
					 at->depth == 1;
			}
			assert_true(sent + pages <= requests[i]);
			assert_true(got <= b);
			assert_true(alone >= 2 && p.n >= alone + 2);
		}
}

static void a_disk(void **state)
{
	struct storage_profile *device, *p;
	struct points points;

	(void)state;
	assert_int_equal(storage_profile_load("hdd", &device, NULL), 0);
	points = measured(device);
	p = fitted(&points);
	assert_int_equal(p->channels.count, 1);
	assert_true(p->op[STORAGE_READ].reorder.n == 9);
	assert_true(fabs(p->channels.mb_per_s / 112 - 1) < .05);
	same(p, &points, .15);
	storage_profile_free(p);
	storage_profile_free(device);
}

/* One read is faster than all together, and its time is no line. */
static void a_curved_disk(void **state)
{
	struct storage_profile *device = parsed(
		"name: d\nsource: s\n"
		"channels: {source: s, mb_per_s: 2000, times: [[4K, 2us], "
		"[64K, 12us], [128K, 60us], [1M, 600us]]}\n"
		"link: {source: s, mb_per_s: 1000}\n"
		"iops: {source: s, per_s: 100000}\n"
		"read: {source: s, latency: {kind: uniform, min: 50us, max: "
		"70us}}\n");
	struct points points = measured(device);
	struct point *lucky =
		(struct point *)points_find(&points, POINT_RANDOM, 4 * KIB, 64);
	struct storage_profile *p;

	(void)state;
	lucky->per_s *= 1.1;
	p = fitted(&points);
	assert_true(fabs(p->iops.per_s / 100000 - 1) < .02);
	assert_int_equal(p->channels.times.n, 6);
	for (uint64_t bytes = 4 * KIB; bytes <= MIB; bytes *= 4) {
		const struct point *m =
			points_find(&points, POINT_RANDOM, bytes, 1);
		struct point s;

		assert_int_equal(predict_point(p, m, &s), 0);
		assert_true(fabs(s.ns[POINT_P50] / m->ns[POINT_P50] - 1) < .02);
	}
	storage_profile_free(p);
	storage_profile_free(device);
}

/* A cgroup's limits over a fast disk: all that a window has passes at once. */
static void a_quota(void **state)
{
	struct storage_profile *device = parsed(
		"name: d\nsource: s\n"
		"channels: {source: s, mb_per_s: 2000}\n"
		"link: {source: s, mb_per_s: 2500}\n"
		"iops: {source: s, per_s: 120000}\n"
		"quota: {source: s, window: 100ms, per_s: 4000, "
		"mb_per_s: 100}\n"
		"lookup: {source: s, latency: {kind: const, value: 3ms}, "
		"slots: 0}\n"
		"open: {source: s, latency: {kind: const, value: 2ms}, "
		"slots: 0}\n"
		"readdir: {source: s, latency: {kind: const, value: 4ms}, "
		"slots: 0}\n"
		"read: {source: s, latency: {kind: uniform, min: 40us, max: "
		"60us}}\n");
	struct points points = measured(device);
	struct storage_profile *p = fitted(&points);

	(void)state;
	assert_true(fabs((double)p->quota.window_ns / 1e8 - 1) < .03);
	assert_true(fabs(p->quota.per_s / 4000 - 1) < .02);
	assert_true(fabs(p->quota.mb_per_s / 100 - 1) < .05);
	assert_true(fabs(p->iops.per_s / 120000 - 1) < .1);
	assert_true(fabs(p->link.mb_per_s / 2500 - 1) < .1);
	same(p, &points, .1);
	storage_profile_free(p);
	storage_profile_free(device);
}

/* One server: costs of a read and of its bytes add up, and opens take part. */
static void one_server(void **state)
{
	struct storage_profile *device = parsed(
		"name: d\nsource: s\n"
		"channels: {source: s, count: 1, mb_per_s: 1000}\n"
		"open: {source: s, occupancy: {kind: const, value: 60us}, "
		"slots: 0}\n"
		"lookup: {source: s, occupancy: {kind: const, value: 40us}, "
		"slots: 0}\n"
		"readdir: {source: s, occupancy: {kind: const, value: 90us}, "
		"slots: 0}\n"
		"read: {source: s, occupancy: {kind: const, value: 80us}}\n");
	struct points points = measured(device);
	struct storage_profile *p = fitted(&points);

	(void)state;
	assert_int_equal(p->channels.count, 1);
	assert_true(p->link.mb_per_s == 0 && p->iops.per_s == 0);
	for (double bytes = 4 * KIB; bytes <= MIB; bytes *= 2)
		assert_true(
			fabs((dist_time_mean(&p->op[STORAGE_READ].occupancy) +
			      storage_channel_ns(p, bytes)) /
				     (80e3 + bytes) -
			     1) < .01);
	assert_true(fabs(dist_time_mean(&p->op[STORAGE_OPEN].occupancy) / 60e3 -
			 1) < .03);
	assert_true(
		fabs(dist_time_mean(&p->op[STORAGE_LOOKUP].occupancy) / 40e3 -
		     1) < .03);
	same(p, &points, .06);
	storage_profile_free(p);
	storage_profile_free(device);
}

/* The tail is that of each size and depth, not of one at a time. */
static void tails_are_those_of_the_load(void **state)
{
	struct storage_profile *device = parsed(
		"name: d\nsource: s\n"
		"channels: {source: s, count: 8, mb_per_s: 400}\n"
		"read: {source: s, occupancy: {kind: lognormal, median: 60us, "
		"sigma: 0.3, tail: {probability: 0.02, multiply: [10, 40]}}}"
		"\n");
	struct points points = measured(device);
	struct storage_profile *p = fitted(&points);

	(void)state;
	/* eight alike have costs that add up, as one that is as fast has */
	assert_int_equal(p->channels.count, 1);
	for (size_t i = 0; i < points.n; i++) {
		const struct point *m = &points.point[i];
		struct point s;

		/* The depths and sizes of which there are rows. At 8, where
		 * its channels are just full, the one that stands for them
		 * makes reads wait that did not: 8 % fewer a second. */
		if (m->kind != POINT_RANDOM || m->bytes > MIB || m->depth > 64)
			continue;
		assert_int_equal(predict_point(p, m, &s), 0);
		if (fabs(s.ns[POINT_P99] / m->ns[POINT_P99] - 1) > .1 ||
		    fabs(s.per_s / m->per_s - 1) > .1)
			fail_msg("%llu bytes, depth %llu: %g and %g a second, "
				 "p99 %g and %g ns",
				 (unsigned long long)m->bytes,
				 (unsigned long long)m->depth, m->per_s,
				 s.per_s, m->ns[POINT_P99], s.ns[POINT_P99]);
	}
	storage_profile_free(p);
	storage_profile_free(device);
}

/* A slow read in a thousand moves the mean, and no read is that of the mean. */
static void the_mean_stays(void **state)
{
	struct storage_profile *device = parsed(
		"name: d\nsource: s\nread: {source: s, latency: {kind: const, "
		"value: 100us, tail: {probability: 0.002, multiply: [100, "
		"300]}}}\n"
		"channels: {source: s, mb_per_s: 1000}\n");
	struct points points = measured(device);
	struct storage_profile *p = fitted(&points);

	(void)state;
	assert_true(fabs(dist_time_mean(&p->op[STORAGE_READ].latency) /
				 points.point[0].mean_ns -
			 1) < .05);
	storage_profile_free(p);
	storage_profile_free(device);
}

static void too_few_points(void **state)
{
	struct points points;
	struct err err = { 0 };

	(void)state;
	points_all(&points, 64 * MIB);
	assert_int_equal(fit_write(&points, &(struct fit_text){ "t", "s", "" },
				   stderr, &err),
			 -ENODATA);
	assert_non_null(strstr(err.text, "too few points"));
}

static void a_state_file(void **state)
{
	static const char bad[] = "{\"kind\": \"random\", \"bytes\": 4096}\n";
	char path[] = "/tmp/gpemu-measure.XXXXXX";
	struct points a, b;
	struct err err = { 0 };
	FILE *f;
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	points_all(&a, 64 * MIB);
	assert_int_equal(points_resume(&a, path, "x", &f, &err), 0);
	a.point[3].n = 7;
	a.point[3].per_s = 2.5;
	a.point[3].ns[4] = 1234;
	assert_int_equal(point_save(&a.point[3], f), 0);
	fputs("{\"kind\": \"rand", f); /* killed here */
	fclose(f);
	points_all(&b, 64 * MIB);
	assert_int_equal(points_resume(&b, path, "x", &f, &err), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	fputs(bad, f);
	fclose(f);
	assert_int_equal(points_resume(&b, path, "x", &f, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":3: not a measured point"));
	err = (struct err){ 0 };
	assert_int_equal(points_resume(&b, path, "y", &f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is of another measurement"));
	unlink(path);
}

/* One without points holds back no other measurement. */
static void a_state_without_points(void **state)
{
	char path[] = "/tmp/gpemu-measure.XXXXXX";
	struct points p;
	struct err err = { 0 };
	int fd = mkstemp(path);
	FILE *f;

	(void)state;
	points_all(&p, 64 * MIB);
	assert_int_equal(points_resume(&p, path, "much", &f, &err), 0);
	fclose(f);
	assert_int_equal(points_resume(&p, path, "less", &f, &err), 0);
	fclose(f);
	assert_int_equal(lseek(fd, 0, SEEK_END),
			 sizeof("{\"measure\": \"less\"}"));
	close(fd);
	unlink(path);
}

/* A file that is none is not touched. */
static void another_file_as_state(void **state)
{
	static const char text[] = "{\"accuracy\": 0.75}";
	char path[] = "/tmp/gpemu-measure.XXXXXX", read_back[64] = "";
	struct points p;
	struct err err = { 0 };
	int fd = mkstemp(path);
	FILE *f;

	(void)state;
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	points_all(&p, 64 * MIB);
	assert_int_equal(points_resume(&p, path, "x", &f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a state file"));
	assert_int_equal(pread(fd, read_back, sizeof(read_back), 0),
			 strlen(text));
	assert_string_equal(read_back, text);
	close(fd);
	unlink(path);
	/* one that would wait for a writer */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(points_resume(&p, path, "x", &f, &err), -EINVAL);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server),
		cmocka_unit_test(an_object_store),
		cmocka_unit_test(budgets),
		cmocka_unit_test(a_disk),
		cmocka_unit_test(a_curved_disk),
		cmocka_unit_test(a_quota),
		cmocka_unit_test(one_server),
		cmocka_unit_test(tails_are_those_of_the_load),
		cmocka_unit_test(the_mean_stays),
		cmocka_unit_test(too_few_points),
		cmocka_unit_test(a_state_file),
		cmocka_unit_test(a_state_without_points),
		cmocka_unit_test(another_file_as_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
