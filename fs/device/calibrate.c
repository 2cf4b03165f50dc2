/* SPDX-License-Identifier: MIT */
#include "fs/device/calibrate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/tick.h"
#include "common/util.h"

enum {
	/* arbitrary: the shortest of so many is stable; they take some 10 ms */
	N_READS = 256,
	/* arbitrary: few enough not to delay the start */
	N_PROBES = 100,
	N_LONG = 32,
	N_SLOW = 9,
};

static int measure_busy(const char *dir, const char *path,
			struct round_trip *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t best = UINT64_MAX;
	char byte;

	(void)dir;
	if (fd < 0)
		return -errno;
	for (int i = 0; i < N_READS; i++) {
		uint64_t start = tick_wall();

		if (pread(fd, &byte, 1, 0) < 0)
			return -errno;
		best = MIN(best, tick_wall() - start);
	}
	ret->busy_ns = best / 2;
	return 0;
}

static int probe_lookup(const char *dir, int i, uint64_t *ret_ns)
{
	char path[PATH_MAX];
	struct stat st;
	uint64_t start;

	/* a name that does not exist, a new one each time */
	snprintf(path, sizeof(path), "%s/probe-%d", dir, i);
	start = tick_wall();
	if (lstat(path, &st) == 0)
		return -EIO;
	if (errno != ENOENT)
		return -errno;
	*ret_ns = tick_wall() - start;
	return 0;
}

static int probe_readdir(const char *dir, uint64_t *ret_ns)
{
	DIR *d = opendir(dir);
	uint64_t start;
	int r;

	if (!d)
		return -errno;
	start = tick_wall();
	errno = EIO; /* if the folder is empty */
	r = readdir(d) ? 0 : -errno;
	*ret_ns = tick_wall() - start;
	closedir(d);
	return r;
}

/* The buffer begins with its size, if that fits. */
void *calibrate_answer(size_t n)
{
	void *buf = malloc(n);
	uint64_t size = n;

	if (!buf)
		return NULL;
	memset(buf, 0x55, n);
	if (n >= sizeof(size))
		memcpy(buf, &size, sizeof(size));
	return buf;
}

/* Is the whole buffer the answer to a single request? */
static bool is_one_answer(const void *buf)
{
	uint64_t size;

	memcpy(&size, buf, sizeof(size));
	return size == CALIBRATE_BYTES;
}

static int probe_read(int fd, void *buf, size_t n, uint64_t *ret_ns)
{
	uint64_t start = tick_wall();

	if (pread(fd, buf, n, CALIBRATE_OFFSET) < 0)
		return -errno;
	*ret_ns = tick_wall() - start;
	return 0;
}

/* The lower quartile of the extra time of a delayed request, wall: at least
 * three of four take that much longer. */
static int usual_delay(const char *dir, const char *path, enum storage_op op,
		       uint64_t probe_ns, uint64_t *ret_ns)
{
	_cleanup_close_ int fd = -1;
	uint64_t late[N_PROBES], took = 0;
	char byte;
	int r = 0;

	if (op == STORAGE_READ && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return -errno;
	for (int i = 0; r == 0 && i < N_PROBES; i++) {
		switch (op) {
		case STORAGE_LOOKUP: r = probe_lookup(dir, i, &took); break;
		case STORAGE_READDIR: r = probe_readdir(dir, &took); break;
		case STORAGE_READ: r = probe_read(fd, &byte, 1, &took); break;
		default: return -EINVAL;
		}
		if (r == 0)
			late[i] = took - MIN(took, probe_ns);
	}
	if (r < 0)
		return r;
	qsort(late, N_PROBES, sizeof(late[0]), util_compare_u64);
	*ret_ns = late[N_PROBES / 4];
	return 0;
}

/* How much longer an answer of CALIBRATE_BYTES takes than one of a single
 * byte. */
static int long_delay(const char *path, uint64_t *ret_ns)
{
	_cleanup_free_ char *buf = util_aligned_alloc(4096, CALIBRATE_BYTES);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t brief[N_LONG], full[N_LONG];
	int r = fd < 0 ? -errno : 0;

	if (!buf)
		return -ENOMEM;
	memset(buf, 0, CALIBRATE_BYTES);
	for (int i = 0; r == 0 && i < N_LONG; i++) {
		r = probe_read(fd, buf, 1, &brief[i]);
		if (r == 0)
			r = probe_read(fd, buf, CALIBRATE_BYTES, &full[i]);
	}
	if (r < 0)
		return r;
	qsort(brief, N_LONG, sizeof(brief[0]), util_compare_u64);
	qsort(full, N_LONG, sizeof(full[0]), util_compare_u64);
	*ret_ns = full[N_LONG / 2] - MIN(full[N_LONG / 2], brief[N_LONG / 2]);
	/* several requests: each of them waited */
	if (!is_one_answer(buf))
		*ret_ns = 0;
	return 0;
}

static int measure_alone(const char *dir, const char *path,
			 struct round_trip *ret)
{
	static const enum storage_op ops[] = { STORAGE_LOOKUP, STORAGE_READDIR,
					       STORAGE_READ };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ops); i++) {
		uint64_t *ns = &ret->alone_ns[ops[i]];

		r = usual_delay(dir, path, ops[i], CALIBRATE_ALONE_NS, ns);
		*ns = MAX(*ns, ret->busy_ns);
	}
	ret->alone_ns[STORAGE_OPEN] = ret->alone_ns[STORAGE_READ];
	if (r == 0)
		r = long_delay(path, &ret->alone_mib_ns);
	return r;
}

static int measure_slow(const char *dir, const char *path,
			struct round_trip *ret)
{
	_cleanup_free_ char *buf = util_aligned_alloc(4096, CALIBRATE_BYTES);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t full[N_SLOW], brief;
	int r = fd < 0 ? -errno : 0;

	(void)dir;
	if (!buf)
		return -ENOMEM;
	memset(buf, 0, CALIBRATE_BYTES);
	for (int i = 0; r == 0 && i < N_SLOW; i++)
		r = probe_read(fd, buf, CALIBRATE_BYTES, &full[i]);
	if (r < 0)
		return r;
	qsort(full, N_SLOW, sizeof(full[0]), util_compare_u64);
	brief = CALIBRATE_SLOW_NS + ret->alone_ns[STORAGE_READ];
	ret->slow_mib_ns = full[N_SLOW / 2] - MIN(full[N_SLOW / 2], brief);
	if (!is_one_answer(buf))
		ret->slow_mib_ns = 0;
	/* a longer wait never makes the copy faster */
	ret->slow_mib_ns = MAX(ret->slow_mib_ns, ret->alone_mib_ns);
	return 0;
}

/* --- the process that measures ------------------------------------------ */

static int (*const measure[CALIBRATE_N_STAGES])(const char *dir,
						const char *path,
						struct round_trip *ret) = {
	[CALIBRATE_BUSY] = measure_busy,
	[CALIBRATE_ALONE] = measure_alone,
	[CALIBRATE_SLOW] = measure_slow,
};

struct result {
	int r;
	struct round_trip trip;
};

static void tell(int fd, const struct result *result)
{
	if (write(fd, result, sizeof(*result)) != sizeof(*result))
		_exit(1);
}

/* The child: for each byte it receives, it sends the result of that stage. */
__attribute__((noreturn)) static void client(int fd, const char *dir,
					     const char *path)
{
	struct result result = { 0 };
	unsigned char stage;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* close the mount's device above all */
	close_range(0, (unsigned)fd - 1, 0);
	close_range((unsigned)fd + 1, UINT_MAX, 0);
	while (read(fd, &stage, 1) == 1) {
		result.r = measure[stage](dir, path, &result.trip);
		tell(fd, &result);
	}
	_exit(0);
}

int calibrate_begin(struct calibration *c, const char *dir, const char *file)
{
	_cleanup_free_ char *path = NULL;
	int fds[2], r;

	path = util_text("%s/%s", dir, file);
	if (!path)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	c->pid = fork();
	if (c->pid == 0)
		client(fds[1], dir, path);
	r = -errno;
	close(fds[1]);
	c->fd = fds[0];
	if (c->pid > 0)
		return 0;
	close(c->fd);
	c->pid = 0;
	return r;
}

int calibrate_run(struct calibration *c, enum calibrate_stage stage,
		  struct round_trip *ret)
{
	unsigned char go = stage;
	struct result result;
	ssize_t n;

	if (send(c->fd, &go, 1, MSG_NOSIGNAL) != 1)
		return -errno;
	n = recv(c->fd, &result, sizeof(result), MSG_WAITALL);
	if (n != sizeof(result))
		return n < 0 ? -errno : -ECHILD;
	*ret = result.trip;
	return result.r;
}

void calibrate_end(struct calibration *c)
{
	if (!c->pid)
		return;
	close(c->fd);
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
}
