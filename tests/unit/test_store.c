/* SPDX-License-Identifier: MIT */
/* What an object store sends, and the files with its keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/account.h"
#include "store/answer.h"
#include "store/bucket.h"
#include "tests/unit/test.h"

#define XMLNS " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

struct listed {
	size_t n;
	char text[4096];
	uint64_t tag;
	int code; /* that the callback returns */
};

static int found(void *ctx, const struct answer_object *o)
{
	struct listed *l = ctx;
	size_t at = strlen(l->text);

	snprintf(l->text + at, sizeof(l->text) - at, "%s=%llu@%lld;", o->key,
		 (unsigned long long)o->bytes, (long long)o->mtime_s);
	l->n++;
	l->tag = o->tag;
	return l->code;
}

static int page(const char *xml, struct listed *l, struct answer_page *p,
		struct err *err)
{
	*p = (struct answer_page){ .found = found, .ctx = l };
	*err = (struct err){ 0 };
	return answer_page(xml, strlen(xml), p, err);
}

static void test_page(void **state)
{
	struct listed l = { 0 };
	struct answer_page p;
	struct err err;

	(void)state;
	assert_int_equal(
		page("<?xml version=\"1.0\"?><ListBucketResult" XMLNS
		     "><Name>b</Name><Contents><Key>a%20b%2F+c&amp;</Key>"
		     "<LastModified>1970-01-02T00:00:01.000Z</LastModified>"
		     "<ETag>&quot;x&quot;</ETag><Size>12</Size>"
		     "<Owner><ID>1</ID><Key>none</Key></Owner></Contents>"
		     "<Contents><Key>d</Key><Size>0</Size></Contents>"
		     "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>"
		     "<EncodingType>url</EncodingType>"
		     "<IsTruncated>true</IsTruncated>"
		     "<NextContinuationToken>t/=</NextContinuationToken>"
		     "</ListBucketResult>",
		     &l, &p, &err),
		0);
	assert_string_equal(l.text, "a b/ c&=12@86401;d=0@0;");
	assert_string_equal(p.token, "t/=");
	assert_int_equal(l.tag, 0);
	/* not encoded */
	l = (struct listed){ 0 };
	assert_int_equal(page("<ListBucketResult><Contents><Key>a%20+</Key>"
			      "<ETag>\"x\"</ETag><Size>1</Size></Contents>"
			      "</ListBucketResult>",
			      &l, &p, &err),
			 0);
	assert_string_equal(l.text, "a%20+=1@0;");
	assert_string_equal(p.token, "");
	assert_int_equal(l.tag, answer_tag("x", 1));
	l = (struct listed){ .code = -ENOMEM };
	assert_int_equal(page("<ListBucketResult><Contents><Key>a</Key><Size>1"
			      "</Size></Contents></ListBucketResult>",
			      &l, &p, &err),
			 -ENOMEM);
}

static void test_no_pages(void **state)
{
#define OBJECT(key, size)                                              \
	"<ListBucketResult><EncodingType>url</EncodingType><Contents>" \
	"<Key>" key "</Key><Size>" size "</Size></Contents>"           \
	"</ListBucketResult>"
	static const char *const bad[][2] = {
		{ "", "no element" },
		{ "<ListBucketResult>", "no element" },
		{ "<Error/>", "it is no ListBucketResult" },
		{ "<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>",
		  "a document type" },
		{ "<ListBucketResult><Contents><Key>a</Key></Contents>"
		  "</ListBucketResult>",
		  "without a key or a size" },
		{ OBJECT("", "1"), "a malformed key" },
		{ OBJECT("%0", "1"), "a malformed key" },
		{ OBJECT("a%00b", "1"), "a malformed key" },
		{ OBJECT("a", "-1"), "without a key or a size" },
		{ OBJECT("a", "9223372036854775808"), "without a key" },
		{ "<ListBucketResult><IsTruncated>true</IsTruncated>"
		  "</ListBucketResult>",
		  "do not match" },
		{ "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
		  "nested too deep" },
	};
	struct listed l = { 0 };
	struct answer_page p;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(page(bad[i][0], &l, &p, &err), -EBADMSG);
		if (!strstr(err.text, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], err.text);
		assert_int_equal(l.n, 0);
	}
	assert_int_equal(page(OBJECT("a", "9223372036854775807"), &l, &p, &err),
			 0);
}

static void test_errors_and_ranges(void **state)
{
	static const char xml[] = "<Error><Code>SlowDown</Code><Message>a&#10;b"
				  "\303\244</Message></Error>";
	struct answer_error e;
	uint64_t from, to, n;

	(void)state;
	answer_error(xml, strlen(xml), &e);
	assert_string_equal(e.code, "SlowDown");
	assert_string_equal(e.message, "a?b??");
	answer_error("<html>", 6, &e);
	assert_string_equal(e.code, "");
	assert_true(answer_range("bytes 5-9/100", &from, &to, &n));
	assert_true(from == 5 && to == 9 && n == 100);
	assert_false(answer_range("bytes 5-9/*", &from, &to, &n));
	assert_false(answer_range("bytes -5-9/1", &from, &to, &n));
	assert_false(answer_range("bytes 5-9/100 ", &from, &to, &n));
	assert_false(answer_range("", &from, &to, &n));
	assert_true(answer_tag("\"a\"", 3) == answer_tag("W/\"a\"", 5));
	assert_true(answer_tag("\"a\"", 3) != answer_tag("\"b\"", 3));
}

static int parse(const char *text, const char *name, bool config,
		 struct account_profile *p, struct err *err)
{
	static char copy[1000];

	snprintf(copy, sizeof(copy), "%s", text);
	*err = (struct err){ 0 };
	return account_parse(copy, strlen(copy), "f", name, config, p, err);
}

static void test_profiles(void **state)
{
	struct account_profile p = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(parse("# c\n[other]\naws_access_key_id=no\n[me]\r\n"
			       "aws_access_key_id = id\r\n"
			       "aws_secret_access_key = s/=x\nunknown=1\n"
			       "s3 =\n  endpoint_url = no\nregion=\n",
			       "me", false, &p, &err),
			 0);
	assert_string_equal(p.id, "id");
	assert_string_equal(p.secret, "s/=x");
	assert_null(p.endpoint);
	assert_null(p.region);
	assert_true(p.found);
	/* what the first file says counts */
	assert_int_equal(parse("[profile me]\naws_access_key_id = other\n"
			       "region = r\nrole_arn = a\n[me]\nregion = q",
			       "me", true, &p, &err),
			 0);
	assert_string_equal(p.region, "r");
	assert_string_equal(p.fetched, "role_arn");
	p = (struct account_profile){ 0 };
	assert_int_equal(
		parse("[default]\nregion = d\n", "default", true, &p, &err), 0);
	assert_string_equal(p.region, "d");
	assert_int_equal(parse("[x\n", "x", false, &p, &err), -EINVAL);
	assert_string_equal(err.text, "f:1:1: expected ]");
	assert_int_equal(parse("\nword\n", "x", false, &p, &err), -EINVAL);
	assert_string_equal(err.text, "f:2:1: expected KEY = VALUE");
	assert_int_equal(account_parse((char[]){ "a\0b" }, 3, "f", "x", false,
				       &p, &(struct err){ 0 }),
			 -EINVAL);
}

static void check_split(const char *url, const char *name, const char *prefix)
{
	char *n, *p;

	assert_int_equal(bucket_split(url, &n, &p, NULL), 0);
	assert_string_equal(n, name);
	assert_string_equal(p, prefix);
	free(n);
	free(p);
}

static void test_split(void **state)
{
	char *n, *p;

	(void)state;
	check_split("//data", "data", "");
	check_split("//my.data-1/", "my.data-1", "");
	check_split("//data/a/b", "data", "a/b/");
	check_split("//data/a/", "data", "a/");
	assert_int_equal(bucket_split("//ab", &n, &p, NULL), -EINVAL);
	assert_int_equal(bucket_split("//Data", &n, &p, NULL), -EINVAL);
	assert_int_equal(bucket_split("//data@host/", &n, &p, NULL), -EINVAL);
	assert_int_equal(bucket_split("data", &n, &p, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_no_pages),
		cmocka_unit_test(test_errors_and_ranges),
		cmocka_unit_test(test_profiles),
		cmocka_unit_test(test_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
