/* SPDX-License-Identifier: MIT */
/*
 * Plots must be readable in greyscale: series differ in point type, dashes and
 * lightness, and only then in colour. Numeric x values are drawn as lines,
 * names as bars. Error bars span the interval that the table shows; a single
 * repetition has none.
 *
 * The data file has one block a series: x, name of x, median, ends of the bar.
 */
#include "runner/page/run_plot.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/program/gnuplot.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/spec/run_expect.h"

/*
 * Colours of falling luminance difference to their neighbours, point types
 * open and filled in turn. Colours: Okabe and Ito, "Color Universal Design"
 * (2008), darkened where they were too light for lines on white.
 */
static const struct {
	const char *line, *fill;
	int point, dash;
} styles[] = {
	{ "#000000", "#c4c4c4", 7, 1 },	 { "#0060a0", "#0072b2", 4, 2 },
	{ "#d05000", "#e9b949", 9, 4 },	 { "#00795a", "#404040", 12, 3 },
	{ "#a04878", "#9fd8c6", 5, 5 },	 { "#606060", "#a04878", 10, 2 },
	{ "#3a86c8", "#ffffff", 13, 4 }, { "#8a6d00", "#8a6d00", 6, 3 },
};

/* The share of a name's slot on the x axis taken by its bars. arbitrary: two
 * thirds look neither crowded nor sparse. */
#define BARS_WIDTH .68
/* For a plot 640 points wide, in its font: names and digits that fit side by
 * side below the x axis, and digits beside a legend; the height of the plot,
 * and of a line of the legend. measured, but for the height */
enum {
	LABEL_CHARS = 75,
	DIGITS = 54,
	DIGITS_LEGEND = 32,
	PLOT_HEIGHT = 420,
	LEGEND_ROW = 22,
};

/* The values of a plot. */
struct view {
	const struct workload *w;
	const struct metric *y;
	size_t x;
	int series; /* axis, or < 0 */
	bool bars;
	bool numeric; /* every x is a number */
	bool spread;  /* some value has more than one repetition */
	/* so far apart that the axis is logarithmic */
	bool wide_x, wide_y;
};

/* The largest value over the least, on a logarithmic axis. arbitrary: below it
 * all points of a linear axis can be told apart */
#define WIDE 32

/* 20% -> 20. Sizes and durations stay names, because their units may differ. */
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

/* The ends of positive values; least 0: one is not. */
struct ends {
	double least, most;
};

static void stretch(struct ends *e, double value)
{
	e->most = MAX(e->most, value);
	e->least = value > 0 ? MIN(e->least, value) : 0;
}

static bool is_wide(const struct ends *e)
{
	return e->least > 0 && e->most >= WIDE * e->least;
}

static void find_widths(const struct result *res, struct view *v)
{
	const struct axis *axis = &v->w->axes[v->x];
	struct ends x = { .least = INFINITY }, y = x;
	double at;

	if (!v->numeric)
		return;
	for (size_t i = 0; i < axis->n_points; i++)
		if (x_number(axis->points[i].label, &at) == 0)
			stretch(&x, at);
	for (size_t i = 0; i < v->w->n_points; i++) {
		const struct spread *s = result_at(res, i, v->y);

		if (s->n)
			stretch(&y, s->median);
	}
	v->wide_x = is_wide(&x);
	v->wide_y = v->wide_x && is_wide(&y);
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
	find_widths(res, &v);
	return v;
}

/* The point at position `x` of series `s`; `where` fixes the other axes.
 * WORKLOAD_NO_POINT: it is excluded. */
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
	return WORKLOAD_NO_POINT;
}

static size_t n_series(const struct view *v)
{
	return v->series < 0 ? 1 : v->w->axes[v->series].n_points;
}

static const char *series_name(const struct view *v, size_t s)
{
	return v->series < 0 ? v->y->name
			     : v->w->axes[v->series].points[s].label;
}

/* The x coordinate of the `i`-th value of the x axis. */
static double x_at(const struct view *v, size_t i)
{
	double x = (double)i;

	if (v->numeric)
		x_number(v->w->axes[v->x].points[i].label, &x);
	return x;
}

/* --- published values ------------------------------------------------- */

/*
 * Published values are drawn if they are of the plot's metric along the plot's
 * x axis, and their `where` does not exclude the labels that the plot's `where`
 * fixes.
 */
static bool is_shown(const struct view *v, const struct plot *p,
		     const struct published *pub)
{
	for (size_t i = 0; pub->where && i < pub->where->n; i++) {
		const struct conf_node *item = pub->where->items[i];
		const struct conf_node *fixed =
			p->where ? conf_node_get(p->where, item->key) : NULL;

		if (fixed && (item->kind != CONF_KIND_SCALAR ||
			      strcmp(fixed->value, item->value)))
			return false;
	}
	return !strcmp(pub->metric, p->y) &&
	       !strcmp(pub->along, v->w->axes[v->x].name);
}

/* The series to which a published one belongs, to share its style; n_series:
 * none in particular. */
static size_t series_of(const struct view *v, const struct published *pub)
{
	const struct conf_node *at =
		v->series >= 0 && pub->where
			? conf_node_get(pub->where, v->w->axes[v->series].name)
			: NULL;
	int i = at && at->kind == CONF_KIND_SCALAR
			? workload_find_label(v->w, (size_t)v->series,
					      at->value)
			: -1;

	return i < 0 ? n_series(v) : (size_t)i;
}

static size_t n_published(const struct view *v, const struct plot *p)
{
	const struct published *pub = v->w->published.items;
	size_t n = 0;

	for (size_t k = 0; k < v->w->published.n; k++)
		n += is_shown(v, p, &pub[k]);
	return n;
}

static void published_data(const struct view *v, const struct plot *p, FILE *f)
{
	const struct published *pub = v->w->published.items;
	const struct axis *axis = &v->w->axes[v->x];

	for (size_t k = 0; k < v->w->published.n; k++) {
		if (!is_shown(v, p, &pub[k]))
			continue;
		fprintf(f, "\n\n# published: %s\n# x name value\n",
			pub[k].name);
		for (size_t i = 0; i < axis->n_points; i++) {
			const char *label = axis->points[i].label;
			const struct conf_node *value =
				conf_node_get(pub[k].values, label);

			fprintf(f, "%.9g \"%s\" %s\n", x_at(v, i), label,
				value ? value->value : "NaN");
		}
	}
}

size_t plot_data(const struct result *res, const struct plot *p, FILE *f)
{
	struct view v = view_of(res, p);
	const struct axis *axis = &v.w->axes[v.x];
	size_t n = 0;

	for (size_t s = 0; s < n_series(&v); s++) {
		fprintf(f, "%s# %s\n# x name median low high\n",
			s ? "\n\n" : "", series_name(&v, s));
		for (size_t i = 0; i < axis->n_points; i++) {
			const struct spread *y =
				result_at(res, point_of(&v, p, i, s), v.y);

			/* excluded, or failed: gnuplot leaves a gap at NaN */
			fprintf(f, "%.9g \"%s\" %.9g %.9g %.9g\n", x_at(&v, i),
				axis->points[i].label, y->median, y->ci_low,
				y->ci_high);
			n += y->n != 0;
		}
	}
	published_data(&v, p, f);
	return n;
}

/* --- script ----------------------------------------------------------- */

static void axis_label(char axis, const char *text, bool wide, FILE *f)
{
	char label[220];

	snprintf(label, sizeof(label), "%s%s", text, wide ? ", log scale" : "");
	fprintf(f, "set %clabel ", axis);
	gnuplot_quote(label, f);
	fputc('\n', f);
}

static void labels(const struct view *v, const struct plot *p, FILE *f)
{
	char text[200];

	if (p->title) {
		fputs("set title ", f);
		gnuplot_quote(p->title, f);
		fputs(" font ',12'\n", f);
	}
	axis_label('x', p->x_label ? p->x_label : p->x, v->wide_x, f);
	snprintf(text, sizeof(text), v->y->unit ? "%s (%s)" : "%s",
		 v->y->label ? v->y->label : v->y->name,
		 v->y->unit ? v->y->unit : "");
	axis_label('y', p->y_label ? p->y_label : text, v->wide_y, f);
}

/* Would labels side by side overlap? */
static bool is_crowded(const struct view *v, bool beside_legend)
{
	const struct axis *axis = &v->w->axes[v->x];
	size_t longest = 0;
	size_t room = !v->numeric     ? LABEL_CHARS
		      : beside_legend ? DIGITS_LEGEND
				      : DIGITS;

	for (size_t i = 0; i < axis->n_points; i++)
		longest = MAX(longest, strlen(axis->points[i].label) + 1);
	return longest * axis->n_points > room;
}

/* Ticks at the values, so that names and numbers look alike. Crowded names are
 * turned, of crowded numbers every second one is left out. */
static void ticks(const struct view *v, bool beside_legend, FILE *f)
{
	const struct axis *axis = &v->w->axes[v->x];
	bool crowded = is_crowded(v, beside_legend);

	/* too many numbers to print: gnuplot chooses better */
	if (v->numeric && axis->n_points > 12)
		return;
	fprintf(f, "set xtics %s%s(", v->bars ? "scale 0 " : "",
		crowded && !v->numeric ? "rotate by -20 left " : "");
	for (size_t i = 0; i < axis->n_points; i++) {
		char text[80];
		char *to = text;

		/* a tick is a format: % is written %% */
		for (const char *c = axis->points[i].label;
		     *c && to < text + sizeof(text) - 3; c++) {
			*to++ = *c;
			if (*c == '%')
				*to++ = '%';
		}
		*to = 0;
		if (crowded && v->numeric && (axis->n_points - i) % 2 == 0)
			*text = 0;
		fputs(i ? ", " : "", f);
		gnuplot_quote(text, f);
		fprintf(f, " %.9g", x_at(v, i));
	}
	fputs(")\n", f);
}

/* A little less than a bar's share, to leave a gap between bars. */
static double bar_width(const struct view *v)
{
	return BARS_WIDTH / (double)n_series(v) * .94;
}

/* The lines of a legend below the plot; 0: it is beside the plot. */
static size_t legend_rows(const struct view *v, const struct plot *p)
{
	size_t n = n_published(v, p);

	return n ? n + n_series(v) : 0;
}

static void legend(const struct view *v, const struct plot *p, FILE *f)
{
	if (legend_rows(v, p)) /* long names need the width */
		fputs("set key below center vertical maxcols 1 Left reverse "
		      "samplen 3.5 spacing 1.2\n",
		      f);
	else if (n_series(v) == 1)
		fputs("unset key\n", f);
	else {
		fputs("set key outside right center vertical Left reverse "
		      "samplen 3.5 spacing 1.4 title ",
		      f);
		gnuplot_quote(p->series_label ? p->series_label : p->series, f);
		fputs(" left\n", f);
	}
}

static void frame(const struct view *v, const struct plot *p, FILE *f)
{
	fputs("set errorbars 0.7\n", f);
	fputs(v->wide_y ? "set logscale y\nset format y '%.12g'\n"
			: "set yrange [0:*]\n",
	      f);
	fputs("set autoscale yfixmax\n", f);
	if (v->wide_x)
		fputs("set logscale x 2\n", f);
	if (v->bars)
		fprintf(f,
			"set xrange [-0.6:%zu.6]\n"
			"set offsets 0, 0, graph 0.05, 0\n"
			"set boxwidth %.4g\n",
			v->w->axes[v->x].n_points - 1, bar_width(v));
	else
		fputs("set offsets graph 0.04, graph 0.04, graph 0.05, 0\n", f);
	ticks(v, n_series(v) > 1 && !legend_rows(v, p), f);
	legend(v, p, f);
}

void plot_series(FILE *f, const char *file, size_t i, const char *title)
{
	size_t k = i % ARRAY_SIZE(styles);

	fprintf(f,
		"'%s' index %zu using 1:2 with linespoints lw 1.8 lc rgb '%s' "
		"dt %d pt %d ps 1 title ",
		file, i, styles[k].line, styles[k].dash, styles[k].point);
	gnuplot_quote(title, f);
}

/* gnuplot rejects a series without values. */
static bool has_values(const struct result *res, const struct view *v,
		       const struct plot *p, size_t s)
{
	for (size_t i = 0; i < v->w->axes[v->x].n_points; i++)
		if (result_at(res, point_of(v, p, i, s), v->y)->n)
			return true;
	return false;
}

static void draw_line(const struct view *v, const struct plot *p, size_t s,
		      FILE *f)
{
	size_t k = s % ARRAY_SIZE(styles);

	/* draw the points twice: first the error bars, below */
	if (v->spread)
		fprintf(f,
			"'%s.dat' index %zu using 1:3:4:5 with yerrorbars "
			"dt 1 lw 1.2 lc rgb '%s' pt %d ps 1 notitle, \\\n     ",
			p->name, s, styles[k].line, styles[k].point);
	fprintf(f,
		"'%s.dat' index %zu using 1:3 with linespoints lw 1.8 "
		"lc rgb '%s' dt %d pt %d ps 1 title ",
		p->name, s, styles[k].line, styles[k].dash, styles[k].point);
	gnuplot_quote(series_name(v, s), f);
}

static void draw_bar(const struct view *v, const struct plot *p, size_t s,
		     FILE *f)
{
	double n = (double)n_series(v);
	double shift = ((double)s - (n - 1) / 2) * BARS_WIDTH / n;
	char range[40] = "";

	if (v->spread)
		snprintf(range, sizeof(range), ":4:5:(%.4g)", bar_width(v));

	fprintf(f,
		"'%s.dat' index %zu using ($1%+.4g):3%s with %s "
		"fs solid 1 border lc rgb '#202020' fc rgb '%s' title ",
		p->name, s, shift, range,
		v->spread ? "boxerrorbars lw 1.2" : "boxes",
		styles[s % ARRAY_SIZE(styles)].fill);
	gnuplot_quote(series_name(v, s), f);
}

/* Does the text have the word, its own spaces aside: "LRU, 65 %" has 65%? */
static bool mentions(const char *text, const char *word)
{
	for (; *text; text++) {
		const char *t = text, *w = word;

		while (*w && (*t == *w || *t == ' '))
			w += *t++ == *w;
		if (!*w)
			return true;
	}
	return false;
}

/* Open stars without a line, beside the bars of their series: published values.
 */
static void draw_published(const struct view *v, const struct plot *p,
			   const char *before, FILE *f)
{
	const struct published *pub = v->w->published.items;
	double n = (double)n_series(v);
	size_t index = n_series(v);
	/* a star or another shape without area, then open ones */
	static const int points[] = { 3, 2, 1, 8, 6, 12, 4, 10 };

	for (size_t k = 0; k < v->w->published.n; k++) {
		size_t s = series_of(v, &pub[k]);
		double shift =
			v->bars && s < n_series(v)
				? ((double)s - (n - 1) / 2) * BARS_WIDTH / n
				: 0;
		char title[120];
		bool named;

		if (!is_shown(v, p, &pub[k]))
			continue;
		fprintf(f,
			"%s'%s.dat' index %zu using ($1%+.4g):3 with points "
			"pt %d ps 1.6 lw 2 lc rgb '%s' title ",
			before, p->name, index, shift,
			points[(index - n_series(v)) % ARRAY_SIZE(points)],
			s < n_series(v) && !v->bars
				? styles[s % ARRAY_SIZE(styles)].line
				: "#000000");
		named = s < n_series(v) &&
			!mentions(pub[k].name, series_name(v, s));
		snprintf(title, sizeof(title), "%s%s%s, published", pub[k].name,
			 named ? ": " : "", named ? series_name(v, s) : "");
		gnuplot_quote(title, f);
		before = ", \\\n     ";
		index++;
	}
}

static void draw(const struct result *res, const struct view *v,
		 const struct plot *p, FILE *f)
{
	const char *before = "plot ";

	for (size_t s = 0; s < n_series(v); s++) {
		if (!has_values(res, v, p, s))
			continue;
		fputs(before, f);
		(v->bars ? draw_bar : draw_line)(v, p, s, f);
		before = ", \\\n     ";
	}
	draw_published(v, p, before, f);
	fputc('\n', f);
}

void plot_begin(FILE *f)
{
	fputs("set encoding utf8\n"
	      "set border 3 lw 1 lc rgb '#404040'\n"
	      "set tics nomirror out scale 0.6\n"
	      "set grid noxtics ytics lt 1 lw 0.7 lc rgb '#dcdcdc'\n",
	      f);
}

void plot_svg(const char *name, size_t height, FILE *f)
{
	fprintf(f,
		"set terminal svg noenhanced size 640,%zu dynamic "
		"font 'Helvetica,13' background rgb 'white' linewidth 1\n"
		"set output '%s.svg'\n",
		height, name);
}

static void plot_script(const struct result *res, const struct plot *p, FILE *f)
{
	struct view v = view_of(res, p);
	size_t height = PLOT_HEIGHT + legend_rows(&v, p) * LEGEND_ROW;

	fprintf(f, "# gpemu %s, workload %s\n", p->name, v.w->name);
	plot_begin(f);
	labels(&v, p, f);
	frame(&v, p, f);
	plot_svg(p->name, height, f);
	draw(res, &v, p, f);
	fprintf(f,
		"set terminal pngcairo noenhanced size 1280,%zu "
		"font 'Helvetica,13' fontscale 2 linewidth 2 pointscale 2\n"
		"set output '%s.png'\n"
		"replot\n"
		"unset output\n",
		2 * height, p->name);
}

/* --- drawing ---------------------------------------------------------- */

/* gnuplot would wait for the reader of a pipe there, and write through a link.
 */
static void clear_drawing(const char *drawing)
{
	struct stat st;

	if (lstat(drawing, &st) == 0 && !S_ISREG(st.st_mode))
		unlink(drawing);
}

int plot_open(const struct runner *r, const char *name, FILE **ret_data,
	      FILE **ret_script, struct err *err)
{
	_cleanup_free_ char *data = runner_path(r, "plots", name, "dat");
	_cleanup_free_ char *script = runner_path(r, "plots", name, "gp");
	_cleanup_free_ char *svg = runner_path(r, "plots", name, "svg");
	_cleanup_free_ char *png = runner_path(r, "plots", name, "png");
	int code = data && script && svg && png
			   ? util_new_stream(data, ret_data)
			   : -ENOMEM;

	if (code == 0)
		code = util_new_stream(script, ret_script);
	if (code < 0)
		return err_set(err, code, "plot %s: %s", name, strerror(-code));
	clear_drawing(svg);
	clear_drawing(png);
	return 0;
}

int plot_gnuplot(const char *name, struct runner *r, struct err *err)
{
	_cleanup_free_ char *folder = util_join(r->out, "plots");
	_cleanup_free_ char *script = util_text("%s.gp", name);
	_cleanup_free_ char *log = runner_path(r, "logs", name, "gnuplot");
	_cleanup_free_ char *instead = NULL;
	_cleanup_close_ int fd = -1;
	int code;

	if (folder && script)
		instead = util_text("run 'gnuplot %s' in %s on a machine that "
				    "has it",
				    script, folder);
	if (!log || !instead)
		return -ENOMEM;
	fd = util_new_file(log, 0);
	if (fd < 0)
		return err_set(err, fd, "%s: %s", log, strerror(-fd));
	code = gnuplot_run(folder, script, fd, fd, &r->stop, instead, err);
	return code < 0 ? err_set(err, code, "gnuplot failed, see %s", log) : 0;
}

static int write_files(const struct result *res, const struct plot *p,
		       struct runner *r, struct err *err)
{
	_cleanup_fclose_ FILE *d = NULL, *s = NULL;
	int code = plot_open(r, p->name, &d, &s, err);

	if (code < 0)
		return code;
	if (!plot_data(res, p, d))
		return err_set(err, -ENODATA, "plot %s: no values", p->name);
	plot_script(res, p, s);
	if (fflush(d) || fflush(s))
		return err_set(err, -errno, "plot %s: %s", p->name,
			       strerror(errno));
	return 0;
}

int plot_draw(const struct result *res, const struct plot *p, struct runner *r,
	      struct err *err)
{
	int code = write_files(res, p, r, err);

	return code < 0 ? code : plot_gnuplot(p->name, r, err);
}
