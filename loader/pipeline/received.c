/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/received.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "emu/gpu/pinned.h"
#include "loader/pipeline/buffer.h"
#include "loader/pipeline/finish.h"

/* Batches of one size. */
struct memory {
	struct pinned_pool *pool; /* NULL: plain */
	struct pinned_buffer **pinned;
	struct buffer *plain;
	unsigned char **buffer; /* n */
	uint32_t n;
};

struct received {
	struct received_config c;
	const struct remote_ops *ops;
	void *state;
	struct memory arrived;	  /* from the network */
	struct memory finished;	  /* with the last step; none without */
	uint64_t n_epoch, n_left; /* samples */
	int error;		  /* of received_begin */
	struct err err;
};

/* One that is received while the GPUs have theirs. */
static uint32_t least(const struct received *r)
{
	return MAX(r->c.gpus, 1) + 1;
}

/* As many as fit. */
static int lock_memory(const struct received *r, struct memory *m,
		       uint32_t want, size_t bytes, struct err *err)
{
	int code = pinned_new(want, bytes, r->c.budget, &m->pool, err);

	while (code == 0 && m->n < want) {
		struct pinned_buffer **b = &m->pinned[m->n];

		if (pinned_try_get(m->pool, bytes, b, NULL) < 0)
			break;
		m->buffer[m->n++] = (*b)->data;
	}
	if (code == 0 && m->n < least(r))
		code = err_set(err, -E2BIG,
			       "%u batches of %zu bytes do not fit into "
			       "--pin-budget",
			       least(r), bytes);
	return code;
}

static int take_memory(struct memory *m, uint32_t want, size_t bytes,
		       struct err *err)
{
	for (; m->n < want; m->n++) {
		if (buffer_reserve(&m->plain[m->n], bytes) < 0)
			return err_set(err, -ENOMEM,
				       "out of memory for %u batches: use a "
				       "smaller outstanding= or --batch",
				       want);
		m->buffer[m->n] = (unsigned char *)m->plain[m->n].data;
	}
	return 0;
}

static int memory_open(const struct received *r, struct memory *m,
		       uint32_t want, size_t bytes, bool pinned,
		       struct err *err)
{
	m->pinned = calloc(want, sizeof(struct pinned_buffer *));
	m->plain = calloc(want, sizeof(*m->plain));
	m->buffer = calloc(want, sizeof(unsigned char *));
	if (!m->pinned || !m->plain || !m->buffer)
		return err_set(err, -ENOMEM, "out of memory");
	return pinned ? lock_memory(r, m, want, bytes, err)
		      : take_memory(m, want, bytes, err);
}

static void memory_close(struct memory *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		if (m->pool)
			pinned_put(m->pool, m->pinned[i]);
		else
			buffer_free(&m->plain[i]);
	}
	pinned_free(m->pool);
	free(m->pinned);
	free(m->plain);
	free(m->buffer);
}

/* Only what the GPU copies from is page-locked. */
static int open_remote(struct received *r, struct err *err)
{
	const struct received_config *c = &r->c;
	uint32_t want = r->ops->n_buffers(c->engine_options) + least(r);
	size_t bytes = r->ops->buffer_bytes(c->batch, c->service->most_bytes);
	struct remote_config config = { .options = c->engine_options,
					.service = c->service,
					.tick = c->tick,
					.batch = c->batch,
					.buffer_bytes = bytes };
	int code = memory_open(r, &r->arrived, want, bytes,
			       c->pinned && !c->threads, err);

	config.buffer = r->arrived.buffer;
	config.n_buffers = r->arrived.n;
	return code < 0 ? code : r->ops->open(&config, &r->state, err);
}

static int open_finish(struct received *r, struct err *err)
{
	const struct received_config *c = &r->c;
	struct finish_config config = { .prep = c->prep,
					.prep_config = c->prep_config,
					.sample_bytes = c->sample_bytes,
					.tick = c->tick,
					.threads = c->threads,
					.batch = c->batch };
	void *from = TAKE_PTR(r->state);
	struct finish *f;
	int code = memory_open(r, &r->finished, least(r) + c->threads,
			       finish_buffer_bytes(c->batch, c->sample_bytes),
			       c->pinned, err);

	config.buffer = r->finished.buffer;
	config.n_buffers = r->finished.n;
	if (code < 0)
		r->ops->close(from);
	else
		code = finish_new(&config, r->ops, from, &f, err);
	if (code < 0)
		return code;
	r->ops = &finish_ops;
	r->state = f;
	return 0;
}

int received_new(const struct received_config *c, struct received **ret,
		 struct err *err)
{
	struct received *r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return err_set(err, -ENOMEM, "out of memory");
	r->c = *c;
	r->ops = c->engine->remote;
	code = open_remote(r, err);
	if (code == 0 && c->threads)
		code = open_finish(r, err);
	if (code < 0) {
		received_free(r);
		return code;
	}
	*ret = r;
	return 0;
}

void received_free(struct received *r)
{
	if (!r)
		return;
	if (r->state)
		r->ops->close(r->state);
	memory_close(&r->finished);
	memory_close(&r->arrived);
	free(r);
}

void received_begin(struct received *r, uint64_t epoch, const uint32_t *order,
		    uint64_t n)
{
	r->n_epoch = r->n_left = n;
	r->err = (struct err){ 0 };
	r->error = r->ops->begin(r->state, epoch, order, n, &r->err);
}

uint64_t received_cut(struct received *r, uint64_t n)
{
	uint64_t kept = r->error < 0 ? r->n_epoch : r->ops->cut(r->state, n);

	r->n_left -= r->n_epoch - kept;
	r->n_epoch = kept;
	return kept;
}

int received_next(struct received *r, uint64_t idle, uint64_t until,
		  struct delivery *ret, struct err *err)
{
	struct remote_batch b;
	uint32_t queued;
	int code;

	if (r->n_left == 0)
		return -ENODATA;
	if (r->error < 0)
		return err_set(err, r->error, "%s", r->err.text);
	queued = received_n_ready(r);
	code = r->ops->next(r->state, until, &b, err);
	if (code == -ENODATA)
		r->n_left = 0;
	if (code != 0)
		return code;
	/* a worker of the whole dataset may send more than is left */
	*ret = (struct delivery){ .n = (uint32_t)MIN(b.n, r->n_left),
				  .place = b.place,
				  .queued = queued,
				  .complete_ns = b.arrival.ready_ns,
				  .ready_ns = b.arrival.ready_ns,
				  .read_share = r->ops->count(r->state,
							      &b.arrival, idle),
				  .received = b.own };
	delivery_count(ret, r->c.data);
	for (uint32_t i = 0; i < ret->n; i++)
		ret->n_bypassed += ret->place[i].bypassed;
	r->n_left -= ret->n;
	return 0;
}

void received_release(struct received *r, struct delivery *d)
{
	struct remote_batch b = { .n = d->n, .own = d->received };

	r->ops->release(r->state, &b);
}

uint64_t received_left(const struct received *r)
{
	return r->n_left;
}

uint32_t received_n_ready(struct received *r)
{
	return r->ops->n_ready(r->state);
}

void received_stop(struct received *r)
{
	r->ops->stop(r->state);
}

uint64_t received_pinned(struct received *r)
{
	const struct memory *m = r->c.threads ? &r->finished : &r->arrived;

	return m->pool ? pinned_most_bytes(m->pool) : 0;
}

json_t *received_json(struct received *r)
{
	return r->ops->json(r->state);
}
