/* SPDX-License-Identifier: MIT */
/*
 * Uses libjpeg's own interface instead of TurboJPEG's, because a caller can
 * stop it early. Rows above the crop only pass the Huffman decoder (their
 * components are marked as not needed, which skips the DCT); rows below it are
 * not decoded at all. Measured with bench_prep on 512 images of ImageNet's
 * sizes: 834 us an image, against 978 us for decoding all of each.
 *
 * Which files are readable is Pillow's choice (JpegDecode.c): errors of libjpeg
 * make a file unreadable, its warnings do not, and a file that ends before its
 * last row is truncated, as libjpeg then asks for more. Entropy-coded data has
 * no markers but restarts, and its errors are warnings: so if the next marker
 * after the crop is the end, the rows below it need not be decoded to know.
 * Otherwise they are, without the DCT.
 */
#include "loader/prep/planes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "common/util.h"
#include "loader/prep/unusable.h"

/* A progressive file with thousands of scans is an attack. Source: the limit of
 * TurboJPEG's TJFLAG_LIMITSCANS */
enum { MAX_SCANS = 500 };

struct decoder {
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr err;
	struct jpeg_progress_mgr progress;
	struct jpeg_source_mgr source;
	jmp_buf fail;
};

static void fail_jpeg(j_common_ptr c)
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
		fail_jpeg(c);
}

/* --- the source: all of the file, and then no more ----------------------- */

static void do_nothing(j_decompress_ptr c)
{
	(void)c;
}

static boolean no_more(j_decompress_ptr c)
{
	(void)c;
	return FALSE;
}

static void skip(j_decompress_ptr c, long n)
{
	size_t step = MIN((size_t)MAX(n, 0), c->src->bytes_in_buffer);

	c->src->next_input_byte += step;
	c->src->bytes_in_buffer -= step;
}

/* --- life ---------------------------------------------------------------- */

static int new_decoder(void **ret)
{
	struct decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->c.err = jpeg_std_error(&d->err);
	d->err.error_exit = fail_jpeg;
	d->err.output_message = say_nothing;
	d->progress.progress_monitor = limit_scans;
	d->source = (struct jpeg_source_mgr){
		.init_source = do_nothing,
		.fill_input_buffer = no_more,
		.skip_input_data = skip,
		.resync_to_restart = jpeg_resync_to_restart,
		.term_source = do_nothing,
	};
	if (setjmp(d->fail)) { /* out of memory */
		free(d);
		return -ENOMEM;
	}
	jpeg_create_decompress(&d->c);
	d->c.progress = &d->progress;
	d->c.src = &d->source;
	*ret = d;
	return 0;
}

static void jpeg_fini(void *decoder)
{
	struct decoder *d = decoder;

	if (d)
		jpeg_destroy_decompress(&d->c);
	free(d);
}

/*
 * After an error in a header libjpeg-turbo 2.1.5 keeps the current marker and
 * takes it for the first of the next image: tests/unit/test_prep found good
 * images refused after a truncated one. So a decoder that failed is not reused.
 */
static int broken(void **decoder, int r)
{
	jpeg_fini(*decoder);
	*decoder = NULL;
	return r;
}

static int why(const struct decoder *d)
{
	switch (d->err.msg_code) {
	case JERR_OUT_OF_MEMORY: return -ENOMEM;
	case JERR_IMAGE_TOO_BIG: return -UNUSABLE_LARGE;
	case JERR_BAD_PRECISION:
	case JERR_SOF_UNSUPPORTED:
	case JERR_NOT_COMPILED: return -UNUSABLE_KIND;
	default: return -EBADMSG;
	}
}

/* --- the header ---------------------------------------------------------- */

/* Pillow has no mode for two components, and libjpeg no upsampling by fractions
 * for its scan lines. */
static bool is_decoded(const struct jpeg_decompress_struct *c)
{
	bool is = c->num_components == 1 || c->num_components == 3 ||
		  c->num_components == 4;

	for (int i = 0; i < c->num_components; i++) {
		const jpeg_component_info *one = &c->comp_info[i];

		is = is && c->max_h_samp_factor % one->h_samp_factor == 0 &&
		     c->max_v_samp_factor % one->v_samp_factor == 0;
	}
	return is;
}

static int jpeg_header(struct planes *p, void **decoder, const uint8_t *raw,
		       size_t n)
{
	struct decoder *d;

	if (!*decoder && new_decoder(decoder) < 0)
		return -ENOMEM;
	d = *decoder;
	if (setjmp(d->fail))
		return broken(decoder, why(d));
	jpeg_abort_decompress(&d->c);
	d->source.next_input_byte = raw;
	d->source.bytes_in_buffer = n;
	if (jpeg_read_header(&d->c, TRUE) == JPEG_SUSPENDED)
		return broken(decoder, -UNUSABLE_TRUNCATED);
	if (!is_decoded(&d->c))
		return broken(decoder, -UNUSABLE_KIND);
	p->width = d->c.image_width;
	p->height = d->c.image_height;
	return 0;
}

/* --- the pixels ---------------------------------------------------------- */

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
		to->stride = plane_stride(c->width_in_blocks * block);
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

/* The next row of blocks of each plane, number `k` from the top. False: the
 * file has ended. */
static bool read_blocks(struct planes *p, struct decoder *d, size_t k,
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
	return jpeg_read_raw_data(&d->c, data, (JDIMENSION)lines) > 0;
}

/* Is the next marker, after restarts, the end of the image? */
static bool end_follows(struct decoder *d)
{
	const uint8_t *at = d->source.next_input_byte;
	const uint8_t *end = at + d->source.bytes_in_buffer;
	int marker = d->c.unread_marker;

	if (jpeg_input_complete(&d->c))
		return true;
	while (marker == 0 ||
	       (marker >= JPEG_RST0 && marker <= JPEG_RST0 + 7)) {
		at = memchr(at, 0xff, (size_t)(end - at));
		if (!at || end - at < 2)
			return false;
		marker = at[1] == 0xff ? 0 : at[1];
		at += at[1] == 0xff ? 1 : 2;
	}
	return marker == JPEG_EOI;
}

/* Rows top..bottom - 1 of the output, and those that share blocks with them. */
static int decode_blocks(struct planes *p, struct decoder *d, unsigned top,
			 unsigned bottom)
{
	unsigned lines, k, end = d->c.output_height;

	if (lay_out_blocks(p, d) < 0)
		return -ENOMEM;
	lines = (unsigned)(d->c.max_v_samp_factor * d->c.min_DCT_scaled_size);
	bottom = MIN(bottom, end);
	for (k = 0; k * lines < bottom; k++)
		if (!read_blocks(p, d, k, (k + 1) * lines > top))
			return -UNUSABLE_TRUNCATED;
	if (k * lines >= end || end_follows(d))
		return 0;
	for (; k * lines < end; k++)
		if (!read_blocks(p, d, k, false))
			return -UNUSABLE_TRUNCATED;
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
	unsigned n = (unsigned)d->c.output_components;
	uint8_t *row;

	if (planes_lay_out(p, 3, eighths, (size_t)d->c.output_width * n, &row) <
	    0)
		return -ENOMEM;
	for (unsigned y = 0; y < d->c.output_height; y++) {
		if (!jpeg_read_scanlines(&d->c, &row, 1))
			return -UNUSABLE_TRUNCATED;
		split(p, y, row, n);
	}
	return 0;
}

static int decode_some(struct planes *p, struct decoder *d, unsigned eighths,
		       unsigned top, unsigned bottom)
{
	bool raw = d->c.jpeg_color_space == JCS_YCbCr ||
		   d->c.jpeg_color_space == JCS_GRAYSCALE;
	int r;

	d->c.scale_num = eighths;
	d->c.scale_denom = PLANES_EIGHTHS;
	d->c.raw_data_out = raw;
	if (!raw)
		d->c.out_color_space = d->c.num_components == 4 ? JCS_CMYK
								: JCS_RGB;
	if (!jpeg_start_decompress(&d->c))
		return -UNUSABLE_TRUNCATED;
	top = top * eighths / PLANES_EIGHTHS;
	bottom = (bottom * eighths + PLANES_EIGHTHS - 1) / PLANES_EIGHTHS;
	r = raw ? decode_blocks(p, d, top, bottom)
		: decode_packed(p, d, eighths);
	/* its last rows are there, so an end marker need not be */
	if (r == 0 && d->c.output_scanline >= d->c.output_height)
		jpeg_finish_decompress(&d->c);
	return r;
}

static int jpeg_decode(struct planes *p, void **decoder, unsigned eighths,
		       unsigned top, unsigned bottom)
{
	struct decoder *d = *decoder;
	int r;

	if (setjmp(d->fail))
		return broken(decoder, why(d));
	r = decode_some(p, d, eighths, top, bottom);
	return r < 0 ? broken(decoder, r) : 0;
}

const struct image_ops image_jpeg = {
	.magic = "\xff\xd8\xff",
	.n_magic = 3,
	.header = jpeg_header,
	.decode = jpeg_decode,
	.fini = jpeg_fini,
};
