/* SPDX-License-Identifier: MIT */
#include "s3/body.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/thread.h"
#include "common/tick.h"
#include "common/util.h"

/*
 * The first piece is small, as the client waits for it: 16 KiB take .2 ms at
 * the 87.5 MB/s of a request to S3, .6 % of its first byte. arbitrary: the
 * others cost .5 % of the time of a core at that rate.
 */
enum { FIRST = 16 * 1024, PIECE = 256 * 1024, MOST_HELD = 2 * PIECE };

struct piece {
	struct piece *next;
	size_t n, at; /* bytes, and how many of them were sent */
	unsigned char bytes[];
};

struct body {
	/* while `reading`: of the dataset, of what was put */
	struct read_request read;
	struct fetch fetch;
	struct piece *piece; /* what the fetch reads */
	char *path;	     /* NULL: it is of the dataset */
	int fd;
	struct server *server;
	struct MHD_Connection *connection;
	struct handle *handle;
	uint32_t node;
	uint64_t from, next, end; /* of the file; next: not yet requested */
	pthread_mutex_t lock;	  /* guards all below */
	struct piece *first, **last;
	size_t held;	   /* bytes in pieces */
	uint64_t deadline; /* of the last piece; 0: it was free, or long ago */
	int error;
	bool reading; /* a request is under way */
	bool pumping; /* a thread is in pump() */
	bool waits;   /* the connection is suspended */
	bool closed;
};

static void put_body(struct body *b)
{
	struct piece *p, *next;

	for (p = b->first; p; p = next) {
		next = p->next;
		free(p);
	}
	if (b->handle)
		server_close(b->server, b->handle);
	if (b->fd >= 0)
		close(b->fd);
	free(b->path);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* Under the lock: prepare the next read; false: not now. */
static bool next_read(struct body *b)
{
	uint64_t done = b->next - b->from, now;

	if (b->reading || b->closed || b->error || b->next == b->end)
		return false;
	if (b->held && b->held + PIECE > MOST_HELD) {
		b->deadline = 0; /* it goes on when the client has read */
		return false;
	}
	now = tick_now(server_tick(b->server));
	b->read.offset = b->next;
	b->read.bytes = MIN(done ? PIECE : FIRST, b->end - b->next);
	b->read.before = done;
	b->read.client = done ? NULL : b;
	if (done)
		b->read.arrival = b->deadline ? MIN(b->deadline, now) : now;
	b->next += b->read.bytes;
	b->reading = true;
	return true;
}

/* Under the lock: may this thread pump? Then it must. */
static bool may_pump(struct body *b)
{
	bool may = !b->pumping;

	b->pumping = true;
	return may;
}

static void read_file(struct body *b);

/* Request pieces as long as they come at once. `b` may be gone on return,
 * unless its owner calls. */
static void pump(struct body *b)
{
	bool gone;

	pthread_mutex_lock(&b->lock);
	while (next_read(b)) {
		pthread_mutex_unlock(&b->lock);
		if (b->path)
			read_file(b);
		else
			server_read(b->server, &b->read);
		pthread_mutex_lock(&b->lock);
	}
	b->pumping = false;
	gone = b->closed && !b->reading;
	pthread_mutex_unlock(&b->lock);
	if (gone)
		put_body(b);
}

static struct piece *piece_of(const struct iovec *iov, int n_iov)
{
	struct piece *p;
	size_t n = 0;

	for (int i = 0; i < n_iov; i++)
		n += iov[i].iov_len;
	p = malloc(sizeof(*p) + n);
	if (!p)
		return NULL;
	*p = (struct piece){ .n = 0 };
	for (int i = 0; i < n_iov; i++) {
		memcpy(p->bytes + p->n, iov[i].iov_base, iov[i].iov_len);
		p->n += iov[i].iov_len;
	}
	return p;
}

/* `p`: what has come; NULL: an error, or no memory. */
static void add_piece(struct body *b, struct piece *p, int error,
		      uint64_t deadline)
{
	bool pumps;

	pthread_mutex_lock(&b->lock);
	b->reading = false;
	b->error = error ? error : p ? 0 : -ENOMEM;
	b->deadline = deadline;
	if (p) {
		*b->last = p;
		b->last = &p->next;
		b->held += p->n;
	}
	if (b->waits) {
		b->waits = false;
		MHD_resume_connection(b->connection);
	}
	pumps = may_pump(b);
	pthread_mutex_unlock(&b->lock);
	if (pumps)
		pump(b);
}

static void arrived(struct read_request *request, int error,
		    const struct iovec *iov, int n_iov)
{
	struct body *b = container_of(request, struct body, read);

	add_piece(b, error ? NULL : piece_of(iov, n_iov), error,
		  server_read_deadline(request));
}

/* --- objects that were put ---------------------------------------------- */

/* On a thread of the server. */
static int work(struct fetch *f)
{
	struct body *b = container_of(f, struct body, fetch);
	struct piece *p = malloc(sizeof(*p) + f->bytes);
	ssize_t n;

	if (!p)
		return -ENOMEM;
	*p = (struct piece){ .n = f->bytes };
	n = util_read_all(b->fd, p->bytes, p->n, (int64_t)f->offset);
	if (n < 0 || (size_t)n != p->n) { /* others have cut it */
		free(p);
		return n < 0 ? (int)n : -EIO;
	}
	b->piece = p;
	return 0;
}

static void fetched(struct fetch *f, bool stopping)
{
	struct body *b = container_of(f, struct body, fetch);
	struct piece *p = TAKE_PTR(b->piece);
	int error = stopping ? -ECONNABORTED : f->error;

	server_metadata_answered(b->server, f, error);
	if (error) {
		free(p);
		p = NULL;
	}
	add_piece(b, p, error, f->deadline);
}

static void read_file(struct body *b)
{
	const struct read_request *r = &b->read;

	b->fetch = (struct fetch){ .op = STORAGE_READ,
				   .node = b->node,
				   .path = b->path,
				   .offset = r->offset,
				   .bytes = r->bytes,
				   .before = r->before,
				   .arrival = r->arrival,
				   .client = r->client,
				   .work = work,
				   .done = fetched };
	server_operate(b->server, &b->fetch);
}

/* --- its life ----------------------------------------------------------- */

struct body *body_new(const struct body_of *of)
{
	struct body *b = calloc(1, sizeof(*b));

	if (b && of->path)
		b->path = strdup(of->path);
	else if (b)
		b->handle = server_open(of->server, of->node);
	if (!b || (!b->path && !b->handle)) {
		if (of->path)
			close(of->fd);
		free(b);
		return NULL;
	}
	b->fd = of->path ? of->fd : -1;
	b->node = of->node;
	b->server = of->server;
	b->connection = of->connection;
	b->read.handle = b->handle;
	b->from = b->next = of->from;
	b->end = of->end;
	b->read.arrival = of->arrival;
	b->read.reply = arrived;
	b->last = &b->first;
	b->pumping = true;
	pthread_mutex_init(&b->lock, NULL);
	pump(b);
	return b;
}

void body_free(struct body *b)
{
	bool gone;

	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->closed = true;
	gone = !b->reading && !b->pumping;
	pthread_mutex_unlock(&b->lock);
	if (gone)
		put_body(b);
}

bool body_ready(struct body *b, int *ret_error)
{
	bool ready;

	LOCK_SCOPE(&b->lock);
	ready = b->first || b->error;
	*ret_error = b->first ? 0 : b->error;
	if (!ready) {
		b->waits = true;
		MHD_suspend_connection(b->connection);
	}
	return ready;
}

/* --- the response ------------------------------------------------------- */

static void drop_first(struct body *b)
{
	struct piece *p = b->first;

	b->held -= p->n;
	b->first = p->next;
	if (!b->first)
		b->last = &b->first;
	free(p);
}

static ssize_t take_pieces(void *ctx, uint64_t at, char *buf, size_t most)
{
	struct body *b = ctx;
	struct piece *p;
	bool pumps = false;
	ssize_t n = 0;

	(void)at;
	pthread_mutex_lock(&b->lock);
	p = b->first;
	if (p) {
		n = (ssize_t)MIN(most, p->n - p->at);
		memcpy(buf, p->bytes + p->at, (size_t)n);
		p->at += (size_t)n;
		if (p->at == p->n)
			drop_first(b);
		pumps = may_pump(b);
	} else if (b->error) {
		n = MHD_CONTENT_READER_END_WITH_ERROR;
	} else {
		b->waits = true;
		MHD_suspend_connection(b->connection);
	}
	pthread_mutex_unlock(&b->lock);
	if (pumps)
		pump(b);
	return n;
}

static void release(void *ctx)
{
	body_free(ctx);
}

struct MHD_Response *body_response(struct body *b)
{
	struct MHD_IoVec iov[MOST_HELD / FIRST];
	unsigned n = 0;
	bool all;

	pthread_mutex_lock(&b->lock);
	all = b->next == b->end && !b->reading && !b->error;
	for (const struct piece *p = b->first; all && p; p = p->next)
		iov[n++] = (struct MHD_IoVec){ p->bytes, p->n };
	pthread_mutex_unlock(&b->lock);
	if (all)
		return MHD_create_response_from_iovec(iov, n, release, b);
	return MHD_create_response_from_callback(b->end - b->from, PIECE,
						 take_pieces, b, release);
}
