/* SPDX-License-Identifier: MIT */
#include "common/program/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/units.h"
#include "common/util.h"

static const char *const suffixes[] = { ".svg", ".png", ".pdf" };
enum { SVG, PNG, PDF };

static int kind_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	for (int i = 0; dot && i < (int)ARRAY_SIZE(suffixes); i++)
		if (!strcmp(dot, suffixes[i]))
			return i;
	return -EINVAL;
}

int gnuplot_check(const char *path, struct err *err)
{
	return kind_of(path) >= 0
		       ? 0
		       : err_set(err, -EINVAL,
				 "%s: a plot file must end in .svg, .png or "
				 ".pdf",
				 path);
}

/* A PNG has three pixels for two points; 900 points are 7 inches of PDF, the
 * width of a page with two columns, where letters have 7 points. */
static void set_terminal(int kind, unsigned width, unsigned height, FILE *f)
{
	if (kind == SVG)
		fprintf(f, "set terminal svg size %u,%u background 'white'\n",
			width, height);
	else if (kind == PNG)
		fprintf(f, "set terminal pngcairo size %u,%u fontscale 1.4\n",
			width * 3 / 2, height * 3 / 2);
	else
		fprintf(f,
			"set terminal pdfcairo size %.2fin,%.2fin fontscale "
			".6\n",
			width * 7 / 900., height * 7 / 900.);
}

void gnuplot_quote(const char *text, FILE *script)
{
	fputc('\'', script);
	for (; *text; text++)
		fputs(*text == '\'' ? "''" : (char[]){ *text, 0 }, script);
	fputc('\'', script);
}

const char *const gnuplot_colours[GNUPLOT_COLOURS] = {
	"#000000", "#0072b2", "#d55e00", "#009e73",
	"#cc79a7", "#56b4e9", "#e69f00",
};

struct gnuplot_scale gnuplot_scale(double longest_s)
{
	static const struct gnuplot_scale scales[] = {
		{ "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 }
	};
	size_t i = 0;

	/* arbitrary: labels of two or three digits */
	while (i + 1 < ARRAY_SIZE(scales) && longest_s < 10 * scales[i].seconds)
		i++;
	return scales[i];
}

int gnuplot_begin(const char *path, unsigned width, unsigned height, FILE **ret,
		  struct err *err)
{
	_cleanup_fclose_ FILE *script = NULL;
	_cleanup_close_ int fd = -1;
	int r = gnuplot_check(path, err);

	if (r < 0)
		return r;
	/* gnuplot's own error has five lines */
	fd = util_open_output(path, O_CREAT | O_TRUNC);
	if (fd < 0)
		return err_set(err, fd, "%s: %s", path, strerror(-fd));
	script = tmpfile();
	if (!script)
		return err_set(err, -errno, "plot: %s", strerror(errno));
	set_terminal(kind_of(path), width, height, script);
	*ret = TAKE_PTR(script);
	return 0;
}

/* arbitrary: it draws the largest charts in less than a minute */
enum { TIMEOUT_S = 120 };

/* `env -C` and not chdir: the paths of this process may be relative. */
int gnuplot_run(const char *folder, const char *script, int out_fd, int err_fd,
		struct stop *stop, const char *instead, struct err *err)
{
	char *const argv[] = { (char *)"env",  (char *)"-C",
			       (char *)folder, (char *)"gnuplot",
			       (char *)script, NULL };
	struct child child;
	int status = 0, r;

	r = child_start(&child, folder ? argv : argv + 3, NULL, out_fd, err_fd,
			NULL);
	if (r == 0)
		r = child_wait(&child, stop, TIMEOUT_S * NS_PER_S, &status);
	child_end(&child, NS_PER_S);
	/* 127, of env(1): not found */
	if (r == -ENOENT || (folder && status == 127))
		return err_set(err, -ENOENT, "gnuplot is not installed: %s",
			       instead);
	if (r == -ETIMEDOUT)
		return err_set(err, r, "gnuplot did not end within %d s",
			       TIMEOUT_S);
	if (r < 0)
		return err_set(err, r, "gnuplot: %s", strerror(-r));
	return status ? -EIO : 0;
}

static int copy(int from, const char *path, struct err *err)
{
	_cleanup_close_ int fd = util_open_output(path, O_CREAT | O_TRUNC);
	_cleanup_free_ char *bytes = NULL;
	size_t n;
	int r = MIN(fd, 0);

	if (r == 0 && lseek(from, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = util_read_whole(from, SIZE_MAX, &bytes, &n);
	if (r == 0)
		r = util_write_all(fd, bytes, n);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

/*
 * gnuplot does not notice that it could not write: it draws into memory. Its
 * standard input is empty, so it opens the script, which has no name, through
 * the descriptor of this process.
 */
int gnuplot_draw(FILE *script, const char *path, struct err *err)
{
	_cleanup_close_ int drawn = memfd_create("plot", MFD_CLOEXEC);
	struct stop stop = { .fd = -1 };
	sigset_t before;
	char name[64];
	int r = drawn < 0
			? err_set(err, -errno, "%s: %s", path, strerror(errno))
			: 0;

	sigprocmask(SIG_BLOCK, NULL, &before);
	if (r == 0)
		r = stop_init(&stop, err);
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", getpid(),
		 fileno(script));
	fflush(stdout); /* a signal would lose what it holds */
	if (r == 0 && fflush(script))
		r = err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (r == 0)
		r = gnuplot_run(NULL, name, drawn, STDERR_FILENO, &stop,
				"install it, or leave out --plot", err);
	if (r == 0)
		r = copy(drawn, path, err);
	fclose(script);
	if (stop.fd >= 0)
		stop_came(&stop);
	stop_fini(&stop);
	stop_raise(&stop);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r < 0 ? err_set(err, r, "gnuplot failed") : 0;
}
