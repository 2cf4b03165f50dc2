/* SPDX-License-Identifier: MIT */
/*
 * A call lives as long as its stream. It passes through
 *
 *	arriving	its message is not whole yet
 *	begun		the method has it, until grpc_end
 *	ended		its status is on its way
 *
 * and the method's owner may use it while it is begun. What a client sends for
 * a call that has ended is dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/program/local_socket.h"
#include "common/units.h"
#include "common/util.h"
#include "platform/grpc/grpc.h"
#include "platform/grpc/grpc_conn.h"
#include "platform/grpc/grpc_frame.h"

/* Between attempts to accept while there are no descriptors. arbitrary: short
 * for a person, long for a processor */
#define ACCEPT_PAUSE_NS (NS_PER_S / 5)

/* With its prefix; [at, n) is still to be sent. */
struct message {
	uint8_t *bytes;
	size_t at, n;
};

struct grpc_call {
	struct peer *peer;
	struct grpc_call *next;
	int32_t id;
	const struct grpc_method *method; /* NULL: there is none */
	bool post, grpc, encoded;	  /* by its headers */
	bool checked;			  /* those; others may follow */
	struct grpc_inbox in;
	bool begun, ended;
	bool answering; /* the headers of the answer are submitted */
	struct message out, latest;
	enum grpc_status status; /* since it ended */
	char text[GRPC_TEXT];
};

/* A connection. */
struct peer {
	struct grpc_conn conn;
	struct grpc_server *server;
	struct peer *next;
	struct grpc_call *calls;
};

struct grpc_server {
	struct grpc_server_config config;
	struct event listener;
	struct event_timer retry; /* accept again */
	char *path;
	struct local_socket place;
	struct peer *peers;
	unsigned n_peers;
};

/* --- answers -------------------------------------------------------------- */

static nghttp2_nv content_type(void)
{
	return grpc_header("content-type", "application/grpc");
}

/* grpc-status, and grpc-message if there is one. Returns how many. */
static size_t trailers(const struct grpc_call *c, char number[16],
		       nghttp2_nv ret[2])
{
	snprintf(number, 16, "%d", (int)c->status);
	ret[0] = grpc_header("grpc-status", number);
	ret[1] = grpc_header("grpc-message", c->text);
	return c->text[0] ? 2 : 1;
}

/* The session takes as much of the messages as it may send now. */
static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *buf,
			size_t room, uint32_t *flags,
			nghttp2_data_source *source, void *user)
{
	struct grpc_call *c = source->ptr;
	struct message *m = &c->out;
	nghttp2_nv nv[2];
	char number[16];
	size_t n;

	(void)user;
	if (m->at == m->n && c->latest.bytes) {
		free(m->bytes);
		*m = c->latest;
		c->latest = (struct message){ 0 };
	}
	n = MIN(room, m->n - m->at);
	if (n)
		memcpy(buf, m->bytes + m->at, n);
	m->at += n;
	if (m->at < m->n || c->latest.bytes)
		return (ssize_t)n;
	if (!c->ended)
		return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	if (nghttp2_submit_trailer(session, id, nv, trailers(c, number, nv)) <
	    0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return (ssize_t)n;
}

/* Headers, and the messages behind them. */
static int begin_answer(struct grpc_call *c)
{
	nghttp2_nv nv[] = { grpc_header(":status", "200"), content_type() };
	nghttp2_data_provider data = { .source.ptr = c,
				       .read_callback = read_out };

	c->answering = true;
	return nghttp2_submit_response(c->peer->conn.session, c->id, nv,
				       ARRAY_SIZE(nv), &data) < 0
		       ? -ENOMEM
		       : 0;
}

/* Headers alone, with the status. */
static void answer_status(struct grpc_call *c)
{
	nghttp2_nv nv[4] = { grpc_header(":status", c->grpc ? "200" : "415"),
			     content_type() };
	char number[16];
	size_t n = trailers(c, number, nv + 2);

	nghttp2_submit_response(c->peer->conn.session, c->id, nv, 2 + n, NULL);
}

/* There is more to send. */
static void resume(struct grpc_call *c)
{
	/* fails if it is not waiting for that */
	nghttp2_session_resume_data(c->peer->conn.session, c->id);
	grpc_conn_wake(&c->peer->conn);
}

int grpc_send(struct grpc_call *c, const void *message, size_t n)
{
	struct message *m = c->out.at && c->out.at < c->out.n ? &c->latest
							      : &c->out;
	uint8_t *bytes = malloc(GRPC_PREFIX + n);
	int r = 0;

	if (!bytes)
		return -ENOMEM;
	grpc_prefix(bytes, n);
	if (n)
		memcpy(bytes + GRPC_PREFIX, message, n);
	free(m->bytes);
	*m = (struct message){ .bytes = bytes, .n = GRPC_PREFIX + n };
	if (!c->answering)
		r = begin_answer(c);
	resume(c);
	return r;
}

void grpc_end(struct grpc_call *c, enum grpc_status status, const char *text)
{
	c->ended = true;
	c->status = status;
	grpc_text_encode(text, c->text);
	if (!c->answering)
		answer_status(c);
	resume(c);
}

/* --- calls ---------------------------------------------------------------- */

static void free_call(struct grpc_call *c)
{
	grpc_inbox_fini(&c->in);
	free(c->out.bytes);
	free(c->latest.bytes);
	free(c);
}

static struct grpc_call *find_call(const struct peer *p, int32_t id)
{
	struct grpc_call *c = p->calls;

	while (c && c->id != id)
		c = c->next;
	return c;
}

static int on_headers(void *owner, const nghttp2_frame *frame)
{
	struct peer *p = owner;
	struct grpc_call *c;

	if (frame->hd.type != NGHTTP2_HEADERS ||
	    frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->peer = p;
	c->id = frame->hd.stream_id;
	grpc_inbox_init(&c->in, GRPC_MAX_REQUEST);
	c->next = p->calls;
	p->calls = c;
	return 0;
}

static const struct grpc_method *find_method(const struct grpc_server *s,
					     const uint8_t *path, size_t n)
{
	const struct grpc_method *m = s->config.methods;

	while (m->path &&
	       (strlen(m->path) != n || memcmp(m->path, path, n) != 0))
		m++;
	return m->path ? m : NULL;
}

static bool is(const uint8_t *value, size_t n, const char *word)
{
	return n == strlen(word) && !memcmp(value, word, n);
}

static void on_header(void *owner, int32_t id, const char *name,
		      const uint8_t *value, size_t n)
{
	static const char type[] = "application/grpc";
	struct peer *p = owner;
	struct grpc_call *c = find_call(p, id);

	if (!c || c->checked)
		return;
	if (!strcmp(name, ":path"))
		c->method = find_method(p->server, value, n);
	else if (!strcmp(name, ":method"))
		c->post = is(value, n, "POST");
	else if (!strcmp(name, "content-type"))
		c->grpc = n >= strlen(type) &&
			  !memcmp(value, type, strlen(type));
	else if (!strcmp(name, "grpc-encoding"))
		c->encoded = !is(value, n, "identity");
}

static void check_headers(struct grpc_call *c)
{
	c->checked = true;
	if (!c->grpc || !c->post)
		grpc_end(c, GRPC_INTERNAL, "not a call of gRPC");
	else if (!c->method)
		grpc_end(c, GRPC_UNIMPLEMENTED, "unknown method");
	else if (c->encoded)
		grpc_end(c, GRPC_UNIMPLEMENTED, "compression");
}

static void on_data(void *owner, int32_t id, const uint8_t *data, size_t n)
{
	struct grpc_call *c = find_call(owner, id);
	int r;

	if (!c || c->begun || c->ended)
		return;
	r = grpc_inbox_add(&c->in, data, n);
	if (r == -EBADMSG)
		grpc_end(c, GRPC_INTERNAL, "not one uncompressed message");
	else if (r < 0)
		grpc_end(c, GRPC_RESOURCE_EXHAUSTED,
			 "the request is too large");
}

static void on_frame(void *owner, const nghttp2_frame *frame)
{
	bool headers = frame->hd.type == NGHTTP2_HEADERS;
	struct grpc_call *c;

	if (!headers && frame->hd.type != NGHTTP2_DATA)
		return;
	c = find_call(owner, frame->hd.stream_id);
	if (!c || c->begun || c->ended)
		return;
	if (headers && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		check_headers(c);
	if (c->ended || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return;
	if (!grpc_inbox_whole(&c->in)) {
		grpc_end(c, GRPC_INTERNAL, "the request is not whole");
		return;
	}
	c->begun = true;
	c->method->begin(c, c->in.bytes, c->in.n);
	/* it has what it needs */
	grpc_inbox_fini(&c->in);
}

static void drop_call(struct peer *p, struct grpc_call *c)
{
	struct grpc_call **at = &p->calls;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	if (c->begun && !c->ended)
		p->server->config.gone(c);
	free_call(c);
}

static void on_closed(void *owner, int32_t id)
{
	struct grpc_call *c = find_call(owner, id);

	if (c)
		drop_call(owner, c);
}

void *grpc_call_ctx(const struct grpc_call *c)
{
	return c->peer->server->config.ctx;
}

/* --- connections ---------------------------------------------------------- */

static const struct grpc_conn_ops ops = {
	.headers = on_headers,
	.header = on_header,
	.data = on_data,
	.frame = on_frame,
	.closed = on_closed,
	.server = true,
};

static void drop_peer(struct peer *p)
{
	struct grpc_server *s = p->server;
	struct peer **at = &s->peers;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	s->n_peers--;
	while (p->calls)
		drop_call(p, p->calls);
	grpc_conn_fini(&p->conn);
	free(p);
}

static void peer_ready(struct event *e, uint32_t ready)
{
	struct grpc_conn *conn = container_of(e, struct grpc_conn, event);

	if (grpc_conn_turn(conn, ready) < 0)
		drop_peer(container_of(conn, struct peer, conn));
}

static void accept_again(struct event_timer *t)
{
	struct grpc_server *s = container_of(t, struct grpc_server, retry);

	events_want(s->config.events, &s->listener, EPOLLIN);
}

static bool is_idle(const struct peer *p)
{
	const struct grpc_call *c = p->calls;

	while (c && (!c->begun || c->ended))
		c = c->next;
	return !c;
}

/* Of too many connections the oldest that waits for nothing goes: clients that
 * only connect do not keep a kubelet out. */
static void make_room(struct grpc_server *s)
{
	struct peer *oldest = NULL;

	for (struct peer *p = s->peers; p; p = p->next)
		if (is_idle(p))
			oldest = p;
	if (s->n_peers == GRPC_CONNS && oldest)
		drop_peer(oldest);
}

static void accept_one(struct event *e, uint32_t ready)
{
	struct grpc_server *s = container_of(e, struct grpc_server, listener);
	int fd = accept4(e->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct peer *p;

	(void)ready;
	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		/* without descriptors it would stay readable */
		events_want(s->config.events, e, 0);
		event_timer_in(&s->retry, ACCEPT_PAUSE_NS);
		return;
	}
	make_room(s);
	p = s->n_peers < GRPC_CONNS ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		close(fd);
		return;
	}
	p->server = s;
	p->next = s->peers;
	s->peers = p;
	s->n_peers++;
	if (grpc_conn_init(&p->conn, s->config.events, fd, peer_ready, &ops,
			   p) < 0)
		drop_peer(p);
}

/* --- the socket ----------------------------------------------------------- */

static int listen_at(struct grpc_server *s, struct err *err)
{
	int r = local_socket_listen(s->path, 0600, &s->place, err);

	if (r < 0)
		return r;
	s->listener.fd = r;
	r = events_add(s->config.events, &s->listener, EPOLLIN);
	return r < 0 ? err_set(err, r, "%s: %s", s->path, strerror(-r)) : 0;
}

bool grpc_server_reachable(const struct grpc_server *s)
{
	return local_socket_there(s->path, &s->place);
}

int grpc_server_new(const struct grpc_server_config *config, const char *path,
		    struct grpc_server **ret, struct err *err)
{
	struct grpc_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->config = *config;
	s->listener.fd = -1;
	s->listener.fn = accept_one;
	s->retry = (struct event_timer){ .at = TICK_NEVER, .fn = accept_again };
	events_add_timer(config->events, &s->retry);
	s->path = strdup(path);
	r = s->path ? listen_at(s, err)
		    : err_set(err, -ENOMEM, "out of memory");
	if (r < 0)
		grpc_server_free(s);
	else
		*ret = s;
	return r;
}

void grpc_server_free(struct grpc_server *s)
{
	if (!s)
		return;
	while (s->peers) {
		for (struct grpc_call *c = s->peers->calls; c; c = c->next)
			c->ended = true;
		drop_peer(s->peers);
	}
	if (s->path)
		local_socket_leave(s->path, &s->place);
	events_remove_timer(s->config.events, &s->retry);
	events_close(s->config.events, &s->listener);
	free(s->path);
	free(s);
}
