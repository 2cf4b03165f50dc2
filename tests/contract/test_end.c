/* SPDX-License-Identifier: MIT */
/* Shutdown of a file server that is in use. */
#include "tests/contract/server_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"

enum { N_READERS = 4, N_ROUNDS = 60 };

struct worker {
	struct fixture *f;
	struct server *s;
	uint64_t index;
	pthread_t thread;
};

/* Until it gets the error of the shutdown. */
static void *read_on(void *arg)
{
	struct worker *w = arg;
	struct rng rng = rng_stream(1, "reader", w->index);
	int r = 0;

	while (r != -ECONNABORTED) {
		int i = (int)rng_below(&rng, N_FILES);

		r = rig_read(w->f, w->s, i);
		assert_true(r == 0 || r == -ECONNABORTED || r == -EIO);
		r = rig_metadata(w->f, w->s, STORAGE_LOOKUP, i);
	}
	return NULL;
}

/* The same with commands: each is refused at the end. */
static void *change_on(void *arg)
{
	struct worker *w = arg;
	struct units_capacity size = { .fraction = .5 };
	struct server *s = w->s;
	bool refused = false;

	for (int i = 0; !refused; i++) {
		server_fault_add(s, "op=read,p=.3,stuck;op=lookup,delay=5ms",
				 NULL);
		server_interrupt(s, &size);
		refused = server_fault_clear(s, 0, NULL) == -ECONNABORTED;
		switch (i % 5) {
		case 0: server_set_cache(s, "lru", &size, NULL); break;
		case 1: server_drop_cache(s, NULL); break;
		case 2: server_set_storage(s, "nvme", NULL); break;
		case 3: server_epoch(s, NULL); break;
		default: server_reset(s, NULL);
		}
		json_decref(server_stats(s));
	}
	assert_int_equal(server_drop_cache(s, NULL), -ECONNABORTED);
	return NULL;
}

static void *stop(void *arg)
{
	struct worker *w = arg;

	server_stop(w->s);
	return NULL;
}

static void the_end_may_come_at_any_time(void **state)
{
	static const uint64_t memory[] = { 0, 1, 300 << 10 };
	struct rng rng = rng_stream(1, "end", 0);
	struct fixture *f = *state;

	for (int round = 0; round < N_ROUNDS; round++) {
		struct worker w[N_READERS + 2];
		struct server *s;

		f->memory = memory[round % ARRAY_SIZE(memory)];
		s = rig_start(f, "lru", "nvme");

		for (uint64_t i = 0; i < ARRAY_SIZE(w); i++) {
			w[i] = (struct worker){ .f = f, .s = s, .index = i };
			if (i == N_READERS + 1)
				tick_pause(rng_below(&rng, 5 * NS_PER_MS));
			assert_int_equal(pthread_create(&w[i].thread, NULL,
							i < N_READERS ? read_on
							: i == N_READERS
								? change_on
								: stop,
							&w[i]),
					 0);
		}
		for (size_t i = 0; i < ARRAY_SIZE(w); i++)
			pthread_join(w[i].thread, NULL);
		assert_int_equal(rig_stat(s, "inflight"), 0);
		server_free(s);
	}
	f->memory = 0;
}

/* A command frees stuck reads; shutdown comes while they continue. */
static void *clear(void *arg)
{
	struct worker *w = arg;

	server_fault_clear(w->s, 0, NULL);
	return NULL;
}

static void what_a_command_frees_is_answered_before_the_end(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < N_ROUNDS; round++) {
		struct server *s = rig_start(f, "none", "hdd");
		struct worker w = { .f = f, .s = s };
		static struct wait waits[20 * N_FILES];

		rig_add(s, "op=read,stuck");
		for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
			rig_start_read(f, s, &waits[i], (int)(i % N_FILES));
		assert_int_equal(pthread_create(&w.thread, NULL, clear, &w), 0);
		while (rig_stat(s, "misses") == 0)
			;
		server_stop(s);
		for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
			int r;

			assert_true(wait_is_done(&waits[i]));
			r = rig_end_read(f, s, &waits[i], (int)(i % N_FILES));
			assert_true(r == 0 || r == -ECONNABORTED);
		}
		pthread_join(w.thread, NULL);
		server_free(s);
	}
}

static void reads_after_the_end_are_refused(void **state)
{
	struct fixture *f = *state;
	struct server *s = rig_start(f, "lru", "ideal");

	assert_int_equal(rig_read(f, s, 0), 0);
	server_stop(s);
	/* a hit too */
	assert_int_equal(rig_read(f, s, 0), -ECONNABORTED);
	assert_int_equal(rig_read(f, s, 1), -ECONNABORTED);
	for (int op = 0; op < STORAGE_N_READING; op++)
		assert_int_equal(rig_metadata(f, s, (enum storage_op)op, 0),
				 -ECONNABORTED);
	server_interrupt(s, f);
	assert_int_equal(rig_stat(s, "misses"), 1);
	assert_int_equal(rig_stat(s, "inflight"), 0);
	server_stop(s);
	server_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_may_come_at_any_time),
		cmocka_unit_test(
			what_a_command_frees_is_answered_before_the_end),
		cmocka_unit_test(reads_after_the_end_are_refused),
	};
	return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
