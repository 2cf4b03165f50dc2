/* SPDX-License-Identifier: MIT */
/*
 * tokenloop FILE LENGTH THREADS PASSES raw|rows WINDOWS kept|taken: the windows
 * of a file of uint16 tokens in random order, out of one mapping, PASSES times,
 * distributed over THREADS in batches of WINDOWS. Prints the best pass: windows
 * per second, and ns of CPU time for each.
 *
 * `rows` makes inputs and labels in int64, as nanoGPT's get_batch does with
 * numpy, which copies each window once more; `raw` copies the window, as a
 * dataset of Megatron does. The loops are compiled as those of --prep tokens.
 *
 * Each thread fills two batches in turn, in huge pages, as many as gpemu-train
 * has ahead for a worker. `kept`: nobody takes them. `taken`: one more thread
 * does, as in any loader; it sleeps until a batch is full, and gives it back.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
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
#include "loader/prep/wider.h"

enum { BATCHES = 2, MAX_THREADS = 64, HUGE = 2 << 20 };

static struct {
	const uint16_t *tokens;
	uint32_t *order;
	uint64_t n, next, length, batch;
	int rows, taken;
} all;

/* A reader's batches that are full and not given back. */
struct full {
	unsigned n;
	pthread_cond_t back;
};

/* Full batches by their reader, in the order in which they were filled. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t full;
	struct full *ring[BATCHES * MAX_THREADS];
	unsigned first, n;
	bool over;
} hand = { .lock = PTHREAD_MUTEX_INITIALIZER,
	   .full = PTHREAD_COND_INITIALIZER };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

WIDER static void widen(int64_t *restrict to, const uint16_t *restrict from,
			uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = from[i];
}

static void copy_rows(int64_t *to, const uint16_t *from)
{
	widen(to, from, all.length);
	widen(to + all.length, from + 1, all.length);
}

static char *memory(size_t bytes)
{
	void *p;

	if (posix_memalign(&p, HUGE, bytes))
		die("posix_memalign");
	madvise(p, bytes, MADV_HUGEPAGE); /* a hint; may be refused */
	return p;
}

static void give(struct full *mine)
{
	pthread_mutex_lock(&hand.lock);
	mine->n++;
	hand.ring[(hand.first + hand.n++) % (BATCHES * MAX_THREADS)] = mine;
	pthread_mutex_unlock(&hand.lock);
	pthread_cond_signal(&hand.full);
}

static void await(struct full *mine, unsigned most)
{
	pthread_mutex_lock(&hand.lock);
	while (mine->n > most)
		pthread_cond_wait(&mine->back, &hand.lock);
	pthread_mutex_unlock(&hand.lock);
}

static void *taker(void *arg)
{
	pthread_mutex_lock(&hand.lock);
	for (;;) {
		struct full *of;

		while (!hand.n && !hand.over)
			pthread_cond_wait(&hand.full, &hand.lock);
		if (!hand.n)
			break;
		of = hand.ring[hand.first];
		hand.first = (hand.first + 1) % (BATCHES * MAX_THREADS);
		hand.n--;
		/* where a step would be */
		pthread_mutex_unlock(&hand.lock);
		pthread_mutex_lock(&hand.lock);
		of->n--;
		pthread_cond_signal(&of->back);
	}
	pthread_mutex_unlock(&hand.lock);
	return arg;
}

static void fill(char *to, uint64_t at, size_t each)
{
	for (uint64_t i = at; i < MIN(at + all.batch, all.n); i++) {
		const uint16_t *w = all.tokens + all.order[i] * all.length;

		if (all.rows)
			copy_rows((int64_t *)(void *)to, w);
		else
			memcpy(to, w, each);
		to += each;
	}
}

static void *reader(void *arg)
{
	struct full mine = { .back = PTHREAD_COND_INITIALIZER };
	size_t each = all.rows ? 2 * all.length * sizeof(int64_t)
			       : (all.length + 1) * sizeof(uint16_t);
	char *batch = memory(each * all.batch * BATCHES);
	uint64_t at, turn = 0;

	while ((at = __atomic_fetch_add(&all.next, all.batch,
					__ATOMIC_RELAXED)) < all.n) {
		if (all.taken)
			await(&mine, BATCHES - 1);
		fill(batch + each * all.batch * (turn++ % BATCHES), at, each);
		if (all.taken)
			give(&mine);
	}
	await(&mine, 0);
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

static void pass(int threads)
{
	pthread_t thread[MAX_THREADS], takes;

	all.next = 0;
	hand.over = false;
	if (all.taken && pthread_create(&takes, NULL, taker, NULL))
		die("pthread_create");
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, reader, NULL))
			die("pthread_create");
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (!all.taken)
		return;
	pthread_mutex_lock(&hand.lock);
	hand.over = true;
	pthread_mutex_unlock(&hand.lock);
	pthread_cond_signal(&hand.full);
	pthread_join(takes, NULL);
}

int main(int argc, char **argv)
{
	struct rng r = rng_stream(1, "tokenloop", 0);
	double best_ns = 1e18, cpu_ns = 0;

	if (argc != 8 ||
	    (strcmp(argv[7], "kept") && strcmp(argv[7], "taken"))) {
		fprintf(stderr, "usage: tokenloop FILE LENGTH THREADS PASSES "
				"raw|rows WINDOWS kept|taken\n");
		return 2;
	}
	all.length = strtoull(argv[2], NULL, 10);
	all.rows = !strcmp(argv[5], "rows");
	all.taken = !strcmp(argv[7], "taken");
	all.batch = strtoull(argv[6], NULL, 10);
	map(argv[1]);
	for (int i = 0; i < atoi(argv[4]); i++) {
		uint64_t start, cpu;
		double ns;

		rng_shuffle_u32(&r, all.order, all.n);
		start = tick_wall();
		cpu = tick_cpu();
		pass(MIN(atoi(argv[3]), MAX_THREADS));
		ns = (double)(tick_wall() - start);
		if (ns < best_ns) {
			best_ns = ns;
			cpu_ns = (double)(tick_cpu() - cpu);
		}
	}
	printf("%.0f %.1f\n", (double)all.n / best_ns * 1e9,
	       cpu_ns / (double)all.n);
	return 0;
}
