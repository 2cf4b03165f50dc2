/* SPDX-License-Identifier: MIT */
#include "s3/store/place.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 200 };

bool place_is_path(const char *key)
{
	for (const char *at = key;; at++) {
		size_t n = strcspn(at, "/");

		if (!n || n > NAME_MAX || (n == 1 && at[0] == '.') ||
		    (n == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		/* the folder of the server itself, and of a mount */
		if (at == key && n == strlen(TREE_CONTROL_NAME) &&
		    !strncmp(at, TREE_CONTROL_NAME, n))
			return false;
		at += n;
		if (!*at)
			return true;
	}
}

bool place_leads(const char *path, bool odd)
{
	const char *slash = strrchr(path, '/');

	if (!odd)
		return strlen(path) < NAMES_MOST;
	/* a piece is 200 bytes of at most three times as many as keys have */
	return strlen(slash ? slash + 1 : path) > PIECE &&
	       strlen(path) < sizeof(PLACE_ODD) + 4 * NAMES_MOST;
}

static bool is_plain(char c)
{
	return c && !strchr("%/+.", c);
}

char *place_odd(const char *key)
{
	char *path = NULL;
	size_t bytes, n = 0;
	FILE *f = open_memstream(&path, &bytes);

	if (!f)
		return NULL;
	fputs(PLACE_ODD "/", f);
	for (; *key; key++) {
		if (n >= PIECE) {
			fputs("+/", f);
			n = 0;
		}
		if (is_plain(*key))
			n += (size_t)fprintf(f, "%c", *key);
		else
			n += (size_t)fprintf(f, "%%%02X", (unsigned char)*key);
	}
	return fclose(f) == 0 ? path : NULL;
}

static int digit(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool place_key(const char *path, bool odd, char ret[NAMES_MOST + 1])
{
	size_t n = 0;

	if (odd)
		path += sizeof(PLACE_ODD);
	for (; *path && n < NAMES_MOST; path++) {
		int high, low;

		if (odd && !strncmp(path, "+/", 2)) {
			path++;
			continue;
		}
		ret[n++] = *path;
		if (!odd || is_plain(*path))
			continue;
		high = *path == '%' ? digit(path[1]) : -1;
		low = high >= 0 ? digit(path[2]) : -1;
		if (low < 0 || !(high | low))
			return false;
		ret[n - 1] = (char)(high << 4 | low);
		path += 2;
	}
	ret[n] = 0;
	return !*path && n;
}
