/* SPDX-License-Identifier: MIT */
/* The target of a request, "/bucket/a%20key?prefix=x", decoded. Pure. */
#ifndef GPEMU_S3_PROTO_TARGET_H
#define GPEMU_S3_PROTO_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target_arg {
	char *name, *value; /* decoded; the value of "?location" is "" */
};

struct target {
	char *path; /* decoded, with its slash */
	struct target_arg *args;
	size_t n_args;
};

/* -EINVAL: no path, a broken %XX, a NUL, too many arguments; -ENOMEM. Call
 * target_fini even after an error. */
int target_parse(const char *raw, struct target *ret);
void target_fini(struct target *t);

/* The value of the first argument of this name, or NULL. */
const char *target_arg(const struct target *t, const char *name);
/* The same, or `otherwise`. */
const char *target_arg_or(const struct target *t, const char *name,
			  const char *otherwise);
/* The number that it is; `otherwise` without one. false: it is none up to
 * `most`. */
bool target_number(const struct target *t, const char *name, uint64_t most,
		   uint64_t otherwise, uint64_t *ret);
/* Is the text a number up to `most`? */
bool target_decimal(const char *text, uint64_t most, uint64_t *ret);

#endif
