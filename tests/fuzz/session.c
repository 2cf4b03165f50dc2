/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/util.h"
#include "net/wire.h"

/* Threads of the node hold what nothing else points to. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

enum { WAIT_S = 20, ACCEPT_MS = 1000 };

void session_port(struct addr *ret)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t n = sizeof(a);
	struct err err = { 0 };
	char text[32];

	PROMISED(bind(fd, (const void *)&a, n) == 0);
	PROMISED(getsockname(fd, (void *)&a, &n) == 0);
	close(fd);
	snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(a.sin_port));
	PROMISED(addr_find(text, ret, &err) == 0);
}

static bool greet(struct session_end *e, const struct seal_secret *secret,
		  bool dialed)
{
	unsigned char mine[FRAME_GREETING], theirs[FRAME_GREETING];
	const struct timeval most = { .tv_sec = WAIT_S };

	setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	frame_greet(FRAME_VERSION, mine);
	send(e->fd, mine, sizeof(mine), MSG_NOSIGNAL);
	if (recv(e->fd, theirs, sizeof(theirs), MSG_WAITALL) !=
	    (ssize_t)sizeof(theirs)) {
		close(e->fd);
		e->fd = -1;
		return false;
	}
	seal_agree(secret, dialed ? mine : theirs, dialed ? theirs : mine,
		   sizeof(mine), dialed, &e->seal);
	return true;
}

bool session_dial(const struct addr *to, const struct seal_secret *secret,
		  struct session_end *ret)
{
	*ret = (struct session_end){ .fd = socket(AF_INET, SOCK_STREAM, 0),
				     .in.most = 1 << 24 };
	PROMISED(ret->fd >= 0);
	PROMISED(connect(ret->fd, (const void *)&to->at, to->n) == 0);
	/* one of too many is closed */
	return greet(ret, secret, true);
}

bool session_accept(int listener, const struct seal_secret *secret,
		    struct session_end *ret)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	*ret = (struct session_end){ .fd = -1, .in.most = 1 << 24 };
	if (poll(&p, 1, ACCEPT_MS) == 1)
		ret->fd = accept(listener, NULL, NULL);
	return ret->fd >= 0 && greet(ret, secret, false);
}

void session_say(struct session_end *e, const void *m, size_t n)
{
	static unsigned char frame[FRAME_HEADER + SESSION_MOST + SEAL_TAG];

	PROMISED(n <= SESSION_MOST);
	wire_put(frame, n + SEAL_TAG, FRAME_HEADER);
	memcpy(frame + FRAME_HEADER, m, n);
	seal_close(&e->seal, frame, FRAME_HEADER, n);
	send(e->fd, frame, FRAME_HEADER + n + SEAL_TAG, MSG_NOSIGNAL);
}

/* *ret_over: it will have none. */
static const unsigned char *hear(struct session_end *e, int flags,
				 size_t *ret_n, bool *ret_over)
{
	unsigned char *frame;
	size_t n;

	*ret_over = false;
	while (frame_next(&e->in, &frame, &n) != 1) {
		size_t room;
		unsigned char *to = frame_space(&e->in, &room);
		ssize_t got;

		PROMISED(to);
		got = recv(e->fd, to, room, flags);
		if (got < 0 && errno == EAGAIN)
			return NULL;
		*ret_over = got <= 0;
		if (got <= 0)
			return NULL;
		frame_add(&e->in, (size_t)got);
	}
	n -= FRAME_HEADER;
	PROMISED(seal_open(&e->seal, frame, FRAME_HEADER, n) == 0);
	*ret_n = n - SEAL_TAG;
	return frame + FRAME_HEADER;
}

const unsigned char *session_hear(struct session_end *e, size_t *ret_n)
{
	bool over;
	const unsigned char *m = hear(e, 0, ret_n, &over);

	PROMISED(m || over); /* it hangs */
	return m;
}

/* What came meanwhile; perhaps its end. */
static void catch_up(const struct session *s, struct session_end *e)
{
	static char bytes[1 << 14];
	bool over = false;
	ssize_t got = 1;
	size_t n;

	while (e->fd >= 0 && !s->deaf && hear(e, MSG_DONTWAIT, &n, &over))
		;
	while (e->fd >= 0 && s->deaf && got > 0)
		got = recv(e->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (over || got == 0 || (got < 0 && errno != EAGAIN))
		session_leave(e);
}

void session_leave(struct session_end *e)
{
	char bytes[1 << 14];
	ssize_t got;

	if (e->fd < 0)
		return;
	shutdown(e->fd, SHUT_WR);
	do
		got = recv(e->fd, bytes, sizeof(bytes), 0);
	while (got > 0);
	PROMISED(got == 0 || errno != EAGAIN); /* it does not let go */
	close(e->fd);
	e->fd = -1;
	frame_in_fini(&e->in);
}

static void play_step(struct session *s, unsigned how, const uint8_t *data,
		      size_t n)
{
	static unsigned char m[SESSION_MOST];
	unsigned who = how % SESSION_ENDS;
	struct session_end *e = &s->end[who];

	if (how & SESSION_AGAIN)
		session_leave(e);
	catch_up(s, e);
	if (e->fd < 0 && !s->open(s, who, e))
		return;
	if (how & SESSION_PLAIN) {
		send(e->fd, data, n, MSG_NOSIGNAL);
		return;
	}
	memcpy(m, data, n);
	if (how & SESSION_OURS && s->complete)
		n = s->complete(s, who, m, n);
	if (n)
		session_say(e, m, n);
}

void session_play(struct session *s, const uint8_t *data, size_t n,
		  unsigned from)
{
	while (n >= 3) {
		size_t bytes = MIN(data[1] | (size_t)data[2] << 8, n - 3);

		play_step(s, data[0], data + 3, bytes);
		data += 3 + bytes;
		n -= 3 + bytes;
	}
	for (unsigned i = from; i < SESSION_ENDS; i++)
		session_leave(&s->end[i]);
}
