/* SPDX-License-Identifier: MIT */
/*
 * A transformed batch has one size. Raw samples differ: the largest possible
 * batch counts, or a run could fail in the middle.
 */
#include "loader/train/session_pin.h"

#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/pinned.h"

static uint64_t sum(const uint64_t *v, uint64_t n)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < n; i++)
		bytes += v[i];
	return bytes;
}

/* Largest size of `batch` raw samples; at least `batch` times the mean. */
static int largest_raw(const struct dataset *d, uint64_t batch, uint64_t *ret)
{
	uint64_t n = MIN(batch, d->n);
	_cleanup_free_ uint64_t *size = malloc(d->n * sizeof(*size));

	if (!size)
		return -ENOMEM;
	memcpy(size, d->size, d->n * sizeof(*size));
	qsort(size, d->n, sizeof(*size), util_compare_u64);
	*ret = MAX(sum(size + d->n - n, n), d->bytes / d->n * batch);
	return 0;
}

int session_batch_bytes(const struct session *s, size_t sample_bytes,
			uint64_t *ret, struct err *err)
{
	uint64_t batch = train_pipeline_batch(&s->options, &s->choice);

	*ret = sample_bytes * batch;
	return sample_bytes || largest_raw(&s->data, batch, ret) == 0
		       ? 0
		       : err_set(err, -ENOMEM, "out of memory");
}

int session_largest_batch(const struct session *s, uint64_t *ret,
			  struct err *err)
{
	const struct pipeline_config c = { .prep = s->choice.prep,
					   .prep_config = &s->prep.config };
	size_t bytes;
	int r = pipeline_sample_bytes(&c, &bytes, err);

	return r < 0 ? r : session_batch_bytes(s, bytes, ret, err);
}

int session_can_lend(const struct session *s, bool *ret, struct err *err)
{
	const struct train_options *o = &s->options;
	uint64_t windows = o->pin_direct ? o->superbatch : 1;
	/* what aligns a sample: a row of 64 bytes, or a block at both ends */
	uint64_t slack = train_pipeline_batch(o, &s->choice) *
			 (64 + 2 * (uint64_t)s->direct);
	uint64_t bytes;
	int r = 0;

	*ret = s->choice.engine->next && !s->choice.remote &&
	       !s->choice.prep->cost && !o->coordinate;
	if (!*ret || !o->pin)
		return 0;
	r = session_largest_batch(s, &bytes, err);
	*ret = r == 0 && 2 * windows * (bytes + slack) <= o->pin_budget;
	return r;
}

int session_fit_pin(struct session *s, struct err *err)
{
	struct train_options *o = &s->options;
	struct err *why = &s->report.unpinned;
	/* of a service: each GPU's, and one that is received meanwhile */
	uint64_t least = s->choice.remote ? o->gpus + 1 : 1;
	uint32_t batch = (uint32_t)train_pipeline_batch(o, &s->choice);
	uint64_t bytes, room;
	int r;

	if (!o->pin_auto || !engine_has_samples(s->choice.engine) ||
	    o->simulate)
		return 0;
	room = pinned_room(o->pin_budget);
	if (room >= o->pin_budget)
		return 0;
	r = session_largest_batch(s, &bytes, err);
	if (r < 0)
		return r;
	if (s->choice.remote) /* what goes with the samples, or aligns them */
		bytes = MAX(s->choice.remote->remote->buffer_bytes(batch,
								   bytes),
			    bytes + 64 * batch);
	if (s->choice.remote && s->choice.engine->next)
		least *= 2; /* intake.h */
	if (least * bytes <= room) {
		o->pin_budget = room;
		return 0;
	}
	o->pin = false;
	err_set(why, -ENOMEM,
		"batches are not pinned: %s %llu KiB and %llu KiB may be "
		"locked; they are copied to the GPU at the pageable rate "
		"(raise `ulimit -l`, or use a smaller --batch)",
		least == 1 ? "one takes" : "the fewest take",
		(unsigned long long)(least * bytes + KIB - 1) / KIB,
		(unsigned long long)room / KIB);
	if (s->tell)
		s->tell(s->ctx, LOG_LEVEL_WARN, why->text);
	return 0;
}
