/* SPDX-License-Identifier: MIT */
/*
 * The format of a connection, and how received bytes become messages again.
 *
 *	greeting	first, by each end: the dialer, then the listener
 *		8	"gpemunet"
 *		u32	FRAME_VERSION
 *		32	nonce (net/seal.h)
 *	frame		then any number
 *		u32	length of the rest, FRAME_LEAST or more
 *		...	the message, sealed; its last SEAL_TAG bytes are the tag
 *	or a parcel (net/parcel.h), where one is expected
 *
 * Numbers are little-endian. No received byte is trusted: a length is
 * checked before memory is allocated for it.
 */
#ifndef GPEMU_NET_FRAME_H
#define GPEMU_NET_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "net/seal.h"

enum {
	FRAME_VERSION = 1,
	FRAME_GREETING = 8 + 4 + SEAL_NONCE,
	FRAME_HEADER = 4,
	FRAME_LEAST = SEAL_TAG + 1, /* a message has at least one byte */
};

void frame_greet(uint32_t version, unsigned char ret[FRAME_GREETING]);
/* -EBADMSG: not a greeting; -EPROTONOSUPPORT: of a different version, in
 * *ret_version. */
int frame_check_greeting(const unsigned char bytes[FRAME_GREETING],
			 uint32_t *ret_version);

/* Received bytes. All zero: empty. */
struct frame_in {
	unsigned char *bytes;
	size_t at, have, room; /* bytes [at, have) are not taken yet */
	size_t most; /* of a message, set by the owner; 0: no frames yet */
};

void frame_in_fini(struct frame_in *in);
/* Space for the next *ret_n bytes, at least one. NULL: no memory. Once frames
 * are allowed, call it only after frame_next returned 0. */
unsigned char *frame_space(struct frame_in *in, size_t *ret_n);
/* `n` bytes were put there. */
void frame_add(struct frame_in *in, size_t n);
/* The next `n` bytes, outside of frames; NULL: there are fewer. */
const unsigned char *frame_take(struct frame_in *in, size_t n);
/* The next frame has *ret_n bytes behind its header.
 * 1; 0: the header is incomplete; -EMSGSIZE as frame_next. */
int frame_begun(const struct frame_in *in, size_t *ret_n);
/* The next frame with its header, valid until frame_space. 1; 0: it is
 * incomplete; -EMSGSIZE: its message has more than in->most bytes, or none. */
int frame_next(struct frame_in *in, unsigned char **ret, size_t *ret_n);
/* Has a frame begun that is incomplete? */
static inline int frame_is_partial(const struct frame_in *in)
{
	return in->have > in->at;
}

#endif
