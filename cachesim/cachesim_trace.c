/* SPDX-License-Identifier: MIT */
#include "cachesim/cachesim_private.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "common/util.h"

void sim_trace_fini(struct sim_trace *t)
{
	free(t->objects);
	free(t->whole);
	free(t->requests);
	free(t->epoch_ends);
	free(t->events);
	free(t->next_use);
	free(t->file_bytes);
	*t = (struct sim_trace){ 0 };
}

int sim_grow(void *pp, size_t n, size_t *allocated, size_t item)
{
	size_t before = *allocated;
	int r = n >= UINT32_MAX ? -E2BIG
				: util_reserve(pp, allocated, n + 1, item);

	if (*allocated != before)
		util_want_huge(*(void **)pp, *allocated * item);
	return r;
}

int sim_trace_add_object(struct sim_trace *t, const struct cache_object *o)
{
	int r = sim_grow(&t->objects, t->n_objects, &t->objects_allocated,
			 sizeof(*t->objects));

	bool part = o->file_bytes != o->bytes;

	if (r == 0 && part)
		r = util_reserve(&t->whole, &t->whole_allocated,
				 t->n_objects + 1, sizeof(*t->whole));
	if (r < 0)
		return r;
	if (part)
		t->whole[t->n_objects] = o->file_bytes;
	t->objects[t->n_objects++] = (struct cache_item){ .key = o->key,
							  .bytes = o->bytes,
							  .part = part };
	return 0;
}

int sim_trace_add_request(struct sim_trace *t, uint32_t object)
{
	int r = sim_grow(&t->requests, t->n_requests, &t->requests_allocated,
			 sizeof(*t->requests));

	if (r == 0)
		t->requests[t->n_requests++] = object;
	return r;
}

int sim_trace_add_event(struct sim_trace *t, enum sim_event_kind kind,
			uint32_t object)
{
	int r = sim_grow(&t->events, t->n_events, &t->events_allocated,
			 sizeof(*t->events));

	if (r == 0)
		t->events[t->n_events++] = (struct sim_event){
			.at = t->n_requests, .kind = kind, .object = object
		};
	return r;
}

int sim_trace_end_epoch(struct sim_trace *t)
{
	size_t *ends =
		reallocarray(t->epoch_ends, t->n_epochs + 1, sizeof(*ends));

	if (!ends)
		return -ENOMEM;
	t->epoch_ends = ends;
	ends[t->n_epochs++] = t->n_requests;
	return 0;
}

int sim_trace_look_ahead(struct sim_trace *t)
{
	_cleanup_free_ uint64_t *next =
		malloc((t->n_objects + 1) * sizeof(*next));

	t->next_use = malloc((t->n_requests + 1) * sizeof(*t->next_use));
	if (!t->next_use || !next)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_objects; i++)
		next[i] = POLICY_NEVER;
	size_t e = t->n_events;

	for (size_t i = t->n_requests; i-- > 0;) {
		for (; e && t->events[e - 1].at > i; e--)
			t->events[e - 1].next_use =
				next[t->events[e - 1].object];
		t->next_use[i] = next[t->requests[i]];
		next[t->requests[i]] = i;
	}
	for (; e; e--)
		t->events[e - 1].next_use = next[t->events[e - 1].object];
	return 0;
}

/* --- common to the formats ---------------------------------------------- */

int sim_trace_number(struct sim_trace *t, struct cache_index *index,
		     uint64_t key, uint64_t bytes, uint64_t file_bytes,
		     uint32_t *ret)
{
	struct cache_entry *e = cache_index_find(index, key);
	struct cache_object o = { .key = key,
				  .bytes = bytes,
				  .file_bytes = file_bytes };

	if (e) {
		memcpy(ret, cache_entry_data(e), sizeof(*ret));
		t->n_resized += t->objects[*ret].bytes != bytes;
		return 0;
	}
	*ret = (uint32_t)t->n_objects;
	e = cache_index_add(index, key, 0, bytes);
	if (!e)
		return -ENOMEM;
	memcpy(cache_entry_data(e), ret, sizeof(*ret));
	return sim_trace_add_object(t, &o);
}

/* A request by key: the index gives the object's number. */
static int add(struct sim_trace *t, struct cache_index *index, uint64_t key,
	       uint64_t bytes)
{
	uint32_t number;
	int r = sim_trace_number(t, index, key, bytes, bytes, &number);

	return r < 0 ? r : sim_trace_add_request(t, number);
}

/* Each object is a file. */
static int finish(struct sim_trace *t)
{
	t->file_bytes = malloc((t->n_objects + 1) * sizeof(*t->file_bytes));
	if (!t->file_bytes)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_objects; i++) {
		t->file_bytes[i] = t->objects[i].bytes;
		t->total_bytes += t->objects[i].bytes;
		if (t->total_bytes > INT64_MAX)
			return -EOVERFLOW;
	}
	t->n_files = t->n_objects;
	qsort(t->file_bytes, t->n_files, sizeof(*t->file_bytes),
	      util_compare_u64);
	return 0;
}

/* --- CSV ----------------------------------------------------------------- */

struct csv {
	const char *name;
	uint64_t line;
	int id, size;  /* column numbers */
	int n_columns; /* minimum number */
	struct err *err;
};

/* The first line, if it names the columns. */
static int header(struct csv *c, const struct rows_field *fields, int n)
{
	int id = -1, size = -1;

	for (int i = 0; i < n; i++) {
		if (rows_is(&fields[i], "id"))
			id = i;
		else if (rows_is(&fields[i], "size"))
			size = i;
	}
	if (id < 0 && size < 0)
		return 0;
	if (id < 0 || size < 0)
		return err_set(c->err, -EINVAL,
			       "%s:%" PRIu64 ": no column '%s' in the header",
			       c->name, c->line, id < 0 ? "id" : "size");
	c->id = id;
	c->size = size;
	c->n_columns = MAX(id, size) + 1;
	return 1;
}

static int csv_record(struct csv *c, const struct rows_field *fields, int n,
		      struct cache_index *index, struct sim_trace *t)
{
	uint64_t id, bytes;

	if (n < c->n_columns)
		return err_set(c->err, -EINVAL,
			       "%s:%" PRIu64 ": %d columns where %d are needed "
			       "(time,id,size)",
			       c->name, c->line, n, c->n_columns);
	if (!fields[c->id].n)
		return err_set(c->err, -EINVAL, "%s:%" PRIu64 ": empty id",
			       c->name, c->line);
	if (!rows_u64(&fields[c->size], &bytes) || bytes > SIM_MOST_BYTES)
		return err_set(c->err, -EINVAL,
			       "%s:%" PRIu64 ": '%.*s' is not a size in bytes",
			       c->name, c->line,
			       (int)MIN(fields[c->size].n, 40),
			       fields[c->size].text);
	/* any other text works as an id too */
	if (!rows_u64(&fields[c->id], &id))
		id = XXH3_64bits(fields[c->id].text, fields[c->id].n);
	return add(t, index, id, bytes);
}

static int csv_lines(struct csv *c, const char *p, const char *end,
		     struct cache_index *index, struct sim_trace *t)
{
	struct rows_field fields[ROWS_COLUMNS_MAX];
	int r = 0;

	for (; r >= 0 && p < end; c->line++) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		int n;

		eol = eol ? eol : end;
		n = rows_split(p, eol, fields);
		p = eol + 1;
		if (n == 1 && !fields[0].n)
			continue; /* an empty line */
		if (!t->n_requests && c->line == 1) {
			r = header(c, fields, n);
			if (r)
				continue;
		}
		r = csv_record(c, fields, n, index, t);
	}
	return r;
}

int sim_trace_parse_csv(const char *bytes, size_t n, const char *name,
			struct sim_trace *t, struct err *err)
{
	struct csv c = { .name = name,
			 .line = 1,
			 .id = 1,
			 .size = 2,
			 .n_columns = 3,
			 .err = err };
	struct cache_index index;
	int r = cache_index_init(&index, sizeof(uint32_t), 0);

	if (r == 0)
		r = csv_lines(&c, bytes, bytes + n, &index, t);
	cache_index_fini(&index);
	if (r >= 0)
		r = finish(t);
	return r < 0 ? err_set(err, r, "%s: %s", name, strerror(-r)) : 0;
}

/* --- oracleGeneral ------------------------------------------------------- */

/*
 * libCacheSim's binary format, little endian and without gaps: u32 time in s,
 * u64 id, u32 bytes, i64 number of the next request for the same id (-1 or
 * the largest value: none). Source: libCacheSim, doc/quickstart_cachesim.md,
 * "oracleGeneral". The next request is computed here; the value in the file
 * only serves to recognise the format.
 */
enum { RECORD = 24, AT_ID = 4, AT_BYTES = 12, AT_NEXT = 16 };

static int bin_record(const char *p, size_t i, const char *name,
		      struct cache_index *index, struct sim_trace *t,
		      struct err *err)
{
	uint64_t id, next_raw;
	uint32_t bytes;
	int64_t next;

	memcpy(&id, p + AT_ID, sizeof(id));
	memcpy(&bytes, p + AT_BYTES, sizeof(bytes));
	memcpy(&next_raw, p + AT_NEXT, sizeof(next_raw));
	next = (int64_t)le64toh(next_raw);
	if (next < -1 || (next >= 0 && (uint64_t)next <= i))
		return err_set(err, -EINVAL,
			       "%s: offset %zu: %" PRId64
			       " as the next request of request %zu: not an "
			       "oracleGeneral trace",
			       name, i * RECORD, next, i);
	return add(t, index, le64toh(id), le32toh(bytes));
}

int sim_trace_parse_bin(const char *bytes, size_t n, const char *name,
			struct sim_trace *t, struct err *err)
{
	struct cache_index index;
	int r = cache_index_init(&index, sizeof(uint32_t), 0);

	for (size_t i = 0; r == 0 && i < n / RECORD; i++)
		r = bin_record(bytes + i * RECORD, i, name, &index, t, err);
	cache_index_fini(&index);
	if (r == 0 && n % RECORD)
		r = err_set(err, -EINVAL,
			    "%s: offset %zu: a record of %zu bytes, not %d",
			    name, n - n % RECORD, n % RECORD, RECORD);
	if (r == 0)
		r = finish(t);
	return r < 0 ? err_set(err, r, "%s: %s", name, strerror(-r)) : 0;
}
