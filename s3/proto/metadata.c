/* SPDX-License-Identifier: MIT */
#include "s3/proto/metadata.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"

/* Source: Amazon S3 user guide, "Working with object metadata". */
enum { MOST_OF_USER = 2048 };

static const char meta[] = "x-amz-meta-";

static bool is_in(const char *name, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(name, v[i]))
			return true;
	return false;
}

static bool is_kept(const char *name)
{
	static const char *const kept[] = {
		"Cache-Control",    "Content-Disposition", "Content-Encoding",
		"Content-Language", "Content-Type",	   "Expires",
	};

	return is_in(name, kept, ARRAY_SIZE(kept)) ||
	       !strncasecmp(name, meta, sizeof(meta) - 1);
}

/* Others look at these. */
static bool is_known(const char *name)
{
	static const char *const known[] = {
		"x-amz-checksum-algorithm",
		"x-amz-checksum-crc32",
		"x-amz-checksum-crc32c",
		"x-amz-checksum-crc64nvme",
		"x-amz-checksum-sha1",
		"x-amz-checksum-sha256",
		"x-amz-checksum-type",
		"x-amz-content-sha256",
		"x-amz-copy-source",
		"x-amz-copy-source-if-match",
		"x-amz-copy-source-if-modified-since",
		"x-amz-copy-source-if-none-match",
		"x-amz-copy-source-if-unmodified-since",
		"x-amz-copy-source-range",
		"x-amz-date",
		"x-amz-decoded-content-length",
		"x-amz-metadata-directive",
		"x-amz-sdk-checksum-algorithm",
		"x-amz-trailer",
		"x-amz-user-agent",
	};

	return strncasecmp(name, "x-amz-", 6) != 0 ||
	       is_in(name, known, ARRAY_SIZE(known));
}

static enum failure check_header(const char *name, const char *value)
{
	if (!strcasecmp(name, "x-amz-acl"))
		return !strcmp(value, "private") ||
				       !strcmp(value,
					       "bucket-owner-full-control")
			       ? FAILURE_NONE
			       : FAILURE_NO_ACL;
	if (!strncasecmp(name, "x-amz-grant-", 12))
		return FAILURE_NO_ACL;
	if (!strcasecmp(name, "x-amz-storage-class"))
		return !strcmp(value, "STANDARD")
			       ? FAILURE_NONE
			       : FAILURE_INVALID_STORAGE_CLASS;
	/* what S3 does anyway */
	if (!strcasecmp(name, "x-amz-server-side-encryption"))
		return !strcmp(value, "AES256") ? FAILURE_NONE
						: FAILURE_NOT_IMPLEMENTED;
	return is_known(name) ? FAILURE_NONE : FAILURE_NOT_IMPLEMENTED;
}

/* Without the coding that the request alone has. */
static void drop_coding(char *value)
{
	char *at;

	while ((at = strstr(value, "aws-chunked"))) {
		char *rest = at + sizeof("aws-chunked") - 1;

		rest += strspn(rest, ", ");
		memmove(at, rest, strlen(rest) + 1);
	}
	for (size_t n = strlen(value); n && strchr(", ", value[n - 1]); n--)
		value[n - 1] = 0;
}

static enum failure keep_header(const struct sigv4_header *h, FILE *f,
				size_t *user)
{
	_cleanup_free_ char *copy = strdup(h->value);
	bool of_user = !strncasecmp(h->name, meta, sizeof(meta) - 1);
	char *value;

	if (!copy)
		return FAILURE_UNAVAILABLE;
	value = util_trim(copy);
	if (!strcasecmp(h->name, "Content-Encoding"))
		drop_coding(value);
	if (strpbrk(value, "\r\n"))
		return FAILURE_INVALID_ARGUMENT;
	if (of_user)
		*user += strlen(h->name) - (sizeof(meta) - 1) + strlen(value);
	if (*user > MOST_OF_USER ||
	    strlen(h->name) + strlen(value) >= METADATA_LINE)
		return FAILURE_METADATA_TOO_LARGE;
	if (!*value)
		return FAILURE_NONE;
	for (const char *p = h->name; *p; p++)
		fputc(of_user ? tolower((unsigned char)*p) : *p, f);
	fprintf(f, ": %s\n", value);
	return FAILURE_NONE;
}

enum failure metadata_read(const struct sigv4_request *r, char **ret)
{
	enum failure failure = FAILURE_NONE;
	size_t n = 0, user = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return FAILURE_UNAVAILABLE;
	for (size_t i = 0; failure == FAILURE_NONE && i < r->n_headers; i++) {
		const struct sigv4_header *h = &r->headers[i];

		failure = is_kept(h->name) ? keep_header(h, f, &user)
					   : check_header(h->name, h->value);
	}
	if (fclose(f) != 0 && failure == FAILURE_NONE)
		failure = FAILURE_UNAVAILABLE;
	if (failure == FAILURE_NONE && n > METADATA_MOST)
		failure = FAILURE_METADATA_TOO_LARGE;
	if (failure != FAILURE_NONE)
		free(text);
	else
		*ret = text;
	return failure;
}

bool metadata_next(const char **at, char name[METADATA_LINE],
		   char value[METADATA_LINE])
{
	size_t n = strcspn(*at, "\n"), n_name = strcspn(*at, ":\n");

	if (!(*at)[n] || n_name + 2 > n || n >= METADATA_LINE)
		return false;
	memcpy(name, *at, n_name);
	name[n_name] = 0;
	memcpy(value, *at + n_name + 2, n - n_name - 2);
	value[n - n_name - 2] = 0;
	*at += n + 1;
	return true;
}
