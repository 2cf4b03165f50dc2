/* SPDX-License-Identifier: MIT */
/* What all ranks of a run must have in common. */
#ifndef GPEMU_LOADER_NODES_AGREE_H
#define GPEMU_LOADER_NODES_AGREE_H

#include <jansson.h>

#include "emu/gpu/collective.h"
#include "loader/comm/comm.h"

/* `mine`: an object, by name of the option. -EINVAL on a rank that has another
 * value than rank 0, with a text. Collective. */
int agree_same(struct comm *c, const json_t *mine, struct err *err);
/* The link of the all-reduce is that of the node with the slowest one.
 * Collective. */
int agree_link(struct comm *c, struct collective *reduce, struct err *err);

/* Does some rank have it? Collective. */
int agree_any(struct comm *c, bool mine, bool *ret, struct err *err);

#endif
