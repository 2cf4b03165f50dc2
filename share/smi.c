/* SPDX-License-Identifier: MIT */
/*
 * gpemu-smi: ask gpemu-gpud for its state and show it as nvidia-smi would.
 *
 * Rooms, in the order in which the state meets them:
 *
 *	share		the server writes it as JSON (status.c, scribe.c)
 *	emu/gpu		the protocol brings it here (gpud_client.h)
 *	common		JSON, units; this file prints the tables
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "common/program/cli.h"
#include "common/json.h"
#include "common/log.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"

struct options {
	struct cli_common common;
	char *socket, *server_user;
	bool watch;
};

static const struct conf_field fields[] = {
	{ "socket", CONF_STRING, offsetof(struct options, socket),
	  .short_opt = 'S', .arg = "PATH",
	  .help = "where gpemu-gpud listens (default: gpemu-gpud.sock in "
		  "$XDG_RUNTIME_DIR, or /tmp/gpemu-UID/gpud.sock)" },
	{ "server_user", CONF_STRING, offsetof(struct options, server_user),
	  .arg = "USER|UID",
	  .help = "also trust a server of this user (default: one's own and "
		  "root's)" },
	{ "watch", CONF_BOOL, offsetof(struct options, watch), .short_opt = 'w',
	  .cli_only = true,
	  .help = "show it again every SECONDS (default 1), until "
		  "interrupted" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-smi",
	.args = "[SECONDS]",
	.n_optional = 1,
	.summary = "Show the emulated GPUs of gpemu-gpud, who uses them, and "
		   "who waits for them.",
	.fields = fields,
};

/* --- of the JSON -------------------------------------------------------------
 */

static const char *text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "?";
}

static double number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

static long long whole(const json_t *j, const char *key)
{
	return (long long)json_integer_value(json_object_get(j, key));
}

/* --- the tables -------------------------------------------------------------
 */

/* Between the outer bars. arbitrary: nvidia-smi's */
enum { WIDTH = 89 };

static void rule(const char *ends, char fill)
{
	putchar(ends[0]);
	for (int i = 0; i < WIDTH; i++)
		putchar(fill);
	putchar(ends[1]);
	putchar('\n');
}

static void row(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void row(const char *fmt, ...)
{
	char line[WIDTH + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	printf("|%-*s|\n", WIDTH, line);
}

static void show_head(const json_t *j)
{
	const json_t *s = json_object_get(j, "server");
	char at[32];

	tick_utc(at);
	printf("%s\n", at);
	rule("++", '-');
	row(" gpemu-smi %-10s Scheduler: %-8s Share: %-6s Time scale: %-8.4g "
	    "Clients: %lld",
	    text(json_object_get(j, "gpemu"), "version"), text(s, "scheduler"),
	    text(s, "share"), number(s, "time_scale"), whole(s, "clients"));
	rule("||", '-');
}

static void show_gpus(const json_t *j)
{
	json_t *g;
	size_t i;

	row(" GPU  Name                              Memory-Usage | GPU-Util "
	    " Jobs  Lanes  Running ");
	rule("||", '=');
	json_array_foreach (json_object_get(j, "gpus"), i, g)
		row(" %3lld  %-24.24s %8.0fMiB / %6.0fMiB | %6.0f %%  %4lld  "
		    "%5lld  %7lld",
		    whole(g, "index"), text(g, "name"),
		    number(g, "memory_used_mib"), number(g, "memory_total_mib"),
		    100 * number(g, "utilisation"), whole(g, "jobs"),
		    whole(g, "lanes"), whole(g, "running"));
	rule("++", '-');
}

static bool is_queued(const json_t *p)
{
	return !strcmp(text(p, "state"), "queued");
}

static void show_process(const json_t *p, const char *gpu, const char *lane)
{
	char iterations[48];

	if (whole(p, "expected"))
		snprintf(iterations, sizeof(iterations), "%lld/%lld",
			 whole(p, "iterations"), whole(p, "expected"));
	else
		snprintf(iterations, sizeof(iterations), "%lld",
			 whole(p, "iterations"));
	row(" %5s %4s %8lld  %-7s  %-14.14s %-16.16s %13s %6.0fMiB", gpu, lane,
	    whole(p, "pid"), text(p, "state"), text(p, "name"),
	    text(p, "model"), iterations, number(p, "peak_mib"));
}

/* A line for each GPU of a process, as nvidia-smi has it. */
static void show_processes(const json_t *j)
{
	const json_t *all = json_object_get(j, "processes");
	json_t *p, *g;
	size_t i, k, queued = 0;

	rule("++", '-');
	row(" Processes:");
	row("   GPU Lane      PID  State    Process name   Model              "
	    "Iterations GPU Memory ");
	rule("||", '=');
	json_array_foreach (all, i, p)
		json_array_foreach (json_object_get(p, "gpus"), k, g) {
			char gpu[24], lane[24];

			snprintf(gpu, sizeof(gpu), "%lld",
				 (long long)json_integer_value(g));
			snprintf(lane, sizeof(lane), "%lld",
				 (long long)json_integer_value(json_array_get(
					 json_object_get(p, "lanes"), k)));
			show_process(p, gpu, lane);
		}
	json_array_foreach (all, i, p)
		if (is_queued(p)) {
			char gpus[24];

			if (queued++ == 0) {
				rule("||", '-');
				row(" Queue (GPUs wanted):");
			}
			snprintf(gpus, sizeof(gpus), "x%lld",
				 whole(p, "wanted_gpus"));
			show_process(p, gpus, "-");
		}
	if (json_array_size(all) == 0)
		row("  No running processes found");
	rule("++", '-');
}

/* --- asking ------------------------------------------------------------------
 */

/* On a connection of its own: the server keeps none that asks for nothing. */
static int ask(const char *path, const struct options *o, json_t **ret,
	       struct err *err)
{
	struct gpud_msg m = { .type = GPUD_QUERY };
	struct gpud_client c;
	json_error_t e;
	int r = gpud_open(path, o->server_user, &c, err);

	if (r == 0)
		r = gpud_send(&c, &m, err);
	if (r == 0)
		r = gpud_receive(&c, &m, err);
	if (r == 0 && m.type == GPUD_STATUS)
		*ret = json_loadb(m.status.json, m.status.n, 0, &e);
	gpud_close(&c);
	if (r == 0 && !*ret)
		r = err_set(err, -EPROTO, "%s: an answer that is no status",
			    path);
	return r;
}

static int show_once(const char *path, const struct options *o, struct err *err)
{
	json_auto_t *j = NULL;
	const char *file = o->common.json;
	int r = ask(path, o, &j, err);

	if (r < 0)
		return r;
	if (o->watch && isatty(STDOUT_FILENO))
		printf("\033[H\033[J"); /* from the top of an empty screen */
	if (!file || strcmp(file, "-")) {
		show_head(j);
		show_gpus(j);
		show_processes(j);
	}
	fflush(stdout);
	return file ? json_write(j, file, err) : 0;
}

static int run(const struct options *o, uint64_t pause_ns, struct err *err)
{
	_cleanup_free_ char *path = o->socket ? strdup(o->socket)
					      : gpud_default_path();
	int r;

	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	r = show_once(path, o, err);
	while (r == 0 && o->watch) {
		tick_pause(pause_ns);
		r = show_once(path, o, err);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct err err = { 0 };
	double pause = 1;
	char *seconds;
	int r = 0;

	cli_parse(&program, argc, argv, &o, &seconds);
	if (seconds && !o.watch)
		r = err_set(&err, -EINVAL, "'%s' is of use with --watch",
			    seconds);
	else if (seconds && (units_parse_double(seconds, &pause) < 0 ||
			     pause < .01 || pause > 86400))
		r = err_set(&err, -EINVAL,
			    "--watch '%s': seconds, from 0.01 to 86400",
			    seconds);
	if (r < 0) {
		log_error("%s", err.text);
		conf_free(fields, &o);
		return EXIT_STATUS_USAGE;
	}
	r = run(&o, (uint64_t)(pause * NS_PER_S), &err);
	conf_free(fields, &o);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
