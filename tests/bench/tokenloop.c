/* SPDX-License-Identifier: MIT */
/*
 * tokenloop FILE LENGTH THREADS PASSES raw|rows: the windows of a file of
 * uint16 tokens in random order, out of one mapping, PASSES times, distributed
 * over THREADS in batches of 64; prints the best pass as windows per second.
 * `rows` makes inputs and labels in int64, as nanoGPT's get_batch does; `raw`
 * copies the window. Each thread fills 8 batches in turn: a loader has some
 * ahead, too.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/tick.h"
#include "common/util.h"

enum { BATCH = 64, BATCHES = 8, MAX_THREADS = 64 };

static struct {
	const uint16_t *tokens;
	uint32_t *order;
	uint64_t n, next, length;
	int rows;
} all;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void copy_rows(int64_t *to, const uint16_t *from)
{
	int64_t *y = to + all.length;

	for (uint64_t i = 0; i < all.length; i++)
		to[i] = from[i];
	for (uint64_t i = 0; i < all.length; i++)
		y[i] = from[i + 1];
}

static void *reader(void *arg)
{
	size_t each = all.rows ? 2 * all.length * sizeof(int64_t)
			       : (all.length + 1) * sizeof(uint16_t);
	char *batch = malloc(each * BATCH * BATCHES);
	uint64_t at, turn = 0;

	if (!batch)
		die("malloc");
	while ((at = __atomic_fetch_add(&all.next, BATCH, __ATOMIC_RELAXED)) <
	       all.n) {
		char *to = batch + each * BATCH * (turn++ % BATCHES);

		for (uint64_t i = at; i < MIN(at + BATCH, all.n); i++) {
			const uint16_t *w =
				all.tokens + all.order[i] * all.length;

			if (all.rows)
				copy_rows((int64_t *)(void *)to, w);
			else
				memcpy(to, w, each);
			to += each;
		}
	}
	free(batch);
	return arg;
}

static void map(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	all.tokens =
		mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (all.tokens == MAP_FAILED)
		die("mmap");
	all.n = ((uint64_t)st.st_size / sizeof(uint16_t) - 1) / all.length;
	all.order = malloc(all.n * sizeof(*all.order));
	if (!all.order)
		die("malloc");
	for (uint64_t i = 0; i < all.n; i++)
		all.order[i] = (uint32_t)i;
}

int main(int argc, char **argv)
{
	struct rng r = rng_stream(1, "tokenloop", 0);
	pthread_t thread[MAX_THREADS];
	double best_s = 1e9;
	int threads;

	if (argc != 6) {
		fprintf(stderr, "usage: tokenloop FILE LENGTH THREADS PASSES "
				"raw|rows\n");
		return 2;
	}
	all.length = strtoull(argv[2], NULL, 10);
	threads = MIN(atoi(argv[3]), MAX_THREADS);
	all.rows = !strcmp(argv[5], "rows");
	map(argv[1]);
	for (int pass = 0; pass < atoi(argv[4]); pass++) {
		uint64_t start;
		double s;

		rng_shuffle_u32(&r, all.order, all.n);
		all.next = 0;
		start = tick_wall();
		for (int i = 0; i < threads; i++)
			if (pthread_create(&thread[i], NULL, reader, NULL))
				die("pthread_create");
		for (int i = 0; i < threads; i++)
			pthread_join(thread[i], NULL);
		s = (double)(tick_wall() - start) / 1e9;
		best_s = MIN(best_s, s);
	}
	printf("%.0f\n", (double)all.n / best_s);
	return 0;
}
