/* SPDX-License-Identifier: MIT */
#include "cachesim/layout.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"

void sim_trace_fini(struct sim_trace *t)
{
	free(t->objects);
	free(t->whole);
	free(t->requests);
	free(t->epoch_ends);
	free(t->events);
	free(t->next_use);
	importance_fini(&t->importance);
	free(t->label);
	free(t->file_bytes);
	free(t->read.path);
	free(t->read.layout);
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

/* --- for layouts --------------------------------------------------------- */

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

int sim_trace_add_key(struct sim_trace *t, struct cache_index *index,
		      uint64_t key, uint64_t bytes)
{
	uint32_t number;
	int r = sim_trace_number(t, index, key, bytes, bytes, &number);

	return r < 0 ? r : sim_trace_add_request(t, number);
}

int sim_trace_finish(struct sim_trace *t)
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

void sim_read_time(struct sim_read *r, double s)
{
	if (!r->timed || s < r->first_s)
		r->first_s = s;
	if (!r->timed || s > r->last_s)
		r->last_s = s;
	r->timed = true;
}
