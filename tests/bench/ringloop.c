/* SPDX-License-Identifier: MIT */
/*
 * ringloop DIR RINGS DEPTH PASSES [fixed]: every file below DIR in random
 * order, PASSES times, as chains of openat_direct, read and close_direct: RINGS
 * threads with a ring each, and DEPTH chains in flight in each, with a buffer
 * for each chain (`fixed`: registered with the ring). Prints the best pass as
 * files per second. The minimal cost of io_uring.
 */
#include <fcntl.h>
#include <ftw.h>
#include <liburing.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/tick.h"
#include "common/util.h"

enum { MAX_FILES = 200000, MAX_RINGS = 64, OPS = 3 };

static struct {
	char *path[MAX_FILES];
	uint32_t order[MAX_FILES];
	uint32_t n, next, bytes; /* bytes of the largest, and one */
	unsigned depth;
	int fixed;
} all;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int visit(const char *path, const struct stat *st, int type,
		 struct FTW *ftw)
{
	if (type != FTW_F || path[ftw->base] == '.')
		return 0;
	all.path[all.n] = strdup(path);
	all.bytes = MAX(all.bytes, (uint32_t)st->st_size + 1);
	return ++all.n == MAX_FILES || !all.path[all.n - 1];
}

static void add(struct io_uring *ring, unsigned slot, char *buf,
		const char *path)
{
	struct io_uring_sqe *e = io_uring_get_sqe(ring);

	io_uring_prep_openat_direct(e, AT_FDCWD, path, O_RDONLY, 0, slot);
	e->flags |= IOSQE_IO_LINK;
	io_uring_sqe_set_data64(e, (uint64_t)slot * OPS);
	e = io_uring_get_sqe(ring);
	if (all.fixed)
		io_uring_prep_read_fixed(e, (int)slot, buf, all.bytes, 0,
					 (int)slot);
	else
		io_uring_prep_read(e, (int)slot, buf, all.bytes, 0);
	e->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
	io_uring_sqe_set_data64(e, (uint64_t)slot * OPS + 1);
	e = io_uring_get_sqe(ring);
	io_uring_prep_close_direct(e, slot);
	io_uring_sqe_set_data64(e, (uint64_t)slot * OPS + 2);
}

static void set_up(struct io_uring *ring, char *memory)
{
	struct iovec *iov = calloc(all.depth, sizeof(*iov));
	int r = io_uring_queue_init(all.depth * OPS, ring, 0);

	if (r == 0)
		r = io_uring_register_files_sparse(ring, all.depth);
	for (unsigned i = 0; iov && i < all.depth; i++)
		iov[i] = (struct iovec){ memory + (size_t)i * all.bytes,
					 all.bytes };
	if (r == 0 && all.fixed)
		r = io_uring_register_buffers(ring, iov, all.depth);
	if (r < 0 || !iov) {
		fprintf(stderr, "io_uring: %s\n", strerror(-r));
		exit(1);
	}
	free(iov);
}

/* Take completions; the slots of complete files go on the stack. */
static unsigned reap(struct io_uring *ring, unsigned *stack)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0, done = 0;

	io_uring_for_each_cqe(ring, head, cqe)
	{
		uint64_t id = io_uring_cqe_get_data64(cqe);

		if (cqe->res < 0)
			die("chain");
		n++;
		if (id % OPS == OPS - 1)
			stack[done++] = (unsigned)(id / OPS);
	}
	io_uring_cq_advance(ring, n);
	return done;
}

static void *reader(void *arg)
{
	char *memory = util_aligned_alloc(4096, (size_t)all.bytes * all.depth);
	unsigned *stack = calloc(all.depth, sizeof(*stack));
	unsigned n_unused = all.depth, n_out = 0;
	struct io_uring ring;

	if (!memory || !stack)
		die("malloc");
	memset(memory, 1, (size_t)all.bytes * all.depth);
	set_up(&ring, memory);
	for (unsigned i = 0; i < all.depth; i++)
		stack[i] = i;
	for (;;) {
		uint32_t i = 0;
		unsigned n;

		while (n_unused && i < all.n) {
			i = __atomic_fetch_add(&all.next, 1, __ATOMIC_RELAXED);
			if (i >= all.n)
				break;
			n_unused--;
			add(&ring, stack[n_unused],
			    memory + (size_t)stack[n_unused] * all.bytes,
			    all.path[all.order[i]]);
			n_out++;
		}
		if (n_out == 0)
			break;
		io_uring_submit_and_wait(&ring, 1);
		n = reap(&ring, stack + n_unused);
		n_unused += n;
		n_out -= n;
	}
	io_uring_queue_exit(&ring);
	free(stack);
	free(memory);
	return arg;
}

int main(int argc, char **argv)
{
	struct rng r = rng_stream(1, "ringloop", 0);
	pthread_t threads[MAX_RINGS];
	double best_s = 1e9;
	int n;

	if (argc < 5 || (n = atoi(argv[2])) < 1 || n > MAX_RINGS ||
	    (all.depth = (unsigned)atoi(argv[3])) < 1)
		return 2;
	all.fixed = argc > 5 && !strcmp(argv[5], "fixed");
	if (nftw(argv[1], visit, 16, FTW_PHYS) < 0 || !all.n)
		die(argv[1]);
	for (uint32_t i = 0; i < all.n; i++)
		all.order[i] = i;
	for (int pass = 0; pass < atoi(argv[4]); pass++) {
		uint64_t start = tick_wall();

		rng_shuffle_u32(&r, all.order, all.n);
		all.next = 0;
		for (int t = 0; t < n; t++)
			if (pthread_create(&threads[t], NULL, reader, NULL))
				die("pthread_create");
		for (int t = 0; t < n; t++)
			pthread_join(threads[t], NULL);
		best_s = MIN(best_s, (double)(tick_wall() - start) / 1e9);
	}
	printf("%.0f\n", all.n / best_s);
	return 0;
}
