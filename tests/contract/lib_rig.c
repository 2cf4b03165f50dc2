/* SPDX-License-Identifier: MIT */
#include "tests/contract/lib_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char lib_dir[64];
static char data[80];

/* --- the dataset ---------------------------------------------------------- */

static size_t size_of(unsigned i)
{
	return i * 777;
}

void lib_path(unsigned i, char path[96])
{
	snprintf(path, 96, "%s/%c/%02u.jpg", lib_dir, i < LIB_N / 2 ? 'a' : 'b',
		 i);
}

void lib_mend_data(void)
{
	char path[96];

	for (unsigned i = 0; i < LIB_N; i++) {
		FILE *f;

		lib_path(i, path);
		unlink(path);
		f = fopen(path, "we");
		for (size_t k = 0; k < size_of(i); k++)
			fputc((int)i + 1, f);
		assert_int_equal(fclose(f), 0);
	}
}

int lib_make_data(void **state)
{
	char path[96];

	(void)state;
	strcpy(lib_dir, "/tmp/gpemu-lib-XXXXXX");
	assert_non_null(mkdtemp(lib_dir));
	snprintf(data, sizeof(data), "data=%s", lib_dir);
	for (const char *c = "ab"; *c; c++) {
		snprintf(path, sizeof(path), "%s/%c", lib_dir, *c);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	lib_mend_data();
	return 0;
}

int lib_remove_data(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", lib_dir);
	return system(command);
}

/* --- helpers -------------------------------------------------------------- */

struct gpemu *lib_open(const struct gpemu_engine *engine,
		       const char *const more[])
{
	const char *options[24] = { data,	 "prep=none",
				    "batch=4",	 "workers=2",
				    "index=off", "time-scale=0.001",
				    "pin=off" };
	char error[512] = "";
	struct gpemu *g;
	size_t n = 7;

	for (; more && *more; more++)
		options[n++] = *more;
	if (gpemu_open(options, engine, &g, error, sizeof(error)) < 0)
		fail_msg("%s", error);
	assert_string_equal(gpemu_notes(g), "");
	return g;
}

void lib_no_open(const struct gpemu_engine *engine, const char *option,
		 int code, const char *words)
{
	const char *options[] = { data, "index=off", option, NULL };
	char error[512] = "";
	struct gpemu *g = (void *)lib_dir;
	int r = gpemu_open(options, engine, &g, error, sizeof(error));

	if (r != code || !strstr(error, words))
		fail_msg("%s: %d, %s", option ? option : "-", r, error);
	assert_null(g);
}

void lib_check_sample(const struct gpemu_sample *s, int error)
{
	const unsigned char *byte = s->data;

	assert_true(s->index < LIB_N);
	assert_int_equal(s->error, error);
	assert_int_equal(s->size_bytes, size_of((unsigned)s->index));
	assert_int_equal(s->label, s->index >= LIB_N / 2);
	assert_int_equal(atoi(s->path + 2), s->index);
	for (size_t k = 0; k < s->size_bytes; k++)
		if (byte[k] != (error ? 0 : s->index + 1))
			fail_msg("%s: byte %zu is %u", s->path, k, byte[k]);
}

void lib_whole_epoch(struct gpemu *g, uint64_t want)
{
	const struct gpemu_batch *b;
	unsigned seen[LIB_N] = { 0 };
	struct gpemu_epoch e;
	struct gpemu_step s;
	uint64_t epoch = 0, end = 0;
	int r;

	assert_int_equal(gpemu_begin_epoch(g, &epoch), 1);
	assert_int_equal(epoch, want);
	while ((r = gpemu_next(g, &b)) > 0) {
		for (uint32_t i = 0; i < b->n; i++) {
			lib_check_sample(&b->samples[i], 0);
			seen[b->samples[i].index]++;
		}
		assert_true(b->ready_ns <= gpemu_now_ns(g));
		assert_int_equal(gpemu_submit(g, b, &s), 0);
		assert_true(s.compute_start_ns >= end);
		assert_true(s.copy_end_ns <= s.compute_start_ns);
		assert_true(s.compute_start_ns < s.compute_end_ns);
		assert_true(s.fetch_stall_ns <= s.data_wait_ns);
		end = s.compute_end_ns;
	}
	if (r < 0)
		fail_msg("%s", gpemu_error(g));
	assert_int_equal(gpemu_end_epoch(g, &e), 0);
	for (unsigned i = 0; i < LIB_N; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(e.epoch, want);
	assert_int_equal(e.steps, LIB_STEPS);
	assert_int_equal(e.samples, LIB_N);
	assert_int_equal(e.data_bytes, 777 * LIB_N * (LIB_N - 1) / 2);
	assert_true(e.compute_ns > 0 && e.compute_ns <= e.elapsed_ns);
	assert_true(gpemu_now_ns(g) >= end);
}

/* --- engines -------------------------------------------------------------- */

static int64_t read_file(const struct gpemu_fetch *f)
{
	int fd = openat(f->dirfd, f->path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	assert_true(f->buffer_bytes > f->size_bytes);
	n = pread(fd, f->buffer, f->size_bytes + 1, 0);
	close(fd);
	return n;
}

static int one_by_one(void *state, struct gpemu_feed *feed,
		      struct gpemu_fetch **ret, char *error, size_t n)
{
	int r = gpemu_feed_take(feed, 1, ret);

	(void)state, (void)error, (void)n;
	if (r == 0)
		gpemu_feed_done(feed, *ret, read_file(*ret));
	return r;
}

struct many {
	unsigned depth, n;
	struct gpemu_fetch **fetch;
};

static int many_init(void *state, const struct gpemu_engine_config *c,
		     char *error, size_t n)
{
	struct many *m = state;

	(void)error, (void)n;
	m->depth = c->depth;
	m->fetch = calloc(c->depth, sizeof(struct gpemu_fetch *));
	return m->fetch ? 0 : -ENOMEM;
}

static void many_fini(void *state)
{
	struct many *m = state;

	free(m->fetch);
}

static int many_next(void *state, struct gpemu_feed *feed,
		     struct gpemu_fetch **ret, char *error, size_t n)
{
	struct many *m = state;
	struct gpemu_fetch *f;
	int r;

	(void)error, (void)n;
	while ((r = gpemu_feed_take(feed, m->n == 0, &f)) == 0) {
		/* the slot's own, and no other's now */
		assert_true(!f->user || f->user == (char *)m + f->slot);
		f->user = (char *)m + f->slot;
		assert_true(m->n < m->depth && f->slot < m->depth);
		m->fetch[m->n++] = f;
		if (m->n == 1)
			assert_int_equal(gpemu_feed_take(feed, 1, &f), -EINVAL);
	}
	if (r != -EAGAIN)
		return r;
	f = m->fetch[--m->n];
	gpemu_feed_done(feed, f, read_file(f));
	*ret = f;
	return 0;
}

const struct gpemu_engine lib_engine_one = {
	.struct_bytes = sizeof(struct gpemu_engine),
	.name = "one",
	.flags = GPEMU_ENGINE_WHOLE_BATCHES,
	.next = one_by_one,
};

const struct gpemu_engine lib_engine_many = {
	.struct_bytes = sizeof(struct gpemu_engine),
	.name = "many",
	.state_bytes = sizeof(struct many),
	.flags = GPEMU_ENGINE_ANY_ORDER,
	.init = many_init,
	.fini = many_fini,
	.next = many_next,
};
