/* SPDX-License-Identifier: MIT */
/*
 * One connection: greeting, keys, messages, time-outs. It never blocks, and is
 * used only on the thread of its loop (net/loop.h).
 *
 *	GREETING --both greetings--> open --conn_trust--> trusted
 *	    \________________________/ \_____________________/
 *	         within the time-out: else it ends
 *
 * A connection that is not trusted takes little memory: its messages have at
 * most CONN_FIRST bytes. A message that has begun, in either direction, must
 * complete within the time-out, so that a byte a second is too slow. While
 * conn_await expects messages, the next one must also arrive within it.
 */
#ifndef GPEMU_NET_CONN_H
#define GPEMU_NET_CONN_H

#include <stdbool.h>
#include <sys/uio.h>

#include "common/program/events.h"
#include "net/frame.h"
#include "net/nic.h"
#include "net/parcel.h"

enum { CONN_FIRST = 256 };

struct conn;

/* The user's callbacks, all on the thread of the loop. */
struct conn_ops {
	/* A message, in place. < 0 ends the connection with that error. */
	int (*message)(struct conn *c, unsigned char *m, size_t n,
		       uint64_t now);
	/* Nothing is being sent: conn_send the next message. If there is none,
	 * returns the time at which there may be one (TICK_NEVER: after
	 * conn_kick). First called when the keys are agreed. */
	uint64_t (*fill)(struct conn *c, uint64_t now);
	/* It has ended, with a reason:
	 * -ETIMEDOUT		too slow
	 * -EBADMSG		no greeting, or a message that fails
	 *			authentication: garbage, or another secret
	 * -EPROTONOSUPPORT	a different FRAME_VERSION
	 * -EMSGSIZE		a message that is too long, or empty
	 * -EMFILE		too many that are not trusted
	 * -EPROTO, ...		from `message` or conn_end
	 * -ECANCELED		the loop stops
	 * -errno		of the socket; -ECONNRESET: the other end
	 *			closed it
	 * The last call for it. */
	void (*ended)(struct conn *c, int why);
	/*
	 * Memory for a message of `n` bytes, its tag included, that has begun
	 * to arrive: it is received there and nowhere else, so `message` may
	 * keep it. The memory stays until `message` or `ended`. NULL ends the
	 * connection with -ENOBUFS. Only called once it is trusted. No such
	 * function: messages are in memory of the connection.
	 */
	unsigned char *(*apart)(struct conn *c, size_t n);
};

struct conn {
	const struct conn_ops *ops;
	void *user;
	/* private to conn.c and loop.c from here on */
	const struct seal_secret *secret;
	struct event socket;
	bool dialed, connected, open, trusted, awaits;
	bool readable, writable; /* as far as known: edges of epoll(7) */
	bool kicked;
	unsigned char greeting[FRAME_GREETING]; /* of the dialer */
	struct seal seal;
	struct frame_in in;
	/* a message with memory of its own: bytes [0, apart_have) are there */
	unsigned char header[FRAME_HEADER], *apart;
	size_t apart_have, apart_n;
	size_t parcel_most; /* of the parcel that is next; 0: a message is */
	struct nic_flow flow_in, flow_out;
	/* being sent: bytes [out_at, out_have) of `out` and, behind it, the
	 * parcel, if any */
	unsigned char *out;
	struct parcel *parcel;
	size_t out_at, out_have, out_room;
	uint64_t out_ready; /* since when */
	uint64_t timeout_ns;
	uint64_t trust_until, in_until, out_until; /* TICK_NEVER: no limit */
	int why;				   /* 0: alive */
};

/* Its messages may have up to `most` bytes from now on. */
void conn_trust(struct conn *c, size_t most);
/* Are messages expected? Then each must arrive within the time-out. */
void conn_await(struct conn *c, bool awaits, uint64_t now);
/* Seal and send a message of two pieces, of which the second may be empty.
 * `ready`: since when it could have been sent. Only in `fill`, once. -ENOMEM.
 */
int conn_send(struct conn *c, const void *head, size_t n_head, const void *body,
	      size_t n_body, uint64_t ready);
/* The same of any pieces. */
int conn_send_pieces(struct conn *c, const struct iovec *piece, size_t n,
		     uint64_t ready);
/* The same of a message, and the parcel behind it, which the connection holds
 * until it is sent. */
int conn_send_parcel(struct conn *c, const void *message, size_t n,
		     struct parcel *p, uint64_t ready);
/*
 * Only in `message`, of a connection with `apart`: a parcel follows, of at most
 * `most` bytes with its tag: more are -EMSGSIZE. `apart` and `message` get it
 * as it was sealed, tag included, for the user to open.
 */
void conn_expect_parcel(struct conn *c, size_t most);
/* There may be something to send. */
void conn_kick(struct conn *c);
/* End it, soon: `ended` is called after this function. */
void conn_end(struct conn *c, int why);

/* --- for the loop --------------------------------------------------------- */

/* A connected or connecting socket, which it owns even if this fails. NULL: no
 * memory. */
struct conn *conn_new(int fd, bool dialed, const struct seal_secret *secret,
		      uint64_t timeout_ns, uint64_t now);
/* Call `ended` first. */
void conn_free(struct conn *c);
/* Receive and send what is possible. Returns when to call again at the latest;
 * `now` or earlier: at once. */
uint64_t conn_pump(struct conn *c, struct nic *nic, uint64_t now);

#endif
