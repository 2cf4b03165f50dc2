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
 *			(smi_xml.h), or lines (smi_monitor.h)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/gpu/gpud_query.h"
#include "share/smi/smi_monitor.h"
#include "share/smi/smi_query.h"
#include "share/smi/smi_server.h"
#include "share/smi/smi_table.h"
#include "share/smi/smi_xml.h"

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
	{ "fail", CONF_LIST, offsetof(struct options, fail), .item = CONF_UINT,
	  .item_size = sizeof(uint64_t), .arg = "GPU", .cli_only = true,
	  .help = "first make a GPU fail: its jobs end with an error, and it "
		  "accepts no others" },
	{ "repair", CONF_LIST, offsetof(struct options, repair),
	  .item = CONF_UINT, .item_size = sizeof(uint64_t), .arg = "GPU",
	  .cli_only = true, .help = "first repair a GPU" },
	{ "watch", CONF_BOOL, offsetof(struct options, watch), .short_opt = 'w',
	  .cli_only = true,
	  .help = "refresh every SECONDS (default 1), until interrupted" },
	{ "list_gpus", CONF_BOOL, offsetof(struct options, list_gpus),
	  .short_opt = 'L', .cli_only = true,
	  .help = "a line for each GPU: index, name, UUID" },
	{ "query", CONF_BOOL, offsetof(struct options, query), .short_opt = 'q',
	  .cli_only = true,
	  .help = "all attributes of each GPU, as nvidia-smi writes them" },
	{ "xml_format", CONF_BOOL, offsetof(struct options, xml),
	  .short_opt = 'x', .cli_only = true, .help = "with -q: as XML" },
	{ "display", CONF_STRING, offsetof(struct options, display),
	  .short_opt = 'd', .arg = "GROUP,...", .cli_only = true,
	  .help = "with -q: only these: MEMORY, UTILIZATION, ECC, TEMPERATURE, "
		  "POWER, CLOCK, COMPUTE, PIDS, PERFORMANCE, ..." },
	{ "query_gpu", CONF_STRING, offsetof(struct options, query_gpu),
	  .arg = "FIELD,...", .cli_only = true,
	  .help = "a line with these fields for each GPU" },
	{ "query_compute_apps", CONF_STRING,
	  offsetof(struct options, query_apps), .arg = "FIELD,...",
	  .cli_only = true,
	  .help = "a line with these fields for each process on a GPU" },
	{ "format", CONF_STRING, offsetof(struct options, format),
	  .arg = "csv[,noheader][,nounits]", .cli_only = true,
	  .help = "output format, required by --query-gpu and "
		  "--query-compute-apps" },
	{ "help_query_gpu", CONF_BOOL, offsetof(struct options, help_query_gpu),
	  .cli_only = true, .help = "list the fields of --query-gpu" },
	{ "help_query_compute_apps", CONF_BOOL,
	  offsetof(struct options, help_query_apps), .cli_only = true,
	  .help = "list the fields of --query-compute-apps" },
	{ "loop", CONF_DOUBLE, offsetof(struct options, loop_s),
	  .short_opt = 'l', .arg = "SECONDS", .cli_only = true, .min = .01,
	  .max = 86400,
	  .help = "repeat every SECONDS (default 5), until interrupted" },
	{ "loop_ms", CONF_DOUBLE, offsetof(struct options, loop_ms),
	  .arg = "MS", .cli_only = true, .min = 1, .max = 86400000,
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

/* --- once ---------------------------------------------------------------- */

static int show_table(const struct options *o, FILE *f, struct err *err)
{
	_cleanup_free_ char *path = NULL, *user = NULL;
	json_auto_t *j = NULL;
	const char *file = o->server.common.json;
	int r = smi_server_first(&o->server, &path, &user, err);

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
	int r = smi_server_facts(&o->server, &facts, err);

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

/* --- again and again ----------------------------------------------------- */

static int mark(const struct options *o, const struct conf_list *gpus,
		bool failed, struct err *err)
{
	_cleanup_free_ char *path = NULL, *user = NULL;
	const uint64_t *gpu = gpus->items;
	struct gpud_client c;
	int r = gpus->n ? smi_server_first(&o->server, &path, &user, err) : 0;

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

static int run(const struct options *o, const struct smi_query *q,
	       uint64_t pause_ns, struct err *err)
{
	FILE *f;
	int r = smi_server_output(&o->server, &f, err);

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

/* --- the command line ---------------------------------------------------- */

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
static int check(const struct options *o, const char *seconds,
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
	int r = check(o, seconds, &pause_ns, &err);

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
	r = run(o, &q, pause_ns, &err);
	return r < 0 ? smi_server_fail(r, &err) : EXIT_STATUS_DONE;
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
