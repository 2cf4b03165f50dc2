/* SPDX-License-Identifier: MIT */
/*
 * A line for each operation that leaves the mount (fs/layer/trace.h), with its
 * number in the order of accesses, which the server assigned on the way down.
 * The line is made after the answer was sent: it costs the reader nothing.
 */
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "fs/layer/trace.h"
#include "fs/server/handle.h"
#include "fs/server/object.h"
#include "fs/server/stack.h"

static uint64_t since(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

/* A record for each of the `n` parts of a read, n > 0. */
static void trace_parts(struct layer *l, struct trace_record *r,
			const struct read_part *parts, int n)
{
	uint64_t first = r->offset / OBJECT_EXTENT, arrival = r->time;

	for (int i = 0; i < n; i++) {
		const struct read_part *p = &parts[i];

		r->seq = p->seq;
		r->requested = since(arrival, p->deadline);
		r->offset = (first + p->number) * OBJECT_EXTENT + p->offset;
		r->bytes = p->bytes;
		r->result = !p->seq  ? TRACE_NOT_COUNTED
			    : p->hit ? TRACE_HIT
				     : TRACE_MISS;
		trace_add(l->server->c.trace, r);
	}
}

/* The request must not be used after layer_answer. */
static void tracing_answer(struct layer *l, struct read_request *request,
			   const struct answer *a)
{
	struct trace_record r = { .time = request->arrival,
				  .node = request->handle->node,
				  .offset = request->offset,
				  .error = (uint16_t)-a->error,
				  .op = TRACE_READ };
	struct read_part parts[READ_PARTS] = { { .offset = request->offset %
							   OBJECT_EXTENT,
						 .bytes = request->bytes } };
	int n = request->n_parts;

	r.achieved = since(r.time, tick_now(l->server->c.tick));
	for (int i = 0; i < n; i++)
		parts[i] = request->parts[i];
	layer_answer(l, request, a);
	trace_parts(l, &r, parts, MAX(n, 1));
}

static void tracing_metadata_answered(struct layer *l, const struct fetch *f,
				      int error)
{
	static const uint8_t ops[] = { [STORAGE_OPEN] = TRACE_OPEN,
				       [STORAGE_LOOKUP] = TRACE_LOOKUP,
				       [STORAGE_READDIR] = TRACE_READDIR,
				       [STORAGE_READ] = TRACE_READ,
				       [STORAGE_WRITE] = TRACE_WRITE,
				       [STORAGE_SYNC] = TRACE_SYNC,
				       [STORAGE_CREATE] = TRACE_CREATE,
				       [STORAGE_REMOVE] = TRACE_UNLINK,
				       [STORAGE_RENAME] = TRACE_RENAME };
	struct trace_record r = { .time = f->arrival,
				  .offset = f->offset,
				  .bytes = f->bytes,
				  .path = f->path ? strdup(f->path) : NULL,
				  .op = ops[f->op],
				  .node = f->node,
				  .requested = since(f->arrival, f->deadline),
				  .error = (uint16_t)-error };

	r.achieved = since(f->arrival, tick_now(l->server->c.tick));
	if (!f->path || r.path)
		trace_add(l->server->c.trace, &r);
	layer_metadata_answered(l, f, error);
}

static void tracing_event(struct layer *l, enum layer_event event, uint64_t key,
			  uint64_t seq)
{
	static const uint8_t ops[] = { [LAYER_OFFER] = TRACE_OFFER,
				       [LAYER_WARM] = TRACE_WARM,
				       [LAYER_REMOVE] = TRACE_REMOVE,
				       [LAYER_PASSTHROUGH] = TRACE_PASSTHROUGH,
				       [LAYER_DROP_CACHE] = TRACE_DROP_CACHE,
				       [LAYER_SET_CACHE] = TRACE_SET_CACHE,
				       [LAYER_EPOCH] = TRACE_EPOCH,
				       [LAYER_RESET] = TRACE_RESET };
	const struct server *s = l->server;
	struct trace_record r = { .seq = seq,
				  .time = tick_now(s->c.tick),
				  .op = ops[event],
				  .node = (uint32_t)(key >> 32),
				  .offset = (uint64_t)(uint32_t)key *
					    OBJECT_EXTENT };

	if (event == LAYER_PASSTHROUGH) {
		r.result = TRACE_HIT;
		r.bytes = s->c.tree->nodes[r.node].bytes;
	}
	trace_add(s->c.trace, &r);
}

static int tracing_init(struct layer *l, struct err *err)
{
	(void)err;
	return l->server->c.trace ? 0 : LAYER_IDLE;
}

const struct layer_ops layer_trace = {
	.plugin = { .name = "trace",
		    .summary = "write a line for each operation (--trace)" },
	.rank = LAYER_REQUEST,
	.init = tracing_init,
	.answer = tracing_answer,
	.metadata_answered = tracing_metadata_answered,
	.event = tracing_event,
};
