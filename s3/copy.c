/* SPDX-License-Identifier: MIT */
#include "s3/copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/tick.h"
#include "common/util.h"
#include "s3/multipart.h"
#include "s3/object.h"
#include "s3/proto/conditions.h"
#include "s3/proto/metadata.h"
#include "s3/put.h"

enum { PIECE = 1 << 20 }; /* arbitrary: fits a cache */

/* --- the source --------------------------------------------------------- */

/* The key in x-amz-copy-source, "/bucket/key" encoded; malloc'ed. */
static enum failure key_of(const struct exchange *x, char **ret)
{
	const char *value = exchange_header(x, "x-amz-copy-source");
	const char *bucket = x->service->bucket;
	size_t n = strlen(bucket);
	_cleanup_free_ char *raw = NULL;
	enum failure f = FAILURE_NONE;
	struct target t;

	raw = util_text("%s%s", *value == '/' ? "" : "/", value);
	if (!raw)
		return FAILURE_UNAVAILABLE;
	if (target_parse(raw, &t) < 0)
		f = FAILURE_INVALID_ARGUMENT;
	else if (strncmp(t.path + 1, bucket, n) != 0 || t.path[n + 1] != '/')
		f = FAILURE_NO_SUCH_BUCKET;
	else if (t.n_args)
		f = FAILURE_NOT_IMPLEMENTED; /* versionId */
	else if (!(*ret = strdup(t.path + n + 2)))
		f = FAILURE_UNAVAILABLE;
	target_fini(&t);
	return f;
}

static enum failure find_source(struct exchange *x, const char *key,
				struct object_about *ret)
{
	const struct tree *t = x->service->names.tree;
	struct put *p = x->put;

	p->from_node = names_find(&x->service->names, key);
	if (p->from_node == TREE_NONE)
		p->from = objects_find(p->objects, key, &p->from_fd);
	else
		p->from_node = tree_file(t, p->from_node);
	if (p->from_node == TREE_NONE && !p->from)
		return FAILURE_NO_SUCH_KEY;
	object_about(t, key, p->from_node, p->from, ret);
	if (!p->from)
		return FAILURE_NONE;
	return p->from_fd < 0 ? failure_of(p->from_fd) : FAILURE_NONE;
}

/* "bytes=0-9", of the source */
static enum failure read_range(struct exchange *x, const struct object_about *s)
{
	const char *range = exchange_header(x, "x-amz-copy-source-range");
	struct put *p = x->put;
	uint64_t from, last;
	int end = 0;

	p->end = s->bytes;
	if (!range)
		return FAILURE_NONE;
	if (sscanf(range, "bytes=%" SCNu64 "-%" SCNu64 "%n", &from, &last,
		   &end) != 2 ||
	    range[end] || from > last)
		return FAILURE_INVALID_ARGUMENT;
	if (last >= s->bytes)
		return FAILURE_INVALID_RANGE;
	p->at = from;
	p->end = last + 1;
	return FAILURE_NONE;
}

static enum failure check_conditions(const struct exchange *x,
				     const struct object_about *s)
{
#define OF_SOURCE(name) exchange_header(x, "x-amz-copy-source-" name)
	const struct conditions c = {
		.match = OF_SOURCE("if-match"),
		.none_match = OF_SOURCE("if-none-match"),
		.modified_since = OF_SOURCE("if-modified-since"),
		.unmodified_since = OF_SOURCE("if-unmodified-since"),
	};
#undef OF_SOURCE
	const struct conditions_file f = { s->etag, s->mtime_s, s->bytes };

	return conditions_check(&c, &f) ? FAILURE_PRECONDITION : FAILURE_NONE;
}

/* The headers of the copy: those of the source, or of the request. */
static enum failure choose_headers(struct exchange *x, const char *key,
				   const struct object_about *s,
				   const char **why)
{
	const char *given = exchange_header(x, "x-amz-metadata-directive");
	bool replace = given && !strcasecmp(given, "REPLACE");
	struct exchange_headers h;
	struct put *p = x->put;
	enum failure f;

	if (given && !replace && strcasecmp(given, "COPY") != 0)
		return FAILURE_INVALID_ARGUMENT;
	if (!replace && !strcmp(key, x->key)) {
		*why = "A copy onto itself must replace the metadata.";
		return FAILURE_INVALID_REQUEST;
	}
	exchange_headers(x, &h);
	f = metadata_read(&h.request, &p->headers);
	if (f == FAILURE_NONE && !replace) {
		free(p->headers);
		p->headers = strdup(s->headers);
		f = p->headers ? FAILURE_NONE : FAILURE_UNAVAILABLE;
	}
	return f;
}

/* --- the copy ----------------------------------------------------------- */

static int read_piece(struct exchange *x, char *buf, size_t n)
{
	const struct service *s = x->service;
	struct put *p = x->put;
	ssize_t got;

	if (p->from_node != TREE_NONE)
		return s->source->read(s->source_state, s->names.tree,
				       p->from_node, buf, n, p->at, false);
	got = util_read_all(p->from_fd, buf, n, (int64_t)p->at);
	return got < 0 ? (int)got : (size_t)got == n ? 0 : -EIO;
}

/* On a thread of the writers. */
static int work(void *ctx)
{
	struct exchange *x = ctx;
	struct put *p = x->put;
	_cleanup_free_ char *buf = malloc(PIECE);
	int r = buf ? objects_stage(p->objects, p->end - p->at, &p->file)
		    : -ENOMEM;
	struct md5_ctx md5;

	md5_init(&md5);
	while (r == 0 && p->at < p->end) {
		size_t n = MIN((size_t)PIECE, p->end - p->at);

		r = read_piece(x, buf, n);
		if (r == 0)
			r = util_write_all(p->file.fd, buf, n);
		md5_update(&md5, n, (const uint8_t *)buf);
		p->at += n;
		p->copied += n;
	}
	/* a connection holds one descriptor while it waits (main.c) */
	util_closep(&p->from_fd);
	p->from_fd = -1;
	md5_digest(&md5, sizeof(p->md5), p->md5);
	put_etag(p->md5, p->etag);
	x->failure = r == 0 && x->operation == OPERATION_COPY
			     ? put_store(x, &p->file)
			     : FAILURE_NONE;
	return r;
}

static enum MHD_Result answer(struct exchange *x)
{
	FILE *f = xml_begin(&x->xml,
			    x->operation == OPERATION_COPY ? "CopyObjectResult"
							   : "CopyPartResult",
			    true);

	if (!f)
		return exchange_fail(x, FAILURE_UNAVAILABLE, NULL);
	xml_time(f, "LastModified", tick_realtime() / (int64_t)NS_PER_S, 0);
	xml_element(f, "ETag", x->put->etag);
	return exchange_xml(x);
}

static enum MHD_Result finish(struct exchange *x)
{
	enum failure f = FAILURE_NONE;

	if (x->operation == OPERATION_COPY_PART)
		f = multipart_add(x, &x->put->file, x->put->md5);
	return f ? exchange_fail(x, f, NULL) : answer(x);
}

static enum failure prepare(struct exchange *x, const char **why)
{
	_cleanup_free_ char *key = NULL;
	struct object_about s;
	enum failure f = put_check_key(x, why);

	if (f == FAILURE_NONE && !put_new(x))
		f = FAILURE_UNAVAILABLE;
	if (f == FAILURE_NONE && x->operation == OPERATION_COPY_PART)
		f = multipart_find(x);
	if (f == FAILURE_NONE)
		f = key_of(x, &key);
	if (f == FAILURE_NONE)
		f = find_source(x, key, &s);
	if (f == FAILURE_NONE)
		f = check_conditions(x, &s);
	if (f == FAILURE_NONE && x->operation == OPERATION_COPY)
		f = choose_headers(x, key, &s, why);
	if (f == FAILURE_NONE)
		f = x->operation == OPERATION_COPY_PART
			    ? read_range(x, &s)
			    : (x->put->end = s.bytes, FAILURE_NONE);
	if (f == FAILURE_NONE && x->put->end - x->put->at > PUT_MOST)
		f = FAILURE_INVALID_REQUEST;
	return f;
}

enum MHD_Result copy_begin(struct exchange *x)
{
	const char *why = NULL;
	enum failure f = prepare(x, &why);

	return f ? exchange_fail(x, f, why)
		 : exchange_change(x, STORAGE_WRITE, work, finish);
}
