/* SPDX-License-Identifier: MIT */
/*
 * What a client that may write sends to gpemu-s3: a body in chunks, in pieces
 * of any size; the XML of DeleteObjects and CompleteMultipartUpload; headers of
 * an object; keys. The first byte is the size of the pieces.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "net/seal.h"
#include "s3/proto/checksum.h"
#include "s3/proto/chunked.h"
#include "s3/proto/elements.h"
#include "s3/proto/metadata.h"
#include "s3/store/place.h"
#include "tests/fuzz/fuzz.h"

struct taken {
	size_t n;
	struct checksum sum;
};

static void take(void *ctx, const char *bytes, size_t n)
{
	struct taken *t = ctx;

	t->n += n;
	checksum_add(&t->sum, bytes, n);
}

static void take_trailer(void *ctx, const char *name, const char *value)
{
	(void)ctx;
	PROMISED(*name && !strpbrk(name, ":\n") && !strchr(value, '\n'));
}

static enum failure decode(const char *text, size_t n, size_t piece,
			   bool is_signed, char ret[CHECKSUM_TEXT])
{
	struct taken t = { .n = 0 };
	struct chunked c = { .is_signed = is_signed,
			     .has_trailer = n & 1,
			     .seed = { .date = "20130524T000000Z" },
			     .take = take,
			     .trailer = take_trailer,
			     .ctx = &t };
	enum failure f = FAILURE_NONE;

	checksum_init(&t.sum, CHECKSUM_CRC32C);
	chunked_init(&c);
	for (size_t at = 0; f == FAILURE_NONE && at < n; at += piece)
		f = chunked_add(&c, text + at, MIN(piece, n - at));
	PROMISED(t.n <= n);
	/* nobody guesses a signature */
	PROMISED(!is_signed || f || !chunked_is_whole(&c));
	checksum_end(&t.sum, ret);
	return f;
}

static void check_chunks(const char *text, size_t n, size_t piece)
{
	char one[CHECKSUM_TEXT], other[CHECKSUM_TEXT];
	enum failure f = decode(text, n, piece, false, one);

	/* whatever pieces it comes in */
	PROMISED(decode(text, n, n ? n : 1, false, other) == f);
	PROMISED(f || !strcmp(one, other));
	decode(text, n, piece, true, one);
}

static bool count(void *ctx, const char *path, const char *text)
{
	PROMISED(*path && strlen(path) < ELEMENTS_PATH);
	*(size_t *)ctx += strlen(text) + 1;
	return true;
}

static void check_elements(const char *text, size_t n)
{
	char *copy = malloc(n ? n : 1);
	size_t all = 0;

	memcpy(copy, text, n);
	if (elements_read(copy, n, count, &all))
		PROMISED(all <= n);
	free(copy);
}

static void check_metadata(const char *text)
{
	char name[METADATA_LINE], value[METADATA_LINE], *kept = NULL;
	const char *colon = strchr(text, ':'), *at;
	struct sigv4_header h = { NULL, colon ? colon + 1 : text };
	const struct sigv4_request r = { .headers = &h, .n_headers = 1 };

	h.name = colon ? strndup(text, (size_t)(colon - text)) : strdup("");
	if (metadata_read(&r, &kept) == FAILURE_NONE) {
		PROMISED(strlen(kept) <= METADATA_MOST);
		for (at = kept; metadata_next(&at, name, value);)
			;
		PROMISED(!*at || strchr(h.name, '\n'));
	}
	free(kept);
	free((char *)h.name);
}

static void check_place(const char *key)
{
	char again[NAMES_MOST + 1], *path;

	if (!*key || strlen(key) > NAMES_MOST)
		return;
	path = place_odd(key);
	PROMISED(!strstr(path, "/../") && !strstr(path, "//"));
	PROMISED(place_key(path, true, again) && !strcmp(again, key));
	free(path);
	if (place_is_path(key))
		PROMISED(place_key(key, false, again) && !strcmp(again, key));
	place_key(key, false, again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct err err = { 0 };
	char *text;

	if (!n || seal_init(&err) < 0)
		return 0;
	text = malloc(n);
	memcpy(text, data + 1, n - 1);
	text[n - 1] = 0;
	check_chunks(text, n - 1, data[0] + 1u);
	check_elements(text, n - 1);
	check_metadata(text);
	check_place(text);
	free(text);
	return 0;
}
