/* SPDX-License-Identifier: MIT */
#include "service/core/splits.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

const char *const split_modes[] = {
	[SPLIT_OFF] = "off",
	[SPLIT_DYNAMIC] = "dynamic",
	[SPLIT_STATIC] = "static",
};

/* Of an epoch; 0: SPLIT_OFF, or a parameter is 0. */
static uint64_t count(enum split_mode mode, uint64_t samples, uint32_t batch,
		      uint32_t per_split)
{
	uint64_t each = (uint64_t)batch * per_split;

	if (mode == SPLIT_OFF || each == 0)
		return 0;
	return samples / each + (samples % each != 0);
}

int splits_init(struct splits *s, enum split_mode mode, uint64_t samples,
		uint32_t batch, uint32_t per_split, const uint64_t *slot,
		uint32_t n_slots)
{
	uint64_t n = count(mode, samples, batch, per_split);
	bool no_splits = mode == SPLIT_OFF;

	*s = (struct splits){ .mode = mode,
			      .samples = samples,
			      .batch = batch,
			      .per_split = per_split };
	if (!no_splits && (n == 0 || n > SPLITS_MOST))
		return -EINVAL;
	s->n_slots = mode == SPLIT_DYNAMIC ? 0 : n_slots;
	s->state = calloc(n + no_splits, sizeof(*s->state));
	s->owner = calloc(n + no_splits, sizeof(*s->owner));
	s->slot = calloc(MAX(s->n_slots, 1), sizeof(*s->slot));
	s->next = calloc(MAX(s->n_slots, 1), sizeof(*s->next));
	if (!s->state || !s->owner || !s->slot || !s->next)
		return -ENOMEM;
	s->n = (uint32_t)n;
	for (uint32_t i = 0; i < s->n_slots; i++) {
		s->slot[i] = slot[i];
		s->next[i] = i;
	}
	return 0;
}

void splits_fini(struct splits *s)
{
	free(s->state);
	free(s->owner);
	free(s->slot);
	free(s->next);
	*s = (struct splits){ 0 };
}

/* Of the worker; n_slots: it has none. */
static uint32_t slot_of(const struct splits *s, uint64_t worker)
{
	uint32_t i = 0;

	while (i < s->n_slots && s->slot[i] != worker)
		i++;
	return i;
}

int splits_next(struct splits *s, uint64_t worker, uint32_t *ret)
{
	uint32_t i = 0, step = 1;

	if (s->mode == SPLIT_STATIC) {
		i = slot_of(s, worker);
		step = s->n_slots;
		if (i == s->n_slots)
			return -ENODATA;
	}
	while (s->mode != SPLIT_OFF && s->next[i] < s->n) {
		if (s->state[s->next[i]] == SPLIT_FREE) {
			*ret = s->next[i];
			return 0;
		}
		s->next[i] += step;
	}
	return -ENODATA;
}

int splits_assign(struct splits *s, uint32_t split, uint64_t worker)
{
	if (split >= s->n || s->state[split] != SPLIT_FREE)
		return -EINVAL;
	s->state[split] = SPLIT_ASSIGNED;
	s->owner[split] = worker;
	return 0;
}

int splits_done(struct splits *s, uint32_t split)
{
	if (split >= s->n)
		return -EINVAL;
	if (s->state[split] == SPLIT_DONE)
		return 0;
	s->n_lost -= s->state[split] == SPLIT_LOST;
	s->state[split] = SPLIT_DONE;
	s->n_done++;
	return 0;
}

static uint32_t lose(struct splits *s, uint32_t split, uint64_t worker)
{
	s->state[split] = SPLIT_LOST;
	s->owner[split] = worker;
	s->n_lost++;
	return 1;
}

/* Is it the worker's to finish? `slot`: of that worker. */
static bool is_of(const struct splits *s, uint32_t split, uint64_t worker,
		  uint32_t slot)
{
	if (s->state[split] == SPLIT_ASSIGNED)
		return s->owner[split] == worker;
	return s->state[split] == SPLIT_FREE && slot < s->n_slots &&
	       split % s->n_slots == slot;
}

uint32_t splits_lose(struct splits *s, uint64_t worker)
{
	uint32_t slot = slot_of(s, worker), n = 0;

	for (uint32_t i = 0; i < s->n; i++)
		if (is_of(s, i, worker, slot))
			n += lose(s, i, worker);
	return n;
}

bool splits_has(const struct splits *s, uint64_t worker)
{
	uint32_t slot = slot_of(s, worker);

	for (uint32_t i = 0; i < s->n; i++)
		if (is_of(s, i, worker, slot))
			return true;
	return false;
}

uint64_t splits_first(const struct splits *s, uint32_t split)
{
	return (uint64_t)split * s->batch * s->per_split;
}

uint64_t splits_samples(const struct splits *s, uint32_t split)
{
	return MIN((uint64_t)s->batch * s->per_split,
		   s->samples - splits_first(s, split));
}
