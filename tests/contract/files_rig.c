/* SPDX-License-Identifier: MIT */
#include "tests/contract/files_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/system/importance.h"
#include "common/util.h"
#include "tests/contract/wait.h"

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
	rng_bytes_at(rng_u64(r), 0, f->content[i], f->bytes[i]);
	snprintf(path, sizeof(path), "%s/f%02d", f->dir, i);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(f->content[i], 1, f->bytes[i], out),
			 f->bytes[i]);
	fclose(out);
}

int files_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct rng r = rng_stream(1, "server", 0);
	struct err err = { 0 };
	const struct plugin *p =
		plugin_find(source_table, "source", "dir", &err);
	const struct source_ops *source;
	int code;

	*state = f; /* the tear-down comes even if this ends here */
	strcpy(f->dir, "/tmp/gpemu-server-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	for (int i = 0; i < N_FILES; i++)
		write_file(f, i, &r);
	assert_non_null(p);
	source = container_of(p, const struct source_ops, plugin);
	f->source_state = calloc(1, p->state_size);
	assert_int_equal(tree_init(&f->tree), 0);
	code = source->init(f->source_state, f->dir, &err);
	f->source = source;
	assert_int_equal(code, 0);
	assert_int_equal(f->source->scan(f->source_state, &f->tree, &err), 0);
	for (int i = 0; i < N_FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%02d", i);
		f->node[i] = tree_lookup(&f->tree, TREE_ROOT, name);
		assert_true(f->node[i] != TREE_NONE);
	}
	f->tick = tick_new(1, 0);
	return 0;
}

int files_teardown(void **state)
{
	struct fixture *f = *state;
	char path[96];

	for (int i = 0; i < N_FILES; i++) {
		snprintf(path, sizeof(path), "%s/f%02d", f->dir, i);
		unlink(path);
		free(f->content[i]);
	}
	rmdir(f->dir);
	if (f->source)
		f->source->fini(f->source_state);
	free(f->source_state);
	tree_fini(&f->tree);
	tick_free(f->tick);
	free(f);
	return 0;
}

struct server *files_start_grouped(struct fixture *f, const char *policy,
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

struct server *files_start(struct fixture *f, const char *policy,
			   const char *storage)
{
	return files_start_grouped(f, policy, storage, NULL, .35, 0);
}

/* --- a read that waits -------------------------------------------------- */

ssize_t files_read(struct fixture *f, struct server *s, struct handle *h,
		   void *into, size_t n, uint64_t offset)
{
	struct wait w;

	wait_init(&w, into);
	w.request = (struct read_request){ .handle = h,
					   .offset = offset,
					   .bytes = n,
					   .arrival = tick_now(f->tick),
					   .reply = wait_reply };
	server_read(s, &w.request);
	wait_for(&w);
	return w.error ? w.error : (ssize_t)w.got;
}

void files_end_with_reads_pending(struct fixture *f, struct server *s)
{
	struct wait w[N_FILES];
	struct handle *h[N_FILES];

	for (int i = N_FILES - 1; i; i--) {
		h[i] = server_open(s, f->node[i]);
		wait_init(&w[i], malloc(60000));
		w[i].request = (struct read_request){
			.handle = h[i],
			.offset = i == 1 ? OBJECT_EXTENT - 1000 : 0,
			.bytes = 60000,
			.arrival = tick_now(f->tick),
			.reply = wait_reply
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

/* --- many readers ------------------------------------------------------- */

static bool read_matches(struct reader *r, struct handle *h, int i,
			 struct rng *rng, unsigned char *buf)
{
	struct fixture *f = r->f;
	uint64_t offset = rng_below(rng, f->bytes[i] + 100);
	size_t n = 1 + rng_below(rng, rng_below(rng, 2) ? 70000 : 1 << 20);
	size_t want = offset < f->bytes[i] ? MIN(n, f->bytes[i] - offset) : 0;
	ssize_t got = files_read(f, r->s, h, buf, n, offset);

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

void files_run_readers(struct fixture *f, struct server *s,
		       struct reader readers[N_THREADS])
{
	for (uint64_t t = 0; t < N_THREADS; t++) {
		readers[t] = (struct reader){ .f = f, .s = s, .index = t };
		assert_int_equal(pthread_create(&readers[t].thread, NULL,
						reader, &readers[t]),
				 0);
	}
}

void files_join_readers(struct reader readers[N_THREADS])
{
	for (int t = 0; t < N_THREADS; t++) {
		pthread_join(readers[t].thread, NULL);
		assert_int_equal(readers[t].wrong, 0);
	}
}

json_int_t files_stat(struct server *s, const char *name)
{
	json_auto_t *j = server_stats(s);

	return json_integer_value(json_object_get(j, name));
}

bool files_is_offline(const struct plugin *p)
{
	return container_of(p, const struct policy_ops, plugin)->offline;
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

/* Each file matters more than others now and then. */
static void weigh_all(const struct fixture *f, struct server *s, int turn)
{
	unsigned char records[N_FILES * IMPORTANCE_RECORD];
	struct err err = { 0 };

	for (int i = 0; i < N_FILES; i++)
		importance_put(records + (size_t)i * IMPORTANCE_RECORD,
			       f->node[i] + 1, (float)((i * 7 + turn) % 11));
	assert_int_equal(server_importance(s, records, sizeof(records), &err),
			 0);
}

void files_change_while_read(struct fixture *f)
{
	static const char *const policies[] = { "fifo", "none",	 "minio",
						"sff",	"shade", "lru" };
	struct reader readers[N_THREADS];
	struct server *s = files_start(f, "lru", "ideal");
	struct err err = { 0 };

	files_run_readers(f, s, readers);
	for (int i = 0; i < 50; i++) {
		struct units_capacity size = { .fraction = .1 * (i % 7) };

		assert_int_equal(server_epoch(s, NULL), 0);
		assert_int_equal(server_drop_cache(s, NULL), 0);
		assert_int_equal(
			server_set_cache(s, policies[i % 6], &size, &err), 0);
		assert_int_equal(server_set_storage(s, i % 2 ? "ideal" : "nvme",
						    &err),
				 0);
		for (int n = 0; n < 40; n++) {
			epochs_add_up(s);
			weigh_all(f, s, n);
		}
		assert_int_equal(server_reset(s, NULL), 0);
		assert_in_range(files_stat(s, "used_bytes"), 0,
				f->tree.file_bytes);
	}
	files_join_readers(readers);
	server_free(s);
}
