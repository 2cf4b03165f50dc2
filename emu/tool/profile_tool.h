/* SPDX-License-Identifier: MIT */
/* The subcommands of gpemu-profile; each returns an exit status. */
#ifndef GPEMU_EMU_TOOL_PROFILE_TOOL_H
#define GPEMU_EMU_TOOL_PROFILE_TOOL_H

#include <jansson.h>
#include <stdio.h>

#include "common/program/cli.h"
#include "emu/import/import.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_gpu.h"

/* A subcommand with its options and arguments read. Text goes to `f`, which is
 * none if --json uses stdout; *ret, unless it stays NULL, is the record.
 * Returns an exit status, or -errno with a text; -EDOM: a usage error. */
typedef int (*profile_tool_fn)(void *options, char **args, FILE *f,
			       json_t **ret, struct err *err);

/* A subcommand whose options begin with a struct cli_common: parse the command
 * line into `options`, which hold the defaults, and `args`; call `run`; write
 * its record, if any, where --json says; release the options. Returns the exit
 * status. */
int profile_tool_run(const struct cli_program *program, int argc, char **argv,
		     void *options, char **args, profile_tool_fn run);

/* The options of subcommands that have none of their own. */
extern const struct conf_field profile_tool_common_fields[];

/* The kind of a file, by its contents. */
int profile_tool_kind_of_file(const char *path, enum profile_kind *ret,
			      struct err *err);

/* One line about a profile, which is read as a whole. -errno with a text. */
int profile_tool_describe(enum profile_kind kind, const char *name, char *line,
			  size_t size, struct err *err);
/* The page of docs/ on the database, as Markdown. -errno with a text. */
int profile_tool_page(FILE *f, struct err *err);

/* The profile as YAML to a file, or to stdout when `path` is NULL. */
int profile_tool_save(const char *bytes, size_t n, const char *path,
		      struct err *err);
int profile_tool_write(const struct gpu_profile *p, const char *path,
		       struct err *err);

/* A GPU's profile, or a model of it, or a step of BATCH samples, as text to `f`
 * and as JSON; `model` and `batch` as given, or NULL. -ENOENT: no such model;
 * -EDOM: no such batch size; with a text. */
int profile_tool_show_gpu(const struct gpu_profile *p, const char *model,
			  const char *batch, FILE *f, json_t **ret,
			  struct err *err);

/* Options that more than one subcommand has. */
#define PROFILE_TOOL_FILE(member, type, text)                       \
	{                                                           \
		CONF_KEY(member, CONF_STRING, type), .arg = "FILE", \
						     .help = text   \
	}
#define PROFILE_TOOL_FORMAT(type)                                              \
	{                                                                      \
		CONF_KEY(format, CONF_STRING, type),                           \
			.arg = "NAME[:OPTIONS]", .check = import_check,        \
			.help = "format of the tables (default: the one that " \
				"knows the file; --list format)"               \
	}
#define PROFILE_TOOL_TABLE_OPTIONS(type)                                       \
	PROFILE_TOOL_FILE(memory_from, type,                                   \
			  "table of another GPU, for the models whose own "    \
			  "memory cells are impossible"),                      \
	{                                                                      \
		CONF_KEY(tolerance_pct, CONF_DOUBLE, type),                    \
			.arg = "PCT", .min = 0.05, .max = 50,                  \
			.help = "largest deviation of a line from a measured " \
				"point, unless the noise is larger (default "  \
				"1)"                                           \
	}

int profile_tool_list(int argc, char **argv);
int profile_tool_show(int argc, char **argv);
int profile_tool_check(int argc, char **argv);
int profile_tool_fit(int argc, char **argv);
int profile_tool_import(int argc, char **argv);
int profile_tool_new(int argc, char **argv);
int profile_tool_measure(int argc, char **argv);
/* measure with --storage, which has options of its own */
int profile_tool_measure_storage(int argc, char **argv);
int profile_tool_validate(int argc, char **argv);
int profile_tool_verify(int argc, char **argv);

#endif
