/* SPDX-License-Identifier: MIT */
#include "fs/calibrate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/util.h"

enum {
	/* arbitrary: the shortest of so many is stable, and they take some
	 * 10 ms */
	N_READS = 256,
	/* arbitrary: so many keep nobody waiting */
	N_PROBES = 100,
};

static int shortest_read(const char *path, uint64_t *ret_ns)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t best = UINT64_MAX;
	char byte;

	if (fd < 0)
		return -errno;
	for (int i = 0; i < N_READS; i++) {
		uint64_t start = tick_wall();

		if (pread(fd, &byte, 1, 0) < 0)
			return -errno;
		best = MIN(best, tick_wall() - start);
	}
	*ret_ns = best;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How much longer than it should a delayed request takes, nine times of ten,
 * wall. */
static int usual_delay(const char *dir, uint64_t probe_ns, uint64_t *ret_ns)
{
	uint64_t late[N_PROBES], took;
	char path[PATH_MAX];
	struct stat st;

	for (int i = 0; i < N_PROBES; i++) {
		uint64_t start = tick_wall();

		/* a name that is not there, and a new one each time */
		snprintf(path, sizeof(path), "%s/probe-%d", dir, i);
		if (lstat(path, &st) == 0 || errno != ENOENT)
			return -EIO;
		took = tick_wall() - start;
		late[i] = took - MIN(took, probe_ns);
	}
	qsort(late, N_PROBES, sizeof(late[0]), by_value);
	*ret_ns = late[N_PROBES / 10];
	return 0;
}

int calibrate_round_trip(const char *dir, const char *file, uint64_t probe_ns,
			 struct round_trip *ret)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (asprintf(&path, "%s/%s", dir, file) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = shortest_read(path, &ret->busy_ns);
	ret->busy_ns /= 2;
	if (r == 0)
		r = usual_delay(dir, probe_ns, &ret->idle_ns);
	ret->idle_ns = MAX(ret->idle_ns, ret->busy_ns);
	return r;
}
