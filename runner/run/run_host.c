/* SPDX-License-Identifier: MIT */
#include "runner/run/run_host.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/util.h"

uint64_t host_vmstat(const char *name)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/vmstat", "re");
	uint64_t n;
	char key[64];

	while (f && fscanf(f, "%63s %" SCNu64, key, &n) == 2)
		if (!strcmp(key, name))
			return n;
	return 0;
}

void host_sample(struct host_load *ret)
{
	*ret = (struct host_load){ .wall_ns = tick_wall(),
				   /* those of control groups too */
				   .oom_kills = host_vmstat("oom_kill") };
	if (getloadavg(&ret->load1, 1) < 1)
		ret->load1 = 0;
}

/* "model name : X" of the first CPU. */
static void cpu_name(char *buf, size_t n)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(buf, n, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) || !colon)
			continue;
		colon[strcspn(colon, "\n")] = 0;
		snprintf(buf, n, "%s", colon + 2);
		return;
	}
}

json_t *host_about(void)
{
	struct utsname u;
	char cpu[128];

	uname(&u);
	cpu_name(cpu, sizeof(cpu));
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "name", u.nodename,
			 "kernel", u.release, "machine", u.machine, "cpu", cpu,
			 "cpus", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN),
			 "memory_bytes",
			 (json_int_t)sysconf(_SC_PHYS_PAGES) *
				 (json_int_t)sysconf(_SC_PAGESIZE));
}
