/* SPDX-License-Identifier: MIT */
/*
 * fsx SOURCE MOUNT SEED OPS: compare the two trees by OPS random accesses in
 * all ways that programs use, like fsx (Apple, 1991), but reading only. Each
 * access picks a file, a way and a range that may cross or lie behind the end,
 * and must give the same bytes and the same count on both. It stops at the
 * first difference and prints it with the seed and the access.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/util.h"

enum { MAX_FILES = 10000, KEPT = 64, MAX_BYTES = 3 << 20 };

/* One file, open in both trees. */
struct pair {
	int fd[2];
	uint64_t size;
	const char *name;
};

static struct {
	char *names[MAX_FILES];
	uint32_t n;
	size_t root_len;
	const char *root[2];
	struct pair pairs[KEPT];
	char *buf[2];
	struct rng rng;
	uint64_t op;
	const char *seed;
} all;

static void fail(const struct pair *p, const char *way, uint64_t at, uint64_t n,
		 const char *what)
{
	fprintf(stderr,
		"fsx: seed %s, access %" PRIu64 ": %s of %s, %" PRIu64
		" bytes at %" PRIu64 ": %s\n",
		all.seed, all.op, way, p->name, n, at, what);
	exit(1);
}

static int visit(const char *path, const struct stat *st, int type,
		 struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_F && all.n < MAX_FILES)
		all.names[all.n++] = strdup(path + all.root_len + 1);
	return 0;
}

/* Close the file and open another one. */
static void reopen(struct pair *p)
{
	char path[4096];

	for (int i = 0; i < 2; i++)
		if (p->name)
			close(p->fd[i]);
	p->name = all.names[rng_below(&all.rng, all.n)];
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", all.root[i], p->name);
		p->fd[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (p->fd[i] < 0)
			fail(p, "open", 0, 0, strerror(errno));
	}
	p->size = (uint64_t)lseek(p->fd[0], 0, SEEK_END);
	if ((uint64_t)lseek(p->fd[1], 0, SEEK_END) != p->size)
		fail(p, "lseek", p->size, 0, "another size");
}

/* --- ways to read; each returns bytes, or -errno ------------------------ */

typedef int64_t way_fn(int fd, char *buf, uint64_t at, uint64_t n,
		       uint64_t size);

static int64_t by_pread(int fd, char *buf, uint64_t at, uint64_t n,
			uint64_t size)
{
	ssize_t r = pread(fd, buf, n, (off_t)at);

	(void)size;
	return r < 0 ? -errno : r;
}

static int64_t by_read(int fd, char *buf, uint64_t at, uint64_t n,
		       uint64_t size)
{
	uint64_t got = 0;

	(void)size;
	lseek(fd, (off_t)at, SEEK_SET);
	/* small pieces in sequence: readahead sets in */
	while (got < n) {
		ssize_t r = read(fd, buf + got, MIN(n - got, 10007));

		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		got += (uint64_t)r;
	}
	return (int64_t)got;
}

static int64_t backwards(int fd, char *buf, uint64_t at, uint64_t n,
			 uint64_t size)
{
	uint64_t end = MIN(at + n, size), left;

	if (at >= size)
		return 0;
	for (left = end - at; left;) {
		uint64_t piece = MIN(left, 65536);
		ssize_t r = pread(fd, buf + left - piece, piece,
				  (off_t)(at + left - piece));

		if (r < 0)
			return -errno;
		if ((uint64_t)r != piece)
			return r;
		left -= piece;
	}
	return (int64_t)(end - at);
}

static int64_t by_readv(int fd, char *buf, uint64_t at, uint64_t n,
			uint64_t size)
{
	uint64_t a = n / 3, b = n / 5;
	struct iovec iov[3] = { { buf, a },
				{ buf + a, b },
				{ buf + a + b, n - a - b } };
	ssize_t r = preadv(fd, iov, 3, (off_t)at);

	(void)size;
	return r < 0 ? -errno : r;
}

static int64_t by_mmap(int fd, char *buf, uint64_t at, uint64_t n,
		       uint64_t size, int flags)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE),
		 from = at / page * page;
	char *map;

	if (at >= size)
		return 0;
	n = MIN(n, size - at);
	map = mmap(NULL, at + n - from, PROT_READ, flags, fd, (off_t)from);
	if (map == MAP_FAILED)
		return -errno;
	memcpy(buf, map + (at - from), n);
	munmap(map, at + n - from);
	return (int64_t)n;
}

static int64_t by_private_map(int fd, char *buf, uint64_t at, uint64_t n,
			      uint64_t size)
{
	return by_mmap(fd, buf, at, n, size, MAP_PRIVATE);
}

static int64_t by_shared_map(int fd, char *buf, uint64_t at, uint64_t n,
			     uint64_t size)
{
	return by_mmap(fd, buf, at, n, size, MAP_SHARED);
}

static int64_t by_populated_map(int fd, char *buf, uint64_t at, uint64_t n,
				uint64_t size)
{
	return by_mmap(fd, buf, at, n, size, MAP_PRIVATE | MAP_POPULATE);
}

static int64_t by_sendfile(int fd, char *buf, uint64_t at, uint64_t n,
			   uint64_t size)
{
	_cleanup_close_ int memory = memfd_create("fsx", MFD_CLOEXEC);
	off_t offset = (off_t)at;
	uint64_t got = 0;

	(void)size;
	while (got < n) {
		ssize_t r = sendfile(memory, fd, &offset, n - got);

		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		got += (uint64_t)r;
	}
	return pread(memory, buf, got, 0);
}

static int64_t by_splice(int fd, char *buf, uint64_t at, uint64_t n,
			 uint64_t size)
{
	loff_t offset = (loff_t)at;
	int pipes[2];
	ssize_t r;

	(void)size;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	/* as much as a pipe holds */
	r = splice(fd, &offset, pipes[1], NULL, MIN(n, 60000), 0);
	if (r > 0)
		r = read(pipes[0], buf, (size_t)r);
	else if (r < 0)
		r = -errno;
	close(pipes[0]);
	close(pipes[1]);
	return r;
}

static int64_t with_advice(int fd, char *buf, uint64_t at, uint64_t n,
			   uint64_t size)
{
	static const int advice[] = { POSIX_FADV_SEQUENTIAL, POSIX_FADV_RANDOM,
				      POSIX_FADV_WILLNEED,
				      POSIX_FADV_DONTNEED };

	posix_fadvise(fd, (off_t)at, (off_t)n,
		      advice[(at ^ n) % ARRAY_SIZE(advice)]);
	if (n % 2)
		readahead(fd, (off_t)at, n);
	return by_pread(fd, buf, at, n, size);
}

static const struct {
	const char *name;
	way_fn *fn;
	bool may_be_short; /* at unaligned positions, as the system call allows
			    */
} ways[] = {
	{ "pread", by_pread, false },
	{ "read", by_read, false },
	{ "backward read", backwards, false },
	{ "preadv", by_readv, false },
	{ "private mmap", by_private_map, false },
	{ "shared mmap", by_shared_map, false },
	{ "populated mmap", by_populated_map, false },
	{ "sendfile", by_sendfile, false },
	{ "splice", by_splice, true },
	{ "read with advice", with_advice, false },
};

static void access_one(void)
{
	static const uint64_t sizes[] = { 1,	 511,	 4096,	  4097,
					  65536, 300000, 1 << 20, MAX_BYTES };
	struct pair *p = &all.pairs[rng_below(&all.rng, KEPT)];
	uint32_t w = (uint32_t)rng_below(&all.rng, ARRAY_SIZE(ways));
	uint64_t n, at;
	int64_t got[2];

	if (!p->name || rng_below(&all.rng, 8) == 0)
		reopen(p);
	n = 1 +
	    rng_below(&all.rng, sizes[rng_below(&all.rng, ARRAY_SIZE(sizes))]);
	/* one in sixteen begins behind the end */
	at = rng_below(&all.rng, p->size + p->size / 16 + 1);
	for (int i = 0; i < 2; i++)
		got[i] = ways[w].fn(p->fd[i], all.buf[i], at, n, p->size);
	if (ways[w].may_be_short && got[0] > 0 && got[1] > 0)
		got[0] = got[1] = MIN(got[0], got[1]);
	if (got[1] < 0)
		fail(p, ways[w].name, at, n, strerror((int)-got[1]));
	if (got[0] != got[1])
		fail(p, ways[w].name, at, n, "another count of bytes");
	if (memcmp(all.buf[0], all.buf[1], (size_t)got[0]))
		fail(p, ways[w].name, at, n, "other bytes");
}

int main(int argc, char **argv)
{
	uint64_t ops;

	if (argc != 5) {
		fputs("usage: fsx SOURCE MOUNT SEED OPS\n", stderr);
		return 2;
	}
	all.root[0] = argv[1];
	all.root[1] = argv[2];
	all.root_len = strlen(argv[1]);
	all.seed = argv[3];
	all.rng = rng_stream(strtoull(argv[3], NULL, 10), "fsx", 0);
	ops = strtoull(argv[4], NULL, 10);
	if (nftw(argv[1], visit, 16, FTW_PHYS) || !all.n) {
		fprintf(stderr, "fsx: no files in %s\n", argv[1]);
		return 1;
	}
	for (int i = 0; i < 2; i++)
		if (!(all.buf[i] = malloc(MAX_BYTES + 1)))
			return 1;
	for (all.op = 0; all.op < ops; all.op++)
		access_one();
	printf("%" PRIu64 " accesses agree\n", ops);
	return 0;
}
