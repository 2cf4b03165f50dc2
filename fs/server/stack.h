/* SPDX-License-Identifier: MIT */
/* The layers of a server, as a whole. */
#ifndef GPEMU_FS_SERVER_STACK_H
#define GPEMU_FS_SERVER_STACK_H

#include "fs/server/state.h"

/* Check the words of a stack, from the top, separated by commas. -EINVAL with a
 * text. */
int stack_check_layers(const char *words, struct err *err);

/*
 * Make the layers of s->c.layers, top to bottom, and link them; call stack_fini
 * even after an error. -EINVAL (unknown word, impossible order, refused by a
 * layer), -ENOMEM; with a text.
 */
int stack_init(struct server *s, const struct layer_ops *split,
	       struct err *err);
void stack_fini(struct server *s);

/* All layers answer what they hold, and hold nothing afterwards. */
void stack_stop(struct server *s);
/* The first layer with these ops; NULL: it is not in the stack, or idle. */
struct layer *stack_layer(struct server *s, const struct layer_ops *ops);

/* --- under the lock ------------------------------------------------------ */

/* Number an event in the order of accesses, and pass it to the layers. */
void stack_event(struct server *s, enum layer_event event, uint64_t key);
/* The object, if some layer has it (layer_ops.peek). */
struct object *stack_peek(struct server *s, uint64_t key, bool kept);
/* Is it an open of a file whose first object the layer has? Takes the lock. */
bool stack_opens(struct layer *l, const struct fetch *f);
/* The bytes of `o` cannot be read: every layer drops it. */
void stack_forget(struct server *s, const struct object *o);
/* The first access to `o` since a layer prefetched it. */
void stack_accessed(struct server *s, struct object *o, struct ask *a);
#endif
