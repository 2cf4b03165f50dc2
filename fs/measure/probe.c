/* SPDX-License-Identifier: MIT */
/*
 * Reads: a ring with `depth` reads in flight, each replaced when it completes.
 * The first `depth` completions are warm-up, and all in the first eighth of the
 * time: a device with a quota in each window of time has one to spare when it
 * was idle. The rate is that of the rest, over the time from the last of these
 * to the last of all, and no more than their mean time allows.
 *
 * Names: the kernel remembers those that it saw, and the blocks that they are
 * in, so all are forgotten before (drop_caches), which only root may ask for.
 * Without that, lookups, opens and lists would be those of the kernel's memory:
 * they are left out. How long the kernel keeps names is seen from lookups that
 * are repeated until they take longer than one of a name that it knows.
 */
#include "fs/measure/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/err.h"
#include "common/program/child.h"
#include "common/program/progress.h"
#include "common/rng.h"
#include "common/units.h"
#include "common/util.h"

/* --- the area ------------------------------------------------------------- */

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
	a->folder = util_text("%s/gpemu-measure.XXXXXX", path);
	if (!a->folder)
		return -ENOMEM;
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

enum { LEAST = 8 };

struct reads {
	const struct area *area;
	struct point *point;
	struct tick *tick;
	struct io_uring ring;
	char *buffer;	/* a place for each slot; nobody looks at it */
	uint64_t *sent; /* by slot, ns */
	struct rng rng;
	uint64_t next; /* of a sequential reader */
	uint64_t n, last_ns;
	/* warm from this time on; when it was, and after how many (0: not) */
	uint64_t warm_from, warm_ns, n_warm;
	struct hist *hist;
};

static uint64_t offset_of(struct reads *s)
{
	uint64_t bytes = s->point->bytes, n = s->area->bytes / bytes;

	if (s->point->kind == POINT_SEQUENTIAL)
		return s->next++ % n * bytes;
	return rng_below(&s->rng, n) * bytes;
}

/* By itself, as fio does by default: where fewer are served than wait, reads
 * that are sent several at a time overtake others. Of 64 reads of 128 KiB on
 * sshfs half took 69 ms and a tenth 121, in place of 84 for nearly all. */
static int send_read(struct reads *s, uint64_t slot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&s->ring);
	int r;

	io_uring_prep_read(sqe, s->area->fd, s->buffer + slot * s->point->bytes,
			   (unsigned)s->point->bytes, offset_of(s));
	io_uring_sqe_set_data64(sqe, slot);
	s->sent[slot] = tick_now(s->tick);
	do
		r = io_uring_submit(&s->ring);
	while (r == -EINTR);
	return r == 1 ? 0 : r < 0 ? r : -EIO;
}

static int received(struct reads *s, const struct io_uring_cqe *cqe)
{
	uint64_t now = tick_now(s->tick);

	if (cqe->res < 0)
		return cqe->res;
	if ((uint64_t)cqe->res != s->point->bytes)
		return -EIO;
	s->n++;
	if (!s->n_warm) {
		if (s->n >= s->point->depth && now >= s->warm_from) {
			s->warm_ns = now;
			s->n_warm = s->n;
		}
		return 0;
	}
	hist_add_alone(s->hist, now - s->sent[cqe->user_data], 1);
	s->last_ns = now;
	return 0;
}

/* Reads in flight write into the buffer: also after an error all are awaited.
 */
static int run_reads(struct reads *s, uint64_t ns, struct stop *stop)
{
	uint64_t end = tick_now(s->tick) + ns, inflight = 0;
	int r = 0;

	s->warm_from = end - ns + ns / 8;
	while (r == 0 && inflight < s->point->depth) {
		r = send_read(s, inflight);
		inflight += r == 0;
	}
	while (inflight) {
		struct io_uring_cqe *cqe;
		int got = io_uring_wait_cqe(&s->ring, &cqe);

		if (got == -EINTR)
			continue;
		if (got < 0)
			return got;
		for (; got == 0; got = io_uring_peek_cqe(&s->ring, &cqe)) {
			uint64_t slot = cqe->user_data;

			r = r < 0 ? r : received(s, cqe);
			io_uring_cqe_seen(&s->ring, cqe);
			inflight--;
			if (r == 0 && (tick_now(s->tick) < end || !s->n_warm ||
				       s->n < s->n_warm + LEAST)) {
				r = send_read(s, slot);
				inflight += r == 0;
			}
		}
		if (r == 0 && stop_came(stop))
			r = -EINTR;
	}
	return r;
}

static int probe_reads(struct reads *s, uint64_t ns, struct stop *stop,
		       struct err *err)
{
	struct point *p = s->point;
	/* a huge page at least, as a loader has: in small ones a read of 128
	 * KiB is 32 pieces for the device, and took 193 us for 126 on a virtual
	 * disk */
	size_t bytes = MAX(p->depth * p->bytes, (size_t)2 * MIB);
	int r = io_uring_queue_init((unsigned)p->depth, &s->ring, 0);

	if (r < 0)
		return err_set(err, r, "io_uring: %s", strerror(-r));
	s->sent = calloc(p->depth, sizeof(*s->sent));
	s->buffer = util_alloc_pages(&bytes);
	r = s->sent && s->buffer ? 0 : -ENOMEM;
	if (r == 0) {
		area_forget(s->area);
		r = run_reads(s, ns, stop);
	}
	io_uring_queue_exit(&s->ring);
	free(s->buffer);
	free(s->sent);
	if (r == 0) {
		point_fill(p, s->hist, s->n - s->n_warm,
			   s->last_ns - s->warm_ns);
		/* Little's law: of reads that complete in bunches, one bunch
		 * more is counted than there was time for */
		p->per_s = fmin(p->per_s, (double)p->depth * (double)NS_PER_S /
						  p->mean_ns);
	}
	return r < 0 && r != -EINTR
		       ? err_set(err, r, "a read failed: %s", strerror(-r))
		       : r;
}

/* --- names ---------------------------------------------------------------- */

static int forget_names(void)
{
	_cleanup_close_ int fd =
		open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	sync();
	return fd >= 0 && write(fd, "3", 1) == 1 ? 0 : -errno;
}

static int look_up(const struct area *a, const char *name)
{
	struct stat st;

	return fstatat(a->dirfd, name, &st, 0) < 0 ? -errno : 0;
}

static int open_one(const struct area *a, const char *name)
{
	int fd = openat(a->dirfd, name, O_RDONLY | O_CLOEXEC);

	return fd < 0 || close(fd) < 0 ? -errno : 0;
}

static int list(const struct area *a, unsigned folder)
{
	char name[AREA_NAME];
	DIR *d;
	int fd;

	snprintf(name, sizeof(name), "%u", folder);
	fd = openat(a->dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return -errno;
	while (readdir(d))
		;
	closedir(d);
	return 0;
}

static int probe_names(const struct area *a, struct point *p, struct hist *h,
		       struct tick *tick)
{
	unsigned files = p->kind == POINT_READDIR ? 1 : AREA_FILES;
	uint64_t ns = 0, n = 0;
	char name[AREA_NAME];

	for (unsigned d = 0; d < AREA_FOLDERS; d++) {
		for (unsigned i = 0; i < files; i++) {
			uint64_t begin, took;
			int r;

			area_name(d, i, name);
			/* an open costs what comes after the lookup */
			r = p->kind == POINT_OPEN ? look_up(a, name) : 0;
			begin = tick_now(tick);
			if (r == 0)
				r = p->kind == POINT_READDIR ? list(a, d)
				    : p->kind == POINT_OPEN  ? open_one(a, name)
							     : look_up(a, name);
			if (r < 0)
				return r;
			took = tick_now(tick) - begin;
			hist_add_alone(h, took, 1);
			ns += took;
			n++;
		}
	}
	point_fill(p, h, n, ns);
	return 0;
}

enum {
	KEPT_NAMES = 8, /* in folders of their own */
	/* so many of them are looked up slowly in two rounds: the kernel asked
	 * for them again. Other things slow one at a time. arbitrary */
	KEPT_AGREE = 6,
	KEPT_ROUND_NS = 20 * NS_PER_MS, /* how exact the time is */
	/* A name that the kernel knows is found faster, one that it asks a
	 * process or a server for slower. arbitrary: 1 to 2 us on our machines,
	 * at least 20 through FUSE */
	KEPT_FOUND_NS = 10 * NS_PER_US,
};

/* Names that the kernel has learned. */
struct kept {
	const struct area *area;
	struct tick *tick;
	uint64_t limit_ns;	   /* of a lookup that asks nobody */
	unsigned round;		   /* from 2 on */
	unsigned slow[KEPT_NAMES]; /* the last round in which it was; 0: none */
};

static int look_up_timed(const struct kept *k, unsigned folder, uint64_t *ret)
{
	uint64_t begin = tick_now(k->tick);
	char name[AREA_NAME];
	int r = look_up(k->area, area_name(folder, 0, name));

	*ret = tick_now(k->tick) - begin;
	return r;
}

/* Each is looked up twice: cold, and again at once. */
static int learn_names(struct kept *k, const char **why)
{
	uint64_t cold = UINT64_MAX, warm = UINT64_MAX, took;
	int r = 0;

	for (unsigned i = 0; i < KEPT_NAMES && r == 0; i++) {
		r = look_up_timed(k, i, &took);
		cold = MIN(cold, took);
		if (r == 0)
			r = look_up_timed(k, i, &took);
		warm = MIN(warm, took);
	}
	if (r < 0)
		return r;
	/* when it is asked for again, its folder may still be known, and what
	 * is below a process: between the two by their ratio, and never more
	 * than it takes to find a known one. 0: the second was asked for as
	 * well */
	if (warm <= KEPT_FOUND_NS)
		k->limit_ns = MIN((uint64_t)sqrt((double)cold * (double)warm),
				  (uint64_t)KEPT_FOUND_NS);
	if (warm > KEPT_FOUND_NS || cold >= 4 * warm)
		return 0;
	*why = "how long names are kept, as the kernel finds those that it has "
	       "forgotten as fast as others";
	return -ENODATA;
}

/* Has the kernel asked for them again, in this round or the one before? -errno.
 */
static int asked_again(struct kept *k)
{
	unsigned n = 0;

	for (unsigned i = 0; i < KEPT_NAMES; i++) {
		uint64_t took;
		int r = look_up_timed(k, i, &took);

		if (r < 0)
			return r;
		if (took > k->limit_ns)
			k->slow[i] = k->round;
		n += k->slow[i] + 1 >= k->round;
	}
	k->round++;
	return n >= KEPT_AGREE;
}

static int probe_kept(struct kept *k, struct point *p, struct hist *h,
		      struct stop *stop, const char **why)
{
	int r = learn_names(k, why);
	uint64_t since = tick_now(k->tick), kept = 0;

	while (r == 0 && (r = asked_again(k)) == 0 && kept < POINT_KEPT_MOST) {
		tick_wait(k->tick, tick_now(k->tick) + KEPT_ROUND_NS);
		kept = MIN(tick_now(k->tick) - since, POINT_KEPT_MOST);
		r = stop_came(stop) ? -EINTR : 0;
	}
	if (r < 0)
		return r;
	hist_add_alone(h, kept, KEPT_NAMES);
	point_fill(p, h, KEPT_NAMES, 0);
	return 0;
}

int probe(const struct area *a, struct point *p, uint64_t ns, struct tick *tick,
	  struct stop *stop, const char **why, struct err *err)
{
	_cleanup_free_ struct hist *h = calloc(1, sizeof(*h));
	struct reads reads = { .area = a,
			       .point = p,
			       .tick = tick,
			       .rng = rng_stream(0, "probe", p->depth),
			       .hist = h };
	struct kept kept = { .area = a, .tick = tick, .round = 2 };
	int r;

	if (!h)
		return -ENOMEM;
	if (p->kind <= POINT_SEQUENTIAL)
		return probe_reads(&reads, ns, stop, err);
	if (a->dirfd < 0) {
		*why = "lookups, opens, lists and how long names are kept, as "
		       "a "
		       "file has no names; give a folder";
		return -ENODATA;
	}
	if (forget_names() < 0) {
		*why = "lookups, opens, lists and how long names are kept, as "
		       "only root can drop the kernel's cache of names";
		return -ENODATA;
	}
	r = p->kind == POINT_KEPT ? probe_kept(&kept, p, h, stop, why)
				  : probe_names(a, p, h, tick);
	return r < 0 && r != -EINTR && r != -ENODATA
		       ? err_set(err, r, "%s: %s", a->folder, strerror(-r))
		       : r;
}
