/* SPDX-License-Identifier: MIT */
#include "s3/exchange.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/util.h"

/* arbitrary: of a body whose request is refused, read for the sake of a client
 * that does not look for an answer before it has sent all */
enum { MOST_DRAINED = 1 << 20 };

const char *exchange_header(const struct exchange *x, const char *name)
{
	return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND,
					   name);
}

enum MHD_Result exchange_answer(struct exchange *x, unsigned status,
				struct MHD_Response *response)
{
	enum MHD_Result r;
	char id[17];

	if (!response)
		return MHD_NO;
	snprintf(id, sizeof(id), "%016" PRIX64, x->number);
	MHD_add_response_header(response, "x-amz-request-id", id);
	MHD_add_response_header(response, "Server", "gpemu-s3");
	r = MHD_queue_response(x->connection, status, response);
	MHD_destroy_response(response);
	return r;
}

enum MHD_Result exchange_text_with(struct exchange *x, const char *type,
				   char *text, size_t n, const char *name,
				   const char *value)
{
	struct MHD_Response *response =
		text ? MHD_create_response_from_buffer(n, text,
						       MHD_RESPMEM_MUST_FREE)
		     : NULL;

	if (!response) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, "Content-Type", type);
	if (value)
		MHD_add_response_header(response, name, value);
	return exchange_answer(x, MHD_HTTP_OK, response);
}

enum MHD_Result exchange_text(struct exchange *x, const char *type, char *text,
			      size_t n)
{
	return exchange_text_with(x, type, text, n, NULL, NULL);
}

enum MHD_Result exchange_xml(struct exchange *x)
{
	size_t n = 0;
	char *text = xml_end(&x->xml, &n);

	return exchange_text(x, "application/xml", text, n);
}

/* The body of an error, malloc'ed. */
static char *error_text(const struct exchange *x, enum failure f,
			const char *detail, size_t *ret_n)
{
	struct xml xml = { 0 };
	FILE *out = xml_begin(&xml, "Error", false);

	if (!out)
		return NULL;
	xml_element(out, "Code", failure_code(f));
	xml_element(out, "Message", detail ? detail : failure_text(f));
	if (f == FAILURE_NO_SUCH_KEY && x->key)
		xml_element(out, "Key", x->key);
	xml_element(out, "Resource", x->target.path ? x->target.path : x->raw);
	fprintf(out, "<RequestId>%016" PRIX64 "</RequestId>", x->number);
	return xml_end(&xml, ret_n);
}

/* Is the body so short that it is read before an answer? A client that sends it
 * without waiting for "100 Continue" might not see one that comes earlier. */
static bool reads_first(const struct exchange *x)
{
	const char *length = exchange_header(x, "Content-Length");

	return x->receiving && !exchange_header(x, "Expect") && length &&
	       strtoull(length, NULL, 10) <= MOST_DRAINED;
}

static enum MHD_Result fail_later(struct exchange *x)
{
	return exchange_fail(x, x->failure, x->detail);
}

void exchange_count_failure(struct exchange *x, enum failure f)
{
	__atomic_fetch_add(&x->service->failures[f], 1, __ATOMIC_RELAXED);
}

enum MHD_Result exchange_fail(struct exchange *x, enum failure f,
			      const char *detail)
{
	struct MHD_Response *response;
	char *text = NULL;
	size_t n = 0;

	if (reads_first(x)) {
		x->failure = f;
		x->detail = detail ? strdup(detail) : NULL;
		x->step = fail_later;
		return MHD_YES;
	}
	exchange_count_failure(x, f);
	if (f == FAILURE_NO_ANSWER)
		return MHD_NO;
	if (!x->head)
		text = error_text(x, f, detail, &n);
	response = x->head || text ? MHD_create_response_from_buffer(
					     n, text,
					     text ? MHD_RESPMEM_MUST_FREE
						  : MHD_RESPMEM_PERSISTENT)
				   : NULL;
	if (!response) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, "Content-Type", "application/xml");
	return exchange_answer(x, failure_status(f), response);
}

/* --- waiting ------------------------------------------------------------ */

static bool start_wait(struct exchange *x, enum storage_op op, uint32_t node,
		       const char *path, uint64_t bytes, bool works)
{
	const struct wait_for f = { .server = x->service->server,
				    .connection = x->connection,
				    .op = op,
				    .node = node,
				    .path = path,
				    .bytes = bytes,
				    .arrival = x->arrival,
				    .writers = works ? x->service->writers
						     : NULL };

	x->wait = wait_new(&f);
	return x->wait;
}

static enum MHD_Result go_on(struct exchange *x)
{
	enum failure f;
	int error;

	if (!wait_over(x->wait, &error))
		return MHD_YES;
	wait_free(x->wait);
	x->wait = NULL;
	f = error ? failure_of(error) : x->failure;
	if (f)
		return exchange_fail(x, f, NULL);
	x->step = x->after_wait;
	return x->step(x);
}

enum MHD_Result exchange_wait(struct exchange *x, exchange_step *step)
{
	if (!x->wait)
		return exchange_fail(x, FAILURE_UNAVAILABLE, NULL);
	x->step = go_on;
	x->after_wait = step;
	return go_on(x);
}

enum MHD_Result exchange_operate(struct exchange *x, enum storage_op op,
				 uint32_t node, exchange_step *step)
{
	start_wait(x, op, node, NULL, 0, false);
	return exchange_wait(x, step);
}

uint32_t exchange_object(const struct exchange *x)
{
	uint32_t n = x->service->names.tree->n_nodes;
	uint64_t hash = XXH3_64bits(x->key, strlen(x->key));

	return n + (uint32_t)(hash % (UINT32_MAX - n));
}

void exchange_charge(struct exchange *x, enum storage_op op, uint64_t bytes,
		     bool works)
{
	if (*x->key)
		start_wait(x, op, exchange_object(x), x->key, bytes, works);
	else
		start_wait(x, op, TREE_ROOT, NULL, bytes, works);
}

enum MHD_Result exchange_work(struct exchange *x, int (*work)(void *x),
			      exchange_step *step)
{
	if (x->wait)
		wait_work(x->wait, work, x, false);
	return exchange_wait(x, step);
}

enum MHD_Result exchange_change(struct exchange *x, enum storage_op op,
				int (*work)(void *x), exchange_step *step)
{
	exchange_charge(x, op, 0, work);
	/* a copy, or a join of parts */
	if (work && x->wait)
		wait_work(x->wait, work, x, op != STORAGE_REMOVE);
	return exchange_wait(x, step);
}

/* --- headers ------------------------------------------------------------ */

static enum MHD_Result add_header(void *ctx, enum MHD_ValueKind kind,
				  const char *name, const char *value)
{
	struct exchange_headers *h = ctx;
	size_t n = h->request.n_headers;

	(void)kind;
	if (n == EXCHANGE_HEADERS)
		return MHD_NO;
	h->v[n] = (struct sigv4_header){ name, value ? value : "" };
	h->request.n_headers++;
	return MHD_YES;
}

void exchange_headers(const struct exchange *x, struct exchange_headers *h)
{
	h->request = (struct sigv4_request){ .method = x->method,
					     .target = &x->target,
					     .headers = h->v };
	MHD_get_connection_values(x->connection, MHD_HEADER_KIND, add_header,
				  h);
}

void exchange_fini(struct exchange *x)
{
	wait_free(x->wait);
	body_free(x->body);
	stored_put(x->stored);
	target_fini(&x->target);
	sodium_memzero(&x->seed, sizeof(x->seed));
	xml_drop(&x->xml);
	free(x->detail);
	free(x->raw);
}
