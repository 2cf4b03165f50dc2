/* SPDX-License-Identifier: MIT */
#include "fs/measure/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/program/progress.h"
#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"

#define LEAST_BYTES (16 * MIB) /* the largest read */
enum { CHUNK = 1 << 20, ALIGNMENT = 4096 };

const char *area_name(unsigned folder, unsigned file, char buf[AREA_NAME])
{
	snprintf(buf, AREA_NAME, "%u/%u", folder, file);
	return buf;
}

void area_forget(const struct area *a)
{
	if (!a->direct)
		posix_fadvise(a->fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Bytes that no device compresses or finds twice. */
static void fill_random(void *chunk, struct rng *rng)
{
	uint64_t *word = chunk;

	for (size_t i = 0; i < CHUNK / sizeof(*word); i++)
		word[i] = rng_u64(rng);
}

static int write_chunks(int fd, uint64_t bytes, struct stop *stop)
{
	_cleanup_free_ void *chunk = NULL;
	struct rng rng = rng_stream(0, "measure", 0);
	struct progress bar;
	int r = posix_memalign(&chunk, ALIGNMENT, CHUNK) ? -ENOMEM : 0;

	progress_init(&bar, "writing", bytes / MIB, PROGRESS_AUTO);
	for (uint64_t at = 0; r == 0 && at < bytes; at += CHUNK) {
		fill_random(chunk, &rng);
		r = util_write_all(fd, chunk, CHUNK);
		if (r == 0 && stop_came(stop))
			r = -EINTR;
		progress_update(&bar, at / MIB, NULL);
	}
	progress_end(&bar);
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

static int make_small(int dirfd, struct stop *stop)
{
	char name[AREA_NAME];

	for (unsigned d = 0; d < AREA_FOLDERS; d++) {
		snprintf(name, sizeof(name), "%u", d);
		if (mkdirat(dirfd, name, 0700) < 0)
			return -errno;
		for (unsigned i = 0; i < AREA_FILES; i++) {
			int fd = openat(dirfd, area_name(d, i, name),
					O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
					0600);
			int r = fd < 0				    ? -errno
				: write(fd, name, sizeof(name)) < 0 ? -errno
								    : 0;

			if (fd >= 0 && close(fd) < 0 && r == 0)
				r = -errno;
			if (r == 0 && stop_came(stop))
				r = -EINTR;
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* Open for reading, past the page cache if the file system allows that. */
static int open_file(struct area *a, int dirfd, const char *name,
		     struct err *err)
{
	struct stat st;

	a->fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_DIRECT);
	a->direct = a->fd >= 0;
	if (a->fd < 0 && errno == EINVAL)
		a->fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	if (a->fd < 0 || fstat(a->fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", name, strerror(errno));
	a->bytes = (uint64_t)st.st_size / CHUNK * CHUNK;
	if (!S_ISREG(st.st_mode) || a->bytes < LEAST_BYTES)
		return err_set(err, -EINVAL,
			       "%s: not a folder, nor a file of at least "
			       "16 MiB",
			       name);
	return 0;
}

static int check_room(const char *path, uint64_t space, struct err *err)
{
	char have[UNITS_TEXT], want[UNITS_TEXT];
	struct statvfs s;
	double room;

	if (statvfs(path, &s) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	room = (double)s.f_bavail * (double)s.f_frsize;
	if (room >= (double)space)
		return 0;
	return err_set(err, -ENOSPC, "%s: %s are free, and --space is %s", path,
		       units_human_size(room, have),
		       units_human_size((double)space, want));
}

static int make_file(struct area *a, uint64_t bytes, struct stop *stop)
{
	_cleanup_close_ int fd = openat(a->dirfd, "data",
					O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
					0600);

	return fd < 0 ? -errno : write_chunks(fd, bytes, stop);
}

static int make(struct area *a, const char *path, uint64_t space,
		struct stop *stop, struct err *err)
{
	/* the small files take a block each, of at most 4 KiB */
	uint64_t small = (uint64_t)AREA_FOLDERS * AREA_FILES * ALIGNMENT;
	int r = check_room(path, space, err);

	if (r < 0)
		return r;
	if (space < small + LEAST_BYTES)
		return err_set(err, -EINVAL, "--space: at least 20M");
	if (asprintf(&a->folder, "%s/gpemu-measure.XXXXXX", path) < 0) {
		a->folder = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(a->folder)) {
		r = err_set(err, -errno, "%s: %s", path, strerror(errno));
		free(TAKE_PTR(a->folder));
		return r;
	}
	a->dirfd = open(a->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = a->dirfd < 0 ? -errno : make_small(a->dirfd, stop);
	if (r == 0)
		r = make_file(a, space - small, stop);
	if (r < 0)
		return err_set(err, r, "%s: %s", a->folder, strerror(-r));
	return open_file(a, a->dirfd, "data", err);
}

int area_open(const char *path, uint64_t space, struct stop *stop,
	      struct area *ret, struct err *err)
{
	struct stat st;
	int r;

	*ret = (struct area){ .dirfd = -1, .fd = -1 };
	if (stat(path, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	r = S_ISDIR(st.st_mode) ? make(ret, path, space, stop, err)
				: open_file(ret, AT_FDCWD, path, err);
	if (r < 0)
		area_close(ret);
	else
		area_forget(ret);
	return r;
}

void area_close(struct area *a)
{
	char name[AREA_NAME];

	if (a->fd >= 0)
		close(a->fd);
	for (unsigned d = 0; a->dirfd >= 0 && d < AREA_FOLDERS; d++) {
		for (unsigned i = 0; i < AREA_FILES; i++)
			unlinkat(a->dirfd, area_name(d, i, name), 0);
		snprintf(name, sizeof(name), "%u", d);
		unlinkat(a->dirfd, name, AT_REMOVEDIR);
	}
	if (a->dirfd >= 0) {
		unlinkat(a->dirfd, "data", 0);
		close(a->dirfd);
	}
	if (a->folder)
		rmdir(a->folder);
	free(TAKE_PTR(a->folder));
	a->fd = a->dirfd = -1;
}
