/* SPDX-License-Identifier: MIT */
#include "s3/dispatch.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/tick.h"
#include "common/util.h"
#include "s3/bucket.h"
#include "s3/copy.h"
#include "s3/multipart.h"
#include "s3/object.h"
#include "s3/proto/host.h"
#include "s3/put.h"
#include "s3/remove.h"

#define OBJECT_ARGS                                            \
	"response-cache-control,response-content-disposition," \
	"response-content-encoding,response-content-language," \
	"response-content-type,response-expires,"

/* --- who asks ----------------------------------------------------------- */

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

/* --- what it asks ------------------------------------------------------- */

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

static enum MHD_Result start(struct exchange *x)
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
	return admit(x) ? start(x) : exchange_fail(x, FAILURE_SLOW_DOWN, NULL);
}

static enum MHD_Result begin(struct exchange *x)
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
	return begin(x);
}
