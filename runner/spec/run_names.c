/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runner/spec/run_workload.h"

const char *run_program_name(enum run_program program)
{
	static const char *const names[] = {
		[RUN_FS] = "gpemu-fs",	     [RUN_TRAIN] = "gpemu-train",
		[RUN_DATA] = "gpemu-data",   [RUN_GPUD] = "gpemu-gpud",
		[RUN_PREPD] = "gpemu-prepd", [RUN_S3] = "gpemu-s3",
		[RUN_EXEC] = "exec",	     [RUN_ENV] = "environment",
	};

	return names[program];
}

const char *run_program_word(enum run_program program)
{
	static const char *const words[] = {
		[RUN_FS] = "fs",	[RUN_TRAIN] = "train",
		[RUN_DATA] = "dataset", [RUN_GPUD] = "gpud",
		[RUN_PREPD] = "prepd",	[RUN_S3] = "s3",
		[RUN_EXEC] = "exec",	[RUN_ENV] = "env",
	};

	return words[program];
}

bool workload_is_name(const char *s)
{
	return s[0] &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(s);
}
