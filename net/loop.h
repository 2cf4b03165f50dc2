/* SPDX-License-Identifier: MIT */
/*
 * An event loop: one thread serves all connections of a node, over one emulated
 * network card. It waits in epoll(7) for sockets, the card, time-outs, and
 * loop_wake. Nothing on it may block.
 *
 * At most LOOP_CONNS connections; more are closed at once. LOOP_STRANGERS of
 * them are accepted and not trusted yet; one more ends the oldest of these. A
 * round accepts LOOP_ACCEPTS. All times are emulated ns of the tick.
 */
#ifndef GPEMU_NET_LOOP_H
#define GPEMU_NET_LOOP_H

#include "common/tick.h"
#include "net/addr.h"
#include "net/conn.h"

enum { LOOP_CONNS = 512, LOOP_STRANGERS = 32, LOOP_ACCEPTS = 16 };

struct loop;

struct loop_config {
	struct tick *tick; /* borrowed, as is `secret` */
	const struct seal_secret *secret;
	struct nic *nic;     /* borrowed */
	uint64_t timeout_ns; /* of net/conn.h */
	int listener;	     /* owned; -1: none */
	/* Set c->ops and c->user of an accepted connection. < 0: close it. */
	int (*accepted)(struct conn *c, void *ctx);
	/* A connection was closed at once: too many, or no memory. */
	void (*refused)(void *ctx);
	/* Before each round: do what is due; returns when next to be called. */
	uint64_t (*round)(void *ctx, uint64_t now);
	void *ctx;
};

/* -ENOMEM, -errno. The thread starts with loop_start. */
int loop_new(const struct loop_config *config, struct loop **ret);
int loop_start(struct loop *l);
/* End the thread, then all connections with -ECANCELED. */
void loop_stop(struct loop *l);
/* Stops first. NULL is allowed. */
void loop_free(struct loop *l);

/* Any thread: call `round` soon. */
void loop_wake(struct loop *l);
/* Bytes of frames on all sockets so far; any thread. */
void loop_bytes(const struct loop *l, uint64_t *ret_in, uint64_t *ret_out);
/* When a message that is ready `now` may leave: one latency later. */
uint64_t loop_leaves(const struct loop *l, uint64_t now);

/* On the thread: connect to an address. -ENOMEM, -EMFILE (too many
 * connections), -errno. Later errors are reported to `ended`. */
int loop_dial(struct loop *l, const struct addr *to, const struct conn_ops *ops,
	      void *user, struct conn **ret);

#endif
