/* SPDX-License-Identifier: MIT */
/*
 * gpemu: one command for all programs. `gpemu NAME` execs gpemu-NAME, so that
 * its process, exit status and signals are those of the program.
 *
 * Rooms, in the order in which a command line passes them:
 *
 *	common/program	--help, --version, unknown names
 *	command		finds the program, or its manual page
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/program/cli.h"
#include "common/util.h"

static int launch(int argc, char **argv);
static int help(int argc, char **argv);

static const struct cli_command commands[] = {
	{ "run", "run an experiment: a grid of mounts and training runs",
	  launch },
	{ "fs", "mount a dataset behind an emulated storage device and a cache",
	  launch },
	{ "train", "train an emulated GPU on a dataset, and account for time",
	  launch },
	{ "exec", "run a PyTorch script, unmodified, on an emulated GPU",
	  launch },
	{ "record", "watch a PyTorch script on its device, to repeat it here",
	  launch },
	{ "s3", "serve a dataset as a bucket of an emulated object store",
	  launch },
	{ "data", "make, pack and describe datasets", launch },
	{ "profile", "show, check and measure profiles of devices", launch },
	{ "cachesim", "compute hit ratios of cache policies, without I/O",
	  launch },
	{ "sched", "schedule jobs on a cluster of GPUs, simulated", launch },
	{ "prepd", "prepare batches outside of the trainer", launch },
	{ "gpud", "share emulated GPUs between processes", launch },
	{ "smi", "show the GPUs of gpud and who uses them", launch },
#ifdef GPEMU_WITH_K8S
	{ "k8s-plugin", "hand out the GPUs of gpud to containers of Kubernetes",
	  launch },
#endif
	{ "part", "write and check a cache policy, sampler, ... of your own",
	  launch },
	{ "slurm", "write the configuration of Slurm for the GPUs of a node",
	  launch },
	{ "help", "open the manual page of a command: help NAME", help },
	{ 0 },
};

/* The folder of this executable, links resolved. Malloc'ed; NULL: unknown. */
static char *own_folder(void)
{
	char *exe = util_program();

	return exe ? dirname(exe) : NULL; /* changes `exe` */
}

/*
 * Exec gpemu-NAME: beside this program, else in libexec, else in the bin of the
 * wheel that it is of, else in $PATH. Returns only on failure: -ENOENT, there
 * is none; -errno.
 */
static int become(const char *name, char **argv)
{
	_cleanup_free_ char *beside = own_folder(), *of_wheel = NULL;

	if (!beside ||
	    asprintf(&of_wheel, "%s/" UTIL_WHEEL_UP "/../bin", beside) < 0)
		of_wheel = NULL;
	const char *const folders[] = { beside, GPEMU_LIBEXEC, of_wheel };
	char *given = argv[0], program[NAME_MAX + 1], path[PATH_MAX];

	if (strchr(name, '/') ||
	    (size_t)snprintf(program, sizeof(program), "gpemu-%s", name) >=
		    sizeof(program))
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		if (!folders[i] ||
		    (size_t)snprintf(path, sizeof(path), "%s/%s", folders[i],
				     program) >= sizeof(path))
			continue;
		argv[0] = path;
		execv(path, argv);
		argv[0] = given;
		if (errno != ENOENT)
			return -errno;
	}
	argv[0] = program;
	execvp(program, argv);
	argv[0] = given;
	return -errno;
}

static int launch(int argc, char **argv)
{
	int r = become(argv[0], argv);

	(void)argc;
	fprintf(stderr, "gpemu: gpemu-%s: %s\n", argv[0],
		r == -ENOENT ? "neither in the folder of gpemu nor in PATH: is "
			       "it installed?"
			     : strerror(-r));
	return EXIT_STATUS_FAILED;
}

/* Paths of a page relative to the programs: in a build folder, installed, and
 * as distributions install it. Arguments: folder, section, page. */
static const char *const page_places[] = {
	"%1$s/docs/%3$s.%2$c",
	"%1$s/../share/man/man%2$c/%3$s.%2$c",
	"%1$s/../share/man/man%2$c/%3$s.%2$c.gz",
};

static bool find_page(const char *page, char path[PATH_MAX])
{
	_cleanup_free_ char *folder = own_folder();

	for (const char *section = "13"; folder && *section; section++)
		for (size_t i = 0; i < ARRAY_SIZE(page_places); i++)
			if (snprintf(path, PATH_MAX, page_places[i], folder,
				     *section, page) < PATH_MAX &&
			    access(path, R_OK) == 0)
				return true;
	return false;
}

static bool is_command(const char *word)
{
	for (const struct cli_command *c = commands; c->name; c++)
		if (!strcmp(c->name, word))
			return true;
	return false;
}

/* gpemu help [NAME]; NAME may also be a page: gpemu-fs, libgpemu. */
static int help(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "gpemu";
	bool is_page = !strncmp(name, "gpemu", 5) || !strcmp(name, "libgpemu");
	char page[NAME_MAX + 1], path[PATH_MAX];

	if (argc > 2) {
		fprintf(stderr, "gpemu: help takes one name\n");
		return EXIT_STATUS_USAGE;
	}
	snprintf(page, sizeof(page), "%s%s", is_page ? "" : "gpemu-", name);
	if (find_page(page, path))
		execlp("man", "man", "-l", path, NULL);
	/* without the page, or without man(1), show its --help */
	if (strncmp(page, "gpemu-", 6) == 0) {
		char *args[] = { page + 6, (char *)"--help", NULL };

		if (is_command(page + 6)) {
			fprintf(stderr,
				"gpemu: no manual page of %s is installed; "
				"this is its --help\n",
				page);
			return launch(2, args);
		}
		become(page + 6, args);
		return cli_unknown("gpemu", commands, page + 6);
	}
	fprintf(stderr, "gpemu: no manual page of %s is installed\n", page);
	return EXIT_STATUS_FAILED;
}

int main(int argc, char **argv)
{
	char *list[] = { argv[0], (char *)"--help", NULL };

	/* a gpemu-NAME installed by the user */
	if (argc > 1 && argv[1][0] != '-' && !is_command(argv[1]))
		become(argv[1], argv + 1);
	return cli_dispatch("gpemu",
			    "A testbed for data-loading research without GPUs. "
			    "'gpemu NAME' runs gpemu-NAME.",
			    commands, argc > 1 ? argc : 2,
			    argc > 1 ? argv : list);
}
