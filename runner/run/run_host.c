/* SPDX-License-Identifier: MIT */
#include "runner/run/run_host.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/util.h"

/* Those of control groups too. */
static uint64_t oom_kills(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/vmstat", "re");
	unsigned long long n = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "oom_kill %llu", &n) == 1)
			break;
	return n;
}

void host_sample(struct host_load *ret)
{
	*ret = (struct host_load){ .wall_ns = tick_wall(),
				   .oom_kills = oom_kills() };
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
