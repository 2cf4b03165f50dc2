/* SPDX-License-Identifier: MIT */
/* What clients asked for, in the stats: "s3". */
#ifndef GPEMU_S3_STATUS_H
#define GPEMU_S3_STATUS_H

#include <jansson.h>

/* Add it to the stats; `ctx` is a struct service. */
void status_add(void *ctx, json_t *stats);

#endif
