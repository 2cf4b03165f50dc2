/* SPDX-License-Identifier: MIT */
#include "share/server.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/gpu/identity.h"

enum {
	/* Descriptors beside those of clients. arbitrary: there are ten */
	OWN_FILES = 32,
};

/*
 * --- limits ---------------------------------------------------------------
 *
 * They protect clients from each other: no connection without a job, no more
 * connections than the share of a user, no idle job that holds GPU memory or
 * its turn.
 */

/* Wall time between attempts to accept while there are no descriptors.
 * arbitrary: short for a person, long for a processor */
#define ACCEPT_PAUSE_NS (NS_PER_S / 5)
/* Of the connections one in so many is kept for those who rule. arbitrary: a
 * device plugin has one, and a person looks now and then */
enum { KEPT = 8 };

static bool allowed(const struct server *s, uid_t uid)
{
	if (s->allow_all || server_rules(uid, NULL))
		return true;
	for (size_t i = 0; i < s->n_allowed; i++)
		if (s->allowed[i] == uid)
			return true;
	return false;
}

/* Connections of a grant, or of a user without one. */
static uint32_t n_of(const struct server *s, uid_t uid,
		     const struct grant *grant)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_clients; i++)
		n += s->clients[i]->grant == grant &&
		     (grant || s->clients[i]->uid == uid);
	return n;
}

/* May such a user connect now, by this grant or none? -EACCES, -EAGAIN; with a
 * text. */
static int admit(const struct server *s, uid_t uid, const struct grant *grant,
		 struct err *err)
{
	uint32_t most = s->config.max_clients, n;

	if (!grant && !allowed(s, uid))
		return err_set(err, -EACCES, "user %u may not use this GPU",
			       (unsigned)uid);
	if (!server_rules(uid, grant))
		most -= most / KEPT;
	if (s->n_clients >= most)
		return err_set(err, -EAGAIN, "too many clients");
	if (server_rules(uid, grant))
		return 0;
	/* No more than are free: of N that want all each has 1 / (N + 1), and
	 * one more finds as many. Source: Choudhury and Hahne, "Dynamic Queue
	 * Length Thresholds for Shared-Memory Packet Switches", 1998 */
	n = n_of(s, uid, grant);
	most = MIN(s->config.max_per_user, most - s->n_clients);
	if (n < most)
		return 0;
	if (grant)
		return err_set(err, -EAGAIN,
			       "%u connections, as many as a grant may have "
			       "(--max-clients-per-user, and those that are "
			       "free)",
			       n);
	return err_set(err, -EAGAIN,
		       "user %u has %u connections, as many as a user may have "
		       "(--max-clients-per-user, and those that are free)",
		       (unsigned)uid, n);
}

static void watch_listener(struct server *s, uint32_t events)
{
	events_want(&s->events, &s->listener, events);
	for (struct grant *g = s->grants; g; g = g->next)
		events_want(&s->events, &g->listener, events);
}

/* accept failed: try again later. */
static void pause_accept(struct server *s, int error)
{
	if (!s->accept_told)
		log_warn("cannot accept more clients now: %s", strerror(error));
	s->accept_told = true;
	s->accept_ns = tick_wall() + ACCEPT_PAUSE_NS;
	watch_listener(s, 0);
}

static void resume_accept(struct server *s)
{
	s->accept_ns = TICK_NEVER;
	watch_listener(s, EPOLLIN);
}

/* The wall time, ns, at which an idle client expires. */
static uint64_t expires(const struct server *s, const struct client *c)
{
	if (c->dead || !s->config.idle_limit_ns ||
	    (c->watches && server_rules(c->uid, c->grant)))
		return TICK_NEVER;
	if (c->job && (!c->job->resident || c->job->n))
		return TICK_NEVER;
	return c->last_message_ns + s->config.idle_limit_ns;
}

static void expire(struct server *s, struct client *c)
{
	char text[GPUD_TEXT];

	if (!c->job) {
		client_refuse(c, -ETIMEDOUT,
			      "connected without requesting a GPU");
		s->n_expired++;
	} else if (share_blocks(s->share, c->job)) {
		snprintf(text, sizeof(text),
			 "no iteration for %.0f s while other jobs wait "
			 "(--idle-limit)",
			 (double)s->config.idle_limit_ns / NS_PER_S);
		client_refuse(c, -ETIMEDOUT, text);
		s->n_expired++;
	}
}

/* Mark expired clients as dead. Returns the wall time, ns, of the next check.
 */
static uint64_t check_limits(struct server *s)
{
	uint64_t now = tick_wall(), next;

	if (s->accept_ns <= now)
		resume_accept(s);
	next = s->accept_ns;
	for (uint32_t i = 0; i < s->n_clients; i++) {
		uint64_t at = expires(s, s->clients[i]);

		if (at <= now)
			expire(s, s->clients[i]);
		else
			next = MIN(next, at);
	}
	return next;
}

/* --- clients -------------------------------------------------------------- */

static void welcome(const struct server *s, struct client *c)
{
	struct gpud_msg m = { .type = GPUD_WELCOME };
	struct gpud_welcome *w = &m.welcome;

	snprintf(w->gpu, sizeof(w->gpu), "%s", s->config.gpu->name);
	snprintf(w->profile, sizeof(w->profile), "%s", s->config.profile);
	snprintf(w->scheduler, sizeof(w->scheduler), "%s", s->config.scheduler);
	snprintf(w->share, sizeof(w->share), "%s",
		 share_mode_name(s->config.share.mode));
	snprintf(w->slicing, sizeof(w->slicing), "%s",
		 server_slicing(&s->config));
	w->time_scale = s->config.time_scale;
	w->now_ns = tick_now(s->tick);
	w->wall_ns = tick_wall();
	w->n_gpus = s->config.share.n_gpus;
	client_send(c, &m);
}

/* The client's user is known; may it connect? */
static void receive(struct server *s, struct client *c)
{
	struct err err = { 0 };
	int r = admit(s, c->uid, c->grant, &err);

	if (r == 0) {
		welcome(s, c);
		return;
	}
	client_refuse(c, r, err.text);
	s->n_refused++;
}

static void read_client(struct event *e, uint32_t ready);

static void accept_one(struct server *s, int fd, struct grant *grant)
{
	struct client *c = calloc(1, sizeof(*c));
	struct ucred cred = { 0 };
	socklen_t n = sizeof(cred);

	if (!c) {
		pause_accept(s, ENOMEM);
		return;
	}
	c->last_message_ns = tick_wall();
	c->grant = grant;
	c->server = s;
	c->socket.fn = read_client;
	c->socket.fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (c->socket.fd < 0) {
		/* it would stay readable, and the loop would spin */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			pause_accept(s, errno);
		free(c);
		return;
	}
	if (getsockopt(c->socket.fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0) {
		client_free(c);
		return;
	}
	c->pid = cred.pid;
	c->uid = cred.uid;
	receive(s, c);
	if (!c->dead && events_add(&s->events, &c->socket, EPOLLIN) == 0) {
		s->clients[s->n_clients++] = c;
		return;
	}
	client_flush(c);
	client_free(c);
}

static void now(struct server *s)
{
	share_advance(s->share, tick_now(s->tick));
}

/* Handle all complete messages in the buffer. */
static void decode(struct server *s, struct client *c)
{
	size_t at = 0;

	while (!c->dead) {
		struct err err = { 0 };
		struct gpud_msg m;
		int r = gpud_decode(c->in + at, c->n_in - at, GPUD_MAX_REQUEST,
				    &m, &err);

		if (r == 0)
			break;
		if (r < 0) {
			s->n_malformed++;
			client_refuse(c, r, err.text);
			break;
		}
		at += (size_t)r;
		now(s);
		/* a job is active if it has iterations */
		if (m.type == GPUD_SUBMIT || !c->job)
			c->last_message_ns = tick_wall();
		request_handle(s, c, &m);
	}
	memmove(c->in, c->in + at, c->n_in - at);
	c->n_in -= at;
}

static void read_client(struct event *e, uint32_t ready)
{
	struct client *c = container_of(e, struct client, socket);
	ssize_t k = recv(e->fd, c->in + c->n_in, sizeof(c->in) - c->n_in,
			 MSG_DONTWAIT);

	(void)ready;
	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (k <= 0) {
		c->dead = true;
		return;
	}
	c->n_in += (size_t)k;
	decode(c->server, c);
}

/* Reap dead clients and free what they held; clients that die from messages
 * sent meanwhile are reaped the next time. */
static void reap(struct server *s)
{
	for (uint32_t i = 0; i < s->n_clients;) {
		struct client *c = s->clients[i];

		client_flush(c);
		if (!c->dead) {
			i++;
			continue;
		}
		s->clients[i] = s->clients[--s->n_clients];
		if (c->job) {
			now(s);
			share_leave(s->share, c->job);
			/* earlier clients may have got a message */
			i = 0;
		}
		client_free(c);
	}
}

/* --- the loop ------------------------------------------------------------- */

static void knock(struct event *e, uint32_t ready)
{
	(void)ready;
	accept_one(container_of(e, struct server, listener), e->fd, NULL);
}

static void knock_grant(struct event *e, uint32_t ready)
{
	struct grant *g = container_of(e, struct grant, listener);

	(void)ready;
	if (!g->revoked)
		accept_one(g->server, e->fd, g);
}

static void fire(struct event *e, uint32_t ready)
{
	struct server *s = container_of(e, struct server, timer);

	(void)ready;
	if (s->deadline_ns != TICK_NEVER)
		tick_finish(s->tick, s->deadline_ns);
	now(s);
}

static void stop(struct event *e, uint32_t ready)
{
	(void)ready;
	container_of(e, struct server, signals)->stopping = true;
}

static void answer(struct event *e, uint32_t ready)
{
	(void)ready;
	request_answers(container_of(e, struct server, answers));
}

int server_run(struct server *s, struct err *err)
{
	uint64_t check = TICK_NEVER, deadline,
		 early = tick_early(s->tick) + tick_spin(s->tick);
	bool near;
	int r;

	tick_urgent(s->tick);
	while (!s->stopping) {
		deadline = share_next(s->share);
		near = !tick_keeps_awake(s->tick) || deadline == TICK_NEVER ||
		       deadline <= tick_now(s->tick) + early;
		s->deadline_ns = near ? deadline : TICK_NEVER;
		tick_timer_set(s->tick, s->timer.fd,
			       near ? deadline
				    : deadline - tick_early(s->tick));
		if (near && deadline != TICK_NEVER)
			tick_hold_awake(s->tick);
		r = events_wait(&s->events, tick_ms_until(check));
		if (near && deadline != TICK_NEVER)
			tick_let_sleep(s->tick);
		if (r < 0)
			return err_set(err, r, "epoll_wait: %s", strerror(-r));
		now(s);
		events_call(&s->events);
		check = check_limits(s);
		reap(s);
		grant_reap(s, false);
	}
	return 0;
}

/* --- set-up --------------------------------------------------------------- */

static int find_users(struct server *s, struct err *err)
{
	char *const *names = s->config.allow.items;
	size_t n = s->config.allow.n;

	s->allowed = calloc(n + 1, sizeof(*s->allowed));
	if (!s->allowed)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		uid_t uid;

		if (!strcmp(names[i], "all"))
			s->allow_all = true;
		else if (gpud_user(names[i], &uid) == 0)
			s->allowed[s->n_allowed++] = uid;
		else
			return err_set(err, -ENOENT, "unknown user '%s'",
				       names[i]);
	}
	return 0;
}

/* Reserve a descriptor for every client: without one, a further client stays in
 * the listen queue, and the server would spin on it. */
static int allow_clients(uint32_t n, struct err *err)
{
	rlim_t need = (rlim_t)n + OWN_FILES;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return err_set(err, -errno, "getrlimit: %s", strerror(errno));
	if (l.rlim_cur >= need + GRANTS_MOST)
		return 0;
	/* those of grants if it may: else a late one may fail */
	l.rlim_max = MAX(l.rlim_max, need);
	l.rlim_cur = MIN(need + GRANTS_MOST, l.rlim_max);
	if (setrlimit(RLIMIT_NOFILE, &l) == 0)
		return 0;
	return err_set(err, -EPERM,
		       "too few descriptors for %u clients: raise the hard "
		       "limit (ulimit -Hn) to %llu or use a smaller "
		       "--max-clients",
		       n, (unsigned long long)need);
}

/* `fd` -1: errno says why. */
static int watch(struct server *s, struct event *e, int fd,
		 void (*fn)(struct event *e, uint32_t ready))
{
	*e = (struct event){ .fd = fd, .fn = fn };
	return fd < 0 ? -errno : events_add(&s->events, e, EPOLLIN);
}

static int open_loop(struct server *s, int listener, struct err *err)
{
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r = watch(s, &s->listener, listener, knock);
	if (r == 0)
		r = watch(s, &s->timer, tick_timer_new(), fire);
	if (r == 0)
		r = watch(s, &s->signals,
			  signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), stop);
	if (r == 0)
		r = scribe_init(&s->scribe);
	if (r == 0)
		r = watch(s, &s->answers, s->scribe.answers[0], answer);
	return r < 0 ? err_set(err, r, "epoll: %s", strerror(-r)) : 0;
}

int server_init(struct server *s, const struct server_config *config,
		struct err *err)
{
	const struct gpu_profile *gpu = config->gpu;
	struct share_config share = config->share;
	int r, listener;

	*s = (struct server){ .config = *config,
			      .events.epoll_fd = -1,
			      .listener.fd = -1,
			      .timer.fd = -1,
			      .signals.fd = -1,
			      .scribe.questions = { -1, -1 },
			      .scribe.answers = { -1, -1 },
			      .knock_grant = knock_grant,
			      .accept_ns = TICK_NEVER };
	share.max_jobs = config->max_clients;
	share.memory_bytes =
		(uint64_t)(gpu->memory_mib * gpu->usable_memory * (double)MIB);
	share.admitted = request_admitted;
	share.done = request_done;
	share.ctx = s;
	s->clients = calloc(config->max_clients, sizeof(struct client *));
	s->tick = tick_new(config->time_scale, TICK_DEFAULT_SPIN_NS);
	if (!s->clients || !s->tick || share_new(&share, &s->share) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	if (config->keep_awake)
		tick_keep_awake(s->tick); /* where it is granted */
	r = events_init(&s->events);
	if (r < 0)
		return err_set(err, r, "epoll: %s", strerror(-r));
	r = allow_clients(config->max_clients, err);
	if (r == 0)
		r = find_users(s, err);
	if (r == 0)
		r = local_socket_listen(s->config.path, (mode_t)s->config.mode,
					&s->place, err);
	if (r < 0)
		return r;
	listener = r;
	s->identity = identity_seed(config->path, gpu->name);
	return open_loop(s, listener, err);
}

void server_fini(struct server *s)
{
	scribe_fini(&s->scribe);
	for (uint32_t i = 0; i < s->n_clients; i++)
		client_free(s->clients[i]);
	free(s->clients);
	grant_reap(s, true);
	local_socket_leave(s->config.path, &s->place);
	events_close(&s->events, &s->listener);
	events_close(&s->events, &s->timer);
	events_close(&s->events, &s->signals);
	events_fini(&s->events);
	free(s->allowed);
	share_free(s->share);
	tick_free(s->tick);
}
