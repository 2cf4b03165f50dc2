/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/intake.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "emu/gpu/pinned.h"
#include "loader/pipeline/buffer.h"
#include "loader/pipeline/finish.h"
#include "service/decide/fastflow.h"

/* --- batches that other processes make ------------------------------------ */

/* Batches of one size. */
struct memory {
	struct pinned_pool *pool; /* NULL: plain */
	struct pinned_buffer **pinned;
	struct buffer *plain;
	unsigned char **buffer; /* n */
	uint32_t n;
};

struct received {
	struct intake_config c;
	size_t sample_bytes; /* transformed; 0: raw */
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
	return MAX(r->c.pipeline.gpus, 1) + 1;
}

/* As many as fit. */
static int lock_memory(const struct received *r, struct memory *m,
		       uint32_t want, size_t bytes, struct err *err)
{
	int code = pinned_new(want, bytes, r->c.pipeline.pin_budget, &m->pool,
			      err);

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
	const struct intake_config *c = &r->c;
	const struct pipeline_config *p = &c->pipeline;
	uint32_t want = r->ops->n_buffers(c->remote_options) + least(r);
	size_t bytes = r->ops->buffer_bytes(p->batch, c->service->most_bytes);
	struct remote_config config = { .options = c->remote_options,
					.service = c->service,
					.tick = p->tick,
					.batch = p->batch,
					.buffer_bytes = bytes };
	int code = memory_open(r, &r->arrived, want, bytes,
			       p->pin && !c->last_threads, err);

	config.buffer = r->arrived.buffer;
	config.n_buffers = r->arrived.n;
	return code < 0 ? code : r->ops->open(&config, &r->state, err);
}

static int open_finish(struct received *r, struct err *err)
{
	const struct pipeline_config *p = &r->c.pipeline;
	uint32_t threads = r->c.last_threads;
	struct finish_config config = { .prep = p->prep,
					.prep_config = p->prep_config,
					.sample_bytes = r->sample_bytes,
					.tick = p->tick,
					.threads = threads,
					.batch = p->batch };
	void *from = TAKE_PTR(r->state);
	struct finish *f;
	int code = memory_open(r, &r->finished, least(r) + threads,
			       finish_buffer_bytes(p->batch, r->sample_bytes),
			       p->pin, err);

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

static void received_free(struct received *r)
{
	if (!r)
		return;
	if (r->state)
		r->ops->close(r->state);
	memory_close(&r->finished);
	memory_close(&r->arrived);
	free(r);
}

static int received_new(const struct intake_config *c, struct received **ret,
			struct err *err)
{
	struct received *r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return err_set(err, -ENOMEM, "out of memory");
	r->c = *c;
	r->ops = c->remote->remote;
	code = pipeline_sample_bytes(&c->pipeline, &r->sample_bytes, err);
	if (code == 0)
		code = open_remote(r, err);
	if (code == 0 && c->last_threads)
		code = open_finish(r, err);
	if (code < 0) {
		received_free(r);
		return code;
	}
	*ret = r;
	return 0;
}

static void received_begin(struct received *r, uint64_t epoch,
			   const uint32_t *order, uint64_t n)
{
	r->n_epoch = r->n_left = n;
	r->err = (struct err){ 0 };
	r->error = r->ops->begin(r->state, epoch, order, n, &r->err);
}

static uint64_t received_cut(struct received *r, uint64_t n)
{
	uint64_t kept = r->error < 0 ? r->n_epoch : r->ops->cut(r->state, n);

	r->n_left -= r->n_epoch - kept;
	r->n_epoch = kept;
	return kept;
}

/* What was lost with others does not come: the epoch ends without it. */
static int received_next(struct received *r, uint64_t idle, uint64_t until,
			 struct delivery *ret, struct err *err)
{
	struct remote_batch b;
	uint32_t queued;
	int code;

	if (r->n_left == 0)
		return -ENODATA;
	if (r->error < 0)
		return err_set(err, r->error, "%s", r->err.text);
	queued = r->ops->n_ready(r->state);
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
	delivery_count(ret, r->c.pipeline.data);
	for (uint32_t i = 0; i < ret->n; i++)
		ret->n_bypassed += ret->place[i].bypassed;
	r->n_left -= ret->n;
	return 0;
}

static void received_release(struct received *r, struct delivery *d)
{
	struct remote_batch b = { .n = d->n, .own = d->received };

	r->ops->release(r->state, &b);
}

static uint64_t received_pinned(const struct received *r)
{
	const struct memory *m = r->c.last_threads ? &r->finished : &r->arrived;

	return m->pool ? pinned_most_bytes(m->pool) : 0;
}

/* --- life ----------------------------------------------------------------- */

struct intake {
	struct pipeline *pipeline; /* NULL: nothing is prepared here */
	struct received *received; /* NULL: nothing is received */
	uint64_t batch, alone;
	double part; /* as intake_config */
	enum sift sift;
	const struct dataset *data;
	/* of the epoch; in samples */
	uint64_t epoch;
	const uint32_t *order;
	uint64_t n_held;     /* the first ones: not dealt yet */
	uint64_t n_received; /* the first ones: dealt to the service */
	double turn_part;
	struct fastflow_turns turns;
};

int intake_new(const struct intake_config *config, struct intake **ret,
	       struct err *err)
{
	struct intake_config c = *config;
	struct intake *i = calloc(1, sizeof(*i));
	bool here = !c.pipeline.engine->remote;
	int r = 0;

	if (!i)
		return err_set(err, -ENOMEM, "out of memory");
	i->batch = c.pipeline.batch;
	i->alone = c.alone;
	i->part = c.part;
	i->sift = c.sift;
	i->data = c.pipeline.data;
	if (here && c.remote)
		c.pipeline.pin_budget /= 2;
	if (c.remote)
		r = received_new(&c, &i->received, err);
	if (r == 0 && here)
		r = pipeline_new(&c.pipeline, &i->pipeline, err);
	if (r < 0) {
		intake_free(i);
		return r;
	}
	*ret = i;
	return 0;
}

void intake_free(struct intake *i)
{
	if (!i)
		return;
	intake_interrupt(i);
	received_free(i->received);
	pipeline_free(i->pipeline);
	free(i);
}

/* --- dealing -------------------------------------------------------------- */

static uint64_t here_left(const struct intake *i)
{
	return i->pipeline ? pipeline_left(i->pipeline) : 0;
}

static uint64_t there_left(const struct intake *i)
{
	return i->received ? i->received->n_left : 0;
}

static uint32_t there_ready(const struct intake *i)
{
	return i->received->ops->n_ready(i->received->state);
}

/* Whole batches, or all. */
static uint64_t part_of(const struct intake *i, uint64_t n, double part)
{
	uint64_t batches = (n + i->batch - 1) / i->batch;

	return MIN((uint64_t)llround(part * (double)batches) * i->batch, n);
}

static void prepare(struct intake *i, uint64_t first, uint64_t end)
{
	if (end > first)
		pipeline_begin(i->pipeline, i->epoch, i->order + first,
			       end - first);
}

static void receive(struct intake *i, uint64_t n)
{
	i->n_received = n;
	if (n)
		received_begin(i->received, i->epoch, i->order, n);
}

void intake_begin(struct intake *i, uint64_t epoch, const uint32_t *order,
		  uint64_t n)
{
	uint64_t batches = (n + i->batch - 1) / i->batch;

	i->epoch = epoch;
	i->order = order;
	i->n_held = n;
	i->n_received = 0;
	if (i->part >= 0) {
		intake_settle(i, i->part);
		return;
	}
	i->n_held = (batches - MIN(i->alone, batches)) * i->batch;
	prepare(i, i->n_held, n);
}

void intake_receive(struct intake *i)
{
	receive(i, i->n_held);
	i->n_held = 0;
}

void intake_settle(struct intake *i, double part)
{
	uint64_t held = i->n_held, left = there_left(i), got, n;

	i->part = part;
	i->n_held = 0;
	if (held) {
		n = part_of(i, held, part);
		receive(i, n);
		prepare(i, n, held);
	} else if (i->n_received) {
		held = i->n_received;
		got = held - left;
		n = received_cut(i->received, got + part_of(i, left, part));
		prepare(i, n, held);
	}
	left = there_left(i);
	i->turn_part = (double)left / (double)MAX(left + here_left(i), 1);
	i->turns = (struct fastflow_turns){ 0 };
}

/* --- taking --------------------------------------------------------------- */

/* Is the next batch one that was received? */
static bool is_received(const struct intake *i)
{
	struct fastflow_turns t = i->turns;
	bool turn, here, there;

	if (!here_left(i) || !there_left(i))
		return there_left(i) > 0;
	turn = fastflow_turn(&t, i->turn_part);
	here = pipeline_ready(i->pipeline);
	there = there_ready(i) > 0;
	return here == there ? turn : there;
}

static int next_delivery(struct intake *i, uint64_t idle, uint64_t until,
			 struct delivery *ret, struct err *err)
{
	bool there = is_received(i);
	int r = -ENODATA;

	if (there)
		r = received_next(i->received, idle, until, ret, err);
	else if (i->pipeline)
		r = pipeline_next_until(i->pipeline, idle, until, ret, err);
	if (r == 0) {
		i->turns.n++;
		i->turns.n_remote += there;
	}
	return r;
}

int intake_next(struct intake *i, uint64_t idle, uint64_t until,
		struct delivery *ret, struct err *err)
{
	int r = next_delivery(i, idle, until, ret, err);

	/* the rest of what was dealt to the service is lost */
	if (r == -ENODATA && here_left(i))
		r = next_delivery(i, idle, until, ret, err);
	if (r == 0 && ret->n_failed && ret->place &&
	    sift(ret, i->data, i->sift) < 0) {
		intake_release(i, ret);
		r = err_set(err, -ENOMEM, "out of memory");
	}
	return r;
}

bool intake_ready(struct intake *i)
{
	if (is_received(i))
		return there_ready(i) > 0;
	return !i->pipeline || pipeline_ready(i->pipeline);
}

uint64_t intake_left(const struct intake *i)
{
	return i->n_held + there_left(i) + here_left(i);
}

void intake_release(struct intake *i, struct delivery *d)
{
	free(TAKE_PTR(d->own));
	if (d->received)
		received_release(i->received, d);
	else
		pipeline_release(i->pipeline, d);
}

int intake_lend(struct intake *i, struct delivery *d, struct loan **ret)
{
	return d->received ? -ENOBUFS : pipeline_lend(i->pipeline, d, ret);
}

uint32_t intake_loans(const struct intake *i)
{
	return i->pipeline ? pipeline_loans(i->pipeline) : 0;
}

/* --- both ----------------------------------------------------------------- */

int intake_set_cores(struct intake *i, uint32_t n)
{
	return i->pipeline ? pipeline_set_cores(i->pipeline, n) : -ENOTSUP;
}

void intake_interrupt(struct intake *i)
{
	if (i->received)
		i->received->ops->stop(i->received->state);
	if (i->pipeline)
		pipeline_interrupt(i->pipeline);
}

void intake_join(struct intake *i)
{
	if (i->pipeline)
		pipeline_join(i->pipeline);
}

void intake_work(struct intake *i, struct work *ret)
{
	if (i->pipeline)
		pipeline_work(i->pipeline, ret);
}

uint64_t intake_pinned(struct intake *i)
{
	return (i->received ? received_pinned(i->received) : 0) +
	       (i->pipeline ? pipeline_pinned(i->pipeline) : 0);
}

json_t *intake_service_json(struct intake *i)
{
	return i->received ? i->received->ops->json(i->received->state) : NULL;
}
