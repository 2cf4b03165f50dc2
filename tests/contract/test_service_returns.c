/* SPDX-License-Identifier: MIT */
/* A worker of the preparation service whose dispatcher is begun again: that
 * one remembers nothing, and may give a job's name to another. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/units.h"
#include "service/core/splits.h"
#include "service/worker/serve.h"
#include "tests/contract/service_rig.h"
#include "tests/unit/test.h"

enum { JOB = 1 };

struct fixture {
	struct tick *tick;
	struct access access;
	struct addr dispatcher, at;
	struct serve *s;
	pthread_t thread;
	int listener;
	struct hand link; /* with the worker */
};

static void *run(void *arg)
{
	struct err err = { 0 };

	assert_int_equal(serve_run(arg, &err), 0);
	return NULL;
}

static void start(struct fixture *f)
{
	struct serve_config c = {
		.access = &f->access,
		.dispatcher = &f->dispatcher,
		.listen = &f->at,
		.window_bytes = 2000,
		.timeout_ns = 20 * NS_PER_S,
		.options = { .loader = "sync", .workers = 1, .time_scale = 1 },
	};
	struct err err = { 0 };
	char at[32];

	*f = (struct fixture){ 0 };
	log_init("test", LOG_LEVEL_ERROR);
	f->tick = tick_new(1, 0);
	c.tick = f->tick;
	assert_int_equal(access_init(&f->access, NULL, &err), 0);
	close(hand_listen(at));
	assert_int_equal(access_find(&f->access, at, &f->at, &err), 0);
	f->listener = hand_listen(at);
	assert_int_equal(access_find(&f->access, at, &f->dispatcher, &err), 0);
	c.address = f->at.text;
	assert_int_equal(serve_new(&c, &f->s, &err), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, run, f->s), 0);
}

static void stop(struct fixture *f, json_int_t jobs)
{
	json_t *j;

	serve_drain(f->s, 0);
	pthread_join(f->thread, NULL);
	j = serve_json(f->s);
	assert_int_equal(json_integer_value(json_object_get(j, "jobs")), jobs);
	json_decref(j);
	serve_free(f->s);
	hand_close(&f->link);
	close(f->listener);
	addr_fini(&f->dispatcher);
	addr_fini(&f->at);
	access_fini(&f->access);
	tick_free(f->tick);
}

static void begin_dispatcher(struct fixture *f)
{
	const struct msg welcome = { .type = PREPD_WELCOME, .a = NS_PER_S };
	struct msg m;

	if (f->link.fd)
		hand_close(&f->link);
	f->link = (struct hand){ .in.most = PREPD_MOST };
	f->link.fd = accept(f->listener, NULL, NULL);
	assert_true(f->link.fd >= 0);
	hand_agree(&f->link, &f->access.secret, 0);
	hand_hear_type(&f->link, PREPD_HELLO, &m);
	hand_say(&f->link, &welcome);
}

static void say_job(struct fixture *f, uint64_t number, const char *definition)
{
	const struct msg job = { .type = PREPD_JOB,
				 .job = JOB,
				 .id = number,
				 .role = SPLIT_OFF,
				 .share = SHARE_WINDOW,
				 .count = 2,
				 .split = 1,
				 .rest = (const void *)definition,
				 .n_rest = strlen(definition) };

	hand_say(&f->link, &job);
}

static void hear_failure(struct fixture *f, const char *why)
{
	struct msg m;

	hand_hear_type(&f->link, PREPD_FAILED, &m);
	assert_int_equal(m.job, JOB);
	assert_int_equal(m.n_rest, strlen(why));
	assert_memory_equal(m.rest, why, m.n_rest);
}

static void a_dispatcher_begun_again_hears_why(void **state)
{
	static const char bad[] = "the job's definition has no options";
	static const char unknown[] = "{\"options\": {\"sesame\": \"open\"}}";
	struct fixture f;

	(void)state;
	start(&f);
	begin_dispatcher(&f);
	say_job(&f, 7, "{}");
	hear_failure(&f, bad);
	begin_dispatcher(&f);
	hear_failure(&f, bad);
	/* a trainer that has it brings the job only now */
	say_job(&f, 0, "{}");
	hear_failure(&f, bad);
	/* its name is used again */
	begin_dispatcher(&f);
	hear_failure(&f, bad);
	say_job(&f, 8, "{}");
	hear_failure(&f, bad);
	say_job(&f, 9, unknown);
	hear_failure(&f, "the job:1:2: unknown key 'sesame'");
	stop(&f, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dispatcher_begun_again_hears_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
