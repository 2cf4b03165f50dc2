/* SPDX-License-Identifier: MIT */
/*
 * The connection to an owner, and the fetches of objects that wait for it.
 *
 *	AWAY --dial--> GREETING --WELCOME--> UP
 *	  ^---- back-off ----'------ended-----'
 *
 * Only a link that is up takes fetches. When it ends, all of them go to
 * `miss`: to the storage. It dials again after a back-off that doubles, or at
 * once when the other node has connected to this one.
 *
 * A link ends as too slow if requests are outstanding and no reply comes for
 * the time-out, or if a single one is outstanding for LINK_PATIENCE time-outs.
 */
#ifndef GPEMU_FS_PEER_PEER_LINK_H
#define GPEMU_FS_PEER_PEER_LINK_H

#include <jansson.h>

#include "fs/peer/peer_shared.h"
#include "net/redial.h"

enum { LINK_PATIENCE = 8 };

struct link_slot {
	struct fetch *fetch; /* NULL: free */
	uint64_t id, since, leaves;
	bool sent;
	uint32_t next; /* in the list of free ones, or of those to be sent */
};

struct peer_link {
	struct peer_shared *shared;
	uint32_t node;
	struct conn *conn; /* NULL: away */
	bool greeted, told;
	uint64_t quiet_until, n_quiet; /* losses until then are not logged */
	bool up;		       /* atomic */
	struct redial
		redial; /* `at`, while it is there: look for overdue ones */
	struct link_slot *slots; /* PEER_MOST_GETS */
	uint32_t free, first, last;
	uint32_t n_waiting;
	uint64_t n_asked;
	int why;			 /* atomic: of the last end */
	enum peer_reason reason;	 /* atomic: of the last refusal */
	uint64_t hits, unanswered, lost; /* atomic */
};

/* -ENOMEM. */
int peer_link_init(struct peer_link *l, struct peer_shared *shared,
		   uint32_t node);
/* Its connection has ended. */
void peer_link_fini(struct peer_link *l);
/* Any thread: does it take fetches? */
bool peer_link_is_up(const struct peer_link *l);
/* Ask for the object that `f` fetches: f->done or `miss` follows, perhaps at
 * once. */
void peer_link_ask(struct peer_link *l, struct fetch *f, uint64_t now);
/* Dial or give up, if due; returns when it is due next. */
uint64_t peer_link_round(struct peer_link *l, uint64_t now);
/* The other node is up: dial now. */
void peer_link_hint(struct peer_link *l);
/* Any thread: its counters start again. */
void peer_link_reset(struct peer_link *l);
/* Any thread: its part of the stats. */
json_t *peer_link_json(const struct peer_link *l);

#endif
