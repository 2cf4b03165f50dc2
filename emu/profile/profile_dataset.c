/* SPDX-License-Identifier: MIT */
#include "emu/profile/profile_dataset.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "emu/profile/profile.h"

/* 2^50 bytes: keeps sums over a dataset far from overflow. */
static const double MAX_FILE_BYTES = 1125899906842624.0;

static const struct conf_field quantile_fields[] = {
	{ CONF_KEY(q, CONF_DOUBLE, struct dataset_quantile), .required = true,
	  .min = 0, .max = 1 },
	{ CONF_KEY(bytes, CONF_DOUBLE, struct dataset_quantile),
	  .required = true, .min = 0, .max = MAX_FILE_BYTES },
	{ 0 },
};
static const struct conf_field fields[] = {
	PROFILE_HEAD(struct dataset_profile),
	{ CONF_KEY(format, CONF_STRING, struct dataset_profile),
	  .required = true },
	{ CONF_KEY(files, CONF_UINT, struct dataset_profile), .required = true,
	  .min = 1, .max = 1e12 },
	{ CONF_KEY(classes, CONF_UINT, struct dataset_profile), .min = 0,
	  .max = 1e9 },
	{ CONF_KEY(samples_per_file, CONF_UINT, struct dataset_profile),
	  .min = 1, .max = 1e12 },
	{ CONF_KEY(sizes, CONF_LIST, struct dataset_profile), .required = true,
	  .item = CONF_ROW, .item_size = sizeof(struct dataset_quantile),
	  .fields = quantile_fields },
	{ 0 },
};

static int check_dataset(const void *object, const struct conf_node *root,
			 const char *name, struct err *err)
{
	const struct dataset_profile *p = object;
	const struct dataset_quantile *v = p->sizes.items;
	const struct conf_node *sizes = conf_node_get(root, "sizes");
	size_t n = p->sizes.n;

	if (p->classes > p->files)
		return conf_node_error(conf_node_get(root, "classes"), name,
				       err, "more classes than files");
	if (n < 2)
		return conf_node_error(sizes, name, err,
				       "sizes needs at least two points");
	if (v[0].q > 0)
		return conf_node_error(sizes->items[0], name, err,
				       "the first quantile must be 0");
	for (size_t i = 1; i < n; i++)
		if (v[i].q <= v[i - 1].q || v[i].bytes < v[i - 1].bytes)
			return conf_node_error(sizes->items[i], name, err,
					       "quantiles must ascend, and "
					       "their sizes must not fall");
	if (v[n - 1].q < 1)
		return conf_node_error(sizes->items[n - 1], name, err,
				       "the last quantile must be 1");
	return 0;
}

PROFILE_FUNCTIONS(dataset, PROFILE_DATASET, check_dataset, 0,
		  .samples_per_file = 1)

/* The quantile function of the standard normal distribution, by bisection of
 * erfc: for a table of a few hundred. */
static double normal_quantile(double q)
{
	double lo = -9, hi = 9;

	while (hi - lo > 1e-9) {
		double mid = (lo + hi) / 2;

		if (erfc(-mid / M_SQRT2) / 2 < q)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

int dataset_profile_normal(uint64_t files, double mean, double sd,
			   struct dataset_profile *ret, struct err *err)
{
	/* straight lines between so many keep a deviation to 0.1 % */
	enum { STEPS = 400 };
	struct dataset_quantile *v = calloc(STEPS + 1, sizeof(*v));

	*ret = (struct dataset_profile){ .name = strdup("records"),
					 .source = strdup("size and size_sd"),
					 .format = strdup("random"),
					 .files = files,
					 .samples_per_file = 1,
					 .sizes = { v, v ? STEPS + 1 : 0 } };
	if (!v || !ret->name || !ret->source || !ret->format)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i <= STEPS; i++) {
		/* the ends are in the middle of the outer half steps */
		double q = fmin(fmax((double)i, .25), STEPS - .25) / STEPS;

		v[i].q = (double)i / STEPS;
		v[i].bytes = fmax(mean + sd * normal_quantile(q), 1);
	}
	return 0;
}

double dataset_profile_quantile(const struct dataset_profile *p, double q)
{
	const struct dataset_quantile *v = p->sizes.items;
	size_t lo = 0, hi = p->sizes.n - 1;

	if (q <= 0)
		return v[0].bytes;
	if (q >= 1)
		return v[hi].bytes;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (v[mid].q <= q)
			lo = mid;
		else
			hi = mid;
	}
	return v[lo].bytes + (v[hi].bytes - v[lo].bytes) * (q - v[lo].q) /
				     (v[hi].q - v[lo].q);
}

double dataset_profile_mean(const struct dataset_profile *p)
{
	const struct dataset_quantile *v = p->sizes.items;
	double sum = 0;

	for (size_t i = 1; i < p->sizes.n; i++)
		sum += (v[i].q - v[i - 1].q) * (v[i].bytes + v[i - 1].bytes) /
		       2;
	return sum;
}
