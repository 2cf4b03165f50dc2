/* SPDX-License-Identifier: MIT */
#include "common/program/events.h"

#include <errno.h>

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
	for (int i = 0; i < l->n_ready; i++)
		if (l->ready[i].data.ptr == e)
			l->ready[i].data.ptr = NULL;
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

static uint64_t next_timer(const struct events *l)
{
	uint64_t at = TICK_NEVER;

	for (const struct event_timer *t = l->timers; t; t = t->next)
		at = MIN(at, t->at);
	return at;
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

int events_wait(struct events *l, int ms)
{
	int n = epoll_wait(l->epoll_fd, l->ready, EVENTS_AT_ONCE, ms);

	l->n_ready = MAX(n, 0);
	return n < 0 && errno != EINTR ? -errno : 0;
}

void events_call(struct events *l)
{
	for (int i = 0; i < l->n_ready; i++) {
		struct event *e = l->ready[i].data.ptr;

		if (e)
			e->fn(e, l->ready[i].events);
	}
	l->n_ready = 0;
}

int events_turn(struct events *l, bool wait)
{
	int r = events_wait(l, wait ? tick_ms_until(next_timer(l)) : 0);
	bool any = l->n_ready > 0;

	if (r < 0)
		return r;
	events_call(l);
	fire(l);
	return any;
}
