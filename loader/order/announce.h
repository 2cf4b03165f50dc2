/* SPDX-License-Identifier: MIT */
/* The announcement of a schedule to a mount: of its accesses to one that
 * fetches ahead (common/system/future.h), of its weights to one whose cache
 * policy uses them (common/system/importance.h). */
#ifndef GPEMU_LOADER_ORDER_ANNOUNCE_H
#define GPEMU_LOADER_ORDER_ANNOUNCE_H

#include "loader/dataset/mount.h"
#include "loader/order/schedule.h"

struct announcer {
	const struct dataset_mount *mount;
	struct order_schedule *schedule;
	const struct dataset *data; /* its samples are files */
	uint64_t until;		    /* epochs below are announced; 0: none */
	uint32_t *inodes;	    /* of the samples, or NULL */
};

/* The epochs that are left. */
struct announce_epochs {
	uint64_t first, n;
	uint64_t visits; /* samples of a rank in each epoch */
	uint64_t skips;	 /* of these: not in the first epoch, its first ones */
};

/* Announce them, or as many as a list may hold: sets a->until. Uses the order
 * of the schedule. -E2BIG: not even one; errors of the order and of writes;
 * with a text. */
int announce(struct announcer *a, const struct announce_epochs *e,
	     struct err *err);
/* Announce the weights of its samples, if it has some (schedule_weights).
 * Errors of the order and of writes, with a text. */
int announce_weights(struct announcer *a, struct err *err);
void announcer_fini(struct announcer *a);

#endif
