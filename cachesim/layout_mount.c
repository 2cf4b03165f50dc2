/* SPDX-License-Identifier: MIT */
/*
 * Reads a trace of gpemu-fs (docs/trace-format.md). Lines are in the order in
 * which operations ended; cache operations have a `seq`, by which they are
 * sorted here.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/text/rows.h"
#include "common/util.h"
#include "cachesim/layout.h"
#include "fs/server/object.h"
#include "fs/layer/trace.h"

/* arbitrary: twice the files of ImageNet-21k; limits the memory that a line of
 * a few bytes can request to 256 MiB, half as much again while it grows */
enum { MOST_FILES = 1 << 25 };

enum column { TIME = 0, OP = 1, ID = 2, SIZE = 3, SEQ = 6, FILE_SIZE = 11 };

struct seen {
	uint64_t seq, key, bytes, file_bytes;
	enum trace_op op;
};

struct mount_trace {
	const char *name;
	uint64_t line;
	struct err *err;
	struct sim_trace *t;
	struct seen *seen;
	size_t n_seen, seen_allocated;
	size_t sizes_allocated;
};

static int bad(const struct mount_trace *m, const char *what)
{
	return err_set(m->err, -EINVAL, "%s:%" PRIu64 ": %s", m->name, m->line,
		       what);
}

/* Parse the number at `*p` and advance. */
static bool number(const char **p, const char *end, uint64_t *ret)
{
	struct rows_field f = { *p, 0 };

	while (*p < end && **p >= '0' && **p <= '9')
		++*p;
	f.n = (size_t)(*p - f.text);
	return rows_u64(&f, ret);
}

static int add_sizes(struct mount_trace *m, uint64_t bytes, uint64_t n)
{
	struct sim_trace *t = m->t;
	int r;

	if (bytes > SIM_MOST_BYTES || n > MOST_FILES - t->n_files)
		return bad(m, "an invalid file size, or too many files");
	if (t->n_files && bytes < t->file_bytes[t->n_files - 1])
		return bad(m, "sizes must ascend");
	if (n && bytes > (INT64_MAX - t->total_bytes) / n)
		return bad(m, "the files exceed 2^63 bytes in total");
	r = util_reserve(&t->file_bytes, &m->sizes_allocated, t->n_files + n,
			 sizeof(*t->file_bytes));
	if (r < 0)
		return r;
	t->total_bytes += bytes * n;
	while (n--)
		t->file_bytes[t->n_files++] = bytes;
	return 0;
}

/* "10,20*3" */
static int read_sizes(struct mount_trace *m, const char *p, const char *end)
{
	int r = 0;

	while (r == 0) {
		uint64_t bytes, n = 1;

		if (!number(&p, end, &bytes))
			return bad(
				m,
				"sizes must be numbers, separated by commas");
		if (p < end && *p == '*') {
			p++;
			if (!number(&p, end, &n))
				return bad(m, "no number after *");
		}
		r = add_sizes(m, bytes, n);
		if (p == end)
			return r;
		if (*p++ != ',')
			return bad(
				m,
				"sizes must be numbers, separated by commas");
	}
	return r;
}

static bool begins(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(end - p) >= n && !memcmp(p, word, n);
}

/* Concatenated traces repeat the head, with the same values. */
static int comment(struct mount_trace *m, const char *p, const char *end,
		   bool *first_head)
{
	uint64_t v;

	if (begins(p, end, TRACE_MAGIC)) {
		p += strlen(TRACE_MAGIC);
		if (!number(&p, end, &v) || p != end || v != TRACE_VERSION)
			return bad(m, "an unsupported version of the gpemu-fs "
				      "trace format");
		*first_head = m->line == 1;
	} else if (begins(p, end, "#sizes ") && *first_head) {
		return read_sizes(m, p + strlen("#sizes "), end);
	}
	return 0;
}

static int op_of(const struct rows_field *f)
{
	for (int op = 0; op < TRACE_N_OPS; op++)
		if (rows_is(f, trace_op_name(op)))
			return op;
	return -EINVAL;
}

static int record(struct mount_trace *m, const char *line, const char *end)
{
	struct rows_field f[ROWS_COLUMNS_MAX];
	struct seen s = { 0 };
	double time;
	int op, r;

	if (rows_split(line, end, f) != TRACE_N_COLUMNS)
		return bad(m,
			   "its columns differ from those of a gpemu-fs trace");
	if (rows_double(&f[TIME], &time))
		sim_read_time(&m->t->read, time);
	if (!f[SEQ].n) {
		m->t->read.other_ops++;
		return 0;
	}
	op = op_of(&f[OP]);
	if (op < 0)
		return bad(m, "an unknown operation");
	s.op = (enum trace_op)op;
	if (!rows_u64(&f[SEQ], &s.seq))
		return bad(m, "seq is not a number");
	if (op < TRACE_DROP_CACHE &&
	    (!rows_u64(&f[ID], &s.key) || !rows_u64(&f[SIZE], &s.bytes) ||
	     !rows_u64(&f[FILE_SIZE], &s.file_bytes) ||
	     s.file_bytes > SIM_MOST_BYTES || s.bytes > s.file_bytes))
		return bad(m, "id, size or file_size is not a number");
	r = sim_grow(&m->seen, m->n_seen, &m->seen_allocated, sizeof(s));
	if (r == 0)
		m->seen[m->n_seen++] = s;
	return r;
}

static int read_lines(struct mount_trace *m, struct sim_input *in)
{
	const char *line, *end;
	bool first_head = false;
	int r;

	while ((r = sim_input_line(in, &line, &end)) > 0) {
		m->line++;
		if (line == end || (begins(line, end, TRACE_COLUMNS) &&
				    end - line == strlen(TRACE_COLUMNS)))
			continue;
		m->t->read.comments += *line == '#';
		m->t->read.records += *line != '#';
		r = *line == '#' ? comment(m, line, end, &first_head)
				 : record(m, line, end);
		if (r < 0)
			return r;
	}
	return r;
}

static int by_seq(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Convert the cache operations, in order of seq, to requests, events and
 * epochs. */
static int replayed(struct mount_trace *m, const struct seen *s,
		    struct cache_index *index)
{
	static const enum sim_event_kind kinds[TRACE_N_OPS] = {
		[TRACE_OFFER] = SIM_OFFER,
		[TRACE_WARM] = SIM_WARM,
		[TRACE_REMOVE] = SIM_REMOVE,
		[TRACE_DROP_CACHE] = SIM_NEW_CACHE,
		[TRACE_SET_CACHE] = SIM_NEW_CACHE,
	};
	struct sim_trace *t = m->t;
	uint32_t object = 0;
	int r = 0;

	if (s->op < TRACE_DROP_CACHE)
		r = sim_trace_number(t, index, s->key, s->bytes, s->file_bytes,
				     &object);
	if (r < 0)
		return r;
	switch (s->op) {
	case TRACE_READ:
	case TRACE_PASSTHROUGH: return sim_trace_add_request(t, object);
	case TRACE_OFFER:
	case TRACE_WARM:
	case TRACE_REMOVE:
	case TRACE_DROP_CACHE:
		return sim_trace_add_event(t, kinds[s->op], object);
	case TRACE_SET_CACHE:
		r = sim_trace_add_event(t, kinds[s->op], object);
		break;
	case TRACE_EPOCH:
	case TRACE_RESET: break;
	default:
		return bad(m, "an operation that does not involve the cache "
			      "has a seq");
	}
	/* like the mount, ignore epochs without reads */
	if (r == 0 &&
	    t->n_requests > (t->n_epochs ? t->epoch_ends[t->n_epochs - 1] : 0))
		r = sim_trace_end_epoch(t);
	return r;
}

static int replay_order(struct mount_trace *m)
{
	struct cache_index index;
	int r = cache_index_init(&index, sizeof(uint32_t), 0);

	if (m->n_seen)
		qsort(m->seen, m->n_seen, sizeof(*m->seen), by_seq);
	for (size_t i = 0; r == 0 && i < m->n_seen; i++) {
		uint64_t before = i ? m->seen[i - 1].seq : 0;

		if (m->seen[i].seq == before)
			r = err_set(m->err, -EINVAL,
				    "%s: seq %" PRIu64
				    " occurs twice: does it mix the traces of "
				    "two mounts?",
				    m->name, before);
		m->t->n_lost += m->seen[i].seq - before - 1;
		if (r == 0)
			r = replayed(m, &m->seen[i], &index);
	}
	cache_index_fini(&index);
	return r;
}

static int read_all(struct sim_input *in, const void *options,
		    struct sim_trace *t, struct err *err)
{
	struct mount_trace m = { .name = in->name, .t = t, .err = err };
	int r = read_lines(&m, in);

	(void)options;
	if (r == 0 && !t->n_files)
		r = err_set(err, -EINVAL,
			    "%s: its header lacks the sizes of the files",
			    in->name);
	t->max_object_bytes = OBJECT_EXTENT;
	if (r == 0)
		r = replay_order(&m);
	free(m.seen);
	return r;
}

static bool looks(const char *head, size_t n)
{
	return begins(head, head + n, TRACE_MAGIC);
}

const struct layout_ops layout_mount = {
	.plugin = { .name = "mount", .summary = "traces of gpemu-fs --trace" },
	.looks = looks,
	.read = read_all,
};
