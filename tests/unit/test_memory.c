/* SPDX-License-Identifier: MIT */
/* Limits of control groups, read below an invented root. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/memory.h"
#include "common/util.h"

static char root[64];

static int setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/gpemu-memory-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

/* A file below the root, with its folders. */
static void put(const char *path, const char *text)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "mkdir -p $(dirname %s%s)", root, path);
	assert_int_equal(system(full), 0);
	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void no_limit_is_none(void **state)
{
	(void)state;
	assert_int_equal(memory_cgroup_limit(root), UINT64_MAX);
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/proc/self/mountinfo",
	    "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
	    "31 22 0:28 / /cg rw,relatime shared:4 - cgroup2 cgroup2 rw\n");
	assert_int_equal(memory_cgroup_limit(root), UINT64_MAX);
	put("/cg/a/b/memory.max", "max\n");
	assert_int_equal(memory_cgroup_limit(root), UINT64_MAX);
}

static void the_least_of_all_ancestors_counts(void **state)
{
	(void)state;
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/cg/a/memory.max", "3000\n");
	assert_int_equal(memory_cgroup_limit(root), 3000);
	put("/cg/a/b/memory.max", "5000\n");
	assert_int_equal(memory_cgroup_limit(root), 3000);
	put("/cg/a/b/memory.high", "2500\n");
	assert_int_equal(memory_cgroup_limit(root), 2500);
	put("/cg/memory.max", "2000\n"); /* a container's own root */
	assert_int_equal(memory_cgroup_limit(root), 2000);
	put("/cg/c/memory.max", "1\n"); /* another's */
	assert_int_equal(memory_cgroup_limit(root), 2000);
}

static void version_1_beside_version_2(void **state)
{
	(void)state;
	put("/proc/self/cgroup", "9:cpu,cpuacct:/x\n"
				 "4:hugetlb,memory:/jobs/me\n"
				 "1:name=memory:/y\n"
				 "0::/a/b\n");
	put("/proc/self/mountinfo",
	    "31 22 0:28 / /cg rw - cgroup2 cgroup2 rw\n"
	    "32 22 0:29 / /v1/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
	    "33 22 0:30 /jobs /v1/mem rw - cgroup cgroup rw,memory\n");
	put("/v1/cpu/x/memory.limit_in_bytes", "1\n");
	put("/v1/mem/y/memory.limit_in_bytes", "1\n");
	put("/v1/mem/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(memory_cgroup_limit(root), 2000);
	put("/v1/mem/me/memory.limit_in_bytes", "1500\n");
	assert_int_equal(memory_cgroup_limit(root), 1500);
	/* only the container's part of the hierarchy is mounted */
	put("/proc/self/cgroup", "4:memory:/elsewhere/me\n");
	assert_int_equal(memory_cgroup_limit(root), 9223372036854771712ull);
}

static void the_machine_has_some(void **state)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			   (uint64_t)sysconf(_SC_PAGESIZE);

	(void)state;
	assert_in_range(memory_limit(), 1, machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_limit_is_none),
		cmocka_unit_test(the_least_of_all_ancestors_counts),
		cmocka_unit_test(version_1_beside_version_2),
		cmocka_unit_test(the_machine_has_some),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
