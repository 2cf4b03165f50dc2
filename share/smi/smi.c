/* SPDX-License-Identifier: MIT */
/*
 * gpemu-smi: queries the state of gpemu-gpud and shows it in the style of
 * nvidia-smi; it also is nvidia-smi, where it is installed under that name.
 *
 * Rooms, in the order in which the state meets them:
 *
 *	share		the server writes it as JSON (status.c)
 *	emu/gpu		the protocol transfers it (gpud_query.h)
 *	share/smi	a table of one server (smi_table.h); or the facts of all
 *			(smi_field.h) as CSV (smi_query.h), XML and text
 *			(smi_xml.h), or lines of dmon and pmon
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/program/cli.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/gpu/gpud_query.h"
#include "share/smi/smi_field.h"
#include "share/smi/smi_query.h"
#include "share/smi/smi_table.h"
#include "share/smi/smi_xml.h"

/* --- servers -------------------------------------------------------------- */

/* The servers that gpemu-smi asks. */

/* The options that all of its commands have. */
struct smi_server {
	struct cli_common common;
	char *socket, *user;
	char *id;   /* -i, for get_facts */
	char *file; /* -f */
};

#define SMI_SERVER_FIELDS(type, member)                                      \
	{ "socket",                                                          \
	  CONF_STRING,                                                       \
	  offsetof(type, member.socket),                                     \
	  .short_opt = 'S',                                                  \
	  .arg = "PATH",                                                     \
	  .help = "where gpemu-gpud listens (default: $GPEMU_GPU_SERVER, "   \
		  "else gpemu-gpud.sock in $XDG_RUNTIME_DIR, else "          \
		  "/run/gpemu-gpud.sock for root, /tmp/gpemu-UID/gpud.sock " \
		  "for others)" },                                           \
		{ "server_user", CONF_STRING, offsetof(type, member.user),   \
		  .arg = "USER|UID",                                         \
		  .help = "also trust a server of this user (default: your " \
			  "own and root)" },                                 \
		{ "id",                                                      \
		  CONF_STRING,                                               \
		  offsetof(type, member.id),                                 \
		  .short_opt = 'i',                                          \
		  .arg = "GPU,...",                                          \
		  .cli_only = true,                                          \
		  .help = "only these GPUs: index, UUID, serial number or "  \
			  "PCI bus id" },                                    \
		{ "filename",                                                \
		  CONF_STRING,                                               \
		  offsetof(type, member.file),                               \
		  .short_opt = 'f',                                          \
		  .arg = "FILE",                                             \
		  .cli_only = true,                                          \
		  .help = "write to FILE instead of stdout" },               \
		CLI_COMMON_FIELDS(type, member.common)

enum { NO_DEVICE = 6 /* source: nvidia-smi(1), RETURN VALUE */ };

/* The first server, where only one can be asked; malloc'ed. */
static int first_server(const struct smi_server *s, char **ret_path,
			char **ret_user, struct err *err)
{
	char *path = NULL, *user = NULL;
	int r = s->socket ? 0 : gpud_given(&path, &user, err);

	if (s->socket || s->user) {
		free(user);
		user = s->user ? strdup(s->user) : NULL;
	}
	if (r == 0 && !path)
		path = s->socket ? strdup(s->socket) : gpud_default_path();
	if (r == 0 && (!path || (s->user && !user)))
		r = err_set(err, -ENOMEM, "out of memory");
	*ret_path = path;
	*ret_user = user;
	return r;
}

/* The status of the server at `path` is one more of `statuses`. */
static int ask_one(const char *path, const char *user, json_t *statuses,
		   struct err *err)
{
	json_t *status;
	int r = gpud_query(path, user, GPUD_PATIENCE_S, &status, err);

	return r == 0 ? json_array_append_new(statuses, status) : r;
}

static int ask_all(const struct smi_server *s, json_t *statuses,
		   struct err *err)
{
	_cleanup_free_ char *first = NULL, *user = NULL, *all = NULL;
	const char *given = secure_getenv("GPEMU_GPU_SERVER");
	char *at = NULL;
	int r = first_server(s, &first, &user, err);

	if (r < 0 || s->socket || !given || !given[0])
		return r < 0 ? r : ask_one(first, user, statuses, err);
	all = strdup(given);
	if (!all)
		return err_set(err, -ENOMEM, "out of memory");
	for (char *p = strtok_r(all, ":", &at); p;
	     p = strtok_r(NULL, ":", &at)) {
		if (r < 0)
			log_warn("%s", err->text);
		r = ask_one(p, user, statuses, err);
	}
	if (r < 0 && json_array_size(statuses)) {
		log_warn("%s", err->text);
		r = 0;
	}
	return r;
}

/*
 * smi_facts of all servers, $GPEMU_GPU_SERVER's or the one that was given, and
 * only of the GPUs that -i names; owned by the caller. Servers that do not
 * answer are reported; if none does, the error is that of gpud_query. -ENXIO
 * without a text: -i names a GPU that is not there, or there are none.
 */
static int get_facts(const struct smi_server *s, json_t **ret, struct err *err)
{
	json_auto_t *statuses = json_array();
	json_t *facts = NULL;
	int r = ask_all(s, statuses, err);

	if (r == 0)
		facts = smi_facts(statuses);
	if (facts && s->id)
		r = smi_pick(facts, s->id);
	if (r == 0 && json_array_size(facts) == 0)
		r = -ENXIO;
	if (r < 0)
		json_decref(facts);
	else
		*ret = facts;
	return r;
}

/* -f, or stdout; with a text. */
static int open_output(const struct smi_server *s, FILE **ret, struct err *err)
{
	int r = 0;

	if (s->file)
		r = util_output_stream(s->file, O_CREAT | O_TRUNC, ret);
	else
		*ret = stdout;
	return r < 0 ? err_set(err, r, "%s: %s", s->file, strerror(-r)) : 0;
}

/* Print why it ends; the exit status, which is nvidia-smi's 6 of -ENXIO. */
static int fail_query(int r, const struct err *err)
{
	if (r != -ENXIO || err->text[0])
		return cli_fail(r, err);
	puts("No devices were found");
	return NO_DEVICE;
}

/*
 * --- dmon and pmon --------------------------------------------------------
 *
 * `nvidia-smi dmon` and `pmon`: a line for each GPU, or process, again and
 * again.
 */

/* Of a kind that -s chooses by its letter; '-' where there is no fact. */
struct column {
	char kind;
	const char *name, *unit, *fact;
};

static const struct column gpu_columns[] = {
	{ 'p', "pwr", "W", "power_w" },
	{ 'p', "gtemp", "C", "temperature_c" },
	{ 'p', "mtemp", "C" },
	{ 'u', "sm", "%", "utilisation_pct" },
	{ 'u', "mem", "%", "zero" },
	{ 'u', "enc", "%" },
	{ 'u', "dec", "%" },
	{ 'u', "jpg", "%" },
	{ 'u', "ofa", "%" },
	{ 'c', "mclk", "MHz", "memory_clock_mhz" },
	{ 'c', "pclk", "MHz", "clock_mhz" },
	{ 'v', "pviol", "%" },
	{ 'v', "tviol", "bool" },
	{ 'm', "fb", "MB", "memory_used_mib" },
	{ 'm', "bar1", "MB" },
	{ 'm', "ccpm", "MB" },
	{ 'e', "sbecc", "errs", "ecc_errors" },
	{ 'e', "dbecc", "errs", "ecc_errors" },
	{ 'e', "pci", "errs", "zero" },
	{ 't', "rxpci", "MB/s" },
	{ 't', "txpci", "MB/s" },
	{ 0 },
};

static const struct column process_columns[] = {
	{ 'u', "sm", "%" },
	{ 'u', "mem", "%" },
	{ 'u', "enc", "%" },
	{ 'u', "dec", "%" },
	{ 'u', "jpg", "%" },
	{ 'u', "ofa", "%" },
	{ 'm', "fb", "MB", "used_mib" },
	{ 'm', "ccpm", "MB" },
	{ 0 },
};

struct monitor_options {
	struct smi_server server;
	char *kinds;
	uint64_t count;
	double delay_s;
};

static const struct conf_field monitor_fields[] = {
	{ "select", CONF_STRING, offsetof(struct monitor_options, kinds),
	  .short_opt = 's', .arg = "LETTERS", .cli_only = true,
	  .help = "groups of columns. dmon: p power and temperature, u "
		  "utilisation, c clocks, v violations, m memory, e ECC "
		  "errors, t PCIe throughput (default: puc). pmon: u, m "
		  "(default: u)" },
	{ "delay", CONF_DOUBLE, offsetof(struct monitor_options, delay_s),
	  .short_opt = 'd', .arg = "SECONDS", .cli_only = true, .min = .01,
	  .max = 86400, .help = "seconds between two samples (default: 1)" },
	{ CONF_KEY(count, CONF_UINT, struct monitor_options), .short_opt = 'c',
	  .arg = "N", .cli_only = true,
	  .help = "end after N samples (default: when interrupted)" },
	SMI_SERVER_FIELDS(struct monitor_options, server),
	{ 0 },
};

/* --- lines ---------------------------------------------------------------- */

static void put_columns(FILE *f, const struct column *c, const char *kinds,
			const json_t *facts)
{
	for (; c->kind; c++) {
		const struct smi_field field = { .fact = c->fact };
		char buf[SMI_VALUE];
		const char *value = facts ? smi_value(&field, facts, buf)
					  : NULL;

		if (strchr(kinds, c->kind))
			fprintf(f, "%7s", smi_is_error(value) ? "-" : value);
	}
}

static void put_names(FILE *f, const struct column *c, const char *kinds,
		      bool units)
{
	for (; c->kind; c++)
		if (strchr(kinds, c->kind))
			fprintf(f, "%7s", units ? c->unit : c->name);
}

static void put_gpus(FILE *f, const char *kinds, const json_t *facts)
{
	const json_t *gpu;
	size_t i;

	json_array_foreach (facts, i, gpu) {
		fprintf(f, "%5.0f", json_get_number(gpu, "index"));
		put_columns(f, gpu_columns, kinds, gpu);
		fputs(" \n", f);
	}
}

/* A GPU without a process has a line, too. */
static void put_processes(FILE *f, const char *kinds, const json_t *facts)
{
	const json_t *gpu, *all, *p;
	size_t i, k;

	json_array_foreach (facts, i, gpu) {
		double index = json_get_number(gpu, "index");

		all = json_object_get(gpu, "processes");
		json_array_foreach (all, k, p) {
			const char *name =
				json_string_value(json_object_get(p, "name"));

			fprintf(f, "%5.0f%11.0f     C", index,
				json_get_number(p, "pid"));
			put_columns(f, process_columns, kinds, p);
			fprintf(f, "    %-15.15s\n", name ? name : "-");
		}
		if (json_array_size(all) == 0) {
			fprintf(f, "%5.0f          -     -", index);
			put_columns(f, process_columns, kinds, NULL);
			fprintf(f, "    %-15s\n", "-");
		}
	}
}

static void put_head(FILE *f, const char *kinds, bool processes)
{
	const struct column *c = processes ? process_columns : gpu_columns;

	fprintf(f, "# gpu%s", processes ? "         pid   type" : "");
	put_names(f, c, kinds, false);
	fprintf(f, " %s\n# Idx%s", processes ? "   command " : "",
		processes ? "           #    C/G" : "");
	put_names(f, c, kinds, true);
	fprintf(f, " %s\n", processes ? "   name " : "");
}

/* --- the loop ------------------------------------------------------------- */

static int watch(const struct monitor_options *o, bool processes,
		 struct err *err)
{
	FILE *f;
	int r = open_output(&o->server, &f, err);

	if (r < 0)
		return r;
	for (uint64_t i = 0; r == 0 && (!o->count || i < o->count); i++) {
		json_auto_t *facts = NULL;

		if (i)
			tick_pause((uint64_t)(o->delay_s * NS_PER_S));
		r = get_facts(&o->server, &facts, err);
		if (r < 0)
			break;
		/* arbitrary: a screen, as nvidia-smi does it */
		if (i == 0 || (i % 20 == 0 && isatty(fileno(f))))
			put_head(f, o->kinds, processes);
		(processes ? put_processes : put_gpus)(f, o->kinds, facts);
		if (fflush(f) == EOF)
			r = err_set(err, -errno, "%s", strerror(errno));
	}
	if (f != stdout)
		fclose(f);
	return r;
}

static int monitor(const struct cli_program *program, const char *known,
		   bool processes, int argc, char **argv)
{
	struct monitor_options o = { .delay_s = 1 };
	struct err err = { 0 };
	int r = 0, status = EXIT_STATUS_DONE;

	cli_parse(program, argc, argv, &o, NULL);
	if (!o.kinds)
		o.kinds = strdup(processes ? "u" : "puc");
	if (!o.kinds)
		r = err_set(&err, -ENOMEM, "out of memory");
	else if (strspn(o.kinds, known) != strlen(o.kinds)) {
		log_error("-s '%s': choose letters of '%s'", o.kinds, known);
		status = EXIT_STATUS_USAGE;
	}
	if (r == 0 && status == EXIT_STATUS_DONE)
		r = watch(&o, processes, &err);
	conf_free(monitor_fields, &o);
	return r < 0 ? fail_query(r, &err) : status;
}

/* Each returns the exit status; argv[0] is its name. */
static int smi_dmon(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-smi dmon",
		.summary = "Show the load of emulated GPUs repeatedly, a line "
			   "each, as nvidia-smi dmon does.",
		.fields = monitor_fields,
	};

	return monitor(&program, "pucvmet", false, argc, argv);
}

static int smi_pmon(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-smi pmon",
		.summary = "Show the processes on emulated GPUs repeatedly, a "
			   "line each, as nvidia-smi pmon does.",
		.fields = monitor_fields,
	};

	return monitor(&program, "um", true, argc, argv);
}

struct options {
	struct smi_server server;
	struct conf_list fail, repair; /* uint64_t */
	bool watch, query, xml, list_gpus;
	bool help_query_gpu, help_query_apps;
	char *query_gpu, *query_apps, *format, *display;
	double loop_s, loop_ms;
};

static const struct conf_field fields[] = {
	SMI_SERVER_FIELDS(struct options, server),
	{ CONF_KEY(fail, CONF_LIST, struct options), .item = CONF_UINT,
	  .item_size = sizeof(uint64_t), .arg = "GPU", .cli_only = true,
	  .help = "first make a GPU fail: its jobs end with an error, and it "
		  "accepts no others" },
	{ CONF_KEY(repair, CONF_LIST, struct options), .item = CONF_UINT,
	  .item_size = sizeof(uint64_t), .arg = "GPU", .cli_only = true,
	  .help = "first repair a GPU" },
	{ CONF_KEY(watch, CONF_BOOL, struct options), .short_opt = 'w',
	  .cli_only = true,
	  .help = "refresh every SECONDS (default 1), until interrupted" },
	{ CONF_KEY(list_gpus, CONF_BOOL, struct options), .short_opt = 'L',
	  .cli_only = true, .help = "a line for each GPU: index, name, UUID" },
	{ CONF_KEY(query, CONF_BOOL, struct options), .short_opt = 'q',
	  .cli_only = true,
	  .help = "all attributes of each GPU, as nvidia-smi writes them" },
	{ "xml_format", CONF_BOOL, offsetof(struct options, xml),
	  .short_opt = 'x', .cli_only = true, .help = "with -q: as XML" },
	{ CONF_KEY(display, CONF_STRING, struct options), .short_opt = 'd',
	  .arg = "GROUP,...", .cli_only = true,
	  .help = "with -q: only these: MEMORY, UTILIZATION, ECC, TEMPERATURE, "
		  "POWER, CLOCK, COMPUTE, PIDS, PERFORMANCE, ..." },
	{ CONF_KEY(query_gpu, CONF_STRING, struct options), .arg = "FIELD,...",
	  .cli_only = true, .help = "a line with these fields for each GPU" },
	{ "query_compute_apps", CONF_STRING,
	  offsetof(struct options, query_apps), .arg = "FIELD,...",
	  .cli_only = true,
	  .help = "a line with these fields for each process on a GPU" },
	{ CONF_KEY(format, CONF_STRING, struct options),
	  .arg = "csv[,noheader][,nounits]", .cli_only = true,
	  .help = "output format, required by --query-gpu and "
		  "--query-compute-apps" },
	{ CONF_KEY(help_query_gpu, CONF_BOOL, struct options), .cli_only = true,
	  .help = "list the fields of --query-gpu" },
	{ "help_query_compute_apps", CONF_BOOL,
	  offsetof(struct options, help_query_apps), .cli_only = true,
	  .help = "list the fields of --query-compute-apps" },
	{ "loop", CONF_DOUBLE, offsetof(struct options, loop_s),
	  .short_opt = 'l', .arg = "SECONDS", .cli_only = true, .min = .01,
	  .max = 86400,
	  .help = "repeat every SECONDS (default 5), until interrupted" },
	{ CONF_KEY(loop_ms, CONF_DOUBLE, struct options), .arg = "MS",
	  .cli_only = true, .min = 1, .max = 86400000,
	  .help = "like --loop, in milliseconds; also -lms" },
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-smi",
	.args = "[SECONDS]",
	.n_optional = 1,
	.summary = "Show the emulated GPUs of gpemu-gpud, their jobs and the "
		   "queue. 'gpemu-smi dmon' and 'gpemu-smi pmon' monitor "
		   "GPUs and processes.",
	.fields = fields,
};

/* --- once ----------------------------------------------------------------- */

static int show_table(const struct options *o, FILE *f, struct err *err)
{
	_cleanup_free_ char *path = NULL, *user = NULL;
	json_auto_t *j = NULL;
	const char *file = o->server.common.json;
	int r = first_server(&o->server, &path, &user, err);

	if (r == 0)
		r = gpud_query(path, user, GPUD_PATIENCE_S, &j, err);
	if (r < 0)
		return r;
	if (o->watch && isatty(fileno(f)))
		fputs("\033[H\033[J", f); /* from the top of an empty screen */
	if (!file || strcmp(file, "-"))
		smi_table(j, f);
	fflush(f);
	return file ? json_write(j, file, err) : 0;
}

static void list_gpus(const json_t *facts, FILE *f)
{
	const json_t *gpu;
	size_t i;

	json_array_foreach (facts, i, gpu) {
		const char *name = json_string_value(
				   json_object_get(gpu, "name")),
			   *uuid = json_string_value(
				   json_object_get(gpu, "uuid"));

		fprintf(f, "GPU %.0f: %s (UUID: %s)\n",
			json_get_number(gpu, "index"), name ? name : "?",
			uuid ? uuid : "?");
	}
}

static bool is_facts(const struct options *o)
{
	return o->list_gpus || o->query || o->query_gpu || o->query_apps;
}

static int show_facts(const struct options *o, const struct smi_query *q,
		      bool first, FILE *f, struct err *err)
{
	json_auto_t *facts = NULL;
	int r = get_facts(&o->server, &facts, err);

	if (r < 0)
		return r;
	if (q->n && first)
		smi_query_header(q, f);
	if (q->n)
		smi_query_rows(q, facts, f);
	else if (o->list_gpus)
		list_gpus(facts, f);
	else
		(o->xml ? smi_xml : smi_text)(facts, o->display, f);
	return fflush(f) == EOF ? err_set(err, -errno, "%s", strerror(errno))
				: 0;
}

/* --- again and again ------------------------------------------------------ */

static int mark(const struct options *o, const struct conf_list *gpus,
		bool failed, struct err *err)
{
	_cleanup_free_ char *path = NULL, *user = NULL;
	const uint64_t *gpu = gpus->items;
	struct gpud_client c;
	int r = gpus->n ? first_server(&o->server, &path, &user, err) : 0;

	for (size_t i = 0; r == 0 && i < gpus->n; i++) {
		struct gpud_msg m = {
			.type = GPUD_MARK,
			.mark = { .gpu = (uint32_t)MIN(gpu[i], UINT32_MAX),
				  .failed = failed },
		};

		r = gpud_open(path, user, &c, err);
		if (r == 0)
			r = gpud_send(&c, &m, err);
		if (r == 0)
			r = gpud_receive(&c, &m, err);
		gpud_close(&c);
	}
	return r;
}

static int run_query(const struct options *o, const struct smi_query *q,
		     uint64_t pause_ns, struct err *err)
{
	FILE *f;
	int r = open_output(&o->server, &f, err);

	if (r < 0)
		return r;
	r = mark(o, &o->fail, true, err);
	if (r == 0)
		r = mark(o, &o->repair, false, err);
	for (bool first = true; r == 0 && (first || pause_ns); first = false) {
		if (!first)
			tick_pause(pause_ns);
		r = is_facts(o) ? show_facts(o, q, first, f, err)
				: show_table(o, f, err);
	}
	if (f != stdout && fclose(f) == EOF && r == 0)
		r = err_set(err, -errno, "%s: %s", o->server.file,
			    strerror(errno));
	return r;
}

/* --- the command line ----------------------------------------------------- */

/* nvidia-smi's spellings that argp does not know: -h, -lms, and -l without a
 * number. Malloc'ed, of *argc words; NULL: no memory. */
static char **spell(int *argc, char **argv)
{
	char **to = calloc(2 * (size_t)*argc + 1, sizeof(*to));
	int n = 0;

	for (int i = 0; to && i < *argc; i++) {
		bool last = i + 1 == *argc || argv[i + 1][0] == '-';

		if (!strcmp(argv[i], "-h"))
			to[n++] = (char *)"--help";
		else if (!strcmp(argv[i], "-lms"))
			to[n++] = (char *)"--loop-ms";
		else
			to[n++] = argv[i];
		if (last &&
		    (!strcmp(argv[i], "-l") || !strcmp(argv[i], "--loop")))
			to[n++] = (char *)"5"; /* source: nvidia-smi -h */
	}
	*argc = n;
	return to;
}

/* What goes together; the pause between two, 0: once. */
static int check_options(const struct options *o, const char *seconds,
			 uint64_t *ret_pause_ns, struct err *err)
{
	double pause = o->loop_ms > 0 ? o->loop_ms / 1000 : o->loop_s;

	if (!seconds && o->watch)
		seconds = "1";
	if (seconds && !o->watch)
		return err_set(err, -EINVAL, "'%s' is only valid with --watch",
			       seconds);
	if (!o->query && (o->xml || o->display))
		return err_set(err, -EINVAL, "-x and -d are for -q");
	if (o->list_gpus + o->query + !!o->query_gpu + !!o->query_apps > 1)
		return err_set(err, -EINVAL,
			       "-L, -q, --query-gpu and --query-compute-apps "
			       "exclude each other");
	if (o->format && !o->query_gpu && !o->query_apps)
		return err_set(err, -EINVAL, "--format is for --query-...");
	if (is_facts(o) && (o->server.common.json || o->watch))
		return err_set(err, -EINVAL,
			       "--json and --watch are for the "
			       "tables");
	if (o->server.id && !is_facts(o))
		return err_set(err, -EINVAL,
			       "-i is for -L, -q, --query-gpu, "
			       "--query-compute-apps, dmon and pmon");
	if (seconds && (units_parse_double(seconds, &pause) < 0 ||
			pause < .01 || pause > 86400))
		return err_set(err, -EINVAL,
			       "--watch '%s': seconds, from 0.01 to 86400",
			       seconds);
	*ret_pause_ns = (uint64_t)(pause * NS_PER_S);
	return smi_display_check(o->display, err);
}

static int answer(const struct options *o, const char *seconds)
{
	struct smi_query q = { .processes = o->query_apps };
	struct err err = { 0 };
	uint64_t pause_ns = 0;
	int r = check_options(o, seconds, &pause_ns, &err);

	if (r < 0) {
		log_error("%s", err.text);
		return EXIT_STATUS_USAGE;
	}
	if (o->query_gpu || o->query_apps)
		r = smi_query_parse(&q,
				    o->query_gpu ? o->query_gpu : o->query_apps,
				    o->format, &err);
	if (r < 0) {
		puts(err.text); /* on stdout, as nvidia-smi does */
		return EXIT_STATUS_USAGE;
	}
	r = run_query(o, &q, pause_ns, &err);
	return r < 0 ? fail_query(r, &err) : EXIT_STATUS_DONE;
}

int main(int argc, char **argv)
{
	_cleanup_free_ char **words = spell(&argc, argv);
	struct options o = { 0 };
	char *seconds;
	int status = EXIT_STATUS_DONE;

	if (!words)
		return EXIT_STATUS_NOT_NOW;
	if (argc > 1 && !strcmp(words[1], "dmon"))
		return smi_dmon(argc - 1, words + 1);
	if (argc > 1 && !strcmp(words[1], "pmon"))
		return smi_pmon(argc - 1, words + 1);
	cli_parse(&program, argc, words, &o, &seconds);
	if (o.help_query_gpu || o.help_query_apps)
		smi_query_help(!o.help_query_gpu, stdout);
	else
		status = answer(&o, seconds);
	conf_free(fields, &o);
	return status;
}
