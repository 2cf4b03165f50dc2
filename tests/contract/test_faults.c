/* SPDX-License-Identifier: MIT */
/* Faults in the file server, without FUSE. */
#include "tests/contract/server_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"
#include "fs/control/ctl.h"

enum { N_THREADS = 6 };

static struct server *start(struct fixture *f, const char *rule)
{
	struct server *s = rig_start(f, "lru", "ideal");

	rig_add(s, rule);
	return s;
}

/* --- errors ------------------------------------------------------------- */

static void every_nth_read_fails_and_leaves_nothing(void **state)
{
	static const char *const policies[] = { "lru", "none", "minio" };

	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		struct server *s = rig_start(*state, policies[p], "ideal");
		json_int_t misses;

		rig_add(s, "op=read,every=3,errno=EIO");
		/* the third, sixth, ... of misses, then of hits */
		for (int i = 0; i < 3 * N_FILES; i++)
			assert_int_equal(rig_read(*state, s, i % N_FILES),
					 i % 3 == 2 ? -EIO : 0);
		assert_int_equal(rig_fault(s, 0, "matched"), 3 * N_FILES);
		assert_int_equal(rig_fault(s, 0, "fired"), N_FILES);
		/* a failed access is not counted */
		misses = strcmp(policies[p], "none") ? N_FILES : 2 * N_FILES;
		assert_int_equal(rig_stat(s, "misses"), misses);
		assert_int_equal(rig_stat(s, "hits"), 2 * N_FILES - misses);
		assert_int_equal(rig_stat(s, "backend_reads"), misses);
		assert_int_equal(server_fault_clear(s, 1, NULL), 0);
		for (int i = 0; i < N_FILES; i++)
			assert_int_equal(rig_read(*state, s, i), 0);
		server_free(s);
	}
}

static void rules_are_for_operations_and_paths(void **state)
{
	struct fixture *f = *state;
	struct server *s = start(f, "op=open,errno=EACCES");
	char path[256], rule[600];
	struct wait w;

	assert_int_equal(tree_path(&f->tree, f->node[3], path, sizeof(path)),
			 0);
	snprintf(rule, sizeof(rule),
		 "op=lookup,path=%s,errno=ENOENT;op=read,path=%s,count=1,"
		 "errno=ENOENT",
		 path, path);
	assert_false(server_watches(s, f->node[3]));
	rig_add(s, rule);
	assert_int_equal(rig_metadata(f, s, STORAGE_OPEN, 1), -EACCES);
	assert_int_equal(rig_metadata(f, s, STORAGE_LOOKUP, 1), 0);
	assert_int_equal(rig_metadata(f, s, STORAGE_LOOKUP, 3), -ENOENT);
	assert_int_equal(rig_metadata(f, s, STORAGE_READDIR, 3), 0);
	assert_true(server_watches(s, f->node[3]));
	assert_false(server_watches(s, f->node[4]));
	assert_int_equal(rig_read(f, s, 4), 0);
	assert_int_equal(rig_read(f, s, 3), -ENOENT);
	assert_int_equal(rig_read(f, s, 3), 0);
	/* its count is used up */
	assert_false(server_watches(s, f->node[3]));
	/* the end of a file is free of faults, too; and so is a read of the
	 * server itself */
	rig_add(s, "errno=EIO");
	wait_init(&w, malloc(MAX_BYTES));
	w.request = (struct read_request){ .handle = server_open(s, f->node[3]),
					   .offset = f->bytes[3],
					   .bytes = 10,
					   .client = &w,
					   .reply = wait_reply };
	server_read(s, &w.request);
	assert_int_equal(w.error, 0);
	w.is_done = false;
	w.request.client = NULL;
	w.request.offset = 0;
	server_read(s, &w.request);
	wait_for(&w);
	assert_int_equal(w.error, 0);
	free(w.into);
	server_close(s, w.request.handle);
	server_free(s);
}

static void probability_is_the_same_in_two_servers(void **state)
{
	char seen[2][201] = { "" };

	for (int k = 0; k < 2; k++) {
		struct server *s = start(*state, "op=read,p=.3,errno=EIO");

		for (int i = 0; i < 200; i++)
			seen[k][i] = rig_read(*state, s, i % N_FILES) ? 'x'
								      : '.';
		assert_in_range(rig_fault(s, 0, "fired"), 35, 85);
		server_free(s);
	}
	assert_string_equal(seen[0], seen[1]);
}

static void all_rules_count_what_they_match(void **state)
{
	struct server *s = start(*state, "op=read,every=2,errno=EIO;"
					 "op=read,every=3,errno=ESTALE");
	static const int want[] = { 0, -EIO, -ESTALE, -EIO, 0, -EIO };

	for (int i = 0; i < 12; i++)
		assert_int_equal(rig_read(*state, s, i), want[i % 6]);
	assert_int_equal(rig_fault(s, 0, "fired"), 6);
	assert_int_equal(rig_fault(s, 1, "fired"), 4);
	assert_int_equal(server_reset(s, NULL), 0);
	assert_int_equal(rig_fault(s, 0, "matched"), 0);
	assert_int_equal(rig_fault(s, 0, "fired"), 0);
	server_free(s);
}

/* --- waiting ------------------------------------------------------------ */

static void delays_are_added_and_errors_may_follow(void **state)
{
	struct fixture *f = *state;
	struct server *s = start(f, "op=read,every=2,delay=30ms;"
				    "op=read,every=3,delay=20ms,"
				    "errno=ETIMEDOUT");
	static const struct {
		uint64_t delay_ms;
		int error;
	} want[] = { { 0, 0 },	{ 30, 0 }, { 20, -ETIMEDOUT },
		     { 30, 0 }, { 0, 0 },  { 50, -ETIMEDOUT } };

	for (int i = 0; i < 12; i++) {
		uint64_t from = tick_now(f->tick);

		assert_int_equal(rig_read(f, s, i), want[i % 6].error);
		assert_true(tick_now(f->tick) - from >=
			    want[i % 6].delay_ms * NS_PER_MS);
	}
	assert_int_equal(rig_stat(s, "misses"), 8);
	assert_int_equal(rig_stat(s, "inflight"), 0);
	server_free(s);
}

static void a_delay_comes_on_top_of_the_device(void **state)
{
	struct fixture *f = *state;
	char path[] = "/tmp/gpemu-faults-XXXXXX.yaml";
	int fd = mkstemps(path, 5);
	struct server *s;

	assert_true(fd >= 0);
	dprintf(fd, "name: slow\nsource: a test\nread:\n  source: a test\n"
		    "  latency: {kind: const, value: 30ms}\n");
	close(fd);
	s = rig_start(f, "none", path);
	unlink(path);
	rig_add(s, "op=read,delay=40ms");
	for (int i = 0; i < 3; i++) {
		uint64_t from = tick_now(f->tick);

		assert_int_equal(rig_read(f, s, i), 0);
		assert_true(tick_now(f->tick) - from >= 70 * NS_PER_MS);
	}
	server_free(s);
}

static void what_is_stuck_is_freed_by_clear(void **state)
{
	struct fixture *f = *state;
	struct server *s = start(f, "op=read,stuck;op=open,stuck");
	struct wait w[N_FILES];

	for (int i = 0; i < N_FILES; i++)
		rig_start_read(f, s, &w[i], i);
	for (int i = 0; i < N_FILES; i++)
		assert_false(wait_is_done(&w[i]));
	assert_int_equal(rig_fault(s, 0, "held"), N_FILES);
	assert_int_equal(rig_stat(s, "misses"), 0);
	assert_int_equal(server_fault_clear(s, 2, NULL), 0);
	assert_int_equal(server_fault_clear(s, 2, NULL), -ENOENT);
	assert_int_equal(rig_fault(s, 0, "held"), N_FILES);
	assert_int_equal(server_fault_clear(s, 1, NULL), 0);
	for (int i = 0; i < N_FILES; i++)
		assert_int_equal(rig_end_read(f, s, &w[i], i), 0);
	assert_int_equal(rig_stat(s, "misses"), N_FILES);
	assert_false(server_watches(s, TREE_NONE));
	server_free(s);
}

static void stuck_for_a_while_goes_on_by_itself(void **state)
{
	struct fixture *f = *state;
	struct server *s = start(f, "op=read,stuck,for=30ms;op=read,delay=1h");
	uint64_t from = tick_now(f->tick);

	assert_int_equal(rig_read(f, s, 0), 0);
	assert_true(tick_now(f->tick) - from >= 30 * NS_PER_MS);
	assert_int_equal(rig_fault(s, 0, "held"), 0);
	server_free(s);
}

static bool everybody(void *client)
{
	(void)client;
	return true;
}

static void a_signal_ends_the_wait(void **state)
{
	struct fixture *f = *state;
	struct server *s = start(f, "op=read,first=1,stuck;"
				    "op=read,after=1,delay=1h");
	struct wait w[2];

	rig_start_read(f, s, &w[0], 0);
	rig_start_read(f, s, &w[1], 1);
	server_interrupt(s, &s); /* no client of that kind waits */
	assert_int_equal(rig_fault(s, 0, "held") + rig_fault(s, 1, "held"), 2);
	server_interrupt(s, &w[1]);
	assert_int_equal(rig_end_read(f, s, &w[1], 1), -EINTR);
	server_interrupt(s, &w[0]);
	server_interrupt(s, &w[0]);
	assert_int_equal(rig_end_read(f, s, &w[0], 0), -EINTR);
	/* a signal before the wait */
	server_on_interrupt(s, everybody);
	assert_int_equal(rig_read(f, s, 0), -EINTR);
	assert_int_equal(rig_fault(s, 1, "held"), 0);
	server_free(s);
}

static void what_waits_at_the_end_is_answered(void **state)
{
	struct fixture *f = *state;
	struct server *s = start(f, "op=read,every=2,stuck;op=read,delay=1h,"
				    "errno=EIO");
	struct wait w[N_FILES];

	for (int i = 0; i < N_FILES; i++)
		rig_start_read(f, s, &w[i], i);
	server_stop(s);
	for (int i = 0; i < N_FILES; i++) {
		assert_true(wait_is_done(&w[i]));
		assert_int_equal(rig_end_read(f, s, &w[i], i), -ECONNABORTED);
	}
	server_free(s);
}

static struct source_ops watched;
static const struct source_ops *whole;
static int n_nowait; /* atomic: reads that a thread must not wait for */

static int watch_read(void *state, const struct tree *tree, uint32_t node,
		      void *buf, size_t n, uint64_t offset, bool nowait)
{
	__atomic_fetch_add(&n_nowait, nowait, __ATOMIC_RELAXED);
	return whole->read(state, tree, node, buf, n, offset, nowait);
}

/* Not by the timing thread, which would generate the bytes of a synth: source
 * while others wait for their deadline: a reader thread may take as long. */
static void what_was_held_is_read_by_a_reader(void **state)
{
	static const char *const policies[] = { "lru", "none" };
	struct fixture *f = *state;

	whole = f->source;
	watched = *whole;
	watched.read = watch_read;
	f->source = &watched;
	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		struct server *s = rig_start(f, policies[p], "ideal");

		n_nowait = 0;
		assert_int_equal(rig_read(f, s, 0), 0);
		assert_int_equal(n_nowait, 1);
		rig_add(s, "op=read,delay=2ms");
		for (int i = 1; i < N_FILES; i++)
			assert_int_equal(rig_read(f, s, i), 0);
		assert_int_equal(n_nowait, 1);
		server_free(s);
	}
	f->source = whole;
}

static struct wait opened;

static int wait_for_open(struct fetch *f)
{
	struct timespec end;
	int r = 0;

	(void)f;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 5;
	pthread_mutex_lock(&opened.lock);
	while (r == 0 && !opened.is_done)
		r = pthread_cond_timedwait(&opened.done, &opened.lock, &end);
	pthread_mutex_unlock(&opened.lock);
	return -r;
}

/* Nor does the timing thread write to a file, which may wait for a disk. */
static void what_was_held_is_written_by_a_reader(void **state)
{
	struct fixture *f = *state;
	struct server *s = start(f, "op=write,delay=1ms;op=open,delay=100ms");
	struct wait write;

	wait_init(&opened, NULL);
	wait_init(&write, NULL);
	opened.fetch = (struct fetch){ .op = STORAGE_OPEN,
				       .node = f->node[0],
				       .arrival = tick_now(f->tick),
				       .client = &opened,
				       .done = wait_metadata };
	write.fetch = opened.fetch;
	write.fetch.op = STORAGE_WRITE;
	write.fetch.client = &write;
	write.fetch.work = wait_for_open;
	write.fetch.here = true;
	server_operate(s, &opened.fetch);
	server_operate(s, &write.fetch);
	wait_for(&write);
	assert_int_equal(write.error, 0);
	server_free(s);
}

/* --- all at once -------------------------------------------------------- */

struct reader {
	struct fixture *f;
	struct server *s;
	uint64_t index;
	int failed;
	struct wait *now; /* atomic: whom to interrupt */
	bool *stop;	  /* atomic */
	pthread_t thread;
};

static void *reader(void *arg)
{
	struct reader *r = arg;
	struct rng rng = rng_stream(1, "reader", r->index);

	while (!__atomic_load_n(r->stop, __ATOMIC_RELAXED)) {
		int i = (int)rng_below(&rng, N_FILES);
		struct wait *w = malloc(sizeof(*w));

		__atomic_store_n(&r->now, w, __ATOMIC_RELAXED);
		rig_start_read(r->f, r->s, w, i);
		r->failed += rig_end_read(r->f, r->s, w, i) != 0;
		free(w);
		r->failed += rig_metadata(r->f, r->s, STORAGE_OPEN, i) != 0;
	}
	return NULL;
}

static void rules_change(struct server *s, struct rng *rng,
			 struct reader readers[N_THREADS])
{
	static const char *const rules[] = {
		"op=read,p=.1,errno=EIO",
		"p=.1,delay=100us",
		"op=open,p=.05,stuck",
		"op=read,p=.05,stuck,for=2ms",
		"p=.1,delay=1ms,errno=ETIMEDOUT",
	};
	static const char *const policies[] = { "lru", "none", "fifo" };
	struct units_capacity size = { .fraction = .5 };
	struct err err = { 0 };

	rig_add(s, rules[rng_below(rng, ARRAY_SIZE(rules))]);
	server_interrupt(
		s, __atomic_load_n(&readers[rng_below(rng, N_THREADS)].now,
				   __ATOMIC_RELAXED));
	if (rng_below(rng, 5) == 0)
		server_fault_clear(s, 0, NULL);
	if (rng_below(rng, 10) == 0)
		assert_int_equal(server_set_cache(s,
						  policies[rng_below(rng, 3)],
						  &size, &err),
				 0);
	json_decref(server_stats(s));
}

static void rules_may_change_at_any_time(void **state)
{
	struct server *s = rig_start(*state, "lru", "nvme");
	struct rng rng = rng_stream(2, "rules", 0);
	struct reader readers[N_THREADS];
	bool stop = false;
	int failed = 0;

	for (uint64_t t = 0; t < N_THREADS; t++) {
		readers[t] = (struct reader){
			.f = *state, .s = s, .index = t, .stop = &stop
		};
		assert_int_equal(pthread_create(&readers[t].thread, NULL,
						reader, &readers[t]),
				 0);
	}
	for (int i = 0; i < 1000; i++) {
		rules_change(s, &rng, readers);
		tick_pause(NS_PER_MS);
	}
	/* an operation stuck until a clear must see the clear */
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	assert_int_equal(server_fault_clear(s, 0, NULL), 0);
	for (int t = 0; t < N_THREADS; t++) {
		pthread_join(readers[t].thread, NULL);
		failed += readers[t].failed;
	}
	assert_true(failed > 10);
	assert_int_equal(rig_stat(s, "inflight"), 0);
	server_free(s);
}

/* --- control commands --------------------------------------------------- */

struct ctl_options {
	struct conf_list faults;
};

static void commands_add_and_clear(void **state)
{
	static const struct conf_field fields[] = {
		{ "fault", CONF_LIST, offsetof(struct ctl_options, faults),
		  .item = CONF_STRING, .item_size = sizeof(char *) },
		{ 0 },
	};
	static const char *const bad[] = { "fault",	     "fault add",
					   "fault add op=x", "fault clear x",
					   "fault clear 9",  "fault clear 0",
					   "fault remove 1" };
	struct server *s = rig_start(*state, "lru", "ideal");
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct ctl_options options = { 0 };
	struct ctl ctl = { .server = s,
			   .fields = fields,
			   .options = &options,
			   .lock = &lock };
	const char *text = "fault add op=read, path=a b*,errno=EIO \n"
			   "fault add stuck;delay=1s";
	struct err err = { 0 };
	char *got;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct err){ 0 };
		assert_true(ctl_command(&ctl, bad[i], strlen(bad[i]), &err) <
			    0);
		assert_true(err.text[0]);
	}
	err = (struct err){ 0 };
	assert_int_equal(ctl_command(&ctl, text, strlen(text), &err), 0);
	assert_int_equal(ctl_read(&ctl, CTL_CONFIG, &got, &n), 0);
	assert_string_equal(got, "fault: ['op=read, path=a b*,errno=EIO', "
				 "stuck, delay=1s]\n");
	ctl_free(&ctl, got, n);
	assert_int_equal(ctl_command(&ctl, "fault clear 2", 13, &err), 0);
	assert_int_equal(rig_fault(s, 1, "id"), 3);
	assert_int_equal(ctl_read(&ctl, CTL_STATS_PROM, &got, &n), 0);
	assert_non_null(strstr(got, "gpemu_fs_fault_matched{id=\"1\",rule=\""
				    "op=read, path=a b*,errno=EIO\"} 0\n"));
	ctl_free(&ctl, got, n);
	assert_int_equal(ctl.text_bytes, 0);
	assert_int_equal(ctl_command(&ctl, "fault clear", 11, &err), 0);
	assert_false(server_watches(s, TREE_NONE));
	conf_free(fields, &options);
	server_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_nth_read_fails_and_leaves_nothing),
		cmocka_unit_test(rules_are_for_operations_and_paths),
		cmocka_unit_test(probability_is_the_same_in_two_servers),
		cmocka_unit_test(all_rules_count_what_they_match),
		cmocka_unit_test(delays_are_added_and_errors_may_follow),
		cmocka_unit_test(a_delay_comes_on_top_of_the_device),
		cmocka_unit_test(what_is_stuck_is_freed_by_clear),
		cmocka_unit_test(stuck_for_a_while_goes_on_by_itself),
		cmocka_unit_test(a_signal_ends_the_wait),
		cmocka_unit_test(what_waits_at_the_end_is_answered),
		cmocka_unit_test(what_was_held_is_read_by_a_reader),
		cmocka_unit_test(what_was_held_is_written_by_a_reader),
		cmocka_unit_test(rules_may_change_at_any_time),
		cmocka_unit_test(commands_add_and_clear),
	};
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
