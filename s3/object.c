/* SPDX-License-Identifier: MIT */
#include "s3/object.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"
#include "s3/proto/conditions.h"
#include "s3/proto/metadata.h"

void object_about(const struct tree *t, const char *key, uint32_t node,
		  const struct stored *o, struct object_about *ret)
{
	if (o) {
		*ret = (struct object_about){ .mtime_s = o->mtime_s,
					      .mtime_ns = o->mtime_ns,
					      .bytes = o->bytes,
					      .headers = o->headers ? o->headers
								    : "" };
		strcpy(ret->etag, o->etag);
	} else {
		const struct tree_node *n = &t->nodes[tree_file(t, node)];

		*ret = (struct object_about){ .mtime_s = n->mtime_s,
					      .mtime_ns = n->mtime_ns,
					      .bytes = n->bytes,
					      .headers = "" };
		stored_make_etag(key, n->bytes, n->mtime_s, n->mtime_ns,
				 ret->etag);
	}
}

static void about(const struct exchange *x, struct object_about *ret)
{
	object_about(x->service->names.tree, x->key, x->node, x->stored, ret);
}

/* The argument of a request, such as response-content-type, that stands for a
 * header of its answer; NULL: there is none. */
static const char *instead_of(const struct exchange *x, const char *name)
{
	char arg[64] = "response-";
	size_t n = strlen(arg);

	for (; *name && n < sizeof(arg) - 1; name++)
		arg[n++] = (char)tolower((unsigned char)*name);
	arg[n] = 0;
	return target_arg(&x->target, arg);
}

/* Headers that were put with the object, or that the request wants instead. */
static void add_own_headers(const struct exchange *x, struct MHD_Response *r,
			    const char *at)
{
	static const char *const names[] = {
		"Cache-Control",    "Content-Disposition", "Content-Encoding",
		"Content-Language", "Content-Type",	   "Expires",
	};
	const char *mode = exchange_header(x, "x-amz-checksum-mode");
	char name[METADATA_LINE], value[METADATA_LINE];

	/* a checksum is one of all bytes */
	while (metadata_next(&at, name, value))
		if (!instead_of(x, name) &&
		    (strncasecmp(name, "x-amz-checksum-", 15) != 0 ||
		     (mode && !strcasecmp(mode, "ENABLED") && !x->part)))
			MHD_add_response_header(r, name, value);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (instead_of(x, names[i]))
			MHD_add_response_header(r, names[i],
						instead_of(x, names[i]));
	/* the default of S3 */
	if (!MHD_get_response_header(r, "Content-Type"))
		MHD_add_response_header(r, "Content-Type",
					"binary/octet-stream");
}

static void add_identity(struct MHD_Response *r, const struct object_about *a)
{
	char text[CONDITIONS_DATE];

	MHD_add_response_header(r, "ETag", a->etag);
	conditions_date(a->mtime_s, text);
	MHD_add_response_header(r, "Last-Modified", text);
}

static void add_headers(const struct exchange *x, struct MHD_Response *r)
{
	struct object_about a;
	char text[80];

	about(x, &a);
	add_identity(r, &a);
	MHD_add_response_header(r, "Accept-Ranges", "bytes");
	add_own_headers(x, r, a.headers);
	if (!x->part)
		return;
	snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
		 x->from, x->end - 1, a.bytes);
	MHD_add_response_header(r, "Content-Range", text);
}

static ssize_t no_bytes(void *ctx, uint64_t at, char *buf, size_t most)
{
	(void)ctx;
	(void)at;
	(void)buf;
	(void)most;
	return MHD_CONTENT_READER_END_WITH_ERROR;
}

static enum MHD_Result reply(struct exchange *x, struct MHD_Response *r)
{
	if (r)
		add_headers(x, r);
	return exchange_answer(
		x, x->part ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, r);
}

/* RFC 9110, section 15.4.5: it says what the client has. */
static enum MHD_Result send_not_modified(struct exchange *x)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		0, NULL, MHD_RESPMEM_PERSISTENT);
	struct object_about a;

	about(x, &a);
	if (r)
		add_identity(r, &a);
	exchange_count_failure(x, FAILURE_NOT_MODIFIED);
	return exchange_answer(x, MHD_HTTP_NOT_MODIFIED, r);
}

/* What has no body, once the device has answered. */
static enum MHD_Result finish_object(struct exchange *x)
{
	struct MHD_Response *r;

	/* of a HEAD the length alone is sent */
	r = x->end > x->from
		    ? MHD_create_response_from_callback(x->end - x->from, 1,
							no_bytes, NULL, NULL)
		    : MHD_create_response_from_buffer(0, NULL,
						      MHD_RESPMEM_PERSISTENT);
	return reply(x, r);
}

static enum MHD_Result send_body(struct exchange *x)
{
	struct MHD_Response *r;
	int error;

	if (!body_ready(x->body, &error))
		return MHD_YES;
	if (error)
		return exchange_fail(x, failure_of(error), NULL);
	r = body_response(x->body);
	if (r)
		x->body = NULL; /* the response's */
	return reply(x, r);
}

static enum failure examine(struct exchange *x)
{
	const struct conditions c = {
		.match = exchange_header(x, "If-Match"),
		.none_match = exchange_header(x, "If-None-Match"),
		.modified_since = exchange_header(x, "If-Modified-Since"),
		.unmodified_since = exchange_header(x, "If-Unmodified-Since"),
		.range = exchange_header(x, "Range"),
		.if_range = exchange_header(x, "If-Range"),
	};
	struct conditions_file f;
	struct object_about a;
	enum failure failure;

	about(x, &a);
	f = (struct conditions_file){ a.etag, a.mtime_s, a.bytes };
	failure = conditions_check(&c, &f);
	return failure ? failure
		       : conditions_range(&c, &f, &x->from, &x->end, &x->part);
}

static struct body *new_body(struct exchange *x, int fd)
{
	const struct service *s = x->service;
	struct body_of of = { .server = s->server,
			      .connection = x->connection,
			      .from = x->from,
			      .end = x->end,
			      .arrival = x->arrival,
			      .fd = fd };

	if (x->stored) {
		of.path = x->key;
		of.node = exchange_object(x);
	} else {
		of.node = tree_file(s->names.tree, x->node);
	}
	return body_new(&of);
}

/* What has no bytes, or no answer but an error, costs a request, too. */
static enum MHD_Result end_early(struct exchange *x, enum failure f)
{
	exchange_step *step = f == FAILURE_NOT_MODIFIED ? send_not_modified
							: finish_object;
	enum storage_op op = x->operation == OPERATION_GET ? STORAGE_READ
							   : STORAGE_LOOKUP;

	x->failure = f == FAILURE_NOT_MODIFIED ? FAILURE_NONE : f;
	if (x->stored)
		return exchange_change(x, op, NULL, step);
	return exchange_operate(
		x, op, x->node == TREE_NONE ? TREE_ROOT : x->node, step);
}

enum MHD_Result object_begin(struct exchange *x)
{
	_cleanup_close_ int fd = -1;
	bool get = x->operation == OPERATION_GET;
	enum failure f;

	x->node = names_find(&x->service->names, x->key);
	if (x->node == TREE_NONE)
		x->stored = objects_find(x->service->objects, x->key,
					 get ? &fd : NULL);
	if (get && x->stored && fd < 0)
		return exchange_fail(x, failure_of(fd), NULL);
	f = x->node == TREE_NONE && !x->stored ? FAILURE_NO_SUCH_KEY
					       : examine(x);
	if (!get || f || x->from == x->end)
		return end_early(x, f);
	x->body = new_body(x, TAKE_FD(fd));
	if (!x->body)
		return exchange_fail(x, FAILURE_UNAVAILABLE, NULL);
	x->step = send_body;
	return send_body(x);
}
