/* SPDX-License-Identifier: MIT */
#include "service/client/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

int sweep_init(struct sweep *s, enum split_mode mode, uint64_t epoch,
	       const uint32_t *order, uint64_t n, uint64_t n_samples,
	       uint32_t batch, uint32_t per_split)
{
	int r;

	*s = (struct sweep){ .epoch = epoch,
			     .order = order,
			     .n_samples = n_samples,
			     .left = n };
	/* here it does not matter whose they are */
	r = splits_init(&s->splits,
			mode == SPLIT_OFF ? SPLIT_OFF : SPLIT_DYNAMIC, n, batch,
			per_split, NULL, 0);
	if (r < 0)
		return r;
	s->n_wanted = s->splits.n;
	s->got = calloc(n / batch + 1, 1);
	s->n_got = calloc(s->splits.n + 1, sizeof(*s->n_got));
	s->done = calloc(s->splits.n + 1, sizeof(*s->done));
	s->sorted = calloc(2ull * batch, sizeof(*s->sorted));
	return s->got && s->n_got && s->done && s->sorted ? 0 : -ENOMEM;
}

void sweep_fini(struct sweep *s)
{
	splits_fini(&s->splits);
	free(s->got);
	free(s->n_got);
	free(s->done);
	free(s->sorted);
	*s = (struct sweep){ 0 };
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The samples of a batch are in the order of their completion. All of them are
 * compared: a sum of them can be forged. */
static bool has_samples(const struct sweep *s, const struct msg *m,
			uint64_t first)
{
	uint32_t *theirs = s->sorted, *ours = s->sorted + m->count;

	for (uint32_t i = 0; i < m->count; i++) {
		theirs[i] = msg_batch_sample(m, i).sample;
		ours[i] = s->order[first + i];
	}
	qsort(theirs, m->count, sizeof(*theirs), ascending);
	qsort(ours, m->count, sizeof(*ours), ascending);
	return memcmp(theirs, ours, m->count * sizeof(*ours)) == 0;
}

/* Whoever takes the batch finds what it knows of a sample by its number. */
static bool in_dataset(const struct sweep *s, const struct msg *m)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (msg_batch_sample(m, i).sample >= s->n_samples)
			return false;
	return true;
}

/* Each worker has an order of its own. */
static int any_batch(struct sweep *s, const struct msg *m)
{
	if (s->left == 0)
		return -ESTALE;
	s->left -= MIN(m->count, s->left);
	return 0;
}

int sweep_batch(struct sweep *s, const struct msg *m)
{
	struct splits *p = &s->splits;
	uint64_t first, batches;

	if (!in_dataset(s, m))
		return -EPROTO;
	if (p->mode == SPLIT_OFF)
		return m->count <= p->batch ? any_batch(s, m) : -EPROTO;
	if (m->split >= p->n || m->c / p->per_split != m->split)
		return -EPROTO;
	first = m->c * p->batch;
	if (first >= p->samples ||
	    m->count != MIN(p->batch, p->samples - first))
		return -EPROTO;
	if (p->state[m->split] == SPLIT_LOST || m->split >= s->n_wanted)
		return -ESTALE;
	if (s->got[m->c])
		return -EEXIST;
	/* the order may be that of the next epoch by now */
	if (s->left == 0)
		return -ESTALE;
	if (!has_samples(s, m, first))
		return -EPROTO;
	s->got[m->c] = 1;
	s->left -= m->count;
	batches = (splits_samples(p, m->split) + p->batch - 1) / p->batch;
	if (++s->n_got[m->split] == batches) {
		splits_done(p, m->split);
		s->done[s->n_done++] = m->split;
	}
	return 0;
}

uint64_t sweep_lose(struct sweep *s, uint32_t split)
{
	struct splits *p = &s->splits;
	uint64_t lost;

	if (split >= p->n || p->state[split] != SPLIT_FREE)
		return 0;
	lost = splits_samples(p, split);
	lost -= (uint64_t)s->n_got[split] * p->batch;
	/* the last batch of the epoch may be smaller, and be there */
	if (split + 1 == p->n && s->got[(p->samples - 1) / p->batch])
		lost += (p->batch - p->samples % p->batch) % p->batch;
	p->state[split] = SPLIT_LOST;
	p->n_lost++;
	s->left -= lost;
	s->n_lost += lost;
	return lost;
}

uint64_t sweep_cut(struct sweep *s, uint64_t n)
{
	struct splits *p = &s->splits;
	uint64_t each = (uint64_t)p->batch * p->per_split;
	uint32_t first = (uint32_t)MIN((n + each - 1) / each, s->n_wanted);

	for (uint32_t i = first; i < s->n_wanted; i++)
		if (s->n_got[i] || p->state[i] == SPLIT_LOST)
			first = i + 1;
	for (uint32_t i = first; i < s->n_wanted; i++) {
		s->left -= splits_samples(p, i);
		splits_done(p, i);
		s->done[s->n_done++] = i;
	}
	s->n_wanted = first;
	return MIN(first * each, p->samples);
}
