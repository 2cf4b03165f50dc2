/* SPDX-License-Identifier: MIT */
#include "sched/charts.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "common/word.h"
#include "common/program/gnuplot.h"
#include "sched/chart/gantt.h"
#include "sched/chart/perfetto.h"

int charts_check_file(const void *object, struct err *err)
{
	return gnuplot_check(*(char *const *)object, err);
}

int charts_settle(struct chart_options *o, struct err *err)
{
	static const char *const words[] = {
		[REPORT_USERS] = "user", [REPORT_CLASSES] = "class"
	};
	_cleanup_free_ char *copy = strdup(o->by ? o->by : "");
	char *rest = o->by ? copy : NULL, *word;

	if (!copy)
		return -ENOMEM;
	while ((word = strsep(&rest, ","))) {
		int i = WORD_FIND(words, "--by", word, err);

		if (i < 0)
			return i;
		o->by_table[i] = true;
	}
	return 0;
}

int charts_check(const struct chart_options *o, const struct sim *sim,
		 struct err *err)
{
	if (o->plot && !sim->cluster->whole.gpu_milli)
		return err_set(err, -EINVAL,
			       "%s: the cluster has no GPUs to plot", o->plot);
	return o->gantt ? gantt_check(o->gantt, sim->workload, sim->cluster,
				      sim->n_cells, err)
			: 0;
}

void charts_tables(const struct chart_options *o, const struct sim *sim,
		   const char *kind)
{
	report_table(sim, kind);
	for (int i = REPORT_USERS; i <= REPORT_CLASSES; i++)
		if (o->by_table[i])
			report_groups(sim, (enum report_by)i);
}

int charts_draw(const struct chart_options *o, const struct sim *sim,
		struct err *err)
{
	_cleanup_free_ struct history_named *v =
		calloc(sim->n_cells + 1, sizeof(*v));
	size_t n = 0;
	int r = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < sim->n_cells; i++)
		if (sim->cells[i].done)
			v[n++] = (struct history_named){
				sim->cells[i].name, &sim->cells[i].history
			};
	if (o->plot)
		r = plot_draw(sim, o->plot, err);
	if (r == 0 && o->timeline)
		r = perfetto_write(o->timeline, sim->workload, sim->cluster, v,
				   n, err);
	if (r == 0 && o->gantt)
		r = gantt_draw(o->gantt, sim->workload, sim->cluster, v, n,
			       err);
	return r;
}
