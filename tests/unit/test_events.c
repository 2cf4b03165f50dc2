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
	struct one *victim; /* which its callback removes and frees */
	unsigned calls;
};

static void called(struct event *e, uint32_t ready)
{
	struct one *o = container_of(e, struct one, event);
	eventfd_t n;

	assert_true(ready & EPOLLIN);
	eventfd_read(e->fd, &n);
	o->calls++;
	if (!o->victim)
		return;
	events_close(o->loop, &o->victim->event);
	free(o->victim);
	o->victim = NULL;
}

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
	events_close(l, &o->event);
	free(o);
}

/* All are ready: the first removes and frees the last, which is not called. */
static void a_removed_one_is_not_called(void **state)
{
	struct events l;
	struct one *o[3];

	(void)state;
	assert_int_equal(events_init(&l), 0);
	for (int i = 0; i < 3; i++)
		o[i] = one_more(&l);
	/* whoever comes first removes its neighbour, who removes nobody */
	o[0]->victim = o[1];
	assert_int_equal(events_turn(&l, true), 1);
	assert_int_equal(o[0]->calls, 1);
	assert_int_equal(o[2]->calls, 1);
	assert_int_equal(events_turn(&l, false), 0);
	end(&l, o[0]);
	end(&l, o[2]);
	events_fini(&l);
}

static void none_of_many_starves(void **state)
{
	struct events l;
	struct one *o[MANY];

	(void)state;
	assert_int_equal(events_init(&l), 0);
	for (int i = 0; i < MANY; i++)
		o[i] = one_more(&l);
	assert_int_equal(events_turn(&l, true), 1);
	assert_int_equal(events_turn(&l, true), 1);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(o[i]->calls, 1);
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
	event_timer_in(&soon, 5 * NS_PER_MS);
	assert_int_equal(events_turn(&l, false), 0);
	assert_int_equal(fired, 0);
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
