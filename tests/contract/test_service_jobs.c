/* SPDX-License-Identifier: MIT */
/* A dispatcher of the preparation service, and trainers that share a job. */
#include <string.h>

#include "common/units.h"
#include "service/core/splits.h"
#include "tests/contract/service_rig.h"
#include "tests/unit/test.h"

enum { JOB = 1 };

static void join(struct service_rig *r, struct hand *h, uint64_t trainer,
		 uint32_t consumer, struct msg job)
{
	const struct msg hello = { .type = PREPD_HELLO,
				   .role = PREPD_TRAINER,
				   .job = JOB,
				   .id = trainer,
				   .count = consumer };

	job.type = PREPD_JOB;
	job.job = JOB;
	job.role = SPLIT_OFF;
	job.count = job.split = 2;
	hand_dial(h, &r->at, &r->access.secret);
	hand_say(h, &hello);
	hand_say(h, &job);
}

/* Of the job: `ns` for a batch. */
static void beat(struct hand *h, uint64_t ns)
{
	const struct msg m = { .type = PREPD_BEAT, .job = JOB, .b = ns };
	struct msg reply;

	hand_say(h, &m);
	do
		hand_hear_type(h, PREPD_BEAT, &reply);
	while (reply.b != ns);
}

static void hear_failure(struct hand *h, const char *why)
{
	struct msg m;

	hand_hear_type(h, PREPD_FAILED, &m);
	assert_int_equal(m.id, RIG_WORKER);
	assert_int_equal(m.n_rest, strlen(why));
	assert_memory_equal(m.rest, why, m.n_rest);
}

/* As many as there may be, as large as they may be. */
static void a_new_worker_gets_all_definitions(void **state)
{
	enum { JOBS = 64 };
	static char text[PREPD_TEXT];
	struct service_rig r;
	struct hand h[JOBS], worker;
	struct msg m, hello = { .type = PREPD_HELLO,
				.role = PREPD_WORKER,
				.id = 77,
				.rest = "127.0.0.1:9",
				.n_rest = 11 };

	(void)state;
	memset(text, 'x', sizeof(text));
	service_rig_start(&r, 20 * NS_PER_S);
	for (uint64_t i = 0; i < JOBS; i++) {
		const struct msg trainer = { .type = PREPD_HELLO,
					     .role = PREPD_TRAINER,
					     .job = i + 1,
					     .id = i + 1 };
		const struct msg job = { .type = PREPD_JOB,
					 .job = i + 1,
					 .role = SPLIT_DYNAMIC,
					 .count = 1,
					 .split = 1,
					 .rest = text,
					 .n_rest = sizeof(text) };

		hand_dial(&h[i], &r.at, &r.access.secret);
		hand_say(&h[i], &trainer);
		hand_say(&h[i], &job);
		hand_hear_type(&r.honest, PREPD_JOB, &m);
	}
	hand_dial(&worker, &r.at, &r.access.secret);
	hand_say(&worker, &hello);
	for (int i = 0; i < JOBS; i++)
		hand_hear_type(&worker, PREPD_JOB, &m);
	hand_close(&worker);
	for (int i = 0; i < JOBS; i++)
		hand_close(&h[i]);
	service_rig_stop(&r, "closed");
}

static void who_joins_is_told_of_failures(void **state)
{
	static const char why[] = "other samples here";
	const struct msg window = { .share = SHARE_WINDOW };
	struct msg failed = { .type = PREPD_FAILED,
			      .job = JOB,
			      .rest = why,
			      .n_rest = strlen(why) };
	struct service_rig r;
	struct hand h[3];

	(void)state;
	service_rig_start(&r, 20 * NS_PER_S);
	join(&r, &h[0], 1, 0, window);
	beat(&h[0], 1); /* the job is there */
	hand_say(&r.honest, &failed);
	hear_failure(&h[0], why);
	join(&r, &h[1], 2, 0, window);
	hear_failure(&h[1], why);
	/* the last reason, and once */
	failed.n_rest -= 5;
	hand_say(&r.honest, &failed);
	hear_failure(&h[1], "other samples");
	join(&r, &h[2], 3, 0, window);
	hear_failure(&h[2], "other samples");
	for (int i = 0; i < 3; i++) {
		hand_is_alive(&h[i]);
		hand_close(&h[i]);
	}
	service_rig_stop(&r, "closed");
}

/* A worker that was given up and comes back may be able to do the job now. */
static void a_reason_goes_with_its_worker(void **state)
{
	static const char why[] = "no such folder";
	const struct msg window = { .share = SHARE_WINDOW };
	const struct msg failed = { .type = PREPD_FAILED,
				    .job = JOB,
				    .rest = why,
				    .n_rest = strlen(why) };
	const struct msg alive = { .type = PREPD_BEAT };
	struct service_rig r;
	struct hand h[2];
	struct msg m;

	(void)state;
	service_rig_start(&r, 20 * NS_PER_S);
	join(&r, &h[0], 1, 0, window);
	beat(&h[0], 1);
	hand_say(&r.honest, &failed);
	hear_failure(&h[0], why);
	/* another one has its address, and then the first one again */
	for (uint64_t id = RIG_WORKER + 1; id >= RIG_WORKER; id--) {
		hand_close(&r.honest);
		service_rig_register(&r, id);
	}
	join(&r, &h[1], 2, 0, window);
	hand_say(&h[1], &alive);
	do {
		assert_true(hand_hear(&h[1], &m));
		assert_int_not_equal(m.type, PREPD_FAILED);
	} while (m.type != PREPD_BEAT);
	for (int i = 0; i < 2; i++)
		hand_close(&h[i]);
	service_rig_stop(&r, "closed");
}

/* Each consumer of rounds uses batches of its own; trainers of one sweep use
 * the same. */
static void all_consumers_of_rounds_count(void **state)
{
	static const struct {
		struct msg job;
		uint64_t ms[2];	   /* of a batch, of each trainer */
		json_int_t needed; /* of workers that take 38 ms */
	} cases[] = {
		{ { .share = SHARE_WINDOW }, { 10, 20 }, 4 },
		{ { .share = SHARE_ROUNDS, .b = 2 }, { 10, 10 }, 8 },
		{ { .share = SHARE_ROUNDS, .b = 2 }, { 10, 20 }, 6 },
		/* who has not reported is like the others */
		{ { .share = SHARE_ROUNDS, .b = 2 }, { 10, 0 }, 8 },
		{ { .share = SHARE_ROUNDS, .b = 1 }, { 10, 0 }, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct service_rig r;
		struct hand h[2];
		uint32_t n = cases[i].ms[1] ? 2 : 1;
		json_t *j;

		service_rig_start(&r, 20 * NS_PER_S);
		for (uint32_t k = 0; k < n; k++) {
			join(&r, &h[k], k + 1, k, cases[i].job);
			beat(&h[k], cases[i].ms[k] * NS_PER_MS);
		}
		beat(&r.honest, 38 * NS_PER_MS);
		for (uint32_t k = 0; k < n; k++)
			hand_close(&h[k]);
		j = service_rig_end(&r);
		assert_int_equal(json_integer_value(
					 json_object_get(j, "workers_needed")),
				 cases[i].needed);
		json_decref(j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_worker_gets_all_definitions),
		cmocka_unit_test(who_joins_is_told_of_failures),
		cmocka_unit_test(a_reason_goes_with_its_worker),
		cmocka_unit_test(all_consumers_of_rounds_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
