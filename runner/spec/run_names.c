/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runner/spec/run_workload.h"

const char *run_program_name(enum run_program program)
{
	static const char *const names[] = { "gpemu-fs",   "gpemu-train",
					     "gpemu-data", "gpemu-gpud",
					     "exec",	   "environment" };

	return names[program];
}

bool workload_is_name(const char *s)
{
	return s[0] &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(s);
}
