/* SPDX-License-Identifier: MIT */
#include "s3/proto/chunked.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"

void chunked_init(struct chunked *c)
{
	c->state = CHUNKED_SIZE;
	c->n_line = 0;
	c->signature[0] = 0;
	sha256_init(&c->hash);
}

bool chunked_is_whole(const struct chunked *c)
{
	return c->state == CHUNKED_END;
}

/* Of the chunk, or of the trailer, that is complete. */
static enum failure check_chunk(struct chunked *c, bool trailer)
{
	unsigned char hash[SHA256_DIGEST_SIZE];

	sha256_digest(&c->hash, sizeof(hash), hash); /* begins anew */
	if (!c->is_signed)
		return FAILURE_NONE;
	return sigv4_check_chunk(&c->seed, trailer, hash, c->signature)
		       ? FAILURE_NONE
		       : FAILURE_SIGNATURE;
}

/* --- lines -------------------------------------------------------------- */

static enum failure begin_chunk(struct chunked *c)
{
	static const char word[] = "chunk-signature=";
	char *end, *semicolon = strchr(c->line, ';');

	c->signature[0] = 0;
	if (semicolon) {
		*semicolon++ = 0;
		semicolon += strspn(semicolon, " ");
		if (strncmp(semicolon, word, sizeof(word) - 1) == 0 &&
		    strlen(semicolon) == sizeof(word) - 1 + SIGV4_HEX)
			strcpy(c->signature, semicolon + sizeof(word) - 1);
	}
	errno = 0;
	c->left = strtoull(c->line, &end, 16);
	if (!isxdigit((unsigned char)c->line[0]) || *end || errno ||
	    (c->line[0] == '0' && tolower((unsigned char)c->line[1]) == 'x'))
		return FAILURE_INCOMPLETE;
	c->state = CHUNKED_BYTES;
	if (c->left)
		return FAILURE_NONE;
	c->state = c->has_trailer ? CHUNKED_TRAILER : CHUNKED_LAST;
	return check_chunk(c, false);
}

static enum failure add_trailer(struct chunked *c)
{
	char *colon = strchr(c->line, ':'), *value;

	if (!c->line[0]) {
		c->state = CHUNKED_END;
		return check_chunk(c, true);
	}
	if (!colon || colon == c->line)
		return FAILURE_MALFORMED_TRAILER;
	*colon = 0;
	value = util_trim(colon + 1);
	for (char *p = c->line; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	if (!strcmp(c->line, "x-amz-trailer-signature")) {
		snprintf(c->signature, sizeof(c->signature), "%s", value);
		return FAILURE_NONE;
	}
	sha256_update(&c->hash, strlen(c->line), (const uint8_t *)c->line);
	sha256_update(&c->hash, 1, (const uint8_t *)":");
	sha256_update(&c->hash, strlen(value), (const uint8_t *)value);
	sha256_update(&c->hash, 1, (const uint8_t *)"\n");
	if (c->trailer)
		c->trailer(c->ctx, c->line, value);
	return FAILURE_NONE;
}

static enum failure end_line(struct chunked *c)
{
	if (c->n_line && c->line[c->n_line - 1] == '\r')
		c->n_line--;
	c->line[c->n_line] = 0;
	if (strlen(c->line) != c->n_line)
		return FAILURE_INCOMPLETE;
	c->n_line = 0;
	switch (c->state) {
	case CHUNKED_SIZE: return begin_chunk(c);
	case CHUNKED_TRAILER: return add_trailer(c);
	case CHUNKED_NEWLINE: c->state = CHUNKED_SIZE; break;
	default: c->state = CHUNKED_END; break;
	}
	return c->line[0] ? FAILURE_INCOMPLETE : FAILURE_NONE;
}

/* --- bytes -------------------------------------------------------------- */

static size_t add_bytes(struct chunked *c, const char *bytes, size_t n,
			enum failure *ret)
{
	n = MIN(n, c->left);
	if (c->is_signed)
		sha256_update(&c->hash, n, (const uint8_t *)bytes);
	c->take(c->ctx, bytes, n);
	c->left -= n;
	if (!c->left) {
		c->state = CHUNKED_NEWLINE;
		*ret = check_chunk(c, false);
	}
	return n;
}

enum failure chunked_add(struct chunked *c, const char *bytes, size_t n)
{
	enum failure f = FAILURE_NONE;

	while (n && f == FAILURE_NONE) {
		size_t used = 1;

		if (c->state == CHUNKED_END)
			return FAILURE_INCOMPLETE; /* more than all of it */
		if (c->state == CHUNKED_BYTES)
			used = add_bytes(c, bytes, n, &f);
		else if (*bytes == '\n')
			f = end_line(c);
		else if (c->n_line + 1 < sizeof(c->line))
			c->line[c->n_line++] = *bytes;
		else
			return FAILURE_INCOMPLETE;
		bytes += used;
		n -= used;
	}
	return f;
}
