/* SPDX-License-Identifier: MIT */
#include "runner/run/run_host.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"

/* Source: proc(5): user nice system idle iowait irq softirq steal. Guests are
 * in user; stolen time counts as other load. */
static double busy_seconds(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/stat", "re");
	unsigned long long v[8] = { 0 };

	if (!f ||
	    fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0],
		   &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) < 4)
		return 0;
	return (double)(v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) /
	       (double)sysconf(_SC_CLK_TCK);
}

static double used(int who)
{
	struct rusage u;

	if (getrusage(who, &u) < 0)
		return 0;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

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
				   .busy_s = busy_seconds(),
				   .own_s = used(RUSAGE_SELF) +
					    used(RUSAGE_CHILDREN),
				   .oom_kills = oom_kills() };
	if (getloadavg(&ret->load1, 1) < 1)
		ret->load1 = 0;
}

static double other_seconds(const struct host_load *from,
			    const struct host_load *to)
{
	double other = to->busy_s - from->busy_s - (to->own_s - from->own_s);

	return MAX(other, 0);
}

/* The same as a share of all CPUs. */
static double other_share(const struct host_load *from,
			  const struct host_load *to)
{
	double wall = (double)(to->wall_ns - from->wall_ns) / NS_PER_S;
	double all = wall * (double)sysconf(_SC_NPROCESSORS_ONLN);

	return all > 0 ? MIN(other_seconds(from, to) / all, 1) : 0;
}

json_t *host_json(const struct host_load *from, const struct host_load *to)
{
	return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "cpus",
			 (json_int_t)sysconf(_SC_NPROCESSORS_ONLN),
			 "load_before", from->load1, "load_after", to->load1,
			 "own_cpu_s", to->own_s - from->own_s, "other_cpu_s",
			 other_seconds(from, to), "other_cpu_share",
			 other_share(from, to));
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
