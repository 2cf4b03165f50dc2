/* SPDX-License-Identifier: MIT */
/* Private to the dispatcher: its workers. */
#ifndef GPEMU_SERVICE_DISPATCHER_WORKERS_H
#define GPEMU_SERVICE_DISPATCHER_WORKERS_H

#include "service/dispatcher/state.h"

/* A HELLO, answered by `welcome` first. -ENOSPC: too many workers, and no
 * answer; others end the connection. */
int workers_add(struct guest *g, const struct msg *m, const struct msg *welcome,
		uint64_t now);
int workers_message(struct guest *g, const struct msg *m, uint64_t now);
/* Workers that leave, and have nothing to finish, may end. */
void workers_let_go(struct dispatcher *d, uint64_t now);
/* It is gone. -EIO. */
int workers_remove(struct dispatcher *d, uint64_t id);

#endif
