/* SPDX-License-Identifier: MIT */
/*
 * stress SOURCE MOUNT SECONDS THREADS: read random files of MOUNT in random
 * ways (in pieces, as a whole, mapped), and compare each byte with SOURCE.
 * Reads may fail (the mount has faults), bytes may not be wrong. Prints the
 * number of correct, failed and wrong reads; exit status 1 if any was wrong, or
 * none correct.
 */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"

enum { MAX_FILES = 1000, MAX_THREADS = 64, BUFFER = 1 << 20 };

struct file {
	char *path; /* below the root */
	unsigned char *content;
	size_t bytes;
};

static struct {
	const char *source, *mount;
	struct file files[MAX_FILES];
	size_t n;
} all;

struct reader {
	pthread_t thread;
	struct rng rng;
	uint64_t until;
	unsigned char *buf;
	unsigned long right, failed, wrong;
};

/* A mapped page that cannot be read: return to the access. */
static __thread sigjmp_buf retreat;

static void on_bus_error(int signal)
{
	(void)signal;
	siglongjmp(retreat, 1);
}

static int visit(const char *path, const struct stat *st, int type,
		 struct FTW *ftw)
{
	struct file *f = &all.files[all.n];
	FILE *in;

	(void)ftw;
	if (type != FTW_F || all.n == MAX_FILES)
		return 0;
	in = fopen(path, "r");
	f->bytes = (size_t)st->st_size;
	f->content = malloc(f->bytes + 1);
	f->path = strdup(path + strlen(all.source) + 1);
	if (!in || fread(f->content, 1, f->bytes, in) != f->bytes) {
		perror(path);
		return 1;
	}
	fclose(in);
	all.n++;
	return 0;
}

static void count(struct reader *r, const struct file *f, const void *got,
		  size_t n, size_t offset)
{
	if (memcmp(got, f->content + offset, n)) {
		printf("%s: %zu bytes at %zu are wrong\n", f->path, n, offset);
		r->wrong++;
	} else {
		r->right++;
	}
}

static void read_pieces(struct reader *r, int fd, const struct file *f)
{
	for (int i = 0; i < 4; i++) {
		size_t offset = rng_below(&r->rng, f->bytes + 100);
		size_t n = 1 + rng_below(&r->rng,
					 rng_below(&r->rng, 2) ? 5000 : BUFFER);
		size_t want = offset < f->bytes ? MIN(n, f->bytes - offset) : 0;
		ssize_t got = pread(fd, r->buf, n, (off_t)offset);

		if (got < 0)
			r->failed++;
		else if ((size_t)got != want)
			r->wrong++;
		else if (got)
			count(r, f, r->buf, want, offset);
	}
}

static void read_whole(struct reader *r, int fd, const struct file *f)
{
	size_t at = 0;
	ssize_t got;

	while ((got = read(fd, r->buf, BUFFER)) > 0 &&
	       at + (size_t)got <= f->bytes) {
		count(r, f, r->buf, (size_t)got, at);
		at += (size_t)got;
	}
	if (got < 0)
		r->failed++;
	else if (at != f->bytes)
		r->wrong++;
}

static void read_mapped(struct reader *r, int fd, const struct file *f)
{
	size_t at = f->bytes ? rng_below(&r->rng, f->bytes) : 0;
	size_t n = MIN(f->bytes - at, 100000);
	unsigned char *map =
		mmap(NULL, f->bytes, PROT_READ,
		     rng_below(&r->rng, 2) ? MAP_SHARED : MAP_PRIVATE, fd, 0);

	if (map == MAP_FAILED) {
		r->failed++;
		return;
	}
	if (sigsetjmp(retreat, 1) == 0)
		count(r, f, map + at, n, at);
	else
		r->failed++;
	munmap(map, f->bytes);
	/* the next read tries again */
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void read_one(struct reader *r)
{
	const struct file *f = &all.files[rng_below(&r->rng, all.n)];
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;

	if (asprintf(&path, "%s/%s", all.mount, f->path) < 0)
		exit(1);
	fd = open(path, O_RDONLY);
	if (fd < 0) {
		r->failed++;
		return;
	}
	switch (rng_below(&r->rng, 3)) {
	case 0: read_pieces(r, fd, f); break;
	case 1: read_whole(r, fd, f); break;
	default: read_mapped(r, fd, f);
	}
}

static void *reader(void *arg)
{
	struct reader *r = arg;

	while (tick_wall() < r->until)
		read_one(r);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction bus = { .sa_handler = on_bus_error };
	struct reader readers[MAX_THREADS], sum = { 0 };
	uint64_t until;
	int n;

	if (argc != 5 || (n = atoi(argv[4])) < 1 || n > MAX_THREADS)
		return 2;
	all.source = argv[1];
	all.mount = argv[2];
	sigaction(SIGBUS, &bus, NULL);
	if (nftw(all.source, visit, 16, FTW_PHYS) || !all.n)
		return 1;
	until = tick_wall() + (uint64_t)atoi(argv[3]) * NS_PER_S;
	for (int i = 0; i < n; i++) {
		readers[i] = (struct reader){ .rng = rng_stream(1, "stress",
								(uint64_t)i),
					      .until = until,
					      .buf = malloc(BUFFER) };
		if (pthread_create(&readers[i].thread, NULL, reader,
				   &readers[i]))
			return 1;
	}
	for (int i = 0; i < n; i++) {
		pthread_join(readers[i].thread, NULL);
		sum.right += readers[i].right;
		sum.failed += readers[i].failed;
		sum.wrong += readers[i].wrong;
		free(readers[i].buf);
	}
	for (size_t i = 0; i < all.n; i++) {
		free(all.files[i].path);
		free(all.files[i].content);
	}
	printf("%lu right, %lu failed, %lu wrong\n", sum.right, sum.failed,
	       sum.wrong);
	return sum.wrong || !sum.right;
}
