/* SPDX-License-Identifier: MIT */
/*
 * Write each sample of a dataset, as the pipeline delivers it, to a file of
 * its own: OUT/0, OUT/1, ..., and to OUT/list a line "label name" each.
 *
 *	samples FORMAT PATH ENGINE OUT
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/util.h"
#include "loader/dataset/format_open.h"
#include "loader/pipeline/pipeline.h"

extern const struct prep_ops prep_none;

enum { BATCH = 3 };

static int write_sample(const char *out, const struct place *p)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[4096];

	if (p->error < 0)
		return p->error;
	snprintf(path, sizeof(path), "%s/%u", out, p->sample);
	f = fopen(path, "we");
	return f && fwrite(p->data, 1, p->n, f) == p->n ? 0 : -errno;
}

static int write_list(const char *out, const struct dataset *d)
{
	_cleanup_fclose_ FILE *f = NULL;
	char name[4096];

	snprintf(name, sizeof(name), "%s/list", out);
	f = fopen(name, "we");
	for (size_t i = 0; f && i < d->n; i++)
		fprintf(f, "%u %s\n", d->label[i],
			dataset_name(d, i, name, sizeof(name)));
	return f ? 0 : -errno;
}

static int run(struct pipeline *p, const struct dataset *d, struct tick *tick,
	       const char *out, struct err *err)
{
	_cleanup_free_ uint32_t *order = calloc(d->n, sizeof(*order));
	struct delivery x;
	int r;

	for (size_t i = 0; i < d->n; i++)
		order[i] = (uint32_t)(d->n - 1 - i);
	pipeline_begin(p, 0, order, d->n);
	while ((r = pipeline_next(p, tick_now(tick), &x, err)) == 0) {
		for (uint32_t i = 0; r == 0 && i < x.n; i++)
			r = write_sample(out, &x.place[i]);
		pipeline_release(p, &x);
		if (r < 0)
			return r;
	}
	return r == -ENODATA ? 0 : r;
}

int main(int argc, char **argv)
{
	struct format_request q = {
		.index = FORMAT_INDEX_OFF,
	};
	struct pipeline_config c = { .prep = &prep_none,
				     .workers = 2,
				     .queue_depth = 8,
				     .batch = BATCH,
				     .superbatch = 2,
				     .prefetch = 1 };
	struct format_result how;
	struct pipeline *p = NULL;
	struct err err = { 0 };
	struct dataset d;
	int r;

	if (argc != 5)
		return 2;
	q.format = argv[1];
	q.path = argv[2];
	r = format_open(&q, &d, &how, &err);
	c.data = &d;
	c.engine =
		container_of(plugin_find(engine_table, "engine", argv[3], NULL),
			     struct engine_ops, plugin);
	c.tick = tick_new(1, 0);
	if (r == 0)
		r = pipeline_new(&c, &p, &err);
	if (r == 0)
		r = run(p, &d, c.tick, argv[4], &err);
	if (r == 0)
		r = write_list(argv[4], &d);
	pipeline_free(p);
	tick_free(c.tick);
	dataset_close(&d);
	format_result_fini(&how);
	if (r < 0)
		fprintf(stderr, "samples: %s %s\n", err.text, strerror(-r));
	return r < 0 ? r == -EPERM ? 75 : 1 : 0;
}
