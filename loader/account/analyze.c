/* SPDX-License-Identifier: MIT */
#include "loader/account/analyze.h"

#include <errno.h>
#include <fcntl.h>

#include "common/units.h"
#include "common/util.h"

extern const struct prep_ops prep_none;

static const char *const bottleneck_names[] = {
	[BOUND_BY_GPU] = "gpu",
	[BOUND_BY_PREP] = "prep",
	[BOUND_BY_FETCH] = "fetch",
};

/* --- measuring ---------------------------------------------------------- */

/* Common to all runs. */
struct runs {
	const struct pipeline_config *c;
	const struct dataset_mount *m;
	const uint32_t *order;
	uint64_t n;
	const atomic_bool *stop;
	struct err *err;
};

/* Samples per emulated second of a pipeline whose batches are discarded. */
static int rate_of(const struct runs *runs, const struct prep_ops *prep,
		   double *ret)
{
	struct pipeline_config config = *runs->c, *c = &config;
	struct err *err = runs->err;
	struct pipeline *p = NULL;
	uint64_t start, done = 0;
	struct delivery d;
	int r;

	c->prep = prep;
	r = pipeline_new(c, &p, err);
	if (r < 0)
		return r;
	start = tick_now(c->tick);
	pipeline_begin(p, 0, runs->order, runs->n);
	while (!atomic_load(runs->stop) &&
	       (r = pipeline_next(p, tick_now(c->tick), &d, err)) == 0) {
		done += d.n - d.n_failed;
		pipeline_release(p, &d);
	}
	*ret = (double)done * (double)NS_PER_S /
	       (double)(tick_now(c->tick) - start);
	pipeline_free(p);
	if (atomic_load(runs->stop))
		return -ECANCELED;
	if (r == -ENODATA && done == 0)
		return err_set(err, -EIO, "no sample could be read");
	return r == -ENODATA ? 0 : r;
}

/* Drop the samples' pages from the page cache; dirty or mapped ones stay. */
static void drop_pages(const struct runs *runs)
{
	const struct dataset *d = runs->c->data;

	for (uint64_t i = 0; i < runs->n; i++) {
		uint32_t sample = runs->order[i];
		_cleanup_close_ int fd = -1;
		struct stat st;

		if (d->container) {
			posix_fadvise(d->container_fd[d->container[sample]],
				      (off_t)d->offset[sample],
				      (off_t)d->size[sample],
				      POSIX_FADV_DONTNEED);
			continue;
		}
		fd = util_open_file(d->dirfd, dataset_path(d, sample), 0, &st);
		if (fd >= 0)
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
}

/* From here on all reads come from storage. */
static int make_cold(const struct runs *runs)
{
	if (runs->m->dir)
		return mount_command(runs->m, "drop-cache", runs->err);
	drop_pages(runs);
	return 0;
}

/* From here on all reads come from memory. */
static int make_warm(const struct runs *runs)
{
	double rate;

	if (runs->m->dir)
		return mount_command(runs->m, "set storage ideal", runs->err);
	return rate_of(runs, &prep_none, &rate);
}

/* Restore the storage, with an empty cache. */
static int restore(const struct dataset_mount *m, const char *storage,
		   struct err *err)
{
	_cleanup_free_ char *set = NULL;
	int r;

	if (!m->dir)
		return 0;
	set = util_text("set storage %s", storage);
	if (!set)
		return err_set(err, -ENOMEM, "out of memory");
	r = mount_command(m, set, err);
	return r < 0 ? r : mount_command(m, "drop-cache", err);
}

static int measure(const struct runs *runs, struct analysis *ret)
{
	int r = make_cold(runs);

	if (r == 0)
		r = rate_of(runs, &prep_none, &ret->f0);
	if (r == 0)
		r = make_warm(runs);
	if (r == 0)
		r = rate_of(runs, &prep_none, &ret->f1);
	if (r == 0)
		r = rate_of(runs, runs->c->prep, &ret->p);
	return r;
}

int analyze(const struct pipeline_config *c, const struct dataset_mount *m,
	    const uint32_t *order, uint64_t n, double g,
	    const atomic_bool *stop, struct analysis *ret, struct err *err)
{
	const struct runs runs = { c, m, order, n, stop, err };
	json_auto_t *stats = mount_stats(m);
	const char *storage =
		json_string_value(json_object_get(stats, "storage"));
	struct err second = { 0 };
	int r, r2;

	*ret = (struct analysis){ .g = g,
				  .serial = c->engine->whole_batches,
				  .on_mount = m->dir,
				  .samples = n };
	if (m->dir && !storage)
		return err_set(err, -EIO,
			       "%s/stats lacks the name of the storage",
			       m->dir);
	r = measure(&runs, ret);
	r2 = restore(m, storage, r < 0 ? &second : err);
	return r < 0 ? r : r2;
}

/* --- predicting --------------------------------------------------------- */

/* Samples per emulated second when a fraction 0 <= c <= 1 of the reads hits. */
static double analysis_rate(const struct analysis *a, double c,
			    enum bottleneck *ret)
{
	double miss = (1 - c) / a->f0;
	double read = a->serial ? c / a->f1 + miss : MAX(miss, 1 / a->f1);
	/* a worker's time per sample, besides reading */
	double prep = MAX(1 / a->p - 1 / a->f1, 0);
	double load = a->serial ? read + prep : MAX(read, 1 / a->p);
	bool fetches = a->serial ? read > prep : read > 1 / a->p;

	if (load <= 1 / a->g)
		*ret = BOUND_BY_GPU;
	else
		*ret = fetches ? BOUND_BY_FETCH : BOUND_BY_PREP;
	return 1 / MAX(load, 1 / a->g);
}

/* The smallest c at which storage is not the bottleneck; > 1: none. */
static double analysis_enough_cache(const struct analysis *a)
{
	enum bottleneck b;
	double at_best = analysis_rate(a, 1, &b);

	/* 0.1 % steps: finer than any choice of a cache size */
	for (int i = 0; i <= 1000; i++)
		if (analysis_rate(a, i / 1e3, &b) >= at_best * .999 &&
		    b != BOUND_BY_FETCH)
			return i / 1e3;
	return 2;
}

/* --- reporting ---------------------------------------------------------- */

/* The prediction for an epoch, given its hits, beside its measured time. */
static json_t *compare_epoch(const struct analysis *a,
			     const struct train_account *epoch)
{
	double reads = (double)(epoch->hits + epoch->misses);
	double c = reads > 0 ? (double)epoch->hits / reads : 0;
	enum bottleneck b;
	double rate = analysis_rate(a, c, &b);
	double got = account_samples_per_s(epoch);

	return json_pack("{s:I, s:f, s:f, s:f, s:f, s:s}", "epoch",
			 (json_int_t)epoch->epoch, "cached", c, "predicted_s",
			 (double)epoch->samples / rate, "seconds",
			 (double)epoch->elapsed_ns / (double)NS_PER_S, "error",
			 got > 0 ? got / rate - 1 : 0, "bottleneck",
			 bottleneck_names[b]);
}

json_t *analysis_json(const struct analysis *a,
		      struct train_account *const *epoch, size_t n)
{
	json_t *epochs = json_array();
	json_t *predicted = json_array();
	double enough = analysis_enough_cache(a);

	for (int i = 0; i <= 10; i++) {
		enum bottleneck b;
		double rate = analysis_rate(a, i / 10., &b);

		json_array_append_new(predicted,
				      json_pack("{s:f, s:f, s:s}", "cached",
						i / 10., "samples_per_s", rate,
						"bottleneck",
						bottleneck_names[b]));
	}
	for (size_t i = 0; i < n; i++)
		if (epoch[i]->on_mount)
			json_array_append_new(epochs,
					      compare_epoch(a, epoch[i]));
	return json_pack("{s:f, s:f, s:f, s:f, s:b, s:b, s:I, s:o, s:o, s:o}",
			 "g", a->g, "p", a->p, "f0", a->f0, "f1", a->f1,
			 "serial", a->serial, "on_mount", a->on_mount,
			 "samples", (json_int_t)a->samples, "enough_cache",
			 enough <= 1 ? json_real(enough) : json_null(),
			 "predicted", predicted, "epochs", epochs);
}

void analysis_print(const struct analysis *a, FILE *f)
{
	double enough = analysis_enough_cache(a);
	enum bottleneck b;

	fprintf(f,
		"Rates in samples/s over %llu samples: GPU %.1f (G); "
		"transforms %.1f (P);\nreads %.1f from storage (F0), %.1f from "
		"memory (F1).\n",
		(unsigned long long)a->samples, a->g, a->p, a->f0, a->f1);
	fprintf(f, "%8s %12s  %s\n", "cached", "samples/s", "bound by");
	for (int i = 0; i <= 10; i++) {
		double rate = analysis_rate(a, i / 10., &b);

		fprintf(f, "%7d%% %12.1f  %s\n", i * 10, rate,
			bottleneck_names[b]);
	}
	if (enough > 1)
		fprintf(f, "Storage bounds the run at any cache size.\n");
	else
		fprintf(f,
			"With %.1f %% of the reads cached, storage no longer "
			"bounds the run.\n",
			100 * enough);
}
