/* SPDX-License-Identifier: MIT */
/*
 * readers DIR N MODE: open the first N files below DIR, read 4 KiB from the
 * start of each, and print one line: the wall time of all reads in ms, the
 * mean time of a read in us, the shortest and the median.
 *
 *	serial      one after the other
 *	paced       the same, with 10 ms of idleness before each: a processor
 *		    that slept answers later than one in a busy loop
 *	together    N threads that start their reads at once
 */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tick.h"

enum { MAX = 20000 };

static struct {
	int fds[MAX];
	uint64_t took_ns[MAX];
	int n, want;
	pthread_barrier_t start;
} all;

static int visit(const char *path, const struct stat *st, int type,
		 struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type != FTW_F)
		return 0;
	all.fds[all.n] = open(path, O_RDONLY);
	if (all.fds[all.n] < 0) {
		perror(path);
		return 1;
	}
	return ++all.n == all.want;
}

static void read_one(int i)
{
	char buf[4096];
	uint64_t start = tick_wall();

	if (pread(all.fds[i], buf, sizeof(buf), 0) < 0) {
		perror("pread");
		exit(1);
	}
	all.took_ns[i] = tick_wall() - start;
}

static void *thread(void *arg)
{
	pthread_barrier_wait(&all.start);
	read_one((int)(intptr_t)arg);
	return NULL;
}

static void together(void)
{
	pthread_t *threads = calloc((size_t)all.n, sizeof(*threads));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_barrier_init(&all.start, NULL, (unsigned)all.n + 1);
	for (int i = 0; i < all.n; i++)
		if (pthread_create(&threads[i], &attr, thread,
				   (void *)(intptr_t)i)) {
			perror("pthread_create");
			exit(1);
		}
	pthread_barrier_wait(&all.start);
	for (int i = 0; i < all.n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	uint64_t start, wall, sum = 0, least = UINT64_MAX;

	if (argc != 4 || (all.want = atoi(argv[2])) < 1 || all.want > MAX)
		return 2;
	if (nftw(argv[1], visit, 16, FTW_PHYS) < 0 || all.n < all.want) {
		fprintf(stderr, "%d files, not %d\n", all.n, all.want);
		return 1;
	}
	start = tick_wall();
	if (!strcmp(argv[3], "together"))
		together();
	else
		for (int i = 0; i < all.n; i++) {
			if (!strcmp(argv[3], "paced"))
				tick_pause(10000000);
			read_one(i);
		}
	wall = tick_wall() - start;
	for (int i = 0; i < all.n; i++) {
		sum += all.took_ns[i];
		least = all.took_ns[i] < least ? all.took_ns[i] : least;
	}
	qsort(all.took_ns, (size_t)all.n, sizeof(all.took_ns[0]), by_time);
	printf("%.3f %.1f %.1f %.1f\n", (double)wall / 1e6,
	       (double)sum / all.n / 1e3, (double)least / 1e3,
	       (double)all.took_ns[all.n / 2] / 1e3);
	return 0;
}
