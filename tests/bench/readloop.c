/* SPDX-License-Identifier: MIT */
/*
 * readloop DIR THREADS PASSES: open, fstat, read and close every file below DIR
 * in random order, PASSES times, distributed over THREADS; prints the best pass
 * as files per second and MiB per second. The minimal cost of any loader on a
 * file system.
 */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/tick.h"
#include "common/util.h"

enum { MAX_FILES = 200000, MAX_THREADS = 64, BUFFER = 32 << 20 };

static struct {
	char *path[MAX_FILES];
	uint32_t order[MAX_FILES];
	uint32_t n, next;
	uint64_t bytes;
} all;

static int visit(const char *path, const struct stat *st, int type,
		 struct FTW *ftw)
{
	(void)st;
	if (type != FTW_F || path[ftw->base] == '.')
		return 0;
	all.path[all.n] = strdup(path);
	return ++all.n == MAX_FILES || !all.path[all.n - 1];
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void read_file(const char *path, char *buf)
{
	struct stat st;
	ssize_t got;
	off_t at = 0;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	for (; at < st.st_size; at += got) {
		got = read(fd, buf, MIN((size_t)(st.st_size - at), BUFFER));
		if (got <= 0)
			die(path);
	}
	close(fd);
	__atomic_fetch_add(&all.bytes, (uint64_t)st.st_size, __ATOMIC_RELAXED);
}

static void *reader(void *arg)
{
	char *buf = malloc(BUFFER);
	uint32_t i;

	if (!buf)
		die("malloc");
	while ((i = __atomic_fetch_add(&all.next, 1, __ATOMIC_RELAXED)) < all.n)
		read_file(all.path[all.order[i]], buf);
	free(buf);
	return arg;
}

int main(int argc, char **argv)
{
	struct rng r = rng_stream(1, "readloop", 0);
	double best_s = 1e9, mib = 0;
	pthread_t threads[MAX_THREADS];
	int n_threads;

	if (argc != 4 || (n_threads = atoi(argv[2])) < 1 ||
	    n_threads > MAX_THREADS)
		return 2;
	if (nftw(argv[1], visit, 16, FTW_PHYS) < 0 || !all.n)
		die(argv[1]);
	for (uint32_t i = 0; i < all.n; i++)
		all.order[i] = i;
	for (int pass = 0; pass < atoi(argv[3]); pass++) {
		uint64_t start = tick_wall();

		rng_shuffle_u32(&r, all.order, all.n);
		all.next = 0;
		all.bytes = 0;
		for (int t = 0; t < n_threads; t++)
			if (pthread_create(&threads[t], NULL, reader, NULL))
				die("pthread_create");
		for (int t = 0; t < n_threads; t++)
			pthread_join(threads[t], NULL);
		double s = (double)(tick_wall() - start) / 1e9;

		best_s = s < best_s ? s : best_s;
		mib = (double)all.bytes / (1 << 20);
	}
	printf("%.0f %.0f\n", all.n / best_s, mib / best_s);
	return 0;
}
