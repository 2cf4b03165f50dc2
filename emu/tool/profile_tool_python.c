/* SPDX-License-Identifier: MIT */
#include "emu/tool/profile_tool_python.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "common/program/child.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/profile.h"

/* Time for a running training step, which cannot be interrupted, to end.
 * Arbitrary: all measured points are on disk already. */
#define GRACE_NS (5 * NS_PER_S)

/* Finds the module without loading it, which would take seconds. */
static const char *const HAS_TORCH = "import importlib.util as u, sys\n"
				     "sys.exit(u.find_spec('torch') is None)\n";

static int run_argv(char *const argv[], int out_fd, int err_fd,
		    struct stop *stop, int *ret_status, struct err *err)
{
	struct child child;
	int r = child_start(&child, argv, NULL, out_fd, err_fd, err);

	if (r < 0)
		return r;
	r = child_wait(&child, stop, 0, ret_status);
	if (r == -EINTR)
		*ret_status = child_end(&child, GRACE_NS);
	return r;
}

/* 1 or 0; -EINTR: a stop signal came. */
static int has_torch(char *python, struct stop *stop)
{
	char *argv[] = { python, (char *)"-c", (char *)HAS_TORCH, NULL };
	_cleanup_close_ int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int status = 1, r;

	if (null_fd < 0)
		return -errno;
	r = run_argv(argv, null_fd, null_fd, stop, &status, NULL);
	return r == -EINTR ? r : r == 0 && status == 0;
}

/* The first python3 of a list of folders that has PyTorch, or NULL. */
static int search(const char *folders, struct stop *stop, char **ret)
{
	while (folders) {
		_cleanup_free_ char *path = NULL;
		const char *end = strchrnul(folders, ':');
		int r;

		path = util_text("%.*s/python3", (int)(end - folders), folders);
		if (!path)
			return -ENOMEM;
		r = access(path, X_OK) == 0 ? has_torch(path, stop) : 0;
		if (r < 0)
			return r;
		if (r) {
			*ret = TAKE_PTR(path);
			return 0;
		}
		folders = *end ? end + 1 : NULL;
	}
	return 0;
}

static int find_python(struct stop *stop, char **ret, struct err *err)
{
	const char *chosen = getenv("GPEMU_PYTHON");
	int r;

	*ret = NULL;
	if (chosen && chosen[0]) {
		*ret = strdup(chosen);
		if (!*ret)
			return -ENOMEM;
		r = has_torch(*ret, stop);
	} else {
		r = search(getenv("PATH"), stop, ret);
		if (r == 0 && !*ret)
			r = search("/usr/bin", stop, ret);
		if (r == 0)
			r = *ret != NULL;
	}
	if (r != 0)
		return r < 0 ? r : 0;
	free(TAKE_PTR(*ret));
	return err_set(err, -ENODEV,
		       "%s has no PyTorch: install python3-torch and "
		       "python3-torchvision, or set GPEMU_PYTHON to a Python "
		       "that has them",
		       chosen && chosen[0] ? chosen : "python3");
}

int python_run(const char *command, const json_t *options,
	       struct python_result *ret, struct err *err)
{
	_cleanup_free_ char *python = NULL, *program = NULL, *text = NULL;
	_cleanup_close_ int fd = memfd_create("result", MFD_CLOEXEC);
	struct stop stop;
	int r;

	*ret = (struct python_result){ 0 };
	if (fd < 0)
		return err_set(err, -errno, "memfd: %s", strerror(errno));
	text = json_dumps(options, 0);
	if (!text)
		return -ENOMEM;
	r = profile_beside_executable("../tools/measure",
				      "../share/gpemu/measure", &program, err);
	if (r < 0)
		return r;
	r = stop_init(&stop, err);
	if (r < 0)
		return r;
	r = find_python(&stop, &python, err);
	if (r == 0) {
		/* -B: writes no compiled files beside the program */
		char *argv[] = { python,	  (char *)"-B", program,
				 (char *)command, text,		NULL };

		r = run_argv(argv, fd, STDERR_FILENO, &stop, &ret->status, err);
	}
	if (r == -EINTR) {
		ret->signal = stop.signal;
		r = 0;
	} else if (r == 0) {
		/* the child has moved on in it */
		lseek(fd, 0, SEEK_SET);
		r = util_read_whole(fd, SIZE_MAX, &ret->text, &ret->n);
	}
	stop_fini(&stop);
	return r;
}

void python_raise(const struct python_result *result)
{
	struct stop stop = { .fd = -1, .signal = result->signal };

	stop_raise(&stop);
}
