/* SPDX-License-Identifier: MIT */
#include "share/lanes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/util.h"

int lanes_init(struct lanes *l, enum lanes_kind kind, uint64_t capacity,
	       uint32_t n_max)
{
	*l = (struct lanes){
		.kind = kind,
		.capacity = capacity,
		.n_max = n_max,
		.size = calloc(n_max, sizeof(*l->size)),
		.members = calloc(n_max, sizeof(*l->members)),
		.jobs = calloc(n_max, sizeof(*l->jobs)),
	};
	return l->size && l->members && l->jobs ? 0 : -ENOMEM;
}

void lanes_fini(struct lanes *l)
{
	free(l->size);
	free(l->members);
	free(l->jobs);
	*l = (struct lanes){ 0 };
}

/* The growth of the lane for a job. */
static uint64_t growth(const struct lanes *l, uint32_t lane, uint64_t ephemeral)
{
	return ephemeral > l->size[lane] ? ephemeral - l->size[lane] : 0;
}

/* May a job join this lane, which has jobs or is the first empty one? */
static bool may_use(const struct lanes *l, uint32_t lane)
{
	switch (l->kind) {
	case LANES_ONE: return lane == 0;
	case LANES_OF_OWN: return l->members[lane] == 0;
	default: return true;
	}
}

int lanes_place(const struct lanes *l, uint64_t persistent, uint64_t ephemeral)
{
	uint64_t left = l->capacity - l->used, least = UINT64_MAX;
	int best = -ENOSPC, empty = -ENOSPC;

	if (l->n_jobs == l->n_max || persistent > left)
		return -ENOSPC;
	left -= persistent;
	for (uint32_t i = 0; i < l->n_max; i++) {
		uint64_t grows = growth(l, i, ephemeral);

		if (!may_use(l, i) || grows > left)
			continue;
		if (l->members[i] == 0) {
			empty = empty < 0 ? (int)i : empty;
		} else if (grows < least) {
			least = grows;
			best = (int)i;
		}
	}
	return empty >= 0 ? empty : best;
}

static void resize(struct lanes *l, uint32_t lane, uint64_t size)
{
	l->used += size - l->size[lane];
	l->size[lane] = size;
}

int lanes_add(struct lanes *l, uint64_t persistent, uint64_t ephemeral)
{
	int lane = lanes_place(l, persistent, ephemeral);
	uint32_t slot = 0;

	if (lane < 0)
		return lane;
	while (l->jobs[slot].there)
		slot++;
	l->jobs[slot] = (struct lanes_job){ .there = true,
					    .lane = (uint32_t)lane,
					    .persistent = persistent,
					    .ephemeral = ephemeral };
	l->n_jobs++;
	l->n_lanes += l->members[lane]++ == 0;
	l->used += persistent;
	resize(l, (uint32_t)lane, MAX(l->size[lane], ephemeral));
	assert(l->used <= l->capacity);
	return (int)slot;
}

void lanes_remove(struct lanes *l, uint32_t slot)
{
	struct lanes_job *job = &l->jobs[slot];
	uint64_t largest = 0;

	assert(job->there);
	job->there = false;
	l->n_jobs--;
	l->n_lanes -= --l->members[job->lane] == 0;
	l->used -= job->persistent;
	for (uint32_t i = 0; i < l->n_max; i++)
		if (l->jobs[i].there && l->jobs[i].lane == job->lane)
			largest = MAX(largest, l->jobs[i].ephemeral);
	resize(l, job->lane, largest);
}
