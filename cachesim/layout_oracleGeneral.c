/* SPDX-License-Identifier: MIT */
/*
 * libCacheSim's binary format, little endian and without gaps: u32 time in s,
 * u64 id, u32 bytes, i64 number of the next request for the same id (-1 or
 * the largest value: none). Source: libCacheSim, doc/quickstart_cachesim.md,
 * "oracleGeneral". The next request is computed here; the value in the file
 * only serves to recognise the format.
 */
#include "cachesim/layout.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"

enum { RECORD = 24, AT_ID = 4, AT_BYTES = 12, AT_NEXT = 16 };

static int record(const char *p, struct sim_input *in,
		  struct cache_index *index, struct sim_trace *t,
		  struct err *err)
{
	uint64_t i = t->read.records++, id, next_raw;
	uint32_t bytes, s;
	int64_t next;

	memcpy(&s, p, sizeof(s));
	memcpy(&id, p + AT_ID, sizeof(id));
	memcpy(&bytes, p + AT_BYTES, sizeof(bytes));
	memcpy(&next_raw, p + AT_NEXT, sizeof(next_raw));
	next = (int64_t)le64toh(next_raw);
	if (next < -1 || (next >= 0 && (uint64_t)next <= i))
		return err_set(err, -EINVAL,
			       "%s: offset %" PRIu64 ": %" PRId64
			       " as the next request of request %" PRIu64
			       ": not an oracleGeneral trace",
			       in->name, i * RECORD, next, i);
	sim_read_time(&t->read, le32toh(s));
	return sim_trace_add_key(t, index, le64toh(id), le32toh(bytes));
}

static int records(struct sim_input *in, struct cache_index *index,
		   struct sim_trace *t, struct err *err)
{
	size_t n;
	int r;

	for (;;) {
		r = sim_input_fill(in, RECORD);
		n = (size_t)(in->end - in->at);
		if (r < 0 || n < RECORD)
			break;
		for (; r == 0 && n >= RECORD; n -= RECORD, in->at += RECORD)
			r = record(in->at, in, index, t, err);
		if (r < 0)
			break;
	}
	if (r == 0 && n)
		r = err_set(err, -EINVAL,
			    "%s: offset %" PRIu64
			    ": a record of %zu bytes, not %d",
			    in->name, t->read.records * RECORD, n, RECORD);
	return r;
}

static int read_all(struct sim_input *in, const void *options,
		    struct sim_trace *t, struct err *err)
{
	struct cache_index index;
	int r = cache_index_init(&index, sizeof(uint32_t), 0);

	(void)options;
	if (r == 0)
		r = records(in, &index, t, err);
	cache_index_fini(&index);
	return r < 0 ? r : sim_trace_finish(t);
}

/* hm_0.oracleGeneral.zst, w105.oracleGeneral.bin, cluster1.oracleGeneral.
 * sample10.zst, and t.bin. */
static bool named(const char *name)
{
	return strstr(name, ".oracleGeneral") || util_ends_in(name, ".bin");
}

const struct layout_ops layout_oracleGeneral = {
	.plugin = { .name = "oracleGeneral",
		    .summary = "libCacheSim's binary format (also: bin)" },
	.named = named,
	.read = read_all,
};
