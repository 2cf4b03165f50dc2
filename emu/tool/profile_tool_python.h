/* SPDX-License-Identifier: MIT */
/*
 * The Python part of gpemu-profile, with PyTorch: tools/measure. Its result is
 * JSON on stdout; progress and errors go to our stderr.
 */
#ifndef GPEMU_EMU_TOOL_PROFILE_TOOL_PYTHON_H
#define GPEMU_EMU_TOOL_PROFILE_TOOL_PYTHON_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"

struct python_result {
	char *text; /* its stdout, malloc'ed, NUL-terminated */
	size_t n;
	int status; /* the exit status, or 128 + the signal it died of */
	int signal; /* the signal that stopped us, for which it was ended; or 0
		     */
};

/*
 * Run `command` ("measure", "validate") of tools/measure with `options` by
 * $GPEMU_PYTHON, else by the first python3 in $PATH, or /usr/bin/python3, that
 * has PyTorch. 0: it ran; -ENODEV with a text that names the packages to
 * install. free(ret->text), failed or not.
 */
int python_run(const char *command, const json_t *options,
	       struct python_result *ret, struct err *err);

/*
 * Die of the signal that stopped the run, as if it had not been caught; does
 * nothing when there was none.
 */
void python_raise(const struct python_result *result);

#endif
