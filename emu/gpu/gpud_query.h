/* SPDX-License-Identifier: MIT */
/* What is asked of gpemu-gpud: its status (gpemu-smi(1)), and grants. */
#ifndef GPEMU_EMU_GPU_GPUD_QUERY_H
#define GPEMU_EMU_GPU_GPUD_QUERY_H

#include <jansson.h>

#include "emu/gpu/gpud_proto.h"

/* What monitors take from a driver: the functions and elements that they may
 * expect. Its major version, which the release of gpemu follows, and CUDA's. */
#define GPUD_DRIVER "580"
#define GPUD_CUDA "13.0"
enum { GPUD_CUDA_NUMBER = 13000 };

/*
 * Over a connection of its own, as the server disconnects idle clients. Waits
 * at most `seconds` of wall time for each message. Errors of gpud_open and
 * gpud_receive; -EPROTO: the answer is not a status.
 */
int gpud_query(const char *path, const char *user, unsigned seconds,
	       json_t **ret, struct err *err);
/*
 * What was granted by this name ends, if it exists; then `n` grants, all of
 * that name, one for each GPU: all of them, or none. With n 0 it only ends.
 * Waits as long as
 * gpud_open. The errno of the server, negative, or errors of gpud_open; with a
 * text.
 */
int gpud_regrant(const char *path, const char *name, const struct gpud_grant *g,
		 size_t n, struct err *err);

#endif
