/* SPDX-License-Identifier: MIT */
/* The subcommands of gpemu-profile; each returns an exit status. */
#ifndef GPEMU_EMU_PROFILE_TOOL_H
#define GPEMU_EMU_PROFILE_TOOL_H

#include <stdio.h>

#include "common/cli.h"
#include "emu/profile.h"

/* Where text for people goes: stdout, or nowhere when --json takes that. */
FILE *profile_tool_out(const struct cli_common *common);
void profile_tool_out_close(FILE **f);

/* The kind that a word names, or -ENOENT. */
int profile_tool_kind(const char *word);
/* The kind of a file, by what stands in it. */
int profile_tool_kind_of_file(const char *path, enum profile_kind *ret,
			      struct err *err);

int profile_tool_list(int argc, char **argv);
int profile_tool_show(int argc, char **argv);
int profile_tool_check(int argc, char **argv);
int profile_tool_fit(int argc, char **argv);
int profile_tool_import(int argc, char **argv);
int profile_tool_verify(int argc, char **argv);

#endif
