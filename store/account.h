/* SPDX-License-Identifier: MIT */
/*
 * Who a client of an object store is, and where the store: what the tools of
 * AWS take from the environment, ~/.aws/credentials and ~/.aws/config.
 *
 *	keys		AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
 *			AWS_SESSION_TOKEN; else the profile AWS_PROFILE, or
 *			default, of AWS_SHARED_CREDENTIALS_FILE, then of
 *			AWS_CONFIG_FILE; none with AWS_NO_SIGN_REQUEST=yes
 *	region		AWS_REGION, AWS_DEFAULT_REGION, `region` of the profile,
 *			us-east-1
 *	endpoint	AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, `endpoint_url` of
 *			the profile; else that of AWS in the region
 *
 * Keys that have to be fetched (roles, single sign-on, credential_process,
 * those of a container or an instance) are refused.
 */
#ifndef GPEMU_STORE_ACCOUNT_H
#define GPEMU_STORE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct account {
	char *id, *secret; /* NULL: requests are not signed */
	char *token;	   /* of a session; or NULL */
	char *region;
	char *endpoint; /* "http[s]://HOST[:PORT]"; NULL: that of AWS */
	char *ca_file;	/* AWS_CA_BUNDLE; or NULL */
};

/* -EINVAL (what is not supported, or missing), -ENOMEM, and as open(2) of a
 * file that the environment names; with a text. Call account_fini even after an
 * error. */
int account_find(struct account *ret, struct err *err);
void account_fini(struct account *a);

/* A profile of the two files; borrows from their text. */
struct account_profile {
	const char *id, *secret, *token, *region, *endpoint;
	const char *fetched;  /* a key that says that keys have to be fetched */
	const char *services; /* a section with endpoints, which is not read */
	bool found;
};
/*
 * Add profile `name` of a file to *ret, which keeps what it has. The text, of
 * `n` bytes and a NUL, is overwritten; `config`: sections are [profile NAME].
 * -EINVAL with "file:line:column: what"; safe on any input.
 */
int account_parse(char *text, size_t n, const char *file, const char *name,
		  bool config, struct account_profile *ret, struct err *err);

#endif
