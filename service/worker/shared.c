/* SPDX-License-Identifier: MIT */
#include "service/worker/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct shared {
	struct sweep *sweep; /* of struct task_batch */
	uint64_t job;
	struct seal_key key;
};

/* A connection that is sending it keeps its parcel. */
static void drop(void *element, void *ctx)
{
	struct task_batch *b = element;

	(void)ctx;
	parcel_put(b->parcel);
	free(b);
}

int shared_new(uint64_t job, uint64_t limit_bytes, struct shared **ret)
{
	struct shared *w = calloc(1, sizeof(*w));
	int r = w ? sweep_new(limit_bytes, drop, NULL, &w->sweep) : -ENOMEM;

	if (r < 0) {
		free(w);
		return r;
	}
	w->job = job;
	seal_draw(&w->key);
	*ret = w;
	return 0;
}

void shared_free(struct shared *w)
{
	if (!w)
		return;
	sweep_free(w->sweep);
	seal_forget(&w->key, sizeof(w->key));
	free(w);
}

const struct seal_key *shared_key(const struct shared *w)
{
	return &w->key;
}

const struct task_batch *shared_next(struct shared *w, struct sweep_reader *at)
{
	void *element;

	if (at->next > sweep_made(w->sweep))
		at->next = at->n_read = 0;
	if (sweep_next(w->sweep, at, &element) < 0)
		return NULL;
	return element;
}

static size_t bytes_of(const struct delivery *d)
{
	size_t n = msg_batch_table(d->n);

	for (uint32_t i = 0; i < d->n; i++)
		n += d->place[i].n;
	return n;
}

/* The rest of a BATCH. */
static void fill(unsigned char *rest, const struct delivery *d)
{
	size_t table = msg_batch_table(d->n);
	unsigned char *at = rest + table;

	memset(rest, 0, table);
	for (uint32_t i = 0; i < d->n; i++) {
		const struct place *p = &d->place[i];
		const struct msg_sample one = { p->sample, p->error, p->n,
						p->bypassed };

		msg_batch_put(rest, i, &one);
		if (p->n)
			memcpy(at, p->data, p->n);
		at += p->n;
	}
}

int shared_add(struct shared *w, const struct task_batch *b)
{
	size_t bytes = bytes_of(&b->d);
	struct task_batch *copy;
	int r;

	if (bytes > PARCEL_MOST)
		return -EFBIG;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *b;
	copy->d.place = NULL;
	copy->position = sweep_made(w->sweep);
	copy->parcel = parcel_new(bytes);
	r = copy->parcel ? sweep_extend(w->sweep, copy, sizeof(*copy) + bytes)
			 : -ENOMEM;
	if (r < 0) {
		drop(copy, NULL);
		return r;
	}
	/* only now its number is used up */
	fill(parcel_body(copy->parcel), &b->d);
	parcel_seal(copy->parcel, &w->key, w->job, copy->position);
	return 0;
}
