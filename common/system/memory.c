/* SPDX-License-Identifier: MIT */
/*
 * Source: cgroups(7), "/proc/[pid]/cgroup"; proc(5), "/proc/[pid]/mountinfo".
 *
 *	/proc/self/cgroup      4:memory:/jobs/a        where we are
 *	/proc/self/mountinfo   ... /jobs /sys/fs/...   where that can be seen,
 *	                                               and from which group on
 *
 * In a container the mount may show only a part of the hierarchy, and its root
 * is then the container's own group.
 */
#include "common/system/memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"

static FILE *open_below(const char *root, const char *path)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= PATH_MAX)
		return NULL;
	return fopen(full, "re");
}

/* "max", or nothing that is a number, is no limit. */
static uint64_t read_limit(const char *folder, const char *name)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[PATH_MAX];
	uint64_t v;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= PATH_MAX)
		return UINT64_MAX;
	f = fopen(path, "re");
	return f && fscanf(f, "%" SCNu64, &v) == 1 ? v : UINT64_MAX;
}

/* The limits of `folder` and its parents, up to the first `top` bytes. */
static uint64_t least(char *folder, size_t top, const char *const *names)
{
	uint64_t limit = UINT64_MAX;
	char *slash;

	for (;;) {
		for (const char *const *n = names; *n; n++)
			limit = MIN(limit, read_limit(folder, *n));
		slash = strrchr(folder, '/');
		if (!slash || slash < folder + top)
			return limit;
		*slash = 0;
	}
}

static bool has_word(const char *list, const char *want)
{
	size_t n = strlen(want);

	for (; list; list = strchr(list, ',')) {
		list += *list == ',';
		if (!strncmp(list, want, n) && strchr(",\n", list[n]))
			return true;
	}
	return false;
}

/* Our group in the memory hierarchy; version 2 has a single hierarchy, whose
 * line names no controllers. */
static bool own_group(const char *root, bool is_v2, char group[PATH_MAX])
{
	_cleanup_fclose_ FILE *f = open_below(root, "/proc/self/cgroup");
	char line[PATH_MAX + 256], names[256];

	while (f && fgets(line, sizeof(line), f)) {
		names[0] = 0;
		if (sscanf(line, "%*[^:]:%255[^:]:%4095[^\n]", names, group) ==
			    2 &&
		    !is_v2 && has_word(names, "memory"))
			return true;
		if (is_v2 && sscanf(line, "0::%4095[^\n]", group) == 1)
			return true;
	}
	return false;
}

/* One line of mountinfo. */
static uint64_t limit_of_mount(const char *root, const char *line)
{
	static const char *const v1[] = { "memory.limit_in_bytes", NULL };
	static const char *const v2[] = { "memory.max", "memory.high", NULL };
	char top[PATH_MAX], at[PATH_MAX], group[PATH_MAX], type[64];
	char options[256];
	_cleanup_free_ char *folder = NULL;
	const char *dash = strstr(line, " - ");
	const char *below = group;
	size_t n;
	bool is_v2;

	if (!dash || sscanf(line, "%*s %*s %*s %4095s %4095s", top, at) != 2 ||
	    sscanf(dash, " - %63s %*s %255s", type, options) != 2)
		return UINT64_MAX;
	is_v2 = !strcmp(type, "cgroup2");
	if (!is_v2 && (strcmp(type, "cgroup") || !has_word(options, "memory")))
		return UINT64_MAX;
	if (!own_group(root, is_v2, group))
		return UINT64_MAX;
	n = strcmp(top, "/") ? strlen(top) : 0;
	if (!strncmp(group, top, n) && (!group[n] || group[n] == '/'))
		below += n;
	else
		below = "";
	if (!strcmp(below, "/"))
		below = "";
	if (asprintf(&folder, "%s%s%s", root, at, below) < 0)
		return UINT64_MAX;
	return least(folder, strlen(root) + strlen(at), is_v2 ? v2 : v1);
}

uint64_t memory_cgroup_limit(const char *root)
{
	_cleanup_fclose_ FILE *f = open_below(root, "/proc/self/mountinfo");
	_cleanup_free_ char *line = NULL;
	uint64_t limit = UINT64_MAX;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0)
		limit = MIN(limit, limit_of_mount(root, line));
	return limit;
}

uint64_t memory_limit(void)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			   (uint64_t)sysconf(_SC_PAGESIZE);

	return MIN(machine, memory_cgroup_limit(""));
}
