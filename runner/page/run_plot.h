/* SPDX-License-Identifier: MIT */
/*
 * Plots: OUT/plots/NAME.dat (the numbers), NAME.gp (the gnuplot script, for
 * manual changes), NAME.svg and NAME.png.
 */
#ifndef GPEMU_RUNNER_PAGE_RUN_PLOT_H
#define GPEMU_RUNNER_PAGE_RUN_PLOT_H

#include "runner/result/run_result.h"

/*
 * Draw one. 0; -ENODATA: no point has the metric; -ENOENT: no gnuplot, the
 * data and the script are there; -EIO: gnuplot failed, its log says why.
 */
int plot_draw(const struct result *res, const struct plot *p, struct runner *r,
	      struct err *err);

/* Open OUT/plots/NAME.dat and NAME.gp, new, for the caller to close, failed or
 * not. What gnuplot is to write is no pipe or link then. -errno with a text. */
int plot_open(const struct runner *r, const char *name, FILE **ret_data,
	      FILE **ret_script, struct err *err);
/* Run gnuplot on OUT/plots/NAME.gp. -ENOENT: no gnuplot, -EIO: it failed; with
 * a text. */
int plot_gnuplot(const char *name, struct runner *r, struct err *err);
/* What the script of every plot begins with. */
void plot_begin(FILE *f);
/* Draw to NAME.svg from here on. */
void plot_svg(const char *name, size_t height, FILE *f);
/* "'FILE' index I using 1:2 with linespoints ..." in the style of series I. */
void plot_series(FILE *f, const char *file, size_t i, const char *title);

/* Write the data of a plot to a stream; for tests too. The number of values. */
size_t plot_data(const struct result *res, const struct plot *p, FILE *f);

#endif
