/* SPDX-License-Identifier: MIT */
#include "common/program/events.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>

#include "common/units.h"
#include "common/util.h"

int events_init(struct events *l)
{
	*l = (struct events){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
	return l->epoll_fd < 0 ? -errno : 0;
}

void events_fini(struct events *l)
{
	if (l->epoll_fd >= 0)
		close(l->epoll_fd);
	*l = (struct events){ .epoll_fd = -1 };
}

int events_add(struct events *l, struct event *e, uint32_t wanted)
{
	struct epoll_event ev = { .events = wanted, .data.ptr = e };

	e->wanted = wanted;
	return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, e->fd, &ev) < 0 ? -errno
								     : 0;
}

void events_want(struct events *l, struct event *e, uint32_t wanted)
{
	struct epoll_event ev = { .events = wanted, .data.ptr = e };

	if (wanted == e->wanted)
		return;
	e->wanted = wanted;
	epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, e->fd, &ev);
}

void events_remove(struct events *l, struct event *e)
{
	if (e->fd >= 0)
		epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, e->fd, NULL);
	e->fd = -1;
}

void events_close(struct events *l, struct event *e)
{
	int fd = e->fd;

	events_remove(l, e);
	if (fd >= 0)
		close(fd);
}

void events_add_timer(struct events *l, struct event_timer *t)
{
	t->next = l->timers;
	l->timers = t;
}

void events_remove_timer(struct events *l, struct event_timer *t)
{
	struct event_timer **p = &l->timers;

	while (*p && *p != t)
		p = &(*p)->next;
	if (*p)
		*p = t->next;
}

/* For epoll_wait: until the next timer, in ms. */
static int until_next(const struct events *l)
{
	uint64_t now = tick_wall(), at = TICK_NEVER;

	for (const struct event_timer *t = l->timers; t; t = t->next)
		at = MIN(at, t->at);
	if (at == TICK_NEVER)
		return -1;
	return at <= now ? 0 : (int)MIN((at - now) / NS_PER_MS + 1, INT_MAX);
}

/* A callback may change the list: begin again after each. */
static void fire(struct events *l)
{
	uint64_t now = tick_wall();
	struct event_timer *t = l->timers;

	while (t) {
		if (t->at > now) {
			t = t->next;
			continue;
		}
		t->at = TICK_NEVER;
		t->fn(t);
		t = l->timers;
	}
}

int events_turn(struct events *l, bool wait)
{
	struct epoll_event ev;
	int n = epoll_wait(l->epoll_fd, &ev, 1, wait ? until_next(l) : 0);

	if (n < 0 && errno != EINTR)
		return -errno;
	if (n == 1) {
		struct event *e = ev.data.ptr;

		e->fn(e, ev.events);
	}
	fire(l);
	return n == 1;
}
