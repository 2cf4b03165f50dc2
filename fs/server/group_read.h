/* SPDX-License-Identifier: MIT */
/* Reading groups: what a miss brings along, and where that waits. Called by
 * read.c and server.c; everything under the server's lock, but to clear a
 * buffer that was taken out of use. */
#ifndef GPEMU_FS_SERVER_GROUP_READ_H
#define GPEMU_FS_SERVER_GROUP_READ_H

#include "fs/source/group.h"
#include "fs/server/object.h"

struct server;
struct held;

/* Members of the groups read last that nobody has asked for yet, whether the
 * cache has them or not. The oldest goes first. Zeroed is empty. */
struct group_buffer {
	struct held *index; /* uthash by key */
	struct held *queue; /* oldest first */
	uint64_t bytes, limit;
};

struct object *group_buffer_find(const struct group_buffer *b, uint64_t key);
void group_buffer_clear(struct group_buffer *b);

/* Is this file read together with others? */
bool group_has(const struct server *s, uint32_t node);
/* The first of the files that this one is read with; else itself. */
uint32_t group_lead(const struct server *s, uint32_t node);

/*
 * `o`, of a file that is read together with others, is missing: what is to be
 * started instead of o->fetch. It brings all members that are not there, and
 * they are in flight, and in the cache or held by the buffer, from now on.
 * Without memory `o` comes alone.
 */
struct fetch *group_bring(struct server *s, struct object *o, uint32_t node,
			  uint64_t arrival);

/* An open asks for `o` for the first time; `was_hit`: the cache had it. */
void group_asked(struct server *s, struct object *o, bool was_hit,
		 bool was_rejected);

#endif
