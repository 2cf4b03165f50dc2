/* SPDX-License-Identifier: MIT */
/*
 * A trainer's connection to the dispatcher. What the dispatcher has to know is
 * sent again after each connect, so that one that was started anew, even
 * without its journal, goes on. On the thread of the loop.
 */
#ifndef GPEMU_SERVICE_CLIENT_DESK_H
#define GPEMU_SERVICE_CLIENT_DESK_H

#include "service/client/links.h"
#include "service/proto/outbox.h"

struct desk {
	struct links *links; /* which has the shelf, the loop, the job */
	const struct addr *dispatcher;
	const char *definition;
	enum split_mode mode;
	uint32_t batch, per_split; /* links has how it is shared */
	/* emulated: no longer without the dispatcher; the loop's time-out */
	uint64_t wait_ns, timeout_ns;
	/* private */
	struct conn *conn; /* NULL: not now */
	struct outbox out;
	bool greeted, welcome, brought, dropped; /* brought: the job, once */
	struct redial redial;
	uint64_t gone_since, beat_at, beat_ns;
	uint64_t turn;	 /* of the shelf, that it was told of */
	uint32_t n_told; /* splits that are done */
	int why;	 /* of the last end of a connection; 0: it is there */
	uint64_t n_lost; /* connections; atomic */
};

void desk_init(struct desk *d);
void desk_fini(struct desk *d);
/* Before each round: dial, tell; returns when due again. */
uint64_t desk_round(struct desk *d, uint64_t now);

#endif
