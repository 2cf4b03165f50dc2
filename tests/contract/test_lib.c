/* SPDX-License-Identifier: MIT */
/* libgpemu through its public header, against the shared library. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <gpemu.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 26, BATCH = 4, STEPS = 7 };

static char dir[64], data[80];

/* --- a dataset: sample i has i * 777 bytes, all i + 1; two classes -------- */

static size_t size_of(unsigned i)
{
	return i * 777;
}

static void path_of(unsigned i, char path[96])
{
	snprintf(path, 96, "%s/%c/%02u", dir, i < N / 2 ? 'a' : 'b', i);
}

static int make_data(void **state)
{
	char path[96];

	(void)state;
	strcpy(dir, "/tmp/gpemu-lib-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(data, sizeof(data), "data=%s", dir);
	for (const char *c = "ab"; *c; c++) {
		snprintf(path, sizeof(path), "%s/%c", dir, *c);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	for (unsigned i = 0; i < N; i++) {
		FILE *f;

		path_of(i, path);
		f = fopen(path, "we");
		for (size_t k = 0; k < size_of(i); k++)
			fputc((int)i + 1, f);
		assert_int_equal(fclose(f), 0);
	}
	return 0;
}

static int remove_data(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* --- helpers -------------------------------------------------------------- */

/* The dataset, quickly, and up to six options more. */
static struct gpemu *open_with(const struct gpemu_engine *engine,
			       const char *const more[])
{
	const char *options[16] = { data,	 "prep=none",
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

/* Does opening fail, with `code` and these words? */
static void no_open(const struct gpemu_engine *engine, const char *option,
		    int code, const char *words)
{
	const char *options[] = { data, "index=off", option, NULL };
	char error[512] = "";
	struct gpemu *g = (void *)dir;
	int r = gpemu_open(options, engine, &g, error, sizeof(error));

	if (r != code || !strstr(error, words))
		fail_msg("%s: %d, %s", option ? option : "-", r, error);
	assert_null(g);
}

static void check_sample(const struct gpemu_sample *s)
{
	const unsigned char *byte = s->data;

	assert_true(s->index < N);
	assert_int_equal(s->error, 0);
	assert_int_equal(s->size_bytes, size_of((unsigned)s->index));
	assert_int_equal(s->label, s->index >= N / 2);
	assert_int_equal(atoi(s->path + 2), s->index);
	for (size_t k = 0; k < s->size_bytes; k++)
		assert_int_equal(byte[k], s->index + 1);
}

/* An epoch: each sample once, whole. */
static void whole_epoch(struct gpemu *g, uint64_t want)
{
	const struct gpemu_batch *b;
	unsigned seen[N] = { 0 };
	struct gpemu_epoch e;
	struct gpemu_step s;
	uint64_t epoch = 0, end = 0;
	int r;

	assert_int_equal(gpemu_begin_epoch(g, &epoch), 1);
	assert_int_equal(epoch, want);
	while ((r = gpemu_next(g, &b)) > 0) {
		for (uint32_t i = 0; i < b->n; i++) {
			check_sample(&b->samples[i]);
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
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(e.epoch, want);
	assert_int_equal(e.steps, STEPS);
	assert_int_equal(e.samples, N);
	assert_int_equal(e.data_bytes, 777 * N * (N - 1) / 2);
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

/* As many on the way as may be, done last in first out. */
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
		/* the slot's own, and nobody else's now */
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

static const struct gpemu_engine engine_one = {
	.struct_bytes = sizeof(struct gpemu_engine),
	.name = "one",
	.flags = GPEMU_ENGINE_WHOLE_BATCHES,
	.next = one_by_one,
};

static const struct gpemu_engine engine_many = {
	.struct_bytes = sizeof(struct gpemu_engine),
	.name = "many",
	.state_bytes = sizeof(struct many),
	.flags = GPEMU_ENGINE_ANY_ORDER,
	.init = many_init,
	.fini = many_fini,
	.next = many_next,
};

static void test_epochs(void **state)
{
	static const char *const options[][4] = {
		{ "loader=sync", "epochs=2" },
		{ "loader=threads", "epochs=2", "pin=on" },
		{ "epochs=2", "order=sequential" },
		{ "epochs=2", "superbatch=3", "queue_depth=6" },
	};
	static const struct gpemu_engine *const engine[] = { NULL, NULL,
							     &engine_one,
							     &engine_many };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct gpemu *g = open_with(engine[i], options[i]);

		whole_epoch(g, 0);
		whole_epoch(g, 1);
		assert_int_equal(gpemu_begin_epoch(g, NULL), 0);
		assert_int_equal(gpemu_close(g), 0);
	}
}

/* --- engines that break their contract ------------------------------------ */

static int not_done(void *state, struct gpemu_feed *feed,
		    struct gpemu_fetch **ret, char *error, size_t n)
{
	(void)state, (void)error, (void)n;
	return gpemu_feed_take(feed, 1, ret);
}

static int not_taken(void *state, struct gpemu_feed *feed,
		     struct gpemu_fetch **ret, char *error, size_t n)
{
	(void)state, (void)feed, (void)ret, (void)error, (void)n;
	return 0;
}

static int elsewhere(void *state, struct gpemu_feed *feed,
		     struct gpemu_fetch **ret, char *error, size_t n)
{
	int r = gpemu_feed_take(feed, 1, ret);

	(void)state, (void)error, (void)n;
	if (r < 0)
		return r;
	(*ret)->data = (char *)(*ret)->buffer + 2;
	gpemu_feed_done(feed, *ret, (int64_t)(*ret)->size_bytes);
	return 0;
}

static int gives_up(void *state, struct gpemu_feed *feed,
		    struct gpemu_fetch **ret, char *error, size_t n)
{
	(void)state, (void)feed, (void)ret;
	snprintf(error, n, "the tape is torn");
	return -EIO;
}

static void test_broken_engines(void **state)
{
	static const struct {
		int (*next)(void *, struct gpemu_feed *, struct gpemu_fetch **,
			    char *, size_t);
		int code;
		const char *words;
	} broken[] = {
		{ not_done, -EINVAL, "engine bad: returned a sample whose" },
		{ not_taken, -EINVAL, "engine bad: returned a sample that it" },
		{ elsewhere, -EINVAL, "engine bad: returned a sample that is" },
		{ gives_up, -EIO, "engine bad: the tape is torn" },
	};
	struct gpemu_engine e = engine_one;

	(void)state;
	e.name = "bad";
	for (unsigned i = 0; i < 4; i++) {
		const struct gpemu_batch *b;
		struct gpemu *g;
		int r;

		e.next = broken[i].next;
		g = open_with(&e, NULL);
		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		while ((r = gpemu_next(g, &b)) > 0)
			gpemu_submit(g, b, NULL);
		assert_int_equal(r, broken[i].code);
		assert_non_null(strstr(gpemu_error(g), broken[i].words));
		assert_int_equal(gpemu_end_epoch(g, NULL), r);
		assert_non_null(strstr(gpemu_error(g), broken[i].words));
		assert_int_equal(gpemu_begin_epoch(g, NULL), r);
		gpemu_close(g);
	}
}

static int no_init(void *state, const struct gpemu_engine_config *c,
		   char *error, size_t n)
{
	(void)state, (void)c;
	snprintf(error, n, "no tape in drive");
	return -EPERM;
}

static void test_refused_engines(void **state)
{
	struct gpemu_engine e = engine_one;

	(void)state;
	no_open(&e, "loader=sync", -EINVAL, "loader: an engine was given");
	e.init = no_init;
	no_open(&e, "prep=none", -EPERM, "engine one: no tape in drive");
	e = engine_one;
	no_open(&e, "direct=on", -EINVAL, "--loader one has no reads that");
	e.struct_bytes = 8;
	no_open(&e, NULL, -EINVAL, "struct_bytes");
	e = engine_one;
	e.next = NULL;
	no_open(&e, NULL, -EINVAL, "next");
	e = engine_one;
	e.flags = 8;
	no_open(&e, NULL, -EINVAL, "flags");
	e = engine_one;
	e.name = "";
	no_open(&e, NULL, -EINVAL, "name");
}

/* --- options -------------------------------------------------------------- */

static void test_options(void **state)
{
	char path[96], config[120];
	const char *const more[] = { config, "batch=13", NULL };
	struct gpemu *g;
	FILE *f;

	(void)state;
	no_open(NULL, "bach=4", -EINVAL, "bach=4: there is no such option");
	no_open(NULL, "drop_last", -EINVAL, "drop_last: not of the form");
	no_open(NULL, "progress=on", -EINVAL, "no such option");
	no_open(NULL, "json=-", -EINVAL, "no such option");
	no_open(NULL, "batch=many", -EINVAL, "batch: ");
	no_open(NULL, "loader=none", -EINVAL, "unknown engine");
	no_open(NULL, "gpu=abacus", -ENOENT, "abacus");
	no_open(NULL, "data=/nonexistent", -ENOENT, "/nonexistent");
	no_open(NULL, "config=/nonexistent", -ENOENT, "/nonexistent");
	snprintf(path, sizeof(path), "%s.yaml", dir);
	snprintf(config, sizeof(config), "config=%s", path);
	f = fopen(path, "we");
	fputs("batch: 2\ndrop_last: on\nbad: 1\n", f);
	fclose(f);
	no_open(NULL, config, -EINVAL, ".yaml:3:1: ");
	f = fopen(path, "we");
	fputs("batch: 2\nepochs: 3\n", f);
	fclose(f);
	/* what is given beside it counts */
	g = open_with(NULL, more);
	unlink(path);
	for (int i = 0; i < 3; i++) {
		const struct gpemu_batch *b;

		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		assert_int_equal(gpemu_next(g, &b), 1);
		assert_int_equal(b->n, 13);
		assert_int_equal(gpemu_end_epoch(g, NULL), 0);
	}
	assert_int_equal(gpemu_begin_epoch(g, NULL), 0);
	gpemu_close(g);
}

/* --- order of calls ------------------------------------------------------- */

static void test_misuse(void **state)
{
	const struct gpemu_batch *b, *other;
	struct gpemu_batch fake = { 0 };
	struct gpemu *g = open_with(NULL, NULL);
	char *record;

	(void)state;
	assert_string_equal(gpemu_error(g), "");
	assert_int_equal(gpemu_next(g, &b), -EINVAL);
	assert_int_equal(gpemu_end_epoch(g, NULL), -EINVAL);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	assert_int_equal(gpemu_begin_epoch(g, NULL), -EBUSY);
	assert_int_equal(gpemu_record(g, &record), -EBUSY);
	assert_int_equal(gpemu_next(g, &b), 1);
	assert_int_equal(gpemu_next(g, &other), -EBUSY);
	assert_non_null(strstr(gpemu_error(g), "held"));
	assert_int_equal(gpemu_submit(g, &fake, NULL), -EINVAL);
	assert_int_equal(gpemu_submit(g, b, NULL), 0);
	assert_int_equal(gpemu_submit(g, b, NULL), -EINVAL);
	assert_int_equal(gpemu_release(g, b), -EINVAL);
	/* closed with a batch in hand */
	assert_int_equal(gpemu_next(g, &b), 1);
	assert_int_equal(gpemu_close(g), 0);
	assert_int_equal(gpemu_close(NULL), 0);
}

/* An epoch of which `steps` batches are trained on and `released` are not. */
static void some_of_it(struct gpemu *g, unsigned steps, unsigned released,
		       int last)
{
	const struct gpemu_batch *b;
	struct gpemu_epoch e;

	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	for (unsigned i = 0; i < steps; i++) {
		assert_int_equal(gpemu_next(g, &b), 1);
		assert_int_equal(gpemu_submit(g, b, NULL), 0);
	}
	for (unsigned i = 0; i < released; i++) {
		assert_int_equal(gpemu_next(g, &b), 1);
		assert_int_equal(gpemu_release(g, b), 0);
	}
	assert_int_equal(gpemu_next(g, &b), last);
	assert_int_equal(gpemu_end_epoch(g, &e), 0);
	assert_int_equal(e.steps, steps);
}

static void test_cut_short(void **state)
{
	static const char *const pin[] = { "pin=off", "pin=on" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const char *const more[] = { "epochs=5", pin[i], "loader=sync",
					     NULL };
		struct gpemu *g = open_with(NULL, more);

		some_of_it(g, 2, 0, 1); /* one is held at its end */
		whole_epoch(g, 1);
		some_of_it(g, 3, 4, 0); /* all were taken */
		some_of_it(g, 0, 1, 1);
		whole_epoch(g, 4);
		assert_int_equal(gpemu_begin_epoch(g, NULL), 0);
		gpemu_close(g);
	}
}

static void test_several_gpus(void **state)
{
	static const char *const more[] = { "gpus=3", "loader=null",
					    "samples=24", NULL };
	struct gpemu *g = open_with(NULL, more);
	const struct gpemu_batch *b;
	struct gpemu_epoch e;

	(void)state;
	assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
	while (gpemu_next(g, &b) == 1)
		assert_int_equal(gpemu_submit(g, b, NULL), 0);
	assert_int_equal(gpemu_end_epoch(g, &e), 0);
	assert_int_equal(e.steps, 2);
	/* of one, not of all */
	assert_true(e.compute_ns > 0);
	assert_true(e.compute_ns + e.data_wait_ns + e.transfer_stall_ns <=
		    e.elapsed_ns);
	gpemu_close(g);
}

static void test_max_steps(void **state)
{
	static const char *const more[] = { "epochs=5", "max_steps=9", NULL };
	struct gpemu *g = open_with(NULL, more);

	(void)state;
	whole_epoch(g, 0);
	some_of_it(g, 2, 0, 0);
	assert_int_equal(gpemu_begin_epoch(g, NULL), 0);
	gpemu_close(g);
}

static void test_record(void **state)
{
	static const char *const more[] = { "gpu=a100", NULL };
	struct gpemu *g = open_with(&engine_one, more);
	char *record;

	(void)state;
	whole_epoch(g, 0);
	assert_int_equal(gpemu_record(g, &record), 0);
	assert_non_null(strstr(record, "\"libgpemu\",\n    \"data="));
	assert_non_null(strstr(record, "\"loader\": \"one\""));
	assert_non_null(strstr(record, "\"steps\": 7"));
	assert_non_null(strstr(record, "\"interrupted\": false"));
	free(record);
	gpemu_close(g);
}

/* --- interrupting --------------------------------------------------------- */

static void *interrupter(void *arg)
{
	usleep(20000);
	gpemu_interrupt(arg);
	return NULL;
}

static void test_interrupt(void **state)
{
	static const char *const more[] = { "epochs=100000", NULL };
	struct gpemu *g = open_with(&engine_many, more);
	const struct gpemu_batch *b;
	pthread_t thread;
	int r = 0, end = 0;

	(void)state;
	pthread_create(&thread, NULL, interrupter, g);
	while (end == 0) {
		assert_int_equal(gpemu_begin_epoch(g, NULL), 1);
		while ((r = gpemu_next(g, &b)) > 0)
			assert_int_equal(gpemu_submit(g, b, NULL), 0);
		end = gpemu_end_epoch(g, NULL);
		assert_int_equal(end, r);
	}
	pthread_join(thread, NULL);
	assert_int_equal(end, -ECANCELED);
	assert_int_equal(gpemu_begin_epoch(g, NULL), -ECANCELED);
	assert_int_equal(gpemu_close(g), 0);
}

/* --- several at once ------------------------------------------------------ */

static void *beside(void *arg)
{
	struct gpemu *g = open_with(arg, NULL);

	whole_epoch(g, 0);
	gpemu_close(g);
	return NULL;
}

static void test_side_by_side(void **state)
{
	pthread_t thread[2];

	(void)state;
	pthread_create(&thread[0], NULL, beside, (void *)&engine_one);
	pthread_create(&thread[1], NULL, beside, (void *)&engine_many);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_broken_engines),
		cmocka_unit_test(test_refused_engines),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_misuse),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_several_gpus),
		cmocka_unit_test(test_max_steps),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_side_by_side),
	};

	return cmocka_run_group_tests(tests, make_data, remove_data);
}
