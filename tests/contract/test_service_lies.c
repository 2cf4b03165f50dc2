/* SPDX-License-Identifier: MIT */
/* A trainer and a worker of the preparation service that lies to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "net/parcel.h"
#include "service/client/client.h"
#include "tests/contract/service_rig.h"
#include "tests/unit/test.h"

enum { SAMPLES = 8, BATCH = 2, BYTES = 64, BUFFERS = 3 };

struct lie {
	const char *what;
	struct msg m;	 /* 0: of an honest batch 0 */
	uint32_t first;	 /* sample */
	uint64_t bytes;	 /* of the first sample; the other has none */
	uint32_t second; /* sample; 0: the one behind the first */
};

static const struct lie lies[] = {
	{ "samples of another batch", { .count = BATCH }, 4, 9 },
	{ "a sample twice", { .count = BATCH, .c = 1, .split = 1 }, 2, 9 },
	{ "a sample that the dataset does not have, first of two",
	  { .count = BATCH },
	  SAMPLES,
	  9 },
	/* SplitMix64's finaliser of these, plus 1, has the sum of that of the
	 * samples 2 and 3: computed, a minute */
	{ "samples far outside, of a sum that is right",
	  { .count = BATCH, .c = 1, .split = 1 },
	  320265222,
	  9,
	  3288374174 },
	{ "a split that is not there", { .count = BATCH, .split = 9 }, 0, 9 },
	{ "a position outside its split", { .count = BATCH, .c = 3 }, 6, 9 },
	{ "a position that overflows",
	  { .count = BATCH, .c = UINT64_MAX },
	  0,
	  9 },
	{ "too few samples", { .count = 1 }, 0, 9 },
	{ "too many samples", { .count = BATCH + 1 }, 0, 9 },
	{ "more bytes than announced", { .count = BATCH }, 0, BYTES + 1 },
	{ "a number out of turn", { .count = BATCH, .a = 1 }, 0, 9 },
	{ "another job", { .count = BATCH, .job = 77 }, 0, 9 },
	{ "no batch", { .type = PREPD_WELCOME }, 0, 0 },
};

static void say_batch(struct hand *h, const struct lie *l, uint64_t job,
		      bool twice)
{
	size_t head = msg_batch_head(l->m.count);
	unsigned char *bytes = calloc(1, head + l->bytes);
	struct msg m = l->m;

	if (!m.type)
		m.type = PREPD_BATCH;
	if (!m.job)
		m.job = job;
	for (uint32_t i = 0; i < m.count; i++) {
		const struct msg_sample s = {
			.sample = i && l->second ? l->second
						 : l->first + (twice ? 0 : i),
			.bytes = i ? 0 : l->bytes,
		};

		msg_batch_put(bytes + PREPD_HEAD, i, &s);
	}
	if (m.type == PREPD_BATCH) {
		m.rest = bytes + PREPD_HEAD;
		m.n_rest = head + l->bytes - PREPD_HEAD;
	}
	hand_say(h, &m);
	free(bytes);
}

struct trainer {
	struct service_rig r;
	struct client *c;
	unsigned char *buffer[BUFFERS];
	uint32_t order[SAMPLES];
	int listener;
	struct hand registered, link; /* as a worker; with the trainer */
	uint64_t job;
};

static void accept_trainer(struct trainer *t)
{
	struct msg m;

	t->link = (struct hand){ .in.most = PREPD_MOST };
	t->link.fd = accept(t->listener, NULL, NULL);
	assert_true(t->link.fd >= 0);
	hand_agree(&t->link, &t->r.access.secret, 0);
	hand_hear_type(&t->link, PREPD_READ, &m);
	t->job = m.job;
}

static void trainer_start(struct trainer *t, enum share_how how)
{
	struct client_config c = { .definition = "{}",
				   .mode = how ? SPLIT_OFF : SPLIT_DYNAMIC,
				   .job = how ? "shared" : NULL,
				   .share.how = how,
				   .batch = BATCH,
				   .per_split = 1,
				   .n_samples = SAMPLES,
				   .wait_ns = 20 * NS_PER_S,
				   .buffer = t->buffer,
				   .n_buffers = BUFFERS,
				   .buffer_bytes =
					   client_buffer_bytes(BATCH, BYTES) };
	struct msg hello = { .type = PREPD_HELLO,
			     .role = PREPD_WORKER,
			     .id = 8 };
	struct err err = { 0 };
	char at[32];

	service_rig_start(&t->r, 20 * NS_PER_S);
	c.tick = t->r.tick;
	c.dispatcher = t->r.at.text;
	for (int i = 0; i < BUFFERS; i++)
		t->buffer[i] = aligned_alloc(4096, 4096);
	for (uint32_t i = 0; i < SAMPLES; i++)
		t->order[i] = i;
	t->listener = hand_listen(at);
	hello.rest = at;
	hello.n_rest = strlen(at);
	hand_dial(&t->registered, &t->r.at, &t->r.access.secret);
	hand_say(&t->registered, &hello);
	assert_int_equal(client_new(&c, &t->c, &err), 0);
	assert_int_equal(client_begin(t->c, 0, t->order, SAMPLES, &err), 0);
	accept_trainer(t);
}

static void trainer_stop(struct trainer *t)
{
	client_free(t->c);
	hand_close(&t->link);
	hand_close(&t->registered);
	close(t->listener);
	for (int i = 0; i < BUFFERS; i++)
		free(t->buffer[i]);
	service_rig_stop(&t->r, "closed");
}

static int next(struct trainer *t, struct shelf_buffer **ret, struct err *err)
{
	return client_next(t->c, TICK_NEVER, ret, err);
}

static void a_lie_of_a_worker_ends_the_run(void **state)
{
	struct shelf_buffer *b;
	struct trainer t;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct err err = { 0 };

		trainer_start(&t, SHARE_NONE);
		say_batch(&t.link, &lies[i], t.job,
			  strstr(lies[i].what, "twice"));
		if (next(&t, &b, &err) != -EPROTO)
			fail_msg("%s: accepted", lies[i].what);
		assert_non_null(strstr(err.text, "does not belong"));
		trainer_stop(&t);
	}
}

/* Without splits a worker has an order of its own: nothing is compared, but
 * what follows finds each sample by its number. */
static void a_sample_outside_the_dataset_ends_the_run(void **state)
{
	const struct lie lie = { .m.count = BATCH,
				 .first = SAMPLES - 1,
				 .bytes = 9 };
	struct shelf_buffer *b;
	struct err err = { 0 };
	struct trainer t;

	(void)state;
	trainer_start(&t, SHARE_WINDOW);
	say_batch(&t.link, &lie, t.job, false);
	assert_int_equal(next(&t, &b, &err), -EPROTO);
	trainer_stop(&t);
}

/* A batch again is dropped; batches that nobody wants end the connection, and
 * what was not taken is sent over the next one. */
static void more_than_was_granted_is_not_kept(void **state)
{
	struct lie batch = { .m.count = BATCH, .bytes = 9 };
	struct shelf_buffer *b;
	struct err err = { 0 };
	struct trainer t;
	json_t *j;

	(void)state;
	trainer_start(&t, SHARE_NONE);
	for (batch.m.a = 0; batch.m.a < 2 * BUFFERS; batch.m.a++)
		say_batch(&t.link, &batch, t.job, false);
	assert_int_equal(next(&t, &b, &err), 0);
	assert_int_equal(msg_batch_sample(&b->m, 1).sample, 1);
	for (int i = 1; i <= 2 * BUFFERS; i++) { /* nobody takes them */
		batch.first = BATCH * ((uint32_t)i % 4);
		batch.m.split = (uint32_t)i % 4;
		batch.m.c = (uint64_t)i % 4;
		say_batch(&t.link, &batch, t.job, false);
		batch.m.a++;
	}
	hand_wait_end(&t.link);
	client_release(t.c, b);
	accept_trainer(&t);
	for (uint32_t i = 1; i < SAMPLES / BATCH; i++) {
		batch.first = BATCH * i;
		batch.m.a = i - 1;
		batch.m.split = i;
		batch.m.c = i;
		say_batch(&t.link, &batch, t.job, false);
		assert_int_equal(next(&t, &b, &err), 0);
		client_release(t.c, b);
	}
	assert_int_equal(next(&t, &b, &err), -ENODATA);
	j = client_json(t.c);
	assert_int_equal(json_integer_value(json_object_get(j, "batches")), 4);
	assert_true(json_integer_value(json_object_get(j, "batches_twice")) >=
		    2 * BUFFERS - 1);
	json_decref(j);
	trainer_stop(&t);
}

/* --- parcels -------------------------------------------------------------- */

/* Behind the honest batch 0 of a shared job: batch 1, but... */
static const struct parcel_lie {
	const char *what;
	uint64_t whose;	 /* not the job's */
	uint64_t before; /* sealed as a batch so far before it */
	int changed;	 /* byte */
	bool no_key, other_key;
	uint32_t count; /* samples; 0: BATCH */
	uint64_t bytes; /* of the first one */
	bool ends;	/* the run; else the connection */
} parcel_lies[] = {
	{ "a byte of the table is changed", .changed = 1 },
	{ "a byte of the samples is changed", .changed = PREPD_ALIGN },
	{ "its tag is changed", .changed = PREPD_ALIGN + 9 + SEAL_TAG - 1 },
	{ "it is the parcel before", .before = 1 },
	{ "it is of another job", .whose = 1 },
	{ "it is sealed with another key", .other_key = true },
	{ "a head without a key", .no_key = true, .ends = true },
	{ "more than a buffer", .bytes = BYTES + 1, .ends = true },
	{ "too many samples", .count = BATCH + 1, .ends = true },
};

static void say_key(struct trainer *t, const struct seal_key *k)
{
	const struct msg m = { .type = PREPD_KEY,
			       .job = t->job,
			       .rest = k->bytes,
			       .n_rest = SEAL_KEY };

	hand_say(&t->link, &m);
}

/* Batch `c`, the a-th of the connection, of samples 2 c and 2 c + 1. */
static void say_parcel(struct trainer *t, const struct seal_key *k, uint64_t a,
		       uint64_t c, const struct parcel_lie *l)
{
	const struct msg m = { .type = PREPD_SHARED,
			       .job = t->job,
			       .a = a,
			       .c = c,
			       .count = l->count ? l->count : BATCH };
	uint64_t bytes = l->bytes ? l->bytes : 9;
	struct parcel *p = parcel_new(msg_batch_table(m.count) + bytes);

	memset(parcel_body(p), 0, p->n - FRAME_HEADER - SEAL_TAG);
	for (uint32_t i = 0; i < m.count; i++) {
		const struct msg_sample s = { .sample = (uint32_t)(2 * c) + i,
					      .bytes = i ? 0 : bytes };

		msg_batch_put(parcel_body(p), i, &s);
	}
	parcel_seal(p, k, t->job ^ l->whose, c - l->before);
	if (l->changed)
		parcel_body(p)[l->changed] ^= 1;
	hand_say(&t->link, &m);
	hand_say_plain(&t->link, p->bytes, p->n);
	parcel_put(p);
}

static void take_shared(struct trainer *t, uint32_t sample)
{
	struct shelf_buffer *b;
	struct err err = { 0 };

	assert_int_equal(next(t, &b, &err), 0);
	assert_int_equal(msg_batch_sample(&b->m, 0).sample, sample);
	assert_int_equal(msg_batch_data(&b->m) - b->bytes,
			 msg_batch_head(BATCH));
	client_release(t->c, b);
}

static void after_a_lie(struct trainer *t, const struct parcel_lie *l,
			const struct seal_key *k)
{
	static const struct parcel_lie none;
	struct shelf_buffer *b;
	struct err err = { 0 };
	json_t *j;

	if (l->ends) {
		if (next(t, &b, &err) != -EPROTO)
			fail_msg("%s: accepted", l->what);
		assert_non_null(strstr(err.text, "does not belong"));
		return;
	}
	/* it did not come; over the next connection it does */
	hand_wait_end(&t->link);
	accept_trainer(t);
	say_key(t, k);
	say_parcel(t, k, 0, 1, &none);
	take_shared(t, 2);
	j = client_json(t->c);
	assert_int_equal(json_integer_value(json_object_get(
				 json_object_get(j, "connections"), "garbage")),
			 1);
	json_decref(j);
}

static void a_parcel_is_of_its_job_and_number(void **state)
{
	static const struct parcel_lie none;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parcel_lies); i++) {
		const struct parcel_lie *l = &parcel_lies[i];
		struct seal_key key, other;
		struct trainer t;

		seal_draw(&key);
		seal_draw(&other);
		trainer_start(&t, SHARE_WINDOW);
		if (!l->no_key) {
			say_key(&t, &key);
			say_parcel(&t, &key, 0, 0, &none);
			take_shared(&t, 0);
		}
		say_parcel(&t, l->other_key ? &other : &key, !l->no_key, 1, l);
		after_a_lie(&t, l, &key);
		trainer_stop(&t);
	}
}

/* A job that is not shared has no key. */
static void a_key_of_no_shared_job_ends_the_run(void **state)
{
	struct seal_key key;
	struct shelf_buffer *b;
	struct err err = { 0 };
	struct trainer t;

	(void)state;
	seal_draw(&key);
	trainer_start(&t, SHARE_NONE);
	say_key(&t, &key);
	assert_int_equal(next(&t, &b, &err), -EPROTO);
	trainer_stop(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lie_of_a_worker_ends_the_run),
		cmocka_unit_test(a_sample_outside_the_dataset_ends_the_run),
		cmocka_unit_test(more_than_was_granted_is_not_kept),
		cmocka_unit_test(a_parcel_is_of_its_job_and_number),
		cmocka_unit_test(a_key_of_no_shared_job_ends_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
