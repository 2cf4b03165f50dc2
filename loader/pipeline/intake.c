/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/intake.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/util.h"
#include "loader/pipeline/received.h"
#include "service/decide/fastflow.h"

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

static int open_received(struct intake *i, const struct intake_config *c,
			 struct err *err)
{
	const struct pipeline_config *p = &c->pipeline;
	size_t bytes = 0;
	int code = pipeline_sample_bytes(p, &bytes, err);
	const struct received_config r = { .engine = c->remote,
					   .engine_options = c->remote_options,
					   .service = c->service,
					   .data = p->data,
					   .tick = p->tick,
					   .batch = p->batch,
					   .gpus = p->gpus,
					   .threads = c->last_threads,
					   .prep = p->prep,
					   .prep_config = p->prep_config,
					   .sample_bytes = bytes,
					   .pinned = p->pin,
					   .budget = p->pin_budget };

	return code < 0 ? code : received_new(&r, &i->received, err);
}

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
		r = open_received(i, &c, err);
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
	return i->received ? received_left(i->received) : 0;
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
	there = received_n_ready(i->received) > 0;
	return here == there ? turn : there;
}

static int next(struct intake *i, uint64_t idle, uint64_t until,
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
	int r = next(i, idle, until, ret, err);

	/* the rest of what was dealt to the service is lost */
	if (r == -ENODATA && here_left(i))
		r = next(i, idle, until, ret, err);
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
		return received_n_ready(i->received) > 0;
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
		received_stop(i->received);
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
	return i->received ? received_json(i->received) : NULL;
}
