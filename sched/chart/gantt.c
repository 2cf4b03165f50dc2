/* SPDX-License-Identifier: MIT */
/*
 * One panel for each schedule, all with the same time axis. Bars that overlap
 * on a GPU share the height of its row. Their colour is the class of the job,
 * if there are several and a colour for each; else its user; else that of its
 * number, which is no more than to tell neighbours apart.
 */
#include "sched/chart/gantt.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/program/gnuplot.h"
#include "common/units.h"
#include "common/util.h"

enum {
	WIDTH = 900,
	LEGEND = 26,
	TITLE = 30,  /* above the rows of a panel */
	LABELS = 62, /* below them */
	ROW_MAX = 20,
	ROWS_HEIGHT = 640, /* of a panel, if its rows are not less than 1 */
	/* arbitrary: a picture of 10,000 points is several screens high, and a
	 * PNG may have 32,767 */
	HEIGHT_MAX = 10000,
	/* arbitrary: an SVG of some 10 MB */
	BARS_MAX = 50000,
	/* of a name in a bar, in a font of 8 points */
	LETTER = 6,
	LETTER_HEIGHT = 10,
	NODES_LABELLED = 24,
};

static const double LEFT = .1, RIGHT = .98;

/* How jobs are coloured. */
struct colouring {
	char *const *names; /* NULL: by number */
	size_t n;
	bool by_class;
};

struct panel {
	const struct history_named *of;
	struct history_rows rows;
	double row_points;  /* height of a row */
	double top, bottom; /* of the rows, in points from above */
};

struct gantt {
	const struct sched_workload *w;
	struct colouring colouring;
	struct panel *panels;
	size_t n;
	uint64_t start_ns, end_ns;
	struct gnuplot_scale scale;
	double height;
};

static struct colouring choose_colours(const struct sched_workload *w)
{
	if (w->n_classes > 1 && w->n_classes <= GNUPLOT_COLOURS)
		return (struct colouring){ w->classes, w->n_classes, true };
	if (w->n_users > 1 && w->n_users <= GNUPLOT_COLOURS)
		return (struct colouring){ w->users, w->n_users, false };
	return (struct colouring){ 0 };
}

static size_t colour_of(const struct gantt *g, uint32_t job)
{
	const struct sched_job *of = &g->w->jobs[job];

	if (!g->colouring.names)
		return job % GNUPLOT_COLOURS;
	return g->colouring.by_class ? of->class : of->user;
}

/* --- what is where -------------------------------------------------------- */

static void see_times(struct gantt *g, const struct history *h)
{
	for (size_t i = 0; i < h->n; i++)
		g->end_ns = MAX(g->end_ns, h->runs[i].until_ns);
}

static double row_points(size_t n_rows)
{
	return MAX(MIN(ROWS_HEIGHT / (double)n_rows, ROW_MAX), 1);
}

static int check_size(size_t n_bars, double height, struct err *err)
{
	if (height <= HEIGHT_MAX && n_bars <= BARS_MAX)
		return 0;
	return err_set(err, -EINVAL,
		       "a Gantt chart of %zu bars, %.0f points high: "
		       "more than %d bars, or %d points, are not drawn: "
		       "give fewer policies, jobs or nodes, or "
		       "--timeline",
		       n_bars, height, BARS_MAX, HEIGHT_MAX);
}

int gantt_check(const char *path, const struct sched_workload *w,
		const struct cluster *c, size_t n, struct err *err)
{
	size_t n_rows = 0, n_bars = 0;
	double height;

	for (size_t i = 0; i < c->n; i++)
		n_rows += MAX(c->nodes[i].n_gpus, 1);
	/* a job without GPUs has a bar, too, and one that can do without */
	for (size_t i = 0; i < w->n; i++)
		n_bars += w->jobs[i].cpu_work_ns > 0
				  ? 1
				  : MAX(w->jobs[i].n_gpus, 1);
	n_rows = MAX(n_rows, 1);
	height = choose_colours(w).names ? LEGEND : 0;
	height += (double)n *
		  (TITLE + row_points(n_rows) * (double)n_rows + LABELS);
	if (check_size(n * n_bars, height, err) == 0)
		return 0;
	err_prefix(err, "%s", path);
	return -EINVAL;
}

static int lay_out(struct gantt *g, const struct cluster *c,
		   const struct history_named *panels, struct err *err)
{
	size_t n_bars = 0;
	int r = 0;

	g->height = g->colouring.names ? LEGEND : 0;
	for (size_t i = 0; r == 0 && i < g->n; i++) {
		struct panel *p = &g->panels[i];
		size_t rows;

		p->of = &panels[i];
		r = history_rows_make(p->of->history, c, &p->rows);
		rows = MAX(p->rows.n, 1);
		p->row_points = row_points(rows);
		p->top = g->height + TITLE;
		p->bottom = p->top + p->row_points * (double)rows;
		g->height = p->bottom + LABELS;
		n_bars += p->rows.n_bars;
		see_times(g, p->of->history);
	}
	g->scale = gnuplot_scale((double)(g->end_ns - g->start_ns) / NS_PER_S);
	return r < 0 ? r : check_size(n_bars, g->height, err);
}

/* --- the script ----------------------------------------------------------- */

static double at_time(const struct gantt *g, uint64_t ns)
{
	return (double)(ns - g->start_ns) / NS_PER_S / g->scale.seconds;
}

/* A bar in units of the axes: time, and rows from above. */
struct box {
	double left, right, top, bottom;
};

static struct box box_of(const struct gantt *g, const struct panel *p, size_t i)
{
	const struct history_bar *b = &p->rows.bars[i];
	const struct history_run *run = &p->of->history->runs[b->run];

	return (struct box){ at_time(g, run->from_ns),
			     at_time(g, run->until_ns),
			     b->row + b->lane / (double)b->n_lanes,
			     b->row + (b->lane + 1) / (double)b->n_lanes };
}

/* What gnuplot reads within quotes has no way to escape them. */
static void write_word(const char *text, FILE *f)
{
	fputc('"', f);
	for (; *text; text++)
		fputc(*text == '"' || *text == '\\' || (unsigned char)*text < 32
			      ? '\''
			      : *text,
		      f);
	fputs("\"\n", f);
}

/* How many names there is room for. */
static size_t write_names(const struct gantt *g, size_t panel, FILE *f)
{
	const struct panel *p = &g->panels[panel];
	double points = WIDTH * (RIGHT - LEFT) / at_time(g, g->end_ns);
	size_t n = 0;

	fprintf(f, "$names%zu << END\n", panel);
	for (size_t i = 0; i < p->rows.n_bars; i++) {
		uint32_t run = p->rows.bars[i].run;
		const struct sched_job *job =
			&g->w->jobs[p->of->history->runs[run].job];
		struct box b = box_of(g, p, i);

		if ((b.right - b.left) * points <
			    LETTER * ((double)strlen(job->name) + 1) ||
		    (b.bottom - b.top) * p->row_points < LETTER_HEIGHT)
			continue;
		fprintf(f, "%.9g %.9g ", (b.left + b.right) / 2,
			(b.top + b.bottom) / 2);
		write_word(job->name, f);
		n++;
	}
	fputs("END\n", f);
	return n;
}

static void write_bars(const struct gantt *g, size_t panel, FILE *f)
{
	const struct panel *p = &g->panels[panel];

	fprintf(f, "$bars%zu << END\n", panel);
	for (size_t i = 0; i < p->rows.n_bars; i++) {
		uint32_t run = p->rows.bars[i].run;
		size_t colour = colour_of(g, p->of->history->runs[run].job);
		struct box b = box_of(g, p, i);

		fprintf(f, "%.9g %.9g %.9g %.9g %.9g %.9g %ld\n",
			(b.left + b.right) / 2, (b.top + b.bottom) / 2, b.left,
			b.right, b.top, b.bottom,
			strtol(gnuplot_colours[colour] + 1, NULL, 16));
	}
	fputs("END\n", f);
}

/* Nodes have labels at their middle, as many as there is room for, and lines
 * between them. */
static void write_nodes(const struct panel *p, FILE *f)
{
	size_t n_nodes = p->rows.n ? p->rows.rows[p->rows.n - 1].node + 1u : 0;
	size_t step = n_nodes / NODES_LABELLED + 1;
	const char *comma = "";
	size_t end;

	fputs("set ytics (", f);
	for (size_t i = 0; i < p->rows.n; i = end) {
		uint32_t node = p->rows.rows[i].node;

		for (end = i; end < p->rows.n && p->rows.rows[end].node == node;
		     end++)
			;
		if (node % step)
			continue;
		fprintf(f, "%s'node %" PRIu32 "%s' %.1f", comma, node,
			p->rows.rows[i].gpu < 0 ? " (CPU)" : "",
			(double)(i + end) / 2);
		comma = ", ";
	}
	fputs(")\nunset arrow\n", f);
	for (size_t i = 1; i < p->rows.n && n_nodes <= 4 * NODES_LABELLED; i++)
		if (p->rows.rows[i].node != p->rows.rows[i - 1].node)
			fprintf(f,
				"set arrow from graph 0, first %zu to graph 1, "
				"first %zu nohead back lc rgb '#a0a0a0'\n",
				i, i);
}

static void write_panel(const struct gantt *g, size_t panel, size_t n_names,
			FILE *f)
{
	const struct panel *p = &g->panels[panel];

	fprintf(f,
		"set bmargin at screen %.5f\nset tmargin at screen %.5f\n"
		"set lmargin at screen %.3f\nset rmargin at screen %.3f\n"
		"set yrange [%zu:0]\nset xrange [0:%.9g]\n"
		"set xlabel 'time (%s)'\nset title ",
		1 - p->bottom / g->height, 1 - p->top / g->height, LEFT, RIGHT,
		MAX(p->rows.n, 1), at_time(g, g->end_ns), g->scale.unit);
	gnuplot_quote(p->of->name, f);
	fputs(" noenhanced offset 0,-.5\n", f);
	write_nodes(p, f);
	fprintf(f,
		"plot $bars%zu using 1:2:3:4:5:6:7 with boxxyerror lw .5 "
		"lc rgb variable",
		panel);
	if (n_names)
		fprintf(f,
			", $names%zu using 1:2:3 with labels noenhanced "
			"font ',8' tc rgb '#ffffff'",
			panel);
	fputc('\n', f);
}

/* Above the panels; also begins them. */
static void write_legend(const struct gantt *g, FILE *f)
{
	const char *before = "plot ";

	fputs("set encoding utf8\nset termoption noenhanced\n"
	      "set multiplot\n",
	      f);
	if (!g->colouring.names)
		return;
	fprintf(f,
		"set lmargin at screen 0.03\nset rmargin at screen 0.97\n"
		"set bmargin at screen %.5f\nset tmargin at screen 0.999\n"
		"unset border\nunset tics\nset xrange [0:1]\nset yrange [0:1]\n"
		"set key center top horizontal noenhanced samplen 1 Left "
		"reverse\n",
		1 - LEGEND / g->height);
	for (size_t i = 0; i < g->colouring.n; i++) {
		fprintf(f, "%sNaN with lines lw 8 lc rgb '%s' title ", before,
			gnuplot_colours[i]);
		gnuplot_quote(g->colouring.names[i], f);
		before = ", \\\n     ";
	}
	fputc('\n', f);
}

static void write_script(const struct gantt *g, size_t *n_names, FILE *f)
{
	for (size_t i = 0; i < g->n; i++) {
		write_bars(g, i, f);
		n_names[i] = write_names(g, i, f);
	}
	write_legend(g, f);
	fputs("unset key\nset border 3 lw 1 lc rgb '#404040'\n"
	      "set style fill solid 1 border lc rgb '#ffffff'\n"
	      "set xtics nomirror out scale 0.6\n"
	      "set ytics nomirror out scale 0.6\n",
	      f);
	for (size_t i = 0; i < g->n; i++)
		write_panel(g, i, n_names[i], f);
	fputs("unset multiplot\n", f);
}

int gantt_draw(const char *path, const struct sched_workload *w,
	       const struct cluster *c, const struct history_named *panels,
	       size_t n, struct err *err)
{
	_cleanup_free_ size_t *n_names = calloc(n + 1, sizeof(*n_names));
	struct gantt g = { .w = w,
			   .colouring = choose_colours(w),
			   .panels = calloc(n + 1, sizeof(*g.panels)),
			   .n = n,
			   .start_ns = w->n ? w->jobs[0].arrival_ns : 0 };
	FILE *script;
	int r = n_names && g.panels ? 0 : -ENOMEM;

	g.end_ns = g.start_ns + 1;
	if (r == 0)
		r = lay_out(&g, c, panels, err);
	if (r == 0)
		r = gnuplot_begin(path, WIDTH, (unsigned)g.height, &script,
				  err);
	if (r == 0) {
		write_script(&g, n_names, script);
		r = gnuplot_draw(script, path, err);
	}
	for (size_t i = 0; g.panels && i < n; i++)
		history_rows_fini(&g.panels[i].rows);
	free(g.panels);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}
