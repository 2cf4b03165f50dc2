/* SPDX-License-Identifier: MIT */
#include "loader/train/bad_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "loader/prep/unusable.h"

enum { NAME = 512 };

void bad_samples_begin(struct bad_samples *b, uint64_t n)
{
	b->of = n;
	b->n = 0;
}

/* Rounded up: one of 41 samples is not too many for 1 %. Divided last: 7 % of
 * 100 are no more than 7. */
static uint64_t most(const struct bad_samples *b)
{
	const struct train_bad *a = b->allowed;

	return a->percent < 0
		       ? a->n
		       : (uint64_t)ceil(a->percent * (double)b->of / 100);
}

/* The name of a sample, and where it is in a file of many. */
static const char *name(const struct bad_samples *b, uint32_t sample,
			char buf[NAME])
{
	size_t n = strlen(dataset_name(b->data, sample, buf, NAME));

	if (b->data->offset)
		snprintf(buf + n, NAME - n, ", from byte %" PRIu64,
			 dataset_offset(b->data, sample));
	return buf;
}

static void keep_sample(struct bad_samples *b, const struct place *p)
{
	uint32_t i = 0;

	while (i < b->n_named && b->named[i].sample != p->sample)
		i++;
	if (i < b->n_named || i == BAD_NAMED)
		return;
	b->named[i].sample = p->sample;
	b->named[i].error = p->error;
	b->n_named++;
}

int bad_samples_add(struct bad_samples *b, const struct delivery *d,
		    struct err *err)
{
	char buf[NAME];

	for (uint32_t i = 0; i < d->n_failed; i++)
		keep_sample(b, &d->place[d->n + i]);
	b->n += d->n_failed;
	if (d->n_failed == 0 || b->n <= most(b))
		return 0;
	return err_set(err, -EBADMSG,
		       "%" PRIu64 " samples of an epoch of %" PRIu64
		       " cannot be used, more than --bad-samples %s permits; "
		       "the first: %s: %s",
		       b->n, b->of, b->option, name(b, b->named[0].sample, buf),
		       unusable_text(b->named[0].error));
}

json_t *bad_samples_json(const struct bad_samples *b)
{
	json_t *all = b->n_named ? json_array() : NULL;
	char buf[NAME];

	for (uint32_t i = 0; i < b->n_named; i++)
		json_array_append_new(
			all,
			json_pack("{s:o, s:s}", "sample",
				  json_bytes(name(b, b->named[i].sample, buf)),
				  "reason", unusable_text(b->named[i].error)));
	return all;
}
