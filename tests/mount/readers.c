/* SPDX-License-Identifier: MIT */
/*
 * readers DIR N MODE: open the first N files below DIR (or as many as may be
 * open, and read those several times), read 4 KiB from the start of each, and
 * print one line: the wall time of all reads in ms, from the start of the
 * first, the mean time of a read in us, the shortest and the median.
 * Exit status 1 when a read fails.
 *
 *	serial      one after the other
 *	paced       the same, with 10 ms of idleness before each: a processor
 *		    that slept answers later than one in a busy loop
 *	together    N threads that start their reads at once
 */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/tick.h"

enum { MAX = 20000 };

static struct {
	int fds[MAX];
	uint64_t began_ns[MAX], took_ns[MAX];
	int n, most; /* open files */
	int n_reads;
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
	return ++all.n == all.most;
}

static void read_one(int i)
{
	char buf[4096];
	uint64_t start = tick_wall();

	if (pread(all.fds[i % all.n], buf, sizeof(buf), 0) < 0) {
		perror("pread");
		exit(1);
	}
	all.began_ns[i] = start;
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
	pthread_t *threads = calloc((size_t)all.n_reads, sizeof(*threads));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_barrier_init(&all.start, NULL, (unsigned)all.n_reads + 1);
	for (int i = 0; i < all.n_reads; i++)
		if (pthread_create(&threads[i], &attr, thread,
				   (void *)(intptr_t)i)) {
			perror("pthread_create");
			exit(1);
		}
	pthread_barrier_wait(&all.start);
	for (int i = 0; i < all.n_reads; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The library uses some of the open files that the limit allows. */
static int most_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 256;
	return limit.rlim_cur > all.n_reads + 32u ? all.n_reads
						  : (int)limit.rlim_cur - 32;
}

static void one_by_one(bool paced)
{
	for (int i = 0; i < all.n_reads; i++) {
		if (paced)
			tick_pause(10000000);
		read_one(i);
	}
}

static void print(void)
{
	uint64_t sum = 0, first = UINT64_MAX, last = 0;

	for (int i = 0; i < all.n_reads; i++) {
		sum += all.took_ns[i];
		if (all.began_ns[i] < first)
			first = all.began_ns[i];
		if (all.began_ns[i] + all.took_ns[i] > last)
			last = all.began_ns[i] + all.took_ns[i];
	}
	qsort(all.took_ns, (size_t)all.n_reads, sizeof(all.took_ns[0]),
	      by_time);
	printf("%.3f %.1f %.1f %.1f\n", (double)(last - first) / 1e6,
	       (double)sum / all.n_reads / 1e3, (double)all.took_ns[0] / 1e3,
	       (double)all.took_ns[all.n_reads / 2] / 1e3);
}

int main(int argc, char **argv)
{
	if (argc != 4 || (all.n_reads = atoi(argv[2])) < 1 || all.n_reads > MAX)
		return 2;
	all.most = most_files();
	if (nftw(argv[1], visit, 16, FTW_PHYS) < 0 || all.n < all.most) {
		fprintf(stderr, "%d files, not %d\n", all.n, all.most);
		return 1;
	}
	if (!strcmp(argv[3], "together"))
		together();
	else
		one_by_one(!strcmp(argv[3], "paced"));
	print();
	return 0;
}
