/* SPDX-License-Identifier: MIT */
/*
 * Memory maps, structured like `sync`: a worker owns a batch, and maps, copies
 * and unmaps its files one after the other; a container stays mapped as a
 * whole. Storage sees page faults and the kernel's read-ahead instead of reads
 * of a known length.
 *
 * The copy is made here and not by the kernel, straight to where the sample
 * belongs: for windows of 2 KB in the page cache, a system call takes longer
 * than the copy. (Tried: process_vm_readv(2), which returns EFAULT where a
 * plain copy raises SIGBUS; a bare loop of it does .43 of what one of copies
 * does, one of pread(2) .34.) So copies are guarded.
 *
 * For whole files the copy is the smaller part of the cost: workers wait for
 * the lock of the address space, and each unmapping interrupts the other cores
 * (MAP_POPULATE was tried: 10 % slower from the page cache, 115 KB files, 2
 * cores).
 *
 * Short samples of a container are read a few at a time, so that what is not
 * the copy is done once for all of them: the clock, the lease, and making sure
 * that the file still has these bytes. A slow group is followed by single
 * samples, so that each read of a slow device has its own time.
 */
#include "loader/engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/conf/conf.h"
#include "common/tick.h"
#include "common/util.h"
#include "common/word.h"
#include "loader/engine/guard.h"

enum {
	/* Samples read together, and most bytes of them. arbitrary: few enough
	 * to stay in the second cache, and the rest of their cost is that of
	 * the copies */
	GROUP = 32,
	GROUP_BYTES = 64 * 1024,
	/* A group that takes longer, and a ns for so many of the bytes that it
	 * has made, was not in the page cache. arbitrary: half as fast as
	 * memory is, and less than a device needs to read */
	SLOW_NS = 30000,
	SLOW_BYTES = 4,
};

struct options {
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
	struct word_list words = WORD_LIST(s, strlen(s));

	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		if (!strcmp(advices[i].name, s)) {
			*ret = advices[i].advice;
			return 0;
		}
		word_list_add(&words, advices[i].name);
	}
	return word_unknown(&words, "advice", err);
}

static int check_advice(const void *object, struct err *err)
{
	int advice;

	return parse_advice(*(char *const *)object, &advice, err);
}

static const struct conf_field fields[] = {
	{ CONF_KEY(advice, CONF_STRING, struct options), .check = check_advice,
	  .arg = "normal|sequential|random|willneed",
	  .help = "madvise(2) of each mapping: the kernel's read-ahead" },
	{ 0 },
};

static const struct options defaults = { .advice = (char *)"normal" };

/* A container that is mapped; p NULL: not yet. */
struct mapping {
	char *p;
	size_t size;
};

struct map {
	int advice;
	bool guarded;
	struct mapping *container; /* by descriptor */
	size_t n_containers;
	struct engine_fetch *group[GROUP]; /* read together */
	unsigned n, returned;
	unsigned most; /* of the next group */
};

static int init_mmap(void *state, const struct engine_config *c,
		     struct err *err)
{
	const struct options *o = c->options ? c->options : &defaults;
	struct map *m = state;
	int r;

	if (c->bucket)
		return err_set(err, -EINVAL,
			       "a bucket cannot be mapped: run with --loader "
			       "async");
	r = guard_begin();

	parse_advice(o->advice, &m->advice, NULL);
	m->guarded = r == 0;
	m->most = 1;
	return r < 0 ? err_set(err, r,
			       "cannot handle SIGBUS: %s; run with --loader "
			       "sync",
			       strerror(-r))
		     : 0;
}

static char *map(const struct map *m, int fd, size_t n)
{
	char *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);

	if (p != MAP_FAILED && m->advice != MADV_NORMAL)
		madvise(p, n, m->advice); /* a refused hint is ignored */
	return p;
}

/*
 * How many of `n` bytes from `offset` the file has now, after a copy of them.
 * Those cut off it are not read: within its last page they are zeros. If it has
 * them all and they could not be copied, the device has failed.
 */
static int64_t result_of(int fd, uint64_t offset, size_t n, bool copied)
{
	struct stat st;
	uint64_t there;

	if (fstat(fd, &st) < 0)
		return -errno;
	there = (uint64_t)st.st_size;
	if (there >= offset + n)
		return copied ? (int64_t)n : -EIO;
	return there > offset ? (int64_t)(there - offset) : 0;
}

/* The first `n` bytes of a file. */
static int64_t read_start(const struct map *m, int fd, char *to, size_t n)
{
	bool copied;
	char *p;

	if (n == 0)
		return 0;
	p = map(m, fd, n);
	if (p == MAP_FAILED)
		return -errno;
	copied = guard_copy(to, p, n);
	munmap(p, n);
	return result_of(fd, 0, n, copied);
}

/* Map a container anew, as large as it is now. */
static int remap(struct map *m, int fd, struct mapping *x)
{
	struct stat st;
	char *p;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size <= x->size)
		return 0;
	p = map(m, fd, (size_t)st.st_size);
	if (p == MAP_FAILED)
		return -errno; /* what was mapped stays so */
	if (x->p)
		munmap(x->p, x->size);
	*x = (struct mapping){ p, (size_t)st.st_size };
	return 0;
}

/* Map the container of a sample, unless all of the sample is mapped. */
static int map_container(struct map *m, const struct engine_fetch *f)
{
	size_t n = (size_t)f->fd + 1;
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
	x = &m->container[f->fd];
	return x->size >= f->offset + f->size ? 0 : remap(m, f->fd, x);
}

/* Correct those whose file no longer had them when all were copied. */
static void check_parts(const struct map *m, int64_t *result)
{
	struct stat st = { 0 };
	uint64_t there = 0;
	int fd = -1;

	for (unsigned i = 0; i < m->n; i++) {
		const struct engine_fetch *f = m->group[i];

		if (result[i] < 0)
			continue;
		if (f->fd != fd) {
			fd = f->fd;
			there = fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_size;
		}
		if (there < f->offset + f->size)
			result[i] = there > f->offset
					    ? (int64_t)(there - f->offset)
					    : 0;
	}
}

/* Copies of parts of containers. */
struct parts {
	struct feed *feed;
	struct engine_fetch *of[GROUP];
	struct guard_copy copy[GROUP];
	size_t n;
};

static void put_part(void *ctx, size_t i)
{
	struct parts *p = ctx;

	feed_put(p->feed, p->of[i], p->copy[i].from);
}

/* All are mapped before the first is copied: mapping anew moves what was
 * mapped. */
static void find_parts(struct map *m, struct parts *p, int64_t *result)
{
	for (unsigned i = 0; i < m->n; i++)
		result[i] = map_container(m, m->group[i]);
	for (unsigned i = 0; i < m->n; i++) {
		struct engine_fetch *f = m->group[i];
		const struct mapping *x;

		if (result[i] < 0)
			continue;
		x = &m->container[f->fd];
		if (x->size < f->offset + f->size) { /* as the file was */
			result[i] =
				(int64_t)(x->size - MIN(x->size, f->offset));
			continue;
		}
		result[i] = (int64_t)f->size;
		p->copy[p->n].to = f->buf;
		p->copy[p->n].from = x->p + f->offset;
		p->copy[p->n].n = f->size;
		p->of[p->n++] = f;
	}
}

/* `direct`: into their batch, transformed. */
static void read_parts(struct map *m, struct feed *feed, bool direct,
		       int64_t *result)
{
	struct parts p;

	p.feed = feed;
	p.n = 0;
	find_parts(m, &p, result);
	guard_copies(p.copy, p.n, direct ? put_part : NULL, &p);
	for (unsigned i = 0, k = 0; k < p.n; i++) {
		if (m->group[i] != p.of[k])
			continue;
		if (p.copy[k].failed)
			result[i] = result_of(p.of[k]->fd, p.of[k]->offset,
					      p.of[k]->size, false);
		k++;
	}
	check_parts(m, result);
}

static int64_t read_file(const struct map *m, const struct engine_fetch *f)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = util_open_file(f->dirfd, f->path, 0, &st);
	return fd < 0 ? fd
		      : read_start(m, fd, f->buf,
				   MIN((uint64_t)st.st_size, f->size + 1));
}

/* After a fast group. Then what the next one takes is the time of its
 * transforms, unless it turns out to be slow. */
static bool is_direct(const struct map *m)
{
	return m->most > 1 && m->group[0]->fd >= 0 && m->group[0]->out;
}

static uint64_t slow_ns(const struct map *m, const struct feed *feed,
			bool direct)
{
	uint64_t bytes = direct ? m->n * feed_out_bytes(feed) : 0;

	for (unsigned i = 0; !direct && i < m->n; i++)
		bytes += m->group[i]->size;
	return SLOW_NS + bytes / SLOW_BYTES;
}

static void read_group(struct map *m, struct feed *feed)
{
	uint64_t start = tick_wall();
	bool direct = is_direct(m), fast;
	int64_t result[GROUP];

	if (m->group[0]->fd >= 0)
		read_parts(m, feed, direct, result);
	else
		result[0] = read_file(m, m->group[0]);
	fast = tick_wall() - start <= slow_ns(m, feed, direct);
	feed_done_run(feed, m->group, result, m->n, direct && fast);
	m->most = fast ? MIN(2 * m->most, GROUP) : 1;
}

static void fini(void *state)
{
	struct map *m = state;

	for (size_t i = 0; i < m->n_containers; i++)
		if (m->container[i].p)
			munmap(m->container[i].p, m->container[i].size);
	free(m->container);
	if (m->guarded)
		guard_end();
}

static int next_mmap(void *state, struct feed *feed, struct engine_fetch **ret,
		     struct err *err)
{
	struct map *m = state;
	int n;

	(void)err;
	if (m->returned == m->n) {
		n = feed_take_run(feed, GROUP_BYTES, m->group, m->most);
		if (n < 0)
			return n;
		m->n = (unsigned)n;
		m->returned = 0;
		read_group(m, feed);
	}
	*ret = m->group[m->returned++];
	return 0;
}

const struct engine_ops engine_mmap = {
	.plugin = { .name = "mmap",
		    .summary = "memory maps, a worker owns a batch; a "
			       "truncated file is a failed sample",
		    .state_size = sizeof(struct map),
		    PLUGIN_OPTIONS(fields, defaults) },
	.whole_batches = true,
	.init = init_mmap,
	.fini = fini,
	.next = next_mmap,
};
