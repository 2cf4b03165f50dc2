/* SPDX-License-Identifier: MIT */
#include "net/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "net/addr.h"
#include "net/wire.h"

/* Pieces in each direction before the next connection's turn. arbitrary: half a
 * MiB */
enum { PIECES = 8 };

/* --- life ----------------------------------------------------------------- */

/* Bytes that are sent as they are. */
static int send_plain(struct conn *c, const void *bytes, size_t n, uint64_t now)
{
	if (util_reserve_anew(&c->out, &c->out_room, n, 1) < 0)
		return -ENOMEM;
	memcpy(c->out, bytes, n);
	c->out_at = 0;
	c->out_have = n;
	c->out_ready = now;
	return 0;
}

struct conn *conn_new(int fd, bool dialed, const struct seal_secret *secret,
		      uint64_t timeout_ns, uint64_t now)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return NULL;
	}
	*c = (struct conn){ .fd = fd,
			    .dialed = dialed,
			    .connected = !dialed,
			    .secret = secret,
			    .timeout_ns = timeout_ns,
			    .trust_until = now + timeout_ns,
			    .in_until = TICK_NEVER,
			    .out_until = TICK_NEVER };
	addr_tune(fd);
	if (!dialed)
		return c;
	frame_greet(FRAME_VERSION, c->greeting);
	if (send_plain(c, c->greeting, FRAME_GREETING, now) < 0) {
		conn_free(c);
		return NULL;
	}
	return c;
}

void conn_free(struct conn *c)
{
	close(c->fd);
	frame_in_fini(&c->in);
	free(c->out);
	seal_forget(&c->seal, sizeof(c->seal));
	free(c);
}

void conn_end(struct conn *c, int why)
{
	if (!c->why)
		c->why = why;
	c->kicked = true;
}

void conn_kick(struct conn *c)
{
	c->kicked = true;
}

void conn_trust(struct conn *c, size_t most)
{
	c->trusted = true;
	c->trust_until = TICK_NEVER;
	c->in.most = most;
}

void conn_await(struct conn *c, bool awaits, uint64_t now)
{
	c->awaits = awaits;
	if (awaits && c->in_until == TICK_NEVER)
		c->in_until = now + c->timeout_ns;
	else if (!awaits && !frame_is_partial(&c->in))
		c->in_until = TICK_NEVER;
}

/* --- receiving ------------------------------------------------------------ */

static void agree(struct conn *c, const unsigned char *listener)
{
	seal_agree(c->secret, c->greeting, listener, FRAME_GREETING, c->dialed,
		   &c->seal);
	c->open = true;
	c->in.most = CONN_FIRST;
}

/* The other end's greeting is complete; the listener replies with its own. */
static int greet(struct conn *c, const unsigned char *theirs, uint64_t now)
{
	unsigned char mine[FRAME_GREETING];
	uint32_t version;
	int r = frame_check_greeting(theirs, &version);

	if (c->dialed) {
		if (r == 0)
			agree(c, theirs);
		return r;
	}
	if (r == -EBADMSG)
		return r;
	frame_greet(FRAME_VERSION, mine);
	if (r < 0) { /* it learns the version; a new socket has room */
		send(c->fd, mine, sizeof(mine), MSG_NOSIGNAL | MSG_DONTWAIT);
		return r;
	}
	r = send_plain(c, mine, sizeof(mine), now);
	memcpy(c->greeting, theirs, FRAME_GREETING);
	if (r == 0)
		agree(c, mine);
	return r;
}

static int take_frame(struct conn *c, unsigned char *frame, size_t n,
		      uint64_t now)
{
	int r = seal_open(&c->seal, frame, FRAME_HEADER, n - FRAME_HEADER);

	if (r == 0)
		r = c->ops->message(c, frame + FRAME_HEADER,
				    n - FRAME_HEADER - SEAL_TAG, now);
	return r;
}

/* Process all that has arrived. */
static void take(struct conn *c, uint64_t now)
{
	unsigned char *frame;
	bool any = false;
	size_t n;
	int r = 0;

	if (!c->open) {
		const unsigned char *g = frame_take(&c->in, FRAME_GREETING);

		r = g ? greet(c, g, now) : 0;
		if (r < 0)
			conn_end(c, r);
	}
	while (c->open && !c->why &&
	       (r = frame_next(&c->in, &frame, &n)) == 1) {
		any = true;
		r = take_frame(c, frame, n, now);
		if (r < 0)
			break;
	}
	if (r < 0) {
		conn_end(c, r);
		return;
	}
	if (!c->awaits && !frame_is_partial(&c->in))
		c->in_until = TICK_NEVER;
	else if (any || c->in_until == TICK_NEVER)
		c->in_until = now + c->timeout_ns;
}

/* 1: something came; 0: nothing there; -errno. */
static int receive_piece(struct conn *c, struct nic *nic, uint64_t now)
{
	struct nic_flow *f = &c->flow_in;
	unsigned char *to;
	ssize_t got;
	size_t n;

	to = frame_space(&c->in, &n);
	if (!to)
		return -ENOMEM;
	got = recv(c->fd, to, MIN(n, nic->piece), 0);
	if (got > 0) {
		nic_book(nic, &nic->in, f, (size_t)got,
			 f->before ? f->before : now, now);
		return 1;
	}
	if (got < 0 && errno == EINTR)
		return 1;
	if (got < 0 && errno == EAGAIN) {
		c->readable = false;
		nic_idle(f);
		return 0;
	}
	return got ? -errno : -ECONNRESET;
}

static uint64_t receive(struct conn *c, struct nic *nic, uint64_t now)
{
	struct nic_flow *f = &c->flow_in;
	int r;

	for (int i = 0; i < PIECES && !c->why; i++) {
		if (!f->booked) {
			r = c->readable ? receive_piece(c, nic, now) : 0;
			if (r < 0)
				conn_end(c, r);
			if (r <= 0)
				return TICK_NEVER;
		}
		if (f->booked && now < f->at)
			return f->at;
		if (!f->booked)
			continue;
		frame_add(&c->in, f->booked);
		nic_pass(f, f->booked, &nic->received);
		take(c, now);
	}
	return now;
}

/* --- sending -------------------------------------------------------------- */

int conn_send(struct conn *c, const void *head, size_t n_head, const void *body,
	      size_t n_body, uint64_t ready)
{
	size_t n = n_head + n_body + SEAL_TAG;
	unsigned char *at;

	if (util_reserve_anew(&c->out, &c->out_room, FRAME_HEADER + n, 1) < 0)
		return -ENOMEM;
	at = wire_put(c->out, n, FRAME_HEADER);
	memcpy(at, head, n_head);
	if (n_body)
		memcpy(at + n_head, body, n_body);
	seal_close(&c->seal, c->out, FRAME_HEADER, n_head + n_body);
	c->out_at = 0;
	c->out_have = FRAME_HEADER + n;
	c->out_ready = ready;
	return 0;
}

/* 1: some were sent; 0: not now; -errno. */
static int send_piece(struct conn *c, struct nic *nic)
{
	ssize_t n = send(c->fd, c->out + c->out_at, c->flow_out.booked,
			 MSG_NOSIGNAL);

	if (n < 0 && errno == EAGAIN) {
		c->writable = false;
		return 0;
	}
	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	c->out_at += (size_t)n;
	nic_pass(&c->flow_out, (size_t)n, &nic->sent);
	return 1;
}

/* false: nothing to send until *ret_at. */
static bool find_message(struct conn *c, uint64_t now, uint64_t *ret_at)
{
	*ret_at = TICK_NEVER;
	if (c->out_at < c->out_have)
		return true;
	c->out_until = TICK_NEVER;
	if (c->open)
		*ret_at = c->ops->fill(c, now);
	if (c->out_at == c->out_have) {
		nic_idle(&c->flow_out);
		return false;
	}
	c->out_until = now + c->timeout_ns;
	return true;
}

static uint64_t transmit(struct conn *c, struct nic *nic, uint64_t now)
{
	uint64_t at;
	int r;

	for (int i = 0; i < PIECES && !c->why; i++) {
		if (!find_message(c, now, &at))
			return at;
		nic_book(nic, &nic->out, &c->flow_out, c->out_have - c->out_at,
			 c->out_ready, now);
		if (now < c->flow_out.at)
			return c->flow_out.at;
		r = c->writable ? send_piece(c, nic) : 0;
		if (r < 0)
			conn_end(c, r);
		if (r <= 0)
			return TICK_NEVER;
	}
	return now;
}

/* --- both ----------------------------------------------------------------- */

static void finish_dialing(struct conn *c)
{
	socklen_t n = sizeof(int);
	int error = 0;

	if (!c->writable)
		return;
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (error)
		conn_end(c, -error);
	c->connected = true;
}

uint64_t conn_pump(struct conn *c, struct nic *nic, uint64_t now)
{
	uint64_t at = TICK_NEVER, out, until;

	c->kicked = false;
	if (!c->connected)
		finish_dialing(c);
	if (c->connected && !c->why) {
		at = receive(c, nic, now);
		out = transmit(c, nic, now);
		at = MIN(at, out);
	}
	until = MIN(c->trust_until, MIN(c->in_until, c->out_until));
	if (now >= until)
		conn_end(c, -ETIMEDOUT);
	return MIN(at, until);
}
