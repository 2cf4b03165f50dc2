/* SPDX-License-Identifier: MIT */
/* Who ran where: runs, rows and lanes; what is computed from a schedule. */
#include "tests/unit/test.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/text/trace_events.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/chart/history.h"
#include "sched/core/frag.h"
#include "sched/sim.h"

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static struct cluster make(const char *nodes)
{
	struct cluster c = { 0 };
	struct err err = { 0 };

	if (nodes_parse(nodes, &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

/* A run on some GPUs of a node; 0: on its CPUs. */
static void run(struct history *h, uint32_t job, uint32_t node, uint32_t gpus,
		uint64_t from_ns, uint64_t until_ns)
{
	struct sched_part p = { .node = node,
				.gpus = gpus,
				.gpu_milli = GPU_MILLI };
	struct sched_job of = { .parts = &p, .n_parts = 1 };

	assert_int_equal(history_begin(h, job, &of, from_ns), 0);
	history_end(h, job, until_ns);
}

static void a_run_goes_on_with_the_same_parts(void **state)
{
	struct history h;

	(void)state;
	assert_int_equal(history_init(&h, 2), 0);
	run(&h, 0, 0, 1, 5, 10);
	run(&h, 0, 0, 1, 10, 20);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.runs[0].until_ns, 20);
	/* on another GPU, and after a pause */
	run(&h, 0, 0, 2, 20, 30);
	run(&h, 0, 0, 2, 31, 40);
	assert_int_equal(h.n, 3);
	/* of a job that does not run */
	history_end(&h, 0, 99);
	history_end(&h, 1, 99);
	assert_int_equal(h.runs[2].until_ns, 40);
	history_fini(&h);
}

static void bars_that_overlap_are_in_lanes(void **state)
{
	struct cluster c = make("2*gpus=2,cpus=4");
	struct cluster cpus = make("2*cpus=4");
	struct history_rows r;
	struct history h;

	(void)state;
	assert_int_equal(history_init(&h, 9), 0);
	run(&h, 0, 1, 3, 0, 10); /* both GPUs of node 1 */
	run(&h, 1, 1, 1, 4, 6);
	run(&h, 2, 1, 1, 8, 12); /* where that one was */
	run(&h, 3, 1, 1, 12, 20);
	run(&h, 4, 0, 1, 30, 30); /* no time */
	run(&h, 5, 0, 0, 40, 50);
	assert_int_equal(history_rows_make(&h, &c, &r), 0);
	/* node 0: two GPUs and its CPUs; node 1: two GPUs */
	assert_int_equal(r.n, 5);
	assert_int_equal(r.rows[2].gpu, -1);
	assert_int_equal(r.rows[3].node, 1);
	assert_int_equal(r.n_bars, 6);
	assert_int_equal(r.bars[0].run, 5);
	assert_int_equal(r.bars[0].row, 2);
	/* GPU 0 of node 1 */
	assert_int_equal(r.rows[3].n_lanes, 2);
	for (size_t i = 1; i <= 3; i++) {
		assert_int_equal(r.bars[i].run, i - 1);
		assert_int_equal(r.bars[i].row, 3);
		assert_int_equal(r.bars[i].lane, i > 1);
		assert_int_equal(r.bars[i].n_lanes, 2);
	}
	/* alone, from when both have ended */
	assert_int_equal(r.bars[4].run, 3);
	assert_int_equal(r.bars[4].lane, 0);
	assert_int_equal(r.bars[4].n_lanes, 1);
	/* the other GPU of the first run */
	assert_int_equal(r.bars[5].row, 4);
	assert_int_equal(r.bars[5].n_lanes, 1);
	history_rows_fini(&r);
	history_fini(&h);
	/* nodes without GPUs have a row each, used or not */
	assert_int_equal(history_init(&h, 1), 0);
	assert_int_equal(history_rows_make(&h, &cpus, &r), 0);
	assert_int_equal(r.n, 2);
	assert_int_equal(r.n_bars, 0);
	history_rows_fini(&r);
	history_fini(&h);
	cluster_fini(&cpus);
	cluster_fini(&c);
}

static void any_name_is_a_json_string(void **state)
{
	static const char *const names[] = { "a\"b\\c", "tab\there", "\xff\xc3",
					     "gr\xc3\xbc\xc3\x9f" };
	static const char *const expected[] = { "a\"b\\c", "tab\there", "??",
						"gr\xc3\xbc\xc3\x9f" };
	char path[] = "/tmp/gpemu-test-XXXXXX";
	struct trace_events t;
	struct err err = { 0 };
	int fd = mkstemp(path);
	json_t *j;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(trace_events_open(&t, path, &err), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		trace_events_process(&t, i, names[i]);
	assert_int_equal(trace_events_close(&t, &err), 0);
	assert_int_equal(json_read(path, &j, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		/* each has two events */
		const json_t *e = json_array_get(j, 2 * i);

		assert_string_equal(
			json_string_value(json_object_get(
				json_object_get(e, "args"), "name")),
			expected[i]);
	}
	json_decref(j);
	/* none at all */
	assert_int_equal(trace_events_open(&t, path, &err), 0);
	assert_int_equal(trace_events_close(&t, &err), 0);
	assert_int_equal(json_read(path, &j, &err), 0);
	assert_int_equal(json_array_size(j), 0);
	json_decref(j);
	unlink(path);
	/* nothing is left to close */
	assert_int_equal(trace_events_open(&t, "/nowhere/x", &err), -ENOENT);
	err = (struct err){ 0 };
	assert_int_equal(trace_events_open(&t, "/dev/full", &err), 0);
	assert_true(trace_events_close(&t, &err) < 0);
	assert_non_null(strstr(err.text, "/dev/full: "));
}

/* Two jobs of 10 s on a GPU, one after the other. */
static void finish_time_ratios_are_over_a_fair_share(void **state)
{
	struct sched_job jobs[3];
	struct sched_workload w = {
		.jobs = jobs, .n = 2, .n_users = 2, .n_classes = 1
	};
	struct sim_result r = { .gpus = 1 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		jobs[i] = workload_job();
		jobs[i].user = i % 2;
		jobs[i].work_ns = 10. * NS_PER_S;
		jobs[i].run_ns = 10 * NS_PER_S;
		jobs[i].gpu_ns = 10. * NS_PER_S;
		jobs[i].end_ns = (i + 1) * 10 * NS_PER_S;
	}
	assert_int_equal(result_make(&w, jobs, &r), 0);
	/* two were there during the first, 1.5 during the second */
	assert_near(r.users[0].finish_time, 10. / (2 * 10));
	assert_near(r.users[1].finish_time, 20. / (1.5 * 10));
	assert_near(r.all.finish_time, (.5 + 4. / 3) / 2);
	assert_near(r.all.finish_time_max, 4. / 3);
	assert_near(r.users[1].gpu_s, 10);
	/* slowdowns are 1 and 2 */
	assert_near(r.all.jain, 9. / (2 * 5));
	assert_near(r.users[1].jain, 1);
	assert_near(r.users[1].slowdown_max, 2);
	result_fini(&r);
	/* a share of two of three GPUs is more than a job of one can use */
	r = (struct sim_result){ .gpus = 3 };
	assert_int_equal(result_make(&w, jobs, &r), 0);
	assert_near(r.all.finish_time_max, 2);
	result_fini(&r);
	/* one that comes when the first one is done does not count for it */
	jobs[2].arrival_ns = 10 * NS_PER_S;
	w.n = 3;
	r = (struct sim_result){ .gpus = 1 };
	assert_int_equal(result_make(&w, jobs, &r), 0);
	/* the second: 2 of the time, then 2; the third: 2, then 1 */
	assert_near(r.users[1].finish_time, 20. / (2 * 10));
	assert_near(r.users[0].finish_time, (.5 + 20. / (1.5 * 10)) / 2);
	result_fini(&r);
	/* without GPUs nothing is said */
	r = (struct sim_result){ 0 };
	assert_int_equal(result_make(&w, jobs, &r), 0);
	assert_true(r.all.finish_time == 0);
	result_fini(&r);
}

/* At each step the same as a look at all nodes. */
static void a_meter_of_fragmentation_sees_changes(void **state)
{
	struct cluster c = make("3*gpus=4,cpus=8");
	struct sched_part p = { .gpus = 1,
				.gpu_milli = 600,
				.cpu_milli = 1000 };
	struct sched_job jobs[3];
	struct frag_meter m;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		jobs[i] = workload_job();
	jobs[0].gpu_milli = 600;
	jobs[1].n_gpus = 2;
	/* more than a node has: it needs all of one */
	jobs[2].n_gpus = 8;
	assert_int_equal(frag_meter_init(&m, &c, jobs, 3), 0);
	assert_near(frag_meter_see(&m, &c), 0);
	for (uint32_t i = 0; i < 9; i++) {
		p.node = i % 3;
		p.gpus = 1u << (i / 3);
		cluster_take(&c, &p);
		assert_near(frag_meter_see(&m, &c), frag_cluster(&m.f, &c));
	}
	/* per node .4 of three GPUs and one whole: lost are 1.2 to the share,
	 * all 2.2 to the others */
	assert_near(frag_meter_see(&m, &c), 3 * (1200 + 2200 + 2200) / 3.);
	frag_meter_fini(&m);
	cluster_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_goes_on_with_the_same_parts),
		cmocka_unit_test(bars_that_overlap_are_in_lanes),
		cmocka_unit_test(any_name_is_a_json_string),
		cmocka_unit_test(finish_time_ratios_are_over_a_fair_share),
		cmocka_unit_test(a_meter_of_fragmentation_sees_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
