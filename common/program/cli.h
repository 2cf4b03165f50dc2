/* SPDX-License-Identifier: MIT */
/*
 * One option table per program: the conf_field table that reads its YAML is
 * also its command line, on glibc argp. A field `cache_size` is the option
 * --cache-size (and its short_opt); its help, argument name and range come
 * from the field.
 *
 *	struct options { struct cli_common common; char *storage; };
 *	static const struct conf_field fields[] = {
 *		CLI_COMMON_FIELDS(struct options, common),
 *		{ CONF_KEY(storage, CONF_STRING, struct options),
 *		  .short_opt = 's', .arg = "NAME", .help = "storage profile" },
 *		{ 0 },
 *	};
 *	static const struct cli_program program = {
 *		.name = "gpemu-fs", .args = "SOURCE MOUNTPOINT", .n_args = 2,
 *		.summary = "...", .fields = fields, .kinds = kinds };
 *
 *	struct options o = { defaults };
 *	char *args[2];
 *	cli_parse(&program, argc, argv, &o, args);
 *
 * --config FILE is read first, wherever it stands, then the flags override
 * it in their order. A list of scalars is an option to be given once for each
 * item, and overrides the whole list of the file; what else is not a scalar is
 * for YAML only.
 */
#ifndef GPEMU_COMMON_PROGRAM_CLI_H
#define GPEMU_COMMON_PROGRAM_CLI_H

#include "common/conf/conf.h"
#include "common/plugin.h"

struct cli_common {
	char *json;	  /* --json FILE: where the record goes; "-" stdout */
	char *config;	  /* --config FILE */
	char *list;	  /* --list KIND */
	uint64_t seed;	  /* --seed N */
	bool verbose;	  /* -v */
	bool dump_config; /* --dump-config */
};

#define CLI_COMMON_FIELDS(type, member)                                       \
	CLI_JSON_FIELD(type, member),                                         \
		{ "seed", CONF_UINT, offsetof(type, member.seed), .arg = "N", \
		  .help = "seed of every random stream" },                    \
		CLI_PLAIN_FIELDS(type, member)

/* Of commands that write a record, but draw no random numbers. */
#define CLI_JSON_FIELD(type, member)                                         \
	{                                                                    \
		"json", CONF_STRING, offsetof(type, member.json),            \
			.arg = "FILE", .cli_only = true,                     \
			.help = "write the record as JSON to FILE ('-' for " \
				"stdout)"                                    \
	}

/* Of all commands. */
#define CLI_PLAIN_FIELDS(type, member)                                        \
	{ "verbose",	    CONF_BOOL,	      offsetof(type, member.verbose), \
	  .short_opt = 'v', .cli_only = true, .help = "log more on stderr" }, \
		{ "config",                                                   \
		  CONF_STRING,                                                \
		  offsetof(type, member.config),                              \
		  .arg = "FILE",                                              \
		  .cli_only = true,                                           \
		  .help = "read options from a YAML file; flags override "    \
			  "it" },                                             \
		{ "dump_config", CONF_BOOL,                                   \
		  offsetof(type, member.dump_config), .cli_only = true,       \
		  .help = "print the effective configuration as YAML and "    \
			  "exit" },                                           \
	{                                                                     \
		"list", CONF_STRING, offsetof(type, member.list),             \
			.arg = "KIND[:NAME]", .cli_only = true,               \
			.help = "list the names of KIND, or the options of "  \
				"one, and exit"                               \
	}

/* A kind for --list: a plug-in table, or a function that prints. All programs
 * have one more, "profiles": a line "nic: node" for each option that names a
 * profile of a kind, for gpemu-run. */
struct cli_kind {
	const char *name;
	const struct plugin *const *table;
	/* used when there is no table: print what `which` names to stdout;
	 * 0, or -errno with a text */
	int (*print)(int which, struct err *err);
	int which;
};

struct cli_program {
	const char *name;    /* the name of the command: "gpemu-data make" */
	const char *args;    /* positional arguments for --help, or NULL */
	size_t n_args;	     /* how many of them are required */
	size_t n_optional;   /* how many more are allowed */
	const char *summary; /* --help: what it does, before the options */
	const char *notes;   /* --help: after the options, or NULL */
	const struct conf_field *fields;
	size_t common_offset;	      /* of the struct cli_common, usually 0 */
	const struct cli_kind *kinds; /* ends with a NULL name; or NULL */
	/* Key of an option that holds words with commas between them, as
	 * mount(8)'s -o: words that are options of this table ("key=value",
	 * or "key" of a switch) are taken as such, the others stay. Given
	 * several times, it holds them all. NULL: there is none. */
	const char *words;
	/* Called with the options when all of them were read, before
	 * --dump-config: fills in defaults that depend on others, and refuses
	 * what does not go together. -EINVAL with a text. NULL: nothing. */
	int (*settle)(void *options, struct err *err);
};

/*
 * Fill `options` (already holding the defaults) and `ret_args`, an array of
 * n_args + n_optional; what was not given is NULL.
 * Handles --help, --version, --list and --dump-config itself, sets the log up;
 * a usage error prints one line and exits with EXIT_STATUS_USAGE. A program
 * whose stdout could not be written exits with EXIT_STATUS_FAILED.
 * On return the positional arguments are borrowed from argv.
 * Closed descriptors among 0, 1 and 2 are opened first, here and in
 * cli_dispatch, so that files of the program do not get these numbers.
 */
void cli_parse(const struct cli_program *program, int argc, char **argv,
	       void *options, char **ret_args);

/*
 * Parse again, with the current contents of --config: fill `options`, which
 * hold the defaults and, in struct cli_common, `config`, the file to read, or
 * NULL. `parts`: that file is the user's own, and may name new files of parts
 * (common/conf/part.h). Prints nothing. -errno with a text; the options are
 * then half filled in.
 */
int cli_reload(const struct cli_program *program, bool parts, int argc,
	       char **argv, void *options, struct err *err);

/* Subcommands: run the one that argv[1] names. */
struct cli_command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv); /* argv[0] is the subcommand */
};
/* Returns the exit status; no or an unknown subcommand: usage, 2. */
int cli_dispatch(const char *name, const char *summary,
		 const struct cli_command *commands, int argc, char **argv);
/* Say on stderr that `word` is no subcommand, and which one is spelled nearly
 * like it. Returns the exit status for usage, 2. */
int cli_unknown(const char *name, const struct cli_command *commands,
		const char *word);

/*
 * Print an error, "name: text", and return the exit status for `r`, a negative
 * errno: 75 for temporarily unavailable resources (-EPERM, -ENODEV, -EAGAIN,
 * -ENOMEM), else 1.
 */
int cli_fail(int r, const struct err *err);

#endif
