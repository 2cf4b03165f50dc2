/* SPDX-License-Identifier: MIT */
/*
 * A storage device as its profile describes it: how long each class of
 * operation takes, how many run at once, how fast bytes flow.
 *
 *	issue = max(arrival, next IOPS slot)
 *	start = max(issue, the earliest free of the channels)
 *	busy  = start + seek + occupancy + bytes / channel bandwidth
 *	done  = busy + latency, then through the link they all share
 */
#ifndef GPEMU_EMU_PROFILE_STORAGE_H
#define GPEMU_EMU_PROFILE_STORAGE_H

#include <stdint.h>

#include "common/conf.h"
#include "common/err.h"

enum storage_op {
	STORAGE_OPEN,
	STORAGE_LOOKUP,
	STORAGE_READDIR,
	STORAGE_READ,
	STORAGE_N_OPS
};

struct storage_profile;

/* Load by name or path; free with storage_profile_free (NULL allowed). */
int storage_profile_load(const char *name, struct storage_profile **ret,
			 struct err *err);
void storage_profile_free(struct storage_profile *p);

#endif
