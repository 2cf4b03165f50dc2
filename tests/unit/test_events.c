/* SPDX-License-Identifier: MIT */
/* Descriptors that are ready at once, timers, and callbacks that remove. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <sys/eventfd.h>

#include "common/program/events.h"
#include "common/units.h"
#include "common/util.h"

enum { MANY = 100 }; /* more than are served at once */

struct one {
	struct event event;
	struct events *loop;
	struct one **victim; /* which its callback removes and frees; or NULL */
	unsigned calls;
};

static void called(struct event *e, uint32_t ready)
{
	struct one *o = container_of(e, struct one, event), *victim;

	assert_true(ready & EPOLLIN);
	o->calls++;
	victim = o->victim ? *o->victim : NULL;
	if (!victim)
		return;
	*o->victim = NULL;
	events_close(o->loop, &victim->event);
	free(victim);
}

/* It is ready, and stays so. */
static struct one *one_more(struct events *l)
{
	struct one *o = calloc(1, sizeof(*o));

	o->loop = l;
	o->event =
		(struct event){ .fd = eventfd(1, EFD_CLOEXEC), .fn = called };
	assert_int_equal(events_add(l, &o->event, EPOLLIN), 0);
	return o;
}

static void end(struct events *l, struct one *o)
{
	if (o)
		events_close(l, &o->event);
	free(o);
}

/* Both are ready, and each removes and frees the other: one is called. */
static void a_removed_one_is_not_called(void **state)
{
	struct events l;
	struct one *o[2];

	(void)state;
	assert_int_equal(events_init(&l), 0);
	for (int i = 0; i < 2; i++)
		o[i] = one_more(&l);
	o[0]->victim = &o[1];
	o[1]->victim = &o[0];
	assert_int_equal(events_turn(&l, true), 1);
	assert_true(!o[0] != !o[1]);
	assert_int_equal((o[0] ? o[0] : o[1])->calls, 1);
	end(&l, o[0]);
	end(&l, o[1]);
	events_fini(&l);
}

/* More are ready than are served at once: each is, in two turns. */
static void none_of_many_starves(void **state)
{
	struct events l;
	struct one *o[MANY];

	(void)state;
	assert_int_equal(events_init(&l), 0);
	for (int i = 0; i < MANY; i++)
		o[i] = one_more(&l);
	for (int turn = 0; turn < 2; turn++)
		assert_int_equal(events_turn(&l, true), 1);
	for (int i = 0; i < MANY; i++) {
		assert_true(o[i]->calls > 0);
		end(&l, o[i]);
	}
	events_fini(&l);
}

static unsigned fired;

static void fire(struct event_timer *t)
{
	(void)t;
	fired++;
}

static void timers(void **state)
{
	struct event_timer soon = { .at = TICK_NEVER, .fn = fire },
			   never = { .at = TICK_NEVER, .fn = fire };
	struct events l;

	(void)state;
	assert_int_equal(events_init(&l), 0);
	events_add_timer(&l, &never);
	events_add_timer(&l, &soon);
	event_timer_in(&soon, 3600 * NS_PER_S);
	assert_int_equal(events_turn(&l, false), 0);
	assert_int_equal(fired, 0);
	event_timer_in(&soon, NS_PER_MS);
	while (!fired)
		assert_int_equal(events_turn(&l, true), 0);
	assert_int_equal(fired, 1);
	events_remove_timer(&l, &soon);
	events_remove_timer(&l, &never);
	events_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_removed_one_is_not_called),
		cmocka_unit_test(none_of_many_starves),
		cmocka_unit_test(timers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
