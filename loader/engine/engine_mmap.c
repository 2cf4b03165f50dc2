/* SPDX-License-Identifier: MIT */
/*
 * Memory maps, structured like `sync`: a worker owns a batch, and maps, copies
 * and unmaps its files one after the other. Storage sees page faults and the
 * kernel's read-ahead instead of reads of a known length.
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

struct map {
	pid_t self;
	size_t page, copy_bytes;
	int advice;
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
	m->page = (size_t)sysconf(_SC_PAGESIZE);
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

/* Copy `n` bytes at `offset`; the file had them at the last check. */
static int64_t copy_range(const struct map *m, int fd, uint64_t offset,
			  char *to, size_t n)
{
	size_t head = offset % m->page;
	struct stat st;
	int64_t got;
	char *p;

	if (n == 0)
		return 0;
	p = mmap(NULL, head + n, PROT_READ, MAP_SHARED, fd,
		 (off_t)(offset - head));
	if (p == MAP_FAILED)
		return -errno;
	if (m->advice != MADV_NORMAL) /* a refused hint is ignored */
		madvise(p, head + n, m->advice);
	got = copy(m, to, p + head, n);
	munmap(p, head + n);
	/* the file has these pages, but they are missing: a device error */
	if (got >= 0 && (size_t)got < n && fstat(fd, &st) == 0 &&
	    (uint64_t)st.st_size >= offset + n)
		return -EIO;
	return got;
}

static int64_t read_mapped(const struct map *m, const struct fetch *f)
{
	_cleanup_close_ int own = -1;
	uint64_t there;
	struct stat st;

	if (f->fd < 0) {
		own = util_open_file(f->dirfd, f->path, 0, &st);
		if (own < 0)
			return own;
		there = (uint64_t)st.st_size;
		return copy_range(m, own, 0, f->buf, MIN(there, f->size + 1));
	}
	if (fstat(f->fd, &st) < 0)
		return -errno;
	there = (uint64_t)st.st_size;
	there = there > f->offset ? there - f->offset : 0;
	return copy_range(m, f->fd, f->offset, f->buf, MIN(there, f->size));
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
	.next = next,
};
