/* SPDX-License-Identifier: MIT */
/* From a request to its operation: who sends it, and what it asks. */
#ifndef GPEMU_S3_DISPATCH_H
#define GPEMU_S3_DISPATCH_H

#include "s3/exchange.h"

enum MHD_Result dispatch(struct exchange *x);

#endif
