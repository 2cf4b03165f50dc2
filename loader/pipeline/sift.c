/* SPDX-License-Identifier: MIT */
#include "loader/pipeline/sift.h"

#include <errno.h>
#include <stdlib.h>

/* Among the usable samples, the one that follows `of` in the dataset. */
static const struct place *follower(const struct delivery *d,
				    const struct place *of)
{
	const struct place *next = NULL, *first = NULL;

	for (uint32_t i = 0; i < d->n; i++) {
		const struct place *p = &d->place[i];

		if (p->error < 0)
			continue;
		if (!first || p->sample < first->sample)
			first = p;
		if (p->sample > of->sample &&
		    (!next || p->sample < next->sample))
			next = p;
	}
	return next ? next : first;
}

static void count_bytes(struct delivery *d, const struct dataset *data)
{
	d->batch_bytes = d->longest = 0;
	for (uint32_t i = 0; i < d->n; i++) {
		uint64_t size = dataset_size(data, d->place[i].sample);

		d->batch_bytes += d->place[i].n;
		d->longest = MAX(d->longest, size);
	}
}

int sift(struct delivery *d, const struct dataset *data, enum sift how)
{
	struct place *to = calloc((size_t)d->n + d->n_failed, sizeof(*to));
	uint32_t n = 0;
	bool all;

	if (!to)
		return -ENOMEM;
	all = d->n == d->n_failed;
	d->n_zeros = how == SIFT_ZEROS ? d->n_failed : all;
	for (uint32_t i = 0; i < d->n; i++) {
		const struct place *p = &d->place[i];

		if (p->error == 0 || how == SIFT_ZEROS || (all && n == 0))
			to[n++] = *p;
		else if (!all && how == SIFT_REPLACE)
			to[n++] = *follower(d, p);
	}
	for (uint32_t i = 0, at = n; i < d->n; i++)
		if (d->place[i].error < 0)
			to[at++] = d->place[i];
	d->left_out = d->n - n;
	d->n = n;
	d->place = d->own = to;
	count_bytes(d, data);
	return 0;
}
