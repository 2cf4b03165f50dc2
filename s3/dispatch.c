/* SPDX-License-Identifier: MIT */
#include "s3/dispatch.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/percent.h"
#include "common/tick.h"
#include "common/util.h"
#include "s3/exchange.h"
#include "s3/multipart.h"
#include "s3/object.h"
#include "s3/proto/conditions.h"
#include "s3/proto/elements.h"
#include "s3/proto/host.h"
#include "s3/proto/metadata.h"
#include "s3/put.h"

/* --- buckets -------------------------------------------------------------- */

/* Answers about the bucket: ListBuckets, HeadBucket, GetBucketLocation,
 * ListObjects and ListObjectsV2. */

/* Source: Amazon S3 API reference, ListObjectsV2, "max-keys". */
enum { MOST_KEYS = 1000 };

/* --- the bucket ----------------------------------------------------------- */

static enum MHD_Result about(struct exchange *x)
{
	const struct service *s = x->service;
	const struct tree_node *root = &s->names.tree->nodes[TREE_ROOT];
	FILE *f;

	/* HeadBucket, and CreateBucket of the one there is: nothing */
	if (x->operation != OPERATION_LOCATION &&
	    x->operation != OPERATION_LIST_BUCKETS)
		return exchange_text(x, "application/xml", strdup(""), 0);
	f = xml_begin(&x->xml,
		      x->operation == OPERATION_LOCATION
			      ? "LocationConstraint"
			      : "ListAllMyBucketsResult",
		      true);
	if (!f)
		return exchange_fail(x, FAILURE_UNAVAILABLE, NULL);
	if (x->operation == OPERATION_LOCATION) {
		/* the first region is the one without a name */
		xml_text(f, strcmp(s->region, "us-east-1") ? s->region : "");
	} else {
		fputs("<Owner><ID>gpemu</ID></Owner><Buckets><Bucket>", f);
		xml_element(f, "Name", s->bucket);
		xml_time(f, "CreationDate", root->mtime_s, root->mtime_ns);
		fputs("</Bucket></Buckets>", f);
	}
	return exchange_xml(x);
}

/* --- listings ------------------------------------------------------------- */

struct listing {
	struct exchange *x;
	FILE *keys, *prefixes;
	char *text, *prefix_text;
	size_t n, n_prefix, count;
	bool encoded, owner;
};

static void add_found(void *ctx, const char *key, uint32_t node,
		      const struct stored *o)
{
	struct listing *l = ctx;
	const struct tree *t = l->x->service->names.tree;
	struct object_about a;

	l->count++;
	if (node == TREE_NONE && !o) {
		fputs("<CommonPrefixes>", l->prefixes);
		xml_key(l->prefixes, "Prefix", key, l->encoded);
		fputs("</CommonPrefixes>", l->prefixes);
		return;
	}
	object_about(t, key, node, o, &a);
	fputs("<Contents>", l->keys);
	xml_key(l->keys, "Key", key, l->encoded);
	xml_time(l->keys, "LastModified", a.mtime_s, a.mtime_ns);
	xml_element(l->keys, "ETag", a.etag);
	fprintf(l->keys, "<Size>%" PRIu64 "</Size>", a.bytes);
	if (l->owner)
		fputs("<Owner><ID>gpemu</ID></Owner>", l->keys);
	fputs("<StorageClass>STANDARD</StorageClass></Contents>", l->keys);
}

/* The key in a token of ours; false: it is none. */
static bool read_token(const char *token, char ret[NAMES_MOST + 1])
{
	size_t n;

	if (sodium_base642bin((unsigned char *)ret, NAMES_MOST, token,
			      strlen(token), NULL, &n, NULL,
			      sodium_base64_VARIANT_URLSAFE_NO_PADDING) < 0 ||
	    !n || memchr(ret, 0, n))
		return false;
	ret[n] = 0;
	return true;
}

/* The query of a listing. NULL: it is right; else what is not. */
static const char *read_query(const struct exchange *x, bool v2,
			      struct names_query *q, char token[NAMES_MOST + 1])
{
	const char *given = v2 ? target_arg(&x->target, "continuation-token")
			       : NULL;
	const char *type = target_arg_or(&x->target, "list-type", "2");
	uint64_t most;

	q->prefix = target_arg_or(&x->target, "prefix", "");
	q->delimiter = target_arg_or(&x->target, "delimiter", "");
	q->after = target_arg_or(&x->target, v2 ? "start-after" : "marker", "");
	if (strcmp(type, "2"))
		return "list-type is 2, or not given.";
	if (strcmp(target_arg_or(&x->target, "encoding-type", "url"), "url"))
		return "encoding-type is url, or not given.";
	if (!target_number(&x->target, "max-keys", INT32_MAX, MOST_KEYS, &most))
		return "max-keys is a number from 0 to 2147483647.";
	q->most = MIN(most, MOST_KEYS);
	if (given && !*given) /* as if there were none */
		given = NULL;
	if (given && !read_token(given, token))
		return "The continuation token is not one of this server.";
	if (given)
		q->after = token;
	return NULL;
}

static void add_next(FILE *f, bool v2, const char *last, bool encoded)
{
	char token[sodium_base64_ENCODED_LEN(
		NAMES_MOST, sodium_base64_VARIANT_URLSAFE_NO_PADDING)];

	if (!v2) {
		xml_key(f, "NextMarker", last, encoded);
		return;
	}
	sodium_bin2base64(token, sizeof(token), (const unsigned char *)last,
			  strlen(last),
			  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	xml_element(f, "NextContinuationToken", token);
}

static void add_result(FILE *f, const struct listing *l, bool v2,
		       const struct names_query *q, bool more, const char *last)
{
	const struct exchange *x = l->x;
	const char *token = target_arg(&x->target, "continuation-token");
	const char *start = target_arg(&x->target, "start-after");

	xml_element(f, "Name", x->service->bucket);
	xml_key(f, "Prefix", q->prefix, l->encoded);
	if (*q->delimiter)
		xml_key(f, "Delimiter", q->delimiter, l->encoded);
	fprintf(f, "<MaxKeys>%zu</MaxKeys>", q->most);
	if (l->encoded)
		xml_element(f, "EncodingType", "url");
	if (!v2)
		xml_key(f, "Marker", q->after, l->encoded);
	if (v2 && token)
		xml_element(f, "ContinuationToken", token);
	if (v2 && start)
		xml_key(f, "StartAfter", start, l->encoded);
	if (v2)
		fprintf(f, "<KeyCount>%zu</KeyCount>", l->count);
	xml_element(f, "IsTruncated", more ? "true" : "false");
	if (more)
		add_next(f, v2, last, l->encoded);
	fwrite(l->text, 1, l->n, f);
	fwrite(l->prefix_text, 1, l->n_prefix, f);
}

static enum MHD_Result list(struct exchange *x)
{
	bool v2 = target_arg(&x->target, "list-type") != NULL, more;
	char last[NAMES_MOST + 1], token[NAMES_MOST + 1];
	struct listing l = {
		.x = x,
		.encoded = target_arg(&x->target, "encoding-type") != NULL,
		.owner = !v2 ||
			 !strcmp(target_arg_or(&x->target, "fetch-owner", ""),
				 "true"),
	};
	struct names_query q = { .found = add_found, .ctx = &l };
	const char *wrong = read_query(x, v2, &q, token);
	const struct index none = { 0 };
	enum MHD_Result r = MHD_NO;
	FILE *f;

	if (wrong)
		return exchange_fail(x, FAILURE_INVALID_ARGUMENT, wrong);
	l.keys = open_memstream(&l.text, &l.n);
	l.prefixes = open_memstream(&l.prefix_text, &l.n_prefix);
	f = xml_begin(&x->xml, "ListBucketResult", true);
	if (l.keys && l.prefixes && f) {
		more = x->service->objects
			       ? objects_list(x->service->objects, &q, last)
			       : names_list(&x->service->names, &none, &q,
					    last);
		if (fflush(l.keys) == 0 && fflush(l.prefixes) == 0)
			add_result(f, &l, v2, &q, more, last);
		r = exchange_xml(x);
	}
	if (l.keys)
		fclose(l.keys);
	if (l.prefixes)
		fclose(l.prefixes);
	free(l.text);
	free(l.prefix_text);
	return r;
}

/* The deepest folder that the prefix names. */
static uint32_t folder_of(const struct exchange *x)
{
	const struct tree *t = x->service->names.tree;
	_cleanup_free_ char *copy =
		strdup(target_arg_or(&x->target, "prefix", ""));
	char *slash = copy ? strrchr(copy, '/') : NULL;
	uint32_t node = TREE_NONE;

	if (slash) {
		*slash = 0;
		node = tree_find(t, copy);
	}
	return node == TREE_NONE ? TREE_ROOT : node;
}

/* By x->operation. */
static enum MHD_Result bucket_begin(struct exchange *x)
{
	switch (x->operation) {
	case OPERATION_LIST:
		return exchange_operate(x, STORAGE_READDIR, folder_of(x), list);
	case OPERATION_LIST_BUCKETS:
		return exchange_operate(x, STORAGE_READDIR, TREE_ROOT, about);
	default: return exchange_operate(x, STORAGE_LOOKUP, TREE_ROOT, about);
	}
}

/* --- deletes -------------------------------------------------------------- */

/* DeleteObject and DeleteObjects. */

/* Source: Amazon S3 API reference, DeleteObjects. */
enum { MOST_DELETED = 1000 };

/* On a thread of the writers, as is that of many. */
static int remove_one(void *ctx)
{
	struct exchange *x = ctx;
	int r = objects_remove(x->service->objects, x->key, put_may, x);

	x->failure = r == -ECANCELED ? x->failure : failure_of(r);
	return 0;
}

static enum MHD_Result finish_one(struct exchange *x)
{
	return put_answer(x, NULL);
}

/* --- many ----------------------------------------------------------------- */

struct delete_request {
	char *keys[MOST_DELETED], *next;
	int errors[MOST_DELETED];
	size_t n;
	bool quiet, version;
};

static bool read_element(void *ctx, const char *path, const char *text)
{
	struct delete_request *r = ctx;

	if (!strcmp(path, "Delete/Object/Key")) {
		free(r->next);
		r->next = strdup(text);
		return r->next;
	}
	if (!strcmp(path, "Delete/Object/VersionId"))
		r->version = strcmp(text, "null") != 0;
	else if (!strcmp(path, "Delete/Quiet"))
		r->quiet = !strcmp(text, "true");
	if (strcmp(path, "Delete/Object") != 0)
		return !strncmp(path, "Delete", 6);
	if (!r->next || !*r->next || r->n == MOST_DELETED)
		return false;
	r->keys[r->n++] = TAKE_PTR(r->next);
	return true;
}

/* May clients remove it? As of a request of its own. */
static enum failure check_key(struct exchange *x, char *key, const char **why)
{
	char *own = x->key;
	enum failure f;

	x->key = key;
	f = put_check_key(x, why);
	x->key = own;
	return f;
}

static void remove_all(struct exchange *x, struct delete_request *r)
{
	const char *why;

	for (size_t i = 0; i < r->n; i++)
		r->errors[i] = check_key(x, r->keys[i], &why) ? -EPERM : 0;
	objects_remove_all(x->service->objects, r->keys, r->n, r->errors);
}

static void add_answer(struct exchange *x, const struct delete_request *r,
		       size_t i, FILE *f)
{
	const char *why;
	enum failure failure = check_key(x, r->keys[i], &why);

	if (failure == FAILURE_NONE)
		failure = failure_of(r->errors[i]);
	if (failure) {
		fputs("<Error>", f);
		xml_element(f, "Key", r->keys[i]);
		xml_element(f, "Code", failure_code(failure));
		xml_element(f, "Message", why ? why : failure_text(failure));
		fputs("</Error>", f);
	} else if (!r->quiet) {
		fputs("<Deleted>", f);
		xml_element(f, "Key", r->keys[i]);
		fputs("</Deleted>", f);
	}
}

/* Into x->xml. */
static enum failure answer(struct exchange *x, struct delete_request *r)
{
	FILE *f = xml_begin(&x->xml, "DeleteResult", true);

	if (!f)
		return FAILURE_UNAVAILABLE;
	remove_all(x, r);
	for (size_t i = 0; i < r->n; i++)
		add_answer(x, r, i, f);
	return FAILURE_NONE;
}

static int work_many(void *ctx)
{
	struct exchange *x = ctx;
	struct delete_request *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	if (!elements_read(x->receive->text, x->receive->bytes, read_element,
			   r) ||
	    !r->n)
		x->failure = FAILURE_MALFORMED_XML;
	else if (r->version)
		x->failure = FAILURE_NOT_IMPLEMENTED;
	else
		x->failure = answer(x, r);
	for (size_t i = 0; i < r->n; i++)
		free(r->keys[i]);
	free(r->next);
	free(r);
	return 0;
}

static enum MHD_Result delete_received(struct exchange *x)
{
	return exchange_change(x, STORAGE_REMOVE, work_many, exchange_xml);
}

/* By x->operation. */
static enum MHD_Result remove_begin(struct exchange *x)
{
	const char *why = NULL;
	enum failure f;

	if (x->operation == OPERATION_DELETE) {
		f = put_check_key(x, &why);
		return f ? exchange_fail(x, f, why)
			 : exchange_change(x, STORAGE_REMOVE, remove_one,
					   finish_one);
	}
	f = put_new(x) ? receive_new(x, false, PUT_MOST_TEXT)
		       : FAILURE_UNAVAILABLE;
	if (f != FAILURE_NONE)
		return exchange_fail(x, f, NULL);
	return receive_then(x, delete_received);
}

/*
 * --- copies ---------------------------------------------------------------
 *
 * CopyObject and UploadPartCopy. The device is charged a write without bytes: a
 * copy does not pass the link to the client.
 */

enum { PIECE = 1 << 20 }; /* arbitrary: fits a cache */

/* --- their source --------------------------------------------------------- */

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

/* --- the copy itself ------------------------------------------------------ */

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
static int copy_bytes(void *ctx)
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

static enum MHD_Result answer_copied(struct exchange *x)
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

static enum MHD_Result finish_copy(struct exchange *x)
{
	enum failure f = FAILURE_NONE;

	if (x->operation == OPERATION_COPY_PART)
		f = multipart_add(x, &x->put->file, x->put->md5);
	return f ? exchange_fail(x, f, NULL) : answer_copied(x);
}

static enum failure prepare_copy(struct exchange *x, const char **why)
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

static enum MHD_Result copy_begin(struct exchange *x)
{
	const char *why = NULL;
	enum failure f = prepare_copy(x, &why);

	return f ? exchange_fail(x, f, why)
		 : exchange_change(x, STORAGE_WRITE, copy_bytes, finish_copy);
}

#define OBJECT_ARGS                                            \
	"response-cache-control,response-content-disposition," \
	"response-content-encoding,response-content-language," \
	"response-content-type,response-expires,"

/* --- who asks ------------------------------------------------------------- */

/* Is it one of --host, whatever the bucket is? */
static bool is_named(const struct service *s, const char *host)
{
	char *const *names = s->hosts->items;

	for (size_t i = 0; i < s->hosts->n; i++)
		if (strcmp(names[i], "*") != 0 && host_is(host, names[i]))
			return true;
	return false;
}

/* Is the bucket in the name of the host, "bucket.localhost:9000"? */
static bool in_host(const struct exchange *x)
{
	const char *host = exchange_header(x, "Host");
	size_t n = strlen(x->service->bucket);

	/* "127.0.0.1" is no bucket "127" */
	return host && host[strspn(host, "0123456789.:")] &&
	       !strncasecmp(host, x->service->bucket, n) && host[n] == '.' &&
	       !is_named(x->service, host);
}

/* Is it a name of this server, with or without the bucket? */
static bool is_ours(const struct exchange *x, const char *host)
{
	const struct service *s = x->service;
	char *const *names = s->hosts->items;

	if (host_is_local(host))
		return true;
	if (in_host(x))
		host += strlen(s->bucket) + 1;
	if (host_is(host, s->listen))
		return true;
	for (size_t i = 0; i < s->hosts->n; i++)
		if (!strcmp(names[i], "*"))
			return true;
	return is_named(s, host);
}

/* Without a signature? */
static enum failure allow(struct exchange *x, struct err *err)
{
	const char *host = exchange_header(x, "Host");

	/* of a browser, in which a page of anybody may run */
	if (exchange_header(x, "Origin"))
		return FAILURE_ACCESS_DENIED;
	if (!host || is_ours(x, host))
		return FAILURE_NONE;
	err_set(err, -EACCES,
		"The server does not know the name in Host; see --host.");
	return FAILURE_ACCESS_DENIED;
}

static enum failure authenticate(struct exchange *x, struct err *err)
{
	const struct service *s = x->service;
	struct exchange_headers h;

	exchange_headers(x, &h);
	if (h.request.n_headers == EXCHANGE_HEADERS) {
		err_set(err, -E2BIG, "There are too many headers.");
		return FAILURE_INVALID_REQUEST;
	}
	if (s->anonymous && (!s->keys->n || !sigv4_is_signed(&h.request)))
		return allow(x, err);
	x->is_signed = true;
	return sigv4_check(&h.request, s->keys, s->region,
			   tick_realtime() / (int64_t)NS_PER_S, &x->seed, err);
}

/* --- what it asks --------------------------------------------------------- */

/* Which request is which operation, and its arguments. The first that fits. */
static const struct route {
	const char *method;
	bool object;	  /* of an object; else of the bucket */
	const char *arg;  /* it must have this one; NULL: any */
	const char *copy; /* "": it must have a source; NULL: it must not */
	enum operation operation;
	const char *args; /* those it may have, with a comma after each */
} routes[] = {
	{ "HEAD", true, NULL, NULL, OPERATION_HEAD, OBJECT_ARGS },
	{ "GET", true, "uploadId", NULL, OPERATION_LIST_PARTS,
	  "uploadId,max-parts,part-number-marker," },
	{ "GET", true, NULL, NULL, OPERATION_GET, OBJECT_ARGS },
	{ "HEAD", false, NULL, NULL, OPERATION_HEAD_BUCKET, "" },
	{ "GET", false, "location", NULL, OPERATION_LOCATION, "location," },
	{ "GET", false, "uploads", NULL, OPERATION_LIST_UPLOADS,
	  "uploads,prefix,key-marker,upload-id-marker,max-uploads,"
	  "encoding-type," },
	{ "GET", false, NULL, NULL, OPERATION_LIST,
	  "list-type,prefix,delimiter,max-keys,start-after,"
	  "continuation-token,marker,encoding-type,fetch-owner," },
	{ "PUT", false, NULL, NULL, OPERATION_CREATE_BUCKET, "" },
	{ "PUT", true, "partNumber", "", OPERATION_COPY_PART,
	  "partNumber,uploadId," },
	{ "PUT", true, "partNumber", NULL, OPERATION_UPLOAD_PART,
	  "partNumber,uploadId," },
	{ "PUT", true, NULL, "", OPERATION_COPY, "" },
	{ "PUT", true, NULL, NULL, OPERATION_PUT, "" },
	{ "POST", true, "uploads", NULL, OPERATION_CREATE_UPLOAD, "uploads," },
	{ "POST", true, "uploadId", NULL, OPERATION_COMPLETE, "uploadId," },
	{ "POST", false, "delete", NULL, OPERATION_DELETE_MANY, "delete," },
	{ "DELETE", true, "uploadId", NULL, OPERATION_ABORT, "uploadId," },
	{ "DELETE", true, NULL, NULL, OPERATION_DELETE, "" },
};

static const struct route *find_route(const struct exchange *x)
{
	bool copy = exchange_header(x, "x-amz-copy-source");

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		const struct route *r = &routes[i];

		if (!strcmp(r->method, x->method) &&
		    r->object == (*x->key != 0) &&
		    (!r->arg || target_arg(&x->target, r->arg)) &&
		    (strcmp(x->method, "PUT") != 0 ||
		     copy == (r->copy != NULL)))
			return r;
	}
	return NULL;
}

/* An argument that the operation does not know, or NULL: an answer that
 * ignores "?acl" or "?versionId=x" would be a wrong one. */
static const char *unknown_arg(const struct exchange *x, const char *args)
{
	for (size_t i = 0; i < x->target.n_args; i++) {
		const char *name = x->target.args[i].name, *at;
		size_t n = strlen(name);

		if (!strncasecmp(name, "X-Amz-", 6) || !strcmp(name, "x-id"))
			continue;
		for (at = args; *at; at += strcspn(at, ",") + 1)
			if (strcspn(at, ",") == n && !strncmp(at, name, n))
				break;
		if (!*at)
			return name;
	}
	return NULL;
}

/* The rest of the path behind the bucket; NULL: it is another bucket. */
static char *behind_bucket(const struct exchange *x)
{
	char *path = x->target.path + 1;
	size_t n = strlen(x->service->bucket);

	if (in_host(x))
		return path;
	if (strncmp(path, x->service->bucket, n) != 0 ||
	    (path[n] && path[n] != '/'))
		return NULL;
	return path[n] ? path + n + 1 : path + n;
}

static enum MHD_Result send_control(struct exchange *x, const char *name)
{
	enum ctl_file file = ctl_lookup(name);
	char *text, *copy;
	size_t n;
	int r;

	if (file == CTL_N_FILES || ctl_is_long(file) || ctl_writable(file))
		return exchange_fail(x, FAILURE_NO_SUCH_KEY, NULL);
	r = ctl_read(x->service->ctl, file, &text, &n);
	if (r < 0)
		return exchange_fail(x, failure_of(r), NULL);
	copy = malloc(n + 1);
	if (copy)
		memcpy(copy, text, n);
	ctl_free(x->service->ctl, text, n);
	return exchange_text(x,
			     file == CTL_STATS ? "application/json"
					       : "text/plain; charset=utf-8",
			     copy, n);
}

/* May it pass, at this rate? */
static bool admit(const struct exchange *x)
{
	enum throttle_kind kind = THROTTLE_WRITE;

	if (x->operation == OPERATION_GET || x->operation == OPERATION_HEAD)
		kind = THROTTLE_READ;
	else if (!*x->key || x->operation == OPERATION_LIST_PARTS)
		return true; /* of no prefix */
	return throttle_admit(&x->service->throttle, kind, x->key, x->arrival);
}

static enum MHD_Result start_operation(struct exchange *x)
{
	switch (x->operation) {
	case OPERATION_GET:
	case OPERATION_HEAD: return object_begin(x);
	case OPERATION_PUT: return put_begin(x);
	case OPERATION_COPY:
	case OPERATION_COPY_PART: return copy_begin(x);
	case OPERATION_DELETE:
	case OPERATION_DELETE_MANY: return remove_begin(x);
	case OPERATION_CREATE_UPLOAD:
	case OPERATION_UPLOAD_PART:
	case OPERATION_COMPLETE:
	case OPERATION_ABORT:
	case OPERATION_LIST_PARTS:
	case OPERATION_LIST_UPLOADS: return multipart_begin(x);
	default: return bucket_begin(x);
	}
}

static void count(struct exchange *x)
{
	__atomic_fetch_add(&x->service->operations[x->operation], 1,
			   __ATOMIC_RELAXED);
}

static enum MHD_Result route(struct exchange *x)
{
	const struct route *r = find_route(x);
	bool reads = !strcmp(x->method, "GET") || x->head;

	if (!x->service->objects && (!reads || x->receiving))
		return exchange_fail(x, FAILURE_METHOD, NULL);
	if (!r || (reads && x->receiving))
		return exchange_fail(
			x, reads ? FAILURE_METHOD : FAILURE_NOT_IMPLEMENTED,
			"This is not implemented.");
	x->operation = r->operation;
	if (unknown_arg(x, r->args))
		return exchange_fail(x, FAILURE_NOT_IMPLEMENTED, NULL);
	count(x);
	return admit(x) ? start_operation(x)
			: exchange_fail(x, FAILURE_SLOW_DOWN, NULL);
}

static enum MHD_Result begin_request(struct exchange *x)
{
	static const char control[] = "/" CTL_DIR_NAME "/";
	bool host = in_host(x), reads = !strcmp(x->method, "GET") || x->head;

	if (!host && reads && !x->receiving &&
	    !strncmp(x->target.path, control, sizeof(control) - 1)) {
		x->operation = OPERATION_CONTROL;
		count(x);
		return send_control(x, x->target.path + sizeof(control) - 1);
	}
	if (!host && reads && !x->receiving && !strcmp(x->target.path, "/")) {
		x->operation = OPERATION_LIST_BUCKETS;
		if (unknown_arg(x, ""))
			return exchange_fail(x, FAILURE_NOT_IMPLEMENTED, NULL);
		count(x);
		return bucket_begin(x);
	}
	x->key = behind_bucket(x);
	if (x->key)
		return route(x);
	return !reads && !strchr(x->target.path + 1, '/')
		       ? exchange_fail(x, FAILURE_BUCKET_LIMIT, NULL)
		       : exchange_fail(x, FAILURE_NO_SUCH_BUCKET, NULL);
}

enum MHD_Result dispatch(struct exchange *x)
{
	struct err err = { 0 };
	enum failure f;

	x->head = !strcmp(x->method, "HEAD");
	if (target_parse(x->raw, &x->target) < 0)
		return exchange_fail(x, FAILURE_INVALID_URI, NULL);
	f = authenticate(x, &err);
	if (f)
		return exchange_fail(x, f, *err.text ? err.text : NULL);
	return begin_request(x);
}
