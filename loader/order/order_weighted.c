/* SPDX-License-Identifier: MIT */
/*
 * Draws with replacement, each sample with a probability in proportion to its
 * weight: PyTorch's WeightedRandomSampler with as many draws as samples. An
 * epoch has some samples several times and others not at all; of equal weights
 * it has 1 - (1 - 1/n)^n of them, 63.2 %.
 *
 * Without a file, each label has the same share of an epoch: a sample weighs 1
 * over the number of samples of its label, the usual remedy for unequal
 * classes. With a file, line i is the weight of sample i in the order of the
 * dataset's list, as numpy.savetxt writes it; with by=label that of label i.
 *
 * The alias method draws in constant time: slot i holds sample i up to `keep`
 * of its width, and the rest is of another sample.
 *
 *	weights 1 2 3	|0##222|111111|222222|	# is 1; all slots are as wide
 *
 * Source: Vose, "A Linear Algorithm for Generating Random Numbers with a Given
 * Distribution", IEEE TSE 17(9), 1991.
 */
#include "loader/order/order.h"

#include <errno.h>
#include <stdio.h>

#include "common/conf/conf.h"
#include "common/rng.h"
#include "common/text/weights.h"
#include "common/util.h"
#include "common/word.h"

struct options {
	char *by;
	char *file; /* "": none */
};

enum by { BY_LABEL, BY_SAMPLE };
static const char *const bys[] = {
	[BY_LABEL] = "label", [BY_SAMPLE] = "sample"
};

static int check_by(const void *object, struct err *err)
{
	return MIN(WORD_FIND(bys, "value of by", *(char *const *)object, err),
		   0);
}

static const struct conf_field fields[] = {
	{ CONF_KEY(by, CONF_STRING, struct options), .check = check_by,
	  .arg = "label|sample",
	  .help = "weights per label or per sample; without a file all are "
		  "equal" },
	{ CONF_KEY(file, CONF_STRING, struct options), .arg = "FILE",
	  .help = "the weights, one per line, starting with label or sample "
		  "0" },
	{ 0 },
};

static const struct options defaults = { .by = (char *)"label",
					 .file = (char *)"" };

static const char *file_of(const void *options)
{
	const struct options *o = options ? options : &defaults;

	return *o->file ? o->file : NULL;
}

/* --- weights -------------------------------------------------------------- */

/* A sample weighs what the file says of its label; without a file, all labels
 * have the same share. */
static int weigh_labels(const struct order_input *in, const char *file,
			double *ret, struct err *err)
{
	uint32_t n = in->label ? in->n_labels : 1;
	_cleanup_free_ double *weight = calloc(n, sizeof(*weight));
	_cleanup_free_ uint64_t *count = calloc(n, sizeof(*count));
	int r = 0;

	if (!weight || !count)
		return -ENOMEM;
	if (file)
		r = weights_read(file, weight, n, bys[BY_LABEL], err);
	for (size_t i = 0; i < in->n; i++)
		count[in->label ? in->label[i] : 0]++;
	for (size_t i = 0; i < in->n; i++) {
		uint32_t label = in->label ? in->label[i] : 0;

		/* a file says what a sample of a label weighs, as a list of
		 * weights does that is made from it */
		ret[i] = file ? weight[label] : 1. / (double)count[label];
	}
	return r;
}

static int weigh(const struct order_input *in, double *ret, struct err *err)
{
	const struct options *o = in->options ? in->options : &defaults;
	const char *file = file_of(o);

	if (WORD_FIND(bys, "value of by", o->by, NULL) == BY_LABEL)
		return weigh_labels(in, file, ret, err);
	for (size_t i = 0; i < in->n; i++)
		ret[i] = 1;
	return file ? weights_read(file, ret, in->n, bys[BY_SAMPLE], err) : 0;
}

/* --- drawing -------------------------------------------------------------- */

/* `keep` has the weights, of mean 1, and gets what each slot keeps. Slots under
 * 1 are filled by those above it. */
static int fill_slots(double *keep, uint32_t *alias, size_t n)
{
	_cleanup_free_ uint32_t *turn = calloc(n, sizeof(*turn));
	size_t small = 0, large = n;

	if (!turn)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		alias[i] = (uint32_t)i;
		turn[keep[i] < 1 ? small++ : --large] = (uint32_t)i;
	}
	/* turn[0..small) are under 1, turn[large..n) are not */
	for (size_t i = 0; i < small && large < n; i++) {
		uint32_t rich = turn[large];

		alias[turn[i]] = rich;
		keep[rich] -= 1 - keep[turn[i]];
		if (keep[rich] >= 1)
			continue;
		large++;
		turn[small++] = rich;
	}
	/* the rest differs from 1 by rounding */
	for (; large < n; large++)
		keep[turn[large]] = 1;
	return 0;
}

static int fill_weighted(const struct order_input *in, uint32_t *ret,
			 struct err *err)
{
	const struct options *o = in->options ? in->options : &defaults;
	struct rng rng = rng_stream(in->seed, "order", in->epoch);
	_cleanup_free_ double *keep = calloc(in->n, sizeof(*keep));
	_cleanup_free_ uint32_t *alias = calloc(in->n, sizeof(*alias));
	double sum = 0;
	int r = keep && alias ? weigh(in, keep, err) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < in->n; i++)
		sum += keep[i];
	if (r == 0 && !(sum > 0 && sum < 1e300))
		return err_set(err, -EINVAL,
			       "%s: the sum of the weights must be more than 0 "
			       "and less than 1e300",
			       o->file);
	for (size_t i = 0; r == 0 && i < in->n; i++)
		keep[i] *= (double)in->n / sum;
	if (r == 0)
		r = fill_slots(keep, alias, in->n);
	for (size_t i = 0; r == 0 && i < in->n; i++) {
		uint32_t slot = (uint32_t)rng_below(&rng, in->n);

		ret[i] = rng_double(&rng) < keep[slot] ? slot : alias[slot];
	}
	return r < 0 ? err_set(err, r, "out of memory for an order") : 0;
}

const struct order_ops order_weighted = {
	.plugin = { .name = "weighted",
		    .summary = "draws with replacement, by the weights of "
			       "labels or samples",
		    PLUGIN_OPTIONS(fields, defaults) },
	.repeats = true,
	.file_of = file_of,
	.weigh = weigh,
	.fill = fill_weighted,
};
