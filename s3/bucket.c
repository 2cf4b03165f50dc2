/* SPDX-License-Identifier: MIT */
#include "s3/bucket.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "common/percent.h"
#include "common/util.h"
#include "s3/object.h"
#include "s3/proto/xml.h"

/* Source: Amazon S3 API reference, ListObjectsV2, "max-keys". */
enum { MOST_KEYS = 1000 };

/* --- the bucket --------------------------------------------------------- */

static enum MHD_Result about(struct exchange *x)
{
	const struct service *s = x->service;
	const struct tree_node *root = &s->names.tree->nodes[TREE_ROOT];
	char *text = NULL;
	size_t n = 0;
	FILE *f;

	if (x->error)
		return exchange_fail(x, failure_of(x->error), NULL);
	f = open_memstream(&text, &n);
	if (!f)
		return MHD_NO;
	if (x->operation == OPERATION_LOCATION) {
		/* the first region is the one without a name */
		fputs(XML_START "<LocationConstraint" XML_SPACE ">", f);
		xml_text(f, strcmp(s->region, "us-east-1") ? s->region : "");
		fputs("</LocationConstraint>", f);
	} else if (x->operation == OPERATION_LIST_BUCKETS) {
		fputs(XML_START "<ListAllMyBucketsResult" XML_SPACE
				"><Owner><ID>gpemu</ID></Owner><Buckets>"
				"<Bucket>",
		      f);
		xml_element(f, "Name", s->bucket);
		xml_time(f, "CreationDate", root->mtime_s, root->mtime_ns);
		fputs("</Bucket></Buckets></ListAllMyBucketsResult>", f);
	} /* HeadBucket, and CreateBucket of the one there is: nothing */
	return exchange_xml(x, f, &text, &n);
}

/* --- listings ----------------------------------------------------------- */

struct listing {
	struct exchange *x;
	FILE *keys, *prefixes;
	char *text, *prefix_text;
	size_t n, n_prefix, count;
	bool encoded, owner;
};

/* A key, or a part of one, as the answer has it. */
static void add_name(FILE *f, const char *element, const char *name,
		     bool encoded)
{
	fprintf(f, "<%s>", element);
	if (encoded)
		percent_encode(name, false, f);
	else
		xml_text(f, name);
	fprintf(f, "</%s>", element);
}

static void add_found(void *ctx, const char *key, uint32_t node,
		      const struct stored *o)
{
	struct listing *l = ctx;
	const struct tree *t = l->x->service->names.tree;
	struct object_about a;

	l->count++;
	if (node == TREE_NONE && !o) {
		fputs("<CommonPrefixes>", l->prefixes);
		add_name(l->prefixes, "Prefix", key, l->encoded);
		fputs("</CommonPrefixes>", l->prefixes);
		return;
	}
	object_about(t, key, node, o, &a);
	fputs("<Contents>", l->keys);
	add_name(l->keys, "Key", key, l->encoded);
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

static const char *arg_or(const struct exchange *x, const char *name,
			  const char *otherwise)
{
	const char *value = target_arg(&x->target, name);

	return value ? value : otherwise;
}

static bool read_most(const char *text, size_t *ret)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	*ret = MIN(n, MOST_KEYS);
	return *text >= '0' && *text <= '9' && !*end && !errno &&
	       n <= INT32_MAX;
}

/* The query of a listing. NULL: it is right; else what is not. */
static const char *read_query(const struct exchange *x, bool v2,
			      struct names_query *q, char token[NAMES_MOST + 1])
{
	const char *given = v2 ? target_arg(&x->target, "continuation-token")
			       : NULL;
	const char *type = arg_or(x, "list-type", "2");

	q->prefix = arg_or(x, "prefix", "");
	q->delimiter = arg_or(x, "delimiter", "");
	q->after = arg_or(x, v2 ? "start-after" : "marker", "");
	if (strcmp(type, "2"))
		return "list-type is 2, or not given.";
	if (strcmp(arg_or(x, "encoding-type", "url"), "url"))
		return "encoding-type is url, or not given.";
	if (!read_most(arg_or(x, "max-keys", "1000"), &q->most))
		return "max-keys is a number from 0 to 2147483647.";
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
		add_name(f, "NextMarker", last, encoded);
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

	fputs(XML_START "<ListBucketResult" XML_SPACE ">", f);
	xml_element(f, "Name", x->service->bucket);
	add_name(f, "Prefix", q->prefix, l->encoded);
	if (*q->delimiter)
		add_name(f, "Delimiter", q->delimiter, l->encoded);
	fprintf(f, "<MaxKeys>%zu</MaxKeys>", q->most);
	if (l->encoded)
		xml_element(f, "EncodingType", "url");
	if (!v2)
		add_name(f, "Marker", q->after, l->encoded);
	if (v2 && token)
		xml_element(f, "ContinuationToken", token);
	if (v2 && start)
		add_name(f, "StartAfter", start, l->encoded);
	if (v2)
		fprintf(f, "<KeyCount>%zu</KeyCount>", l->count);
	xml_element(f, "IsTruncated", more ? "true" : "false");
	if (more)
		add_next(f, v2, last, l->encoded);
	fwrite(l->text, 1, l->n, f);
	fwrite(l->prefix_text, 1, l->n_prefix, f);
	fputs("</ListBucketResult>", f);
}

static enum MHD_Result list(struct exchange *x)
{
	bool v2 = target_arg(&x->target, "list-type") != NULL, more;
	char last[NAMES_MOST + 1], token[NAMES_MOST + 1], *text = NULL;
	struct listing l = {
		.x = x,
		.encoded = target_arg(&x->target, "encoding-type") != NULL,
		.owner = !v2 || !strcmp(arg_or(x, "fetch-owner", ""), "true"),
	};
	struct names_query q = { .found = add_found, .ctx = &l };
	const char *wrong = read_query(x, v2, &q, token);
	const struct index none = { 0 };
	enum MHD_Result r = MHD_NO;
	size_t n = 0;
	FILE *f;

	if (x->error)
		return exchange_fail(x, failure_of(x->error), NULL);
	if (wrong)
		return exchange_fail(x, FAILURE_INVALID_ARGUMENT, wrong);
	l.keys = open_memstream(&l.text, &l.n);
	l.prefixes = open_memstream(&l.prefix_text, &l.n_prefix);
	f = open_memstream(&text, &n);
	if (l.keys && l.prefixes && f) {
		more = x->service->objects
			       ? objects_list(x->service->objects, &q, last)
			       : names_list(&x->service->names, &none, &q,
					    last);
		if (fflush(l.keys) == 0 && fflush(l.prefixes) == 0)
			add_result(f, &l, v2, &q, more, last);
		r = exchange_xml(x, f, &text, &n);
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
	_cleanup_free_ char *copy = strdup(arg_or(x, "prefix", ""));
	char *slash = copy ? strrchr(copy, '/') : NULL;
	uint32_t node = TREE_NONE;

	if (slash) {
		*slash = 0;
		node = tree_find(t, copy);
	}
	return node == TREE_NONE ? TREE_ROOT : node;
}

enum MHD_Result bucket_begin(struct exchange *x)
{
	switch (x->operation) {
	case OPERATION_LIST:
		return exchange_operate(x, STORAGE_READDIR, folder_of(x), list);
	case OPERATION_LIST_BUCKETS:
		return exchange_operate(x, STORAGE_READDIR, TREE_ROOT, about);
	default: return exchange_operate(x, STORAGE_LOOKUP, TREE_ROOT, about);
	}
}
