/* SPDX-License-Identifier: MIT */
/*
 * An example of an engine with an option: as `sync`, but a file is read
 * `block` bytes at a time, as a program does that reads through a small
 * buffer.
 *
 * To try it: copy it to loader/engine, and add 'blocks' to the engines in
 * loader/meson.build. `gpemu-train --loader blocks:block=4K` reads with it.
 */
#include "loader/engine/engine.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/conf/conf.h"
#include "common/units.h"
#include "common/util.h"

struct options {
	uint64_t block;
};

static const struct conf_field fields[] = {
	{ CONF_KEY(block, CONF_SIZE, struct options), .min = 1,
	  .max = 1073741824., .arg = "SIZE", .help = "bytes of each read" },
	{ 0 },
};

/* Source: the buffer of Python's open(), io.DEFAULT_BUFFER_SIZE */
static const struct options defaults = { .block = 8 * KIB };

struct blocks {
	uint64_t block;
};

static int init_blocks(void *state, const struct engine_config *c,
		       struct err *err)
{
	const struct options *o = c->options ? c->options : &defaults;
	struct blocks *b = state;

	(void)err;
	b->block = o->block;
	return 0;
}

/* A byte more than the file should have: that it has grown is to be seen. */
static int64_t read_blocks(const struct blocks *b, const struct engine_fetch *f)
{
	_cleanup_close_ int own = -1;
	uint64_t want = f->size + (f->fd < 0), at = 0;
	struct stat st;
	ssize_t n = 1;

	if (f->fd < 0)
		own = util_open_file(f->dirfd, f->path, 0, &st);
	if (f->fd < 0 && own < 0)
		return own;
	while (at < want && n != 0) {
		n = pread(f->fd < 0 ? own : f->fd, (char *)f->buf + at,
			  MIN(b->block, want - at), (off_t)(f->offset + at));
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return (int64_t)at;
}

static int next_blocks(void *state, struct feed *feed,
		       struct engine_fetch **ret, struct err *err)
{
	struct engine_fetch *f;
	int r = feed_take(feed, true, &f);

	(void)err;
	if (r < 0)
		return r;
	feed_done(feed, f, read_blocks(state, f));
	*ret = f;
	return 0;
}

const struct engine_ops engine_blocks = {
	.plugin = { .name = "blocks",
		    .summary = "blocking reads of a few bytes at a time",
		    .state_size = sizeof(struct blocks),
		    PLUGIN_OPTIONS(fields, defaults) },
	.whole_batches = true,
	.init = init_blocks,
	.next = next_blocks,
};
