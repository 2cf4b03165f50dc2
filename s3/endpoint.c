/* SPDX-License-Identifier: MIT */
#include "s3/endpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utlist.h>

#include "common/log.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/util.h"
#include "net/addr.h"
#include "s3/dispatch.h"
#include "s3/proto/xml.h"
#include "s3/put.h"

/* arbitrary: S3 allows headers of 8 KiB, and MHD needs room for the answer */
#define CONNECTION_BYTES ((size_t)32 * 1024)
/* Source: RFC 8996 deprecates the others, which GnuTLS still has by default. */
#define TLS_VERSIONS "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"
/* Of a body, bytes a second. arbitrary: a client that is slower holds its
 * connection for as long as it likes */
enum { LEAST_PER_S = 1000 };
/* arbitrary: more threads than this do not help one network card */
enum { MOST_THREADS = ENDPOINT_SPARE / 8, BACKLOG = 4096 };

struct client {
	int fd;
	uint64_t since; /* wall ns: of its last answer, or its begin */
	enum { READS_HEADERS, READS_BODY, SERVED } state;
	uint64_t bytes; /* of bodies; atomic */
	uint64_t had;	/* of these, at `since` */
	bool refused;
	struct client *prev, *next;
};

struct endpoint {
	struct endpoint_config c;
	struct MHD_Daemon *daemon;
	pthread_mutex_t lock; /* guards the list and what is in it */
	struct client *clients;
	unsigned n_clients; /* that are not refused */
	bool told;	    /* that clients were refused */
	bool quiet;	    /* the listener is ours again */
};

/* --- connections -------------------------------------------------------- */

/* One too many: what S3 says, as soon as it comes. If it waited, it would be
 * for connections that others keep idle. */
static void refuse(struct endpoint *e, struct client *c)
{
	static const char body[] = XML_START
		"<Error><Code>SlowDown</Code><Message>Too many "
		"connections.</Message></Error>";
	char text[512];
	int n = snprintf(text, sizeof(text),
			 "HTTP/1.1 503 Service Unavailable\r\n"
			 "Content-Type: application/xml\r\n"
			 "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
			 strlen(body), body);

	/* there is room for it; with TLS it could not be read */
	if (!e->c.certificate)
		send(c->fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(c->fd, SHUT_RDWR);
	__atomic_fetch_add(&e->c.service->refused, 1, __ATOMIC_RELAXED);
}

static void add_client(struct endpoint *e, struct client *c)
{
	bool tell;

	pthread_mutex_lock(&e->lock);
	DL_APPEND(e->clients, c);
	c->refused = e->n_clients == e->c.connections;
	e->n_clients += !c->refused;
	tell = c->refused && !e->told;
	e->told |= tell;
	pthread_mutex_unlock(&e->lock);
	if (c->refused)
		refuse(e, c);
	if (tell)
		log_warn("there are %u connections: more are refused "
			 "(--connections)",
			 e->c.connections);
}

static void connection_changed(void *ctx, struct MHD_Connection *connection,
			       void **socket_ctx,
			       enum MHD_ConnectionNotificationCode what)
{
	struct endpoint *e = ctx;
	struct client *c = *socket_ctx;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		c = calloc(1, sizeof(*c));
		*socket_ctx = c;
		if (!c)
			return;
		c->fd = MHD_get_connection_info(
				connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd;
		c->since = tick_wall();
		addr_tune(c->fd);
		__atomic_fetch_add(&e->c.service->connections, 1,
				   __ATOMIC_RELAXED);
		add_client(e, c);
	} else if (c) {
		pthread_mutex_lock(&e->lock);
		DL_DELETE(e->clients, c);
		e->n_clients -= !c->refused;
		pthread_mutex_unlock(&e->lock);
		free(c);
	}
}

static struct client *client_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection,
				       MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

static void set_state(struct endpoint *e, struct MHD_Connection *connection,
		      int state)
{
	struct client *c = client_of(connection);

	if (!c)
		return;
	LOCK_SCOPE(&e->lock);
	c->state = state;
	c->since = tick_wall();
	c->had = c->bytes;
}

/* More of a body. */
static void note_bytes(struct MHD_Connection *connection, size_t n)
{
	struct client *c = client_of(connection);

	if (c)
		__atomic_fetch_add(&c->bytes, n, __ATOMIC_RELAXED);
}

/* Under the lock: has it sent too little for too long? */
static bool is_slow(struct client *c, uint64_t most_ns, uint64_t now)
{
	uint64_t bytes = __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
	uint64_t least = most_ns / NS_PER_S * LEAST_PER_S;

	if (c->state == SERVED || now <= c->since + most_ns)
		return false;
	if (c->state == READS_HEADERS || bytes - c->had < least)
		return true;
	c->since = now;
	c->had = bytes;
	return false;
}

/* Under the lock: has it gone in the middle of a body? libmicrohttpd is not
 * told of an end that came together with the last bytes. */
static bool is_gone(const struct client *c)
{
	char byte;

	return c->state == READS_BODY &&
	       recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void endpoint_sweep(struct endpoint *e)
{
	uint64_t now = tick_wall();
	struct client *c;

	LOCK_SCOPE(&e->lock);
	DL_FOREACH (e->clients, c)
		if (is_slow(c, e->c.header_ns, now) || is_gone(c))
			shutdown(c->fd, SHUT_RDWR);
}

/* --- requests ----------------------------------------------------------- */

/* The request line has come. */
static void *request_begins(void *ctx, const char *uri,
			    struct MHD_Connection *connection)
{
	struct client *c = client_of(connection);
	struct endpoint *e = ctx;
	struct exchange *x;

	if (c && c->refused)
		return NULL;
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->service = e->c.service;
	x->connection = connection;
	x->raw = strdup(uri);
	x->number =
		__atomic_add_fetch(&x->service->requests, 1, __ATOMIC_RELAXED);
	return x;
}

static void request_ends(void *ctx, struct MHD_Connection *connection,
			 void **request, enum MHD_RequestTerminationCode code)
{
	struct exchange *x = *request;

	(void)code;
	*request = NULL;
	set_state(ctx, connection, READS_HEADERS);
	if (!x)
		return;
	put_free(x);
	receive_free(x->receive);
	exchange_fini(x);
	free(x);
}

static bool has_body(const struct exchange *x)
{
	const char *length = exchange_header(x, "Content-Length");

	return exchange_header(x, "Transfer-Encoding") ||
	       (length && strcmp(length, "0"));
}

static enum MHD_Result count_length(void *ctx, enum MHD_ValueKind kind,
				    const char *name, const char *value)
{
	unsigned *n = ctx;

	(void)kind;
	(void)value;
	*n += !strcasecmp(name, "Content-Length") ||
	      !strcasecmp(name, "Transfer-Encoding");
	return MHD_YES;
}

/* Does it say once at most how long its body is? Else a proxy may disagree on
 * which bytes are the next request. Source: RFC 9112, section 6.3. */
static bool has_one_end(const struct exchange *x)
{
	unsigned n = 0;

	MHD_get_connection_values(x->connection, MHD_HEADER_KIND, count_length,
				  &n);
	return n <= 1;
}

/* The headers are there. */
static enum MHD_Result begin_exchange(struct endpoint *e, struct exchange *x,
				      const char *method)
{
	x->complete = true;
	x->method = method;
	x->arrival = tick_now(server_tick(x->service->server));
	if (!has_one_end(x)) /* this early an answer ends the connection */
		return exchange_fail(x, FAILURE_INVALID_REQUEST, NULL);
	x->receiving = has_body(x);
	set_state(e, x->connection, x->receiving ? READS_BODY : SERVED);
	/* what it asks decides what becomes of its body */
	return x->receiving ? dispatch(x) : MHD_YES;
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection,
			      const char *url, const char *method,
			      const char *version, const char *upload,
			      size_t *upload_n, void **request)
{
	struct exchange *x = *request;

	(void)url;
	(void)version;
	if (!x || !x->raw)
		return MHD_NO;
	if (!x->complete)
		return begin_exchange(ctx, x, method);
	if (*upload_n) {
		note_bytes(connection, *upload_n);
		if (x->receive)
			receive_add(x->receive, upload, *upload_n);
		*upload_n = 0;
		return MHD_YES;
	}
	if (x->receiving)
		set_state(ctx, connection, SERVED);
	x->receiving = false;
	return x->step ? x->step(x) : dispatch(x);
}

/* --- life --------------------------------------------------------------- */

static void log_mhd(void *ctx, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

static void log_mhd(void *ctx, const char *fmt, va_list ap)
{
	char text[256];

	(void)ctx;
	vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = 0;
	log_line(LOG_LEVEL_DEBUG, "%s", text);
}

static struct MHD_Daemon *start_daemon(struct endpoint *e, unsigned threads)
{
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD |
			 MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
			 (e->c.certificate ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0,
		  (void *)(uintptr_t)e->c.certificate },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)e->c.key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0,
		  (void *)(uintptr_t)TLS_VERSIONS },
		{ MHD_OPTION_END, 0, NULL },
	};

	return MHD_start_daemon(
		flags, 0, NULL, NULL, handle, e, MHD_OPTION_EXTERNAL_LOGGER,
		log_mhd, NULL, MHD_OPTION_ARRAY,
		e->c.certificate ? tls : tls + 3, MHD_OPTION_LISTEN_SOCKET,
		e->c.listener, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0,
		MHD_OPTION_CONNECTION_LIMIT, e->c.connections + ENDPOINT_SPARE,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)(e->c.header_ns / NS_PER_S + 1),
		MHD_OPTION_NOTIFY_COMPLETED, request_ends, e,
		MHD_OPTION_NOTIFY_CONNECTION, connection_changed, e,
		MHD_OPTION_URI_LOG_CALLBACK, request_begins, e, MHD_OPTION_END);
}

int endpoint_new(const struct endpoint_config *config, struct endpoint **ret,
		 struct err *err)
{
	struct endpoint *e = calloc(1, sizeof(*e));

	if (!e)
		return err_set(err, -ENOMEM, "out of memory");
	e->c = *config;
	pthread_mutex_init(&e->lock, NULL);
	listen(config->listener, BACKLOG);
	e->daemon = start_daemon(e, MIN(thread_cpus(), (unsigned)MOST_THREADS));
	if (!e->daemon) {
		endpoint_free(e);
		return config->certificate
			       ? err_set(err, -EINVAL,
					 "cannot start the HTTPS server: no "
					 "certificate and its key, or a "
					 "libmicrohttpd without TLS")
			       : err_set(err, -EIO,
					 "cannot start the HTTP server");
	}
	*ret = e;
	return 0;
}

void endpoint_quiesce(struct endpoint *e)
{
	if (MHD_quiesce_daemon(e->daemon) != MHD_INVALID_SOCKET)
		e->quiet = true;
}

void endpoint_free(struct endpoint *e)
{
	if (!e)
		return;
	if (e->daemon)
		MHD_stop_daemon(e->daemon);
	if (e->quiet || !e->daemon)
		close(e->c.listener);
	pthread_mutex_destroy(&e->lock);
	free(e);
}
