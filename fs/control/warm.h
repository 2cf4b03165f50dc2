/* SPDX-License-Identifier: MIT */
/*
 * The control command `warm`: objects go into the cache before anybody asks
 * for them, so that an experiment begins with a warm one. A thread reads them
 * from the source, one after the other, past the emulated device: they cost
 * no emulated time, and are neither hits, misses nor reads of the backend.
 *
 * What the policy does not admit, or what there is no room for, stays out:
 * nothing is evicted for it, and nothing that stays out is read.
 */
#ifndef GPEMU_FS_CONTROL_WARM_H
#define GPEMU_FS_CONTROL_WARM_H

#include <jansson.h>

#include "common/err.h"

struct server;
struct warm;

int warm_new(struct server *server, struct warm **ret); /* -ENOMEM */
/* Leaves what is still to be read, and refuses what comes; before server_stop.
 * NULL is allowed, as below. */
void warm_stop(struct warm *w);
/* Stops first. */
void warm_free(struct warm *w);

/*
 * Begin, behind what was asked for before. `list`: "all"; the absolute path of
 * a file with a path below the root on each line (if it is in the mount, not
 * by a thread that the mount waits for); or a pattern for such
 * paths, as those of faults (fault_glob).
 * -ENOENT (no such file, no match), -EINVAL, -ENOMEM, -EAGAIN (no thread),
 * -ECONNABORTED (it was stopped), -EBUSY (much waits already), -E2BIG (a list
 * of far more lines than files) with a text; then nothing was begun.
 */
int warm_begin(struct warm *w, const char *list, struct err *err);

/*
 * {"requested","loaded","cached","rejected","failed"}: objects of the commands
 * since it had nothing to do; "cached" were there already. "done": nothing is
 * left to do. NULL: no memory.
 */
json_t *warm_json(struct warm *w);

#endif
