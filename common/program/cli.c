/* SPDX-License-Identifier: MIT */
#include "common/program/cli.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/conf/part.h"
#include "common/conf/plugin_choice.h"
#include "common/log.h"
#include "common/util.h"
#include "common/version.h"
#include "common/word.h"

/* Keys of argp options without a letter; above any character. */
enum { KEY_BASE = 0x1000, NAME_ROOM = 40 };

struct parse {
	const struct cli_program *program;
	void *options;
	char **args;
	/* flags in the order given, set after --config was read */
	struct {
		const struct conf_field *field;
		const char *value;
		char *owned; /* value, where it is not argv's */
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

static void add_option(struct parse *p, const struct conf_field *f,
		       const char *value)
{
	p->set[p->n_set].field = f;
	p->set[p->n_set++].value = value;
}

static void add_owned(struct parse *p, const struct conf_field *f, char *value)
{
	p->set[p->n_set].owned = value;
	add_option(p, f, value);
}

/* --- options within an option ------------------------------------------- */

/* The field of "key=value", or of the "key" of a switch; else NULL. */
static const struct conf_field *field_of_word(const struct parse *p,
					      const char *word)
{
	size_t n = strcspn(word, "=");
	const struct conf_field *f = p->program->fields;

	for (; f->key; f++) {
		bool known = !f->cli_only || !strcmp(f->key, "config") ||
			     !strcmp(f->key, "verbose");
		size_t i = 0;

		if (!known || !is_option(f) ||
		    !strcmp(f->key, p->program->words) ||
		    (!word[n] && f->type != CONF_BOOL))
			continue;
		while (i < n && (f->key[i] == word[i] ||
				 (f->key[i] == '_' && word[i] == '-')))
			i++;
		if (i == n && !f->key[n])
			return f;
	}
	return NULL;
}

/* The end of a word: a comma without a backslash before it. */
static size_t word_length(const char *s)
{
	size_t n = 0;

	while (s[n] && s[n] != ',')
		n += s[n] == '\\' && s[n + 1] ? 2 : 1;
	return n;
}

static char *unescaped(const char *s)
{
	char *copy = strdup(s), *to = copy;

	for (; copy && *s; s++) {
		if (*s == '\\' && s[1])
			s++;
		*to++ = *s;
	}
	if (copy)
		*to = 0;
	return copy;
}

/* The value given for this field so far, or NULL. */
static const char *given(const struct parse *p, const struct conf_field *f)
{
	const char *value = NULL;

	for (size_t i = 0; i < p->n_set; i++)
		if (p->set[i].field == f)
			value = p->set[i].value;
	return value;
}

static int add_words(struct parse *p, const struct conf_field *f,
		     const char *arg)
{
	const char *before = given(p, f);
	char *left = NULL;
	size_t n_left = 0;
	FILE *out = open_memstream(&left, &n_left);

	if (!out)
		return ENOMEM;
	fputs(before ? before : "", out);
	while (*arg) {
		size_t n = word_length(arg);
		_cleanup_free_ char *word = strndup(arg, n);
		const struct conf_field *own = word ? field_of_word(p, word)
						    : NULL;
		const char *value = own ? strchr(word, '=') : NULL;

		fflush(out);
		if (own)
			add_owned(p, own, value ? unescaped(value + 1) : NULL);
		else if (word && *word)
			fprintf(out, "%s%s", n_left ? "," : "", word);
		arg += n + (arg[n] == ',');
	}
	fclose(out);
	add_owned(p, f, left);
	return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct parse *p = state->input;
	const struct conf_field *f = field_of_key(p, key);

	if (f && arg && p->program->words && !strcmp(f->key, p->program->words))
		return add_words(p, f, arg);
	if (f) {
		add_option(p, f, arg);
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
	log_init(p->name, LOG_LEVEL_WARN);
	log_error("%s", text);
	exit(EXIT_STATUS_USAGE);
}

/* argp sorts by these numbers, with its own --help last. A group that is named
 * again goes on. */
static int group_number(const struct conf_field *fields,
			const struct conf_field *f)
{
	const char *name = "";
	int n = 0;

	for (const struct conf_field *g = fields; g <= f; g++)
		name = g->group ? g->group : name;
	if (!*name)
		return -2;
	for (const struct conf_field *g = fields; g->key; g++) {
		const struct conf_field *first = fields;

		if (!g->group || !*g->group)
			continue;
		while (!first->group || strcmp(first->group, g->group))
			first++;
		n += first == g;
		if (!strcmp(g->group, name))
			break;
	}
	return n;
}

/* The headings of groups, if there are any: returns where options begin. */
static struct argp_option *fill_headings(const struct cli_program *p,
					 struct argp_option *o)
{
	int most = 0;

	for (const struct conf_field *f = p->fields; f->key; f++) {
		int n = group_number(p->fields, f);

		if (n <= most)
			continue;
		most = n;
		*o++ = (struct argp_option){ .doc = f->group, .group = n };
	}
	if (most > 0)
		*o++ = (struct argp_option){ .doc = "Output and configuration:",
					     .group = -2 };
	return o;
}

/* One string per field: --help shows help text and the range. */
static void fill_argp(const struct cli_program *p, struct argp_option *o,
		      char (*names)[NAME_ROOM])
{
	const struct conf_field *f = p->fields;

	o = fill_headings(p, o);
	for (int i = 0; f->key; f++, i++) {
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
			.group = group_number(p->fields, f),
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

/* All plug-ins of a kind; `rest` ":NAME": the options of one. */
static int list_table(const struct cli_program *p, const struct cli_kind *k,
		      const char *rest)
{
	const struct plugin *one;
	struct err err = { 0 };

	if (!*rest) {
		plugin_table_print(k->table, stdout);
		return 0;
	}
	one = plugin_find(k->table, k->name, rest + 1, &err);
	if (one)
		plugin_options_print(one, stdout);
	else
		fprintf(stderr, "%s: %s\n", p->name, err.text);
	return one ? 0 : -EINVAL;
}

/* The options that name a profile, and its kind, as YAML. */
static int list_profiles(const struct cli_program *p)
{
	for (const struct conf_field *f = p->fields; f->key; f++)
		if (f->profile)
			printf("%s: %s\n", f->key, f->profile);
	return 0;
}

static int list_kind(const struct cli_program *p, const char *name)
{
	const struct cli_kind *k = p->kinds;
	size_t n = strcspn(name, ":");
	struct word_list words = WORD_LIST(name, n);
	struct err err = { 0 };

	if (!strcmp(name, "profiles"))
		return list_profiles(p);
	for (; k && k->name; k++) {
		word_list_add(&words, k->name);
		if (strncmp(k->name, name, n) || k->name[n] ||
		    (name[n] && !k->table))
			continue;
		if (!k->table)
			return print_kind(p, k);
		return list_table(p, k, name + n);
	}
	word_unknown(&words, "kind", &err);
	fprintf(stderr, "%s: %s\n", p->name, err.text);
	return -EINVAL;
}

static int set_flag(const struct parse *p, size_t i, struct err *err)
{
	const struct conf_field *f = p->set[i].field;
	const char *value = p->set[i].value;
	char name[64];
	int r = conf_set(f, p->options, value ? value : "on", err);

	if (r == 0)
		return 0;
	snprintf(name, sizeof(name), "--%s", f->key);
	for (char *c = name; *c; c++)
		*c = *c == '_' ? '-' : *c;
	err_prefix(err, "%s", name);
	return r;
}

/* --config, then the flags; with the place or the flag in the message. A
 * `config` that the options already hold stays. */
static int apply(struct parse *p, struct err *err)
{
	const struct cli_program *program = p->program;
	struct cli_common *common =
		(void *)((char *)p->options + program->common_offset);
	bool keep = common->config;
	int r = 0;

	for (size_t i = 0; r == 0 && !keep && i < p->n_set; i++)
		if (!strcmp(p->set[i].field->key, "config"))
			r = set_flag(p, i, err);
	if (r == 0 && common->config)
		r = conf_load(common->config, program->fields, p->options, err);
	/* a given list replaces the whole list */
	for (size_t i = 0; r == 0 && i < p->n_set; i++) {
		const struct conf_field one[2] = { *p->set[i].field, { 0 } };

		if (one->type == CONF_LIST)
			conf_free(one, p->options);
	}
	for (size_t i = 0; r == 0 && i < p->n_set; i++)
		if (strcmp(p->set[i].field->key, "config"))
			r = set_flag(p, i, err);
	return r == 0 && program->settle ? program->settle(p->options, err) : r;
}

static void print_version(FILE *f, struct argp_state *state)
{
	(void)state;
	fprintf(f, "gpemu %s (%s)\n", GPEMU_RELEASE, GPEMU_VERSION);
}

/* A heading has no name. */
static bool more(const struct argp_option *o)
{
	return o->name || o->doc;
}

/* Does the option that begins at `name`, of `n` letters, take the next word? */
static bool takes_next(const struct argp_option *o, const char *name, size_t n)
{
	for (; more(o); o++)
		if (o->name && !strncmp(o->name, name, n) && !o->name[n])
			return o->arg && name[n] != '=';
	return false;
}

/* The same of a word of letters: "-vb". */
static bool letters_take_next(const struct argp_option *options,
			      const char *letters)
{
	for (; *letters; letters++)
		for (const struct argp_option *o = options; more(o); o++)
			if (o->key == *letters && o->arg)
				return !letters[1];
	return false;
}

/* An option that is none: its hint, else "". An abbreviation, which argp
 * completes or calls ambiguous, is one. */
static void option_hint(const struct argp_option *o, const char *name,
			struct word_list *ret)
{
	static const char *const others[] = { "help", "usage", "version" };
	size_t n = strcspn(name, "=");
	struct word_list words = WORD_LIST(name, n);

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strncmp(others[i], name, n))
			return;
	for (; more(o); o++) {
		char dashed[NAME_ROOM + 2];

		if (!o->name) /* a heading */
			continue;
		if (!strncmp(o->name, name, n))
			return;
		snprintf(dashed, sizeof(dashed), "--%s", o->name);
		if (!(o->flags & OPTION_HIDDEN))
			word_list_add(&words, dashed);
	}
	*ret = words;
}

/* Stop at an unknown option that is like another; argp reports others. */
static void check_names(const struct cli_program *p, int argc, char **argv,
			const struct argp_option *o)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		struct word_list words = { 0 };
		char text[256];

		if (argv[i][0] != '-')
			continue;
		if (argv[i][1] != '-') {
			i += letters_take_next(o, argv[i] + 1);
			continue;
		}
		option_hint(o, argv[i] + 2, &words);
		snprintf(text, sizeof(text), "unknown option '--%.*s'%s",
			 (int)MIN(words.length, 64), words.given, words.hint);
		if (words.hint[0])
			usage_error(p, text);
		i += takes_next(o, argv[i] + 2, strcspn(argv[i] + 2, "="));
	}
}

/* Options and arguments into `p`, whose `set` is to be released. */
static int run_argp(struct parse *p, int argc, char **argv, unsigned flags)
{
	const struct cli_program *program = p->program;
	_cleanup_free_ struct argp_option *argp_options = NULL;
	_cleanup_free_ char(*names)[NAME_ROOM] = NULL;
	_cleanup_free_ char *doc = NULL;
	size_t n_words = 1, n = 0;

	/* a word may hold several options, each needs its place */
	for (int i = 0; i < argc; i++)
		n_words += strlen(argv[i]) + 1;
	while (program->fields[n].key)
		n++;
	p->set = calloc(n_words, sizeof(*p->set));
	/* a heading may come before each, and the general one */
	argp_options = calloc(2 * n + 2, sizeof(*argp_options));
	names = calloc(n + 1, sizeof(*names));
	if (!p->set || !argp_options || !names ||
	    asprintf(&doc, "%s\v%s", program->summary,
		     program->notes ? program->notes : "") < 0)
		return -ENOMEM;
	fill_argp(program, argp_options, names);
	if (!flags)
		check_names(program, argc, argv, argp_options);

	struct argp argp = { .options = argp_options,
			     .parser = parse_option,
			     .args_doc = program->args,
			     .doc = doc };

	return -argp_parse(&argp, argc, argv, flags, NULL, p);
}

static void parse_fini(struct parse *p)
{
	for (size_t i = 0; i < p->n_set; i++)
		free(p->set[i].owned);
	free(p->set);
}

int cli_reload(const struct cli_program *program, bool parts, int argc,
	       char **argv, void *options, struct err *err)
{
	_cleanup_free_ char **args = calloc(
		program->n_args + program->n_optional + 1, sizeof(*args));
	_cleanup_(parse_fini) struct parse p = { .program = program,
						 .options = options,
						 .args = args };
	int r = args ? run_argp(&p, argc, argv, ARGP_SILENT) : -ENOMEM;

	part_files_allow(parts);
	if (r == 0)
		r = apply(&p, err);
	part_files_allow(false);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

/* Fail if the output could not be written, for example on a full disk. Exit
 * handlers registered later have run by now. */
static void check_stdout(void)
{
	bool failed = ferror(stdout);

	errno = 0;
	if (fflush(stdout) == 0 && !failed)
		return;
	log_error("stdout: %s",
		  errno ? strerror(errno) : "the output is incomplete");
	_exit(EXIT_STATUS_FAILED);
}

/* Reopen closed descriptors 0, 1 and 2: a file or socket of ours with such a
 * number would receive messages, or be closed by a daemon. stdin is opened for
 * writing and stdout for reading, so that using them stays an error. */
static void open_missing(const char *name)
{
	static const int flags[] = { O_WRONLY, O_RDONLY, O_WRONLY };

	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* open(2) returns the lowest free number, which is this one */
		if (open("/dev/null", flags[fd]) == fd)
			continue;
		fprintf(stderr,
			"%s: descriptor %d is closed and /dev/null "
			"cannot be opened: %s\n",
			name, fd, strerror(errno));
		exit(EXIT_STATUS_NOT_NOW);
	}
}

void cli_parse(const struct cli_program *program, int argc, char **argv,
	       void *options, char **ret_args)
{
	struct parse p = { .program = program,
			   .options = options,
			   .args = ret_args };
	struct cli_common *common =
		(void *)((char *)options + program->common_offset);
	struct err err = { 0 };
	size_t given_args = 0;

	open_missing(program->name);
	part_files_allow(true);
	for (size_t i = 0; i < program->n_args + program->n_optional; i++)
		ret_args[i] = NULL;
	argp_err_exit_status = EXIT_STATUS_USAGE;
	argp_program_version_hook = print_version;
	atexit(check_stdout);
	argv[0] = (char *)program->name;
	if (run_argp(&p, argc, argv, 0) < 0)
		usage_error(program, "out of memory");
	if (apply(&p, &err) < 0)
		usage_error(program, err.text);
	parse_fini(&p);
	log_init(program->name,
		 common->verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	if (common->list)
		exit(list_kind(program, common->list) < 0 ? EXIT_STATUS_USAGE
							  : EXIT_STATUS_DONE);
	part_files_allow(false);
	if (common->dump_config)
		exit(conf_dump(program->fields, options, stdout) < 0
			     ? EXIT_STATUS_FAILED
			     : EXIT_STATUS_DONE);
	while (given_args < program->n_args && ret_args[given_args])
		given_args++;
	if (given_args < program->n_args) {
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
	fprintf(f, "\n'%s COMMAND --help' describes one command.\n", name);
}

int cli_unknown(const char *name, const struct cli_command *commands,
		const char *word)
{
	struct word_list words = WORD_LIST(word, strlen(word));

	for (const struct cli_command *c = commands; c->name; c++)
		word_list_add(&words, c->name);
	fprintf(stderr, "%s: unknown command '%s'", name, word);
	if (words.hint[0])
		fprintf(stderr, "%s\n", words.hint);
	else
		fprintf(stderr, "; '%s --help' lists all\n", name);
	return EXIT_STATUS_USAGE;
}

int cli_dispatch(const char *name, const char *summary,
		 const struct cli_command *commands, int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	open_missing(name);
	atexit(check_stdout);
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
		return cli_unknown(name, commands, word);
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
