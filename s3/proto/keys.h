/* SPDX-License-Identifier: MIT */
/*
 * The keys of clients: pairs of an access key and a secret key, from a file as
 * AWS tools have it, or from the environment.
 *
 *	[default]
 *	aws_access_key_id = AKIAIOSFODNN7EXAMPLE
 *	aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
 */
#ifndef GPEMU_S3_PROTO_KEYS_H
#define GPEMU_S3_PROTO_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct keys {
	struct key {
		char *id, *secret;
	} * v;
	size_t n;
};

/* `n` bytes of any content, which are overwritten. -EINVAL with a text
 * "name:line:column: what", -ENOMEM. Call keys_fini even after an error. */
int keys_parse(char *text, size_t n, const char *name, struct keys *ret,
	       struct err *err);
/* A file that only this user, or root, may access: errors as of key_file_read
 * (net/seal.h). */
int keys_read(const char *path, struct keys *ret, struct err *err);
/* AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; none: *ret is empty. -ENOMEM. */
int keys_of_environment(struct keys *ret);
/* Overwrites the secrets. */
void keys_fini(struct keys *k);
/* The secret of an access key, or NULL. */
const char *keys_find(const struct keys *k, const char *id);

#endif
