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

/* On a thread of the writers, as is that of many. */
static int work(void *ctx)
{
	struct exchange *x = ctx;
	int r = objects_remove(x->service->objects, x->key, put_may, x);

	x->failure = r == -ECANCELED ? x->failure : failure_of(r);
	return 0;
}

static enum MHD_Result finish(struct exchange *x)
{
	enum failure f = x->error ? failure_of(x->error) : x->failure;

	return f ? exchange_fail(x, f, NULL) : put_answer(x, NULL);
}

/* --- many --------------------------------------------------------------- */

struct request {
	char *keys[MOST_KEYS], *next;
	int errors[MOST_KEYS];
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

static void remove_all(struct exchange *x, struct request *r)
{
	const char *why;

	for (size_t i = 0; i < r->n; i++)
		r->errors[i] = check_key(x, r->keys[i], &why) ? -EPERM : 0;
	objects_remove_all(x->service->objects, r->keys, r->n, r->errors);
}

static void add_answer(struct exchange *x, const struct request *r, size_t i,
		       FILE *f)
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

/* Into the text of the answer. */
static enum failure answer(struct exchange *x, struct request *r)
{
	struct put *p = x->put;
	FILE *f = open_memstream(&p->text, &p->n_text);

	if (!f)
		return FAILURE_UNAVAILABLE;
	remove_all(x, r);
	fputs(XML_START "<DeleteResult" XML_SPACE ">", f);
	for (size_t i = 0; i < r->n; i++)
		add_answer(x, r, i, f);
	fputs("</DeleteResult>", f);
	return fclose(f) == 0 ? FAILURE_NONE : FAILURE_UNAVAILABLE;
}

static int work_many(void *ctx)
{
	struct exchange *x = ctx;
	struct request *r = calloc(1, sizeof(*r));

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

static enum MHD_Result finish_many(struct exchange *x)
{
	enum failure f = x->error ? failure_of(x->error) : x->failure;

	return f ? exchange_fail(x, f, NULL)
		 : exchange_text(x, "application/xml", TAKE_PTR(x->put->text),
				 x->put->n_text);
}

static enum MHD_Result received(struct exchange *x)
{
	enum failure f = receive_end(x->receive);

	return f ? exchange_fail(x, f, NULL)
		 : exchange_change(x, STORAGE_REMOVE, work_many, finish_many);
}

enum MHD_Result remove_begin(struct exchange *x)
{
	const char *why = NULL;
	enum failure f;

	if (x->operation == OPERATION_DELETE) {
		f = put_check_key(x, &why);
		return f ? exchange_fail(x, f, why)
			 : exchange_change(x, STORAGE_REMOVE, work, finish);
	}
	f = put_new(x) ? receive_new(x, false, PUT_MOST_TEXT)
		       : FAILURE_UNAVAILABLE;
	if (f != FAILURE_NONE)
		return exchange_fail(x, f, NULL);
	x->step = received;
	return x->receiving ? MHD_YES : received(x);
}
