/* SPDX-License-Identifier: MIT */
/* Answers about the bucket: ListBuckets, HeadBucket, GetBucketLocation,
 * ListObjects and ListObjectsV2. */
#ifndef GPEMU_S3_BUCKET_H
#define GPEMU_S3_BUCKET_H

#include "s3/exchange.h"

/* By x->operation. */
enum MHD_Result bucket_begin(struct exchange *x);

#endif
