/* SPDX-License-Identifier: MIT */
/*
 * Memory maps, structured like `sync`: a worker owns a batch, and maps, copies
 * and unmaps its files one after the other; a container stays mapped as a
 * whole. Storage sees page faults and the kernel's read-ahead instead of reads
 * of a known length.
 *
 * A plain copy out of a mapping ends the process with SIGBUS if the file was
 * truncated meanwhile, or the device failed. Catching that takes a signal
 * handler, which belongs to the process and not to a library. So the kernel
 * copies, with process_vm_readv(2) from and to this process: it takes the same
 * faults, and returns EFAULT for a missing page. The copy is the smaller part
 * of a file's cost here: workers wait for the lock of the address space, and
 * each unmapping interrupts the other cores (MAP_POPULATE was tried: 10 %
 * slower from the page cache, 115 KB files, 2 cores).
 */
#include "loader/engine/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "common/conf/conf.h"
#include "common/units.h"
#include "common/util.h"

struct options {
	uint64_t copy_bytes;
	char *advice;
};

static const struct {
	const char *name;
	int advice;
} advices[] = {
	{ "normal", MADV_NORMAL },
	{ "sequential", MADV_SEQUENTIAL },
	{ "random", MADV_RANDOM },
	{ "willneed", MADV_WILLNEED },
};

static int parse_advice(const char *s, int *ret, struct err *err)
{
	char known[ERR_LIST] = "";

	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		if (!strcmp(advices[i].name, s)) {
			*ret = advices[i].advice;
			return 0;
		}
		err_list(known, advices[i].name);
	}
	return err_set(err, -EINVAL, "unknown advice '%s' (known: %s)", s,
		       known);
}

static int check_advice(const void *object, struct err *err)
{
	int advice;

	return parse_advice(*(char *const *)object, &advice, err);
}

static const struct conf_field fields[] = {
	{ "copy", CONF_SIZE, offsetof(struct options, copy_bytes), .min = 4096,
	  .max = 1073741824., .arg = "SIZE", .help = "bytes copied at a time" },
	{ "advice", CONF_STRING, offsetof(struct options, advice),
	  .check = check_advice, .arg = "normal|sequential|random|willneed",
	  .help = "madvise(2) of each mapping: the kernel's read-ahead" },
	{ 0 },
};

static const struct options defaults = {
	/* So that faults on a cold file alternate with copies of prefetched
	 * pages. arbitrary: the read-ahead's default size is 128 KiB, and one
	 * call costs less than 1 us */
	.copy_bytes = MIB,
	.advice = (char *)"normal",
};

/* A container that is mapped; p NULL: not yet. */
struct mapping {
	char *p;
	size_t size;
};

struct map {
	pid_t self;
	size_t copy_bytes;
	int advice;
	struct mapping *container; /* by descriptor */
	size_t n_containers;
};

static int init(void *state, const struct engine_config *c, struct err *err)
{
	const struct options *o = c->options ? c->options : &defaults;
	struct map *m = state;
	char from = 1, to = 0;
	struct iovec src = { &from, 1 }, dst = { &to, 1 };
	int r;

	parse_advice(o->advice, &m->advice, NULL);
	m->copy_bytes = o->copy_bytes;
	m->self = getpid();
	if (process_vm_readv(m->self, &dst, 1, &src, 1, 0) == 1)
		return 0;
	r = -errno;
	/* ENOSYS: not in this kernel; EPERM: a sandbox forbids it */
	return err_set(err, -EPERM,
		       "copies out of a mapping that survive a truncated file "
		       "are not available (process_vm_readv: %s): run with "
		       "--loader sync",
		       strerror(-r));
}

/* Bytes copied; fewer than `n`: the file ended before. */
static int64_t copy(const struct map *m, char *to, char *from, size_t n)
{
	size_t at = 0;

	while (at < n) {
		struct iovec src = { from + at, MIN(n - at, m->copy_bytes) };
		struct iovec dst = { to + at, src.iov_len };
		ssize_t r = process_vm_readv(m->self, &dst, 1, &src, 1, 0);

		if (r < 0 && errno != EFAULT)
			return -errno;
		if (r <= 0)
			break;
		at += (size_t)r;
	}
	return (int64_t)at;
}

static char *map(const struct map *m, int fd, size_t n)
{
	char *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);

	if (p != MAP_FAILED && m->advice != MADV_NORMAL)
		madvise(p, n, m->advice); /* a refused hint is ignored */
	return p;
}

/* The result of a copy of `n` bytes from `offset`, which the file had. */
static int64_t result(int fd, uint64_t offset, size_t n, int64_t got)
{
	struct stat st;

	/* the file has these pages, but they are missing: a device error */
	if (got >= 0 && (size_t)got < n && fstat(fd, &st) == 0 &&
	    (uint64_t)st.st_size >= offset + n)
		return -EIO;
	return got;
}

/* The first `n` bytes of a file. */
static int64_t read_file(const struct map *m, int fd, char *to, size_t n)
{
	int64_t got;
	char *p;

	if (n == 0)
		return 0;
	p = map(m, fd, n);
	if (p == MAP_FAILED)
		return -errno;
	got = copy(m, to, p, n);
	munmap(p, n);
	return result(fd, 0, n, got);
}

/* The mapping of a container that has `size` bytes now. */
static int find(struct map *m, int fd, size_t size, struct mapping **ret)
{
	size_t n = (size_t)fd + 1;
	struct mapping *x;

	if (n > m->n_containers) {
		x = realloc(m->container, n * sizeof(*x));
		if (!x)
			return -ENOMEM;
		memset(x + m->n_containers, 0,
		       (n - m->n_containers) * sizeof(*x));
		m->container = x;
		m->n_containers = n;
	}
	*ret = x = &m->container[fd];
	if (x->p && x->size >= size)
		return 0;
	if (x->p)
		munmap(x->p, x->size);
	x->size = size;
	x->p = map(m, fd, size);
	if (x->p != MAP_FAILED)
		return 0;
	x->p = NULL;
	return -errno;
}

/* A part of a container. What was cut off the file is not read: within its last
 * page it would be zeros. */
static int64_t read_part(struct map *m, const struct fetch *f)
{
	struct mapping *x;
	struct stat st;
	uint64_t there;
	size_t n;
	int r;

	if (fstat(f->fd, &st) < 0)
		return -errno;
	there = (uint64_t)st.st_size;
	n = there > f->offset ? MIN(there - f->offset, f->size) : 0;
	if (n == 0)
		return 0;
	r = find(m, f->fd, (size_t)there, &x);
	return r < 0 ? r
		     : result(f->fd, f->offset, n,
			      copy(m, f->buf, x->p + f->offset, n));
}

static int64_t read_mapped(struct map *m, const struct fetch *f)
{
	_cleanup_close_ int own = -1;
	struct stat st;

	if (f->fd >= 0)
		return read_part(m, f);
	own = util_open_file(f->dirfd, f->path, 0, &st);
	if (own < 0)
		return own;
	return read_file(m, own, f->buf,
			 MIN((uint64_t)st.st_size, f->size + 1));
}

static void fini(void *state)
{
	struct map *m = state;

	for (size_t i = 0; i < m->n_containers; i++)
		if (m->container[i].p)
			munmap(m->container[i].p, m->container[i].size);
	free(m->container);
}

static int next(void *state, struct feed *feed, struct fetch **ret,
		struct err *err)
{
	struct fetch *f;
	int r = feed_take(feed, true, &f);

	(void)err;
	if (r < 0)
		return r;
	feed_done(feed, f, read_mapped(state, f));
	*ret = f;
	return 0;
}

const struct engine_ops engine_mmap = {
	.plugin = { .name = "mmap",
		    .summary = "memory maps, a worker owns a batch; a "
			       "truncated file is a failed sample",
		    .state_size = sizeof(struct map),
		    .options = fields,
		    .defaults = &defaults,
		    .options_size = sizeof(defaults) },
	.whole_batches = true,
	.init = init,
	.fini = fini,
	.next = next,
};
