/* SPDX-License-Identifier: MIT */
/*
 * What an unknown client sends to gpemu-s3: a target, then lines of headers;
 * and a file of keys. Its signature is checked, its range and conditions are
 * taken, and the XML of its path is written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/percent.h"
#include "net/seal.h"
#include "s3/proto/conditions.h"
#include "s3/proto/sigv4.h"
#include "s3/proto/xml.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_HEADERS = 32 };

/* "name: value" lines, cut in place. */
static size_t split(char *at, struct sigv4_header v[MOST_HEADERS])
{
	char *save, *line = strtok_r(at, "\n", &save);
	size_t n = 0;

	for (; line && n < MOST_HEADERS; line = strtok_r(NULL, "\n", &save)) {
		char *colon = strchr(line, ':');

		if (!colon)
			continue;
		*colon = 0;
		v[n++] = (struct sigv4_header){ line, colon + 1 };
	}
	return n;
}

static void check_range(const struct sigv4_request *r)
{
	const struct conditions c = {
		.match = sigv4_header(r, "If-Match"),
		.none_match = sigv4_header(r, "If-None-Match"),
		.modified_since = sigv4_header(r, "If-Modified-Since"),
		.unmodified_since = sigv4_header(r, "If-Unmodified-Since"),
		.range = sigv4_header(r, "Range"),
		.if_range = sigv4_header(r, "If-Range"),
	};
	const struct conditions_file file = { "\"etag-1\"", 1369353600, 1000 };
	uint64_t from, end;
	bool part;

	conditions_check(&c, &file);
	if (conditions_range(&c, &file, &from, &end, &part) == FAILURE_NONE)
		PROMISED(from < end && end <= 1000);
}

static void write_text(const char *path)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return;
	xml_element(f, "Key", path);
	fclose(f);
	PROMISED(!strpbrk(text + 5, ">") || strstr(text, "</Key>"));
	free(text);
}

/* Whatever is decoded is the same when it is encoded and decoded again. */
static void check_target(const struct target *t)
{
	char *text = percent_encoded(t->path, false);
	struct target again;

	if (!text)
		return;
	PROMISED(target_parse(text, &again) == 0);
	PROMISED(!strcmp(again.path, t->path) && !again.n_args);
	target_fini(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct key key = { (char *)"AKIAIOSFODNN7EXAMPLE", (char *)"secret" };
	struct keys keys = { &key, 1 }, others = { 0 };
	struct sigv4_header headers[MOST_HEADERS];
	struct err err = { 0 };
	char *text = malloc(n + 1), *rest;
	struct target t;

	if (!text || seal_init(&err) < 0)
		return 0;
	memcpy(text, data, n);
	keys_parse(text, n, "keys", &others, &err);
	keys_fini(&others);
	memcpy(text, data, n);
	text[n] = 0;
	rest = strchr(text, '\n');
	if (rest)
		*rest++ = 0;
	if (target_parse(text, &t) == 0) {
		struct sigv4_request r = { "GET", &t, headers,
					   rest ? split(rest, headers) : 0 };

		/* nobody guesses a signature */
		PROMISED(sigv4_check(&r, &keys, "us-east-1", 1369353600, NULL,
				     &err) != FAILURE_NONE);
		check_range(&r);
		check_target(&t);
		write_text(t.path);
	}
	target_fini(&t);
	free(text);
	return 0;
}
