/* SPDX-License-Identifier: MIT */
#include "loader/dataset/format_open.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/conf/plugin_choice.h"
#include "common/err.h"
#include "common/pool.h"
#include "common/system/walk.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/dataset/detect.h"
#include "loader/dataset/images.h"
#include "loader/dataset/index.h"
#include "loader/dataset/mount.h"
#include "store/bucket.h"

/*
 * --- shards ---------------------------------------------------------------
 *
 * The shards of a dataset: found, opened, and their samples listed.
 */

struct shard {
	char *path; /* relative to the root */
	int fd;	    /* open until a dataset takes it */
	struct origin origin;
	struct dataset_part part; /* during listing */
};

struct shards {
	const struct format_ops *format;
	const void *options; /* as struct format_request */
	unsigned threads;
	/* no option says the format: look for another one below dirfd */
	bool check;
	struct notes aside;  /* files that are no shards */
	struct shard *shard; /* sorted by path, bytewise */
	size_t n, capacity;
	struct dataset *d;
	struct builder *builder;
};

/* Descriptors beyond the shards' own: rings, threads' files, files open
 * already. An engine that runs out reports it. arbitrary */
enum { NEEDED = 64, WANTED = 4096 };

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory while listing a dataset");
}

/* --- find --------------------------------------------------------------- */

static int add_shard(struct shards *s, const char *path, struct err *err)
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

static int take_file(void *ctx, const char *path, const struct walk_entry *e,
		     struct err *err)
{
	const char *slash = strrchr(path, '/'),
		   *name = slash ? slash + 1 : path;
	struct finding *f = ctx;

	(void)e;
	detect_name(&f->names, name);
	if (f->shards->format->named(name))
		return add_shard(f->shards, path, err);
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

/*
 * Find the shards below dirfd and open them: all files with a name that the
 * format accepts, or only `file` if it is not NULL. -ENODATA: none; -EMFILE:
 * more than descriptors allowed; errors of open(2); with a text. Free with
 * shards_fini, failed or not.
 */
static int shards_open(struct shards *s, int dirfd, const char *file,
		       struct err *err)
{
	struct pool pool = { .threads = s->threads,
			     .ctx = s,
			     .work = open_shard };
	struct finding f = { .shards = s };
	struct walk walk = { .flags = WALK_FOLLOW,
			     .ctx = &f,
			     .file = take_file };
	const struct format_ops *one;
	int r = file ? add_shard(s, file, err)
		     : walk_tree(&walk, dirfd, "", err);

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

/*
 * Mix what is beside them (format.h) into `recipe`, a hash; *ret_mtime_ns is
 * the last change of any, 0 where there is none. -ENOMEM with a text.
 */
static int shards_beside(const struct shards *s, uint64_t *recipe,
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

static void shards_fini(struct shards *s)
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

/* List their samples into the builder. */
static int shards_list(struct shards *s, struct builder *b, struct err *err)
{
	struct pool pool = { .n = s->n,
			     .threads = s->threads,
			     .ctx = s,
			     .work = list_shard,
			     .take = take_shard };

	s->builder = b;
	return pool_run(&pool, err);
}

/* Was `d`, read from an index, listed from exactly these? -ESTALE with a
 * text. */
static int shards_unchanged(const struct shards *s, const struct dataset *d,
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

/* Move the descriptors to the dataset. -ENOMEM. */
static int shards_give(struct shards *s, struct dataset *d)
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

/* Listing waits for storage more than for the CPU. Source: measured, see the
 * manual page */
enum { MIN_THREADS = 4, THREADS_PER_CPU = 2 };
/* An index is written if listing took longer. arbitrary: shorter waits are not
 * noticed */
#define WORTH_NS (200 * NS_PER_MS)
/* A file that changed this recently can change again within the same timestamp.
 * Source: the coarsest in use, FAT's 2 s */
#define SETTLED_NS (2 * (int64_t)NS_PER_S)

/* What begins so is a bucket. */
static const char S3[] = "s3:";
/* Most requests in flight, of all workers. arbitrary: a full --queue-depth of
 * some workers; AWS allows 5,500 a second, each takes some 30 ms */
enum { CONNECTIONS = 256 };

struct opening {
	const struct format_request *q;
	const struct format_ops *format;
	struct dataset *d;
	struct shards shards;
	char *file; /* name in the root; NULL: the whole root */
	unsigned threads;
	uint64_t recipe;
	int64_t now_ns;	   /* start of the listing, since 1970 */
	int64_t beside_ns; /* last change of what is beside a shard; 0: none */
	struct err *err;
};

/* --- choosing the format ------------------------------------------------ */

/* The objects of a bucket are whole samples. */
static int choose_bucket(struct opening *o)
{
	const char *format = o->q->format;

	o->format = detect_find("s3", o->err);
	if (strcmp(format, "auto") && strcmp(format, "files") &&
	    strcmp(format, "s3"))
		return err_set(o->err, -EINVAL,
			       "format %s is not read from a bucket: mount it "
			       "with gpemu-fs",
			       format);
	return o->format ? 0 : -EINVAL;
}

static bool is_auto(const struct opening *o)
{
	return !strcmp(o->q->format, "auto");
}

static int choose(struct opening *o)
{
	int r = 0;

	if (o->d->bucket)
		return choose_bucket(o);
	if (!is_auto(o))
		o->format = detect_find(o->q->format, o->err);
	else if (o->file)
		r = detect_file(o->d->dirfd, o->file, &o->format, o->err);
	else
		r = detect_folder(o->d->dirfd, &o->format, o->err);
	if (r == 0 && !o->format && is_auto(o))
		o->format = detect_find("files", o->err);
	if (r < 0 || !o->format)
		return r < 0 ? r : -EINVAL;
	if (o->file && !o->format->scan)
		return err_set(o->err, -ENOTDIR, "%s: format %s needs a folder",
			       strerror(ENOTDIR), o->format->plugin.name);
	return 0;
}

/* --- the root ----------------------------------------------------------- */

static int open_root(struct opening *o)
{
	const char *path = o->q->path, *slash = strrchr(path, '/');
	struct dataset *d = o->d;
	struct stat st;

	if (!strncmp(path, S3, strlen(S3))) {
		d->root = strdup(path);
		return d->root ? bucket_open(path + strlen(S3), CONNECTIONS,
					     &d->bucket, o->err)
			       : err_set(o->err, -ENOMEM, "out of memory");
	}
	if (stat(path, &st) < 0)
		return err_set(o->err, -errno, "%s", strerror(errno));
	if (S_ISDIR(st.st_mode)) {
		d->root = strdup(path);
		/* for messages: "data/" + "/" + name */
		for (size_t n = strlen(path); d->root && n > 1; n--) {
			if (d->root[n - 1] != '/')
				break;
			d->root[n - 1] = 0;
		}
	} else {
		o->file = strdup(slash ? slash + 1 : path);
		d->root = slash ? strndup(path, (size_t)MAX(slash - path, 1))
				: strdup(".");
	}
	if (!d->root || (!S_ISDIR(st.st_mode) && !o->file))
		return err_set(o->err, -ENOMEM, "out of memory");
	d->dirfd = open(d->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return d->dirfd < 0 ? err_set(o->err, -errno, "%s", strerror(errno))
			    : 0;
}

/* --- the index's path --------------------------------------------------- */

static char *beside(const struct opening *o)
{
	return o->file ? util_text("%s/.%s.gpemu-index", o->d->root, o->file)
		       : util_join(o->d->root, ".gpemu-index");
}

/* HASH.index in the cache folder, HASH of the path. With `make` creates the
 * folders. */
static char *in_cache(const struct opening *o, bool make)
{
	_cleanup_free_ char *path = realpath(o->q->path, NULL);
	_cleanup_free_ char *dir = util_cache_folder();
	_cleanup_free_ char *base = dir ? util_beside(dir, "") : NULL;

	if (!path || !base)
		return NULL;
	/* the mode of the XDG base directory specification */
	if (make && mkdir(base, 0700) < 0 && errno != EEXIST)
		return NULL;
	if (make)
		mkdir(dir, 0700);
	return util_text("%s/%016" PRIx64 ".index", dir,
			 (uint64_t)XXH3_64bits(path, strlen(path)));
}

static int make_recipe(struct opening *o)
{
	_cleanup_free_ char *text =
		plugin_choice_text(&o->format->plugin, o->q->options);

	if (!text)
		return err_set(o->err, -ENOMEM, "out of memory");
	/* images: another list, but of shards */
	o->recipe = XXH3_64bits_withSeed(
		text, strlen(text), o->format->whole_files && o->q->images);
	return 0;
}

/* --- from an index ------------------------------------------------------ */

static int unchanged(struct opening *o, const struct dataset *d,
		     struct err *err)
{
	if (o->format->scan)
		return shards_unchanged(&o->shards, d, err);
	if (d->n_containers)
		return err_set(err, -ESTALE, "it is an index of shards");
	return o->format->unchanged(d, o->threads, err);
}

/* true: the index at `path` is valid; its dataset is in use. */
static bool from_index(struct opening *o, char *path, struct format_result *how)
{
	struct dataset d;
	struct err err = { 0 };

	if (!path || index_read(path, o->recipe, &d, &err) < 0) {
		free(path);
		return false;
	}
	d.dirfd = o->d->dirfd;
	d.root = o->d->root;
	if (unchanged(o, &d, &err) < 0) {
		free(d.block);
		notes_fini(&d.notes);
		free(path);
		return false;
	}
	*o->d = d;
	how->index = path;
	how->from_index = true;
	return true;
}

/* --- listing ------------------------------------------------------------ */

static int list(struct opening *o)
{
	struct builder b = { .d = o->d };
	int r = o->format->scan ? shards_list(&o->shards, &b, o->err)
				: o->format->list(&b, o->threads, o->err);

	if (r == 0 && o->format->whole_files)
		r = images_only(o->d, o->q->images, o->err);
	if (r < 0)
		return r;
	r = builder_finish(&b, o->err);
	if (r == -ENODATA && !o->format->scan && o->err)
		snprintf(o->err->text, sizeof(o->err->text),
			 "no samples: neither files nor class folders with "
			 "files");
	return r;
}

/* Are all timestamps old enough that a change during listing would show? */
static bool is_settled(const struct opening *o)
{
	for (size_t i = 0; i < o->d->n_origins; i++)
		if (o->d->origin[i].mtime_ns > o->now_ns - SETTLED_NS)
			return false;
	return o->beside_ns <= o->now_ns - SETTLED_NS;
}

/* On a gpemu-fs mount a file of ours would take time of the emulated device,
 * and count as written to it. */
static bool is_emulated(const struct opening *o)
{
	struct dataset_mount m;
	bool yes;

	mount_find(o->d->root, &m);
	yes = m.dir;
	mount_fini(&m);
	return yes;
}

/* Beside the dataset or, where that is not permitted or changes what is
 * measured, in the cache. */
static void keep_index(struct opening *o, struct format_result *how)
{
	_cleanup_free_ char *path = beside(o);
	struct err *err = &how->not_kept;
	int r;

	if (!is_settled(o)) {
		err_set(err, -EAGAIN,
			"the dataset changed within the last 2 s");
		return;
	}
	if (!path)
		r = -ENOMEM;
	else if (is_emulated(o))
		r = err_set(err, -EROFS, "%s: on an emulated device", path);
	else
		r = index_write(path, o->recipe, o->d, err);
	if (r < 0) {
		free(path);
		path = in_cache(o, true);
		if (!path || index_write(path, o->recipe, o->d, NULL) < 0)
			return;
		*err = (struct err){ 0 };
	}
	how->index = TAKE_PTR(path);
}

/* --- opening ------------------------------------------------------------ */

static unsigned default_threads(void)
{
	return MAX(MIN_THREADS, thread_cpus() * THREADS_PER_CPU);
}

static int open_it(struct opening *o, struct format_result *how)
{
	const struct format_request *q = o->q;
	uint64_t start = tick_wall();
	int r = open_root(o);

	if (r == 0)
		r = choose(o);
	if (r < 0)
		return r;
	how->format = o->format;
	r = make_recipe(o);
	if (r == 0 && o->format->scan) {
		o->shards = (struct shards){ .format = o->format,
					     .options = q->options,
					     .threads = o->threads,
					     .check = is_auto(o),
					     .d = o->d };
		r = shards_open(&o->shards, o->d->dirfd, o->file, o->err);
	}
	if (r == 0 && o->format->scan)
		r = shards_beside(&o->shards, &o->recipe, &o->beside_ns,
				  o->err);
	if (r < 0)
		return r;
	if (q->index != FORMAT_INDEX_AUTO || o->d->bucket ||
	    (!from_index(o, beside(o), how) &&
	     !from_index(o, in_cache(o, false), how)))
		r = list(o);
	if (r == 0 && is_auto(o) && !o->format->named)
		r = detect_listed(o->d, o->err);
	if (r == 0 && o->format->scan && shards_give(&o->shards, o->d) < 0)
		r = err_set(o->err, -ENOMEM, "out of memory");
	how->list_ns = tick_wall() - start;
	if (r == 0 && !how->from_index && !o->d->bucket &&
	    (q->index == FORMAT_INDEX_REBUILD ||
	     (q->index == FORMAT_INDEX_AUTO && how->list_ns > WORTH_NS)))
		keep_index(o, how);
	/* not in the index: they are not among what it was listed from */
	if (r == 0 && notes_merge(&o->d->notes, &o->shards.aside) < 0)
		r = err_set(o->err, -ENOMEM, "out of memory");
	return r;
}

int format_open(const struct format_request *q, struct dataset *ret,
		struct format_result *ret_how, struct err *err)
{
	struct opening o = { .q = q,
			     .d = ret,
			     .err = err,
			     .threads = q->threads ? q->threads
						   : default_threads(),
			     .now_ns = tick_realtime() };
	int r;

	*ret = (struct dataset){ .dirfd = -1 };
	*ret_how = (struct format_result){ 0 };
	r = open_it(&o, ret_how);
	if (r < 0) {
		err_set(err, r, "%s", strerror(-r));
		err_prefix(err, "%s", q->path);
	}
	shards_fini(&o.shards);
	free(o.file);
	return r;
}

void format_result_fini(struct format_result *r)
{
	free(r->index);
	r->index = NULL;
}
