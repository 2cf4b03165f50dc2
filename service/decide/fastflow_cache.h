/* SPDX-License-Identifier: MIT */
/*
 * Profiles of earlier jobs, so that the same job on the same nodes need not be
 * measured again. Source: as fastflow.h. A JSON file, which is replaced
 * as a whole: a reader sees the old or the new one, of several writers the last
 * wins. What is not such a file, or not such a profile, counts as absent.
 */
#ifndef GPEMU_SERVICE_DECIDE_FASTFLOW_CACHE_H
#define GPEMU_SERVICE_DECIDE_FASTFLOW_CACHE_H

#include "common/err.h"
#include "service/decide/fastflow.h"

/* What a profile depends on, in words of the caller's: the transforms with
 * their options and cores, the model with its GPU and batch, the remote nodes
 * with their cores and network. */
struct fastflow_key {
	const char *pipeline, *model, *remote;
};

/* Profiles in a file; the oldest leave. arbitrary: 100 KB of text */
enum { FASTFLOW_CACHED = 256 };

/* -ENOENT: there is none, or none that fastflow_decide takes; -ENOMEM. */
int fastflow_cache_get(const char *path, const struct fastflow_key *key,
		       struct fastflow_profile *ret);
/* Add or replace. -errno with a text that names the file; -EINVAL: a profile
 * that fastflow_decide refuses. */
int fastflow_cache_put(const char *path, const struct fastflow_key *key,
		       const struct fastflow_profile *p, struct err *err);

#endif
