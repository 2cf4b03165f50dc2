/* SPDX-License-Identifier: MIT */
#include "tests/contract/engine_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "loader/dataset/reading.h"
#include "loader/order/order.h"
#include "tests/contract/list_files.h"

extern const struct prep_ops prep_none;

/* Three of the largest files and the rest of a batch. */
enum { BUDGET = 1000000 };

const struct shape shapes[] = {
	{ .workers = 1, .superbatch = 1, .queue_depth = 1, .n = N },
	{ .workers = 1, .superbatch = 3, .queue_depth = 16, .n = N },
	{ .workers = 3, .superbatch = 1, .queue_depth = 5, .n = N },
	{ .workers = 3, .superbatch = 3, .queue_depth = 64, .n = N },
	{ .workers = 3,
	  .superbatch = 3,
	  .queue_depth = 64,
	  .pin = true,
	  .n = N },
	{ .workers = 3,
	  .superbatch = 3,
	  .queue_depth = 64,
	  .pin = true,
	  .pin_inline = true,
	  .n = N },
	{ .workers = 3,
	  .superbatch = 3,
	  .queue_depth = 64,
	  .pin_direct = true,
	  .n = N },
	/* at times there is memory for one batch only */
	{ .workers = 3,
	  .superbatch = 1,
	  .queue_depth = 64,
	  .pin_direct = true,
	  .budget = BUDGET,
	  .n = N },
	/* the last batch dropped; one sample; less than a batch */
	{ .workers = 3,
	  .superbatch = 3,
	  .queue_depth = 64,
	  .n = N / BATCH * BATCH },
	{ .workers = 3, .superbatch = 1, .queue_depth = 8, .n = 1 },
	{ .workers = 2, .superbatch = 2, .queue_depth = 8, .n = BATCH - 1 },
};

const size_t n_shapes = ARRAY_SIZE(shapes);

size_t size_of(unsigned i)
{
	static const size_t sizes[] = { 0,     1,     100,   4095,  4096,
					4097,  8192,  5000,  20000, 65536,
					65537, 12345, 300000 };

	return sizes[i % PER_CLASS];
}

void path_of(const struct fixture *f, unsigned i, char path[128])
{
	snprintf(path, 128, "%s/class%u/%02u.bin", f->dir, i / PER_CLASS,
		 i % PER_CLASS);
}

static void write_file(const char *path, uint64_t seed, size_t n)
{
	_cleanup_free_ char *data = malloc(n + 1);
	struct rng rng = rng_stream(seed, "content", 0);
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	rng_bytes_at(rng_u64(&rng), 0, data, n);
	assert_int_equal(fwrite(data, 1, n, file), n);
	assert_int_equal(fclose(file), 0);
}

void container_of_class(const struct fixture *f, unsigned c, char path[128])
{
	snprintf(path, 128, "%s/%u.container", f->dir, c);
}

/* Where sample `i` begins in its container: behind the samples before it, with
 * gaps that leave nothing aligned. */
static uint64_t offset_of(unsigned i)
{
	uint64_t at = 7;

	for (unsigned k = i / PER_CLASS * PER_CLASS; k < i; k++)
		at += size_of(k) + 13;
	return at;
}

static void fill_files(struct fixture *f)
{
	struct err err = { 0 };
	char path[128];

	for (unsigned c = 0; c < N_CLASSES; c++) {
		snprintf(path, sizeof(path), "%s/class%u", f->dir, c);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	for (unsigned i = 0; i < N; i++) {
		path_of(f, i, path);
		write_file(path, i, size_of(i));
	}
	if (list_files(f->dir, &f->data, &err) < 0)
		fail_msg("%s", err.text);
}

static void write_part(int fd, unsigned i)
{
	_cleanup_free_ char *data = malloc(size_of(i) + 1);
	struct rng rng = rng_stream(i, "content", 0);

	rng_bytes_at(rng_u64(&rng), 0, data, size_of(i));
	assert_int_equal(pwrite(fd, data, size_of(i), (off_t)offset_of(i)),
			 size_of(i));
}

static void fill_containers(struct fixture *f)
{
	struct dataset *d = &f->data;
	char path[128];

	*d = (struct dataset){ .dirfd = -1, .n = N, .n_classes = N_CLASSES };
	d->names = strdup("part");
	d->path = calloc(N, sizeof(*d->path));
	d->size = calloc(N, sizeof(*d->size));
	d->label = calloc(N, sizeof(*d->label));
	d->container = calloc(N, sizeof(*d->container));
	d->offset = calloc(N, sizeof(*d->offset));
	d->container_fd = calloc(N_CLASSES, sizeof(int));
	for (unsigned c = 0; c < N_CLASSES; c++) {
		container_of_class(f, c, path);
		d->container_fd[c] = open(path, O_RDWR | O_CREAT, 0600);
		assert_true(d->container_fd[c] >= 0);
		d->n_containers++;
	}
	for (unsigned i = 0; i < N; i++) {
		d->container[i] = d->label[i] = i / PER_CLASS;
		d->offset[i] = offset_of(i);
		d->size[i] = size_of(i);
		d->bytes += size_of(i);
		write_part(d->container_fd[i / PER_CLASS], i);
	}
}

static int setup(void **state, bool containers, bool direct)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	int r = 0;

	*state = f;
	f->data.dirfd = -1;
	strcpy(f->dir, "/tmp/gpemu-engines-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	if (containers)
		fill_containers(f);
	else
		fill_files(f);
	f->tick = tick_new(1e-3, 0);
	if (direct)
		r = direct_begin(&f->data, &f->direct, &err);
	if (r == -EOPNOTSUPP)
		print_message("skipped: %s\n", err.text);
	else
		assert_int_equal(r, 0);
	f->refused = r < 0;
	return 0;
}

int setup_files(void **state)
{
	return setup(state, false, false);
}

int setup_containers(void **state)
{
	return setup(state, true, false);
}

int setup_direct_files(void **state)
{
	return setup(state, false, true);
}

int setup_direct_containers(void **state)
{
	return setup(state, true, true);
}

int teardown(void **state)
{
	struct fixture *f = *state;
	char path[128];

	dataset_close(&f->data);
	tick_free(f->tick);
	for (unsigned i = 0; i < N; i++) {
		path_of(f, i, path);
		if (unlink(path) < 0)
			rmdir(path);
	}
	for (unsigned c = 0; c < N_CLASSES; c++) {
		snprintf(path, sizeof(path), "%s/class%u", f->dir, c);
		rmdir(path);
		container_of_class(f, c, path);
		unlink(path);
	}
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

void want_all(struct seen want[N])
{
	for (unsigned i = 0; i < N; i++) {
		struct rng rng = rng_stream(i, "content", 0);

		want[i].n = size_of(i);
		want[i].data = malloc(want[i].n + 1);
		rng_bytes_at(rng_u64(&rng), 0, want[i].data, want[i].n);
	}
}

const struct plugin *const *engines_tested = engine_table;

const struct engine_ops *engine_at(size_t i)
{
	for (size_t k = 0; engines_tested[k]; k++) {
		const struct engine_ops *e = container_of(
			engines_tested[k], struct engine_ops, plugin);

		if (e->next && i-- == 0)
			return e;
	}
	return NULL;
}

/* Neighbours in the order are far apart. */
static const uint64_t *addresses(void)
{
	static const uint64_t address[N] = { 5, 4, 3,  2,  1,  0, 9,
					     9, 9, 20, 19, 30, 7 };

	return address;
}

struct pipeline *new_pipeline(const struct fixture *f,
			      const struct engine_ops *engine,
			      const struct shape *s)
{
	static const struct gpu_profile pin = { .sample_bytes = 1,
						.pin_copy = { .base_ms = 1 } };
	struct pipeline_config c = {
		.data = &f->data,
		.engine = engine,
		.prep = &prep_none,
		.pin = s->pin ? &pin : NULL,
		.pin_direct = s->pin_direct,
		.pin_inline = s->pin_inline,
		.pin_budget = s->budget ? s->budget : 64 << 20,
		.tick = f->tick,
		.workers = s->workers,
		.queue_depth = s->queue_depth,
		.batch = BATCH,
		.superbatch = s->superbatch,
		.prefetch = 2,
		.direct = f->direct,
		.address = f->sorted ? addresses() : NULL,
		.staging = s->staging,
		.batching = s->batching,
		.batching_options = s->batching_options,
		.per_epoch = (s->n + BATCH - 1) / BATCH,
	};
	struct err err = { 0 };
	struct pipeline *p;
	int r;

	if (f->refused || (f->direct && !engine->can_direct))
		return NULL;
	r = pipeline_new(&c, &p, &err);
	if (r == -EPERM || r == -ENOMEM) {
		print_message("skipped: %s: %s\n", engine->plugin.name,
			      err.text);
		return NULL;
	}
	if (r < 0)
		fail_msg("%s: %s", engine->plugin.name, err.text);
	return p;
}

static bool any_order(const struct engine_ops *e, const struct shape *s)
{
	return e->any_order || (s->batching && s->batching->any_order);
}

/* Samples of a batch are in order, or at least within its window. */
static void check_place(const struct engine_ops *e, const struct shape *s,
			const uint32_t *order, uint64_t at, uint32_t sample)
{
	uint64_t window = (uint64_t)BATCH * s->superbatch;
	uint64_t from = at / window * window;

	if (any_order(e, s))
		return;
	if (e->whole_batches) {
		assert_int_equal(order[at], sample);
		return;
	}
	for (uint64_t i = from; i < MIN(from + window, s->n); i++)
		if (order[i] == sample)
			return;
	fail_msg("sample %u left its window", sample);
}

/* Batches are full, but for the last one of the order. */
static void check_size(const struct engine_ops *e, const struct shape *s,
		       uint64_t at, uint32_t n)
{
	if (!any_order(e, s))
		assert_int_equal(n, MIN(BATCH, s->n - at));
	else if (n != BATCH)
		assert_int_equal(n, s->n % BATCH);
}

static void keep(struct seen *seen, const struct place *p)
{
	seen->times++;
	seen->error = p->error;
	seen->n = p->n;
	free(seen->data);
	seen->data = malloc(p->n + 1);
	memcpy(seen->data, p->data, p->n);
}

void one_epoch(const struct fixture *f, struct pipeline *p,
	       const struct engine_ops *e, const struct shape *s,
	       uint64_t epoch, struct seen *seen)
{
	const struct order_ops *order =
		container_of(plugin_find(order_table, "order", "shuffle", NULL),
			     struct order_ops, plugin);
	struct order_input in = { .seed = 11, .epoch = epoch, .n = N };
	uint64_t at = 0, bytes = 0;
	struct err err = { 0 };
	uint32_t v[N];
	struct delivery d;
	int r;

	assert_int_equal(order->fill(&in, v, &err), 0);
	pipeline_begin(p, epoch, v, s->n);
	while ((r = pipeline_next(p, tick_now(f->tick), &d, &err)) == 0) {
		uint64_t usable = 0;

		check_size(e, s, at, d.n);
		for (uint32_t i = 0; i < d.n; i++) {
			const struct place *place = &d.place[i];

			check_place(e, s, v, at + i, place->sample);
			keep(&seen[place->sample], place);
			usable += place->error ? 0 : place->n;
		}
		assert_true(d.ready_ns >= d.complete_ns);
		assert_int_equal(d.bytes, usable);
		bytes += d.bytes;
		at += d.n;
		pipeline_release(p, &d);
	}
	assert_int_equal(r, -ENODATA);
	assert_int_equal(at, s->n);
	for (uint64_t i = 0; i < s->n; i++)
		assert_int_equal(seen[v[i]].times, epoch + 1);
	assert_true(bytes <= f->data.bytes);
}

void forget(struct seen seen[N])
{
	for (unsigned i = 0; i < N; i++)
		free(seen[i].data);
	memset(seen, 0, N * sizeof(*seen));
}

bool run(const struct fixture *f, const struct engine_ops *e,
	 const struct shape *s, struct seen *seen)
{
	struct pipeline *p = new_pipeline(f, e, s);
	struct work work = { 0 };

	if (!p)
		return false;
	one_epoch(f, p, e, s, 0, seen);
	if (s->n == N)
		one_epoch(f, p, e, s, 1, seen);
	pipeline_work(p, &work);
	assert_int_equal(work.read.n, s->n == N ? 2 * N : s->n);
	pipeline_free(p);
	return true;
}

void compare(const struct fixture *f, const struct seen *want,
	     const struct seen *got, const char *name)
{
	for (unsigned i = 0; i < N; i++) {
		if (!got[i].times)
			continue;
		if (got[i].error != want[i].error || got[i].n != want[i].n)
			fail_msg("%s: %s: error %d of %zu bytes, not %d of %zu",
				 name, dataset_path(&f->data, i), got[i].error,
				 got[i].n, want[i].error, want[i].n);
		assert_memory_equal(got[i].data, want[i].data, got[i].n);
	}
}

void all_equal(const struct fixture *f, const struct seen *want)
{
	const struct engine_ops *e;

	for (size_t i = 0; (e = engine_at(i)); i++) {
		for (size_t s = 0; s < n_shapes; s++) {
			struct seen got[N] = { 0 };

			if (run(f, e, &shapes[s], got))
				compare(f, want, got, e->plugin.name);
			forget(got);
		}
	}
}
