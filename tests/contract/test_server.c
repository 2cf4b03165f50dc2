/* SPDX-License-Identifier: MIT */
/*
 * The file server without FUSE: every policy, many readers, control commands
 * in between.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/tick.h"
#include "common/util.h"
#include "fs/control/ctl.h"
#include "fs/layer/layer_fault.h"
#include "fs/server/server.h"

enum { N_FILES = 40, N_THREADS = 6, N_READS = 300 };

struct fixture {
	char dir[64];
	unsigned char *content[N_FILES];
	size_t bytes[N_FILES];
	uint32_t node[N_FILES];
	struct tree tree;
	const struct source_ops *source;
	void *source_state;
	struct tick *tick;
	uint64_t memory; /* of the servers, beside the cache; 0: the default */
};

/* Sizes 0, 1, a few KiB, and one of more than two extents. */
static size_t size_of(int i, struct rng *r)
{
	if (i == 0)
		return 0;
	return i == 1 ? 2 * OBJECT_EXTENT + 12345 : 1 + rng_below(r, 60000);
}

static void write_file(struct fixture *f, int i, struct rng *r)
{
	char path[96];
	FILE *out;

	f->bytes[i] = size_of(i, r);
	f->content[i] = malloc(f->bytes[i] + 1);
	rng_bytes(r, f->content[i], f->bytes[i]);
	snprintf(path, sizeof(path), "%s/f%02d", f->dir, i);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(f->content[i], 1, f->bytes[i], out),
			 f->bytes[i]);
	fclose(out);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct rng r = rng_stream(1, "server", 0);
	struct err err = { 0 };
	const struct plugin *p =
		plugin_find(source_table, "source", "dir", &err);

	strcpy(f->dir, "/tmp/gpemu-server-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	for (int i = 0; i < N_FILES; i++)
		write_file(f, i, &r);
	f->source = container_of(p, const struct source_ops, plugin);
	f->source_state = calloc(1, p->state_size);
	assert_int_equal(tree_init(&f->tree), 0);
	assert_int_equal(f->source->init(f->source_state, f->dir, &err), 0);
	assert_int_equal(f->source->scan(f->source_state, &f->tree, &err), 0);
	for (int i = 0; i < N_FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%02d", i);
		f->node[i] = tree_lookup(&f->tree, TREE_ROOT, name);
		assert_true(f->node[i] != TREE_NONE);
	}
	f->tick = tick_new(1, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[96];

	for (int i = 0; i < N_FILES; i++) {
		snprintf(path, sizeof(path), "%s/f%02d", f->dir, i);
		unlink(path);
		free(f->content[i]);
	}
	rmdir(f->dir);
	f->source->fini(f->source_state);
	free(f->source_state);
	tree_fini(&f->tree);
	tick_free(f->tick);
	free(f);
	return 0;
}

static struct server *start_grouped(struct fixture *f, const char *policy,
				    const char *storage,
				    const struct group_map *groups,
				    double fraction, uint64_t buffer)
{
	struct server_config c = { .tick = f->tick,
				   .source = f->source,
				   .source_state = f->source_state,
				   .tree = &f->tree,
				   .storage = storage,
				   .cache_policy = policy,
				   .cache_size = { .fraction = fraction },
				   .seed = 1,
				   .groups = groups,
				   .group_buffer = buffer,
				   .memory = f->memory };
	struct err err = { 0 };
	struct server *s = NULL;

	if (server_new(&c, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static struct server *start(struct fixture *f, const char *policy,
			    const char *storage)
{
	return start_grouped(f, policy, storage, NULL, .35, 0);
}

/* --- a read that waits -------------------------------------------------- */

struct wait {
	struct read_request request;
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool is_done;
	int error;
	unsigned char *into;
	size_t got;
};

static void reply(struct read_request *r, int error, const struct iovec *iov,
		  int n_iov)
{
	struct wait *w = container_of(r, struct wait, request);

	pthread_mutex_lock(&w->lock);
	w->error = error;
	for (int i = 0; i < n_iov; i++) {
		memcpy(w->into + w->got, iov[i].iov_base, iov[i].iov_len);
		w->got += iov[i].iov_len;
	}
	w->is_done = true;
	pthread_cond_signal(&w->done);
	pthread_mutex_unlock(&w->lock);
}

/* Bytes read, or -errno. */
static ssize_t read_at(struct fixture *f, struct server *s, struct handle *h,
		       void *into, size_t n, uint64_t offset)
{
	struct wait w = { .request = { .handle = h,
				       .offset = offset,
				       .bytes = n,
				       .arrival = tick_now(f->tick),
				       .reply = reply },
			  .lock = PTHREAD_MUTEX_INITIALIZER,
			  .done = PTHREAD_COND_INITIALIZER,
			  .into = into };

	server_read(s, &w.request);
	pthread_mutex_lock(&w.lock);
	while (!w.is_done)
		pthread_cond_wait(&w.done, &w.lock);
	pthread_mutex_unlock(&w.lock);
	return w.error ? w.error : (ssize_t)w.got;
}

/* --- many readers ------------------------------------------------------- */

struct reader {
	struct fixture *f;
	struct server *s;
	uint64_t index;
	size_t wrong;
	pthread_t thread;
};

static bool read_matches(struct reader *r, struct handle *h, int i,
			 struct rng *rng, unsigned char *buf)
{
	struct fixture *f = r->f;
	uint64_t offset = rng_below(rng, f->bytes[i] + 100);
	size_t n = 1 + rng_below(rng, rng_below(rng, 2) ? 70000 : 1 << 20);
	size_t want = offset < f->bytes[i] ? MIN(n, f->bytes[i] - offset) : 0;
	ssize_t got = read_at(f, r->s, h, buf, n, offset);

	return got == (ssize_t)want &&
	       !memcmp(buf, f->content[i] + (want ? offset : 0), want);
}

static void *reader(void *arg)
{
	struct reader *r = arg;
	struct rng rng = rng_stream(2, "reader", r->index);
	unsigned char *buf = malloc(1 << 20);

	for (int k = 0; k < N_READS; k++) {
		int i = (int)rng_below(&rng, N_FILES);
		struct handle *h = server_open(r->s, r->f->node[i]);

		for (int part = 0; part < 3; part++)
			r->wrong += !read_matches(r, h, i, &rng, buf);
		server_close(r->s, h);
	}
	free(buf);
	return NULL;
}

static void run_readers(struct fixture *f, struct server *s,
			struct reader readers[N_THREADS])
{
	for (uint64_t t = 0; t < N_THREADS; t++) {
		readers[t] = (struct reader){ .f = f, .s = s, .index = t };
		assert_int_equal(pthread_create(&readers[t].thread, NULL,
						reader, &readers[t]),
				 0);
	}
}

static void join_readers(struct reader readers[N_THREADS])
{
	for (int t = 0; t < N_THREADS; t++) {
		pthread_join(readers[t].thread, NULL);
		assert_int_equal(readers[t].wrong, 0);
	}
}

static json_int_t stat_of(struct server *s, const char *name)
{
	json_auto_t *j = server_stats(s);

	return json_integer_value(json_object_get(j, name));
}

/* Needs a future that a mount does not know. */
static bool is_offline(const struct plugin *p)
{
	return container_of(p, const struct policy_ops, plugin)->offline;
}

static void every_policy_serves_every_byte(void **state)
{
	struct reader readers[N_THREADS];

	for (size_t p = 0; policy_table[p]; p++) {
		struct server *s;

		if (is_offline(policy_table[p]))
			continue;
		s = start(*state, policy_table[p]->name, "ideal");

		run_readers(*state, s, readers);
		join_readers(readers);
		assert_true(stat_of(s, "used_bytes") <=
			    stat_of(s, "capacity_bytes"));
		assert_int_equal(stat_of(s, "inflight"), 0);
		assert_true(stat_of(s, "misses") > 0);
		server_free(s);
	}
}

/* Of one moment: the epochs are no more than all. */
static void epochs_add_up(struct server *s)
{
	json_auto_t *j = server_stats(s);
	json_int_t reads = 0;
	json_t *epoch;
	size_t i;

	json_array_foreach (json_object_get(j, "epochs"), i, epoch)
		reads += json_integer_value(
			json_object_get(epoch, "backend_reads"));
	assert_true(reads <=
		    json_integer_value(json_object_get(j, "backend_reads")));
}

static void control_may_come_at_any_time(void **state)
{
	static const char *const policies[] = { "fifo", "none", "minio", "sff",
						"lru" };
	struct reader readers[N_THREADS];
	struct server *s = start(*state, "lru", "ideal");
	struct err err = { 0 };

	run_readers(*state, s, readers);
	for (int i = 0; i < 50; i++) {
		struct units_capacity size = { .fraction = .1 * (i % 7) };

		assert_int_equal(server_epoch(s, NULL), 0);
		assert_int_equal(server_drop_cache(s, NULL), 0);
		assert_int_equal(
			server_set_cache(s, policies[i % 5], &size, &err), 0);
		assert_int_equal(server_set_storage(s, i % 2 ? "ideal" : "nvme",
						    &err),
				 0);
		for (int n = 0; n < 40; n++)
			epochs_add_up(s);
		assert_int_equal(server_reset(s, NULL), 0);
		assert_in_range(stat_of(s, "used_bytes"), 0,
				((struct fixture *)*state)->tree.file_bytes);
	}
	join_readers(readers);
	server_free(s);
}

/* Start reads that a slow device has not done yet, the last of them of two
 * extents, and end the server. */
static void end_with_reads_pending(struct fixture *f, struct server *s)
{
	struct wait w[N_FILES];
	struct handle *h[N_FILES];

	for (int i = N_FILES - 1; i; i--) {
		h[i] = server_open(s, f->node[i]);
		w[i] = (struct wait){
			.request = { .handle = h[i],
				     .offset = i == 1 ? OBJECT_EXTENT - 1000
						      : 0,
				     .bytes = 60000,
				     .arrival = tick_now(f->tick),
				     .reply = reply },
			.lock = PTHREAD_MUTEX_INITIALIZER,
			.done = PTHREAD_COND_INITIALIZER,
			.into = malloc(60000)
		};
		server_read(s, &w[i].request);
	}
	server_stop(s);
	for (int i = 1; i < N_FILES; i++) {
		assert_true(w[i].is_done);
		assert_true(w[i].error == 0 || w[i].error == -ECONNABORTED);
		free(w[i].into);
		server_close(s, h[i]);
	}
	server_free(s);
}

static void what_is_pending_at_the_end_is_answered(void **state)
{
	end_with_reads_pending(*state, start(*state, "lru", "hdd"));
}

static void commands_after_the_end_are_refused(void **state)
{
	struct server *s = start(*state, "lru", "ideal");
	struct units_capacity size = { .fraction = 1 };
	struct err err = { 0 };

	server_stop(s);
	assert_int_equal(server_epoch(s, &err), -ECONNABORTED);
	assert_string_equal(err.text, "the mount is at its end");
	assert_int_equal(server_reset(s, NULL), -ECONNABORTED);
	assert_int_equal(server_drop_cache(s, NULL), -ECONNABORTED);
	assert_int_equal(server_set_cache(s, "fifo", &size, NULL),
			 -ECONNABORTED);
	assert_int_equal(server_set_storage(s, "nvme", NULL), -ECONNABORTED);
	assert_int_equal(server_fault_add(s, "stuck", NULL), -ECONNABORTED);
	assert_int_equal(server_fault_clear(s, 0, NULL), -ECONNABORTED);
	assert_int_equal(stat_of(s, "inflight"), 0);
	server_free(s);
}

static void no_memory_is_as_good_as_much(void **state)
{
	static const char *const policies[] = { "none", "minio", "lru" };
	struct reader readers[N_THREADS];
	struct fixture *f = *state;

	for (size_t p = 0; p < ARRAY_SIZE(policies); p++) {
		struct server *s;

		f->memory = p ? 300 * KIB : 1;
		s = start(f, policies[p], "ideal");
		run_readers(f, s, readers);
		join_readers(readers);
		/* an answer's are free a moment after the reply */
		while (stat_of(s, "memory_bytes") >
		       stat_of(s, "memory_limit_bytes"))
			sched_yield();
		assert_int_equal(stat_of(s, "held_bytes"), 0);
		assert_true(!p || stat_of(s, "reread_bytes") > 0);
		assert_int_equal(server_drop_cache(s, NULL), 0);
		while (stat_of(s, "memory_bytes"))
			sched_yield();
		assert_int_equal(stat_of(s, "inflight_bytes"), 0);
		server_free(s);
		end_with_reads_pending(f, start(f, policies[p], "hdd"));
	}
	f->memory = 1;
	end_with_reads_pending(f, start_grouped(f, "lru", "hdd", NULL, 0, 0));
	f->memory = 300 * KIB;
	control_may_come_at_any_time(state);
	f->memory = 0;
}

/* A chunk of what was paid for costs no second read of the device, although the
 * object is gone. */
static void what_was_paid_for_is_read_again(void **state)
{
	struct fixture *f = *state;
	unsigned char buf[1000];
	struct server *s;
	struct handle *h;

	f->memory = 1;
	s = start_grouped(f, "lru", "ideal", NULL, 0, 0);
	h = server_open(s, f->node[1]);
	for (size_t at = 0; at < OBJECT_EXTENT; at += OBJECT_EXTENT / 8) {
		assert_int_equal(read_at(f, s, h, buf, sizeof(buf), at),
				 sizeof(buf));
		assert_memory_equal(buf, f->content[1] + at, sizeof(buf));
		assert_int_equal(stat_of(s, "backend_reads"), 1);
	}
	assert_int_equal(stat_of(s, "misses"), 1);
	assert_int_equal(stat_of(s, "reread_bytes"), 8 * sizeof(buf));
	server_close(s, h);
	server_free(s);
	f->memory = 0;
}

static void a_new_cache_keeps_the_counts(void **state)
{
	struct fixture *f = *state;
	struct server *s = start(f, "lru", "ideal");
	struct units_capacity size = { .fraction = 1 };
	unsigned char *buf = malloc(60000);
	struct err err = { 0 };

	for (int i = 0; i < 4; i++) {
		struct handle *h = server_open(s, f->node[2]);

		assert_int_equal(read_at(f, s, h, buf, 60000, 0), f->bytes[2]);
		server_close(s, h);
		if (i == 1)
			assert_int_equal(
				server_set_cache(s, "fifo", &size, &err), 0);
	}
	assert_int_equal(stat_of(s, "hits"), 2);
	assert_int_equal(stat_of(s, "misses"), 2);
	assert_int_equal(stat_of(s, "miss_bytes"), stat_of(s, "backend_bytes"));
	assert_int_equal(stat_of(s, "epoch"), 1);
	assert_int_equal(server_reset(s, NULL), 0);
	assert_int_equal(stat_of(s, "hits") + stat_of(s, "misses"), 0);
	free(buf);
	server_free(s);
}

static void a_file_has_no_more_extents_than_are_counted(void **state)
{
	struct tree_child large = { .name = (char *)"x",
				    .bytes = TREE_MOST_BYTES,
				    .mode = S_IFREG | 0444 };
	struct tree t;

	(void)state;
	assert_true(TREE_MOST_BYTES / OBJECT_EXTENT < UINT32_MAX);
	assert_int_equal(tree_init(&t), 0);
	assert_int_equal(tree_add_children(&t, TREE_ROOT, &large, 1), 0);
	large.bytes++;
	assert_int_equal(tree_add_children(&t, TREE_ROOT, &large, 1), -EFBIG);
	tree_fini(&t);
}

/* --- groups ------------------------------------------------------------- */

static struct group_map *group(struct fixture *f, uint32_t size,
			       const char *order)
{
	struct err err = { 0 };
	struct group_map *m;

	if (group_map_new(&f->tree, size, order, 1, &m, &err) < 0)
		fail_msg("%s", err.text);
	return m;
}

static void every_policy_serves_every_byte_in_groups(void **state)
{
	static const char *const orders[] = { "sequential", "random",
					      "diffclass" };
	struct reader readers[N_THREADS];

	for (size_t p = 0; policy_table[p]; p++) {
		if (is_offline(policy_table[p]))
			continue;
		struct group_map *m =
			group(*state, p % 2 ? 7 : 100, orders[p % 3]);
		/* so small that a group does not fit, and its buffer overflows
		 */
		bool tight = p / 2 % 2;
		struct server *s = start_grouped(*state, policy_table[p]->name,
						 "ideal", m, tight ? .02 : .35,
						 tight ? 100000 : 0);

		run_readers(*state, s, readers);
		for (int i = 0; i < 20; i++) {
			assert_int_equal(server_drop_cache(s, NULL), 0);
			assert_true(stat_of(s, "used_bytes") <=
				    stat_of(s, "capacity_bytes"));
		}
		join_readers(readers);
		assert_int_equal(stat_of(s, "inflight"), 0);
		assert_true(stat_of(s, "group_hits") > 0);
		server_free(s);
		group_map_free(m);
	}
}

/* Read all files that are in groups, group by group. */
static void read_groups(struct fixture *f, struct server *s,
			const struct group_map *m)
{
	unsigned char *buf = malloc(70000);

	for (uint32_t k = 0; k < m->groups.n_files; k++) {
		uint32_t node = m->groups.file[k];
		struct handle *h = server_open(s, node);
		int i = 0;

		while (f->node[i] != node)
			i++;
		if (f->bytes[i] < 70000) {
			assert_int_equal(read_at(f, s, h, buf, 70000, 0),
					 f->bytes[i]);
			assert_memory_equal(buf, f->content[i], f->bytes[i]);
		}
		server_close(s, h);
	}
	free(buf);
}

/* Files 2.. in groups of 8: with the empty one 39, and the large one. */
enum { GROUPS_OF_8 = 5 };

static void one_read_brings_a_group(void **state)
{
	struct fixture *f = *state;

	for (size_t p = 0; policy_table[p]; p++) {
		if (is_offline(policy_table[p]))
			continue;
		struct group_map *m = group(f, 8, "random");
		struct server *s = start_grouped(f, policy_table[p]->name,
						 "ideal", m, .01, 0);
		uint64_t bytes = 0;

		for (int i = 2; i < N_FILES; i++)
			bytes += f->bytes[i];
		assert_int_equal(m->groups.n_groups, GROUPS_OF_8 + 1);
		read_groups(f, s, m);
		/* whatever the cache takes: nothing is read twice */
		assert_int_equal(stat_of(s, "backend_reads"), GROUPS_OF_8);
		assert_int_equal(stat_of(s, "backend_bytes"), bytes);
		assert_int_equal(stat_of(s, "misses"), GROUPS_OF_8);
		assert_int_equal(stat_of(s, "hits"), 38 - GROUPS_OF_8);
		assert_int_equal(stat_of(s, "group_hits"), 38 - GROUPS_OF_8);
		assert_int_equal(stat_of(s, "group_hit_bytes") +
					 stat_of(s, "miss_bytes"),
				 bytes);
		assert_int_equal(stat_of(s, "group_buffer_bytes"), 0);
		server_free(s);
		group_map_free(m);
	}
}

static void a_whole_group_is_charged_each_time(void **state)
{
	struct fixture *f = *state;
	struct group_map *m = group(f, 8, "sequential");
	/* no cache, and a buffer that holds nothing */
	struct server *s = start_grouped(f, "none", "ideal", m, 0, 1);
	uint64_t bytes = 0;
	unsigned char *buf = malloc(70000);

	for (int i = 0; i < 8; i++) { /* f01 is large, and not among them */
		int k = i ? i + 1 : 0;
		struct handle *h = server_open(s, f->node[k]);

		bytes += f->bytes[k];
		assert_int_equal(read_at(f, s, h, buf, 70000, 0), f->bytes[k]);
		server_close(s, h);
	}
	/* the empty file is never read */
	assert_int_equal(stat_of(s, "backend_reads"), 7);
	assert_int_equal(stat_of(s, "backend_bytes"), 7 * bytes);
	assert_int_equal(stat_of(s, "misses"), 7);
	free(buf);
	server_free(s);
	group_map_free(m);
}

static void groups_pending_at_the_end_are_answered(void **state)
{
	struct group_map *m = group(*state, 8, "random");

	end_with_reads_pending(*state,
			       start_grouped(*state, "lru", "hdd", m, .35, 0));
	group_map_free(m);
}

/* --- control commands --------------------------------------------------- */

static void commands_are_checked(void **state)
{
	static const char *const bad[] = { "set",
					   "set storage",
					   "set a b",
					   "epoch now",
					   "reset\nbogus",
					   "set storage nope",
					   "set cache_size 5Q" };
	struct server *s = start(*state, "lru", "ideal");
	char *storage = strdup("ideal"), *policy = strdup("lru");
	struct units_capacity size = { .fraction = .35 };
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct ctl ctl = { .server = s,
			   .storage = &storage,
			   .cache_policy = &policy,
			   .cache_size = &size,
			   .lock = &lock };
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct err){ 0 };
		assert_true(ctl_command(&ctl, bad[i], strlen(bad[i]), &err) <
			    0);
		assert_true(err.text[0]);
	}
	assert_int_equal(ctl_command(&ctl, "a\0b", 3, &err), -EINVAL);
	assert_int_equal(ctl_command(&ctl, "", 0, &err), 0);
	assert_int_equal(ctl_command(&ctl, "\n \nset cache_size 1M\nepoch", 26,
				     &err),
			 0);
	assert_int_equal(size.bytes, MIB);
	assert_int_equal(stat_of(s, "capacity_bytes"), MIB);
	server_free(s);
	free(storage);
	free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_policy_serves_every_byte),
		cmocka_unit_test(control_may_come_at_any_time),
		cmocka_unit_test(what_is_pending_at_the_end_is_answered),
		cmocka_unit_test(commands_after_the_end_are_refused),
		cmocka_unit_test(no_memory_is_as_good_as_much),
		cmocka_unit_test(what_was_paid_for_is_read_again),
		cmocka_unit_test(a_new_cache_keeps_the_counts),
		cmocka_unit_test(a_file_has_no_more_extents_than_are_counted),
		cmocka_unit_test(every_policy_serves_every_byte_in_groups),
		cmocka_unit_test(one_read_brings_a_group),
		cmocka_unit_test(a_whole_group_is_charged_each_time),
		cmocka_unit_test(groups_pending_at_the_end_are_answered),
		cmocka_unit_test(commands_are_checked),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
