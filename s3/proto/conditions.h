/* SPDX-License-Identifier: MIT */
/* What a GET or HEAD asks beside its key: conditions (RFC 9110, section 13) and
 * a range (section 14). Pure. */
#ifndef GPEMU_S3_PROTO_CONDITIONS_H
#define GPEMU_S3_PROTO_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "s3/proto/failure.h"

/* Header values; NULL: not given. */
struct conditions {
	const char *match, *none_match, *modified_since, *unmodified_since;
	const char *range, *if_range;
};

struct conditions_file {
	const char *etag; /* with its quotes */
	int64_t mtime_s;
	uint64_t bytes;
};

enum { CONDITIONS_DATE = sizeof("Thu, 01 Jan 1970 00:00:00 GMT") };

/* The date of HTTP for s since 1970. */
void conditions_date(int64_t time_s, char ret[CONDITIONS_DATE]);

/* FAILURE_NONE: go on; FAILURE_NOT_MODIFIED, FAILURE_PRECONDITION. */
enum failure conditions_check(const struct conditions *c,
			      const struct conditions_file *file);
/* The bytes wanted, [*ret_from, *ret_end), all of them unless *ret_part. A
 * range that is not one range of bytes does not count. FAILURE_INVALID_RANGE:
 * it has none of the file's. */
enum failure conditions_range(const struct conditions *c,
			      const struct conditions_file *file,
			      uint64_t *ret_from, uint64_t *ret_end,
			      bool *ret_part);

#endif
