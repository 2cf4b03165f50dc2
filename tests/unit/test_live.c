/* SPDX-License-Identifier: MIT */
/* The state of a live run on disk: what comes back, and what is refused. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/live/held.h"
#include "sched/live/live.h"
#include "sched/live/state.h"

struct rig {
	char dir[32];
	struct cluster cluster;
	struct sched_workload workload;
	struct plugin_choice policy, placement;
	json_t *identity;
	struct live_config c;
};

static const char trace[] = "name,arrival_s,work_s,gpus\n"
			    "a,0,100,1\n"
			    "b,0,100,2\n"
			    "c,50,100,1\n";
static const char turns[] =
	"name,work_s,storage_s,prep_s,gpu_s,network_s,count\n"
	"t,9,1,1,1,1,2\n";

static char *const command[] = { (char *)"true", NULL };

static void rig_init(struct rig *r, const char *jobs)
{
	struct err err = { 0 };

	memset(r, 0, sizeof(*r));
	strcpy(r->dir, "/tmp/gpemu-live-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	assert_int_equal(
		nodes_parse("2*gpus=2,cpus=4,memory=1G", &r->cluster, &err), 0);
	assert_int_equal(workload_parse(jobs, strlen(jobs), "t", &r->cluster,
					&r->workload, &err),
			 0);
	assert_int_equal(plugin_choose(schedule_table, "policy", "srtf",
				       &r->policy, &err),
			 0);
	assert_int_equal(plugin_choose(placement_table, "placement",
				       "proportional", &r->placement, &err),
			 0);
	r->identity = json_pack("{s:s}", "policy", "srtf");
	r->c = (struct live_config){ .workload = &r->workload,
				     .time_scale = 1,
				     .step_ns = NS_PER_S,
				     .dir = r->dir,
				     .command = command,
				     .identity = r->identity };
	r->c.of = (struct sched_run_config){ .cluster = &r->cluster,
					     .jobs = r->workload.jobs,
					     .n_jobs = r->workload.n,
					     .n_users = r->workload.n_users,
					     .policy = &r->policy,
					     .placement = &r->placement };
}

static void rig_fini(struct rig *r)
{
	static const char *const files[] = { "state.json", "clock" };
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", r->dir, files[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(r->dir), 0);
	plugin_choice_fini(&r->policy);
	plugin_choice_fini(&r->placement);
	workload_fini(&r->workload);
	cluster_fini(&r->cluster);
	json_decref(r->identity);
}

/* Job a runs on a GPU, and has another one yet; b waits, c will come. */
static void save_some(struct rig *r)
{
	struct sched_part now = { .node = 1,
				  .gpus = 1,
				  .gpu_milli = GPU_MILLI };
	struct sched_part before = { .node = 0,
				     .gpus = 2,
				     .gpu_milli = GPU_MILLI };
	struct err err = { 0 };
	struct sched_job of;
	struct live l;

	assert_int_equal(live_init(&l, &r->c, &err), 0);
	assert_false(l.resumed);
	l.run.jobs[0].state = l.run.jobs[1].state = JOB_WAITING;
	plan_add(&l.run.plan, ACTION_START, 0, &now, 1);
	assert_int_equal(plan_apply(&l.run.plan, &l.run.cluster, l.run.jobs,
				    l.run.n, 0, &err),
			 0);
	l.run.jobs[0].done = .25;
	l.live[0].held = malloc(sizeof(before));
	*l.live[0].held = before;
	l.live[0].n_held = 1;
	l.live[0].n_ended = 3;
	cluster_take(&l.held, &before);
	/* since 3 s; and b ran for two */
	of = (struct sched_job){ .parts = &now, .n_parts = 1 };
	assert_int_equal(history_begin(&l.history, 1, &of, 1 * NS_PER_S), 0);
	history_end(&l.history, 1, 3 * NS_PER_S);
	of.parts = &before;
	assert_int_equal(history_begin(&l.history, 0, &of, 3 * NS_PER_S), 0);
	l.run.now_ns = 7 * NS_PER_S;
	l.use_ns = 5e9;
	assert_int_equal(state_save(&l, true, &err), 0);
	live_fini(&l);
}

/* rig_fini finds an empty folder. */
static void what_a_killed_save_left_is_removed(void **state)
{
	struct err err = { 0 };
	char path[96];
	struct rig r;
	struct live l;
	FILE *f;

	(void)state;
	rig_init(&r, trace);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path),
			 "%s/.state.json.00c0ffee0123456%d.tmp", r.dir, i);
		f = fopen(path, "we");
		assert_int_equal(fclose(f), 0);
		assert_int_equal(live_init(&l, &r.c, &err), 0);
		assert_int_equal(l.resumed, i);
		live_fini(&l);
		assert_int_equal(access(path, F_OK), -1);
		if (i == 0)
			save_some(&r);
	}
	rig_fini(&r);
}

static char *read_state(const struct rig *r, size_t *n)
{
	char path[64], *text;

	snprintf(path, sizeof(path), "%s/state.json", r->dir);
	assert_int_equal(util_read_file(path, SIZE_MAX, &text, n), 0);
	return text;
}

/* A new run of another folder, into which a state is read. */
static int parse(const struct rig *r, const char *text, size_t n,
		 struct err *err)
{
	struct live_config c = r->c;
	struct live l;
	int code;

	c.dir = "/nowhere";
	assert_int_equal(live_init(&l, &c, err), 0);
	code = state_parse(&l, text, n, err);
	live_fini(&l);
	return code;
}

static void it_comes_back(void **state)
{
	struct err err = { 0 };
	struct rig r;
	struct live l;

	(void)state;
	rig_init(&r, trace);
	save_some(&r);
	if (live_init(&l, &r.c, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(l.resumed);
	assert_int_equal(l.run.now_ns, 7 * NS_PER_S);
	assert_true(l.use_ns == 5e9);
	assert_int_equal(l.run.n_arrived, 2);
	assert_int_equal(l.run.n_active, 2);
	assert_int_equal(l.run.jobs[0].state, JOB_RUNNING);
	assert_int_equal(l.run.jobs[0].parts[0].node, 1);
	assert_int_equal(l.live[0].n_ended, 3);
	/* no process runs, and no checkpoint is there */
	assert_int_equal(l.live[0].n_held, 0);
	assert_int_equal(l.held.free.gpu_milli, l.held.whole.gpu_milli);
	assert_true(l.run.jobs[0].done == 0);
	assert_int_equal(l.run.cluster.free.gpu_milli,
			 l.run.cluster.whole.gpu_milli - GPU_MILLI);
	assert_int_equal(l.run.jobs[1].state, JOB_WAITING);
	assert_int_equal(l.run.jobs[2].state, JOB_ABSENT);
	/* what ran, until the state was written: nobody says when a ended */
	assert_int_equal(l.history.n, 2);
	assert_int_equal(l.history.runs[0].job, 1);
	assert_int_equal(l.history.runs[0].from_ns, 1 * NS_PER_S);
	assert_int_equal(l.history.runs[0].until_ns, 3 * NS_PER_S);
	assert_int_equal(l.history.parts[1].gpus, 2);
	assert_int_equal(l.history.runs[1].until_ns, 7 * NS_PER_S);
	live_fini(&l);
	rig_fini(&r);
}

/* Two jobs, and their processes, take turns on one GPU. */
static void those_who_take_turns_come_back(void **state)
{
	struct sched_part now = { .node = 1,
				  .gpus = 1,
				  .gpu_milli = GPU_MILLI };
	struct err err = { 0 };
	struct rig r;
	struct live l;

	(void)state;
	rig_init(&r, turns);
	assert_int_equal(live_init(&l, &r.c, &err), 0);
	l.run.jobs[0].state = l.run.jobs[1].state = JOB_WAITING;
	plan_add(&l.run.plan, ACTION_START, 0, &now, 1);
	plan_group(&l.run.plan, 1, 0);
	if (plan_apply(&l.run.plan, &l.run.cluster, l.run.jobs, l.run.n, 0,
		       &err) < 0)
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < 2; i++) {
		l.run.active[l.run.n_active++] = i;
		group_join(&l, i);
		assert_int_equal(held_take(&l, i), 0);
	}
	assert_true(group_stays(&l, 0) && group_stays(&l, 1));
	assert_int_equal(l.held.free.gpu_milli,
			 l.held.whole.gpu_milli - GPU_MILLI);
	assert_int_equal(state_save(&l, false, &err), 0);
	live_fini(&l);
	/* the processes are gone, and have given back what they held */
	if (live_init(&l, &r.c, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(l.last_group, 1);
	assert_ptr_equal(l.run.jobs[0].mate, &l.run.jobs[1]);
	assert_ptr_equal(l.run.jobs[1].mate, &l.run.jobs[0]);
	assert_int_equal(l.held.free.gpu_milli, l.held.whole.gpu_milli);
	assert_int_equal(l.run.cluster.free.gpu_milli,
			 l.run.cluster.whole.gpu_milli - GPU_MILLI);
	live_fini(&l);
	rig_fini(&r);
}

/* A clock that ran since 1970, and a million times as fast: the state of that
 * can be read again. */
static void a_clock_that_ran_on_has_an_end(void **state)
{
	struct err err = { 0 };
	char path[64];
	struct rig r;
	struct live l;
	json_t *j;

	(void)state;
	rig_init(&r, trace);
	r.c.time_scale = 1e-6;
	save_some(&r);
	snprintf(path, sizeof(path), "%s/state.json", r.dir);
	j = json_load_file(path, 0, NULL);
	json_object_set_new(j, "paused", json_false());
	json_object_set_new(j, "real_ns", json_integer(0));
	assert_int_equal(json_replace(j, path, &err), 0);
	json_decref(j);
	for (int i = 0; i < 2; i++) {
		if (live_init(&l, &r.c, &err) < 0)
			fail_msg("%s", err.text);
		assert_true(l.run.now_ns > 30ull * 365 * 24 * 3600 * NS_PER_S);
		assert_int_equal(state_save(&l, false, &err), 0);
		live_fini(&l);
	}
	rig_fini(&r);
}

/* The time of a run that goes on, from a state of 7 s with a clock that runs
 * since 1970, and the file of a clock. */
static uint64_t goes_on(const char *clock)
{
	struct rig r;
	struct err err = { 0 };
	uint64_t now_ns;
	char path[64];
	struct live l;
	json_t *j;
	FILE *f;

	rig_init(&r, trace);
	save_some(&r);
	snprintf(path, sizeof(path), "%s/state.json", r.dir);
	j = json_load_file(path, 0, NULL);
	json_object_set_new(j, "paused", json_false());
	json_object_set_new(j, "real_ns", json_integer(0));
	assert_int_equal(json_replace(j, path, &err), 0);
	json_decref(j);
	snprintf(path, sizeof(path), "%s/clock", r.dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(clock, f);
	fclose(f);
	if (live_init(&l, &r.c, &err) < 0)
		fail_msg("%s", err.text);
	now_ns = l.run.now_ns;
	/* what goes on is saved before anything else, and the clock runs */
	assert_true(l.unsaved);
	assert_int_equal(state_save(&l, false, &err), 0);
	live_fini(&l);
	f = fopen(path, "r");
	assert_int_equal(fscanf(f, " %63s", path), 1);
	assert_string_equal(path, "-1");
	fclose(f);
	rig_fini(&r);
	return now_ns;
}

static void a_clock_that_stopped_without_a_state_stands(void **state)
{
	const uint64_t years = 30ull * 365 * 24 * 3600 * NS_PER_S;

	(void)state;
	assert_int_equal(goes_on("8000000000 12345"), 8 * NS_PER_S);
	/* of an older state; runs; damaged */
	assert_true(goes_on("6000000000 12345") > years);
	assert_true(goes_on("-1 -1") > years);
	assert_true(goes_on("8000000000 -1") > years);
	assert_true(goes_on("8000000000") > years);
	assert_true(goes_on("") > years);
}

/* Replace `from` in the text, and read it. */
static void refused(const struct rig *r, const char *text, const char *from,
		    const char *to, const char *why)
{
	const char *at = strstr(text, from);
	struct err err = { 0 };
	char *changed;
	int n;

	assert_non_null(at);
	n = asprintf(&changed, "%.*s%s%s", (int)(at - text), text, to,
		     at + strlen(from));
	assert_int_equal(parse(r, changed, (size_t)n, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("'%s' has no '%s'", err.text, why);
	free(changed);
}

static void what_is_wrong_is_refused(void **state)
{
	struct err err = { 0 };
	struct rig r;
	char *text;
	size_t n;

	(void)state;
	rig_init(&r, trace);
	save_some(&r);
	text = read_state(&r, &n);
	assert_int_equal(parse(&r, text, n, &err), 0);
	refused(&r, text, "srtf", "fifo", "a run with another policy");
	refused(&r, text, "\"a\"", "\"x\"", "its job 0 is not a");
	refused(&r, text, "\"running\"", "\"flying\"", "damaged at job a");
	refused(&r, text, "\"running\"", "\"waiting\"", "damaged at job a");
	refused(&r, text, "\"waiting\"", "\"running\"", "damaged at job b");
	refused(&r, text, "0.25", "1.5", "damaged at job a");
	refused(&r, text, "\"since_ns\": 0", "\"since_ns\": 8000000000",
		"ahead of its time");
	refused(&r, text, "7000000000", "-1", "damaged");
	refused(&r, text, "\"processes\": 3", "\"processes\": -3",
		"damaged at job a");
	/* a node that is not there: of what it gets, and of what it has */
	refused(&r, text, "\"parts\": [\n        [\n          1,",
		"\"parts\": [\n        [\n          9,", "job a");
	refused(&r, text, "\"held\": [\n        [\n          0,",
		"\"held\": [\n        [\n          9,", "damaged at job a");
	/* runs of a job, and on a GPU, that are not there; that end before they
	 * begin, or not at all */
	refused(&r, text, "      1,\n      1000000000,",
		"      3,\n      1000000000,", "damaged at its runs");
	refused(&r, text, "3000000000,\n      [\n        [\n          1,",
		"3000000000,\n      [\n        [\n          2,",
		"damaged at its runs");
	refused(&r, text, "      1,\n      1000000000,",
		"      1,\n      3000000001,", "damaged at its runs");
	refused(&r, text, "1000000000,\n      3000000000",
		"1000000000,\n      -1", "damaged at its runs");
	free(text);
	rig_fini(&r);
}

/* Each byte lost or changed: an error or a state, and no crash. */
static void any_bytes_are_safe(void **state)
{
	struct rig r;
	char *text;
	size_t n;

	(void)state;
	rig_init(&r, trace);
	save_some(&r);
	text = read_state(&r, &n);
	for (size_t i = 0; i < n; i++) {
		struct err err = { 0 };
		char was = text[i];

		assert_int_equal(parse(&r, text, i, &err),
				 i + 1 < n ? -EINVAL : 0);
		text[i] = was == '9' ? '0' : '9';
		err = (struct err){ 0 };
		if (parse(&r, text, n, &err) < 0)
			assert_true(*err.text);
		text[i] = was;
	}
	free(text);
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_comes_back),
		cmocka_unit_test(what_a_killed_save_left_is_removed),
		cmocka_unit_test(those_who_take_turns_come_back),
		cmocka_unit_test(a_clock_that_ran_on_has_an_end),
		cmocka_unit_test(a_clock_that_stopped_without_a_state_stands),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(any_bytes_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
