/* SPDX-License-Identifier: MIT */
/*
 * Limits that protect clients from each other: no connection without a job, no
 * more connections than the share of a user, no idle job that holds GPU memory
 * or its turn.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "share/server.h"

/* Wall time between attempts to accept while there are no descriptors.
 * arbitrary: short for a person, long for a processor */
#define ACCEPT_PAUSE_NS (NS_PER_S / 5)
/* Of the connections one in so many is kept for those who rule. arbitrary: a
 * device plugin has one, and a person looks now and then */
enum { KEPT = 8 };

bool limits_rules(uid_t uid, const struct grant *grant)
{
	return !grant && (uid == 0 || uid == geteuid());
}

static bool allowed(const struct server *s, uid_t uid)
{
	if (s->allow_all || limits_rules(uid, NULL))
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

int limits_admit(const struct server *s, uid_t uid, const struct grant *grant,
		 struct err *err)
{
	uint32_t most = s->config.max_clients, n;

	if (!grant && !allowed(s, uid))
		return err_set(err, -EACCES, "user %u may not use this GPU",
			       (unsigned)uid);
	if (!limits_rules(uid, grant))
		most -= most / KEPT;
	if (s->n_clients >= most)
		return err_set(err, -EAGAIN, "too many clients");
	if (limits_rules(uid, grant))
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

void limits_pause_accept(struct server *s, int error)
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
	    (c->watches && limits_rules(c->uid, c->grant)))
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

uint64_t limits_check(struct server *s)
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
