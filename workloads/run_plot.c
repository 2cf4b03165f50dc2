/* SPDX-License-Identifier: MIT */
/*
 * A plot has to survive a grey printer: a series is told by its point type,
 * its dashes and its lightness, colour comes on top. Lines are for x values
 * that are numbers, bars for names. Error bars span minimum and maximum over
 * the repetitions, and are left out where there was one.
 *
 * The data file has one block a series: x, name of x, median, min, max.
 */
#include "workloads/run_plot.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

/* arbitrary: gnuplot draws such files in well under a second */
#define GNUPLOT_TIMEOUT_NS (60 * NS_PER_S)

/*
 * Colours of falling luminance difference to their neighbours, point types
 * open and filled in turn. Colours: Okabe and Ito, "Color Universal Design"
 * (2008), darkened where they were too light for lines on white.
 */
static const struct {
	const char *line, *fill;
	int point, dash;
} styles[] = {
	{ "#000000", "#303030", 7, 1 },	 { "#0060a0", "#0072b2", 4, 2 },
	{ "#d05000", "#e69f00", 9, 4 },	 { "#00795a", "#9fd8c6", 12, 3 },
	{ "#a04878", "#ead3df", 5, 5 },	 { "#606060", "#ffffff", 10, 2 },
	{ "#3a86c8", "#8fbbd9", 13, 4 }, { "#8a6d00", "#d8c878", 6, 3 },
};

/* Where a plot's values come from. */
struct view {
	const struct workload *w;
	const struct metric *y;
	size_t x;
	int series; /* axis, or < 0 */
	bool bars;
	bool numeric; /* every x is a number */
	bool spread;  /* some value has more than one repetition */
};

/* 20% -> 20. Sizes and durations stay names: their units may differ, so that
 * a scale would have to choose one. */
static int x_number(const char *label, double *ret)
{
	char text[40];
	size_t n = strlen(label);

	if (n == 0 || n >= sizeof(text))
		return -EINVAL;
	strcpy(text, label);
	if (text[n - 1] == '%')
		text[n - 1] = 0;
	return units_parse_double(text, ret);
}

static struct view view_of(const struct result *res, const struct plot *p)
{
	const struct workload *w = res->r->w;
	struct view v = { .w = w,
			  .y = metric_find(&w->metrics, p->y),
			  .x = (size_t)workload_axis(w, p->x),
			  .series = p->series ? workload_axis(w, p->series)
					      : -1,
			  .bars = p->kind && !strcmp(p->kind, "bars"),
			  .numeric = true };
	double ignored;

	for (size_t i = 0; i < w->axes[v.x].n_points; i++)
		if (x_number(w->axes[v.x].points[i].label, &ignored) < 0)
			v.numeric = false;
	if (v.bars)
		v.numeric = false;
	for (size_t i = 0; i < w->n_points; i++)
		if (result_at(res, i, v.y)->n > 1)
			v.spread = true;
	return v;
}

/* The point at position `x` of series `s`, the rest as `where` says. */
static size_t point_of(const struct view *v, const struct plot *p, size_t x,
		       size_t s)
{
	const struct workload *w = v->w;

	for (size_t i = 0; i < w->n_points; i++) {
		bool match = true;

		for (size_t a = 0; a < w->n_axes; a++) {
			const struct axis_point *at = workload_at(w, i, a);
			const struct conf_node *fixed =
				p->where ? conf_node_get(p->where,
							 w->axes[a].name)
					 : NULL;

			if (a == v->x)
				match = match && at == &w->axes[a].points[x];
			else if ((int)a == v->series)
				match = match && at == &w->axes[a].points[s];
			else if (fixed)
				match = match &&
					!strcmp(at->label, fixed->value);
		}
		if (match)
			return i;
	}
	return 0; /* not reached: workload_load refuses such plots */
}

static size_t n_series(const struct view *v)
{
	return v->series < 0 ? 1 : v->w->axes[v->series].n_points;
}

size_t plot_data(const struct result *res, const struct plot *p, FILE *f)
{
	struct view v = view_of(res, p);
	const struct axis *axis = &v.w->axes[v.x];
	size_t n = 0;

	for (size_t s = 0; s < n_series(&v); s++) {
		fprintf(f, "%s# %s\n# x name median min max\n", s ? "\n\n" : "",
			v.series < 0 ? v.y->name
				     : v.w->axes[v.series].points[s].label);
		for (size_t i = 0; i < axis->n_points; i++) {
			const struct spread *y =
				result_at(res, point_of(&v, p, i, s), v.y);
			double x = (double)i;

			if (v.numeric)
				x_number(axis->points[i].label, &x);
			if (!y->n) {
				/* keeps the place of the bar, draws nothing */
				fprintf(f, "%.9g \"%s\" NaN NaN NaN\n", x,
					axis->points[i].label);
				continue;
			}
			fprintf(f, "%.9g \"%s\" %.9g %.9g %.9g\n", x,
				axis->points[i].label, y->median, y->min,
				y->max);
			n++;
		}
	}
	return n;
}

/* --- script ----------------------------------------------------------- */

/* A text in single quotes, as gnuplot reads it. */
static void quoted(FILE *f, const char *s)
{
	fputc('\'', f);
	for (; *s; s++)
		fprintf(f, *s == '\'' ? "''" : "%c", *s);
	fputc('\'', f);
}

static void labels(const struct view *v, const struct plot *p, FILE *f)
{
	char text[200];

	if (p->title) {
		fputs("set title ", f);
		quoted(f, p->title);
		fputs(" font ',13'\n", f);
	}
	fputs("set xlabel ", f);
	quoted(f, p->x_label ? p->x_label : p->x);
	snprintf(text, sizeof(text), v->y->unit ? "%s (%s)" : "%s",
		 v->y->label ? v->y->label : v->y->name,
		 v->y->unit ? v->y->unit : "");
	fputs("\nset ylabel ", f);
	quoted(f, p->y_label ? p->y_label : text);
	fputc('\n', f);
}

static void frame(const struct view *v, FILE *f)
{
	const struct axis *axis = &v->w->axes[v->x];

	fputs("set border 3 lw 1 lc rgb '#404040'\n"
	      "set tics nomirror out scale 0.6\n"
	      "set grid ytics lw 0.6 dt 1 lc rgb '#d8d8d8'\n"
	      "set yrange [0:*]\n"
	      "set offsets 0, 0, graph 0.06, 0\n"
	      "set key outside top center horizontal Left reverse "
	      "samplen 3 spacing 1.2\n",
	      f);
	if (v->numeric)
		fputs("set offsets graph 0.04, graph 0.04, graph 0.06, 0\n", f);
	if (v->numeric && axis->n_points <= 12) {
		fputs("set xtics (", f);
		for (size_t i = 0; i < axis->n_points; i++) {
			double x = 0;

			x_number(axis->points[i].label, &x);
			fprintf(f, "%s'%s' %.9g", i ? ", " : "",
				axis->points[i].label, x);
		}
		fputs(")\n", f);
	}
	if (n_series(v) == 1)
		fputs("unset key\n", f);
}

static void series_title(const struct view *v, size_t s, FILE *f)
{
	fputs(" title ", f);
	quoted(f, v->series < 0 ? v->y->name
				: v->w->axes[v->series].points[s].label);
}

static void draw_lines(const struct view *v, const struct plot *p, FILE *f)
{
	for (size_t s = 0; s < n_series(v); s++) {
		size_t k = s % ARRAY_SIZE(styles);

		fprintf(f, "%s'%s.dat' index %zu using 1:3",
			s ? ", \\\n     " : "plot ", p->name, s);
		fprintf(f, v->numeric ? "%s" : "%s:xtic(2)",
			v->spread ? ":4:5" : "");
		fprintf(f, " with %s lw 1.8 lc rgb '%s' dt %d pt %d ps 0.9",
			v->spread ? "yerrorlines" : "linespoints",
			styles[k].line, styles[k].dash, styles[k].point);
		series_title(v, s, f);
	}
	fputc('\n', f);
}

static void draw_bars(const struct view *v, const struct plot *p, FILE *f)
{
	fprintf(f,
		"set style data histogram\n"
		"set style histogram %s gap 1.5%s\n"
		"set boxwidth 0.92\n"
		"set xtics scale 0\n",
		v->spread ? "errorbars" : "clustered",
		v->spread ? " lw 1.2" : "");
	for (size_t s = 0; s < n_series(v); s++) {
		size_t k = s % ARRAY_SIZE(styles);

		fprintf(f, "%s'%s.dat' index %zu using 3%s:xtic(2)",
			s ? ", \\\n     " : "plot ", p->name, s,
			v->spread ? ":4:5" : "");
		fprintf(f, " fs solid 1 border lc rgb '#202020' fc rgb '%s'",
			styles[k].fill);
		series_title(v, s, f);
	}
	fputc('\n', f);
}

void plot_script(const struct result *res, const struct plot *p, FILE *f)
{
	struct view v = view_of(res, p);

	fprintf(f, "# gpemu %s, workload %s\n", p->name, v.w->name);
	fputs("set encoding utf8\n", f);
	labels(&v, p, f);
	frame(&v, f);
	fprintf(f,
		"set terminal svg noenhanced size 640,420 dynamic "
		"font 'Helvetica,13' background rgb 'white' linewidth 1\n"
		"set output '%s.svg'\n",
		p->name);
	(v.bars ? draw_bars : draw_lines)(&v, p, f);
	fprintf(f,
		"set terminal pngcairo noenhanced size 1280,840 "
		"font 'Helvetica,13' fontscale 2 linewidth 2 pointscale 2\n"
		"set output '%s.png'\n"
		"replot\n"
		"unset output\n",
		p->name);
}

/* --- drawing ---------------------------------------------------------- */

static int write_files(const struct result *res, const struct plot *p,
		       struct runner *r, struct err *err)
{
	_cleanup_free_ char *data = runner_path(r, "plots", p->name, "dat");
	_cleanup_free_ char *script = runner_path(r, "plots", p->name, "gp");
	_cleanup_fclose_ FILE *d = data ? fopen(data, "we") : NULL;
	_cleanup_fclose_ FILE *s = script ? fopen(script, "we") : NULL;

	if (!d || !s)
		return err_set(err, -errno, "%s: %s", script, strerror(errno));
	if (!plot_data(res, p, d))
		return err_set(err, -ENODATA, "plot %s: no values", p->name);
	plot_script(res, p, s);
	if (fflush(d) || fflush(s))
		return err_set(err, -errno, "%s: %s", script, strerror(errno));
	return 0;
}

/* `env -C` and not chdir: the paths of this process may be relative. */
static int run_gnuplot(const struct plot *p, struct runner *r, struct err *err)
{
	_cleanup_free_ char *folder = NULL, *script = NULL;
	_cleanup_free_ char *log = runner_path(r, "logs", p->name, "gnuplot");
	_cleanup_close_ int fd = -1;
	struct child child;
	int status = 0, code;

	if (!log || asprintf(&folder, "%s/plots", r->out) < 0 ||
	    asprintf(&script, "%s.gp", p->name) < 0)
		return -ENOMEM;
	char *argv[] = { (char *)"/usr/bin/env", (char *)"-C", folder,
			 (char *)"gnuplot",	 script,       NULL };

	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", log, strerror(errno));
	code = child_start(&child, argv, fd, fd, err);
	if (code == 0)
		code = child_wait(&child, &r->stop, GNUPLOT_TIMEOUT_NS,
				  &status);
	child_end(&child, NS_PER_S);
	if (code < 0)
		return err_set(err, code, "gnuplot: %s", strerror(-code));
	if (status == 127) /* env(1): not found */
		return err_set(err, -ENOENT,
			       "no gnuplot here: run 'gnuplot %s' in %s where "
			       "there is one",
			       script, folder);
	return status ? err_set(err, -EIO, "gnuplot failed, see %s", log) : 0;
}

int plot_draw(const struct result *res, const struct plot *p, struct runner *r,
	      struct err *err)
{
	int code = write_files(res, p, r, err);

	return code < 0 ? code : run_gnuplot(p, r, err);
}
