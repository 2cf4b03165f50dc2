/* SPDX-License-Identifier: MIT */
#include "platform/k8s/health.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"

static void report(struct health *h, uint64_t healthy)
{
	if (h->known && h->healthy == healthy)
		return;
	h->known = true;
	h->healthy = healthy;
	h->changed(h->ctx, h->kind, healthy);
}

static void disconnect(struct health *h)
{
	events_remove(h->events, &h->event);
	gpud_close(&h->gpud);
	h->asked = false;
}

/* Log a trouble once, and try again later. */
static void lose(struct health *h, const char *why)
{
	disconnect(h);
	if (strcmp(h->trouble, why) != 0)
		log_warn("%s: %s", h->kind->name, why);
	snprintf(h->trouble, sizeof(h->trouble), "%s", why);
	h->timer.at = tick_wall() + h->interval_ns;
	report(h, 0);
	h->lost(h->ctx, h->kind);
}

static void ask(struct health *h)
{
	struct gpud_msg m = { .type = GPUD_WATCH };
	struct err err = { 0 };

	if (gpud_send(&h->gpud, &m, &err) < 0) {
		lose(h, err.text);
		return;
	}
	h->asked = true;
	h->timer.at = tick_wall() + h->interval_ns;
}

static void welcome(struct health *h)
{
	const struct gpud_welcome *w = &h->gpud.server;
	char text[GPUD_TEXT];

	/* the protocol has the beginning of the name */
	if (strncmp(w->gpu, h->kind->gpu, GPUD_NAME - 1) != 0) {
		snprintf(text, sizeof(text), "%s: serves %s, not %s",
			 h->kind->server, w->gpu, h->kind->gpu);
		lose(h, text);
		return;
	}
	if (w->n_gpus < h->kind->count)
		log_warn("%s: %s has %u GPUs, not %u", h->kind->name,
			 h->kind->server, w->n_gpus, (unsigned)h->kind->count);
	ask(h);
	if (h->event.fd >= 0)
		h->connected(h->ctx, h->kind);
}

static uint64_t mask(uint64_t n)
{
	return n < 64 ? (1ull << n) - 1 : UINT64_MAX;
}

/* The welcome is the first message, and comes once. */
static bool in_turn(const struct health *h, const struct gpud_msg *m)
{
	return (m->type == GPUD_WELCOME) == !h->gpud.server.n_gpus &&
	       (m->type != GPUD_WELCOME || m->welcome.n_gpus);
}

static void take_msg(struct health *h, const struct gpud_msg *m)
{
	char text[GPUD_TEXT];

	if (!in_turn(h, m)) {
		snprintf(text, sizeof(text), "%s: sent a %s out of turn",
			 h->kind->server, gpud_type_name(m->type));
		lose(h, text);
	} else if (m->type == GPUD_WELCOME) {
		h->gpud.server = m->welcome;
		welcome(h);
	} else if (m->type == GPUD_HEALTH) {
		if (h->trouble[0])
			log_info("%s: %s is back", h->kind->name,
				 h->kind->server);
		h->trouble[0] = '\0';
		h->asked = false;
		report(h, mask(h->kind->count) & mask(m->health.n_gpus) &
				  ~m->health.failed);
	} else if (m->type == GPUD_ACK && !m->ack.revoked) {
		h->acked(h->ctx, h->kind, m->ack.name, (int)m->ack.error);
	}
}

static void ready(struct event *e, uint32_t what)
{
	struct health *h = container_of(e, struct health, event);
	struct err err = { 0 };
	struct gpud_msg m;
	int r = 0;

	(void)what;
	while (h->event.fd >= 0 && (r = gpud_receive(&h->gpud, &m, &err)) == 0)
		take_msg(h, &m);
	if (h->event.fd >= 0 && r != -EAGAIN)
		lose(h, err.text);
}

static void connect_again(struct health *h)
{
	struct err err = { 0 };
	int r = gpud_begin(h->kind->server, h->kind->server_user, &h->gpud,
			   &err);

	h->event = (struct event){ .fd = -1, .fn = ready };
	if (r == 0) {
		h->event.fd = h->gpud.fd;
		r = events_add(h->events, &h->event, EPOLLIN);
	}
	if (r < 0) {
		lose(h, err.text[0] ? err.text : strerror(-r));
		return;
	}
	/* its welcome is to come */
	h->asked = true;
	h->timer.at = tick_wall() + h->interval_ns;
}

static void due(struct event_timer *t)
{
	struct health *h = container_of(t, struct health, timer);
	char text[GPUD_TEXT];

	if (h->event.fd < 0) {
		connect_again(h);
	} else if (h->asked) {
		snprintf(text, sizeof(text), "%s: does not answer",
			 h->kind->server);
		lose(h, text);
	} else {
		ask(h);
	}
}

void health_begin(struct health *h)
{
	h->event.fd = -1;
	h->gpud.fd = -1;
	h->timer = (struct event_timer){ .at = TICK_NEVER, .fn = due };
	events_add_timer(h->events, &h->timer);
	connect_again(h);
}

void health_end(struct health *h)
{
	events_remove_timer(h->events, &h->timer);
	disconnect(h);
}

/* After a failure, which may have sent half a message, the next read finds the
 * end of the connection. */
static int tell(struct health *h, const struct gpud_msg *m)
{
	struct err err = { 0 };

	if (h->event.fd < 0 || !h->gpud.server.n_gpus)
		return -EHOSTDOWN;
	if (gpud_send(&h->gpud, m, &err) == 0)
		return 0;
	gpud_stop(&h->gpud);
	return -EHOSTDOWN;
}

int health_grant(struct health *h, const char *name, uint32_t gpu,
		 uint64_t bytes)
{
	struct gpud_msg m = { .type = GPUD_GRANT,
			      .grant = { .gpu = gpu, .bytes = bytes } };

	snprintf(m.grant.name, sizeof(m.grant.name), "%s", name);
	return tell(h, &m);
}

int health_revoke(struct health *h, const char *name)
{
	struct gpud_msg m = { .type = GPUD_REVOKE };

	snprintf(m.revoke.name, sizeof(m.revoke.name), "%s", name);
	return tell(h, &m);
}
