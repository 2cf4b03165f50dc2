/* SPDX-License-Identifier: MIT */
#include "share/smi/smi_monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "share/smi/smi_field.h"
#include "share/smi/smi_server.h"

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

struct options {
	struct smi_server server;
	char *kinds;
	uint64_t count;
	double delay_s;
};

static const struct conf_field fields[] = {
	{ "select", CONF_STRING, offsetof(struct options, kinds),
	  .short_opt = 's', .arg = "LETTERS", .cli_only = true,
	  .help = "groups of columns. dmon: p power and temperature, u "
		  "utilisation, c clocks, v violations, m memory, e ECC "
		  "errors, t PCIe throughput (default: puc). pmon: u, m "
		  "(default: u)" },
	{ "delay", CONF_DOUBLE, offsetof(struct options, delay_s),
	  .short_opt = 'd', .arg = "SECONDS", .cli_only = true, .min = .01,
	  .max = 86400, .help = "seconds between two samples (default: 1)" },
	{ "count", CONF_UINT, offsetof(struct options, count), .short_opt = 'c',
	  .arg = "N", .cli_only = true,
	  .help = "end after N samples (default: when interrupted)" },
	SMI_SERVER_FIELDS(struct options, server),
	{ 0 },
};

/* --- lines --------------------------------------------------------------- */

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

/* --- the loop ------------------------------------------------------------ */

static int watch(const struct options *o, bool processes, struct err *err)
{
	FILE *f;
	int r = smi_server_output(&o->server, &f, err);

	if (r < 0)
		return r;
	for (uint64_t i = 0; r == 0 && (!o->count || i < o->count); i++) {
		json_auto_t *facts = NULL;

		if (i)
			tick_pause((uint64_t)(o->delay_s * NS_PER_S));
		r = smi_server_facts(&o->server, &facts, err);
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
	struct options o = { .delay_s = 1 };
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
	conf_free(fields, &o);
	return r < 0 ? smi_server_fail(r, &err) : status;
}

int smi_dmon(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-smi dmon",
		.summary = "Show the load of emulated GPUs repeatedly, a line "
			   "each, as nvidia-smi dmon does.",
		.fields = fields,
	};

	return monitor(&program, "pucvmet", false, argc, argv);
}

int smi_pmon(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-smi pmon",
		.summary = "Show the processes on emulated GPUs repeatedly, a "
			   "line each, as nvidia-smi pmon does.",
		.fields = fields,
	};

	return monitor(&program, "um", true, argc, argv);
}
