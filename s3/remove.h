/* SPDX-License-Identifier: MIT */
/* DeleteObject and DeleteObjects. */
#ifndef GPEMU_S3_REMOVE_H
#define GPEMU_S3_REMOVE_H

#include "s3/exchange.h"

/* By x->operation. */
enum MHD_Result remove_begin(struct exchange *x);

#endif
