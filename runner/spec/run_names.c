/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "runner/spec/run_workload.h"

static const struct {
	const char *name, *word;
} programs[] = {
	[RUN_FS] = { "gpemu-fs", "fs" },
	[RUN_TRAIN] = { "gpemu-train", "train" },
	[RUN_DATA] = { "gpemu-data", "dataset" },
	[RUN_GPUD] = { "gpemu-gpud", "gpud" },
	[RUN_PREPD] = { "gpemu-prepd", "prepd" },
	[RUN_S3] = { "gpemu-s3", "s3" },
	[RUN_EXEC] = { "exec", "exec" },
	[RUN_ENV] = { "environment", "env" },
};

const char *run_program_name(enum run_program program)
{
	return programs[program].name;
}

const char *run_program_word(enum run_program program)
{
	return programs[program].word;
}

bool workload_is_name(const char *s)
{
	return s[0] &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(s);
}
