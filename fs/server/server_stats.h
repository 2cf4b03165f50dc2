/* SPDX-License-Identifier: MIT */
/* The stats of a server. */
#ifndef GPEMU_FS_SERVER_SERVER_STATS_H
#define GPEMU_FS_SERVER_SERVER_STATS_H

#include <jansson.h>

#include "fs/server/state.h"

/* The content of the stats file; see the manual page. NULL: no memory. */
json_t *server_stats(struct server *s);

/* Of a device: times requested, achieved and their error, us. NULL: no memory.
 */
json_t *server_latency_json(const struct fetch_stats *f);

/* The present counters. Under the lock. */
struct epoch_mark server_mark_now(struct server *s);

#endif
