/* SPDX-License-Identifier: MIT */
/* What all ranks of a run must have in common, and their one record. */
#ifndef GPEMU_LOADER_NODES_AGREE_H
#define GPEMU_LOADER_NODES_AGREE_H

#include <jansson.h>

#include "emu/gpu/collective.h"
#include "loader/account/account.h"
#include "loader/comm/comm.h"

/* `mine`: an object, by name of the option. -EINVAL on a rank that has another
 * value than rank 0, with a text. Collective. */
int agree_same(struct comm *c, const json_t *mine, struct err *err);
/* The link of the all-reduce is that of the node with the slowest one.
 * Collective. */
int agree_link(struct comm *c, struct collective *reduce, struct err *err);

/* Does some rank have it? Collective. */
int agree_any(struct comm *c, bool mine, bool *ret, struct err *err);

/*
 * The end of a run. Rank 0: joins the accounts of all ranks with its own, as
 * account_join: account[i] with account[i] of each rank, of which all have as
 * many unless one was interrupted before the others. *ret_nodes: the `own` of
 * each rank, the caller's. Other ranks: NULL. Collective, after comm_end.
 * -ENOMEM on all, also if `own` of one is NULL; -EIO.
 */
int collect(struct comm *c, struct train_account *const *account, size_t n,
	    const json_t *own, json_t **ret_nodes, struct err *err);

#endif
