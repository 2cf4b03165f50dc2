/* SPDX-License-Identifier: MIT */
/* The files of a plot, and the program that draws them. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"
#include "runner/page/run_plot.h"

/* arbitrary: gnuplot draws such files in well under a second */
#define GNUPLOT_TIMEOUT_NS (60 * NS_PER_S)

/* gnuplot would wait for the reader of a pipe there, and write through a link.
 */
static void clear(const char *drawing)
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
	clear(svg);
	clear(png);
	return 0;
}

/* `env -C` and not chdir: the paths of this process may be relative. */
int plot_gnuplot(const char *name, struct runner *r, struct err *err)
{
	_cleanup_free_ char *folder = util_join(r->out, "plots");
	_cleanup_free_ char *script = util_text("%s.gp", name);
	_cleanup_free_ char *log = runner_path(r, "logs", name, "gnuplot");
	_cleanup_close_ int fd = -1;
	struct child child;
	int status = 0, code;

	if (!log || !folder || !script)
		return -ENOMEM;
	char *argv[] = { (char *)"/usr/bin/env", (char *)"-C", folder,
			 (char *)"gnuplot",	 script,       NULL };

	fd = util_new_file(log, 0);
	if (fd < 0)
		return err_set(err, fd, "%s: %s", log, strerror(-fd));
	code = child_start(&child, argv, NULL, fd, fd, err);
	if (code == 0)
		code = child_wait(&child, &r->stop, GNUPLOT_TIMEOUT_NS,
				  &status);
	child_end(&child, NS_PER_S);
	if (code < 0)
		return err_set(err, code, "gnuplot: %s", strerror(-code));
	if (status == 127) /* env(1): not found */
		return err_set(err, -ENOENT,
			       "gnuplot is not installed: run 'gnuplot %s' in "
			       "%s on a machine that has it",
			       script, folder);
	return status ? err_set(err, -EIO, "gnuplot failed, see %s", log) : 0;
}
