/* SPDX-License-Identifier: MIT */
#include "s3/put.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "s3/proto/conditions.h"
#include "s3/proto/metadata.h"

bool put_new(struct exchange *x)
{
	struct put *p = calloc(1, sizeof(*p));

	x->put = p;
	if (!p)
		return false;
	p->objects = x->service->objects;
	p->uploads = &x->service->uploads;
	p->from_fd = p->file.fd = -1;
	return true;
}

void put_free(struct exchange *x)
{
	struct put *p = TAKE_PTR(x->put);

	if (!p)
		return;
	objects_drop(p->objects, &p->file);
	if (p->from_fd >= 0)
		close(p->from_fd);
	stored_put(p->from);
	uploads_drop(p->uploads, p->upload);
	free(p->headers);
	free(p);
}

enum failure put_check_key(const struct exchange *x, const char **ret_why)
{
	*ret_why = NULL;
	if (strlen(x->key) > NAMES_MOST)
		return FAILURE_KEY_TOO_LONG;
	if (names_find(&x->service->names, x->key) == TREE_NONE)
		return FAILURE_NONE;
	*ret_why = "The object is one of the dataset, which is never changed.";
	return FAILURE_ACCESS_DENIED;
}

void put_etag(const unsigned char md5[MD5_DIGEST_SIZE], char ret[STORED_ETAG])
{
	char hex[2 * MD5_DIGEST_SIZE + 1];

	sodium_bin2hex(hex, sizeof(hex), md5, MD5_DIGEST_SIZE);
	snprintf(ret, STORED_ETAG, "\"%s\"", hex);
}

int put_may(void *ctx, const struct stored *now)
{
	struct exchange *x = ctx;
	const struct conditions c = {
		.match = exchange_header(x, "If-Match"),
		.none_match = exchange_header(x, "If-None-Match"),
	};

	x->failure = FAILURE_NONE;
	if (now) {
		const struct conditions_file f = { now->etag, now->mtime_s,
						   now->bytes };

		if (conditions_check(&c, &f))
			x->failure = FAILURE_PRECONDITION;
	} else if (c.match) {
		x->failure = FAILURE_NO_SUCH_KEY;
	}
	return x->failure ? -ECANCELED : 0;
}

enum failure put_store(struct exchange *x, struct staged *file)
{
	struct put *p = x->put;
	struct stored *w = stored_new(x->key);
	int r;

	if (!w)
		return FAILURE_UNAVAILABLE;
	strcpy(w->etag, p->etag);
	w->headers = TAKE_PTR(p->headers);
	r = objects_commit(p->objects, file, w, put_may, x);
	return r == -ECANCELED ? x->failure : failure_of(r);
}

enum MHD_Result put_answer(struct exchange *x, const char *etag)
{
	const struct receive *in = x->receive;
	struct MHD_Response *r = MHD_create_response_from_buffer(
		0, NULL, MHD_RESPMEM_PERSISTENT);

	if (r && etag)
		MHD_add_response_header(r, "ETag", etag);
	if (r && in && in->checksum)
		MHD_add_response_header(r, checksum_header(in->checksum),
					in->checksum_text);
	return exchange_answer(x, etag ? MHD_HTTP_OK : MHD_HTTP_NO_CONTENT, r);
}

/* The checksum of what came as a line of headers, "" if there is none, or the
 * whole list of what is kept; NULL: no memory. */
static char *put_with_checksum(const struct exchange *x, const char *headers)
{
	const struct receive *in = x->receive;

	if (!in || !in->checksum)
		return strdup(headers);
	return util_text("%s%s: %s\n", headers, checksum_header(in->checksum),
			 in->checksum_text);
}

/* --- PutObject ---------------------------------------------------------- */

static enum MHD_Result finish_put(struct exchange *x)
{
	return put_answer(x, x->put->etag);
}

/* On a thread of the writers. */
static int work(void *ctx)
{
	struct exchange *x = ctx;
	struct put *p = x->put;
	_cleanup_free_ char *own = TAKE_PTR(p->headers);

	p->headers = put_with_checksum(x, own);
	put_etag(x->receive->md5, p->etag);
	x->failure = p->headers ? put_store(x, &x->receive->file)
				: FAILURE_UNAVAILABLE;
	return 0;
}

static enum MHD_Result received(struct exchange *x)
{
	return exchange_work(x, work, finish_put);
}

enum MHD_Result put_begin(struct exchange *x)
{
	struct exchange_headers h;
	const char *why;
	enum failure f = put_check_key(x, &why);

	exchange_headers(x, &h);
	if (f == FAILURE_NONE)
		f = put_new(x) ? metadata_read(&h.request, &x->put->headers)
			       : FAILURE_UNAVAILABLE;
	if (f == FAILURE_NONE)
		f = receive_new(x, true, PUT_MOST);
	if (f != FAILURE_NONE)
		return exchange_fail(x, f, why);
	/* the device takes its time while the body comes */
	exchange_charge(x, STORAGE_WRITE, x->receive->bytes, true);
	return receive_then(x, received);
}
