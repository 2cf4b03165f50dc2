/* SPDX-License-Identifier: MIT */
/* Reads of a mount, split into objects; the memory of their answers. */
#ifndef GPEMU_FS_SERVER_READ_H
#define GPEMU_FS_SERVER_READ_H

#include "fs/server/state.h"

/* The end of the stack that splits reads into objects. */
extern const struct layer_ops read_split;

/* Memory of the mount for w->bytes of another answer, if there is some now;
 * server_return gives it back, if there was. */
bool server_borrow(struct server *s, struct budget_wait *w);
void server_return(struct server *s, struct budget_wait *w);

/* End the waits for memory; no read waits for it any more. */
void read_stop(struct server *s);

#endif
