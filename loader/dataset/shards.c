/* SPDX-License-Identifier: MIT */
#include "loader/dataset/shards.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/pool.h"
#include "common/system/walk.h"
#include "common/util.h"
#include "loader/dataset/detect.h"
#include "loader/dataset/images.h"

/* Descriptors beyond the shards' own: rings, threads' files, files open
 * already. An engine that runs out reports it. arbitrary */
enum { NEEDED = 64, WANTED = 4096 };

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory while listing a dataset");
}

/* --- find --------------------------------------------------------------- */

static int add(struct shards *s, const char *path, struct err *err)
{
	char *own;

	if (s->n >= UINT32_MAX)
		return err_set(err, -E2BIG, "too many shards");
	if (util_reserve(&s->shard, &s->capacity, s->n + 1, sizeof(*s->shard)) <
	    0)
		return no_memory(err);
	own = strdup(path);
	if (!own)
		return no_memory(err);
	s->shard[s->n++] = (struct shard){ .path = own, .fd = -1 };
	return 0;
}

/* All names below the root. */
struct finding {
	struct shards *shards;
	struct detect names;
};

static int take(void *ctx, const char *path, const struct walk_entry *e,
		struct err *err)
{
	const char *slash = strrchr(path, '/'),
		   *name = slash ? slash + 1 : path;
	struct finding *f = ctx;

	(void)e;
	detect_name(&f->names, name);
	if (f->shards->format->named(name))
		return add(f->shards, path, err);
	return notes_add(&f->shards->aside, &note_files_aside, 1, path) < 0
		       ? no_memory(err)
		       : 0;
}

static int by_path(const void *a, const void *b)
{
	const struct shard *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* --- open --------------------------------------------------------------- */

/* Raise the limit of open files: the soft limit, and the hard one where
 * permitted. */
static int allow(size_t n, struct err *err)
{
	struct rlimit old, limit;

	if (getrlimit(RLIMIT_NOFILE, &old) < 0)
		return err_set(err, -errno, "getrlimit: %s", strerror(errno));
	if (old.rlim_cur >= n + WANTED)
		return 0;
	limit.rlim_cur = n + WANTED;
	limit.rlim_max = MAX(old.rlim_max, limit.rlim_cur);
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return 0;
	limit.rlim_max = old.rlim_max;
	limit.rlim_cur = MIN(limit.rlim_cur, old.rlim_max);
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_cur >= n + NEEDED)
		return 0;
	return err_set(err, -EMFILE,
		       "%zu shards, and at most %llu files may be open: raise "
		       "the hard limit (ulimit -Hn), or make fewer, larger "
		       "shards",
		       n, (unsigned long long)limit.rlim_cur);
}

static int failed(struct err *err, const struct shard *x, int r)
{
	return err_set(err, r, "%s: %s", x->path, strerror(-r));
}

static int open_shard(void *ctx, void *state, size_t i, struct err *err)
{
	struct shards *s = ctx;
	struct shard *x = &s->shard[i];
	struct statx st;
	int r;

	(void)state;
	/* non-blocking: a FIFO of that name must not block us */
	x->fd = openat(s->d->dirfd, x->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (x->fd < 0)
		return failed(err, x, -errno);
	r = statx(x->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st);
	if (r < 0)
		return failed(err, x, -errno);
	if (!S_ISREG(st.stx_mode))
		return err_set(err, -EINVAL, "%s: not a regular file", x->path);
	x->origin = (struct origin){ .size = st.stx_size,
				     .mtime_ns = walk_mtime_ns(&st),
				     .ino = st.stx_ino };
	return 0;
}

int shards_open(struct shards *s, int dirfd, const char *file, struct err *err)
{
	struct pool pool = { .threads = s->threads,
			     .ctx = s,
			     .work = open_shard };
	struct finding f = { .shards = s };
	struct walk walk = { .flags = WALK_FOLLOW, .ctx = &f, .file = take };
	const struct format_ops *one;
	int r = file ? add(s, file, err) : walk_tree(&walk, dirfd, "", err);

	if (r == 0 && s->check && !file)
		r = detect_format(&f.names, &one, err);
	if (r < 0)
		return r;
	if (!s->n)
		return err_set(err, -ENODATA,
			       "no samples: no file name matches --format %s",
			       s->format->plugin.name);
	qsort(s->shard, s->n, sizeof(*s->shard), by_path);
	pool.n = s->n;
	r = allow(s->n, err);
	return r < 0 ? r : pool_run(&pool, err);
}

int shards_beside(const struct shards *s, uint64_t *recipe,
		  int64_t *ret_mtime_ns, struct err *err)
{
	*ret_mtime_ns = 0;
	for (size_t i = 0; s->format->beside && i < s->n; i++) {
		_cleanup_free_ char *path = s->format->beside(s->shard[i].path);
		struct statx st = { 0 };
		uint64_t is[3] = { 0 };

		if (!path)
			return no_memory(err);
		/* one that is missing is a state, too */
		if (statx(s->d->dirfd, path, 0, STATX_BASIC_STATS, &st) == 0) {
			is[0] = st.stx_size;
			is[1] = (uint64_t)walk_mtime_ns(&st);
			is[2] = st.stx_ino;
			*ret_mtime_ns = MAX(*ret_mtime_ns, walk_mtime_ns(&st));
		}
		*recipe = XXH3_64bits_withSeed(is, sizeof(is), *recipe);
	}
	return 0;
}

void shards_fini(struct shards *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->shard[i].path);
		util_closep(&s->shard[i].fd);
		part_fini(&s->shard[i].part);
	}
	free(s->shard);
	notes_fini(&s->aside);
	*s = (struct shards){ 0 };
}

/* --- list --------------------------------------------------------------- */

static int list_shard(void *ctx, void *state, size_t i, struct err *err)
{
	struct shards *s = ctx;
	struct shard *x = &s->shard[i];
	struct peek p;
	int r = peek_init(&p, x->fd, x->origin.size);

	(void)state;
	if (r < 0)
		return no_memory(err);
	p.path = x->path;
	p.dirfd = s->d->dirfd;
	r = s->format->scan(&p, s->options, &x->part, err);
	peek_fini(&p);
	if (r < 0) {
		err_set(err, r, "%s", strerror(-r));
		err_prefix(err, "%s", x->path);
	}
	return r;
}

static int take_shard(void *ctx, size_t i, struct err *err)
{
	struct shards *s = ctx;
	struct shard *x = &s->shard[i];
	int r = builder_origin(s->builder, x->path, &x->origin, err);

	if (r == 0)
		r = builder_container(s->builder, &x->part, err);
	part_fini(&x->part);
	return r;
}

int shards_list(struct shards *s, struct builder *b, struct err *err)
{
	struct pool pool = { .n = s->n,
			     .threads = s->threads,
			     .ctx = s,
			     .work = list_shard,
			     .take = take_shard };

	s->builder = b;
	return pool_run(&pool, err);
}

int shards_unchanged(const struct shards *s, const struct dataset *d,
		     struct err *err)
{
	if (d->n_containers != s->n)
		return err_set(err, -ESTALE, "it lists %u shards, not %zu",
			       d->n_containers, s->n);
	for (size_t i = 0; i < s->n; i++) {
		const struct shard *x = &s->shard[i];
		const struct origin *o = &d->origin[i];

		if (strcmp(x->path, d->names + o->path) ||
		    x->origin.size != o->size ||
		    x->origin.mtime_ns != o->mtime_ns ||
		    x->origin.ino != o->ino)
			return err_set(err, -ESTALE, "%s: changed", x->path);
	}
	return 0;
}

/* How far apart all samples begin; 0: not evenly. */
static uint64_t stride_of(const struct dataset *d)
{
	uint64_t stride = d->n > 1 ? d->offset[1] - d->offset[0] : 0;

	for (size_t i = 2; i < d->n; i++)
		if (d->offset[i] - d->offset[i - 1] != stride)
			return 0;
	return stride;
}

int shards_give(struct shards *s, struct dataset *d)
{
	d->container_fd = calloc(s->n, sizeof(*d->container_fd));
	if (!d->container_fd)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++)
		d->container_fd[i] = TAKE_FD(s->shard[i].fd);
	d->n_containers = (uint32_t)s->n;
	d->stride = s->n == 1 ? stride_of(d) : 0;
	return 0;
}
