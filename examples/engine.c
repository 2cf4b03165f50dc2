/* SPDX-License-Identifier: MIT */
/* A custom read engine with blocking reads: engine FOLDER [key=value...] */
#include <errno.h>
#include <fcntl.h>
#include <gpemu.h>
#include <stdio.h>
#include <unistd.h>

/* Reads up to `want` bytes; the number read, or -errno. */
static int64_t read_all(int fd, const struct gpemu_fetch *f, uint64_t want)
{
	uint64_t n = 0;

	while (n < want) {
		ssize_t got = pread(fd, (char *)f->buffer + n, want - n,
				    (off_t)(f->offset_bytes + n));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (uint64_t)got;
	}
	return (int64_t)n;
}

static int64_t read_sample(const struct gpemu_fetch *f)
{
	int64_t n;
	int fd;

	if (f->fd >= 0) /* of a shard */
		return read_all(f->fd, f, f->size_bytes);
	/* O_NONBLOCK: do not wait for the writer if the file is a pipe */
	fd = openat(f->dirfd, f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	n = read_all(fd, f, f->size_bytes + 1); /* has it grown? */
	close(fd);
	return n;
}

static int next_sample(void *state, struct gpemu_feed *feed,
		       struct gpemu_fetch **ret, char *error, size_t n)
{
	int r = gpemu_feed_take(feed, 1, ret);

	(void)state;
	(void)error;
	(void)n;
	if (r == 0)
		gpemu_feed_done(feed, *ret, read_sample(*ret));
	return r;
}

static const struct gpemu_engine engine = {
	.struct_bytes = sizeof(struct gpemu_engine),
	.name = "example",
	.summary = "open, pread, close, one after the other",
	.flags = GPEMU_ENGINE_WHOLE_BATCHES,
	.next = next_sample,
};

int main(int argc, char **argv)
{
	const char *options[64] = { "prep=none" };
	const struct gpemu_batch *batch;
	char data[4096], error[256];
	uint64_t bytes = 0;
	struct gpemu *g;
	int r;

	snprintf(data, sizeof(data), "data=%s", argc > 1 ? argv[1] : ".");
	options[1] = data;
	for (int i = 2; i < argc && i < 60; i++)
		options[i] = argv[i];
	if (gpemu_open(options, &engine, &g, error, sizeof(error)) < 0) {
		fprintf(stderr, "engine: %s\n", error);
		return 1;
	}
	while ((r = gpemu_begin_epoch(g, NULL)) > 0) {
		while ((r = gpemu_next(g, &batch)) > 0) {
			for (uint32_t i = 0; i < batch->n; i++)
				bytes += batch->samples[i].size_bytes;
			gpemu_submit(g, batch, NULL);
		}
		gpemu_end_epoch(g, NULL);
	}
	if (r < 0)
		fprintf(stderr, "engine: %s\n", gpemu_error(g));
	else
		printf("%llu bytes\n", (unsigned long long)bytes);
	return gpemu_close(g) < 0 || r < 0;
}
