/* SPDX-License-Identifier: MIT */
#include "service/worker/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* Its places, then their samples, are behind it. */
struct copy {
	struct task_batch batch;
	struct place place[];
};

struct shared {
	struct sweep *sweep;
};

static void drop(void *element, void *ctx)
{
	(void)ctx;
	free(element);
}

int shared_new(uint64_t limit_bytes, struct shared **ret)
{
	struct shared *w = calloc(1, sizeof(*w));
	int r = w ? sweep_new(limit_bytes, drop, NULL, &w->sweep) : -ENOMEM;

	if (r < 0) {
		free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void shared_free(struct shared *w)
{
	if (!w)
		return;
	sweep_free(w->sweep);
	free(w);
}

const struct task_batch *shared_next(struct shared *w, struct sweep_reader *at)
{
	void *element;

	if (at->next > sweep_made(w->sweep))
		at->next = at->n_read = 0;
	if (sweep_next(w->sweep, at, &element) < 0)
		return NULL;
	return &((struct copy *)element)->batch;
}

static size_t bytes_of(const struct delivery *d)
{
	size_t n = sizeof(struct copy) + d->n * sizeof(struct place);

	for (uint32_t i = 0; i < d->n; i++)
		n += d->place[i].n;
	return n;
}

static void fill(struct copy *c, const struct task_batch *b)
{
	uint32_t n = b->d.n;
	char *at = (char *)(c->place + n);

	c->batch = *b;
	c->batch.d.place = c->place;
	for (uint32_t i = 0; i < n; i++) {
		c->place[i] = b->d.place[i];
		c->place[i].data = at;
		if (c->place[i].n)
			memcpy(at, b->d.place[i].data, c->place[i].n);
		at += c->place[i].n;
	}
}

int shared_add(struct shared *w, const struct task_batch *b)
{
	size_t bytes = bytes_of(&b->d);
	struct copy *c = malloc(bytes);
	int r;

	/* all readers are on this thread: nobody else makes one now */
	if (!c || !sweep_begin(w->sweep)) {
		free(c);
		return -ENOMEM;
	}
	fill(c, b);
	c->batch.position = sweep_made(w->sweep);
	r = sweep_extend(w->sweep, c, bytes);
	if (r < 0)
		free(c);
	return r;
}
