/* SPDX-License-Identifier: MIT */
/*
 * A dispatcher of the preparation service and a peer that is not what it seems:
 * another key, garbage, silence, messages out of place. Its connection ends,
 * the others go on, and nothing grows.
 */
#include "tests/contract/service_rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/units.h"
#include "common/util.h"
#include "net/wire.h"
#include "service/core/registry.h"
#include "service/core/splits.h"
#include "tests/unit/test.h"

/* A peer that is silent for so long is slow. */
#define HASTY (400 * NS_PER_MS)
#define ADDRESS(text) .rest = (text), .n_rest = sizeof(text) - 1
#define WORKER                                                      \
	{                                                           \
		.type = PREPD_HELLO, .role = PREPD_WORKER, .id = 5, \
		ADDRESS("127.0.0.1:9")                              \
	}
#define TRAINER                                                               \
	{                                                                     \
		.type = PREPD_HELLO, .role = PREPD_TRAINER, .job = 1, .id = 2 \
	}
#define A_JOB                                                       \
	{                                                           \
		.type = PREPD_JOB, .job = 1, .role = SPLIT_DYNAMIC, \
		.count = 2, .split = 1, ADDRESS("{}")               \
	}
#define SHARED(mode, ...)                                                \
	{                                                                \
		.type = PREPD_JOB, .job = 1, .role = (mode), .count = 2, \
		.split = 1, __VA_ARGS__                                  \
	}
#define AN_EPOCH                                                  \
	{                                                         \
		.type = PREPD_EPOCH, .job = 1, .epoch = 3, .a = 8 \
	}

/* The last message is one that does not belong there. */
static const struct msg wrong[][4] = {
	{ A_JOB },
	{ { .type = PREPD_HELLO } },
	{ { .type = PREPD_HELLO, .role = PREPD_READER, .job = 1 } },
	{ { .type = PREPD_HELLO, .role = PREPD_TRAINER, .id = 2 } },
	{ { .type = PREPD_HELLO, .role = PREPD_TRAINER, .job = 1 } },
	{ { .type = PREPD_HELLO,
	    .role = PREPD_TRAINER,
	    .job = 1,
	    .id = 2,
	    .count = PREPD_CONSUMERS } },
	{ { .type = PREPD_HELLO, .role = PREPD_WORKER, ADDRESS("[::1]:9") } },
	{ { .type = PREPD_HELLO,
	    .role = PREPD_WORKER,
	    .id = 5,
	    ADDRESS("nowhere") } },
	{ WORKER, WORKER },
	{ WORKER, A_JOB },
	{ WORKER, { .type = PREPD_SPLIT } },
	{ WORKER, { .type = PREPD_READ } },
	{ TRAINER, TRAINER },
	{ TRAINER, AN_EPOCH },
	{ TRAINER, { .type = PREPD_WANT, .job = 1, .count = 9 } },
	{ TRAINER, { .type = PREPD_LEAVE } },
	{ TRAINER, { .type = PREPD_JOB, .job = 2, .count = 2, .split = 1 } },
	{ TRAINER, { .type = PREPD_JOB, .job = 1, .count = 0, .split = 1 } },
	{ TRAINER, { .type = PREPD_JOB, .job = 1, .count = 1, .split = 0 } },
	{ TRAINER,
	  { .type = PREPD_JOB, .job = 1, .role = 9, .count = 1, .split = 1 } },
	{ TRAINER, SHARED(SPLIT_OFF, .share = 9) },
	{ TRAINER, SHARED(SPLIT_DYNAMIC, .share = SHARE_WINDOW) },
	{ TRAINER, SHARED(SPLIT_OFF, .share = SHARE_WINDOW, .b = 2) },
	{ TRAINER, SHARED(SPLIT_DYNAMIC, .share = SHARE_ROUNDS, .b = 2) },
	{ TRAINER, SHARED(SPLIT_OFF, .share = SHARE_ROUNDS) },
	{ TRAINER, SHARED(SPLIT_OFF, .share = SHARE_ROUNDS, .b = 65) },
	{ TRAINER, A_JOB, { .type = PREPD_EPOCH, .job = 1, .a = 0 } },
	{ TRAINER, A_JOB, { .type = PREPD_EPOCH, .job = 1, .a = UINT64_MAX } },
	{ TRAINER, A_JOB, { .type = PREPD_EPOCH, .job = 1, .a = UINT32_MAX } },
	{ TRAINER,
	  A_JOB,
	  { .type = PREPD_EPOCH, .job = 1, .a = 8, ADDRESS("12345678") } },
	{ TRAINER,
	  A_JOB,
	  AN_EPOCH,
	  { .type = PREPD_DONE, .job = 1, .epoch = 3, .split = 4 } },
	{ TRAINER,
	  A_JOB,
	  AN_EPOCH,
	  { .type = PREPD_DONE, .job = 1, .epoch = 2 } },
	{ TRAINER,
	  A_JOB,
	  AN_EPOCH,
	  { .type = PREPD_DONE, .job = 2, .epoch = 3 } },
};

static void wrong_messages_end_their_connection_alone(void **state)
{
	struct service_rig r;
	struct hand h;

	(void)state;
	service_rig_start(&r, 20 * NS_PER_S);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		hand_dial(&h, &r.at, &r.access.secret);
		for (int k = 0; k < 4 && wrong[i][k].type; k++)
			hand_say(&h, &wrong[i][k]);
		hand_wait_end(&h);
		hand_is_alive(&r.honest);
	}
	assert_int_equal(service_rig_stop(&r, "wrong_message"),
			 ARRAY_SIZE(wrong));
}

static void one_worker_too_many_is_not_welcome(void **state)
{
	struct msg hello = { .type = PREPD_HELLO, .role = PREPD_WORKER }, m;
	struct service_rig r;
	struct hand h;
	char at[32];

	(void)state;
	service_rig_start(&r, 20 * NS_PER_S);
	hello.rest = at;
	for (uint64_t i = 1; i <= REGISTRY_MOST; i++) {
		snprintf(at, sizeof(at), "127.0.0.1:%d", (int)(1000 + i));
		hello.n_rest = strlen(at);
		hello.id = RIG_WORKER + i;
		hand_dial(&h, &r.at, &r.access.secret);
		hand_say(&h, &hello);
		assert_true(hand_hear(&h, &m));
		assert_int_equal(m.type, i < REGISTRY_MOST ? PREPD_WELCOME
							   : PREPD_REFUSE);
		hand_close(&h);
	}
	service_rig_stop(&r, "closed");
}

static void another_key_and_a_replay_are_garbage(void **state)
{
	const struct msg hello = WORKER, beat = { .type = PREPD_BEAT };
	struct seal_secret other;
	unsigned char *f;
	struct service_rig r;
	struct hand h;
	size_t n;

	(void)state;
	service_rig_start(&r, 20 * NS_PER_S);
	memset(&other, 7, sizeof(other));
	hand_dial(&h, &r.at, &other);
	hand_say(&h, &hello);
	hand_wait_end(&h);
	hand_dial(&h, &r.at, &r.access.secret);
	hand_say(&h, &hello);
	f = hand_frame(&h, &beat, &n);
	hand_say_plain(&h, f, n);
	hand_say_plain(&h, f, n);
	free(f);
	hand_wait_end(&h);
	hand_is_alive(&r.honest);
	assert_int_equal(service_rig_stop(&r, "garbage"), 2);
}

static void another_version_is_told(void **state)
{
	const struct msg hello = TRAINER;
	unsigned char f[FRAME_HEADER + PREPD_HEAD + SEAL_TAG];
	struct service_rig r;
	struct hand h;
	struct msg m;

	(void)state;
	service_rig_start(&r, 20 * NS_PER_S);
	hand_dial(&h, &r.at, &r.access.secret);
	wire_put(f, PREPD_HEAD + SEAL_TAG, FRAME_HEADER);
	msg_encode(&hello, f + FRAME_HEADER);
	wire_put(f + FRAME_HEADER + 2, PREPD_VERSION - 1, 2);
	seal_close(&h.seal, f, FRAME_HEADER, PREPD_HEAD);
	hand_say_plain(&h, f, sizeof(f));
	/* the reply has the dispatcher's version */
	assert_true(hand_hear(&h, &m));
	assert_int_equal(m.type, PREPD_REFUSE);
	hand_wait_end(&h);
	hand_is_alive(&r.honest);
	assert_int_equal(service_rig_stop(&r, "other_version"), 1);
}

static void half_a_message_is_too_slow(void **state)
{
	const struct msg hello = WORKER;
	unsigned char *f;
	struct service_rig r;
	struct hand h;
	size_t n;

	(void)state;
	service_rig_start(&r, HASTY);
	hand_dial(&h, &r.at, &r.access.secret);
	f = hand_frame(&h, &hello, &n);
	hand_say_plain(&h, f, n - 1);
	free(f);
	hand_wait_end(&h);
	service_rig_stop(&r, "slow");
}

static void a_crowd_of_strangers_keeps_nobody_out(void **state)
{
	struct hand crowd[300], h;
	struct msg hello = WORKER, m;
	struct service_rig r;

	(void)state;
	service_rig_start(&r, 20 * NS_PER_S);
	for (size_t i = 0; i < ARRAY_SIZE(crowd); i++)
		hand_dial_plain(&crowd[i], &r.at);
	hand_dial(&h, &r.at, &r.access.secret);
	hello.id = 6;
	hand_say(&h, &hello);
	hand_hear_type(&h, PREPD_WELCOME, &m);
	hand_is_alive(&h);
	hand_is_alive(&r.honest);
	for (size_t i = 0; i < ARRAY_SIZE(crowd); i++)
		hand_close(&crowd[i]);
	hand_close(&h);
	assert_true(service_rig_stop(&r, "too_many") >= 250);
}

static void who_does_not_read_costs_little(void **state)
{
	const struct msg hello = WORKER, beat = { .type = PREPD_BEAT };
	struct service_rig r;
	struct hand h;
	bool open = true;

	(void)state;
	service_rig_start(&r, 20 * NS_PER_S);
	hand_dial(&h, &r.at, &r.access.secret);
	hand_say(&h, &hello);
	while (open) { /* each is answered: the answers exceed OUTBOX_MOST */
		size_t n;
		unsigned char *f = hand_frame(&h, &beat, &n);

		open = send(h.fd, f, n, MSG_NOSIGNAL) > 0;
		free(f);
	}
	hand_close(&h);
	hand_is_alive(&r.honest);
	service_rig_stop(&r, "closed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_messages_end_their_connection_alone),
		cmocka_unit_test(one_worker_too_many_is_not_welcome),
		cmocka_unit_test(another_key_and_a_replay_are_garbage),
		cmocka_unit_test(another_version_is_told),
		cmocka_unit_test(half_a_message_is_too_slow),
		cmocka_unit_test(a_crowd_of_strangers_keeps_nobody_out),
		cmocka_unit_test(who_does_not_read_costs_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
