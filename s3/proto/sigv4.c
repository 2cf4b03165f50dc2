/* SPDX-License-Identifier: MIT */
#include "s3/proto/sigv4.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/percent.h"
#include "common/util.h"

#define ALGORITHM "AWS4-HMAC-SHA256"

enum {
	SKEW_S = 15 * 60,
	MOST_EXPIRES_S = 7 * 24 * 3600,
	HASH = SIGV4_KEY,
	HEX = SIGV4_HEX,
	DATE = sizeof("20130524T000000Z") - 1,
	DAY = sizeof("20130524") - 1,
};

/* What the request claims; points into it, or into `own`. */
struct claim {
	char *own;
	const char *id, *day, *region, *service, *end; /* the credential */
	const char *names, *signature, *date;
	bool presigned;
	int64_t time, expires_s;
};

const char *sigv4_header(const struct sigv4_request *r, const char *name)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (!strcasecmp(r->headers[i].name, name))
			return r->headers[i].value;
	return NULL;
}

bool sigv4_is_signed(const struct sigv4_request *r)
{
	return sigv4_header(r, "Authorization") ||
	       target_arg(r->target, "X-Amz-Algorithm") ||
	       target_arg(r->target, "Signature");
}

/* --- the claim ---------------------------------------------------------- */

/* "20130524T000000Z" in s since 1970; -1: it is none. */
static int64_t time_of(const char *date)
{
	struct tm tm = { 0 };
	const char *end = strlen(date) == DATE
				  ? strptime(date, "%Y%m%dT%H%M%SZ", &tm)
				  : NULL;

	return end && !*end ? (int64_t)timegm(&tm) : -1;
}

/* "ID/day/region/s3/aws4_request", which is cut at its slashes. */
static bool parse_credential(char *text, struct claim *c)
{
	const char **parts[] = { &c->id, &c->day, &c->region, &c->service,
				 &c->end };
	char *save, *word = strtok_r(text, "/", &save);
	size_t i = 0;

	for (; word && i < ARRAY_SIZE(parts); word = strtok_r(NULL, "/", &save))
		*parts[i++] = word;
	return !word && i == ARRAY_SIZE(parts) && !strcmp(c->service, "s3") &&
	       !strcmp(c->end, "aws4_request");
}

static bool parse_header(const char *value, struct claim *c)
{
	char *credential = NULL, *save, *word;

	value += sizeof(ALGORITHM) - 1;
	c->own = strdup(value);
	for (word = c->own ? strtok_r(c->own, ", ", &save) : NULL; word;
	     word = strtok_r(NULL, ", ", &save)) {
		char *equals = strchr(word, '=');

		if (!equals)
			return false;
		*equals = 0;
		if (!strcmp(word, "Credential"))
			credential = equals + 1;
		else if (!strcmp(word, "SignedHeaders"))
			c->names = equals + 1;
		else if (!strcmp(word, "Signature"))
			c->signature = equals + 1;
	}
	return credential && c->names && c->signature &&
	       parse_credential(credential, c);
}

static enum failure claim_of_header(const struct sigv4_request *r,
				    struct claim *c, struct err *err)
{
	const char *value = sigv4_header(r, "Authorization");

	if (strncmp(value, ALGORITHM " ", sizeof(ALGORITHM)) != 0) {
		err_set(err, -EINVAL,
			"The authorization mechanism is not supported. "
			"Use " ALGORITHM ".");
		return FAILURE_INVALID_REQUEST;
	}
	if (!parse_header(value, c))
		return FAILURE_BAD_AUTHORIZATION;
	c->date = sigv4_header(r, "x-amz-date");
	c->time = c->date ? time_of(c->date) : -1;
	if (c->time < 0) {
		err_set(err, -EINVAL, "A valid x-amz-date is required.");
		return FAILURE_ACCESS_DENIED;
	}
	return FAILURE_NONE;
}

static enum failure claim_of_query(const struct sigv4_request *r,
				   struct claim *c)
{
	const char *algorithm = target_arg(r->target, "X-Amz-Algorithm");
	const char *credential = target_arg(r->target, "X-Amz-Credential");
	const char *expires = target_arg(r->target, "X-Amz-Expires");
	char *end;

	c->presigned = true;
	c->names = target_arg(r->target, "X-Amz-SignedHeaders");
	c->signature = target_arg(r->target, "X-Amz-Signature");
	c->date = target_arg(r->target, "X-Amz-Date");
	if (!algorithm || strcmp(algorithm, ALGORITHM) || !credential ||
	    !expires || !c->names || !c->signature || !c->date)
		return FAILURE_BAD_QUERY_AUTHORIZATION;
	c->own = strdup(credential);
	c->time = time_of(c->date);
	errno = 0;
	c->expires_s = strtol(expires, &end, 10);
	if (!c->own || !parse_credential(c->own, c) || c->time < 0 || *end ||
	    errno || c->expires_s < 1 || c->expires_s > MOST_EXPIRES_S)
		return FAILURE_BAD_QUERY_AUTHORIZATION;
	return FAILURE_NONE;
}

/* --- the canonical request ---------------------------------------------- */

static void add_text(crypto_hash_sha256_state *h, const char *s)
{
	crypto_hash_sha256_update(h, (const unsigned char *)s, strlen(s));
}

static void add_encoded(crypto_hash_sha256_state *h, const char *s,
			bool slashes)
{
	_cleanup_free_ char *text = percent_encoded(s, slashes);

	add_text(h, text ? text : "\n"); /* no memory: it matches nothing */
}

/* By the encoded names, then values: encoding keeps the order of bytes but for
 * those beyond the unreserved ones. */
static int compare_args(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *arg_text(const struct target_arg *a)
{
	_cleanup_free_ char *name = percent_encoded(a->name, true);
	_cleanup_free_ char *value = percent_encoded(a->value, true);
	char *text;

	return name && value && asprintf(&text, "%s=%s", name, value) >= 0
		       ? text
		       : NULL;
}

static void add_query(crypto_hash_sha256_state *h, const struct target *t)
{
	_cleanup_free_ char **texts = calloc(t->n_args + 1, sizeof(*texts));
	size_t n = 0;

	for (size_t i = 0; texts && i < t->n_args; i++) {
		if (!strcmp(t->args[i].name, "X-Amz-Signature"))
			continue;
		texts[n] = arg_text(&t->args[i]);
		if (!texts[n++])
			texts[n - 1] = strdup("");
	}
	if (texts)
		qsort(texts, n, sizeof(*texts), compare_args);
	for (size_t i = 0; i < n; i++) {
		if (i)
			add_text(h, "&");
		add_text(h, texts[i] ? texts[i] : "");
		free(texts[i]);
	}
}

/* Without spaces around it, and one for each run of them. */
static void add_trimmed(crypto_hash_sha256_state *h, const char *s)
{
	s += strspn(s, " \t");
	while (*s) {
		size_t n = strcspn(s, " \t");

		crypto_hash_sha256_update(h, (const unsigned char *)s, n);
		s += n;
		s += strspn(s, " \t");
		if (*s)
			add_text(h, " ");
	}
}

static bool add_header(crypto_hash_sha256_state *h,
		       const struct sigv4_request *r, const char *name)
{
	bool found = false;

	add_text(h, name);
	for (size_t i = 0; i < r->n_headers; i++) {
		if (strcasecmp(r->headers[i].name, name) != 0)
			continue;
		add_text(h, found ? "," : ":");
		add_trimmed(h, r->headers[i].value);
		found = true;
	}
	add_text(h, "\n");
	return found;
}

/* Is `name` one of the words with semicolons between them? */
static bool is_signed(const char *names, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = names; *at;) {
		size_t word = strcspn(at, ";");

		if (word == n && !strncasecmp(at, name, n))
			return true;
		at += at[word] ? word + 1 : word;
	}
	return false;
}

static bool add_headers(crypto_hash_sha256_state *h,
			const struct sigv4_request *r, const char *names)
{
	_cleanup_free_ char *copy = strdup(names);
	char *save, *word = copy ? strtok_r(copy, ";", &save) : NULL;
	bool all = is_signed(names, "host");

	for (; word; word = strtok_r(NULL, ";", &save))
		all = add_header(h, r, word) && all;
	/* what changes the meaning of a request must be signed, too */
	for (size_t i = 0; i < r->n_headers; i++)
		if (!strncasecmp(r->headers[i].name, "x-amz-", 6))
			all = all && is_signed(names, r->headers[i].name);
	return all;
}

/* Hash the canonical request; false: something is not signed. */
static bool hash_request(const struct sigv4_request *r, const struct claim *c,
			 char ret[HEX + 1])
{
	const char *content =
		c->presigned ? NULL : sigv4_header(r, "x-amz-content-sha256");
	unsigned char hash[HASH];
	crypto_hash_sha256_state h;
	bool all;

	crypto_hash_sha256_init(&h);
	add_text(&h, r->method);
	add_text(&h, "\n");
	add_encoded(&h, r->target->path, false);
	add_text(&h, "\n");
	add_query(&h, r->target);
	add_text(&h, "\n");
	all = add_headers(&h, r, c->names);
	add_text(&h, "\n");
	add_text(&h, c->names);
	add_text(&h, "\n");
	add_text(&h, content ? content : "UNSIGNED-PAYLOAD");
	crypto_hash_sha256_final(&h, hash);
	sodium_bin2hex(ret, HEX + 1, hash, HASH);
	return all;
}

/* --- the signature ------------------------------------------------------ */

static void hmac(const unsigned char *key, size_t n_key, const char *text,
		 unsigned char ret[HASH])
{
	crypto_auth_hmacsha256_state h;

	crypto_auth_hmacsha256_init(&h, key, n_key);
	crypto_auth_hmacsha256_update(&h, (const unsigned char *)text,
				      strlen(text));
	crypto_auth_hmacsha256_final(&h, ret);
}

/* false: no memory. */
static bool make_key(const struct claim *c, const char *secret,
		     unsigned char key[HASH])
{
	_cleanup_free_ char *start = NULL;

	start = util_text("AWS4%s", secret);
	if (!start)
		return false;
	hmac((unsigned char *)start, strlen(start), c->day, key);
	sodium_memzero(start, strlen(start));
	hmac(key, HASH, c->region, key);
	hmac(key, HASH, c->service, key);
	hmac(key, HASH, c->end, key);
	return true;
}

/* false: no memory, or names that are too long. */
static bool make_seed(const struct claim *c, const char *secret,
		      struct sigv4_seed *ret)
{
	int n = snprintf(ret->scope, sizeof(ret->scope), "%s/%s/%s/%s", c->day,
			 c->region, c->service, c->end);

	snprintf(ret->date, sizeof(ret->date), "%s", c->date);
	return n < (int)sizeof(ret->scope) && make_key(c, secret, ret->key);
}

/* The signature of a text whose first line is `what`. */
static bool sign(struct sigv4_seed *seed, const char *what, const char *rest)
{
	_cleanup_free_ char *text = NULL;
	unsigned char code[HASH];

	text = util_text("%s\n%s\n%s\n%s", what, seed->date, seed->scope, rest);
	if (!text)
		return false;
	hmac(seed->key, HASH, text, code);
	sodium_bin2hex(seed->signature, HEX + 1, code, HASH);
	return true;
}

static bool matches(const char *expected, const char *given)
{
	return strlen(given) == HEX && sodium_memcmp(expected, given, HEX) == 0;
}

bool sigv4_check_chunk(struct sigv4_seed *seed, bool trailer,
		       const unsigned char hash[SIGV4_KEY],
		       const char *signature)
{
	/* of no bytes */
	static const char none[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649"
				   "b934ca495991b7852b855\n";
	char hex[HEX + 1], rest[3 * HEX + 3];

	sodium_bin2hex(hex, sizeof(hex), hash, HASH);
	snprintf(rest, sizeof(rest), "%s\n%s%s", seed->signature,
		 trailer ? "" : none, hex);
	return sign(seed, trailer ? ALGORITHM "-TRAILER" : ALGORITHM "-PAYLOAD",
		    rest) &&
	       matches(seed->signature, signature);
}

/* --- all of it ---------------------------------------------------------- */

static enum failure check_time(const struct claim *c, int64_t now)
{
	if (c->time - now > SKEW_S)
		return c->presigned ? FAILURE_ACCESS_DENIED : FAILURE_SKEWED;
	if (!c->presigned)
		return now - c->time > SKEW_S ? FAILURE_SKEWED : FAILURE_NONE;
	return now - c->time > c->expires_s ? FAILURE_EXPIRED : FAILURE_NONE;
}

static enum failure check_claim(const struct sigv4_request *r,
				const struct claim *c, const struct keys *keys,
				const char *region, struct sigv4_seed *seed,
				struct err *err)
{
	const char *secret = keys_find(keys, c->id);
	char hash[HEX + 1];

	if (strncmp(c->date, c->day, DAY) != 0 || strlen(c->day) != DAY)
		return FAILURE_BAD_AUTHORIZATION;
	if (strcmp(c->region, region) != 0) {
		err_set(err, -EINVAL,
			"The region '%.64s' is wrong; expecting '%s'.",
			c->region, region);
		return FAILURE_BAD_AUTHORIZATION;
	}
	if (!secret)
		return FAILURE_INVALID_ACCESS_KEY;
	if (!c->presigned && !sigv4_header(r, "x-amz-content-sha256")) {
		err_set(err, -EINVAL, "x-amz-content-sha256 is required.");
		return FAILURE_INVALID_REQUEST;
	}
	if (!hash_request(r, c, hash)) {
		err_set(err, -EACCES,
			"Headers are not signed that must be: host, and all "
			"that begin with x-amz-.");
		return FAILURE_ACCESS_DENIED;
	}
	return make_seed(c, secret, seed) && sign(seed, ALGORITHM, hash) &&
			       matches(seed->signature, c->signature)
		       ? FAILURE_NONE
		       : FAILURE_SIGNATURE;
}

enum failure sigv4_check(const struct sigv4_request *r, const struct keys *keys,
			 const char *region, int64_t now,
			 struct sigv4_seed *ret_seed, struct err *err)
{
	struct sigv4_seed seed = { .signature = "" };
	struct claim c = { 0 };
	enum failure f;

	/* one in the query is not signed: it must not change what the header,
	 * which is, says of the body */
	if (sigv4_header(r, "Authorization") &&
	    (target_arg(r->target, "X-Amz-Algorithm") ||
	     target_arg(r->target, "X-Amz-Signature")))
		f = FAILURE_INVALID_ARGUMENT;
	else if (sigv4_header(r, "Authorization"))
		f = claim_of_header(r, &c, err);
	else if (target_arg(r->target, "X-Amz-Algorithm"))
		f = claim_of_query(r, &c);
	else
		f = FAILURE_ACCESS_DENIED;
	if (f == FAILURE_NONE &&
	    (sigv4_header(r, "x-amz-security-token") ||
	     target_arg(r->target, "X-Amz-Security-Token")))
		f = FAILURE_BAD_TOKEN;
	if (f == FAILURE_NONE)
		f = check_claim(r, &c, keys, region, &seed, err);
	if (f == FAILURE_NONE)
		f = check_time(&c, now);
	if (f == FAILURE_NONE && ret_seed)
		*ret_seed = seed;
	sodium_memzero(&seed, sizeof(seed));
	free(c.own);
	return f;
}
