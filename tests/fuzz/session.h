/* SPDX-License-Identifier: MIT */
/*
 * Whole sessions with a node that runs, over sockets: an input is steps, each a
 * byte that says how, the length of a message in two bytes, and the message.
 * They go over a few connections with the node's key, as from a node that may
 * say anything. After them the node must end every connection that the target
 * leaves, and welcome a new one. It continues with the next input.
 */
#ifndef GPEMU_TESTS_FUZZ_SESSION_H
#define GPEMU_TESTS_FUZZ_SESSION_H

#include <stdbool.h>

#include "net/addr.h"
#include "net/frame.h"
#include "tests/fuzz/fuzz.h"

enum {
	SESSION_ENDS = 4,     /* connections: the low bits of `how` */
	SESSION_PLAIN = 0x80, /* the bytes as they are: no frame, no tag */
	SESSION_AGAIN = 0x40, /* first leave, and connect again */
	SESSION_OURS = 0x20,  /* the target completes the message */
	SESSION_MOST = 1 << 16,
};

/* Our end of a connection: blocking, for 20 s at most. */
struct session_end {
	int fd; /* -1: none */
	struct seal seal;
	struct frame_in in;
};

struct session {
	const struct seal_secret *secret;
	/* Connect number `who`; false: not now. */
	bool (*open)(struct session *s, unsigned who, struct session_end *e);
	/* Complete a message of `n` bytes in `m`, with room for SESSION_MOST;
	 * returns its length, 0: say nothing. NULL: as it is. */
	size_t (*complete)(struct session *s, unsigned who, unsigned char *m,
			   size_t n);
	bool deaf; /* what comes is not opened: parcels may be in it */
	struct session_end end[SESSION_ENDS];
};

/* A port of loopback that is free, and then taken by who listens there. */
void session_port(struct addr *ret);
bool session_dial(const struct addr *to, const struct seal_secret *secret,
		  struct session_end *ret);
/* The next who connects; false: none within a second. */
bool session_accept(int listener, const struct seal_secret *secret,
		    struct session_end *ret);
/* The other end may have closed. */
void session_say(struct session_end *e, const void *m, size_t n);
/* The next message, valid until the next call; NULL: the other end closed. */
const unsigned char *session_hear(struct session_end *e, size_t *ret_n);
/* Say no more, and wait until the other end closes. */
void session_leave(struct session_end *e);

/* All steps of an input, then leave all ends from `from` on. */
void session_play(struct session *s, const uint8_t *data, size_t n,
		  unsigned from);

#endif
