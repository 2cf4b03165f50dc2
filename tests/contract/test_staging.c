/* SPDX-License-Identifier: MIT */
/*
 * Processes that share a staging area: each uses every batch once, with the
 * right bytes, whichever of them is killed and where.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/staging/staging.h"

enum { JOBS = 3, EPOCHS = 3, PER_EPOCH = 40, ALL = EPOCHS * PER_EPOCH };
/* Where the first member is killed, in the second epoch. */
enum doom { NEVER, LOCKED, CLAIMED, WRITING, PUBLISHED, TAKEN, USED, N_DOOMS };

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/gpemu-staging-XXXXXX");
	assert_non_null(mkdtemp(dir));
	return setenv("XDG_RUNTIME_DIR", dir, 1);
}

static int teardown(void **state)
{
	(void)state;
	/* nothing is left behind, whatever happened */
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static uint64_t size_of(void *ctx, uint64_t index)
{
	(void)ctx;
	return 1000 + index * 7919 % 3000;
}

static unsigned char byte_of(uint64_t index)
{
	return (unsigned char)(index * 31 + 7);
}

static struct staging_config config(struct tick *tick, const json_t *same)
{
	return (struct staging_config){ .name = "test",
					.jobs = JOBS,
					.bytes = 12000,
					.largest = 4096,
					.wait_ns = 20 * NS_PER_S,
					.same = same,
					.tick = tick };
}

/* --- one member ----------------------------------------------------------- */

struct member {
	struct tick *tick;
	json_t *same;
	struct staging *s;
	enum doom doom;
	bool other_dies;
	uint64_t stop_at;  /* batches to use; then leave */
	uint64_t pause_us; /* for each batch used */
};

static void die_if(const struct member *m, enum doom here, uint64_t index)
{
	if (m->doom == here && index >= PER_EPOCH + 7)
		raise(SIGKILL);
}

static uint64_t size_or_die(void *ctx, uint64_t index)
{
	die_if(ctx, LOCKED, index);
	return size_of(NULL, index);
}

static void *make(void *arg)
{
	struct member *m = arg;
	uint64_t index;

	while (staging_claim(m->s, 3, &index) == 0) {
		uint64_t n = size_of(NULL, index);
		char *to = staging_memory(m->s, index, n);

		if (!to)
			break;
		die_if(m, CLAIMED, index);
		memset(to, byte_of(index), n / 2);
		die_if(m, WRITING, index);
		memset(to + n / 2, byte_of(index), n - n / 2);
		if (staging_publish(m->s, index, (uint32_t)n, 0.5) < 0)
			break;
		die_if(m, PUBLISHED, index);
	}
	return NULL;
}

/* 0: the right bytes. */
static int use(struct member *m, uint64_t index)
{
	struct staged_batch b;
	int r = staging_take(m->s, TICK_NEVER, &b);

	if (r < 0)
		return r;
	if (b.index != index || b.n != size_of(NULL, index) || b.bytes < b.n)
		return -EBADMSG;
	die_if(m, TAKEN, index);
	for (uint32_t i = 0; i < b.n; i++)
		if (((const unsigned char *)b.data)[i] != byte_of(index))
			return -EBADMSG;
	staging_use(m->s);
	die_if(m, USED, index);
	if (m->pause_us)
		usleep((useconds_t)m->pause_us);
	return 0;
}

static int join(struct member *m)
{
	struct staging_config c;
	struct err err = { 0 };
	int r;

	m->tick = tick_new(1, 0);
	m->same = json_pack("{s:i}", "--seed", 1);
	c = config(m->tick, m->same);
	r = staging_join(&c, &m->s, &err);
	if (r == 0)
		r = staging_begin(m->s, &err);
	if (r < 0)
		fprintf(stderr, "%s\n", err.text);
	return r;
}

static void quit(struct member *m)
{
	staging_free(m->s);
	json_decref(m->same);
	tick_free(m->tick);
}

static int run(struct member *m)
{
	pthread_t maker;
	int r = join(m);

	if (r == 0)
		pthread_create(&maker, NULL, make, m);
	for (uint64_t i = 0; r == 0 && i < m->stop_at; i++) {
		if (i % PER_EPOCH == 0)
			r = staging_enter(m->s, i, i + PER_EPOCH, size_or_die,
					  m);
		if (r == 0)
			r = use(m, i);
	}
	if (r == 0) {
		struct staging_stats st = staging_stats(m->s);

		r = st.used == m->stop_at && st.most_bytes <= st.bytes
			    ? 0
			    : -ERANGE;
		if (r == 0 && st.died != m->other_dies)
			r = -ESRCH;
	}
	staging_leave(m->s);
	if (r == 0)
		pthread_join(maker, NULL);
	quit(m);
	return r;
}

/* --- several -------------------------------------------------------------- */

static pid_t start(const struct member *like)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct member m = *like;
		int r;

		alarm(60); /* a hang is a failure */
		r = run(&m);
		_exit(-r);
	}
	assert_true(pid > 0);
	return pid;
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Did the first one meet its doom? */
static bool try_doom(enum doom doom)
{
	struct member m = { .stop_at = ALL, .other_dies = doom != NEVER };
	struct member doomed = { .stop_at = ALL, .doom = doom };
	pid_t first = start(&doomed), other[JOBS - 1];
	int status[JOBS - 1], end;

	for (unsigned i = 0; i < JOBS - 1; i++)
		other[i] = start(&m);
	for (unsigned i = 0; i < JOBS - 1; i++)
		status[i] = status_of(other[i]);
	end = status_of(first);
	if (doom && end == 0)
		return false;
	assert_int_equal(end, doom ? SIGKILL : 0);
	for (unsigned i = 0; i < JOBS - 1; i++)
		if (status[i])
			fail_msg("doom %d: status %x", (int)doom, status[i]);
	return true;
}

static void all_use_every_batch_whoever_is_killed(void **state)
{
	enum { MOST_TRIES = 50 };

	(void)state;
	for (enum doom doom = NEVER; doom < N_DOOMS; doom++) {
		int n = 0;

		/* the others may always be the first to plan */
		while (n < MOST_TRIES && !try_doom(doom))
			n++;
		assert_in_range(n, 0, MOST_TRIES - 1);
	}
}

static void slow_and_short_ones_hold_up_nobody_for_ever(void **state)
{
	struct member like[JOBS] = { { .stop_at = ALL },
				     { .stop_at = ALL, .pause_us = 2000 },
				     { .stop_at = PER_EPOCH + 3 } };
	pid_t pid[JOBS];

	(void)state;
	for (unsigned i = 0; i < JOBS; i++)
		pid[i] = start(&like[i]);
	for (unsigned i = 0; i < JOBS; i++)
		assert_int_equal(status_of(pid[i]), 0);
}

/* --- joining -------------------------------------------------------------- */

static void jobs_must_want_the_same_batches(void **state)
{
	struct tick *tick = tick_new(1, 0);
	json_auto_t *same = json_pack("{s:i}", "--seed", 1);
	json_auto_t *another = json_pack("{s:i}", "--seed", 2);
	struct staging_config c = config(tick, same);
	struct staging *s, *t;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(staging_join(&c, &s, &err), 0);
	c.same = another;
	assert_int_equal(staging_join(&c, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--seed: those of test have 1; this "
					 "one has 2"));
	err.text[0] = 0;
	c.same = same;
	c.largest = 12001;
	assert_int_equal(staging_join(&c, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "size="));
	staging_free(s);
	tick_free(tick);
}

static void who_waits_in_vain_says_how_many_came(void **state)
{
	struct tick *tick = tick_new(1, 0);
	json_auto_t *same = json_pack("{s:i}", "--seed", 1);
	struct staging_config c = config(tick, same);
	struct staging *s;
	struct err err = { 0 };

	(void)state;
	c.wait_ns = 20 * NS_PER_MS;
	assert_int_equal(staging_join(&c, &s, &err), 0);
	assert_int_equal(staging_begin(s, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "test: 1 of 3 jobs have joined within "
					 "20ms: start the others"));
	staging_stop(s);
	assert_int_equal(staging_begin(s, &err), -ECANCELED);
	staging_free(s);
	tick_free(tick);
}

/* Killed before all have joined: what they left is used again. */
static void leftovers_of_the_killed_do_not_count(void **state)
{
	struct member m = { .stop_at = ALL };
	pid_t pid[JOBS], dead = fork();

	(void)state;
	if (dead == 0) {
		struct staging_config c;

		m.tick = tick_new(1, 0);
		m.same = json_pack("{s:i}", "--seed", 2);
		c = config(m.tick, m.same);
		staging_join(&c, &m.s, NULL);
		raise(SIGKILL);
	}
	assert_int_equal(status_of(dead), SIGKILL);
	for (unsigned i = 0; i < JOBS; i++)
		pid[i] = start(&m);
	for (unsigned i = 0; i < JOBS; i++)
		assert_int_equal(status_of(pid[i]), 0);
}

static void refuse(int want, const char *text)
{
	struct tick *tick = tick_new(1, 0);
	json_auto_t *same = json_pack("{s:i}", "--seed", 1);
	struct staging_config c = config(tick, same);
	struct staging *s;
	struct err err = { 0 };

	assert_int_equal(staging_join(&c, &s, &err), want);
	if (!strstr(err.text, text))
		fail_msg("%s", err.text);
	tick_free(tick);
}

static void nobody_else_can_prepare_the_place(void **state)
{
	char path[128], text[192];
	int fd;

	(void)state;
	assert_int_equal(chmod(dir, 0770), 0);
	refuse(-EACCES, "other users may write there; run");
	assert_int_equal(chmod(dir, 0700), 0);
	snprintf(path, sizeof(path), "%s/gpemu-test.area", dir);
	assert_int_equal(symlink("/dev/null", path), 0);
	refuse(-ELOOP, "gpemu-test.area: it is a symbolic link; remove it");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	refuse(-EACCES, "not a file of gpemu-train");
	unlink(path);
	if (geteuid() == 0) {
		fd = open(path, O_CREAT | O_RDWR, 0600);
		assert_int_equal(fchown(fd, 1234, 1234), 0);
		close(fd);
		snprintf(text, sizeof(text), "%s belongs to user 1234", path);
		refuse(-EACCES, text);
		unlink(path);
		assert_int_equal(chown(dir, 1234, 1234), 0);
		refuse(-EACCES, "belongs to user 1234");
		assert_int_equal(chown(dir, 0, 0), 0);
	}
}

/* --- a stopped job -------------------------------------------------------- */

/* The file of the area, opened once more. */
static int open_area(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/gpemu-test.area", dir);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	return fd;
}

/* As a job that is stopped while it holds the lock. */
static void hold_lock(int fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_len = 1 };

	assert_int_equal(fcntl(fd, F_OFD_SETLK, &l), 0);
}

static uint64_t count_size(void *ctx, uint64_t index)
{
	++*(unsigned *)ctx;
	return size_of(NULL, index);
}

static void who_waits_for_a_stopped_job_can_end(void **state)
{
	struct tick *tick = tick_new(1, 0);
	json_auto_t *same = json_pack("{s:i}", "--seed", 1);
	struct staging_config c = config(tick, same);
	unsigned n_calls = 0, before;
	struct staging *s, *t, *u;
	struct err err = { 0 };
	uint64_t index;
	int fd;

	(void)state;
	c.jobs = 2;
	c.wait_ns = NS_PER_MS;
	assert_int_equal(staging_join(&c, &s, &err), 0);
	fd = open_area();
	hold_lock(fd);
	assert_int_equal(staging_join(&c, &u, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "stopped?"));
	err.text[0] = 0;
	assert_int_equal(staging_begin(s, &err), -EAGAIN);
	assert_non_null(strstr(err.text, "stopped?"));
	close(fd);
	fd = open_area();
	assert_int_equal(staging_join(&c, &t, &err), 0);
	assert_int_equal(staging_begin(s, &err), 0);
	assert_int_equal(staging_enter(s, 0, ALL, count_size, &n_calls), 0);
	assert_int_equal(staging_claim(s, 1, &index), 0);
	/* it cannot give the batch back now, but it will */
	hold_lock(fd);
	staging_stop(s);
	staging_give_back(s);
	close(fd);
	before = n_calls;
	assert_int_equal(staging_claim(s, 1, &index), -ECANCELED);
	assert_int_equal(n_calls, before);
	staging_resume(s);
	assert_int_equal(staging_enter(s, 0, 0, size_of, NULL), 0);
	assert_int_equal(staging_enter(t, 0, ALL, size_of, NULL), 0);
	assert_int_equal(staging_claim(t, 1, &index), 0);
	assert_int_equal(index, 0);
	staging_free(s);
	staging_free(t);
	tick_free(tick);
}

/* --- garbage -------------------------------------------------------------- */

static void *take_one(void *s)
{
	struct staged_batch b;

	return (void *)(intptr_t)staging_take(s, TICK_NEVER, &b);
}

/* Also who waits for a batch is told when another member finds it. */
static void damage_is_found_by_all(void **state)
{
	struct tick *tick = tick_new(1, 0);
	json_auto_t *same = json_pack("{s:i}", "--seed", 1);
	struct staging_config c = config(tick, same);
	struct staging *s, *t;
	struct err err = { 0 };
	pthread_t taker;
	void *r, *map;
	int fd;

	(void)state;
	alarm(60); /* a hang is a failure */
	c.jobs = 2;
	assert_int_equal(staging_join(&c, &s, &err), 0);
	fd = open_area();
	assert_int_equal(staging_join(&c, &t, &err), 0);
	assert_int_equal(staging_begin(s, &err), 0);
	assert_int_equal(staging_enter(s, 0, ALL, size_of, NULL), 0);
	pthread_create(&taker, NULL, take_one, s);
	tick_pause(10 * NS_PER_MS);
	map = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	memset(map, 0xff, 4096);
	staging_leave(t);
	pthread_join(taker, &r);
	assert_int_equal((intptr_t)r, -EPROTO);
	munmap(map, 4096);
	close(fd);
	staging_free(s);
	staging_free(t);
	tick_free(tick);
	alarm(0);
}

static void *scribble(void *arg)
{
	struct rng rng = rng_stream(1, "scribble", 0);
	char *map = arg;

	for (unsigned n = 0; n < 2000; n++) {
		char noise[64];
		size_t at = rng_below(&rng, sizeof(struct staging_plan) -
						    sizeof(noise));

		rng_bytes_at(rng_u64(&rng), 0, noise, sizeof(noise));
		memcpy(map + at, noise, rng_below(&rng, sizeof(noise)));
		tick_pause(50 * NS_PER_US);
	}
	return NULL;
}

/* The members may fail, but not crash. */
static void a_member_survives_what_others_write(void **state)
{
	char path[128];
	struct member m[2] = { { .tick = NULL } };
	struct tick *tick = tick_new(1, 0);
	json_auto_t *same = json_pack("{s:i}", "--seed", 1);
	struct staging_config c = config(tick, same);
	struct err err = { 0 };
	pthread_t thread, maker[2];
	char *map;
	int fd;

	(void)state;
	c.jobs = 2;
	assert_int_equal(staging_join(&c, &m[0].s, &err), 0);
	snprintf(path, sizeof(path), "%s/gpemu-test.area", dir);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	map = mmap(NULL, sizeof(struct staging_plan) + 4096,
		   PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(staging_join(&c, &m[1].s, &err), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(staging_begin(m[i].s, &err), 0);
		staging_enter(m[i].s, 0, ALL, size_of, NULL);
		pthread_create(&maker[i], NULL, make, &m[i]);
	}
	pthread_create(&thread, NULL, scribble, map);
	for (unsigned n = 0; n < 3000; n++) {
		struct staged_batch b;
		uint64_t now = tick_now(tick);

		if (staging_take(m[n % 2].s, now + 100 * NS_PER_US, &b) == 0 &&
		    b.bytes)
			/* a read outside the mapping would crash */
			(void)*((volatile const char *)b.data + b.bytes - 1);
		staging_use(m[n % 2].s);
		staging_enter(m[n % 2].s, n % ALL, ALL, size_of, NULL);
	}
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < 2; i++)
		staging_stop(m[i].s);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(maker[i], NULL);
		staging_free(m[i].s);
	}
	munmap(map, sizeof(struct staging_plan) + 4096);
	close(fd);
	tick_free(tick);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			all_use_every_batch_whoever_is_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			slow_and_short_ones_hold_up_nobody_for_ever, setup,
			teardown),
		cmocka_unit_test_setup_teardown(jobs_must_want_the_same_batches,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			who_waits_in_vain_says_how_many_came, setup, teardown),
		cmocka_unit_test_setup_teardown(
			leftovers_of_the_killed_do_not_count, setup, teardown),
		cmocka_unit_test_setup_teardown(
			nobody_else_can_prepare_the_place, setup, teardown),
		cmocka_unit_test_setup_teardown(
			who_waits_for_a_stopped_job_can_end, setup, teardown),
		cmocka_unit_test_setup_teardown(damage_is_found_by_all, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_member_survives_what_others_write, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
