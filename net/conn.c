/* SPDX-License-Identifier: MIT */
#include "net/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "net/addr.h"
#include "net/wire.h"

/* Pieces in each direction before the next connection's turn, and bytes after
 * which no further piece begins. arbitrary: some tenths of a millisecond */
enum { PIECES = 8, TURN = 512 << 10 };

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
	*c = (struct conn){ .socket.fd = fd,
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
	if (c->socket.fd >= 0)
		close(c->socket.fd);
	frame_in_fini(&c->in);
	parcel_put(c->parcel);
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

/* Has a message begun that is incomplete, as its parcel is? */
static bool is_partial(const struct conn *c)
{
	return c->apart || c->parcel_most || frame_is_partial(&c->in);
}

void conn_expect_parcel(struct conn *c, size_t most)
{
	c->parcel_most = most;
}

void conn_await(struct conn *c, bool awaits, uint64_t now)
{
	c->awaits = awaits;
	if (awaits && c->in_until == TICK_NEVER)
		c->in_until = now + c->timeout_ns;
	else if (!awaits && !is_partial(c))
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
		send(c->socket.fd, mine, sizeof(mine),
		     MSG_NOSIGNAL | MSG_DONTWAIT);
		return r;
	}
	r = send_plain(c, mine, sizeof(mine), now);
	memcpy(c->greeting, theirs, FRAME_GREETING);
	if (r == 0)
		agree(c, mine);
	return r;
}

/* Messages have memory of their own from now on. */
static bool is_apart(const struct conn *c)
{
	return c->trusted && c->ops->apart;
}

/* A message whose header is there gets its memory. 1; 0: it is not. What was
 * received with the messages before is copied, once in a connection. */
static int begin_apart(struct conn *c)
{
	size_t n, have;
	int r = frame_begun(&c->in, &n);

	if (r != 1)
		return r;
	if (c->parcel_most && n > c->parcel_most)
		return -EMSGSIZE;
	c->apart = c->ops->apart(c, n);
	if (!c->apart)
		return -ENOBUFS;
	memcpy(c->header, frame_take(&c->in, FRAME_HEADER), FRAME_HEADER);
	have = MIN(n, c->in.have - c->in.at);
	memcpy(c->apart, frame_take(&c->in, have), have);
	c->apart_n = n;
	c->apart_have = have;
	return 1;
}

/* The next message, opened, or parcel, as it is. 1; 0: it is incomplete. */
static int open_apart(struct conn *c, unsigned char **ret, size_t *ret_n)
{
	int r = c->apart ? 1 : begin_apart(c);

	if (r != 1 || c->apart_have < c->apart_n)
		return MIN(r, 0);
	*ret = TAKE_PTR(c->apart);
	*ret_n = c->apart_n;
	if (c->parcel_most) {
		c->parcel_most = 0;
		return 1;
	}
	*ret_n -= SEAL_TAG;
	r = seal_open_apart(&c->seal, c->header, FRAME_HEADER, *ret,
			    c->apart_n);
	return r < 0 ? r : 1;
}

static int open_frame(struct conn *c, unsigned char **ret, size_t *ret_n)
{
	unsigned char *frame;
	size_t n;
	int r = frame_next(&c->in, &frame, &n);

	if (r != 1)
		return r;
	*ret = frame + FRAME_HEADER;
	*ret_n = n - FRAME_HEADER - SEAL_TAG;
	r = seal_open(&c->seal, frame, FRAME_HEADER, n - FRAME_HEADER);
	return r < 0 ? r : 1;
}

/* 1: there may be more; 0: no message is complete. */
static int take_message(struct conn *c, uint64_t now)
{
	unsigned char *m;
	size_t n;
	int r = is_apart(c) ? open_apart(c, &m, &n) : open_frame(c, &m, &n);

	if (r != 1)
		return r;
	r = c->ops->message(c, m, n, now);
	return r < 0 ? r : 1;
}

/* Process all that has arrived. */
static void take_frames(struct conn *c, uint64_t now)
{
	bool any = false;
	int r = 0;

	if (!c->open) {
		const unsigned char *g = frame_take(&c->in, FRAME_GREETING);

		r = g ? greet(c, g, now) : 0;
		if (r < 0)
			conn_end(c, r);
	}
	while (c->open && !c->why && (r = take_message(c, now)) == 1)
		any = true;
	if (r < 0) {
		conn_end(c, r);
		return;
	}
	if (!c->awaits && !is_partial(c))
		c->in_until = TICK_NEVER;
	else if (any || c->in_until == TICK_NEVER)
		c->in_until = now + c->timeout_ns;
}

/* Where to receive the next bytes. */
static unsigned char *space(struct conn *c, size_t *ret_n)
{
	unsigned char *to;

	if (c->apart) {
		*ret_n = c->apart_n - c->apart_have;
		return c->apart + c->apart_have;
	}
	to = frame_space(&c->in, ret_n);
	if (to && is_apart(c)) /* the header alone */
		*ret_n = FRAME_HEADER - (c->in.have - c->in.at);
	return to;
}

/* 1: something came; 0: nothing there; -errno. */
static int receive_piece(struct conn *c, struct nic *nic, uint64_t now)
{
	struct nic_flow *f = &c->flow_in;
	unsigned char *to;
	ssize_t got;
	size_t n;

	to = space(c, &n);
	if (!to)
		return -ENOMEM;
	got = recv(c->socket.fd, to, MIN(n, nic->piece), 0);
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
	size_t n = 0;
	int r;

	for (int i = 0; i < PIECES && n < TURN && !c->why; i++) {
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
		if (c->apart)
			c->apart_have += f->booked;
		else
			frame_add(&c->in, f->booked);
		n += f->booked;
		nic_pass(f, f->booked, &nic->received);
		take_frames(c, now);
	}
	return now;
}

/* --- sending -------------------------------------------------------------- */

int conn_send_pieces(struct conn *c, const struct iovec *piece, size_t n,
		     uint64_t ready)
{
	size_t bytes = 0;
	unsigned char *at;

	for (size_t i = 0; i < n; i++)
		bytes += piece[i].iov_len;
	if (util_reserve_anew(&c->out, &c->out_room,
			      FRAME_HEADER + bytes + SEAL_TAG, 1) < 0)
		return -ENOMEM;
	at = wire_put(c->out, bytes + SEAL_TAG, FRAME_HEADER);
	for (size_t i = 0; i < n; i++) {
		if (!piece[i].iov_len) /* its base may be NULL */
			continue;
		memcpy(at, piece[i].iov_base, piece[i].iov_len);
		at += piece[i].iov_len;
	}
	seal_close(&c->seal, c->out, FRAME_HEADER, bytes);
	c->out_at = 0;
	c->out_have = FRAME_HEADER + bytes + SEAL_TAG;
	c->out_ready = ready;
	return 0;
}

int conn_send(struct conn *c, const void *head, size_t n_head, const void *body,
	      size_t n_body, uint64_t ready)
{
	const struct iovec piece[] = { { (void *)(uintptr_t)head, n_head },
				       { (void *)(uintptr_t)body, n_body } };

	return conn_send_pieces(c, piece, ARRAY_SIZE(piece), ready);
}

int conn_send_parcel(struct conn *c, const void *message, size_t n,
		     struct parcel *p, uint64_t ready)
{
	int r = conn_send(c, message, n, NULL, 0, ready);

	if (r < 0)
		return r;
	c->parcel = parcel_get(p);
	c->out_have += p->n;
	return 0;
}

/* Where the next `n` bytes to send are; returns the number of places. */
static size_t find_bytes(const struct conn *c, size_t n, struct iovec ret[2])
{
	size_t own = c->out_have - (c->parcel ? c->parcel->n : 0);
	size_t at = MIN(c->out_at, own), first = MIN(own - at, n);

	ret[0] = (struct iovec){ c->out + at, first };
	if (first == n)
		return 1;
	ret[1] = (struct iovec){ c->parcel->bytes + (c->out_at + first - own),
				 n - first };
	return 2;
}

/* 1: some were sent; 0: not now; -errno. */
static int send_piece(struct conn *c, struct nic *nic)
{
	struct iovec at[2];
	struct msghdr m = { .msg_iov = at };
	ssize_t n;

	m.msg_iovlen = find_bytes(c, c->flow_out.booked, at);
	n = sendmsg(c->socket.fd, &m, MSG_NOSIGNAL);

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
	parcel_put(TAKE_PTR(c->parcel));
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
	size_t n = 0;
	int r;

	for (int i = 0; i < PIECES && n < TURN && !c->why; i++) {
		if (!find_message(c, now, &at))
			return at;
		nic_book(nic, &nic->out, &c->flow_out, c->out_have - c->out_at,
			 c->out_ready, now);
		if (now < c->flow_out.at)
			return c->flow_out.at;
		n += c->flow_out.booked;
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
	if (getsockopt(c->socket.fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
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
