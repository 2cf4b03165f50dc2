/* SPDX-License-Identifier: MIT */
/* What a request that writes says of the object: the headers that its answers
 * have. Pure. */
#ifndef GPEMU_S3_PROTO_METADATA_H
#define GPEMU_S3_PROTO_METADATA_H

#include "s3/proto/failure.h"
#include "s3/proto/sigv4.h"

/* The longest of a header that is kept, of all of them. */
enum { METADATA_LINE = 4096, METADATA_MOST = 8192 };

/*
 * Lines "name: value\n", malloc'ed. Else what S3 answers: a header that would
 * change the object in a way that is not known here is refused, as an answer
 * that ignores it would be a wrong one.
 */
enum failure metadata_read(const struct sigv4_request *r, char **ret);

/* The next line, from *at on, which it moves; false: there is none. */
bool metadata_next(const char **at, char name[METADATA_LINE],
		   char value[METADATA_LINE]);

#endif
