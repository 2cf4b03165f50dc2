/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/received.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "emu/gpu/pinned.h"
#include "loader/pipeline/buffer.h"

struct received {
	struct received_config c;
	const struct remote_ops *ops;
	void *state;
	struct pinned_pool *pool; /* NULL: plain memory */
	struct pinned_buffer **pinned;
	struct buffer *plain;
	unsigned char **buffer; /* n */
	uint32_t n;
	uint64_t n_epoch, n_left; /* samples */
	int error;		  /* of received_begin */
	struct err err;
	struct worker_failures failures;
};

/* One that is received while the GPUs have theirs. */
static uint32_t least(const struct received *r)
{
	return MAX(r->c.gpus, 1) + 1;
}

/* As many as fit. */
static int lock_memory(struct received *r, uint32_t want, size_t bytes,
		       struct err *err)
{
	int code = pinned_new(want, bytes, r->c.budget, &r->pool, err);

	while (code == 0 && r->n < want) {
		struct pinned_buffer **b = &r->pinned[r->n];

		if (pinned_try_get(r->pool, bytes, b, NULL) < 0)
			break;
		r->buffer[r->n++] = (*b)->data;
	}
	if (code == 0 && r->n < least(r))
		code = err_set(err, -E2BIG,
			       "%u batches of %zu bytes do not fit into "
			       "--pin-budget",
			       least(r), bytes);
	return code;
}

static int take_memory(struct received *r, uint32_t want, size_t bytes,
		       struct err *err)
{
	for (; r->n < want; r->n++) {
		if (buffer_reserve(&r->plain[r->n], bytes) < 0)
			return err_set(err, -ENOMEM,
				       "out of memory for %u batches: use a "
				       "smaller outstanding= or --batch",
				       want);
		r->buffer[r->n] = (unsigned char *)r->plain[r->n].data;
	}
	return 0;
}

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
	int code;

	r->pinned = calloc(want, sizeof(struct pinned_buffer *));
	r->plain = calloc(want, sizeof(*r->plain));
	r->buffer = calloc(want, sizeof(unsigned char *));
	if (!r->pinned || !r->plain || !r->buffer)
		return err_set(err, -ENOMEM, "out of memory");
	code = c->pinned ? lock_memory(r, want, bytes, err)
			 : take_memory(r, want, bytes, err);
	config.buffer = r->buffer;
	config.n_buffers = r->n;
	return code < 0 ? code : r->ops->open(&config, &r->state, err);
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
	for (uint32_t i = 0; i < r->n; i++) {
		if (r->pool)
			pinned_put(r->pool, r->pinned[i]);
		else
			buffer_free(&r->plain[i]);
	}
	pinned_free(r->pool);
	free(r->pinned);
	free(r->plain);
	free(r->buffer);
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

static void count_failures(struct received *r, const struct delivery *d)
{
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->place[i].error == 0)
			continue;
		if (r->failures.n++ == 0) {
			r->failures.sample = d->place[i].sample;
			r->failures.error = d->place[i].error;
		}
	}
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
	code = r->ops->next(r->state, idle, until, &b, err);
	if (code == -ENODATA)
		r->n_left = 0;
	if (code != 0)
		return code;
	/* a worker of the whole dataset may send more than is left */
	*ret = (struct delivery){ .n = (uint32_t)MIN(b.n, r->n_left),
				  .place = b.place,
				  .queued = queued,
				  .complete_ns = b.arrived_ns,
				  .ready_ns = b.arrived_ns,
				  .read_share = b.read_share,
				  .received = b.own };
	count_failures(r, ret);
	delivery_count(ret, r->c.data);
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

struct worker_failures received_failures(const struct received *r)
{
	return r->failures;
}

uint64_t received_pinned(struct received *r)
{
	return r->pool ? pinned_most_bytes(r->pool) : 0;
}

json_t *received_json(struct received *r)
{
	return r->ops->json(r->state);
}
