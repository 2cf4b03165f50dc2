/* SPDX-License-Identifier: MIT */
#include "net/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "net/wire.h"

static const char magic[8] = "gpemunet";

/* arbitrary: a few hundred requests in one system call */
enum { LEAST_ROOM = 16 << 10 };

void frame_greet(uint32_t version, unsigned char ret[FRAME_GREETING])
{
	memcpy(ret, magic, sizeof(magic));
	seal_nonce(wire_put(ret + sizeof(magic), version, 4));
}

int frame_check_greeting(const unsigned char bytes[FRAME_GREETING],
			 uint32_t *ret_version)
{
	struct wire w = { .at = bytes, .left = FRAME_GREETING };

	if (memcmp(wire_bytes(&w, sizeof(magic)), magic, sizeof(magic)) != 0)
		return -EBADMSG;
	*ret_version = (uint32_t)wire_get(&w, 4);
	return *ret_version == FRAME_VERSION ? 0 : -EPROTONOSUPPORT;
}

void frame_in_fini(struct frame_in *in)
{
	free(in->bytes);
	*in = (struct frame_in){ 0 };
}

static size_t length(const struct frame_in *in)
{
	struct wire w = { .at = in->bytes + in->at, .left = FRAME_HEADER };

	return wire_get(&w, FRAME_HEADER);
}

static bool has_length(const struct frame_in *in)
{
	return in->have - in->at >= FRAME_HEADER;
}

unsigned char *frame_space(struct frame_in *in, size_t *ret_n)
{
	size_t want = LEAST_ROOM;

	if (in->at)
		memmove(in->bytes, in->bytes + in->at, in->have - in->at);
	in->have -= in->at;
	in->at = 0;
	if (in->most && has_length(in))
		want = MAX(want, FRAME_HEADER + length(in));
	if (want > in->room) {
		unsigned char *more = realloc(in->bytes, want);

		if (!more)
			return NULL;
		in->bytes = more;
		in->room = want;
	}
	*ret_n = in->room - in->have;
	return in->bytes + in->have;
}

void frame_add(struct frame_in *in, size_t n)
{
	in->have += n;
}

const unsigned char *frame_take(struct frame_in *in, size_t n)
{
	const unsigned char *at = in->bytes + in->at;

	if (in->have - in->at < n)
		return NULL;
	in->at += n;
	return at;
}

int frame_begun(const struct frame_in *in, size_t *ret_n)
{
	if (!has_length(in))
		return 0;
	*ret_n = length(in);
	if (*ret_n < FRAME_LEAST || *ret_n > in->most + SEAL_TAG)
		return -EMSGSIZE;
	return 1;
}

int frame_next(struct frame_in *in, unsigned char **ret, size_t *ret_n)
{
	size_t n;
	int r = frame_begun(in, &n);

	if (r != 1)
		return r;
	if (in->have - in->at < FRAME_HEADER + n)
		return 0;
	*ret = in->bytes + in->at;
	*ret_n = FRAME_HEADER + n;
	in->at += *ret_n;
	return 1;
}
