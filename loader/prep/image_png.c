/* SPDX-License-Identifier: MIT */
/*
 * A PNG, by libpng. What is made of it is what Pillow 9.4 makes of it with
 * convert("RGB"), whose rules are its own (PngImagePlugin.py, Convert.c):
 *
 * - alpha and transparent colours are dropped, not blended;
 * - of 16 bits the upper 8 count, but a grey image is clipped at 255;
 * - a palette's missing colours are a grey ramp;
 * - checksums count up to the image data; after it nothing does, so that a file
 *   cut off behind its last row is whole. Hence libpng's interface that is fed:
 *   it gives each row as soon as its bytes are there.
 *
 * Two things differ: Pillow takes an image whose compressed data ends early,
 * but properly, and leaves the rest black; and one with an empty palette. They
 * are broken here.
 */
#include "loader/prep/planes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>

#include <png.h>

#include "common/util.h"
#include "loader/prep/unusable.h"

struct decoder {
	png_structp png;
	png_infop info;
	const uint8_t *raw;
	size_t n, at; /* bytes, and of them read */
	bool began;   /* the header is read */
	bool ended;   /* the last chunk is read */
	bool deep;    /* grey values of 16 bits */
	bool indexed;
	bool interlaced;
	uint8_t colour[256][3]; /* if indexed */
	const struct planes *planes;
	uint8_t *rows; /* of an interlaced image: all, behind the planes */
	size_t row_bytes;
};

static void fail_png(png_structp png, png_const_charp text)
{
	(void)text;
	png_longjmp(png, 1);
}

static void say_nothing(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

/* Once for each image: libpng has no way to begin another one. */
static void close_png(struct decoder *d)
{
	png_destroy_read_struct(&d->png, &d->info, NULL);
}

static void png_fini(void *decoder)
{
	if (decoder)
		close_png(decoder);
	free(decoder);
}

static int open_png(void **decoder, const uint8_t *raw, size_t n)
{
	struct decoder *d = *decoder;

	if (!d && !(d = *decoder = calloc(1, sizeof(*d))))
		return -ENOMEM;
	close_png(d);
	*d = (struct decoder){ .raw = raw, .n = n };
	d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, fail_png,
					say_nothing);
	d->info = d->png ? png_create_info_struct(d->png) : NULL;
	return d->info ? 0 : -ENOMEM;
}

/* --- rows ---------------------------------------------------------------- */

/* A row into the planes. */
static void split(const struct decoder *d, unsigned y, const uint8_t *row)
{
	const struct planes *p = d->planes;
	const struct plane *to = p->plane;
	size_t at = y * to->stride;

	for (size_t x = 0; x < to->width; x++, at++) {
		const uint8_t *pixel = d->indexed ? d->colour[row[x]]
				       : d->deep  ? row + 2 * x
						  : row + p->n * x;

		if (d->deep)
			to->pixels[at] = pixel[0] ? 255 : pixel[1];
		for (unsigned i = 0; !d->deep && i < p->n; i++)
			to[i].pixels[at] = pixel[i];
	}
}

/* The header is read: libpng returns, and decode feeds it the rest. */
static void header_read(png_structp png, png_infop info)
{
	struct decoder *d = png_get_progressive_ptr(png);

	(void)info;
	d->began = true;
	d->at -= png_process_data_pause(png, 0);
}

static void row_read(png_structp png, png_bytep row, png_uint_32 y, int pass)
{
	const struct decoder *d = png_get_progressive_ptr(png);

	(void)pass;
	if (d->interlaced)
		png_progressive_combine_row(png, d->rows + y * d->row_bytes,
					    row);
	else
		split(d, y, row);
}

static bool has_all(const struct decoder *d)
{
	if (d->interlaced)
		return png_get_current_pass_number(d->png) >=
		       PNG_INTERLACE_ADAM7_PASSES;
	return png_get_current_row_number(d->png) >= d->planes->height;
}

static void end_read(png_structp png, png_infop info)
{
	struct decoder *d = png_get_progressive_ptr(png);

	(void)info;
	d->ended = true;
}

/* --- the header ---------------------------------------------------------- */

static int png_header(struct planes *p, void **decoder, const uint8_t *raw,
		      size_t n)
{
	struct decoder *d;

	if (open_png(decoder, raw, n) < 0)
		return -ENOMEM;
	d = *decoder;
	if (setjmp(png_jmpbuf(d->png)))
		return -EBADMSG;
	png_set_progressive_read_fn(d->png, d, header_read, row_read, end_read);
	png_set_benign_errors(d->png, 1);
	png_set_user_limits(d->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	/* texts and colour profiles are skipped, compressed as they are */
	png_set_keep_unknown_chunks(d->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
	png_set_crc_action(d->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
	d->at = n;
	png_process_data(d->png, d->info, (png_bytep)raw, n);
	if (!d->began)
		return -UNUSABLE_TRUNCATED;
	p->width = png_get_image_width(d->png, d->info);
	p->height = png_get_image_height(d->png, d->info);
	return 0;
}

/* --- the pixels ---------------------------------------------------------- */

static void read_palette(struct decoder *d)
{
	png_colorp from;
	int n = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(d->colour); i++)
		memset(d->colour[i], (int)i, sizeof(d->colour[i]));
	png_get_PLTE(d->png, d->info, &from, &n);
	for (int i = 0; i < n; i++) {
		d->colour[i][0] = from[i].red;
		d->colour[i][1] = from[i].green;
		d->colour[i][2] = from[i].blue;
	}
}

/* Rows of 8-bit grey values, indexes or R G B, or of 16-bit grey values. */
static void set_output(struct decoder *d)
{
	int depth = png_get_bit_depth(d->png, d->info);
	int type = png_get_color_type(d->png, d->info);

	d->indexed = type == PNG_COLOR_TYPE_PALETTE;
	d->deep = type == PNG_COLOR_TYPE_GRAY && depth == 16;
	if (d->indexed) {
		png_set_packing(d->png);
		read_palette(d);
	} else if (depth < 8) {
		png_set_expand_gray_1_2_4_to_8(d->png);
	} else if (depth == 16 && !d->deep) {
		png_set_strip_16(d->png);
	}
	png_set_strip_alpha(d->png);
	png_set_crc_action(d->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
	d->interlaced = png_set_interlace_handling(d->png) > 1;
	png_read_update_info(d->png, d->info);
	d->row_bytes = png_get_rowbytes(d->png, d->info);
}

static int lay_out(struct planes *p, struct decoder *d)
{
	unsigned n = d->indexed ? 3 : png_get_channels(d->png, d->info);

	d->planes = p;
	return planes_lay_out(p, n, PLANES_EIGHTHS,
			      d->interlaced ? d->row_bytes * p->height : 0,
			      &d->rows);
}

static void read_rows(struct decoder *d)
{
	size_t at = d->at;

	d->at = d->n;
	png_process_data(d->png, d->info, (png_bytep)d->raw + at, d->n - at);
}

static int png_decode(struct planes *p, void **decoder, unsigned eighths,
		      unsigned top, unsigned bottom)
{
	struct decoder *d = *decoder;

	(void)eighths;
	(void)top;
	(void)bottom;
	if (setjmp(png_jmpbuf(d->png)))
		return -EBADMSG;
	set_output(d);
	if (lay_out(p, d) < 0)
		return -ENOMEM;
	/* an error after the last row is none */
	if (!setjmp(png_jmpbuf(d->png)))
		read_rows(d);
	else if (!has_all(d))
		return -EBADMSG;
	if (!has_all(d))
		return d->ended ? -EBADMSG : -UNUSABLE_TRUNCATED;
	for (unsigned y = 0; d->interlaced && y < p->height; y++)
		split(d, y, d->rows + y * d->row_bytes);
	return 0;
}

const struct image_ops image_png = {
	.magic = "\x89PNG\r\n\x1a\n",
	.n_magic = 8,
	.header = png_header,
	.decode = png_decode,
	.fini = png_fini,
};
