/* SPDX-License-Identifier: MIT */
/* A worker of the preparation service with a real job, and a trainer that is
 * not what it seems: after each the worker serves an honest one in full. And
 * trainers that share its job. */
#include "loader/dataset/format_open.h"
#include "loader/options/train_resolve.h"
#include "loader/options/train_table.h"
#include "service/worker/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "loader/options/train_job.h"
#include "net/loop.h"
#include "service/core/splits.h"
#include "service/worker/buckets.h"
#include "tests/contract/service_rig.h"
#include "tests/unit/test.h"

enum { SAMPLES = 8, BATCH = 2, EPOCH = 3, JOB = 1, TRAINERS = 2 };

/* Bytes of a sample. */
static size_t bytes_of(uint32_t sample)
{
	return 20 + 20 * (sample % 2);
}

struct fixture {
	struct service_rig r;
	char dir[64];
	struct addr at;
	struct serve *s;
	pthread_t thread;
	struct hand trainer; /* with the dispatcher */
};

static void fill_folder(char dir[64])
{
	char path[80];

	strcpy(dir, "/tmp/gpemu-worker.XXXXXX");
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < SAMPLES; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%d", dir, i);
		fd = open(path, O_WRONLY | O_CREAT, 0600);
		assert_int_equal(write(fd, path, bytes_of((uint32_t)i)),
				 bytes_of((uint32_t)i));
		close(fd);
	}
}

static void empty_folder(const char *dir)
{
	char path[80];

	for (int i = 0; i < SAMPLES; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		unlink(path);
	}
	rmdir(dir);
}

static void set(char **option, const char *value)
{
	free(*option);
	*option = strdup(value);
}

/* What a trainer sends of a job on this folder; malloc'ed. */
static char *definition(const char *dir)
{
	struct train_options o = { 0 };
	struct train_choice choice = { 0 };
	struct dataset data = { .dirfd = -1 };
	struct format_result how = { 0 };
	struct err err = { 0 };
	json_t *j;
	char *text;

	train_options_init(&o);
	set(&o.data, dir);
	set(&o.index, "off");
	set(&o.prep, "none");
	o.batch = BATCH;
	assert_int_equal(train_options_resolve(&o, &choice, &err), 0);
	assert_int_equal(train_data_open(&o, &choice, &data, &how, &err), 0);
	assert_int_equal(data.n, SAMPLES);
	j = train_job_json(&o, &data, false, NULL);
	text = json_dumps(j, 0);
	json_decref(j);
	format_result_fini(&how);
	dataset_close(&data);
	train_choice_fini(&choice);
	conf_free(train_fields, &o);
	return text;
}

static void *run(void *arg)
{
	struct err err = { 0 };

	assert_int_equal(serve_run(arg, &err), 0);
	return NULL;
}

static void bring_job(struct fixture *f, struct msg job)
{
	struct msg hello = {
		.type = PREPD_HELLO, .role = PREPD_TRAINER, .id = 1, .job = JOB
	};
	struct msg epoch = {
		.type = PREPD_EPOCH, .job = JOB, .epoch = EPOCH, .a = SAMPLES
	};
	char *text = definition(f->dir);

	job.type = PREPD_JOB;
	job.job = JOB;
	job.count = BATCH;
	job.split = 1;
	job.rest = text;
	job.n_rest = strlen(text);
	hand_dial(&f->trainer, &f->r.at, &f->r.access.secret);
	hand_say(&f->trainer, &hello);
	hand_say(&f->trainer, &job);
	hand_say(&f->trainer, &epoch);
	free(text);
}

/* With this job. */
static int start_with(void **state, const struct msg *job)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct serve_config c = {
		.window_bytes = 2000, /* some batches */
		.timeout_ns = 20 * NS_PER_S,
		.options = { .loader = "sync",
			     .workers = 1,
			     .prefetch = SAMPLES, /* windows for all */
			     .time_scale = 1 },
	};
	struct err err = { 0 };
	char at[32];

	fill_folder(f->dir);
	service_rig_start(&f->r, 20 * NS_PER_S);
	close(hand_listen(at));
	assert_int_equal(access_find(&f->r.access, at, &f->at, &err), 0);
	c.tick = f->r.tick;
	c.access = &f->r.access;
	c.dispatcher = &f->r.at;
	c.listen = &f->at;
	c.address = f->at.text;
	assert_int_equal(serve_new(&c, &f->s, &err), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, run, f->s), 0);
	bring_job(f, *job);
	*state = f;
	return 0;
}

static int start(void **state)
{
	const struct msg job = { .role = SPLIT_DYNAMIC };

	return start_with(state, &job);
}

static const struct msg window_job = { .role = SPLIT_OFF,
				       .share = SHARE_WINDOW };

static int start_window(void **state)
{
	return start_with(state, &window_job);
}

/* Samples of 20 and of 40 bytes are of different lengths. */
static int start_rounds(void **state)
{
	const struct msg job = {
		.role = SPLIT_OFF, .share = SHARE_ROUNDS, .a = 20, .b = TRAINERS
	};

	return start_with(state, &job);
}

static int stop(void **state)
{
	struct fixture *f = *state;

	serve_drain(f->s, 0);
	pthread_join(f->thread, NULL);
	serve_free(f->s);
	hand_close(&f->trainer);
	service_rig_stop(&f->r, "closed");
	addr_fini(&f->at);
	empty_folder(f->dir);
	free(f);
	return 0;
}

static const struct msg reader = { .type = PREPD_HELLO,
				   .role = PREPD_READER,
				   .job = JOB };

static struct msg a_read(uint64_t have, uint64_t upto)
{
	return (struct msg){ .type = PREPD_READ,
			     .job = JOB,
			     .epoch = EPOCH,
			     .a = have,
			     .b = upto };
}

static void greet(struct fixture *f, struct hand *h)
{
	hand_dial(h, &f->at, &f->r.access.secret);
	hand_say(h, &reader);
}

/* All samples once, then the end. */
static void serves_all(struct fixture *f)
{
	struct msg read = a_read(0, UINT64_MAX), m;
	unsigned seen = 0;
	struct hand h;

	greet(f, &h);
	hand_say(&h, &read);
	for (int i = 0; i < SAMPLES / BATCH; i++) {
		hand_hear_type(&h, PREPD_BATCH, &m);
		assert_int_equal(m.a, i);
		for (uint32_t k = 0; k < m.count; k++) {
			struct msg_sample s = msg_batch_sample(&m, k);

			assert_int_equal(s.bytes, bytes_of(s.sample));
			seen ^= 1u << s.sample;
		}
	}
	assert_int_equal(seen, (1u << SAMPLES) - 1);
	hand_hear_type(&h, PREPD_EMPTY, &m);
	hand_close(&h);
}

static void what_no_trainer_says_ends_it(void **state)
{
	struct fixture *f = *state;
	const struct msg other = { .type = PREPD_READ, .job = 9 };
	/* after the HELLO, and after a READ */
	const struct msg wrong[][2] = {
		{ a_read(1, 9) }, /* nothing was sent */
		{ a_read(UINT64_MAX, UINT64_MAX) },
		{ { .type = PREPD_READ } },
		{ reader },
		{ { .type = PREPD_WANT, .job = JOB } },
		{ a_read(0, 0), a_read(1, 0) },
		{ a_read(0, 0), a_read(1, 1) },
		{ a_read(0, 0), other },
		{ other, a_read(0, 1) },
	};
	struct hand h;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		greet(f, &h);
		hand_say(&h, &wrong[i][0]);
		if (wrong[i][1].type)
			hand_say(&h, &wrong[i][1]);
		hand_wait_end(&h);
		serves_all(f);
	}
}

static void what_was_not_acknowledged_comes_again(void **state)
{
	struct fixture *f = *state;
	struct msg read = a_read(0, 2), m;
	struct hand first, h;

	/* another epoch is only waited for */
	greet(f, &first);
	read.epoch = EPOCH + 1;
	hand_say(&first, &read);
	read = a_read(0, 2);
	hand_say(&first, &read);
	hand_hear_type(&first, PREPD_BATCH, &m);
	assert_int_equal(m.a, 0);
	/* who comes later takes its place */
	greet(f, &h);
	read.b = 0;
	hand_say(&h, &read);
	hand_wait_end(&first);
	hand_close(&h);
	serves_all(f);
	/* what was acknowledged does not */
	greet(f, &h);
	read = a_read(0, UINT64_MAX);
	hand_say(&h, &read);
	for (int i = 0; i < SAMPLES / BATCH; i++)
		hand_hear_type(&h, PREPD_BATCH, &m);
	read.a = SAMPLES / BATCH;
	hand_say(&h, &read);
	hand_hear_type(&h, PREPD_EMPTY, &m);
	hand_close(&h);
	do { /* the READ may still be on its way */
		greet(f, &h);
		read.a = 0;
		hand_say(&h, &read);
		assert_true(hand_hear(&h, &m));
		hand_close(&h);
	} while (m.type == PREPD_BATCH);
	assert_int_equal(m.type, PREPD_EMPTY);
}

/* --- trainers that share a job -------------------------------------------- */

enum { LAPS = 100 };

struct shared_read {
	struct hand h;
	uint64_t have;
	uint32_t sample[LAPS][BATCH]; /* by the number of the batch */
};

static void join(struct fixture *f, struct shared_read *r, uint64_t trainer,
		 uint32_t consumer)
{
	struct msg hello = reader;

	*r = (struct shared_read){ 0 };
	hello.id = trainer;
	hello.count = consumer;
	hand_dial(&r->h, &f->at, &f->r.access.secret);
	hand_say(&r->h, &hello);
}

static void request(struct shared_read *r, uint64_t n, uint64_t next)
{
	struct msg read = a_read(r->have, r->have + n);

	read.c = next;
	hand_say(&r->h, &read);
}

/* The number of the batch that comes, by the worker's count. */
static uint64_t hear_batch(struct shared_read *r)
{
	struct msg m;

	hand_hear_type(&r->h, PREPD_BATCH, &m);
	assert_int_equal(m.a, r->have++);
	assert_int_equal(m.count, BATCH);
	assert_true(m.c < LAPS);
	for (uint32_t i = 0; i < BATCH; i++)
		r->sample[m.c][i] = msg_batch_sample(&m, i).sample;
	return m.c;
}

static void read_one(struct shared_read *r, uint64_t number)
{
	request(r, 1, number);
	assert_int_equal(hear_batch(r), number);
}

/* The one that does not read skips what has left the window, and holds nobody;
 * what both read is the same. */
static void a_window_waits_for_nobody(void **state)
{
	struct fixture *f = *state;
	struct shared_read *r = calloc(TRAINERS, sizeof(*r));
	uint64_t at;

	for (uint32_t i = 0; i < TRAINERS; i++) {
		join(f, &r[i], i + 1, 0);
		read_one(&r[i], 0);
	}
	for (uint64_t i = 1; i < LAPS; i++)
		read_one(&r[0], i);
	request(&r[1], 1, 1);
	at = hear_batch(&r[1]);
	assert_true(at > 1 && at + 1 < LAPS);
	for (uint64_t i = at + 1; i < LAPS; i++)
		read_one(&r[1], i);
	assert_memory_equal(r[0].sample[0], r[1].sample[0],
			    sizeof(r->sample[0]));
	assert_memory_equal(r[0].sample[at], r[1].sample[at],
			    (LAPS - at) * sizeof(r->sample[0]));
	/* they were sealed once */
	assert_memory_equal(r[0].h.key.bytes, r[1].h.key.bytes, SEAL_KEY);
	/* one that comes again goes on, and one that is new begins with the
	 * oldest that is kept */
	hand_close(&r[0].h);
	join(f, &r[0], 1, 0);
	read_one(&r[0], LAPS - 1);
	hand_close(&r[0].h);
	join(f, &r[0], 3, 0);
	request(&r[0], 1, 0);
	assert_int_equal(hear_batch(&r[0]), at);
	for (uint32_t i = 0; i < TRAINERS; i++)
		hand_close(&r[i].h);
	free(r);
}

/* Its numbers begin anew with the job, and so must the key. */
static void a_key_is_gone_with_its_job(void **state)
{
	const struct msg drop = { .type = PREPD_DROP, .job = JOB };
	struct fixture *f = *state;
	struct shared_read *r = calloc(TRAINERS, sizeof(*r));
	unsigned char before[SEAL_KEY], zero[SEAL_KEY] = { 0 };

	join(f, &r[0], 1, 0);
	read_one(&r[0], 0);
	memcpy(before, r[0].h.key.bytes, SEAL_KEY);
	assert_memory_not_equal(before, zero, SEAL_KEY);
	hand_say(&f->trainer, &drop);
	hand_wait_end(&r[0].h);
	hand_close(&f->trainer);
	bring_job(f, window_job);
	join(f, &r[1], 1, 0);
	read_one(&r[1], 0);
	assert_memory_not_equal(before, r[1].h.key.bytes, SEAL_KEY);
	hand_close(&r[1].h);
	free(r);
}

/* Each sample is in one round of a pass, which takes two. */
static void rounds_have_one_length(void **state)
{
	struct fixture *f = *state;
	struct shared_read *r = calloc(TRAINERS, sizeof(*r));
	unsigned seen = 0;

	for (uint32_t i = 0; i < TRAINERS; i++)
		join(f, &r[i], i + 1, i);
	for (uint64_t round = 0; round < LAPS; round++) {
		for (uint32_t i = 0; i < TRAINERS; i++)
			request(&r[i], 1, round);
		for (uint32_t i = 0; i < TRAINERS; i++)
			assert_int_equal(hear_batch(&r[i]), round);
		for (uint32_t i = 0; i < TRAINERS * BATCH; i++) {
			uint32_t s = r[i / BATCH].sample[round][i % BATCH];

			assert_int_equal(s % 2, r[0].sample[round][0] % 2);
			seen ^= 1u << s;
		}
		assert_true(round % 2 == 0 || seen == 0 ||
			    seen == (1u << SAMPLES) - 1);
	}
	/* no such consumer, and no such round */
	for (uint32_t i = 0; i < 2; i++) {
		hand_close(&r[i].h);
		join(f, &r[i], i + 1, i ? 0 : TRAINERS);
		request(&r[i], 1, i ? 9 * LAPS : 0);
		hand_wait_end(&r[i].h);
	}
	free(r);
}

/* What is in the file would be in the error that the trainer gets. */
static void a_definition_names_no_file(void **state)
{
	static const char head[] = "{\"options\": {\"data\": \"/\", "
				   "\"prep\": \"emulated\", \"prep_profile\": ";
	static const char *const files[] = { "\"/etc/passwd\"", "\"../x\"",
					     "\"x.yaml\"" };
	struct train_options o;
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct err err = { 0 };

		o = (struct train_options){ 0 };
		train_options_init(&o);
		snprintf(text, sizeof(text), "%s%s}}", head, files[i]);
		assert_int_equal(train_job_read(text, &o, &err), -EACCES);
		assert_null(strstr(err.text, "root:"));
		conf_free(train_fields, &o);
	}
}

/* It asked for 34 GiB; or per_round was 0, by an overflow. */
static void rounds_have_a_most(void **state)
{
	static const struct share share = { .how = SHARE_ROUNDS,
					    .consumers = 64 };
	const struct dataset data = { .largest = 40 };
	struct buckets *b;

	(void)state;
	for (uint32_t batch = 1u << 20; batch; batch <<= 1) {
		struct err err = { 0 };

		assert_int_equal(buckets_new(&share, batch, 100, &data, &b,
					     &err),
				 -E2BIG);
		assert_non_null(strstr(err.text, "smaller batch"));
	}
	assert_int_equal(buckets_new(&share, 1024, 100, &data, &b, NULL), 0);
	buckets_free(b);
}

/* Those who say who they are and no more make room for others. */
static void a_greeting_alone_keeps_no_connection(void **state)
{
	enum { CROWD = LOOP_STRANGERS + 8 };
	struct fixture *f = *state;
	struct hand crowd[CROWD];

	for (int i = 0; i < CROWD; i++)
		greet(f, &crowd[i]);
	hand_wait_end(&crowd[0]);
	for (int i = 1; i < CROWD; i++)
		hand_close(&crowd[i]);
	serves_all(f);
}

/* A dispatcher that wants a sign of life every 0 ns gets no more than one each
 * LEAST_BEAT_NS. */
static void a_dispatcher_hurries_no_worker(void **state)
{
	struct fixture *f = *state;
	const uint64_t watched = NS_PER_S / 10;
	struct serve_config c = { .tick = f->r.tick,
				  .access = &f->r.access,
				  .window_bytes = 2000,
				  .timeout_ns = 20 * NS_PER_S,
				  .options = { .loader = "sync",
					       .workers = 1,
					       .prefetch = 1,
					       .time_scale = 1 } };
	struct msg m, welcome = { .type = PREPD_WELCOME };
	struct hand h = { .in.most = PREPD_MOST };
	struct addr at, own;
	struct err err = { 0 };
	struct serve *s;
	pthread_t thread;
	char text[32], own_text[32];
	int listener = hand_listen(text);
	uint64_t from, n = 0;

	close(hand_listen(own_text));
	assert_int_equal(access_find(&f->r.access, text, &at, &err), 0);
	assert_int_equal(access_find(&f->r.access, own_text, &own, &err), 0);
	c.dispatcher = &at;
	c.listen = &own;
	c.address = own.text;
	assert_int_equal(serve_new(&c, &s, &err), 0);
	assert_int_equal(pthread_create(&thread, NULL, run, s), 0);
	h.fd = accept(listener, NULL, NULL);
	assert_true(h.fd >= 0);
	hand_agree(&h, &f->r.access.secret, 0);
	hand_hear_type(&h, PREPD_HELLO, &m);
	hand_say(&h, &welcome);
	from = tick_now(f->r.tick);
	for (; tick_now(f->r.tick) < from + watched; n++)
		hand_hear_type(&h, PREPD_BEAT, &m);
	assert_in_range(n, 2, watched / LEAST_BEAT_NS + 2);
	hand_close(&h);
	close(listener);
	serve_drain(s, 0);
	pthread_join(thread, NULL);
	serve_free(s);
	addr_fini(&own);
	addr_fini(&at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_definition_names_no_file),
		cmocka_unit_test(rounds_have_a_most),
		cmocka_unit_test_setup_teardown(
			a_greeting_alone_keeps_no_connection, start, stop),
		cmocka_unit_test_setup_teardown(what_no_trainer_says_ends_it,
						start, stop),
		cmocka_unit_test_setup_teardown(
			what_was_not_acknowledged_comes_again, start, stop),
		cmocka_unit_test_setup_teardown(a_window_waits_for_nobody,
						start_window, stop),
		cmocka_unit_test_setup_teardown(a_key_is_gone_with_its_job,
						start_window, stop),
		cmocka_unit_test_setup_teardown(rounds_have_one_length,
						start_rounds, stop),
		cmocka_unit_test_setup_teardown(a_dispatcher_hurries_no_worker,
						start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
