/* SPDX-License-Identifier: MIT */
#include "share/smi/smi_table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "common/json.h"
#include "common/tick.h"
#include "emu/gpu/gpud_query.h"

/* --- of the JSON ---------------------------------------------------------- */

static const char *text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "?";
}

static long long whole(const json_t *j, const char *key)
{
	return (long long)json_integer_value(json_object_get(j, key));
}

/* --- the tables ----------------------------------------------------------- */

/* Between the outer bars. arbitrary: nvidia-smi's */
enum { WIDTH = 89 };

static void rule(FILE *f, const char *ends, char fill)
{
	fputc(ends[0], f);
	for (int i = 0; i < WIDTH; i++)
		fputc(fill, f);
	fputc(ends[1], f);
	fputc('\n', f);
}

static void row(FILE *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void row(FILE *f, const char *fmt, ...)
{
	char line[WIDTH + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(f, "|%-*s|\n", WIDTH, line);
}

/* What k jobs that take turns have of the GPU together, k the last of the
 * table. */
static void show_slicing(const json_t *slicing, FILE *f)
{
	const json_t *rows = json_object_get(slicing, "rows");
	const json_t *last = json_array_get(rows, json_array_size(rows) - 1);

	if (!last)
		row(f, " Time slicing costs nothing: %s",
		    text(slicing, "reason"));
	else
		row(f, " Time slicing: %s (%s): %lld jobs have %.3f of the GPU",
		    text(slicing, "profile"), text(slicing, "reason"),
		    (long long)json_integer_value(json_array_get(last, 0)),
		    json_real_value(json_array_get(last, 1)));
}

static void show_head(const json_t *j, FILE *f)
{
	const json_t *s = json_object_get(j, "server");
	char at[32];

	tick_utc(at);
	fprintf(f, "%s\n", at);
	rule(f, "++", '-');
	/* scripts look for these words */
	row(f,
	    " NVIDIA-SMI " GPUD_DRIVER ".%-12s Driver Version: " GPUD_DRIVER
	    ".%-12s CUDA Version: " GPUD_CUDA,
	    text(json_object_get(j, "gpemu"), "version"),
	    text(json_object_get(j, "gpemu"), "version"));
	row(f,
	    " gpemu-smi %-10s Scheduler: %-8s Share: %-6s Time scale: %-8.4g "
	    "Clients: %lld",
	    text(json_object_get(j, "gpemu"), "version"), text(s, "scheduler"),
	    text(s, "share"), json_get_number(s, "time_scale"),
	    whole(s, "clients"));
	show_slicing(json_object_get(s, "slicing"), f);
	rule(f, "||", '-');
}

static void show_gpus(const json_t *j, FILE *f)
{
	json_t *g;
	size_t i;

	row(f,
	    " GPU  Name                              Memory-Usage | GPU-Util "
	    " Jobs  Lanes  Running ");
	rule(f, "||", '=');
	json_array_foreach (json_object_get(j, "gpus"), i, g) {
		char busy[24] = "  ERR!  "; /* nvidia-smi's word */

		if (!json_is_false(json_object_get(g, "healthy")))
			snprintf(busy, sizeof(busy), "%6.0f %%",
				 100 * json_get_number(g, "utilisation"));
		row(f,
		    " %3lld  %-24.24s %6.0fMiB / %6.0fMiB | %8s  %4lld  %5lld  "
		    "%7lld",
		    whole(g, "index"), text(g, "name"),
		    json_get_number(g, "memory_used_mib"),
		    json_get_number(g, "memory_total_mib"), busy,
		    whole(g, "jobs"), whole(g, "lanes"), whole(g, "running"));
		if (whole(g, "part_milli"))
			row(f, "      Granted of its time: %5.1f %%",
			    (double)whole(g, "part_milli") / 10);
	}
	rule(f, "++", '-');
}

static bool is_queued(const json_t *p)
{
	return !strcmp(text(p, "state"), "queued");
}

static void show_process(const json_t *p, const char *gpu, const char *lane,
			 FILE *f)
{
	char iterations[48];

	if (whole(p, "expected"))
		snprintf(iterations, sizeof(iterations), "%lld/%lld",
			 whole(p, "iterations"), whole(p, "expected"));
	else
		snprintf(iterations, sizeof(iterations), "%lld",
			 whole(p, "iterations"));
	row(f, " %5s %4s %8lld  %-7s  %-14.14s %-16.16s %13s %6.0fMiB", gpu,
	    lane, whole(p, "pid"), text(p, "state"), text(p, "name"),
	    text(p, "model"), iterations, json_get_number(p, "peak_mib"));
}

/* A line for each GPU of a process, as nvidia-smi has it. */
static void show_processes(const json_t *j, FILE *f)
{
	const json_t *all = json_object_get(j, "processes");
	json_t *p, *g;
	size_t i, k, queued = 0;

	rule(f, "++", '-');
	row(f, " Processes:");
	row(f,
	    "   GPU Lane      PID  State    Process name   Model              "
	    "Iterations GPU Memory ");
	rule(f, "||", '=');
	json_array_foreach (all, i, p)
		json_array_foreach (json_object_get(p, "gpus"), k, g) {
			char gpu[24], lane[24];

			snprintf(gpu, sizeof(gpu), "%lld",
				 (long long)json_integer_value(g));
			snprintf(lane, sizeof(lane), "%lld",
				 (long long)json_integer_value(json_array_get(
					 json_object_get(p, "lanes"), k)));
			show_process(p, gpu, lane, f);
		}
	json_array_foreach (all, i, p)
		if (is_queued(p)) {
			char gpus[24];

			if (queued++ == 0) {
				rule(f, "||", '-');
				row(f, " Queue (GPUs wanted):");
			}
			snprintf(gpus, sizeof(gpus), "x%lld",
				 whole(p, "wanted_gpus"));
			show_process(p, gpus, "-", f);
		}
	if (json_array_size(all) == 0)
		row(f, "  No running processes found");
	rule(f, "++", '-');
}

void smi_table(const json_t *j, FILE *f)
{
	show_head(j, f);
	show_gpus(j, f);
	show_processes(j, f);
}
