/* SPDX-License-Identifier: MIT */
/* Uploads in parts: CreateMultipartUpload, UploadPart, CompleteMultipartUpload,
 * AbortMultipartUpload, ListParts, ListMultipartUploads. */
#ifndef GPEMU_S3_MULTIPART_H
#define GPEMU_S3_MULTIPART_H

#include "s3/put.h"

/* By x->operation. */
enum MHD_Result multipart_begin(struct exchange *x);

/* The upload and the part that the target names, in x->put. */
enum failure multipart_find(struct exchange *x);
/* The file is that part from now on; taken in any case. */
enum failure multipart_add(struct exchange *x, struct staged *file,
			   const unsigned char md5[MD5_DIGEST_SIZE]);

#endif
