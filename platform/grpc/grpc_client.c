/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/program/local_socket.h"
#include "common/util.h"
#include "platform/grpc/grpc.h"
#include "platform/grpc/grpc_conn.h"
#include "platform/grpc/grpc_frame.h"

struct grpc_client {
	struct grpc_conn conn;
	struct event_timer timer;
	struct grpc_request request; /* its callback */
	uint8_t *out;		     /* the message; [at, n) is to be sent */
	size_t at, n;
	struct grpc_inbox in;
	int32_t id; /* of the stream; the server may open others */
	bool http_ok;
	int status;  /* of gRPC; -1: not heard of yet */
	bool broken; /* the answer is not one message */
	bool closed; /* the call has ended */
	char text[GRPC_TEXT];
};

/* --- the answer ----------------------------------------------------------- */

static int on_headers(void *owner, const nghttp2_frame *frame)
{
	(void)owner;
	(void)frame;
	return 0;
}

/* What is no number is as the protocol has it. */
static int parse_status(const uint8_t *value, size_t n)
{
	int status = 0;

	if (n == 0 || n > 3)
		return GRPC_UNKNOWN;
	for (size_t i = 0; i < n; i++) {
		if (value[i] < '0' || value[i] > '9')
			return GRPC_UNKNOWN;
		status = 10 * status + value[i] - '0';
	}
	return status;
}

static void on_header(void *owner, int32_t id, const char *name,
		      const uint8_t *value, size_t n)
{
	struct grpc_client *c = owner;

	if (id != c->id)
		return;
	if (!strcmp(name, ":status"))
		c->http_ok = n == 3 && !memcmp(value, "200", 3);
	else if (!strcmp(name, "grpc-status"))
		c->status = parse_status(value, n);
	else if (!strcmp(name, "grpc-message"))
		grpc_text_decode(value, n, c->text);
}

static void on_data(void *owner, int32_t id, const uint8_t *data, size_t n)
{
	struct grpc_client *c = owner;

	if (id == c->id && !c->broken)
		c->broken = grpc_inbox_add(&c->in, data, n) < 0;
}

static void on_frame(void *owner, const nghttp2_frame *frame)
{
	(void)owner;
	(void)frame;
}

static void on_closed(void *owner, int32_t id)
{
	struct grpc_client *c = owner;

	c->closed |= id == c->id;
}

static const struct grpc_conn_ops ops = {
	.headers = on_headers,
	.header = on_header,
	.data = on_data,
	.frame = on_frame,
	.closed = on_closed,
};

/* --- its end -------------------------------------------------------------- */

/* Free the client first: the callback may make the next call. */
static void finish_call(struct grpc_client *c, enum grpc_status status,
			const char *text)
{
	struct grpc_request request = c->request;
	struct grpc_inbox in = c->in;
	char copy[GRPC_TEXT];

	snprintf(copy, sizeof(copy), "%s", text);
	grpc_inbox_init(&c->in, 0);
	grpc_client_free(c);
	request.done(request.ctx, status, copy,
		     status == GRPC_OK ? (in.bytes ? (void *)in.bytes : "")
				       : NULL,
		     status == GRPC_OK ? in.n : 0);
	grpc_inbox_fini(&in);
}

static void judge(struct grpc_client *c)
{
	if (c->status > 0)
		finish_call(c, (enum grpc_status)c->status, c->text);
	else if (c->status < 0)
		finish_call(c, GRPC_UNAVAILABLE,
			    c->http_ok ? "the call was cut off"
				       : "the server does not speak gRPC");
	else if (c->broken || !grpc_inbox_whole(&c->in))
		finish_call(c, GRPC_INTERNAL, "the answer is not one message");
	else
		finish_call(c, GRPC_OK, "");
}

static void ready(struct event *e, uint32_t what)
{
	struct grpc_conn *conn = container_of(e, struct grpc_conn, event);
	struct grpc_client *c = container_of(conn, struct grpc_client, conn);
	int r = grpc_conn_turn(conn, what);

	if (c->closed)
		judge(c);
	else if (r < 0)
		finish_call(c, GRPC_UNAVAILABLE,
			    "the server closed the connection");
}

static void late(struct event_timer *t)
{
	finish_call(container_of(t, struct grpc_client, timer),
		    GRPC_DEADLINE_EXCEEDED, "no answer in time");
}

/* --- the call ------------------------------------------------------------- */

static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *buf,
			size_t room, uint32_t *flags,
			nghttp2_data_source *source, void *user)
{
	struct grpc_client *c = source->ptr;
	size_t n = MIN(room, c->n - c->at);

	(void)session;
	(void)id;
	(void)user;
	memcpy(buf, c->out + c->at, n);
	c->at += n;
	if (c->at == c->n)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static int submit(struct grpc_client *c)
{
	nghttp2_nv nv[] = {
		grpc_header(":method", "POST"),
		grpc_header(":scheme", "http"),
		grpc_header(":path", c->request.method),
		grpc_header(":authority", "localhost"),
		grpc_header("content-type", "application/grpc"),
		grpc_header("te", "trailers"),
		grpc_header("user-agent", "gpemu"),
	};
	nghttp2_data_provider data = { .source.ptr = c,
				       .read_callback = read_out };

	c->id = nghttp2_submit_request(c->conn.session, NULL, nv,
				       ARRAY_SIZE(nv), &data, NULL);
	return c->id < 0 ? -ENOMEM : 0;
}

static int dial(const char *path, struct err *err)
{
	struct sockaddr_un a;
	int fd, r = local_socket_address(path, &a, err);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	r = -errno;
	if (fd >= 0)
		close(fd);
	return err_set(err, r, "%s: %s", path, strerror(-r));
}

static int copy_message(struct grpc_client *c, const struct grpc_request *q)
{
	c->request = *q;
	c->n = GRPC_PREFIX + q->n;
	c->out = malloc(c->n);
	if (!c->out)
		return -ENOMEM;
	grpc_prefix(c->out, q->n);
	if (q->n)
		memcpy(c->out + GRPC_PREFIX, q->message, q->n);
	return 0;
}

int grpc_client_new(struct events *events, const struct grpc_request *request,
		    struct grpc_client **ret, struct err *err)
{
	struct grpc_client *c;
	int r, fd = dial(request->path, err);

	if (fd < 0)
		return fd;
	c = calloc(1, sizeof(*c));
	if (!c) {
		close(fd);
		return err_set(err, -ENOMEM, "out of memory");
	}
	c->status = -1;
	grpc_inbox_init(&c->in, GRPC_MAX_ANSWER);
	c->timer =
		(struct event_timer){ .at = tick_wall() + request->timeout_ns,
				      .fn = late };
	events_add_timer(events, &c->timer);
	r = grpc_conn_init(&c->conn, events, fd, ready, &ops, c);
	if (r == 0)
		r = copy_message(c, request);
	if (r == 0)
		r = submit(c);
	if (r < 0) {
		grpc_client_free(c);
		return err_set(err, r, "%s: %s", request->path, strerror(-r));
	}
	*ret = c;
	return 0;
}

void grpc_client_free(struct grpc_client *c)
{
	if (!c)
		return;
	events_remove_timer(c->conn.events, &c->timer);
	grpc_conn_fini(&c->conn);
	grpc_inbox_fini(&c->in);
	free(c->out);
	free(c);
}
