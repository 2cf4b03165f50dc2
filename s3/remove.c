/* SPDX-License-Identifier: MIT */
#include "s3/remove.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "s3/proto/elements.h"
#include "s3/proto/xml.h"
#include "s3/put.h"

/* Source: Amazon S3 API reference, DeleteObjects. */
enum { MOST_KEYS = 1000 };

static enum MHD_Result finish(struct exchange *x)
{
	enum failure f = failure_of(x->error);
	int r;

	if (f == FAILURE_NONE) {
		r = objects_remove(x->service->objects, x->key, put_may, x);
		f = r == -ECANCELED ? x->failure : failure_of(r);
	}
	return f ? exchange_fail(x, f, NULL) : put_answer(x, NULL);
}

/* --- many --------------------------------------------------------------- */

struct request {
	char *keys[MOST_KEYS], *next;
	size_t n;
	bool quiet, version;
};

static bool read_element(void *ctx, const char *path, const char *text)
{
	struct request *r = ctx;

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
	if (!r->next || !*r->next || r->n == MOST_KEYS)
		return false;
	r->keys[r->n++] = TAKE_PTR(r->next);
	return true;
}

static void remove_one(struct exchange *x, const char *key, bool quiet, FILE *f)
{
	enum failure failure;
	const char *why;

	x->key = (char *)key; /* as of a request of its own */
	failure = put_check_key(x, &why);
	if (failure == FAILURE_NONE)
		failure = failure_of(
			objects_remove(x->service->objects, key, NULL, NULL));
	if (failure) {
		fputs("<Error>", f);
		xml_element(f, "Key", key);
		xml_element(f, "Code", failure_code(failure));
		xml_element(f, "Message", why ? why : failure_text(failure));
		fputs("</Error>", f);
	} else if (!quiet) {
		fputs("<Deleted>", f);
		xml_element(f, "Key", key);
		fputs("</Deleted>", f);
	}
}

static enum MHD_Result answer(struct exchange *x, const struct request *r)
{
	char *text = NULL, *own = x->key;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return exchange_fail(x, FAILURE_UNAVAILABLE, NULL);
	fputs(XML_START "<DeleteResult" XML_SPACE ">", f);
	for (size_t i = 0; i < r->n; i++)
		remove_one(x, r->keys[i], r->quiet, f);
	fputs("</DeleteResult>", f);
	x->key = own;
	return exchange_xml(x, f, &text, &n);
}

static enum MHD_Result finish_many(struct exchange *x)
{
	struct request *r = calloc(1, sizeof(*r));
	enum failure f = failure_of(x->error);
	enum MHD_Result result;

	if (f == FAILURE_NONE && !r)
		f = FAILURE_UNAVAILABLE;
	if (f == FAILURE_NONE &&
	    (!elements_read(x->receive->text, x->receive->bytes, read_element,
			    r) ||
	     !r->n))
		f = FAILURE_MALFORMED_XML;
	if (f == FAILURE_NONE && r->version)
		f = FAILURE_NOT_IMPLEMENTED;
	result = f ? exchange_fail(x, f, NULL) : answer(x, r);
	for (size_t i = 0; r && i < r->n; i++)
		free(r->keys[i]);
	if (r)
		free(r->next);
	free(r);
	return result;
}

static enum MHD_Result received(struct exchange *x)
{
	enum failure f = receive_end(x->receive);

	return f ? exchange_fail(x, f, NULL)
		 : exchange_operate(x, STORAGE_REMOVE, TREE_ROOT, finish_many);
}

enum MHD_Result remove_begin(struct exchange *x)
{
	const char *why = NULL;
	enum failure f;

	if (x->operation == OPERATION_DELETE) {
		f = put_check_key(x, &why);
		return f ? exchange_fail(x, f, why)
			 : exchange_change(x, STORAGE_REMOVE, NULL, finish);
	}
	f = receive_new(x, false, PUT_MOST_TEXT);
	if (f != FAILURE_NONE)
		return exchange_fail(x, f, NULL);
	x->step = received;
	return x->receiving ? MHD_YES : received(x);
}
