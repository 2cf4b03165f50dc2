/* SPDX-License-Identifier: MIT */
/*
 * Uses libjpeg's own interface instead of TurboJPEG's, because a caller can
 * stop it early. Rows above the crop only pass the Huffman decoder (their
 * components are marked as not needed, which skips the DCT); rows below it are
 * not decoded at all. Measured with bench_prep on 512 images of ImageNet's
 * sizes: 834 us an image, against 978 us for decoding all of each.
 *
 * A file truncated below the crop is still detected: entropy-coded data cannot
 * contain an end marker, so one must follow.
 */
#include "loader/prep/planes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "common/util.h"

/* A progressive file with thousands of scans is an attack. Source: the limit of
 * TurboJPEG's TJFLAG_LIMITSCANS */
enum { MAX_SCANS = 500 };

struct decoder {
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr err;
	struct jpeg_progress_mgr progress;
	jmp_buf fail;
};

static void fail(j_common_ptr c)
{
	struct decoder *d = container_of(c->err, struct decoder, err);

	longjmp(d->fail, 1);
}

static void say_nothing(j_common_ptr c)
{
	(void)c;
}

static void limit_scans(j_common_ptr c)
{
	if (((j_decompress_ptr)c)->input_scan_number > MAX_SCANS)
		fail(c);
}

int planes_init(struct planes *p)
{
	struct decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->c.err = jpeg_std_error(&d->err);
	d->err.error_exit = fail;
	d->err.output_message = say_nothing;
	d->progress.progress_monitor = limit_scans;
	if (setjmp(d->fail)) { /* out of memory */
		free(d);
		return -ENOMEM;
	}
	jpeg_create_decompress(&d->c);
	d->c.progress = &d->progress;
	p->decoder = d;
	return 0;
}

static void drop_decoder(struct planes *p)
{
	struct decoder *d = p->decoder;

	if (d)
		jpeg_destroy_decompress(&d->c);
	free(d);
	p->decoder = NULL;
}

void planes_fini(struct planes *p)
{
	drop_decoder(p);
	free(p->memory);
	*p = (struct planes){ 0 };
}

/*
 * After an error in a header libjpeg-turbo 2.1.5 keeps the current marker and
 * takes it for the first of the next image: tests/unit/test_prep found good
 * images refused after a truncated one. So a decoder that failed is not reused.
 */
static int broken(struct planes *p)
{
	drop_decoder(p);
	return -EBADMSG;
}

int planes_header(struct planes *p, const void *raw, size_t n)
{
	struct decoder *d;

	if (!p->decoder && planes_init(p) < 0)
		return -ENOMEM;
	d = p->decoder;
	if (setjmp(d->fail))
		return broken(p);
	jpeg_abort_decompress(&d->c);
	jpeg_mem_src(&d->c, raw, n);
	jpeg_read_header(&d->c, TRUE);
	if (d->err.num_warnings)
		return broken(p);
	if ((uint64_t)d->c.image_width * d->c.image_height > PLANES_MAX_PIXELS)
		return -EBADMSG;
	p->width = d->c.image_width;
	p->height = d->c.image_height;
	return 0;
}

unsigned planes_eighths(unsigned w, unsigned h, unsigned least)
{
	/* libjpeg-turbo 2.1 has SIMD code for these; the others (3/8, 5/8, 6/8,
	 * 7/8) are plain C and slower than a decode at full size */
	static const unsigned fast[] = { 1, 2, 4 };

	for (size_t i = 0; i < ARRAY_SIZE(fast); i++)
		if (w * fast[i] >= least * PLANES_EIGHTHS &&
		    h * fast[i] >= least * PLANES_EIGHTHS)
			return fast[i];
	return PLANES_EIGHTHS;
}

static size_t stride_of(size_t width)
{
	return (width + 31u) & ~(size_t)31u;
}

/* Lay out the planes one after the other, with room for whole blocks. */
static int lay_out_blocks(struct planes *p, const struct decoder *d)
{
	size_t at[3], n = 0;
	int r;

	p->is_rgb = false;
	p->n = (unsigned)d->c.num_components;
	for (unsigned i = 0; i < p->n; i++) {
		const jpeg_component_info *c = &d->c.comp_info[i];
		struct plane *to = &p->plane[i];
		size_t block = (size_t)c->DCT_scaled_size;

		to->width = c->downsampled_width;
		to->height = c->downsampled_height;
		to->stride = stride_of(c->width_in_blocks * block);
		to->scale_x = (double)(c->h_samp_factor * c->DCT_scaled_size) /
			      (d->c.max_h_samp_factor * DCTSIZE);
		to->scale_y = (double)(c->v_samp_factor * c->DCT_scaled_size) /
			      (d->c.max_v_samp_factor * DCTSIZE);
		at[i] = n;
		n += to->stride * d->c.total_iMCU_rows *
		     (size_t)c->v_samp_factor * block;
	}
	r = util_reserve_anew(&p->memory, &p->capacity, n, 1);
	for (unsigned i = 0; r == 0 && i < p->n; i++)
		p->plane[i].pixels = p->memory + at[i];
	return r;
}

/* The next row of blocks of each plane, number `k` from the top. */
static void read_blocks(struct planes *p, struct decoder *d, size_t k,
			bool needed)
{
	JSAMPROW row[3][MAX_SAMP_FACTOR * DCTSIZE];
	JSAMPARRAY data[3] = { row[0], row[1], row[2] };
	int lines = d->c.max_v_samp_factor * d->c.min_DCT_scaled_size;

	for (unsigned i = 0; i < p->n; i++) {
		jpeg_component_info *c = &d->c.comp_info[i];
		const struct plane *to = &p->plane[i];
		size_t n = (size_t)(c->v_samp_factor * c->DCT_scaled_size);

		c->component_needed = needed;
		for (size_t l = 0; l < n; l++)
			row[i][l] = to->pixels + (k * n + l) * to->stride;
	}
	jpeg_read_raw_data(&d->c, data, (JDIMENSION)lines);
}

/* Rows top..bottom - 1 of the output, and those that share blocks with them. */
static int decode_blocks(struct planes *p, struct decoder *d, unsigned top,
			 unsigned bottom)
{
	unsigned lines;

	d->c.raw_data_out = TRUE;
	jpeg_start_decompress(&d->c);
	if (lay_out_blocks(p, d) < 0)
		return -ENOMEM;
	lines = (unsigned)(d->c.max_v_samp_factor * d->c.min_DCT_scaled_size);
	bottom = MIN(bottom, d->c.output_height);
	for (unsigned k = 0; k * lines < bottom; k++)
		read_blocks(p, d, k, (k + 1) * lines > top);
	return 0;
}

/*
 * CMYK and YCCK files store their inks inverted: 255 is none. This is Adobe's
 * convention, and every viewer follows it. The light that passes two inks is
 * the product of both.
 */
static void split(const struct planes *p, unsigned y, const uint8_t *packed,
		  unsigned n_channels)
{
	const struct plane *c = p->plane;
	size_t row = y * c->stride;

	for (unsigned x = 0; x < c->width; x++, packed += n_channels) {
		unsigned k = n_channels == 4 ? packed[3] : 255;

		for (int i = 0; i < 3; i++)
			c[i].pixels[row + x] =
				(uint8_t)((packed[i] * k + 127) / 255);
	}
}

/* Images not stored as Y Cb Cr are packed; this splits them into planes. */
static int decode_packed(struct planes *p, struct decoder *d, unsigned eighths)
{
	bool cmyk = d->c.num_components == 4;
	size_t size, line;
	JSAMPROW row;

	d->c.raw_data_out = FALSE;
	d->c.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
	jpeg_start_decompress(&d->c);
	p->is_rgb = true;
	p->n = 3;
	size = stride_of(d->c.output_width) * d->c.output_height;
	line = (size_t)d->c.output_width * (cmyk ? 4 : 3);
	if (util_reserve_anew(&p->memory, &p->capacity, 3 * size + line, 1) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < 3; i++)
		p->plane[i] = (struct plane){
			.pixels = p->memory + i * size,
			.stride = stride_of(d->c.output_width),
			.width = d->c.output_width,
			.height = d->c.output_height,
			.scale_x = (double)eighths / PLANES_EIGHTHS,
			.scale_y = (double)eighths / PLANES_EIGHTHS,
		};
	row = p->memory + 3 * size;
	for (unsigned y = 0; y < d->c.output_height; y++) {
		jpeg_read_scanlines(&d->c, &row, 1);
		split(p, y, row, cmyk ? 4 : 3);
	}
	return 0;
}

/* Does an end marker follow, in a file that was not decoded to its end? */
static bool has_end(struct decoder *d)
{
	static const uint8_t end[] = { 0xff, JPEG_EOI };

	return jpeg_input_complete(&d->c) || d->c.unread_marker == JPEG_EOI ||
	       memmem(d->c.src->next_input_byte, d->c.src->bytes_in_buffer, end,
		      sizeof(end));
}

static int decode_some(struct planes *p, struct decoder *d, unsigned eighths,
		       unsigned top, unsigned bottom)
{
	bool raw = d->c.jpeg_color_space == JCS_YCbCr ||
		   d->c.jpeg_color_space == JCS_GRAYSCALE;
	int r;

	d->c.scale_num = eighths;
	d->c.scale_denom = PLANES_EIGHTHS;
	top = top * eighths / PLANES_EIGHTHS;
	bottom = (bottom * eighths + PLANES_EIGHTHS - 1) / PLANES_EIGHTHS;
	r = raw ? decode_blocks(p, d, top, bottom)
		: decode_packed(p, d, eighths);
	if (r < 0)
		return r;
	if (d->c.output_scanline == d->c.output_height)
		jpeg_finish_decompress(&d->c);
	else if (!has_end(d))
		return -EBADMSG;
	return d->err.num_warnings ? -EBADMSG : 0;
}

int planes_decode(struct planes *p, unsigned eighths, unsigned top,
		  unsigned bottom)
{
	struct decoder *d = p->decoder;
	int r;

	if (setjmp(d->fail))
		return broken(p);
	r = decode_some(p, d, eighths, top, bottom);
	return r == -EBADMSG ? broken(p) : r;
}
