/* SPDX-License-Identifier: MIT */
#include "cachesim/cachesim.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/log.h"
#include "common/rng.h"
#include "common/text/weights.h"
#include "common/util.h"
#include "common/word.h"
#include "emu/profile/profile_dataset.h"
#include "fs/server/object.h"
#include "fs/source/listing.h"
#include "fs/source/source.h"

/* A file to be added to the trace. */
struct file {
	uint64_t bytes;
	uint32_t node;	 /* upper half of its objects' keys */
	uint32_t before; /* 1 + the earlier one that it is; 0: none */
};

static int add_file(struct sim_trace *t, const struct file *f)
{
	uint64_t n = (f->bytes + OBJECT_EXTENT - 1) / OBJECT_EXTENT;
	int r = 0;

	for (uint64_t x = 0; r == 0 && x < n; x++) {
		struct cache_object o = {
			.key = object_key(f->node, (uint32_t)x),
			.bytes = MIN(f->bytes - x * OBJECT_EXTENT,
				     OBJECT_EXTENT),
			.file_bytes = f->bytes
		};

		r = sim_trace_add_object(t, &o);
	}
	return r;
}

/* All files, in the order of the array. */
static int add_files(const struct file *files, size_t n, struct sim_trace *t,
		     struct sim_dataset *ret)
{
	int r = 0;

	*ret = (struct sim_dataset){ .trace = t, .n_files = n };
	ret->first = malloc((n + 1) * sizeof(*ret->first));
	ret->end = malloc((n + 1) * sizeof(*ret->end));
	t->file_bytes = malloc((n + 1) * sizeof(*t->file_bytes));
	if (!ret->first || !ret->end || !t->file_bytes)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < n; i++) {
		size_t same = files[i].before ? files[i].before - 1 : i;

		t->file_bytes[i] = files[i].bytes;
		t->total_bytes += files[i].bytes;
		ret->first[i] = (uint32_t)t->n_objects;
		if (same == i)
			r = add_file(t, &files[i]);
		ret->end[i] = (uint32_t)t->n_objects;
		ret->first[i] = ret->first[same];
		ret->end[i] = ret->end[same];
	}
	t->n_files = n;
	t->max_object_bytes = OBJECT_EXTENT;
	qsort(t->file_bytes, n, sizeof(*t->file_bytes), util_compare_u64);
	return r;
}

void sim_dataset_fini(struct sim_dataset *d)
{
	free(d->first);
	free(d->end);
	free(d->sum);
	*d = (struct sim_dataset){ 0 };
}

/*
 * File i has the size at the quantile of a rank drawn without replacement, so
 * that any number of files has the distribution exactly; the same draw as
 * gpemu-data make's (stream "data.sizes").
 */
static int sized_files(const struct dataset_profile *p, uint64_t n,
		       uint64_t seed, struct file **ret)
{
	_cleanup_free_ struct file *files = calloc(n, sizeof(*files));
	_cleanup_free_ uint32_t *rank = calloc(n, sizeof(*rank));
	struct rng rng = rng_stream(seed, "data.sizes", 0);

	if (!files || !rank)
		return -ENOMEM;
	rng_permutation_u32(&rng, rank, n);
	for (uint64_t i = 0; i < n; i++) {
		double q = (rank[i] + .5) / (double)n;
		double bytes = dataset_profile_quantile(p, q);

		files[i].bytes = (uint64_t)llround(bytes);
		files[i].node = (uint32_t)i;
	}
	*ret = TAKE_PTR(files);
	return 0;
}

int sim_dataset_profile(const char *name, uint64_t files, uint64_t seed,
			struct sim_trace *t, struct sim_dataset *ret,
			struct err *err)
{
	struct dataset_profile p = { 0 };
	_cleanup_free_ struct file *v = NULL;
	int r = dataset_profile_load(name, &p, err);

	if (r == 0) {
		files = files ? files : p.files;
		r = files > UINT32_MAX ? -E2BIG
				       : sized_files(&p, files, seed, &v);
	}
	dataset_profile_free(&p);
	if (r == 0)
		r = add_files(v, files, t, ret);
	return r < 0 ? err_set(err, r, "dataset %s, %" PRIu64 " files: %s",
			       name, files, strerror(-r))
		     : 0;
}

/* --- a directory --------------------------------------------------------- */

/* The files of the tree as loaders number them, one for each name. */
static int list_files(const struct tree *tree, struct file **ret, size_t *ret_n,
		      size_t *ret_aside)
{
	_cleanup_free_ uint32_t *node = NULL;
	_cleanup_free_ uint32_t *seen = calloc(tree->n_nodes, sizeof(*seen));
	struct file *files;
	size_t n = 0;
	int r = seen ? listing_make(tree, &node, &n, ret_aside) : -ENOMEM;

	files = r == 0 ? calloc(n + 1, sizeof(*files)) : NULL;
	if (!files)
		return r < 0 ? r : -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint32_t f = tree_file(tree, node[i]);

		files[i] = (struct file){ .bytes = tree->nodes[f].bytes,
					  .node = f,
					  .before = seen[f] };
		if (!files[i].before)
			seen[f] = (uint32_t)i + 1;
	}
	*ret = files;
	*ret_n = n;
	return 0;
}

static int set_labels(const struct tree *tree, struct sim_trace *t)
{
	t->label = malloc(tree->n_nodes * sizeof(*t->label));
	if (!t->label)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->n_nodes; i++)
		t->label[i] = tree_label(tree, i);
	t->n_labels = tree_labels(tree);
	return 0;
}

static int from_tree(const struct tree *tree, struct sim_trace *t,
		     struct sim_dataset *ret)
{
	_cleanup_free_ struct file *files = NULL;
	size_t n = 0, aside = 0;
	int r = list_files(tree, &files, &n, &aside);

	if (r == 0)
		r = add_files(files, n, t, ret);
	if (r == 0)
		r = set_labels(tree, t);
	t->n_aside = aside;
	t->n_links = tree_links_left(&tree->links);
	if (r == 0 && aside)
		log_warn("files that are not samples, skipped: %zu", aside);
	if (r == 0 && t->n_links)
		log_warn("dangling links and loops of links, skipped: %" PRIu64,
			 t->n_links);
	if (r == 0) {
		/* sizes in percent include hidden files, as in a mount */
		free(t->file_bytes);
		t->file_bytes = tree_sizes(tree);
		t->n_files = tree->n_files;
		t->total_bytes = tree->file_bytes;
		r = t->file_bytes ? 0 : -ENOMEM;
	}
	return r;
}

int sim_dataset_dir(const char *path, struct sim_trace *t,
		    struct sim_dataset *ret, struct err *err)
{
	const struct plugin *p =
		plugin_find(source_table, "source", "dir", err);
	const struct source_ops *ops =
		container_of(p, const struct source_ops, plugin);
	struct tree tree = { 0 };
	int r = p ? source_list(ops, path, &tree, err) : -EINVAL;

	if (r == 0)
		r = from_tree(&tree, t, ret);
	tree_fini(&tree);
	if (r == 0 && !t->n_objects)
		r = err_set(err, -EINVAL, "%s: contains no files", path);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

/* --- importance ---------------------------------------------------------- */

/* The upper half of the keys of the file's objects; false: it has none. */
static bool node_of(const struct sim_dataset *d, size_t i, uint32_t *ret)
{
	if (d->first[i] == d->end[i])
		return false;
	*ret = (uint32_t)(d->trace->objects[d->first[i]].key >> 32);
	return true;
}

/* For policies, over the largest. */
static int set_importance(const struct sim_dataset *d, const double *weight)
{
	struct importance *of = &d->trace->importance;
	uint32_t node, last = 0;
	double most = 0;

	for (size_t i = 0; i < d->n_files; i++) {
		most = MAX(most, weight[i]);
		if (node_of(d, i, &node))
			last = MAX(last, node);
	}
	if (importance_init(of, last + 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < d->n_files; i++)
		if (node_of(d, i, &node))
			of->v[node] = (float)(weight[i] / most);
	return 0;
}

int sim_dataset_weigh(struct sim_dataset *d, const char *file, struct err *err)
{
	double *weight = calloc(d->n_files, sizeof(*weight));
	double sum = 0;
	int r = weight ? weights_read(file, weight, d->n_files, "file", err)
		       : -ENOMEM;

	d->sum = weight;
	for (size_t i = 0; r == 0 && i < d->n_files; i++)
		sum += weight[i];
	if (r == 0 && !(sum > 0 && sum < 1e300))
		return err_set(err, -EINVAL,
			       "%s: the sum of the importance must be more "
			       "than 0 and less than 1e300",
			       file);
	if (r == 0)
		r = set_importance(d, weight);
	for (size_t i = 1; r == 0 && i < d->n_files; i++)
		weight[i] += weight[i - 1];
	return r < 0 ? err_set(err, r, "%s: %s", file, strerror(-r)) : 0;
}

/* --- epochs -------------------------------------------------------------- */

static void fill_sequential(const struct sim_dataset *d, struct rng *rng,
			    uint32_t *v)
{
	(void)rng;
	for (size_t i = 0; i < d->n_files; i++)
		v[i] = (uint32_t)i;
}

static void fill_shuffle(const struct sim_dataset *d, struct rng *rng,
			 uint32_t *v)
{
	rng_permutation_u32(rng, v, d->n_files);
}

/* The first file whose sum is more. */
static uint32_t find_sum(const struct sim_dataset *d, double u)
{
	size_t from = 0, to = d->n_files - 1;

	while (from < to) {
		size_t half = from + (to - from) / 2;

		if (d->sum[half] > u)
			to = half;
		else
			from = half + 1;
	}
	return (uint32_t)from;
}

static void fill_replacement(const struct sim_dataset *d, struct rng *rng,
			     uint32_t *v)
{
	size_t n = d->n_files;

	for (size_t i = 0; i < n; i++)
		v[i] = d->sum ? find_sum(d, rng_double(rng) * d->sum[n - 1])
			      : (uint32_t)rng_below(rng, n);
}

static int one_epoch(const struct sim_dataset *d, const uint32_t *order)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n_files; i++) {
		uint32_t file = order[i];

		for (uint32_t o = d->first[file]; r == 0 && o < d->end[file];
		     o++)
			r = sim_trace_add_request(d->trace, o);
	}
	return r == 0 ? sim_trace_end_epoch(d->trace) : r;
}

int sim_dataset_epochs(const struct sim_dataset *d, const char *order,
		       uint64_t epochs, uint64_t seed, struct err *err)
{
	static const char *const orders[] = { "shuffle", "sequential",
					      "replacement" };
	static const char *const streams[] = { "order", "order",
					       "order.replacement" };
	static void (*const fills[])(const struct sim_dataset *, struct rng *,
				     uint32_t *) = { fill_shuffle,
						     fill_sequential,
						     fill_replacement };
	_cleanup_free_ uint32_t *v = malloc((d->n_files + 1) * sizeof(*v));
	int k = WORD_FIND(orders, "order", order, err), r = v ? 0 : -ENOMEM;

	if (k < 0)
		return k;
	for (uint64_t e = 0; r == 0 && e < epochs; e++) {
		struct rng rng = rng_stream(seed, streams[k], e);

		fills[k](d, &rng, v);
		r = one_epoch(d, v);
	}
	return r < 0 ? err_set(err, r, "%" PRIu64 " epochs of %zu files: %s",
			       epochs, d->n_files, strerror(-r))
		     : 0;
}
