/* SPDX-License-Identifier: MIT */
#include "store/answer.h"

#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "common/percent.h"
#include "common/util.h"

/* An encoded key has three bytes for each of its own. */
enum { MOST_TEXT = 3 * ANSWER_KEY + ANSWER_TOKEN };

/* What has a text that is read, by the name of its element and its parent. */
enum field {
	OTHER,
	TRUNCATED,
	TOKEN,
	ENCODING,
	KEY,
	SIZE,
	MODIFIED,
	ETAG,
	CODE,
	MESSAGE
};

static const struct {
	const char *parent, *name;
	enum field field;
} fields[] = {
	{ "ListBucketResult", "IsTruncated", TRUNCATED },
	{ "ListBucketResult", "NextContinuationToken", TOKEN },
	{ "ListBucketResult", "EncodingType", ENCODING },
	{ "Contents", "Key", KEY },
	{ "Contents", "Size", SIZE },
	{ "Contents", "LastModified", MODIFIED },
	{ "Contents", "ETag", ETAG },
	{ "Error", "Code", CODE },
	{ "Error", "Message", MESSAGE },
};

/* arbitrary: those that are read are three deep; names longer than any of them
 * are cut */
enum { MOST_DEPTH = 16, MOST_NAME = 32 };

struct reader {
	XML_Parser parser;
	struct answer_page *page;	   /* or NULL */
	struct answer_error *error;	   /* or NULL */
	char names[MOST_DEPTH][MOST_NAME]; /* of the open elements */
	unsigned depth;
	bool leaf; /* nothing was inside the innermost one */
	char text[MOST_TEXT + 1];
	size_t n_text;
	bool listing, truncated, has_key, has_size;
	bool encoded; /* keys */
	bool look;    /* for what stands behind the objects in some answers */
	char key[3 * ANSWER_KEY + 1];
	struct answer_object object;
	int code; /* of the first error */
	const char *why;
};

static void stop(struct reader *r, int code, const char *why)
{
	if (r->code == 0) {
		r->code = code;
		r->why = why;
	}
	XML_StopParser(r->parser, XML_FALSE);
}

/* Of the innermost element. */
static enum field field_of(const struct reader *r)
{
	if (r->depth < 2 || !r->leaf)
		return OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strcmp(fields[i].parent, r->names[r->depth - 2]) &&
		    !strcmp(fields[i].name, r->names[r->depth - 1]))
			return fields[i].field;
	return OTHER;
}

/* --- values ------------------------------------------------------------- */

/* Digits up to `end`, which *s then stands behind; at most INT64_MAX. */
static bool number(const char **s, char end, uint64_t *ret)
{
	const char *at = *s;
	uint64_t v = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		if (v > (INT64_MAX - (uint64_t)(*at - '0')) / 10)
			return false;
		v = v * 10 + (uint64_t)(*at - '0');
	}
	if (at == *s || *at != end)
		return false;
	*ret = v;
	*s = at + 1;
	return true;
}

uint64_t answer_tag(const char *etag, size_t n)
{
	uint64_t tag;

	if (n >= 2 && !strncmp(etag, "W/", 2)) {
		etag += 2;
		n -= 2;
	}
	if (n >= 2 && etag[0] == '"' && etag[n - 1] == '"') {
		etag++;
		n -= 2;
	}
	tag = XXH3_64bits(etag, n);

	return tag ? tag : 1;
}

bool answer_range(const char *text, uint64_t *ret_from, uint64_t *ret_to,
		  uint64_t *ret_bytes)
{
	static const char unit[] = "bytes ";

	if (strncmp(text, unit, strlen(unit)) != 0)
		return false;
	text += strlen(unit);
	return number(&text, '-', ret_from) && number(&text, '/', ret_to) &&
	       number(&text, 0, ret_bytes);
}

/* "2009-10-12T17:50:30.000Z"; 0: it is no such text. */
static int64_t time_of(const char *s)
{
	struct tm tm = { 0 };

	return strptime(s, "%Y-%m-%dT%H:%M:%S", &tm) ? timegm(&tm) : 0;
}

static void copy_printable(char *to, size_t n, const char *from)
{
	for (; n > 1 && *from; from++, n--)
		*to++ = isprint((unsigned char)*from) ? *from : '?';
	*to = 0;
}

/* --- elements ----------------------------------------------------------- */

static void take_key(struct reader *r)
{
	if (r->n_text > sizeof(r->key) - 1) {
		stop(r, -EBADMSG, "a key is too long");
		return;
	}
	memcpy(r->key, r->text, r->n_text + 1);
	r->has_key = true;
}

static void take_token(struct reader *r)
{
	if (r->n_text > ANSWER_TOKEN)
		stop(r, -EBADMSG, "a token is too long");
	else
		memcpy(r->page->token, r->text, r->n_text + 1);
}

static void take_field(struct reader *r, enum field field)
{
	const char *text = r->text;

	switch (field) {
	case TRUNCATED: r->truncated = !strcmp(r->text, "true"); break;
	case TOKEN: take_token(r); break;
	case ENCODING: r->encoded = !strcmp(r->text, "url"); break;
	case KEY: take_key(r); break;
	case SIZE: r->has_size = number(&text, 0, &r->object.bytes); break;
	case MODIFIED: r->object.mtime_s = time_of(r->text); break;
	case ETAG: r->object.tag = answer_tag(r->text, r->n_text); break;
	default: break;
	}
}

static void end_object(struct reader *r)
{
	int code;

	if (!r->has_key || !r->has_size) {
		stop(r, -EBADMSG, "an object without a key or a size");
		return;
	}
	if ((r->encoded && !r->look && !percent_decode(r->key, true)) ||
	    !r->key[0] || (!r->look && strlen(r->key) > ANSWER_KEY)) {
		stop(r, -EBADMSG, "a malformed key");
		return;
	}
	r->object.key = r->key;
	code = r->look ? 0 : r->page->found(r->page->ctx, &r->object);
	if (code)
		stop(r, code, "");
	r->object = (struct answer_object){ 0 };
	r->has_key = r->has_size = false;
}

/* Names have no prefixes in the answers of S3. */
static void begin_element(void *ctx, const XML_Char *name,
			  const XML_Char **more)
{
	struct reader *r = ctx;

	(void)more;
	if (r->depth == MOST_DEPTH) {
		stop(r, -EBADMSG, "nested too deep");
		return;
	}
	snprintf(r->names[r->depth++], MOST_NAME, "%s", name);
	r->leaf = true;
	r->n_text = 0;
	r->text[0] = 0;
	if (r->depth == 1)
		r->listing = !strcmp(name, "ListBucketResult");
}

static void end_element(void *ctx, const XML_Char *name)
{
	struct reader *r = ctx;
	enum field field = field_of(r);

	if (r->page)
		take_field(r, field);
	else if (field == CODE)
		copy_printable(r->error->code, sizeof(r->error->code), r->text);
	else if (field == MESSAGE)
		copy_printable(r->error->message, sizeof(r->error->message),
			       r->text);
	if (r->page && r->listing && r->depth == 2 && !strcmp(name, "Contents"))
		end_object(r);
	r->depth--;
	r->leaf = false;
}

static void add_text(void *ctx, const XML_Char *s, int n)
{
	struct reader *r = ctx;

	if ((size_t)n > MOST_TEXT - r->n_text) {
		stop(r, -EBADMSG, "a text is too long");
		return;
	}
	memcpy(r->text + r->n_text, s, (size_t)n);
	r->n_text += (size_t)n;
	r->text[r->n_text] = 0;
}

static void no_doctype(void *ctx, const XML_Char *name, const XML_Char *system,
		       const XML_Char *public, int internal)
{
	(void)name, (void)system, (void)public, (void)internal;
	stop(ctx, -EBADMSG, "a document type");
}

static int parse(struct reader *r, const char *bytes, size_t n)
{
	r->parser = XML_ParserCreate(NULL);
	if (!r->parser)
		return -ENOMEM;
	XML_SetUserData(r->parser, r);
	XML_SetElementHandler(r->parser, begin_element, end_element);
	XML_SetCharacterDataHandler(r->parser, add_text);
	XML_SetStartDoctypeDeclHandler(r->parser, no_doctype);
	if (n > INT32_MAX ||
	    (XML_Parse(r->parser, bytes, (int)n, 1) != XML_STATUS_OK &&
	     r->code == 0)) {
		r->code = -EBADMSG;
		r->why = n > INT32_MAX
				 ? "too long"
				 : XML_ErrorString(XML_GetErrorCode(r->parser));
	}
	XML_ParserFree(r->parser);
	return r->code;
}

/* --- answers ------------------------------------------------------------ */

int answer_page(const char *bytes, size_t n, struct answer_page *page,
		struct err *err)
{
	struct reader r = { .page = page, .look = true };
	int code;

	page->token[0] = 0;
	code = parse(&r, bytes, n);
	if (code == 0) {
		bool encoded = r.encoded;

		r = (struct reader){ .page = page, .encoded = encoded };
		code = parse(&r, bytes, n);
	}
	if (code == 0 && !r.listing) {
		code = -EBADMSG;
		r.why = "it is no ListBucketResult";
	}
	if (code == 0 && r.truncated != (page->token[0] != 0)) {
		code = -EBADMSG;
		r.why = "IsTruncated and NextContinuationToken do not match";
	}
	return code == -EBADMSG
		       ? err_set(err, code,
				 "the listing of the object store: %s", r.why)
		       : code;
}

void answer_error(const char *bytes, size_t n, struct answer_error *ret)
{
	struct reader r = { .error = ret };

	*ret = (struct answer_error){ 0 };
	parse(&r, bytes, n);
}
