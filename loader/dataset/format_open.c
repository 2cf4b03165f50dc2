/* SPDX-License-Identifier: MIT */
#include "loader/dataset/format_open.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/conf/plugin_choice.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/dataset/detect.h"
#include "loader/dataset/images.h"
#include "loader/dataset/index.h"
#include "loader/dataset/mount.h"
#include "loader/dataset/shards.h"
#include "store/bucket.h"

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
	char *ret;
	int n = o->file ? asprintf(&ret, "%s/.%s.gpemu-index", o->d->root,
				   o->file)
			: asprintf(&ret, "%s/.gpemu-index", o->d->root);

	return n < 0 ? NULL : ret;
}

/* $XDG_CACHE_HOME/gpemu/HASH.index, HASH of the path. Creates the folders. */
static char *in_cache(const struct opening *o, bool make)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"),
		   *home = secure_getenv("HOME");
	_cleanup_free_ char *path = realpath(o->q->path, NULL), *base = NULL;
	_cleanup_free_ char *dir = NULL;
	char *ret;

	if (!path || (!(cache && *cache == '/') && !(home && *home == '/')))
		return NULL;
	if ((cache && *cache == '/' ? asprintf(&base, "%s", cache)
				    : asprintf(&base, "%s/.cache", home)) < 0) {
		base = NULL;
		return NULL;
	}
	if (asprintf(&dir, "%s/gpemu", base) < 0) {
		dir = NULL;
		return NULL;
	}
	/* the default of the XDG base directory specification */
	if (make && mkdir(base, 0700) < 0 && errno != EEXIST)
		return NULL;
	if (make)
		mkdir(dir, 0700);
	return asprintf(&ret, "%s/%016" PRIx64 ".index", dir,
			(uint64_t)XXH3_64bits(path, strlen(path))) < 0
		       ? NULL
		       : ret;
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
	struct mount m;
	bool yes;

	mount_find(o->d->root, &m);
	yes = m.dir;
	mount_fini(&m);
	return yes;
}

/* Beside the dataset or, where that is not permitted or changes what is
 * measured, in the cache. */
static void keep(struct opening *o, struct format_result *how)
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
		keep(o, how);
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
