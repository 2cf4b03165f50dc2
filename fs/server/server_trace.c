/* SPDX-License-Identifier: MIT */
#include "fs/server/server_trace.h"

#include "common/tick.h"

struct trace_asked trace_asked(struct server *s, bool hit)
{
	return (struct trace_asked){ .seq = s->c.trace ? ++s->trace_seq : 0,
				     .result = hit ? TRACE_HIT : TRACE_MISS };
}

void trace_event(struct server *s, enum trace_op op, uint64_t key)
{
	if (!s->c.trace)
		return;
	trace_add(s->c.trace,
		  &(struct trace_record){ .seq = ++s->trace_seq,
					  .time = tick_now(s->c.tick),
					  .op = (uint8_t)op,
					  .node = (uint32_t)(key >> 32),
					  .offset = (uint64_t)(uint32_t)key *
						    OBJECT_EXTENT });
}

void trace_passthrough(struct server *s, uint32_t node)
{
	if (!s->c.trace)
		return;
	trace_add(s->c.trace,
		  &(struct trace_record){
			  .seq = ++s->trace_seq,
			  .time = tick_now(s->c.tick),
			  .op = TRACE_PASSTHROUGH,
			  .result = TRACE_HIT,
			  .node = node,
			  .bytes = (uint32_t)s->c.tree->nodes[node].bytes });
}

void trace_reply_init(struct server *s, const struct read_request *r,
		      struct trace_reply *ret)
{
	if (!s->c.trace)
		return;
	*ret = (struct trace_reply){ .node = r->handle->node,
				     .arrival = r->arrival,
				     .offset = r->offset,
				     .end = tick_now(s->c.tick),
				     .error = r->error };
}

static uint64_t since(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

void trace_part(struct server *s, const struct trace_reply *reply,
		const struct read_part *part, uint64_t deadline)
{
	uint64_t extent = reply->offset / OBJECT_EXTENT + part->number;
	struct trace_record r = {
		.seq = part->asked.seq,
		.time = reply->arrival,
		.requested = since(reply->arrival, deadline),
		.achieved = since(reply->arrival, reply->end),
		.offset = extent * OBJECT_EXTENT + part->offset,
		.bytes = (uint32_t)part->bytes,
		.node = reply->node,
		.error = (uint16_t)-reply->error,
		.op = TRACE_READ,
		.result = part->asked.seq ? (uint8_t)part->asked.result
					  : TRACE_NOT_COUNTED,
	};

	if (s->c.trace)
		trace_add(s->c.trace, &r);
}

void trace_refused(struct server *s, struct read_request *r, int error)
{
	struct read_part part = { .offset = r->offset % OBJECT_EXTENT,
				  .bytes = r->bytes };
	struct trace_reply reply;

	r->error = error;
	trace_reply_init(s, r, &reply);
	r->reply(r, error, NULL, 0);
	trace_part(s, &reply, &part, 0);
}

void server_trace_metadata(struct server *s, const struct fetch *f, int error)
{
	static const uint8_t ops[] = { [STORAGE_OPEN] = TRACE_OPEN,
				       [STORAGE_LOOKUP] = TRACE_LOOKUP,
				       [STORAGE_READDIR] = TRACE_READDIR };
	struct trace_record r = { .time = f->arrival,
				  .op = ops[f->op],
				  .node = f->node,
				  .requested = since(f->arrival, f->deadline),
				  .error = (uint16_t)-error };

	if (!s->c.trace)
		return;
	r.achieved = since(f->arrival, tick_now(s->c.tick));
	trace_add(s->c.trace, &r);
}
