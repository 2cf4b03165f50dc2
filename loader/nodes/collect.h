/* SPDX-License-Identifier: MIT */
/* The end of a run: rank 0 collects what the others measured. */
#ifndef GPEMU_LOADER_NODES_COLLECT_H
#define GPEMU_LOADER_NODES_COLLECT_H

#include <jansson.h>

#include "loader/account/account.h"
#include "loader/comm/comm.h"

/*
 * Rank 0: joins the accounts of all ranks with its own, as account_join:
 * account[i] with account[i] of each rank, of which all have as many unless one
 * was interrupted before the others. *ret_nodes: the `own` of each rank, the
 * caller's. Other ranks: NULL. Collective, after comm_end. -ENOMEM on all, also
 * if `own` of one is NULL; -EIO.
 */
int collect(struct comm *c, struct account *const *account, size_t n,
	    const json_t *own, json_t **ret_nodes, struct err *err);

#endif
