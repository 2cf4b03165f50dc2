/* SPDX-License-Identifier: MIT */
/* What gRPC adds to HTTP/2: the prefix of a message, the text of a status.
 * Pure. */
#ifndef GPEMU_PLATFORM_GRPC_GRPC_FRAME_H
#define GPEMU_PLATFORM_GRPC_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* A byte that is 1 if the message is compressed, and its length, big
	 * endian */
	GRPC_PREFIX = 5,
	/* Bytes of a status text. arbitrary: a line */
	GRPC_TEXT = 512,
};

/* A message that arrives in pieces. */
struct grpc_inbox {
	uint8_t prefix[GRPC_PREFIX];
	size_t n_prefix;
	uint8_t *bytes; /* NULL: none yet */
	size_t n, size, most;
};

void grpc_inbox_init(struct grpc_inbox *in, size_t most);
void grpc_inbox_fini(struct grpc_inbox *in);
/*
 * -EMSGSIZE: the message is larger than `most`; -EBADMSG: it is compressed, or
 * there is more than one; -ENOMEM. Memory is taken as the bytes arrive, not as
 * the prefix promises.
 */
int grpc_inbox_add(struct grpc_inbox *in, const uint8_t *data, size_t n);
/* Is the message complete? */
bool grpc_inbox_whole(const struct grpc_inbox *in);

/* The prefix of a message of `n` bytes. */
void grpc_prefix(uint8_t ret[GRPC_PREFIX], size_t n);

/* Percent-encode a status text, as much of it as there is room for. */
void grpc_text_encode(const char *text, char ret[GRPC_TEXT]);
/* Decode; unprintable bytes become '?'. */
void grpc_text_decode(const uint8_t *text, size_t n, char ret[GRPC_TEXT]);

#endif
