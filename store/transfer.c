/* SPDX-License-Identifier: MIT */
#include "store/transfer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/percent.h"
#include "common/util.h"
#include "common/version.h"

/* arbitrary: a store that is slow to accept, and one that stalls, is tried
 * again */
#define CONNECT_MS 5000L
#define STALL_S 30L

int transfer_init(struct transfer *t, const struct account *a)
{
	static const char payload[] = "x-amz-content-sha256: UNSIGNED-PAYLOAD";
	_cleanup_free_ char *token = NULL;
	struct curl_slist *more;

	*t = (struct transfer){ .easy = curl_easy_init() };
	if (!t->easy)
		return -ENOMEM;
	if (!a->secret)
		return 0;
	t->headers = curl_slist_append(NULL, payload);
	if (!t->headers || !a->token)
		return t->headers ? 0 : -ENOMEM;
	if (asprintf(&token, "x-amz-security-token: %s", a->token) < 0)
		return -ENOMEM;
	more = curl_slist_append(t->headers, token);
	return more ? 0 : -ENOMEM;
}

void transfer_fini(struct transfer *t)
{
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
}

/* --- the answer --------------------------------------------------------- */

static bool is_page(const struct transfer *t)
{
	return !t->read->object.key;
}

static long status_of(const struct transfer *t)
{
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

/* The value of a header; NULL: it is another. */
static const char *value_of(const char *line, const char *name)
{
	size_t n = strlen(name);

	return strncasecmp(line, name, n) ? NULL
					  : line + n + strspn(line + n, " \t");
}

static void take_header(struct transfer *t, char *line)
{
	const char *value;

	line[strcspn(line, "\r\n")] = 0;
	if (!strncmp(line, "HTTP/", 5)) { /* behind 100 Continue, again */
		t->tag = 0;
		t->has_range = false;
	} else if ((value = value_of(line, "etag:"))) {
		t->tag = answer_tag(value, strlen(value));
	} else if ((value = value_of(line, "content-range:"))) {
		t->has_range = answer_range(value, &t->from, &t->to, &t->total);
	} else if ((value = value_of(line, "x-amz-bucket-region:"))) {
		snprintf(t->region, sizeof(t->region), "%s", value);
	}
}

static size_t on_header(char *bytes, size_t one, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	char line[512];

	(void)one;
	t->n_headers += n;
	if (t->n_headers > TRANSFER_HEADERS) {
		t->error = -EPROTO;
		return 0;
	}
	/* longer ones are none of ours */
	if (n < sizeof(line)) {
		memcpy(line, bytes, n);
		line[n] = 0;
		take_header(t, line);
	}
	return n;
}

/* Are the bytes that follow those that were asked for? */
static int check_range(const struct transfer *t, long status)
{
	const struct bucket_read *r = t->read;
	const struct bucket_object *o = &r->object;

	if (is_page(t))
		return 0;
	if (o->tag && t->tag != o->tag)
		return -ESTALE;
	if (status == 200) /* the server has no ranges */
		return r->offset == 0 && r->n == o->bytes ? 0 : -EPROTO;
	if (status != 206 || !t->has_range)
		return -EPROTO;
	if (t->total != o->bytes)
		return -ESTALE;
	return t->from == r->offset && t->to == r->offset + r->n - 1 ? 0
								     : -EPROTO;
}

static size_t on_body(char *bytes, size_t one, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	long status = status_of(t);

	(void)one;
	if (status < 200 || status >= 300) {
		size_t keep = MIN(n, sizeof(t->body) - t->n_body);

		memcpy(t->body + t->n_body, bytes, keep);
		t->n_body += keep;
		return keep; /* less: it ends here, which is enough to know */
	}
	if (!t->checked)
		t->error = check_range(t, status);
	t->checked = true;
	if (t->error == 0 && n > t->read->n - t->got)
		t->error = -EPROTO;
	if (t->error)
		return 0;
	memcpy((char *)t->read->buf + t->got, bytes, n);
	t->got += n;
	return n;
}

/* --- the request -------------------------------------------------------- */

/* Has it a part that is "." or ".."? */
static bool has_dots(const char *key)
{
	for (const char *part = key; part; part = strchr(part, '/')) {
		size_t n;

		part += *part == '/';
		n = strcspn(part, "/");
		if (n > 0 && n < 3 && !strncmp(part, "..", n))
			return true;
	}
	return false;
}

static int set_url(struct transfer *t, const char *base)
{
	_cleanup_free_ char *url = NULL;
	size_t n;
	FILE *f = open_memstream(&url, &n);

	if (!f)
		return -ENOMEM;
	fputs(base, f);
	if (is_page(t))
		fprintf(f, "?%s",
			container_of(t->read, struct transfer_page, read)
				->query);
	else
		percent_encode(t->read->object.key, false, f);
	if (fclose(f))
		return -ENOMEM;
	/* curl would resolve those. Only for them: since 8.13 it cannot sign
	 * such a request, and says so */
	if (!is_page(t) && has_dots(t->read->object.key))
		curl_easy_setopt(t->easy, CURLOPT_PATH_AS_IS, 1L);
	return curl_easy_setopt(t->easy, CURLOPT_URL, url) ? -ENOMEM : 0;
}

static int set_keys(struct transfer *t, const struct account *a)
{
	char provider[80];

	if (!a->secret)
		return 0;
	snprintf(provider, sizeof(provider), "aws:amz:%s:s3", a->region);
	return curl_easy_setopt(t->easy, CURLOPT_AWS_SIGV4, provider) ||
			       curl_easy_setopt(t->easy, CURLOPT_USERNAME,
						a->id) ||
			       curl_easy_setopt(t->easy, CURLOPT_PASSWORD,
						a->secret) ||
			       curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER,
						t->headers)
		       ? -ENOMEM
		       : 0;
}

static int set_range(struct transfer *t)
{
	const struct bucket_read *r = t->read;
	char range[48];

	if (is_page(t))
		return 0;
	snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, r->offset,
		 r->offset + r->n - 1);
	return curl_easy_setopt(t->easy, CURLOPT_RANGE, range) ? -ENOMEM : 0;
}

int transfer_prepare(struct transfer *t, const struct account *a,
		     const char *base)
{
	CURL *e = t->easy;
	int r;

	t->checked = t->has_range = false;
	t->error = 0;
	t->got = t->n_body = t->n_headers = 0;
	t->tag = 0;
	t->region[0] = t->text[0] = 0;
	curl_easy_reset(e);
	curl_easy_setopt(e, CURLOPT_PRIVATE, t);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->text);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	/* a redirection could lead the keys elsewhere: none is followed */
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1000L);
	curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, STALL_S);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
	r = curl_easy_setopt(e, CURLOPT_USERAGENT, "gpemu/" GPEMU_VERSION) ||
			    (a->ca_file &&
			     curl_easy_setopt(e, CURLOPT_CAINFO, a->ca_file))
		    ? -ENOMEM
		    : 0;
	if (r == 0)
		r = set_url(t, base);
	if (r == 0)
		r = set_keys(t, a);
	return r == 0 ? set_range(t) : r;
}

/* --- the outcome -------------------------------------------------------- */

static int outcome_of_status(struct transfer *t, long status, bool *ret_again)
{
	struct answer_error e;

	switch (status) {
	case 408:
	case 429:
	case 500:
	case 502:
	case 503:
	case 504: *ret_again = true; return -EIO;
	case 401:
	case 403: return -EACCES;
	case 404:
	case 412:
	case 416: return -ESTALE;
	default:
		answer_error(t->body, t->n_body, &e);
		*ret_again = !strcmp(e.code, "RequestTimeout");
		return -EIO;
	}
}

int transfer_outcome(struct transfer *t, CURLcode code, bool *ret_again)
{
	long status = status_of(t);

	*ret_again = false;
	if (t->error)
		return t->error;
	if (status >= 300 && (code == CURLE_OK || code == CURLE_WRITE_ERROR))
		return outcome_of_status(t, status, ret_again);
	if (code == CURLE_OK && !t->checked)
		t->error = check_range(t, status);
	if (t->error ||
	    (code == CURLE_OK && (is_page(t) || t->got == t->read->n)))
		return t->error;
	/* all other errors are those of a connection, or of its end */
	*ret_again = code != CURLE_OUT_OF_MEMORY &&
		     code != CURLE_PEER_FAILED_VERIFICATION &&
		     code != CURLE_SSL_CACERT_BADFILE;
	if (code == CURLE_OUT_OF_MEMORY)
		return -ENOMEM;
	return code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EIO;
}
