/* SPDX-License-Identifier: MIT */
/*
 * The output of --prep decode for an image, for comparison with other decoders:
 *
 *	pixels FILE SIDE fp32|uint8 SAMPLE...
 *
 * For each sample a line "x y width height mirror side" (the crop of its random
 * stream, in pixels of the image), followed by the bytes of the transformed
 * image, channel by channel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "loader/prep/resample.h"
#include "loader/prep/planes.h"
#include "loader/prep/prep.h"

extern const struct prep_ops prep_decode;

enum { MOST = 1 << 24 };

static int prepare(void *state, struct planes *planes,
		   const struct prep_config *c, const void *raw, size_t n,
		   uint64_t sample)
{
	_cleanup_free_ void *out =
		util_aligned_alloc(64, prep_image_bytes(c->side, c->output));
	struct rng rng = rng_stream(1, "prep", sample), again = rng;
	struct crop crop;

	if (!out || planes_header(planes, raw, n) < 0 ||
	    prep_decode.run(state, raw, n, &rng, out) < 0)
		return -1;
	crop = crop_random(&again, planes->width, planes->height, .08);
	printf("%u %u %u %u %d %u\n", crop.x, crop.y, crop.width, crop.height,
	       rng_below(&again, 2) != 0, c->side);
	return fwrite(out, prep_image_bytes(c->side, c->output), 1, stdout) == 1
		       ? 0
		       : -1;
}

int main(int argc, char **argv)
{
	_cleanup_free_ void *raw = malloc(MOST), *state = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	struct planes planes = { 0 };
	struct prep_config c = { 0 };
	struct err err = { 0 };
	size_t n;
	int r;

	if (argc < 5)
		return 2;
	f = fopen(argv[1], "re");
	c.side = (uint32_t)atoi(argv[2]);
	c.output = strcmp(argv[3], "uint8") ? PREP_FP32 : PREP_UINT8;
	state = calloc(1, prep_decode.plugin.state_size);
	if (!f || !raw || !state)
		return 1;
	n = fread(raw, 1, MOST, f);
	r = prep_decode.init(state, &c, &err);
	for (int i = 4; r == 0 && i < argc; i++)
		r = prepare(state, &planes, &c, raw, n,
			    (uint64_t)atoll(argv[i]));
	prep_decode.fini(state);
	planes_fini(&planes);
	return r < 0;
}
