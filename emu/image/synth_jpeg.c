/* SPDX-License-Identifier: MIT */
/*
 * Images of sizes that grow by 5 % a step, four of each while they are small;
 * a file takes the largest that is not larger than itself, and is
 *
 *	SOI APP0 | comments that fill the step | the rest of the image
 *	20 bytes
 *
 * The comments' lengths follow from the size of the gap alone, so that any
 * byte of a file can be had without those before it.
 */
#include "emu/image/synth_jpeg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/pool.h"
#include "common/rng.h"
#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/image/image.h"

enum {
	TEXTURES = 2, /* one a processor; 0.2 s each, and that is the start */
	/* room for the largest image of the pool: 1 MiB at 6.5 bits a pixel */
	TEXTURE_WIDTH = 1536,
	TEXTURE_HEIGHT = 1152,
	STEPS_MOST = 256,
	VARIANTS = 4,
	MAX_THREADS = 16,
	AFTER_JFIF = 20,      /* where comments may stand */
	COMMENT_MOST = 65537, /* marker, length, and what 16 bits can count */
	COMMENT_HEAD = 4,
};

/* arbitrary: with those of the images themselves at most 10 % is padding,
 * while the pool stays at 40 MB */
static const double STEP = 1.05;

/* Sizes with several images, and the largest with one. */
#define MANY_BYTES (256 * KIB)
#define MOST_BYTES MIB

struct picture {
	uint8_t *bytes;
	uint32_t n;
};

struct synth_jpeg {
	struct dataset_files d;
	struct image_pool pool; /* while the pictures are made */
	struct picture *pictures;
	unsigned n_pictures;
	/* step s: pictures first[s].. of sizes[s] bytes; up to first[s + 1] */
	unsigned first[STEPS_MOST + 1];
	uint32_t sizes[STEPS_MOST];
	unsigned n_steps;
};

static void plan(struct synth_jpeg *s, const uint64_t *sizes)
{
	uint64_t least = UINT64_MAX, most = 0;
	double at;

	for (uint64_t i = 0; i < s->d.files; i++) {
		least = MIN(least, sizes[i]);
		most = MAX(most, sizes[i]);
	}
	most = MAX(MIN(most, MOST_BYTES), MIN(least, MOST_BYTES));
	for (at = (double)MIN(least, MOST_BYTES);
	     s->n_steps < STEPS_MOST && at <= (double)most; at *= STEP) {
		s->sizes[s->n_steps] = (uint32_t)at;
		s->first[s->n_steps++] = s->n_pictures;
		s->n_pictures += at < (double)MANY_BYTES ? VARIANTS : 1;
	}
	s->first[s->n_steps] = s->n_pictures;
}

static unsigned step_of_picture(const struct synth_jpeg *s, unsigned k)
{
	unsigned step = 0;

	while (s->first[step + 1] <= k)
		step++;
	return step;
}

/* --- making the pictures ------------------------------------------------ */

static int make_texture(void *ctx, void *state, size_t i, struct err *err)
{
	struct synth_jpeg *s = ctx;
	struct rng rng = rng_stream(s->d.seed, "synth.texture", i);
	struct image_texture t;
	int r = image_texture_synthesise(TEXTURE_WIDTH, TEXTURE_HEIGHT, &rng,
					 &t);

	(void)state;
	(void)err;
	return r < 0 ? r : image_piece_init(&s->pool.pieces[i], &t);
}

static int image_begin(void *ctx, void *state, struct err *err)
{
	struct synth_jpeg *s = ctx;

	(void)err;
	return image_init(state, &s->pool);
}

static void image_end(void *ctx, void *state)
{
	(void)ctx;
	image_fini(state);
}

static int make_picture(void *ctx, void *state, size_t i, struct err *err)
{
	struct synth_jpeg *s = ctx;
	struct image *image = state;
	/* the large ones first: the threads end together */
	unsigned k = s->n_pictures - 1 - (unsigned)i;
	struct picture *p = &s->pictures[k];
	struct rng rng = rng_stream(s->d.seed, "synth.picture", k);
	int r;

	(void)err;
	p->n = s->sizes[step_of_picture(s, k)];
	r = image_make(image, p->n, &rng, NULL);
	if (r < 0)
		return r;
	p->bytes = malloc(p->n);
	if (!p->bytes)
		return -ENOMEM;
	memcpy(p->bytes, image->bytes, p->n);
	return 0;
}

static int make_all(struct synth_jpeg *s)
{
	struct image_piece pieces[TEXTURES] = { 0 };
	const unsigned threads = MIN(thread_cpus(), MAX_THREADS);
	struct pool textures = { .n = TEXTURES,
				 .threads = threads,
				 .ctx = s,
				 .work = make_texture };
	struct pool pictures = { .n = s->n_pictures,
				 .threads = threads,
				 .ctx = s,
				 .state_bytes = sizeof(struct image),
				 .init = image_begin,
				 .fini = image_end,
				 .work = make_picture };
	int r;

	s->pool = (struct image_pool){ .pieces = pieces,
				       .n = TEXTURES,
				       .mirror = true };
	r = pool_run(&textures, NULL);
	if (r == 0)
		r = pool_run(&pictures, NULL);
	for (unsigned i = 0; i < TEXTURES; i++)
		image_piece_fini(&pieces[i]);
	s->pool.pieces = NULL;
	return r;
}

int synth_jpeg_new(const struct dataset_files *d, const uint64_t *sizes,
		   struct synth_jpeg **ret, struct err *err)
{
	struct synth_jpeg *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (!s)
		return err_set(err, r, "the images: %s", strerror(-r));
	s->d = *d;
	plan(s, sizes);
	s->pictures = calloc(s->n_pictures, sizeof(*s->pictures));
	if (s->pictures)
		r = make_all(s);
	if (r < 0) {
		synth_jpeg_free(s);
		return err_set(err, r, "the images: %s", strerror(-r));
	}
	*ret = s;
	return 0;
}

void synth_jpeg_free(struct synth_jpeg *s)
{
	if (!s)
		return;
	for (unsigned i = 0; s->pictures && i < s->n_pictures; i++)
		free(s->pictures[i].bytes);
	free(s->pictures);
	free(s);
}

/* --- reading ------------------------------------------------------------ */

static const struct picture *picture_of(const struct synth_jpeg *s, uint64_t i,
					uint64_t size)
{
	unsigned low = 0, high = s->n_steps - 1, n;

	while (low < high) {
		unsigned middle = (low + high + 1) / 2;

		if (s->sizes[middle] <= size)
			low = middle;
		else
			high = middle - 1;
	}
	n = s->first[low + 1] - s->first[low];
	return &s->pictures[s->first[low] +
			    rng_key(s->d.seed, "synth.choice", i) % n];
}

/* Byte `at` of a comment of `bytes` bytes' marker and length. */
static uint8_t head(uint64_t bytes, uint64_t at)
{
	const uint8_t head[COMMENT_HEAD] = { 0xff, 0xfe,
					     (uint8_t)((bytes - 2) >> 8),
					     (uint8_t)(bytes - 2) };

	return head[at];
}

/*
 * Bytes [from, from + n) of `gap` bytes of comments. A gap too small for one
 * is fill bytes, which may stand before a marker (ITU-T T.81, B.1.1.2); a
 * last comment that would be too small takes four bytes of the one before.
 */
static void padding(uint64_t key, uint64_t gap, uint64_t from, uint8_t *buf,
		    size_t n)
{
	uint64_t rest = gap % COMMENT_MOST;
	bool borrow = rest > 0 && rest < COMMENT_HEAD;
	uint64_t start = from / COMMENT_MOST * COMMENT_MOST;

	if (gap < COMMENT_HEAD) {
		memset(buf, 0xff, n);
		return;
	}
	if (borrow && start + rest == gap) /* may begin before its place */
		start -= COMMENT_MOST;
	rng_bytes_at(key, from, buf, n);
	while (start < from + n) {
		uint64_t left = gap - start;
		uint64_t bytes = MIN(left, COMMENT_MOST);

		if (borrow && left - bytes == rest)
			bytes -= COMMENT_HEAD;
		for (unsigned i = 0; i < COMMENT_HEAD; i++)
			if (start + i >= from && start + i < from + n)
				buf[start + i - from] = head(bytes, i);
		start += bytes;
	}
}

void synth_jpeg_read(const struct synth_jpeg *s, uint64_t i, uint64_t size,
		     uint64_t offset, void *buf, size_t n)
{
	const struct picture *p = picture_of(s, i, size);
	uint64_t gap = size - p->n, at = offset, end = offset + n;
	uint8_t *out = buf;

	if (at < AFTER_JFIF) {
		size_t part = MIN(end, AFTER_JFIF) - at;

		memcpy(out, p->bytes + at, part);
		out += part;
		at += part;
	}
	if (at < end && at < AFTER_JFIF + gap) {
		size_t part = MIN(end, AFTER_JFIF + gap) - at;

		padding(rng_key(s->d.seed, "synth.comment", i), gap,
			at - AFTER_JFIF, out, part);
		out += part;
		at += part;
	}
	if (at < end)
		memcpy(out, p->bytes + (at - gap), end - at);
}
