/* SPDX-License-Identifier: MIT */
#include "common/cli.h"

#include <argp.h>
#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "common/version.h"

/* Keys of argp options without a letter; above any character. */
enum { KEY_BASE = 0x1000, MAX_FIELDS = 64 };

struct parse {
	const struct cli_program *program;
	void *options;
	char **args;
	/* flags in the order given, set after --config was read */
	struct {
		const struct conf_field *field;
		const char *value;
	} * set;
	size_t n_set;
};

static bool is_option(const struct conf_field *f)
{
	return (f->type == CONF_LIST ? f->item : f->type) <= CONF_CAPACITY;
}

static const struct conf_field *field_of_key(const struct parse *p, int key)
{
	const struct conf_field *f = p->program->fields;

	for (int i = 0; f->key; f++, i++)
		if (is_option(f) &&
		    (key == KEY_BASE + i || (key && key == f->short_opt)))
			return f;
	return NULL;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct parse *p = state->input;
	const struct conf_field *f = field_of_key(p, key);

	if (f) {
		p->set[p->n_set].field = f;
		p->set[p->n_set++].value = arg ? arg : "on";
		return 0;
	}
	switch (key) {
	case ARGP_KEY_ARG:
		if (state->arg_num >=
		    p->program->n_args + p->program->n_optional)
			argp_error(state, "too many arguments: '%s'", arg);
		p->args[state->arg_num] = arg;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static void usage_error(const struct cli_program *p, const char *text)
{
	fprintf(stderr, "%s: %s\n", p->name, text);
	exit(EXIT_STATUS_USAGE);
}

/* One string per field: --help shows help text and the range. */
static void fill_argp(const struct cli_program *p, struct argp_option *o,
		      char (*names)[40])
{
	const struct conf_field *f = p->fields;

	for (int i = 0; f->key && i < MAX_FIELDS; f++, i++) {
		if (!is_option(f))
			continue;
		snprintf(names[i], sizeof(names[i]), "%s", f->key);
		for (char *c = names[i]; *c; c++)
			*c = *c == '_' ? '-' : *c;
		*o++ = (struct argp_option){
			.name = names[i],
			.key = f->short_opt ? f->short_opt : KEY_BASE + i,
			.arg = f->arg		      ? f->arg
			       : f->type == CONF_BOOL ? NULL
						      : "VALUE",
			.doc = f->help,
			.flags = f->help ? 0 : OPTION_HIDDEN,
		};
	}
}

static int print_kind(const struct cli_program *p, const struct cli_kind *k)
{
	struct err err = { 0 };
	int r = k->print(k->which, &err);

	if (r < 0)
		fprintf(stderr, "%s: %s\n", p->name, err.text);
	return r;
}

static int list_kind(const struct cli_program *p, const char *name)
{
	const struct cli_kind *k = p->kinds;
	char known[ERR_LIST] = "";

	for (; k && k->name; k++) {
		err_list(known, k->name);
		if (strcmp(k->name, name))
			continue;
		if (!k->table)
			return print_kind(p, k);
		for (size_t i = 0; k->table[i]; i++)
			printf("%-12s %s\n", k->table[i]->name,
			       k->table[i]->summary);
		return 0;
	}
	fprintf(stderr, "%s: unknown kind '%s' (known: %s)\n", p->name, name,
		known);
	return -EINVAL;
}

/* --config, then the flags; with the place or the flag in the message. */
static void apply(struct parse *p, struct cli_common *common)
{
	const struct cli_program *program = p->program;
	struct err err = { 0 };

	for (size_t i = 0; i < p->n_set; i++)
		if (!strcmp(p->set[i].field->key, "config"))
			conf_set(p->set[i].field, p->options, p->set[i].value,
				 &err);
	if (common->config &&
	    conf_load(common->config, program->fields, p->options, &err) < 0)
		usage_error(program, err.text);
	for (size_t i = 0; i < p->n_set; i++) {
		const struct conf_field one[2] = { *p->set[i].field, { 0 } };

		if (one->type == CONF_LIST)
			conf_free(one, p->options);
	}
	for (size_t i = 0; i < p->n_set; i++) {
		const struct conf_field *f = p->set[i].field;
		char name[64];

		if (conf_set(f, p->options, p->set[i].value, &err) == 0)
			continue;
		snprintf(name, sizeof(name), "--%s", f->key);
		for (char *c = name; *c; c++)
			*c = *c == '_' ? '-' : *c;
		err_prefix(&err, "%s", name);
		usage_error(program, err.text);
	}
}

static void print_version(FILE *f, struct argp_state *state)
{
	(void)state;
	fprintf(f, "gpemu %s\n", GPEMU_VERSION);
}

void cli_parse(const struct cli_program *program, int argc, char **argv,
	       void *options, char **ret_args)
{
	struct argp_option argp_options[MAX_FIELDS + 1] = { 0 };
	char names[MAX_FIELDS][40];
	_cleanup_free_ char *doc = NULL;
	struct parse p = { .program = program,
			   .options = options,
			   .args = ret_args };
	struct cli_common *common =
		(void *)((char *)options + program->common_offset);
	size_t given = 0, n_words = 1;

	/* a word may hold several short options, each needs its place */
	for (int i = 0; i < argc; i++)
		n_words += strlen(argv[i]) + 1;
	p.set = calloc(n_words, sizeof(*p.set));
	if (!p.set || asprintf(&doc, "%s\v%s", program->summary,
			       program->notes ? program->notes : "") < 0)
		usage_error(program, "out of memory");
	fill_argp(program, argp_options, names);
	for (size_t i = 0; i < program->n_args + program->n_optional; i++)
		ret_args[i] = NULL;

	struct argp argp = { .options = argp_options,
			     .parser = parse_option,
			     .args_doc = program->args,
			     .doc = doc };

	argp_err_exit_status = EXIT_STATUS_USAGE;
	argp_program_version_hook = print_version;
	argv[0] = (char *)program->name;
	argp_parse(&argp, argc, argv, 0, NULL, &p);
	apply(&p, common);
	free(p.set);
	log_init(program->name,
		 common->verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	if (common->list)
		exit(list_kind(program, common->list) < 0 ? EXIT_STATUS_USAGE
							  : EXIT_STATUS_DONE);
	if (common->dump_config)
		exit(conf_dump(program->fields, options, stdout) < 0
			     ? EXIT_STATUS_FAILED
			     : EXIT_STATUS_DONE);
	while (given < program->n_args && ret_args[given])
		given++;
	if (given < program->n_args) {
		char text[200];

		snprintf(text, sizeof(text),
			 "missing argument: usage is %s [options] %s",
			 program->name, program->args);
		usage_error(program, text);
	}
}

static void print_commands(FILE *f, const char *name, const char *summary,
			   const struct cli_command *c)
{
	fprintf(f, "Usage: %s COMMAND [options]\n%s\n\n", name, summary);
	for (; c->name; c++)
		fprintf(f, "  %-10s %s\n", c->name, c->summary);
	fprintf(f, "\n'%s COMMAND --help' tells about one command.\n", name);
}

int cli_dispatch(const char *name, const char *summary,
		 const struct cli_command *commands, int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (word && (!strcmp(word, "--help") || !strcmp(word, "-?"))) {
		print_commands(stdout, name, summary, commands);
		return EXIT_STATUS_DONE;
	}
	if (word && !strcmp(word, "--version")) {
		print_version(stdout, NULL);
		return EXIT_STATUS_DONE;
	}
	for (const struct cli_command *c = commands; word && c->name; c++)
		if (!strcmp(c->name, word))
			return c->run(argc - 1, argv + 1);
	if (word)
		fprintf(stderr, "%s: unknown command '%s'\n", name, word);
	else
		print_commands(stderr, name, summary, commands);
	return EXIT_STATUS_USAGE;
}

int cli_fail(int r, const struct err *err)
{
	log_error("%s", err->text[0] ? err->text : strerror(-r));
	switch (r) {
	case -EPERM:
	case -ENODEV:
	case -EAGAIN:
	case -ENOMEM: return EXIT_STATUS_NOT_NOW;
	default: return EXIT_STATUS_FAILED;
	}
}
