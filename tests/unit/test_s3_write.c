/* SPDX-License-Identifier: MIT */
/* What gpemu-s3 parses of requests that write, and where it keeps objects. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "net/seal.h"
#include "s3/proto/checksum.h"
#include "s3/proto/chunked.h"
#include "s3/proto/elements.h"
#include "s3/proto/metadata.h"
#include "s3/store/place.h"
#include "s3/throttle.h"

/* --- checksums ---------------------------------------------------------- */

/* Source: the check values of the CRC catalogue, of "123456789". */
static void checksums_are_those_of_their_standards(void **state)
{
	static const struct {
		const char *name, *text;
	} v[] = {
		{ "CRC32", "y/Q5Jg==" },
		{ "crc32c", "4waSgw==" },
		{ "CRC64NVME", "rosUhgp5mIg=" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		char text[CHECKSUM_TEXT];
		struct checksum c;

		checksum_init(&c, checksum_named(v[i].name));
		checksum_add(&c, "1234", 4);
		checksum_add(&c, "56789", 5);
		checksum_end(&c, text);
		assert_string_equal(text, v[i].text);
	}
	assert_int_equal(checksum_named("MD5"), CHECKSUM_NONE);
}

/* Source: FIPS 180, its examples. */
static void hashes_are_those_of_abc(void **state)
{
	char text[CHECKSUM_TEXT];
	struct checksum c;

	(void)state;
	checksum_init(&c, CHECKSUM_SHA1);
	checksum_add(&c, "abc", 3);
	checksum_end(&c, text);
	assert_string_equal(text, "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=");
	checksum_init(&c, CHECKSUM_SHA256);
	checksum_add(&c, "abc", 3);
	checksum_end(&c, text);
	assert_string_equal(text,
			    "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

/* --- chunks -----------------------------------------------------------------
 * Source: Amazon S3 API reference, "Signature Calculations for the
 * Authorization Header: Transferring Payload in Multiple Chunks", its example.
 */

struct taken {
	size_t n;
	bool other; /* than 'a' */
	char trailer[64];
};

static void take(void *ctx, const char *bytes, size_t n)
{
	struct taken *t = ctx;

	t->n += n;
	for (size_t i = 0; i < n; i++)
		t->other |= bytes[i] != 'a';
}

static void take_trailer(void *ctx, const char *name, const char *value)
{
	struct taken *t = ctx;

	snprintf(t->trailer, sizeof(t->trailer), "%s=%s", name, value);
}

static struct sigv4_seed seed_of_example(void)
{
	struct key key = { (char *)"AKIAIOSFODNN7EXAMPLE",
			   (char *)"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" };
	const struct keys keys = { &key, 1 };
	const struct sigv4_header headers[] = {
		{ "Host", "s3.amazonaws.com" },
		{ "x-amz-date", "20130524T000000Z" },
		{ "x-amz-storage-class", "REDUCED_REDUNDANCY" },
		{ "x-amz-content-sha256",
		  "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" },
		{ "Content-Encoding", "aws-chunked" },
		{ "x-amz-decoded-content-length", "66560" },
		{ "Content-Length", "66824" },
		{ "Authorization",
		  "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/"
		  "us-east-1/s3/aws4_request,SignedHeaders=content-encoding;"
		  "content-length;host;x-amz-content-sha256;x-amz-date;"
		  "x-amz-decoded-content-length;x-amz-storage-class,Signature="
		  "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa8"
		  "0a0a9" },
	};
	struct sigv4_request r = { .method = "PUT",
				   .headers = headers,
				   .n_headers = ARRAY_SIZE(headers) };
	struct sigv4_seed seed;
	struct err err = { 0 };
	struct target t;

	assert_int_equal(target_parse("/examplebucket/chunkObject.txt", &t), 0);
	r.target = &t;
	assert_int_equal(sigv4_check(&r, &keys, "us-east-1", 1369353600, &seed,
				     &err),
			 0);
	target_fini(&t);
	return seed;
}

#define FIRST "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"
#define SECOND \
	"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"
#define LAST "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"

static size_t example(char ret[70000])
{
	static const struct {
		size_t n;
		const char *line;
	} chunks[] = {
		{ 65536, "10000;chunk-signature=" FIRST },
		{ 1024, "400;chunk-signature=" SECOND },
		{ 0, "0;chunk-signature=" LAST },
	};
	char *at = ret;

	for (size_t i = 0; i < ARRAY_SIZE(chunks); i++) {
		at += sprintf(at, "%s\r\n", chunks[i].line);
		memset(at, 'a', chunks[i].n);
		at += chunks[i].n;
		at += sprintf(at, "\r\n");
	}
	return (size_t)(at - ret);
}

static enum failure decode(const char *bytes, size_t n, size_t piece,
			   bool is_signed, struct taken *ret, bool *ret_whole)
{
	struct chunked c = { .is_signed = is_signed,
			     .take = take,
			     .trailer = take_trailer,
			     .ctx = ret };
	enum failure f = FAILURE_NONE;

	if (is_signed)
		c.seed = seed_of_example();
	else
		c.has_trailer = true;
	*ret = (struct taken){ 0 };
	chunked_init(&c);
	for (size_t at = 0; f == FAILURE_NONE && at < n; at += piece)
		f = chunked_add(&c, bytes + at, MIN(piece, n - at));
	*ret_whole = chunked_is_whole(&c);
	return f;
}

static void the_example_of_aws_is_decoded(void **state)
{
	static char text[70000];
	size_t n = example(text);
	struct taken taken;
	bool whole;

	(void)state;
	assert_int_equal(n, 66824);
	for (size_t piece = 1; piece < 70000; piece = piece * 7 + 1) {
		assert_int_equal(decode(text, n, piece, true, &taken, &whole),
				 0);
		assert_true(whole && taken.n == 66560 && !taken.other);
	}
	/* cut off anywhere it is not whole, but not wrong */
	for (size_t i = 0; i < n; i += 997) {
		assert_int_equal(decode(text, i, 4096, true, &taken, &whole),
				 0);
		assert_false(whole);
	}
	text[100000 % n] ^= 1;
	assert_int_equal(decode(text, n, n, true, &taken, &whole),
			 FAILURE_SIGNATURE);
}

static void broken_chunks_are_refused(void **state)
{
	static const struct {
		const char *text;
		enum failure failure;
	} v[] = {
		{ "1\r\na\r\n0\r\nx-amz-checksum-crc32: y\r\n\r\n", 0 },
		{ "1\na\n0\n\n", 0 },
		{ "-1\r\na\r\n", FAILURE_INCOMPLETE },
		{ "0x1\r\na\r\n", FAILURE_INCOMPLETE },
		{ "\r\na\r\n", FAILURE_INCOMPLETE },
		{ "11111111111111111\r\na", FAILURE_INCOMPLETE },
		{ "1\r\naa\r\n", FAILURE_INCOMPLETE },
		{ "1\r\na\r\n0\r\n\r\nmore", FAILURE_INCOMPLETE },
		{ "0\r\nno colon\r\n", FAILURE_MALFORMED_TRAILER },
		{ "0\r\n: no name\r\n", FAILURE_MALFORMED_TRAILER },
	};
	struct taken taken;
	bool whole;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		size_t n = strlen(v[i].text);

		assert_int_equal(decode(v[i].text, n, 1, false, &taken, &whole),
				 v[i].failure);
		if (i == 0)
			assert_string_equal(taken.trailer,
					    "x-amz-checksum-crc32=y");
	}
}

/* --- XML ---------------------------------------------------------------- */

static bool note(void *ctx, const char *path, const char *text)
{
	char *out = ctx;

	sprintf(out + strlen(out), "%s=%s;", path, text);
	return true;
}

static bool reads(const char *text, char ret[1000])
{
	size_t n = strlen(text);
	_cleanup_free_ char *copy = malloc(n ? n : 1); /* without a NUL */

	memcpy(copy, text, n);
	ret[0] = 0;
	return elements_read(copy, n, note, ret);
}

static void elements_are_read(void **state)
{
	char got[1000];

	(void)state;
	assert_true(reads("<?xml version=\"1.0\"?>\n<Delete xmlns='a>b'>"
			  "<Object><Key>a&lt;b&#x20AC;&#10;</Key></Object>"
			  "<!-- <x> --><Quiet/><K><![CDATA[<&]]> </K>\n"
			  "</Delete >\n",
			  got));
	assert_string_equal(got, "Delete/Object/Key=a<b\xe2\x82\xac\n;"
				 "Delete/Object=;Delete/Quiet=;Delete/K=<& ;"
				 "Delete=;");
}

static void what_is_no_xml_is_refused(void **state)
{
	static const char *const v[] = {
		"",
		"text",
		"<a>",
		"<",
		"<a><",
		"<a></b>",
		"</a>",
		"<a/><b/>",
		"<a/>x",
		"<>x</>",
		"<a>&unknown;</a>",
		"<a>&#0;</a>",
		"<a>&#xD800;</a>",
		"<a>&#x110000;</a>",
		"<a>&amp</a>",
		"<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
		"<a b=\"</a>",
		"<!-- <a/>",
		"<a><b><c><d><e><f><g><h><i/></h></g></f></e></d></c></b></a>",
	};
	char got[1000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		assert_false(reads(v[i], got));
}

/* --- keys and paths ----------------------------------------------------- */

static void keys_have_a_place(void **state)
{
	static const char *const odd[] = {
		"/",
		"a/",
		"/a",
		"a//b",
		".",
		"..",
		"../x",
		"a/../b",
		"a/./b",
		".gpemu",
		".gpemu/objects/x",
	};
	char key[NAMES_MOST + 1], longest[NAMES_MOST + 1], *slash;
	_cleanup_free_ char *deep = NULL;

	(void)state;
	assert_true(place_is_path("a/.b/..c/d"));
	assert_true(place_is_path("a/.gpemu"));
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		assert_false(place_is_path(odd[i]));
	memset(longest, '/', NAMES_MOST);
	longest[NAMES_MOST] = 0;
	assert_false(place_is_path(longest));
	for (size_t i = 0; i <= ARRAY_SIZE(odd); i++) {
		const char *given = i < ARRAY_SIZE(odd) ? odd[i] : longest;
		_cleanup_free_ char *path = place_odd(given);

		assert_non_null(path);
		assert_null(strstr(path, "/.."));
		assert_true(place_key(path, true, key));
		assert_string_equal(key, given);
	}
	assert_true(place_key("a/b%", false, key));
	assert_string_equal(key, "a/b%");
	assert_false(place_key(PLACE_ODD "/a%0", true, key));
	assert_false(place_key(PLACE_ODD "/a%00", true, key));
	/* what others make deeper than any key is not walked */
	memset(longest, 'd', NAMES_MOST);
	assert_false(place_leads(longest, false));
	longest[NAMES_MOST - 1] = 0;
	assert_true(place_leads(longest, false));
	assert_false(place_leads(PLACE_ODD "/+/+", true));
	deep = place_odd(longest);
	assert_non_null(deep);
	while ((slash = strrchr(deep, '/')) > deep + strlen(PLACE_ODD)) {
		*slash = 0;
		assert_true(place_leads(deep, true));
	}
	assert_non_null(strrchr(deep, '+'));
}

/* --- metadata ----------------------------------------------------------- */

static enum failure metadata(const char *name, const char *value, char **ret)
{
	const struct sigv4_header headers[] = { { "Host", "x" },
						{ name, value } };
	const struct sigv4_request r = { .headers = headers, .n_headers = 2 };

	*ret = NULL;
	return metadata_read(&r, ret);
}

static void headers_are_kept_or_refused(void **state)
{
	static const struct {
		const char *name, *value, *kept;
		enum failure failure;
	} v[] = {
		{ "Content-Type", " text/plain ", "Content-Type: text/plain\n",
		  0 },
		{ "X-Amz-Meta-Name", "v: 1", "x-amz-meta-name: v: 1\n", 0 },
		{ "Content-Encoding", "aws-chunked,gzip",
		  "Content-Encoding: gzip\n", 0 },
		{ "Content-Encoding", "gzip, aws-chunked",
		  "Content-Encoding: gzip\n", 0 },
		{ "Content-Encoding", "aws-chunked, aws-chunked", "", 0 },
		{ "Accept", "x", "", 0 },
		{ "x-amz-acl", "private", "", 0 },
		{ "x-amz-acl", "public-read", NULL, FAILURE_NO_ACL },
		{ "x-amz-grant-read", "x", NULL, FAILURE_NO_ACL },
		{ "x-amz-storage-class", "GLACIER", NULL,
		  FAILURE_INVALID_STORAGE_CLASS },
		{ "x-amz-tagging", "a=b", NULL, FAILURE_NOT_IMPLEMENTED },
		{ "x-amz-meta-a", "b\nc: d", NULL, FAILURE_INVALID_ARGUMENT },
	};
	char large[3000] = "", *text;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		assert_int_equal(metadata(v[i].name, v[i].value, &text),
				 v[i].failure);
		if (v[i].kept)
			assert_string_equal(text, v[i].kept);
		else
			assert_null(text);
		free(text);
	}
	memset(large, 'x', 2048);
	assert_int_equal(metadata("x-amz-meta-", large, &text), 0);
	free(text);
	assert_int_equal(metadata("x-amz-meta-a", large, &text),
			 FAILURE_METADATA_TOO_LARGE);
}

/* --- rates -------------------------------------------------------------- */

static unsigned admitted(struct throttle *t, enum throttle_kind kind,
			 const char *key, uint64_t now, unsigned n)
{
	unsigned passed = 0;

	for (unsigned i = 0; i < n; i++)
		passed += throttle_admit(t, kind, key, now);
	return passed;
}

static void a_prefix_has_its_rate(void **state)
{
	struct throttle *t = malloc(sizeof(*t));
	char key[32];

	(void)state;
	throttle_init(t, 100, 10);
	assert_int_equal(admitted(t, THROTTLE_READ, "a/x", 0, 1000), 100);
	assert_int_equal(admitted(t, THROTTLE_READ, "a/y", 0, 1000), 0);
	assert_int_equal(admitted(t, THROTTLE_READ, "a/b/x", 0, 1000), 100);
	assert_int_equal(admitted(t, THROTTLE_WRITE, "a/x", 0, 1000), 10);
	assert_int_equal(admitted(t, THROTTLE_READ, "a/x", NS_PER_S / 2, 1000),
			 50);
	assert_int_equal(admitted(t, THROTTLE_READ, "a/x", 9 * NS_PER_S, 1000),
			 100);
	assert_int_equal(t->refused[THROTTLE_WRITE], 990);
	/* others do not push out the one at its limit */
	for (int i = 0; i < 2000; i++) {
		sprintf(key, "p%d/x", i);
		throttle_admit(t, THROTTLE_READ, key, 9 * NS_PER_S);
	}
	assert_int_equal(admitted(t, THROTTLE_READ, "a/x", 9 * NS_PER_S, 100),
			 0);
	throttle_fini(t);
	throttle_init(t, 0, 0);
	assert_int_equal(admitted(t, THROTTLE_READ, "x", 0, 1000), 1000);
	throttle_fini(t);
	free(t);
}

static int start(void **state)
{
	struct err err = { 0 };

	(void)state;
	return seal_init(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums_are_those_of_their_standards),
		cmocka_unit_test(hashes_are_those_of_abc),
		cmocka_unit_test(the_example_of_aws_is_decoded),
		cmocka_unit_test(broken_chunks_are_refused),
		cmocka_unit_test(elements_are_read),
		cmocka_unit_test(what_is_no_xml_is_refused),
		cmocka_unit_test(keys_have_a_place),
		cmocka_unit_test(headers_are_kept_or_refused),
		cmocka_unit_test(a_prefix_has_its_rate),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
