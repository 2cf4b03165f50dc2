/* SPDX-License-Identifier: MIT */
/*
 * The control command `warm`: loads objects into the cache before they are
 * requested, so that an experiment begins with a warm cache. A thread reads
 * them from the source, one after the other, past the emulated device: they
 * cost no emulated time, and are neither hits, misses nor device reads.
 *
 * Objects that the policy does not admit, or that do not fit, are not read:
 * a warm-up evicts nothing.
 */
#ifndef GPEMU_FS_CONTROL_WARM_H
#define GPEMU_FS_CONTROL_WARM_H

#include <jansson.h>

#include "common/err.h"

struct server;
struct warm;

int warm_new(struct server *server, struct warm **ret); /* -ENOMEM */
/* Drops the queue and refuses new commands; call it before server_stop. NULL
 * is allowed, as below. */
void warm_stop(struct warm *w);
/* Stops first. */
void warm_free(struct warm *w);

/*
 * Append to the queue. `list`: "all"; the absolute path of a file with one path
 * below the root a line (a file in the mount: not on a thread that the mount
 * waits for); or a pattern for such paths, as those of faults (fault_glob).
 * -ENOENT (no such file, no match), -EINVAL, -ENOMEM, -EAGAIN (no thread),
 * -ECONNABORTED (stopped), -EBUSY (the queue is full), -E2BIG (a list of far
 * more lines than files) with a text; on an error nothing is appended.
 */
int warm_begin(struct warm *w, const char *list, struct err *err);

/*
 * {"requested","loaded","cached","rejected","failed"}: objects of the commands
 * since the thread was last idle; "cached" were already in the cache. "done":
 * the thread is idle. NULL: no memory.
 */
json_t *warm_json(struct warm *w);

#endif
