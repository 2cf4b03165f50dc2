/* SPDX-License-Identifier: MIT */
#include "net/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "common/program/events.h"
#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"

struct loop {
	struct loop_config c;
	struct events events;
	struct event wake, timer, listener;
	pthread_t thread;
	bool started;
	bool stopping; /* atomic */
	bool arriving; /* connections may wait to be accepted */
	bool woken;    /* atomic: `wake` is or will be readable */
	uint64_t timer_at;
	uint64_t accept_at; /* again, as there was no descriptor */
	struct conn *conns[LOOP_CONNS];
	size_t n_conns;
};

/* Wall time between attempts to accept while there are no descriptors.
 * arbitrary: short for a person, long for a processor */
#define ACCEPT_PAUSE_NS (NS_PER_S / 10.)

/* --- life ----------------------------------------------------------------- */

static void on_wake(struct event *e, uint32_t ready)
{
	struct loop *l = container_of(e, struct loop, wake);
	eventfd_t n;

	(void)ready;
	eventfd_read(e->fd, &n);
	/* from here on loop_wake writes again; what was queued before is seen
	 * in the next round */
	__atomic_store_n(&l->woken, false, __ATOMIC_SEQ_CST);
}

static void on_timer(struct event *e, uint32_t ready)
{
	(void)ready;
	container_of(e, struct loop, timer)->timer_at = TICK_NEVER;
}

static void on_listener(struct event *e, uint32_t ready)
{
	(void)ready;
	container_of(e, struct loop, listener)->arriving = true;
}

static void on_conn(struct event *e, uint32_t ready)
{
	struct conn *c = container_of(e, struct conn, socket);
	bool over = ready & (EPOLLERR | EPOLLHUP | EPOLLRDHUP);

	c->readable = c->readable || over || ready & EPOLLIN;
	c->writable = c->writable || over || ready & EPOLLOUT;
}

/* `e` without a descriptor is the error it was opened with, or not watched. */
static int watch(struct loop *l, struct event *e, uint32_t wanted)
{
	return e->fd < 0 ? e->fd : events_add(&l->events, e, wanted);
}

int loop_new(const struct loop_config *config, struct loop **ret)
{
	struct loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l) {
		if (config->listener >= 0)
			close(config->listener);
		return -ENOMEM;
	}
	l->c = *config;
	l->timer_at = l->accept_at = TICK_NEVER;
	r = events_init(&l->events);
	l->listener = (struct event){ config->listener, on_listener, 0 };
	l->timer = (struct event){ tick_timer_new(), on_timer, 0 };
	l->wake = (struct event){ eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
				  on_wake, 0 };
	if (r == 0 && l->wake.fd < 0)
		r = -errno;
	if (r == 0)
		r = watch(l, &l->wake, EPOLLIN);
	if (r == 0)
		r = watch(l, &l->timer, EPOLLIN | EPOLLET);
	if (r == 0 && config->listener >= 0)
		r = watch(l, &l->listener, EPOLLIN | EPOLLET);
	if (r < 0) {
		loop_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

/* No event may name it again. close(2) alone does not see to that while a child
 * of a fork(2) has a copy of the socket. */
static void release(struct loop *l, struct conn *c)
{
	events_close(&l->events, &c->socket);
	conn_free(c);
}

static void drop(struct loop *l, size_t i)
{
	struct conn *c = l->conns[i];

	l->conns[i] = l->conns[--l->n_conns];
	c->ops->ended(c, c->why);
	release(l, c);
}

void loop_stop(struct loop *l)
{
	__atomic_store_n(&l->stopping, true, __ATOMIC_RELEASE);
	loop_wake(l);
	if (l->started)
		pthread_join(l->thread, NULL);
	l->started = false;
	while (l->n_conns) {
		conn_end(l->conns[l->n_conns - 1], -ECANCELED);
		drop(l, l->n_conns - 1);
	}
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	loop_stop(l);
	events_close(&l->events, &l->listener);
	events_close(&l->events, &l->wake);
	events_close(&l->events, &l->timer);
	events_fini(&l->events);
	free(l);
}

void loop_wake(struct loop *l)
{
	if (!__atomic_exchange_n(&l->woken, true, __ATOMIC_ACQ_REL))
		eventfd_write(l->wake.fd, 1);
}

void loop_bytes(const struct loop *l, uint64_t *ret_in, uint64_t *ret_out)
{
	*ret_in = __atomic_load_n(&l->c.nic->received, __ATOMIC_RELAXED);
	*ret_out = __atomic_load_n(&l->c.nic->sent, __ATOMIC_RELAXED);
}

uint64_t loop_leaves(const struct loop *l, uint64_t now)
{
	return now + l->c.nic->latency_ns;
}

/* --- connections ---------------------------------------------------------- */

/* The socket becomes the connection's, or is closed. */
static int add_conn(struct loop *l, int fd, bool dialed, struct conn **ret)
{
	struct conn *c;
	int r;

	if (l->n_conns == LOOP_CONNS) {
		close(fd);
		return -EMFILE;
	}
	c = conn_new(fd, dialed, l->c.secret, l->c.timeout_ns,
		     tick_now(l->c.tick));
	if (!c)
		return -ENOMEM;
	c->socket.fn = on_conn;
	r = watch(l, &c->socket, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	if (r < 0) {
		conn_free(c);
		return r;
	}
	l->conns[l->n_conns++] = *ret = c;
	return 0;
}

int loop_dial(struct loop *l, const struct addr *to, const struct conn_ops *ops,
	      void *user, struct conn **ret)
{
	int fd = addr_dial(to);
	int r = fd < 0 ? fd : add_conn(l, fd, true, ret);

	if (r == 0) {
		(*ret)->ops = ops;
		(*ret)->user = user;
	}
	return r;
}

/* Who comes last may be a node; who is there for long and is not trusted makes
 * room for it. */
static void limit_strangers(struct loop *l)
{
	struct conn *oldest = NULL;
	size_t n = 0;

	for (size_t i = 0; i < l->n_conns; i++) {
		struct conn *c = l->conns[i];

		if (c->dialed || c->trusted || c->why)
			continue;
		n++;
		if (!oldest || c->trust_until < oldest->trust_until)
			oldest = c;
	}
	if (n > LOOP_STRANGERS)
		conn_end(oldest, -EMFILE);
}

static void take_in(struct loop *l, int fd)
{
	struct conn *c;

	if (add_conn(l, fd, false, &c) < 0) {
		l->c.refused(l->c.ctx);
	} else if (l->c.accepted(c, l->c.ctx) < 0) {
		l->n_conns--;
		release(l, c);
		l->c.refused(l->c.ctx);
	} else {
		limit_strangers(l);
	}
}

/* Who waits stays in the queue, and its edge was seen. */
static void pause_accept(struct loop *l)
{
	l->arriving = false;
	l->accept_at =
		util_plus(tick_now(l->c.tick),
			  util_whole(ACCEPT_PAUSE_NS / tick_scale(l->c.tick)));
}

/* A few: it is the turn of the others, however many come. */
static void accept_some(struct loop *l)
{
	for (int i = 0; i < LOOP_ACCEPTS && l->arriving; i++) {
		int fd = accept4(l->listener.fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			take_in(l, fd);
		else if (errno == EAGAIN)
			l->arriving = false;
		else if (errno == EMFILE || errno == ENFILE ||
			 errno == ENOBUFS || errno == ENOMEM)
			pause_accept(l);
		/* else it was the error of one that has gone */
	}
}

/* --- the thread ----------------------------------------------------------- */

/* When the next is due. */
static uint64_t pump_all(struct loop *l, uint64_t now)
{
	uint64_t at = TICK_NEVER;

	for (size_t i = 0; i < l->n_conns; i++) {
		uint64_t due = conn_pump(l->conns[i], l->c.nic, now);

		at = MIN(at, due);
	}
	for (size_t i = l->n_conns; i > 0; i--) {
		if (l->conns[i - 1]->why || l->conns[i - 1]->kicked)
			at = now; /* an end changes when `round` is due */
		if (l->conns[i - 1]->why)
			drop(l, i - 1);
	}
	return at;
}

/* Wakes within some 50 us, without a spin: lateness does not accumulate
 * (net/nic.h). */
static void set_timer(struct loop *l, uint64_t at)
{
	if (at == l->timer_at)
		return;
	l->timer_at = at;
	if (at != TICK_NEVER)
		at += tick_spin(l->c.tick);
	tick_timer_set(l->c.tick, l->timer.fd, at);
}

static void *run_loop(void *arg)
{
	struct loop *l = arg;

	while (!__atomic_load_n(&l->stopping, __ATOMIC_ACQUIRE)) {
		uint64_t now = tick_now(l->c.tick);
		uint64_t round_at = l->c.round(l->c.ctx, now);
		uint64_t pump_at = pump_all(l, now);
		uint64_t at = MIN(MIN(round_at, pump_at), l->accept_at);
		bool again;

		if (now >= l->accept_at) {
			l->accept_at = TICK_NEVER;
			l->arriving = true;
		}
		again = at <= now || l->arriving;
		if (!again)
			set_timer(l, at);
		events_wait(&l->events, again ? 0 : -1);
		events_call(&l->events);
		accept_some(l);
	}
	return NULL;
}

int loop_start(struct loop *l)
{
	int r = thread_start(&l->thread, NULL, run_loop, l);

	l->started = r == 0;
	return r;
}
