/* SPDX-License-Identifier: MIT */
/*
 * The layout is that of nvsmi_device_v12.dtd; tools read elements by name and
 * ignore those that are missing, so only those are here that some tool is known
 * to read, or that have a value.
 */
#include "share/smi/smi_xml.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "common/tick.h"
#include "common/util.h"
#include "emu/gpu/gpud_query.h"

/* --- XML ----------------------------------------------------------------- */

struct xml {
	FILE *f;
	int depth;
};

/* Is the character at `s`, valid UTF-8, one of XML 1.0? Source: its section
 * 2.2, Char */
static bool is_char(const unsigned char *s)
{
	if (s[0] < ' ')
		return s[0] == '\t' || s[0] == '\n' || s[0] == '\r';
	/* U+FFFE and U+FFFF */
	return !(s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe);
}

static void escape(FILE *f, const char *text)
{
	static const char special[] = "&<>\"'";
	static const char *const entities[] = { "&amp;", "&lt;", "&gt;",
						"&quot;", "&apos;" };

	while (*text) {
		const char *c = strchr(special, *text);
		size_t n = MAX(util_utf8(text), 1);

		if (c)
			fputs(entities[c - special], f);
		else if (is_char((const unsigned char *)text))
			fwrite(text, 1, n, f);
		else
			fputc('?', f);
		text += n;
	}
}

static void begin(struct xml *x, const char *name)
{
	fprintf(x->f, "%*s<%s>\n", 4 * x->depth++, "", name);
}

static void end(struct xml *x, const char *name)
{
	fprintf(x->f, "%*s</%s>\n", 4 * --x->depth, "", name);
}

static void leaf(struct xml *x, const char *name, const char *text)
{
	fprintf(x->f, "%*s<%s>", 4 * x->depth, "", name);
	escape(x->f, text);
	fprintf(x->f, "</%s>\n", name);
}

/* Leaves of the same text; `names` ends with a NULL. */
static void leaves(struct xml *x, const char *const *names, const char *text)
{
	for (; *names; names++)
		leaf(x, *names, text);
}

#define LEAVES(x, text, ...) \
	leaves(x, (const char *const[]){ __VA_ARGS__, NULL }, text)

/* A number with its unit; 0 is not known. */
static void amount(struct xml *x, const char *name, double value,
		   const char *fmt)
{
	char text[64];

	snprintf(text, sizeof(text), fmt, value);
	leaf(x, name, value > 0 ? text : "N/A");
}

/* The same, where 0 is a value. */
static void count(struct xml *x, const char *name, double value,
		  const char *unit)
{
	char text[64];

	snprintf(text, sizeof(text), "%.0f%s", value, unit);
	leaf(x, name, text);
}

/* --- of the JSON --------------------------------------------------------- */

static const char *text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	return s ? s : "N/A";
}

static double number(const json_t *j, const char *key)
{
	return json_number_value(json_object_get(j, key));
}

/* --- a GPU --------------------------------------------------------------- */

/* What nvidia-smi writes for a value of a GPU that does not answer. */
static const char lost[] = "GPU is lost";

static bool is_lost(const json_t *g)
{
	return json_is_false(json_object_get(g, "healthy"));
}

static void show_card(struct xml *x, const json_t *g)
{
	leaf(x, "product_name", text(g, "name"));
	LEAVES(x, "N/A", "product_brand", "product_architecture");
	LEAVES(x, "Disabled", "display_mode", "display_active");
	leaf(x, "persistence_mode", "Enabled");
	begin(x, "mig_mode");
	LEAVES(x, "N/A", "current_mig", "pending_mig");
	end(x, "mig_mode");
	leaf(x, "mig_devices", "None");
	leaf(x, "accounting_mode", "Disabled");
	leaf(x, "serial", text(g, "serial"));
	leaf(x, "uuid", text(g, "uuid"));
	count(x, "minor_number", number(g, "index"), "");
	leaf(x, "vbios_version", "N/A");
	begin(x, "gpu_virtualization_mode");
	leaf(x, "virtualization_mode", "None");
	leaf(x, "host_vgpu_mode", "N/A");
	end(x, "gpu_virtualization_mode");
}

static void show_pci(struct xml *x, const json_t *g)
{
	const json_t *board = json_object_get(g, "board");
	double gen = number(board, "pcie_generation"),
	       width = number(board, "pcie_width");
	unsigned domain = 0, bus = 0, device = 0;
	char part[16];

	sscanf(text(g, "pci_bus_id"), "%x:%x:%x", &domain, &bus, &device);
	begin(x, "pci");
	snprintf(part, sizeof(part), "%02X", bus);
	leaf(x, "pci_bus", part);
	snprintf(part, sizeof(part), "%02X", device);
	leaf(x, "pci_device", part);
	snprintf(part, sizeof(part), "%04X", domain);
	leaf(x, "pci_domain", part);
	leaf(x, "pci_bus_id", text(g, "pci_bus_id"));
	LEAVES(x, "N/A", "pci_device_id", "pci_sub_system_id");
	begin(x, "pci_gpu_link_info");
	begin(x, "pcie_gen");
	amount(x, "max_link_gen", gen, "%.0f");
	amount(x, "current_link_gen", gen, "%.0f");
	end(x, "pcie_gen");
	begin(x, "link_widths");
	amount(x, "max_link_width", width, "%.0fx");
	amount(x, "current_link_width", width, "%.0fx");
	end(x, "link_widths");
	end(x, "pci_gpu_link_info");
	LEAVES(x, "N/A", "tx_util", "rx_util");
	end(x, "pci");
}

static void show_load(struct xml *x, const json_t *g)
{
	double total = number(g, "memory_total_mib"),
	       usable = number(g, "memory_usable_mib"),
	       used = number(g, "memory_used_mib");

	leaf(x, "fan_speed", "N/A");
	leaf(x, "performance_state", is_lost(g) ? lost : "P0");
	begin(x, "clocks_event_reasons");
	leaf(x, "clocks_event_reason_gpu_idle",
	     number(g, "running") > 0 ? "Not Active" : "Active");
	end(x, "clocks_event_reasons");
	begin(x, "fb_memory_usage");
	count(x, "total", total, " MiB");
	count(x, "reserved", total - usable, " MiB");
	count(x, "used", used, " MiB");
	count(x, "free", usable - used, " MiB");
	end(x, "fb_memory_usage");
	begin(x, "bar1_memory_usage");
	LEAVES(x, "N/A", "total", "used", "free");
	end(x, "bar1_memory_usage");
	leaf(x, "compute_mode", "Default");
	begin(x, "utilization");
	if (is_lost(g))
		leaf(x, "gpu_util", lost);
	else
		count(x, "gpu_util", 100 * number(g, "utilisation"), " %");
	LEAVES(x, "N/A", "memory_util", "encoder_util", "decoder_util",
	       "jpeg_util", "ofa_util");
	end(x, "utilization");
	begin(x, "ecc_mode");
	LEAVES(x, "N/A", "current_ecc", "pending_ecc");
	end(x, "ecc_mode");
}

static void show_clocks(struct xml *x, const char *name, const json_t *board)
{
	begin(x, name);
	amount(x, "graphics_clock", number(board, "clock_mhz"), "%.0f MHz");
	amount(x, "sm_clock", number(board, "clock_mhz"), "%.0f MHz");
	amount(x, "mem_clock", number(board, "memory_clock_mhz"), "%.0f MHz");
	leaf(x, "video_clock", "N/A");
	end(x, name);
}

static void show_board(struct xml *x, const json_t *board)
{
	static const char *const limits[] = {
		"current_power_limit", "requested_power_limit",
		"default_power_limit", "min_power_limit",
		"max_power_limit",
	};

	begin(x, "temperature");
	amount(x, "gpu_temp", number(board, "temperature_c"), "%.0f C");
	leaf(x, "memory_temp", "N/A");
	end(x, "temperature");
	begin(x, "gpu_power_readings");
	leaf(x, "power_state", "P0");
	amount(x, "power_draw", number(board, "power_w"), "%.2f W");
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		amount(x, limits[i], number(board, "power_limit_w"), "%.2f W");
	end(x, "gpu_power_readings");
	show_clocks(x, "clocks", board);
	show_clocks(x, "applications_clocks", board);
	show_clocks(x, "max_clocks", board);
}

static void show_processes(struct xml *x, const json_t *j, json_int_t gpu)
{
	const json_t *p, *g;
	size_t i, k;

	begin(x, "processes");
	json_array_foreach (json_object_get(j, "processes"), i, p)
		json_array_foreach (json_object_get(p, "gpus"), k, g) {
			if (json_integer_value(g) != gpu)
				continue;
			begin(x, "process_info");
			LEAVES(x, "N/A", "gpu_instance_id",
			       "compute_instance_id");
			count(x, "pid", number(p, "pid"), "");
			leaf(x, "type", "C");
			leaf(x, "process_name", text(p, "name"));
			count(x, "used_memory", number(p, "peak_mib"), " MiB");
			end(x, "process_info");
		}
	end(x, "processes");
}

static void show_gpu(struct xml *x, const json_t *j, const json_t *g)
{
	fprintf(x->f, "%*s<gpu id=\"", 4 * x->depth++, "");
	escape(x->f, text(g, "pci_bus_id"));
	fputs("\">\n", x->f);
	show_card(x, g);
	show_pci(x, g);
	show_load(x, g);
	show_board(x, json_object_get(g, "board"));
	show_processes(x, j, json_integer_value(json_object_get(g, "index")));
	end(x, "gpu");
}

void smi_xml(const json_t *j, FILE *f)
{
	const json_t *gpus = json_object_get(j, "gpus"), *g;
	struct xml x = { .f = f };
	char at[32], driver[64];
	size_t i;

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	      "<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n",
	      f);
	begin(&x, "nvidia_smi_log");
	tick_utc(at);
	leaf(&x, "timestamp", at);
	snprintf(driver, sizeof(driver), GPUD_DRIVER ".%s",
		 text(json_object_get(j, "gpemu"), "version"));
	leaf(&x, "driver_version", driver);
	leaf(&x, "cuda_version", GPUD_CUDA);
	count(&x, "attached_gpus", (double)json_array_size(gpus), "");
	json_array_foreach (gpus, i, g)
		show_gpu(&x, j, g);
	end(&x, "nvidia_smi_log");
}
