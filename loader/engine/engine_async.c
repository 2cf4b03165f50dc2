/* SPDX-License-Identifier: MIT */
/*
 * io_uring, one ring per worker: the thread that issues a read also transforms
 * the sample, so nothing passes between threads. A file is one chain of three,
 *
 *	openat_direct --> read --> close_direct
 *
 * into a descriptor slot of the ring's own; one system call covers many files.
 * The close is hard-linked: a read requests one byte more than the file should
 * have, so it is always short, which would break a plain link.
 *
 * The number in flight adapts itself: new chains are submitted a few at a time,
 * and submission stops once completions are available. From the page cache the
 * kernel completes chains during submission, so few are in flight and their
 * buffers stay in the CPU's cache (measured: 180,000 files/s with 8, 66,000
 * with 128 in flight, 115 KB files, 2 cores). On a slow device there are no
 * completions yet, and submission continues up to the full depth.
 *
 * Some file systems (FUSE, NFS) always block in open(2). This blocks the
 * submission and all chains after it: only one file per ring would be in
 * flight. So each submission checks whether the thread slept; if it did, the
 * next chains go to the kernel's threads, one thread for each. Now and then one
 * chain is tried without, since a thread costs more than a read from the page
 * cache.
 *
 * Descriptors are registered, since a chain needs slots. Buffers are not: it
 * gains 2 to 6 % of a bare chain from the page cache (tests/bench/ringloop with
 * and without `fixed`, 2 cores), but every window that grows would need a new
 * registration with every ring. (--pin direct, which saves the copy of a batch,
 * gains 30 % and more without.)
 *
 * An open blocks for ever if a pipe or a device replaced the file. O_NONBLOCK
 * does not help: on file systems without non-blocking reads, reads of ordinary
 * files then fail too. So when nothing completes for a while, the files in
 * flight are checked, and opens of anything else are canceled.
 *
 * Samples that are objects of a bucket have no descriptors: libcurl's requests
 * take the place of the ring (loader/engine/store.c).
 *
 * A chain that does not end with exactly the bytes expected (a full table, an
 * interrupted or short read, a changed file) is read again with blocking calls,
 * and that result counts.
 */
#include "loader/engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/conf/conf.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/engine/readfile.h"
#include "loader/engine/store.h"

struct options {
	uint64_t submit, punt;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(submit, CONF_UINT, struct options), .min = 1, .max = 1024,
	  .arg = "N", .help = "files per submission" },
	{ CONF_KEY(punt, CONF_UINT, struct options), .max = 1 << 20, .arg = "N",
	  .help = "where opens block, leave N files to kernel threads before "
		  "the next attempt without them" },
	{ 0 },
};

static const struct options defaults = {
	/* Source: measured, 4 to 16 differ by less than runs */
	.submit = 8,
	/* arbitrary: a blocked trial costs less than 1/256 of the time */
	.punt = 256,
};
/* Longer reads are cut short; the blocking calls then read the sample. */
#define MAX_READ (1u << 30)
/* Between retries when the kernel has no memory for a request. arbitrary */
#define RETRY_NS (1 * NS_PER_MS)
/* Without a completion for this long, the files in flight are checked.
 * arbitrary: a check takes microseconds, and each file needs one */
#define PATIENCE_NS (100 * NS_PER_MS)
/* The user data of cancel requests. */
#define CANCEL UINT64_MAX

enum op { OP_OPEN, OP_READ, OP_CLOSE, N_OPS };

struct chain {
	struct engine_fetch *fetch;
	struct readspan span;
	int64_t result[N_OPS];
	unsigned n_left; /* completions to come; 0: unused */
	bool suspect;	 /* it may open no regular file */
};

struct async {
	struct store_reads *store; /* instead of all below; or NULL */
	struct io_uring ring;
	bool up;
	unsigned depth, bite;
	unsigned most_punt; /* options.punt */
	uint32_t direct;
	unsigned n_chains;   /* in flight */
	unsigned n_suspects; /* suspects among them */
	struct chain *chain; /* depth, by fetch slot */
	/* a ring of depth: completed reads, to be returned in this order */
	struct engine_fetch **ready;
	unsigned first, n_ready;
	unsigned punt; /* chains that still go to the kernel's threads */
	bool slow;     /* the last trial blocked */
};

static int unavailable(struct err *err, int r, const char *what)
{
	if (r == -EMFILE)
		return err_set(
			err, -EPERM,
			"too few descriptors for the reads in flight: raise "
			"`ulimit -n` or use a smaller --queue-depth");
	/* ENOSYS: not in this kernel; EPERM: forbidden by sysctl or sandbox;
	 * EINVAL: too old for descriptor slots. All mean: unavailable here. */
	if (r == -ENOSYS || r == -EINVAL || r == -EACCES)
		r = -EPERM;
	return err_set(err, r,
		       "io_uring is not available (%s: %s): Linux 5.19 or "
		       "later and permission are needed; run with --loader "
		       "sync",
		       what, strerror(-r));
}

static int init_async(void *state, const struct engine_config *config,
		      struct err *err)
{
	const struct options *o = config->options ? config->options : &defaults;
	struct async *a = state;
	unsigned depth = config->depth;
	struct io_uring_params p = { .flags = IORING_SETUP_CQSIZE,
				     .cq_entries = depth * N_OPS };
	/* one per blocking chain, on file systems that always block */
	unsigned threads[2] = { depth, depth };
	int r;

	if (config->bucket)
		return store_reads_new(config->bucket, depth, &a->store, err);
	a->depth = depth;
	a->bite = (unsigned)o->submit;
	a->most_punt = (unsigned)o->punt;
	a->direct = config->direct;
	a->chain = calloc(depth, sizeof(*a->chain));
	a->ready = calloc(depth, sizeof(struct engine_fetch *));
	if (!a->chain || !a->ready)
		return err_set(err, -ENOMEM, "out of memory");
	r = io_uring_queue_init_params(MIN(depth, a->bite) * N_OPS, &a->ring,
				       &p);
	if (r < 0)
		return unavailable(err, r, "io_uring_setup");
	a->up = true;
	r = io_uring_register_files_sparse(&a->ring, depth);
	if (r < 0)
		return unavailable(err, r, "registering descriptors");
	r = io_uring_register_iowq_max_workers(&a->ring, threads);
	return r < 0 ? unavailable(err, r, "limiting its threads") : 0;
}

static void tag(struct io_uring_sqe *e, const struct engine_fetch *f,
		enum op op)
{
	io_uring_sqe_set_data64(e, (uint64_t)f->slot * N_OPS + op);
}

/* For an open container: only a read. */
static void add_read(struct async *a, struct engine_fetch *f)
{
	struct chain *c = &a->chain[f->slot];
	struct io_uring_sqe *e = io_uring_get_sqe(&a->ring);

	c->n_left = 1;
	c->result[OP_OPEN] = 0;
	io_uring_prep_read(e, f->fd, f->buf,
			   (unsigned)MIN(c->span.want, MAX_READ), c->span.from);
	e->flags |= a->punt ? IOSQE_ASYNC : 0;
	tag(e, f, OP_READ);
}

/* The caller has checked that there is room for a chain. */
static void add_chain(struct async *a, struct engine_fetch *f)
{
	struct chain *c = &a->chain[f->slot];
	int flags = O_RDONLY | (a->direct ? O_DIRECT : 0);
	struct io_uring_sqe *e;

	c->fetch = f;
	c->span = readspan(f, a->direct);
	a->n_chains++;
	if (f->fd >= 0) {
		add_read(a, f);
		return;
	}
	c->n_left = N_OPS;
	c->suspect = true;
	a->n_suspects++;
	e = io_uring_get_sqe(&a->ring);
	io_uring_prep_openat_direct(e, f->dirfd, f->path, flags, 0, f->slot);
	e->flags |= IOSQE_IO_LINK | (a->punt ? IOSQE_ASYNC : 0);
	tag(e, f, OP_OPEN);
	e = io_uring_get_sqe(&a->ring);
	io_uring_prep_read(e, (int)f->slot, f->buf,
			   (unsigned)MIN(c->span.want, MAX_READ), 0);
	e->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
	tag(e, f, OP_READ);
	e = io_uring_get_sqe(&a->ring);
	io_uring_prep_close_direct(e, f->slot);
	tag(e, f, OP_CLOSE);
}

static void clear(struct async *a, struct chain *c)
{
	a->n_suspects -= c->suspect;
	c->suspect = false;
}

static void chain_done(struct async *a, struct feed *feed, struct chain *c)
{
	struct engine_fetch *f = c->fetch;
	int64_t n = c->result[OP_READ];

	if (n >= 0)
		n = readspan_got(&c->span, f, (uint64_t)n);
	if (c->result[OP_OPEN] < 0 || n < 0 || (uint64_t)n != f->size)
		n = readfile(f, a->direct);
	feed_done(feed, f, n);
	a->ready[(a->first + a->n_ready++) % a->depth] = f;
}

/* Reap completions. `feed` NULL: only discard them. */
static void reap(struct async *a, struct feed *feed)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	io_uring_for_each_cqe(&a->ring, head, cqe)
	{
		uint64_t id = io_uring_cqe_get_data64(cqe);
		struct chain *c;

		n++;
		if (id == CANCEL)
			continue;
		c = &a->chain[id / N_OPS];
		c->result[id % N_OPS] = cqe->res;
		if (--c->n_left)
			continue;
		clear(a, c);
		a->n_chains--;
		if (feed)
			chain_done(a, feed, c);
	}
	io_uring_cq_advance(&a->ring, n);
}

/* Voluntary context switches of this thread. */
static long n_sleeps(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

/* Submit `n` chains without the kernel's threads, and check whether they
 * block. */
static int try_inline(struct async *a, unsigned n)
{
	long before = n_sleeps();
	int r = io_uring_submit(&a->ring);

	a->slow = (n_sleeps() - before) * 2 > n;
	a->punt = a->slow ? a->most_punt : 0;
	return r;
}

/* Cancel the open or, if the pipe has a writer, the read. -EBUSY: no room
 * now. */
static int cancel(struct async *a, const struct engine_fetch *f)
{
	if (io_uring_sq_space_left(&a->ring) < 2)
		return -EBUSY;
	for (enum op op = OP_OPEN; op <= OP_READ; op++) {
		struct io_uring_sqe *e = io_uring_get_sqe(&a->ring);

		io_uring_prep_cancel64(e, (uint64_t)f->slot * N_OPS + op, 0);
		io_uring_sqe_set_data64(e, CANCEL);
	}
	return 0;
}

/* A suspect that opens no regular file is canceled again until it completes. */
static void cancel_what_is_no_file(struct async *a)
{
	struct stat st;

	for (unsigned i = 0; i < a->depth; i++) {
		struct chain *c = &a->chain[i];

		if (!c->suspect)
			continue;
		if (fstatat(c->fetch->dirfd, c->fetch->path, &st, 0) < 0 ||
		    S_ISREG(st.st_mode))
			clear(a, c);
		else if (cancel(a, c->fetch) < 0)
			return;
	}
}

/* Submit, and wait for a completion. */
static int submit_and_wait(struct async *a)
{
	struct __kernel_timespec patience = { .tv_nsec = PATIENCE_NS };
	struct io_uring_cqe *cqe;
	int r;

	if (a->n_suspects == 0)
		return io_uring_submit_and_wait(&a->ring, 1);
	r = io_uring_submit_and_wait_timeout(&a->ring, &cqe, 1, &patience,
					     NULL);
	if (r != -ETIME)
		return r;
	cancel_what_is_no_file(a);
	return 0;
}

/*
 * Submit the `n` prepared chains; with `wait`, wait for a completion. EINTR is
 * retried. EAGAIN and ENOMEM (no memory for a request) and EBUSY (completions
 * must be reaped first) go away after completions, or after a pause.
 */
static int submit(struct async *a, unsigned n, bool wait)
{
	int r = 0;

	if (n && a->punt == 0)
		r = try_inline(a, n);
	else
		a->punt -= MIN(a->punt, n);
	if (r >= 0 && io_uring_cq_ready(&a->ring) == 0)
		r = wait ? submit_and_wait(a) : io_uring_submit(&a->ring);
	if (r >= 0 || r == -EINTR)
		return 0;
	if (r != -EAGAIN && r != -EBUSY && r != -ENOMEM)
		return r;
	if (io_uring_cq_ready(&a->ring) == 0)
		tick_pause(RETRY_NS);
	return 0;
}

/* Prepare up to `most` chains; returns how many, or -errno. */
static int take_chains(struct async *a, struct feed *feed, unsigned most)
{
	unsigned n = 0;

	while (n < most && io_uring_sq_space_left(&a->ring) >= N_OPS) {
		bool idle = n == 0 && a->n_chains == 0 && a->n_ready == 0;
		struct engine_fetch *f;
		int r = feed_take(feed, idle, &f);

		if (r == -EAGAIN)
			break;
		if (r < 0)
			return r;
		add_chain(a, f);
		n++;
	}
	return (int)n;
}

static int next_async(void *state, struct feed *feed, struct engine_fetch **ret,
		      struct err *err)
{
	struct async *a = state;
	bool more = true;

	if (a->store)
		return store_reads_next(a->store, feed, ret);
	/* after a full bite there may be more to take */
	while (a->n_ready == 0 || (more && a->n_ready < a->bite)) {
		unsigned most = a->slow && a->punt == 0 ? 1 : a->bite;
		int n = take_chains(a, feed, most), r;

		if (n < 0)
			return n;
		more = (unsigned)n == most;
		if (n == 0 && a->n_ready)
			break;
		r = submit(a, (unsigned)n, !more && a->n_ready == 0);
		if (r < 0)
			return err_set(err, r, "io_uring: %s", strerror(-r));
		reap(a, feed);
	}
	*ret = a->ready[a->first];
	a->first = (a->first + 1) % a->depth;
	a->n_ready--;
	return 0;
}

static void fini(void *state)
{
	struct async *a = state;

	store_reads_free(a->store);
	/* reads in flight still write to their buffers */
	while (a->up && a->n_chains && submit(a, 0, true) == 0)
		reap(a, NULL);
	if (a->up)
		io_uring_queue_exit(&a->ring);
	free(a->chain);
	free(a->ready);
}

const struct engine_ops engine_async = {
	.plugin = { .name = "async",
		    .summary = "io_uring: many files in flight, delivered "
			       "as they complete",
		    .state_size = sizeof(struct async),
		    PLUGIN_OPTIONS(fields, defaults) },
	.can_direct = true,
	.init = init_async,
	.fini = fini,
	.next = next_async,
};
