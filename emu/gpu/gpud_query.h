/* SPDX-License-Identifier: MIT */
/* The status of gpemu-gpud: its GPUs, its jobs, the queue (gpemu-smi(1)). */
#ifndef GPEMU_EMU_GPU_GPUD_QUERY_H
#define GPEMU_EMU_GPU_GPUD_QUERY_H

#include <jansson.h>

#include "common/err.h"

/* What monitors take from a driver: the functions and elements that they may
 * expect. Its major version, which the release of gpemu follows, and CUDA's. */
#define GPUD_DRIVER "550"
#define GPUD_CUDA "12.4"
enum { GPUD_CUDA_NUMBER = 12040 };

/*
 * Over a connection of its own, as the server disconnects idle clients. Waits
 * at most `seconds` of wall time for each message. Errors of gpud_open and
 * gpud_receive; -EPROTO: the answer is not a status.
 */
int gpud_query(const char *path, const char *user, unsigned seconds,
	       json_t **ret, struct err *err);

#endif
