/* SPDX-License-Identifier: MIT */
#include "runner/spec/run_used.h"

#include <errno.h>
#include <stdlib.h>

#include "common/util.h"
#include "runner/spec/run_expect.h"

struct used {
	const struct workload *w;
	const struct metric **metrics;
	size_t n;
};

static int use_ref(void *ctx, const struct expr_ref *ref, struct err *err);

/* Names of axes, settings and published values are no metrics. */
static void use(struct used *u, const char *name)
{
	const struct metric *m = name ? metric_find(&u->w->metrics, name)
				      : NULL;

	if (!m)
		return;
	for (size_t i = 0; i < u->n; i++)
		if (u->metrics[i] == m)
			return;
	u->metrics[u->n++] = m;
	/* of earlier metrics only: it ends */
	if (m->of && m->expr)
		expr_each(m->expr, use_ref, u, NULL);
}

static int use_ref(void *ctx, const struct expr_ref *ref, struct err *err)
{
	(void)err;
	use(ctx, ref->name);
	return 0;
}

static void use_checks(struct used *u)
{
	const struct expect *expects = u->w->expects.items;
	const struct published *published = u->w->published.items;

	for (size_t i = 0; i < u->w->expects.n; i++) {
		if (expects[i].expr)
			expr_each(expects[i].expr, use_ref, u, NULL);
		use(u, expects[i].rising);
		use(u, expects[i].falling);
	}
	for (size_t i = 0; i < u->w->published.n; i++)
		use(u, published[i].metric);
}

/* They stand for what they are made of. */
static void drop_derived(struct used *u)
{
	size_t n = 0;

	for (size_t i = 0; i < u->n; i++)
		if (!u->metrics[i]->of)
			u->metrics[n++] = u->metrics[i];
	u->n = n;
}

int metrics_used(const struct workload *w, const struct metric ***ret,
		 size_t *ret_n)
{
	const struct metric *own = w->metrics.items;
	const struct plot *plots = w->plots.items;
	char *const *columns = w->columns.items;
	struct used u = { .w = w };
	size_t n = 0;
	bool alone;

	while (metric_builtin[n].name)
		n++;
	u.metrics = calloc(n + w->metrics.n, sizeof(*u.metrics));
	if (!u.metrics)
		return -ENOMEM;
	use_checks(&u);
	for (size_t i = 0; i < w->columns.n; i++)
		use(&u, columns[i]);
	for (size_t i = 0; i < w->plots.n; i++)
		use(&u, plots[i].y);
	/* a search for the number of GPUs judges this one */
	if (w->gpus)
		use(&u, "au");
	drop_derived(&u);
	alone = !u.n;
	for (size_t i = 0; alone && i < w->metrics.n; i++)
		use(&u, own[i].name);
	drop_derived(&u);
	if (alone)
		use(&u, "seconds");
	*ret = u.metrics;
	*ret_n = u.n;
	return 0;
}
