/* SPDX-License-Identifier: MIT */
#include "platform/grpc/grpc_conn.h"

#include <errno.h>
#include <sys/socket.h>

#include "common/util.h"
#include "platform/grpc/grpc.h"

enum {
	/* Received at once. arbitrary: a frame of HTTP/2's default size */
	READ_BYTES = 16384,
	/* Bytes of a block of headers. arbitrary: gRPC's take 200 */
	HEADER_BYTES = 8192,
};

/* --- what the session calls ----------------------------------------------- */

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t n,
		       int flags, void *user)
{
	struct grpc_conn *c = user;
	ssize_t k = send(c->event.fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	(void)session;
	(void)flags;
	if (k >= 0)
		return k;
	return errno == EAGAIN || errno == EINTR ? NGHTTP2_ERR_WOULDBLOCK
						 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_headers(nghttp2_session *session, const nghttp2_frame *frame,
		      void *user)
{
	struct grpc_conn *c = user;

	(void)session;
	return c->ops->headers(c->owner, frame) < 0
		       ? NGHTTP2_ERR_CALLBACK_FAILURE
		       : 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
		     const uint8_t *name, size_t n_name, const uint8_t *value,
		     size_t n, uint8_t flags, void *user)
{
	struct grpc_conn *c = user;

	(void)session;
	(void)n_name; /* it ends with a zero */
	(void)flags;
	c->ops->header(c->owner, frame->hd.stream_id, (const char *)name, value,
		       n);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
		   const uint8_t *data, size_t n, void *user)
{
	struct grpc_conn *c = user;

	(void)session;
	(void)flags;
	c->ops->data(c->owner, id, data, n);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
		    void *user)
{
	struct grpc_conn *c = user;

	(void)session;
	c->ops->frame(c->owner, frame);
	return 0;
}

static int on_closed(nghttp2_session *session, int32_t id, uint32_t code,
		     void *user)
{
	struct grpc_conn *c = user;

	(void)session;
	(void)code;
	c->ops->closed(c->owner, id);
	return 0;
}

/* --- the session ---------------------------------------------------------- */

static int submit_settings(const struct grpc_conn *c)
{
	static const nghttp2_settings_entry server[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_CALLS },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_BYTES },
	};
	static const nghttp2_settings_entry client[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_BYTES },
	};
	bool is_server = c->ops->server;

	return nghttp2_submit_settings(
		c->session, NGHTTP2_FLAG_NONE, is_server ? server : client,
		is_server ? ARRAY_SIZE(server) : ARRAY_SIZE(client));
}

static int open_session(struct grpc_conn *c)
{
	nghttp2_session_callbacks *calls = NULL;
	nghttp2_option *option = NULL;
	int r = nghttp2_session_callbacks_new(&calls);

	if (r == 0)
		r = nghttp2_option_new(&option);
	if (r == 0) {
		nghttp2_session_callbacks_set_send_callback(calls, on_send);
		nghttp2_session_callbacks_set_on_begin_headers_callback(
			calls, on_headers);
		nghttp2_session_callbacks_set_on_header_callback(calls,
								 on_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
			calls, on_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(calls,
								     on_frame);
		nghttp2_session_callbacks_set_on_stream_close_callback(
			calls, on_closed);
		/* a path as :authority, see grpc.h */
		nghttp2_option_set_no_http_messaging(option, 1);
		r = c->ops->server
			    ? nghttp2_session_server_new2(&c->session, calls, c,
							  option)
			    : nghttp2_session_client_new2(&c->session, calls, c,
							  option);
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(calls);
	if (r == 0)
		r = submit_settings(c);
	return r < 0 ? -ENOMEM : 0;
}

int grpc_conn_init(struct grpc_conn *c, struct events *events, int fd,
		   void (*fn)(struct event *e, uint32_t ready),
		   const struct grpc_conn_ops *ops, void *owner)
{
	int r;

	*c = (struct grpc_conn){ .event = { .fd = fd, .fn = fn },
				 .events = events,
				 .ops = ops,
				 .owner = owner };
	r = open_session(c);
	return r < 0 ? r : events_add(events, &c->event, EPOLLIN | EPOLLOUT);
}

void grpc_conn_fini(struct grpc_conn *c)
{
	events_close(c->events, &c->event);
	nghttp2_session_del(c->session);
	c->session = NULL;
}

static int take_bytes(struct grpc_conn *c)
{
	uint8_t buf[READ_BYTES];
	ssize_t n = recv(c->event.fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	n = nghttp2_session_mem_recv(c->session, buf, (size_t)n);
	return n < 0 ? -EPROTO : 0;
}

int grpc_conn_turn(struct grpc_conn *c, uint32_t ready)
{
	int r = ready & ~(uint32_t)EPOLLOUT ? take_bytes(c) : 0;

	if (r == 0 && nghttp2_session_send(c->session) < 0)
		r = -EPIPE;
	if (r < 0)
		return r;
	/* after a violation it sends GOAWAY, and then wants nothing */
	if (!nghttp2_session_want_read(c->session) &&
	    !nghttp2_session_want_write(c->session))
		return -EPROTO;
	events_want(c->events, &c->event,
		    EPOLLIN | (nghttp2_session_want_write(c->session)
				       ? (uint32_t)EPOLLOUT
				       : 0));
	return 0;
}

void grpc_conn_wake(struct grpc_conn *c)
{
	events_want(c->events, &c->event, EPOLLIN | EPOLLOUT);
}
