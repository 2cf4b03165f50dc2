/* SPDX-License-Identifier: MIT */
/* Changes of a server by control commands and loaders, while it runs. */
#ifndef GPEMU_FS_SERVER_SERVER_CHANGE_H
#define GPEMU_FS_SERVER_SERVER_CHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/units.h"

struct server;

/*
 * Changes of a running server. -EINVAL, -ENOENT, -ENOMEM, -ECONNABORTED
 * (stopped) with a text; then nothing has changed.
 */
/* The next epoch begins. */
int server_epoch(struct server *s, struct err *err);
/* Reset all counters and epochs; the cache stays as it is. */
int server_reset(struct server *s, struct err *err);
/* Empty the cache and the policy's history; the counters continue. */
int server_drop_cache(struct server *s, struct err *err);
/* A new policy or capacity starts with an empty cache. */
int server_set_cache(struct server *s, const char *policy,
		     const struct units_capacity *size, struct err *err);
/* Another capacity; what fits stays cached, and the policy forgets its history.
 * -EINVAL, too: with peers or a trace, which know one capacity. */
int server_resize_cache(struct server *s, const struct units_capacity *size,
			struct err *err);
/* The same for one of several tiers, from 0; all tiers start empty. */
int server_set_tier(struct server *s, unsigned tier, const char *policy,
		    const struct units_capacity *size, struct err *err);
int server_set_storage(struct server *s, const char *storage, struct err *err);
/* The device's link has at most so many bytes per second, whatever its profile
 * says; 0: what that says. -EINVAL: less than a kB. */
int server_set_bandwidth(struct server *s, uint64_t bytes_per_s,
			 struct err *err);
/*
 * A loader announces its accesses (common/system/future.h): `n` bytes at
 * `offset` of the list. Once it is complete, objects are placed and fetched
 * ahead by it. `writer` tells one open file from another. -E2BIG; -EBUSY:
 * another writer has begun a list since; -EOPNOTSUPP: nothing would use it.
 */
int server_future(struct server *s, const void *writer, uint64_t offset,
		  const void *bytes, size_t n, struct err *err);
/* The writer has closed the file. -EINVAL: its list is not complete. */
int server_future_end(struct server *s, const void *writer, struct err *err);
/*
 * A loader announces how much files matter to it: `n` bytes of records
 * (common/system/importance.h). Policies know it from then on, whatever else
 * changes. -EINVAL: not all are well-formed; then none counts.
 */
int server_importance(struct server *s, const void *bytes, size_t n,
		      struct err *err);

#endif
