/* SPDX-License-Identifier: MIT */
/*
 * Drawings in files, by gnuplot(1).
 *
 *	FILE *script;
 *	int r = gnuplot_begin(path, 900, 560, &script, err);
 *	if (r == 0) {
 *		fputs("plot x\n", script);
 *		r = gnuplot_draw(script, path, err);
 *	}
 */
#ifndef GPEMU_COMMON_PROGRAM_GNUPLOT_H
#define GPEMU_COMMON_PROGRAM_GNUPLOT_H

#include <stdio.h>

#include "common/err.h"
#include "common/program/child.h"

/* -EINVAL with a text: the name ends neither in .svg nor .png nor .pdf. */
int gnuplot_check(const char *path, struct err *err);
/*
 * A script that draws `width` by `height` points in the kind of file that
 * `path` is, which is made: the terminal is set, the commands are the caller's.
 * -EINVAL, -errno with a text.
 */
int gnuplot_begin(const char *path, unsigned width, unsigned height, FILE **ret,
		  struct err *err);
/* Run the script, and close it; what it draws goes to `path`. The signals of
 * `struct stop` end gnuplot, and then this process, and stay blocked after it.
 * Called while there is only one thread. -ENOENT: there is no gnuplot;
 * -ETIMEDOUT; -errno; with a text. */
int gnuplot_draw(FILE *script, const char *path, struct err *err);
/*
 * Run gnuplot on `script`, a file as seen from `folder` (NULL: from here); what
 * it prints goes to the descriptors. -ENOENT: there is no gnuplot, and
 * `instead` says what to do; -EINTR: `stop` came; -ETIMEDOUT; -errno; with a
 * text. -EIO: it failed, without one.
 */
int gnuplot_run(const char *folder, const char *script, int out_fd, int err_fd,
		struct stop *stop, const char *instead, struct err *err);
/* A text in quotes. */
void gnuplot_quote(const char *text, FILE *script);

/* A unit of time for an axis. */
struct gnuplot_scale {
	const char *unit;
	double seconds;
};

/* The unit in which times up to `longest_s` are numbers that one reads. */
struct gnuplot_scale gnuplot_scale(double longest_s);

/* Colours that readers with any colour vision tell apart, and from white:
 * "#rrggbb". Source: Okabe and Ito, "Color universal design", 2008. */
enum { GNUPLOT_COLOURS = 7 };
extern const char *const gnuplot_colours[GNUPLOT_COLOURS];

#endif
