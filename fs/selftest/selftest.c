/* SPDX-License-Identifier: MIT */
/*
 * The profile gives the lines. A mount of the ideal device measures the mount's
 * own latency and highest rate, which determine the scales. Then each line is
 * measured on a mount of the profile, and compared in emulated units.
 */
#include "fs/selftest/selftest.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/selftest/selftest_line.h"
#include "fs/selftest/selftest_mount.h"

/*
 * 1 TB. Files are large, to spread random reads; one a folder, since the kernel
 * spends some 5 us on each entry of a listing; enough that each lookup has a
 * new name.
 */
#define DEFAULT_SOURCE "synth:unet3d,files=8192,classes=8192,content=random"

static const char IDEAL[] = "ideal";
enum {
	BASE_READS = 2000,
	/* load on the host delays a mount for some seconds; arbitrary: this
	 * many were enough so far */
	MAX_TRIES = 3,
};

struct test {
	struct selftest_config c;
	struct storage_profile *profile;
	struct selftest_mounter mounter;
	struct client_tree tree;
	struct line_base base;
	struct line *lines;
	size_t n_lines;
	FILE *out;
};

/* After a signal the client's calls fail: report the signal instead. */
static int measure(struct test *t, struct client_run *run, struct err *err)
{
	struct err why = { 0 };
	int r = client_measure(&t->tree, run, &why);

	if (selftest_interrupted(&t->mounter))
		return err_set(err, -EINTR, "interrupted by a signal");
	return r < 0 ? err_set(err, r, "%s", why.text) : 0;
}

/* The highest rate of the mount itself, for a line's clients. */
static int measure_ceiling(struct test *t, struct line *l, struct err *err)
{
	struct client_run run = { .load = l->load,
				  .n = l->kind == LINE_RATE ? 1000000 : 20000,
				  .limit_ns = NS_PER_S,
				  .seed = t->c.seed };
	int r = measure(t, &run, err);

	l->ceiling = run.rate;
	client_run_fini(&run);
	if (r == 0 && l->ceiling <= 0)
		return err_set(err, -EIO, "no read completed within a second");
	return r;
}

static bool has_files_for(const struct test *t, struct line *l)
{
	if (l->load.op != STORAGE_READ ||
	    client_n_files_of(&t->tree, l->load.bytes))
		return true;
	l->verdict = LINE_SKIPPED;
	l->why = "no file is long enough";
	return false;
}

static int measure_base(struct test *t, struct err *err)
{
	struct client_run run = {
		.load = { .op = STORAGE_READ, .bytes = 4 * KIB, .streams = 1 },
		.n = BASE_READS,
		.limit_ns = 5 * NS_PER_S,
		.seed = t->c.seed
	};
	int r = client_scan(t->mounter.mountpoint, &t->tree, err);

	if (r < 0)
		return r;
	t->base.n_files = t->tree.n_files;
	if (!client_n_files_of(&t->tree, run.load.bytes))
		return err_set(err, -EINVAL,
			       "%s: contains no file of 4 KiB or more",
			       t->c.source);
	r = measure(t, &run, err);
	t->base.read_ns = model_quantile(run.ns, run.n_done, .5);
	client_run_fini(&run);
	return r;
}

/* Plan all lines, on a mount of the ideal device. */
static int plan(struct test *t, struct err *err)
{
	int r = selftest_mount_fresh(&t->mounter, IDEAL, 1, err);

	if (r == 0)
		r = measure_base(t, err);
	for (size_t i = 0; r == 0 && i < t->n_lines; i++) {
		struct line *l = &t->lines[i];
		bool rate = l->kind == LINE_RATE || l->kind == LINE_STREAM;

		if (!has_files_for(t, l))
			continue;
		r = line_streams(l, t->profile, t->c.seed + 1);
		if (r == 0 && rate)
			r = measure_ceiling(t, l, err);
		if (r == 0)
			r = line_plan(l, t->profile, t->c.seed + 1,
				      t->c.time_scale);
		if (r == 0 && rate && l->want > l->ceiling / 2)
			log_warn("at a time scale of %g the device is faster "
				 "than the mount can follow (%.0f, the mount "
				 "alone %.0f); raise --time-scale",
				 l->time_scale, l->want, l->ceiling);
	}
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

/* Reuses the previous line's mount, except for lookups, whose names the kernel
 * has cached, for lines that need a fresh device, and for a second try. */
static int mount_for(struct test *t, const struct line *l, struct err *err)
{
	const struct selftest_mounter *m = &t->mounter;

	if (m->storage == t->c.storage && m->time_scale == l->time_scale &&
	    l->load.op != STORAGE_LOOKUP && l->kind != LINE_MEASURED &&
	    l->tries == 1)
		return 0;
	return selftest_mount_fresh(&t->mounter, t->c.storage, l->time_scale,
				    err);
}

static int try_line(struct test *t, struct line *l, struct err *err)
{
	double expected =
		l->kind == LINE_LATENCY
			? l->want * (double)l->n / (double)l->load.streams
			: (double)l->n * 1e9 / model_rate(t->profile, &l->load);
	int r;

	l->tries++;
	r = mount_for(t, l, err);
	if (r < 0)
		return r;
	if (l->kind == LINE_MEASURED)
		expected = model_mean_ns(t->profile, &l->load) * (double)l->n;
	l->run = (struct client_run){
		.load = l->load,
		.n = l->n,
		/* enough to detect a mount that is far too slow */
		.limit_ns =
			(uint64_t)(3 * expected * l->time_scale) + 2 * NS_PER_S,
		.seed = t->c.seed,
	};
	r = measure(t, &l->run, err);
	return r == 0 ? line_judge(l, t->profile, t->c.seed) : r;
}

/* Keeps the first try that passes, else the last. */
static int run_line(struct test *t, struct line *l, struct err *err)
{
	int r = try_line(t, l, err);

	while (r == 0 && l->verdict == LINE_MISS && l->tries < MAX_TRIES) {
		client_run_fini(&l->run);
		r = try_line(t, l, err);
	}
	return r;
}

static int run_lines(struct test *t, struct err *err)
{
	int r = 0;

	line_print_head(t->out, &t->c, t->c.source, &t->base);
	if (!t->n_lines)
		fprintf(t->out, "the profile adds no time to any operation\n");
	for (size_t i = 0; r == 0 && i < t->n_lines; i++) {
		struct line *l = &t->lines[i];

		if (l->verdict != LINE_SKIPPED)
			r = run_line(t, l, err);
		if (r == 0)
			line_print(t->out, l);
	}
	return r;
}

static int report(struct test *t, struct err *err)
{
	bool passed = true;
	json_t *j;
	int r;

	for (size_t i = 0; i < t->n_lines; i++)
		passed = passed && t->lines[i].verdict != LINE_MISS;
	if (t->c.json) {
		j = lines_json(&t->c, t->c.source, &t->base, t->lines,
			       t->n_lines, passed);
		r = j ? json_write(j, t->c.json, err) : -ENOMEM;
		json_decref(j);
		if (r < 0)
			return err_set(err, r, "%s", strerror(-r));
	}
	return passed ? 0 : 1;
}

int selftest_run(const struct selftest_config *config, struct err *err)
{
	struct test t = { .c = *config };
	int r = storage_profile_load(config->storage, &t.profile, err);

	if (!t.c.source)
		t.c.source = DEFAULT_SOURCE;
	t.out = t.c.json && !strcmp(t.c.json, "-") ? stderr : stdout;
	if (r == 0)
		r = lines_new(t.profile, &t.lines, &t.n_lines);
	if (r == 0)
		r = selftest_mounter_init(&t.mounter, &t.c, err);
	if (r == 0)
		r = plan(&t, err);
	if (r == 0)
		r = run_lines(&t, err);
	selftest_mounter_fini(&t.mounter);
	if (r == 0)
		r = report(&t, err);
	lines_free(t.lines, t.n_lines);
	client_tree_fini(&t.tree);
	storage_profile_free(t.profile);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : r;
}
