/* SPDX-License-Identifier: MIT */
/*
 * The health of the GPUs of a kind, as their gpemu-gpud has it: watched for
 * changes, and asked again every `interval_ns`, which also notices a server
 * that is stopped. All GPUs of a server that is gone, does not answer, or
 * serves another GPU are unhealthy, until it is right again.
 */
#ifndef GPEMU_PLATFORM_K8S_HEALTH_H
#define GPEMU_PLATFORM_K8S_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/gpu/gpud_client.h"
#include "common/program/events.h"
#include "platform/node.h"

struct health {
	const struct node_kind *kind; /* set by the owner, as what follows */
	struct events *events;
	uint64_t interval_ns;
	/* The GPUs in the mask are healthy, and no others. At first, and at
	 * each change. */
	void (*changed)(void *ctx, const struct node_kind *kind,
			uint64_t healthy);
	/* The server is there, and knows of no grants of an earlier one; it is
	 * not any more; it answers a grant, with 0 or an errno. */
	void (*connected)(void *ctx, const struct node_kind *kind);
	void (*lost)(void *ctx, const struct node_kind *kind);
	void (*acked)(void *ctx, const struct node_kind *kind, const char *name,
		      int error);
	void *ctx;

	struct event event;
	struct event_timer timer;
	struct gpud_client gpud;
	bool asked;	    /* the answer is not here yet */
	bool known;	    /* `healthy` was reported */
	uint64_t healthy;   /* mask */
	char trouble[1024]; /* that was logged; "": none */
};

void health_begin(struct health *h);
void health_end(struct health *h);

/* Grant memory of a GPU, or revoke it all. `acked` comes later. -EHOSTDOWN: the
 * server is not there. */
int health_grant(struct health *h, const char *name, uint32_t gpu,
		 uint64_t bytes);
int health_revoke(struct health *h, const char *name);

#endif
