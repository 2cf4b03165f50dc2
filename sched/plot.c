/* SPDX-License-Identifier: MIT */
/*
 * Two panels: how many jobs were complete after which time, and how much of the
 * GPUs was allocated when. Lines differ by dashes as well as by colour, for
 * print in grey.
 */
#include <errno.h>
#include <math.h>

#include "common/program/gnuplot.h"
#include "common/units.h"
#include "common/util.h"
#include "sched/sim.h"

enum {
	WIDTH = 900,
	PANEL = 345, /* height without the legend */
	LABELS = 56, /* of that, below the panel */
	GAP = 10,
	LEGEND_ROW = 22,
	LEGEND_COLUMNS = 3,
	POINTS_MAX = 400, /* of a CDF: more than its width shows */
};

/* Of completion times, which are sorted. */
static void write_cdf(const uint64_t *jct_ns, size_t n,
		      struct gnuplot_scale scale, size_t i, FILE *f)
{
	double unit_ns = scale.seconds * NS_PER_S;
	size_t step = n / POINTS_MAX + 1;

	fprintf(f, "$cdf%zu << END\n%.9g 0\n", i, (double)jct_ns[0] / unit_ns);
	for (size_t k = 0; k < n; k += step) {
		size_t last = MIN(k + step, n) - 1;

		fprintf(f, "%.9g %.6g\n", (double)jct_ns[last] / unit_ns,
			100 * (double)(last + 1) / (double)n);
	}
	fputs("END\n", f);
}

static void write_use(const struct sched_timeline *t, double gpus,
		      struct gnuplot_scale scale, size_t i, FILE *f)
{
	double bin = (double)t->bin_ns / NS_PER_S / scale.seconds;
	size_t n = timeline_n(t);

	fprintf(f, "$use%zu << END\n", i);
	for (size_t k = 0; k < n; k++)
		fprintf(f, "%.9g %.4f\n", (double)k * bin,
			100 * timeline_mean(t, k) / gpus);
	fprintf(f, "%.9g 0\nEND\n",
		(double)(t->end_ns - t->start_ns) / NS_PER_S / scale.seconds);
}

/* A line for each cell, of the data block of that name; NULL: the legend. */
static void write_lines(const struct sched_sim *sim, const char *block, FILE *f)
{
	size_t line = 0;

	for (size_t i = 0; i < sim->n_cells; i++) {
		if (!sim->cells[i].done)
			continue;
		fputs(line ? ", \\\n     " : "plot ", f);
		if (block)
			fprintf(f, "$%s%zu with steps", block, i);
		else
			fputs("NaN with lines", f);
		fprintf(f, " lw 2 dt %zu lc rgb '%s' title ", line % 5 + 1,
			gnuplot_colours[line % GNUPLOT_COLOURS]);
		gnuplot_quote(sim->cells[i].name, f);
		line++;
	}
	fputc('\n', f);
}

/* Above the panels, over the whole width. */
static void write_legend(const struct sched_sim *sim, double bottom, FILE *f)
{
	fprintf(f,
		"set encoding utf8\nset multiplot\n"
		"set lmargin at screen 0.03\nset rmargin at screen 0.97\n"
		"set bmargin at screen %.4f\nset tmargin at screen 0.995\n"
		"unset border\nunset tics\n"
		"set xrange [0:1]\nset yrange [0:1]\n"
		"set key center top horizontal maxcols %d noenhanced "
		"samplen 3 Left reverse\n",
		bottom, LEGEND_COLUMNS);
	write_lines(sim, NULL, f);
}

/* What the axes must show. */
struct ranges {
	double least_s, most_s; /* of completion times */
	double last_s;		/* from the first arrival to the last end */
};

static struct ranges ranges_of(const struct sched_sim *sim)
{
	struct ranges g = { .least_s = HUGE_VAL };

	for (size_t i = 0; i < sim->n_cells; i++) {
		const struct sched_sim_cell *c = &sim->cells[i];

		for (size_t k = 0; c->done && k < sim->workload->n; k++) {
			double jct_s = (double)job_jct(&c->jobs[k]) / NS_PER_S;

			g.least_s = MIN(g.least_s, jct_s);
			g.most_s = MAX(g.most_s, jct_s);
		}
		if (c->done)
			g.last_s = MAX(g.last_s, c->result.makespan_s);
	}
	return g;
}

static void write_data(const struct sched_sim *sim, const struct ranges *g,
		       uint64_t *jct_ns, FILE *f)
{
	size_t n = sim->workload->n;

	for (size_t i = 0; i < sim->n_cells; i++) {
		const struct sched_sim_cell *c = &sim->cells[i];

		if (!c->done)
			continue;
		for (size_t k = 0; k < n; k++)
			jct_ns[k] = job_jct(&c->jobs[k]);
		qsort(jct_ns, n, sizeof(*jct_ns), util_compare_u64);
		write_cdf(jct_ns, n, gnuplot_scale(g->most_s), i, f);
		write_use(&c->result.use,
			  (double)sim->cluster->whole.gpu_milli / GPU_MILLI,
			  gnuplot_scale(g->last_s), i, f);
	}
}

/* Both panels have their place, whatever room their labels need. */
static void write_panels(const struct sched_sim *sim, const struct ranges *g,
			 double bottom, double top, FILE *f)
{
	struct gnuplot_scale scale = gnuplot_scale(g->most_s);

	fprintf(f,
		"unset key\nset border 3 lw 1 lc rgb '#404040'\n"
		"set xtics nomirror out scale 0.6\n"
		"set ytics nomirror out scale 0.6\n"
		"set grid lt 1 lw 0.7 dt 1 lc rgb '#dcdcdc'\n"
		"set bmargin at screen %.4f\nset tmargin at screen %.4f\n"
		"set lmargin at screen 0.075\nset rmargin at screen 0.48\n"
		"set xlabel 'job completion time (%s)'\n"
		"set ylabel 'jobs complete (%%)' offset 1\n"
		"set yrange [0:101]\nset xrange [%.9g:%.9g]\n",
		bottom, top, scale.unit, .9 * g->least_s / scale.seconds,
		1.1 * g->most_s / scale.seconds);
	/* arbitrary: below that range a logarithm shows no more */
	if (g->most_s > 20 * g->least_s)
		fputs("set logscale x\n", f);
	write_lines(sim, "cdf", f);
	scale = gnuplot_scale(g->last_s);
	fprintf(f,
		"unset logscale x\n"
		"set lmargin at screen 0.565\nset rmargin at screen 0.97\n"
		"set xlabel 'time (%s)'\n"
		"set ylabel 'GPUs allocated (%%)' offset 1\n"
		"set xrange [0:%.9g]\n",
		scale.unit, 1.02 * g->last_s / scale.seconds);
	write_lines(sim, "use", f);
	fputs("unset multiplot\n", f);
}

int plot_draw(const struct sched_sim *sim, const char *path, struct err *err)
{
	_cleanup_free_ uint64_t *jct_ns =
		malloc((sim->workload->n + 1) * sizeof(*jct_ns));
	struct ranges g = ranges_of(sim);
	size_t n_lines = 0;
	unsigned height, n_rows;
	double top;
	FILE *script;
	int r;

	for (size_t i = 0; i < sim->n_cells; i++)
		n_lines += sim->cells[i].done;
	if (!jct_ns)
		return -ENOMEM;
	if (!n_lines || !sim->cluster->whole.gpu_milli)
		return err_set(err, -EINVAL, "%s: %s", path,
			       n_lines ? "the cluster has no GPUs to plot"
				       : "no policy was completed");
	n_rows = (unsigned)((n_lines - 1) / LEGEND_COLUMNS + 1);
	height = PANEL + GAP + LEGEND_ROW * n_rows;
	r = gnuplot_begin(path, WIDTH, height, &script, err);
	if (r < 0)
		return r;
	top = (double)PANEL / height;
	write_data(sim, &g, jct_ns, script);
	write_legend(sim, top, script);
	write_panels(sim, &g, (double)LABELS / height, top, script);
	return gnuplot_draw(script, path, err);
}
