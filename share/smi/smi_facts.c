/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/json.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_query.h"
#include "share/smi/smi_field.h"

/* Of one server, at most. Source: SHARE_MAX_GPUS */
enum { SERVER_GPUS = 64 };

/* --- a GPU --------------------------------------------------------------- */

/* Source: CUDA C++ Programming Guide, compute capabilities. */
static void add_architecture(json_t *facts, double capability)
{
	static const struct {
		double from;
		const char *name;
	} all[] = {
		{ 9.95, "Blackwell" },	  { 8.95, "Hopper" },
		{ 8.85, "Ada Lovelace" }, { 7.95, "Ampere" },
		{ 7.45, "Turing" },	  { 6.95, "Volta" },
		{ 5.95, "Pascal" },	  { 4.95, "Maxwell" },
		{ 2.95, "Kepler" },
	};
	char buf[32];

	snprintf(buf, sizeof(buf), "%.1f", MIN(capability, 1e3));
	if (capability > 0)
		json_add_text(facts, "compute_cap", buf);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (capability >= all[i].from) {
			json_add_text(facts, "architecture", all[i].name);
			return;
		}
}

static void add_address(json_t *facts)
{
	unsigned domain = 0, bus = 0, device = 0;
	const struct {
		const char *key, *fmt;
		const unsigned *value;
	} parts[] = {
		{ "pci_domain", "%04X", &domain },
		{ "pci_domain_hex", "0x%04X", &domain },
		{ "pci_bus", "%02X", &bus },
		{ "pci_bus_hex", "0x%02X", &bus },
		{ "pci_device", "%02X", &device },
		{ "pci_device_hex", "0x%02X", &device },
	};
	char buf[16];

	sscanf(json_get_text(facts, "pci_bus_id"), "%x:%x:%x", &domain, &bus,
	       &device);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		snprintf(buf, sizeof(buf), parts[i].fmt, *parts[i].value);
		json_add_text(facts, parts[i].key, buf);
	}
}

static void add_load(json_t *facts)
{
	static const char lost[] = "GPU is lost";
	double usable = json_get_number(facts, "memory_usable_mib");
	bool idle = !(json_get_number(facts, "running") > 0);

	json_add_real(facts, "memory_reserved_mib",
		      json_get_number(facts, "memory_total_mib") - usable);
	json_add_real(facts, "memory_free_mib",
		      usable - json_get_number(facts, "memory_used_mib"));
	json_add_text(facts, "idle", idle ? "Active" : "Not Active");
	json_add_text(facts, "reasons_active",
		      idle ? "0x0000000000000001" : "0x0000000000000000");
	if (json_is_false(json_object_get(facts, "healthy"))) {
		json_add_text(facts, "pstate", lost);
		json_add_text(facts, "utilisation_pct", lost);
		return;
	}
	json_add_text(facts, "pstate", "P0");
	json_add_real(facts, "utilisation_pct",
		      100 * json_get_number(facts, "utilisation"));
}

static void add_modes(json_t *facts)
{
	double reasons = json_get_number(facts, "clock_reasons");
	char buf[32];

	if (json_is_true(json_object_get(facts, "ecc"))) {
		json_add_text(facts, "ecc_mode", "Enabled");
		json_add_text(facts, "ecc_no", "No");
		json_add_real(facts, "ecc_errors", 0);
	}
	if (json_is_true(json_object_get(facts, "mig")))
		json_add_text(facts, "mig_mode", "Disabled");
	if (json_get_number(facts, "power_limit_w") > 0)
		json_add_text(facts, "power_management", "Enabled");
	if (reasons > 0 && reasons < 0x1p63) {
		snprintf(buf, sizeof(buf), "0x%016llX",
			 (unsigned long long)reasons);
		json_add_text(facts, "reasons_supported", buf);
	}
	json_add_real(facts, "zero", 0);
}

/* Now, as queries have it. */
static void add_time(json_t *facts)
{
	int64_t ns = tick_realtime();
	time_t seconds = ns / (int64_t)NS_PER_S;
	struct tm tm;
	char day[32], buf[48];

	localtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "%Y/%m/%d %H:%M:%S", &tm);
	snprintf(buf, sizeof(buf), "%s.%03d", day,
		 (int)(ns / (int64_t)NS_PER_MS % 1000));
	json_add_text(facts, "timestamp", buf);
	strftime(day, sizeof(day), "%a %b %e %H:%M:%S %Y", &tm);
	json_add_text(facts, "date", day);
}

/* --- its processes ------------------------------------------------------- */

static json_t *process_facts(const json_t *process, const json_t *gpu)
{
	static const char *const same[][2] = {
		{ "gpu_name", "name" },	      { "gpu_bus_id", "pci_bus_id" },
		{ "gpu_serial", "serial" },   { "gpu_uuid", "uuid" },
		{ "timestamp", "timestamp" },
	};
	json_t *facts = json_object();

	json_object_set(facts, "pid", json_object_get(process, "pid"));
	json_object_set(facts, "name", json_object_get(process, "name"));
	json_add_real(facts, "used_mib", json_get_number(process, "peak_mib"));
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		json_object_set(facts, same[i][0],
				json_object_get(gpu, same[i][1]));
	return facts;
}

/* `index`: of the GPU on its server. */
static void add_processes(json_t *facts, const json_t *status, json_int_t index)
{
	json_t *all = json_array();
	const json_t *p, *g;
	size_t i, k;

	json_array_foreach (json_object_get(status, "processes"), i, p)
		json_array_foreach (json_object_get(p, "gpus"), k, g)
			if (json_integer_value(g) == index)
				json_array_append_new(all,
						      process_facts(p, facts));
	json_object_set_new(facts, "processes", all);
	json_object_set_new(facts, "none", json_array());
}

/* --- all of them --------------------------------------------------------- */

static json_t *gpu_facts(const json_t *status, const json_t *gpu, size_t i)
{
	json_t *facts = json_copy((json_t *)gpu);
	const json_t *board = json_object_get(gpu, "board");
	char driver[64];

	if (!json_is_object(facts)) {
		json_decref(facts);
		facts = json_object();
	}
	json_object_update_missing(facts, (json_t *)board);
	json_add_integer(facts, "index", i);
	snprintf(driver, sizeof(driver), GPUD_DRIVER ".%s",
		 json_get_text(json_object_get(status, "gpemu"), "version"));
	json_add_text(facts, "driver_version", driver);
	add_architecture(facts, json_get_number(board, "compute_capability"));
	add_address(facts);
	add_load(facts);
	add_modes(facts);
	add_time(facts);
	add_processes(facts, status,
		      json_integer_value(json_object_get(gpu, "index")));
	return facts;
}

json_t *smi_facts(const json_t *statuses)
{
	json_t *all = json_array(), *facts;
	const json_t *status, *gpu;
	size_t i, k;

	json_array_foreach (statuses, i, status)
		json_array_foreach (json_object_get(status, "gpus"), k, gpu)
			json_array_append_new(all,
					      gpu_facts(status, gpu,
							json_array_size(all)));
	json_array_foreach (all, i, facts)
		json_add_integer(facts, "count", json_array_size(all));
	return all;
}

/* --- some of them -------------------------------------------------------- */

/* A bus id may have a domain of four digits or of eight. */
static bool is_address(const char *address, const char *id)
{
	size_t n = strlen(id), have = strlen(address);

	return n && have >= n && have - n <= 4 &&
	       strspn(address, "0") >= have - n &&
	       !strcasecmp(address + have - n, id);
}

static bool is_named(const json_t *facts, const char *id)
{
	char index[32];

	snprintf(index, sizeof(index), "%.0f", json_get_number(facts, "index"));
	return !strcmp(id, index) ||
	       !strcmp(id, json_get_text(facts, "uuid")) ||
	       !strcmp(id, json_get_text(facts, "serial")) ||
	       is_address(json_get_text(facts, "pci_bus_id"), id);
}

int smi_pick(json_t *facts, const char *ids)
{
	_cleanup_free_ bool *keep =
		calloc(json_array_size(facts) + 1, sizeof(*keep));
	_cleanup_free_ char *copy = strdup(ids);
	char *at = NULL;
	const json_t *f;
	size_t i;

	if (!keep || !copy)
		return -ENOMEM;
	for (char *id = strtok_r(copy, ", ", &at); id;
	     id = strtok_r(NULL, ", ", &at)) {
		bool found = false;

		json_array_foreach (facts, i, f)
			if (is_named(f, id))
				found = keep[i] = true;
		if (!found)
			return -ENXIO;
	}
	for (i = json_array_size(facts); i-- > 0;)
		if (!keep[i])
			json_array_remove(facts, i);
	return 0;
}
