/* SPDX-License-Identifier: MIT */
/* What gpemu-s3 parses: signatures, targets, conditions, keys, listings. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "net/seal.h"
#include "s3/proto/conditions.h"
#include "s3/proto/host.h"
#include "s3/store/names.h"
#include "s3/proto/sigv4.h"

/* --- signatures -----------------------------------------------------------
 * Source: Amazon S3 API reference, "Signature Calculations for the
 * Authorization Header: Transferring Payload in a Single Chunk", its examples,
 * and "Authenticating Requests: Using Query Parameters", its example.
 */

#define HOST "examplebucket.s3.amazonaws.com"
#define DATE "20130524T000000Z"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define CREDENTIAL "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
#define AUTHORIZATION(names, signature)                                   \
	"AWS4-HMAC-SHA256 Credential=" CREDENTIAL ",SignedHeaders=" names \
	",Signature=" signature
#define PRESIGNED                                                            \
	"/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="       \
	"AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"    \
	"&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400"                   \
	"&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b" \
	"86d86835f995330da4c265957d157751f604d404"

enum { NOW = 1369353600 };

struct vector {
	const char *method, *target;
	struct sigv4_header headers[8];
};

static const struct vector vectors[] = {
	{ "GET",
	  "/test.txt",
	  { { "Host", HOST },
	    { "Range", "bytes=0-9" },
	    { "x-amz-content-sha256", EMPTY },
	    { "x-amz-date", DATE },
	    { "Authorization",
	      AUTHORIZATION("host;range;x-amz-content-sha256;x-amz-date",
			    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48d"
			    "d91039c6036bdb41") } } },
	{ "PUT",
	  "/test$file.text",
	  { { "Host", HOST },
	    { "Date", "Fri, 24 May 2013 00:00:00 GMT" },
	    { "x-amz-date", DATE },
	    { "x-amz-storage-class", "REDUCED_REDUNDANCY" },
	    { "x-amz-content-sha256",
	      "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b07"
	      "2" },
	    { "Authorization",
	      AUTHORIZATION("date;host;x-amz-content-sha256;x-amz-date;x-amz-"
			    "storage-class",
			    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5"
			    "971af0ece108bd") } } },
	{ "GET",
	  "/?lifecycle",
	  { { "Host", HOST },
	    { "x-amz-date", DATE },
	    { "x-amz-content-sha256", EMPTY },
	    { "Authorization",
	      AUTHORIZATION("host;x-amz-content-sha256;x-amz-date",
			    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a"
			    "200a0136783543") } } },
	{ "GET",
	  "/?max-keys=2&prefix=J",
	  { { "Host", HOST },
	    { "x-amz-date", DATE },
	    { "x-amz-content-sha256", EMPTY },
	    { "Authorization",
	      AUTHORIZATION("host;x-amz-content-sha256;x-amz-date",
			    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670e"
			    "d5711ef69dc6f7") } } },
	{ "GET", PRESIGNED, { { "Host", HOST } } },
};

static enum failure check(const struct vector *v, const char *secret,
			  int64_t now)
{
	struct key key = { (char *)"AKIAIOSFODNN7EXAMPLE", (char *)secret };
	struct keys keys = { &key, 1 };
	struct err err = { 0 };
	struct target t;
	struct sigv4_request r = { .method = v->method,
				   .target = &t,
				   .headers = v->headers };
	enum failure f;

	while (r.n_headers < ARRAY_SIZE(v->headers) &&
	       v->headers[r.n_headers].name)
		r.n_headers++;
	assert_int_equal(target_parse(v->target, &t), 0);
	f = sigv4_check(&r, &keys, "us-east-1", now, NULL, &err);
	target_fini(&t);
	return f;
}

#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

static void examples_of_aws_hold(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		assert_int_equal(check(&vectors[i], SECRET, NOW), 0);
		assert_int_equal(check(&vectors[i], SECRET "x", NOW),
				 FAILURE_SIGNATURE);
	}
}

static void a_change_breaks_the_signature(void **state)
{
	struct vector v = vectors[0];

	(void)state;
	v.target = "/test.txu";
	assert_int_equal(check(&v, SECRET, NOW), FAILURE_SIGNATURE);
	v = vectors[0];
	v.method = "HEAD";
	assert_int_equal(check(&v, SECRET, NOW), FAILURE_SIGNATURE);
	v = vectors[0];
	v.headers[1].value = "bytes=0-8";
	assert_int_equal(check(&v, SECRET, NOW), FAILURE_SIGNATURE);
	v = vectors[0];
	v.headers[5] = (struct sigv4_header){ "x-amz-acl", "public" };
	assert_int_equal(check(&v, SECRET, NOW), FAILURE_ACCESS_DENIED);
	/* the one argument that a signature does not cover */
	v = vectors[0];
	v.target = "/test.txt?X-Amz-Signature=x";
	assert_int_equal(check(&v, SECRET, NOW), FAILURE_INVALID_ARGUMENT);
}

static void signatures_expire(void **state)
{
	const struct vector *header = &vectors[0], *url = &vectors[4];

	(void)state;
	assert_int_equal(check(header, SECRET, NOW + 900), 0);
	assert_int_equal(check(header, SECRET, NOW + 901), FAILURE_SKEWED);
	assert_int_equal(check(header, SECRET, NOW - 901), FAILURE_SKEWED);
	assert_int_equal(check(url, SECRET, NOW + 86400), 0);
	assert_int_equal(check(url, SECRET, NOW + 86401), FAILURE_EXPIRED);
	assert_int_equal(check(url, SECRET, NOW - 901), FAILURE_ACCESS_DENIED);
}

/* --- targets ------------------------------------------------------------ */

static void targets_are_decoded(void **state)
{
	static const char *const bad[] = { "",	  "a",	    "*",       "/%",
					   "/%4", "/%4g",   "/%00",    "/?a=%",
					   "/%%", "/?%0=1", "/a?b=%00" };
	struct target t;

	(void)state;
	assert_int_equal(target_parse("/a%20b+c%2F?x=1%2B+2&&y&x=3", &t), 0);
	assert_string_equal(t.path, "/a b+c/");
	assert_string_equal(target_arg(&t, "x"), "1+ 2");
	assert_string_equal(target_arg(&t, "y"), "");
	assert_null(target_arg(&t, "z"));
	assert_int_equal(t.n_args, 3);
	target_fini(&t);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(target_parse(bad[i], &t), -EINVAL);
		target_fini(&t);
	}
}

/* --- hosts -------------------------------------------------------------- */

static void hosts_are_names(void **state)
{
	static const char *const local[] = { "127.0.0.1",   "10.1.2.3:80",
					     "[::1]:9000",  "[fe80::1]",
					     "localhost",   "LocalHost.:1",
					     "a.localhost", "a.b.localhost:9",
					     "a.localhost." };
	static const char *const others[] = {
		"",	      "[",	    "[]",	   "[::1",
		"::1",	      ":80",	    ".",	   "127.0.0.1.a",
		"127.0.0",    "xlocalhost", "localhost.a", "localhos",
		"[localhost]"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		assert_true(host_is_local(local[i]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(host_is_local(others[i]));
	assert_true(host_is("Store:1", "store:9000"));
	assert_true(host_is("store.", "store"));
	assert_false(host_is("stores", "store"));
	assert_false(host_is("store.a", "store"));
	assert_false(host_is("stor", "store"));
}

/* --- conditions --------------------------------------------------------- */

static const struct conditions_file file = { "\"abc-1\"", 784111777, 1000 };

static void conditions_hold(void **state)
{
	static const char same[] = "Sun, 06 Nov 1994 08:49:37 GMT",
			  before[] = "Sunday, 06-Nov-94 08:49:36 GMT",
			  after[] = "Sun Nov  6 08:49:38 1994";
	const struct {
		struct conditions c;
		enum failure f;
	} cases[] = {
		{ { .match = "\"abc-1\"" }, 0 },
		{ { .match = "abc-1" }, 0 },
		{ { .match = "\"x\", \"abc-1\"" }, 0 },
		{ { .match = "*" }, 0 },
		{ { .match = "\"abc\"" }, FAILURE_PRECONDITION },
		{ { .match = "" }, FAILURE_PRECONDITION },
		{ { .none_match = "\"abc-1\"" }, FAILURE_NOT_MODIFIED },
		{ { .none_match = "W/\"abc-1\"" }, FAILURE_NOT_MODIFIED },
		{ { .none_match = "\"x\"" }, 0 },
		{ { .modified_since = same }, FAILURE_NOT_MODIFIED },
		{ { .modified_since = before }, 0 },
		{ { .modified_since = after }, FAILURE_NOT_MODIFIED },
		{ { .modified_since = "soon" }, 0 },
		{ { .unmodified_since = before }, FAILURE_PRECONDITION },
		{ { .unmodified_since = same }, 0 },
		{ { .none_match = "\"x\"", .modified_since = same }, 0 },
		{ { .match = "*", .unmodified_since = before }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(conditions_check(&cases[i].c, &file),
				 cases[i].f);
}

static void ranges_are_of_bytes(void **state)
{
	static const struct {
		const char *range;
		int from, end; /* -1: InvalidRange; 0, 0: all */
	} cases[] = {
		{ "bytes=0-9", 0, 10 },
		{ "bytes=990-", 990, 1000 },
		{ "bytes=990-5000", 990, 1000 },
		{ "bytes=-10", 990, 1000 },
		{ "bytes=-5000", 0, 1000 },
		{ "bytes=999-999", 999, 1000 },
		{ "bytes=0-18446744073709551615", 0, 1000 },
		{ "bytes=1000-", -1, 0 },
		{ "bytes=-0", -1, 0 },
		{ "bytes=5-4", 0, 0 },
		{ "bytes=-", 0, 0 },
		{ "bytes=1-2,4-5", 0, 0 },
		{ "bytes=a-b", 0, 0 },
		{ "lines=1-2", 0, 0 },
		{ "bytes=99999999999999999999-", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct conditions c = { .range = cases[i].range };
		uint64_t from, end;
		bool part;
		enum failure f =
			conditions_range(&c, &file, &from, &end, &part);

		if (cases[i].from < 0) {
			assert_int_equal(f, FAILURE_INVALID_RANGE);
			continue;
		}
		assert_int_equal(f, 0);
		assert_int_equal(part, cases[i].end != 0);
		assert_int_equal(from, cases[i].from);
		assert_int_equal(end, cases[i].end ? cases[i].end : 1000);
		c.if_range = "\"other\"";
		assert_int_equal(
			conditions_range(&c, &file, &from, &end, &part), 0);
		assert_false(part);
	}
}

/* --- keys --------------------------------------------------------------- */

static int parse_keys(const char *text, struct keys *k, struct err *err)
{
	char copy[512];

	*k = (struct keys){ 0 };
	snprintf(copy, sizeof(copy), "%s", text);
	return keys_parse(copy, strlen(copy), "k", k, err);
}

static void keys_are_pairs(void **state)
{
	static const char *const bad[] = {
		"",
		"[a]\n",
		"aws_access_key_id = a\n",
		"x\n",
		"aws_access_key_id =\naws_secret_access_key = b\n",
		"aws_access_key_id=a\naws_access_key_id=b\n",
		"[a]\naws_access_key_id=a\n[b]\naws_secret_access_key=b\n",
	};
	struct err err = { 0 };
	struct keys k;

	(void)state;
	assert_int_equal(parse_keys("# mine\n[default]\nregion = x\n"
				    "aws_access_key_id = a\n"
				    "  aws_secret_access_key=s=+/ \n\n[two]\n"
				    "aws_access_key_id=b\n"
				    "aws_secret_access_key = t",
				    &k, &err),
			 0);
	assert_string_equal(keys_find(&k, "a"), "s=+/");
	assert_string_equal(keys_find(&k, "b"), "t");
	assert_null(keys_find(&k, "c"));
	keys_fini(&k);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(parse_keys(bad[i], &k, &err), -EINVAL);
		keys_fini(&k);
	}
}

/* --- listings ----------------------------------------------------------- */

struct found {
	char text[256];
};

static void note(void *ctx, const char *key, uint32_t node,
		 const struct stored *o)
{
	struct found *f = ctx;

	(void)node;
	(void)o;
	strcat(f->text, key);
	strcat(f->text, " ");
}

static void add(struct tree *t, uint32_t dir, const char *names)
{
	struct tree_child children[8] = { 0 };
	char copy[64], *save, *word;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", names);
	for (word = strtok_r(copy, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		bool folder = word[strlen(word) - 1] == '/';

		if (folder)
			word[strlen(word) - 1] = 0;
		children[n++] = (struct tree_child){
			.name = word,
			.mode = (folder ? S_IFDIR : S_IFREG) | 0555
		};
	}
	assert_int_equal(tree_add_children(t, dir, children, n), 0);
}

/* Of a-b a.txt a/x a/y/z a0 b. */
static void check_listings(const struct names *names, const struct index *put)
{
	static const struct {
		const char *prefix, *delimiter, *after;
		size_t most;
		const char *found;
		bool more;
	} cases[] = {
		{ "", "", "", 9, "a-b a.txt a/x a/y/z a0 b ", false },
		{ "", "/", "", 9, "a-b a.txt a/ a0 b ", false },
		{ "a/", "/", "", 9, "a/x a/y/ ", false },
		{ "a", "", "a.txt", 9, "a/x a/y/z a0 ", false },
		{ "", "/", "a/", 9, "a0 b ", false },
		{ "", "/", "a.txt", 2, "a/ a0 ", true },
		{ "", "", "", 6, "a-b a.txt a/x a/y/z a0 b ", false },
		{ "", "", "", 5, "a-b a.txt a/x a/y/z a0 ", true },
		{ "a/y", "/", "", 9, "a/y/ ", false },
		{ "", "t", "", 9, "a-b a.t a/x a/y/z a0 b ", false },
		{ "z", "", "", 9, "", false },
		{ "", "", "zz", 9, "", false },
		{ "", "", "", 0, "", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct found f = { "" };
		struct names_query q = { cases[i].prefix,
					 cases[i].delimiter,
					 cases[i].after,
					 cases[i].most,
					 note,
					 &f };
		char last[NAMES_MOST + 1];

		assert_int_equal(names_list(names, put, &q, last),
				 cases[i].more);
		assert_string_equal(f.text, cases[i].found);
	}
}

static void put(struct index *x, const char *key)
{
	assert_int_equal(index_reserve(x), 0);
	index_add(x, stored_new(key));
}

static void listings_are_in_the_order_of_keys(void **state)
{
	struct index none = { 0 };
	struct names names;
	struct tree t;

	(void)state;
	assert_int_equal(tree_init(&t), 0);
	add(&t, TREE_ROOT, "a/ a-b a.txt a0 b");
	add(&t, tree_find(&t, "a"), "x y/");
	add(&t, tree_find(&t, "a/y"), "z");
	assert_int_equal(names_init(&names, &t), 0);
	check_listings(&names, &none);
	assert_int_equal(names_find(&names, "a/y/z"), tree_find(&t, "a/y/z"));
	assert_int_equal(names_find(&names, "a"), TREE_NONE);
	assert_int_equal(names_find(&names, "a/../b"), TREE_NONE);
	assert_int_equal(names_find(&names, "./b"), TREE_NONE);
	names_fini(&names);
	tree_fini(&t);
}

static void what_was_put_is_listed_among_them(void **state)
{
	static const char *const keys[] = { "b",   "a/y/z", "a.txt",
					    "a-b", "a0",    "a/x" };
	struct index x = { 0 };
	struct names names;
	struct tree t;

	(void)state;
	assert_int_equal(tree_init(&t), 0);
	assert_int_equal(names_init(&names, &t), 0);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		put(&x, keys[i]);
	put(&x, "b"); /* again */
	assert_int_equal(x.n, ARRAY_SIZE(keys));
	check_listings(&names, &x);
	names_fini(&names);
	tree_fini(&t);

	assert_int_equal(tree_init(&t), 0);
	add(&t, TREE_ROOT, "a/ a0");
	add(&t, tree_find(&t, "a"), "x");
	assert_int_equal(names_init(&names, &t), 0);
	index_remove(&x, "a0");
	index_remove(&x, "a/x");
	index_remove(&x, "a/xx");
	assert_null(index_find(&x, "a0"));
	check_listings(&names, &x);
	names_fini(&names);
	tree_fini(&t);
	index_fini(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples_of_aws_hold),
		cmocka_unit_test(a_change_breaks_the_signature),
		cmocka_unit_test(signatures_expire),
		cmocka_unit_test(targets_are_decoded),
		cmocka_unit_test(hosts_are_names),
		cmocka_unit_test(conditions_hold),
		cmocka_unit_test(ranges_are_of_bytes),
		cmocka_unit_test(keys_are_pairs),
		cmocka_unit_test(listings_are_in_the_order_of_keys),
		cmocka_unit_test(what_was_put_is_listed_among_them),
	};
	struct err err = { 0 };

	return seal_init(&err) < 0 ? 1
				   : cmocka_run_group_tests(tests, NULL, NULL);
}
