/* SPDX-License-Identifier: MIT */
/* CopyObject and UploadPartCopy. The device is charged a write without bytes: a
 * copy does not pass the link to the client. */
#ifndef GPEMU_S3_COPY_H
#define GPEMU_S3_COPY_H

#include "s3/exchange.h"

/* By x->operation. */
enum MHD_Result copy_begin(struct exchange *x);

#endif
