/* SPDX-License-Identifier: MIT */
#include "loader/dataset/format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/conf/plugin_choice.h"
#include "common/system/walk.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/dataset/index.h"
#include "loader/dataset/shards.h"

/* Listing waits for storage more than for the CPU. Source: measured, see the
 * manual page */
enum { MIN_THREADS = 4, THREADS_PER_CPU = 2 };
/* An index is written if listing took longer. arbitrary: shorter waits are not
 * noticed */
#define WORTH_NS (200 * NS_PER_MS)
/* A file that changed this recently can change again within the same timestamp.
 * Source: the coarsest in use, FAT's 2 s */
#define SETTLED_NS (2 * (int64_t)NS_PER_S)

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

static const struct format_ops *ops_at(size_t i)
{
	return format_table[i] ? container_of(format_table[i],
					      struct format_ops, plugin)
			       : NULL;
}

static const struct format_ops *find(const char *name, struct err *err)
{
	const struct plugin *p = plugin_find(format_table, "format", name, err);

	return p ? container_of(p, struct format_ops, plugin) : NULL;
}

/* --- choosing the format ------------------------------------------------ */

static int by_bytes(struct opening *o)
{
	_cleanup_close_ int fd =
		openat(o->d->dirfd, o->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char known[ERR_LIST] = "";
	uint8_t head[FORMAT_HEAD];
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);
	const struct format_ops *f;

	if (n < 0)
		return err_set(o->err, -errno, "%s", strerror(errno));
	for (size_t i = 0; (f = ops_at(i)); i++) {
		if (!f->looks)
			continue;
		if (f->looks(head, (size_t)n))
			o->format = f;
		err_list(known, f->plugin.name);
	}
	return o->format ? 0
			 : err_set(o->err, -EINVAL,
				   "does not look like a file of any format "
				   "(known: %s)",
				   known);
}

/* Files that accompany shards and do not decide the format. */
static bool is_beside(const char *name)
{
	static const char *const beside[] = {
		".json", ".txt", ".md",	 ".csv",
		".yaml", ".yml", ".idx", ".index"
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(beside); i++)
		if (!strcmp(dot, beside[i]))
			return true;
	return !dot && !strcmp(name, "LICENSE");
}

static const struct format_ops *by_name(const char *name)
{
	const struct format_ops *f;

	for (size_t i = 0; (f = ops_at(i)); i++)
		if (f->named && !f->explicit && f->named(name))
			return f;
	return NULL;
}

const char *format_of_name(const char *name)
{
	const struct format_ops *f = by_name(name);

	if (is_beside(name))
		return NULL;
	return f ? f->plugin.name : "files";
}

/* The contents of a folder: the one format of all its files, or `files`; and
 * its first subfolder, bytewise. */
struct names {
	const struct format_ops *files, *format; /* NULL: no files */
	char first[NAME_MAX + 1];		 /* "": no subfolder */
};

static int take_name(void *ctx, const char *name, const struct walk_entry *e)
{
	const struct format_ops *this = by_name(name);
	struct names *n = ctx;

	if (S_ISDIR(e->mode)) {
		if (!*n->first || strcmp(name, n->first) < 0)
			strcpy(n->first, name);
	} else if (!is_beside(name)) {
		this = this ? this : n->files;
		n->format = n->format && n->format != this ? n->files : this;
	}
	return n->format == n->files; /* further names change nothing */
}

static int by_names(int dirfd, const char *dir, struct names *ret,
		    struct err *err)
{
	_cleanup_close_ int fd = openat(dirfd, *dir ? dir : ".",
					O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct walk_names w = { .flags = WALK_FOLLOW,
				.name = take_name,
				.ctx = ret };
	int r = fd < 0 ? -errno : walk_names(&w, fd);

	return r < 0 ? err_set(err, r, "%s: %s", *dir ? dir : ".", strerror(-r))
		     : 0;
}

/* Descend into the first folder until one has files. */
static int by_folder(struct opening *o)
{
	const struct format_ops *files = find("files", o->err);
	char path[PATH_MAX] = "";
	size_t at = 0;
	int r = 0;

	for (int depth = 0; r == 0 && depth < WALK_DEPTH; depth++) {
		struct names names = { .files = files };

		r = by_names(o->d->dirfd, path, &names, o->err);
		o->format = names.format;
		if (r < 0 || o->format || !names.first[0])
			break;
		if (at + strlen(names.first) + 2 > sizeof(path))
			break;
		at += (size_t)sprintf(path + at, "%s%s", at ? "/" : "",
				      names.first);
	}
	if (!o->format)
		o->format = files;
	return r;
}

static int choose(struct opening *o)
{
	bool is_auto = !strcmp(o->q->format, "auto");

	if (is_auto)
		return o->file ? by_bytes(o) : by_folder(o);
	o->format = find(o->q->format, o->err);
	if (!o->format)
		return -EINVAL;
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
	o->recipe = XXH3_64bits(text, strlen(text));
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

/* Beside the dataset or, where that is not permitted, in the cache. */
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
	r = path ? index_write(path, o->recipe, o->d, err) : -ENOMEM;
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
					     .d = o->d };
		r = shards_open(&o->shards, o->d->dirfd, o->file, o->err);
	}
	if (r == 0 && o->format->scan)
		r = shards_beside(&o->shards, &o->recipe, &o->beside_ns,
				  o->err);
	if (r < 0)
		return r;
	if (q->index != FORMAT_INDEX_AUTO ||
	    (!from_index(o, beside(o), how) &&
	     !from_index(o, in_cache(o, false), how)))
		r = list(o);
	if (r == 0 && o->format->scan && shards_give(&o->shards, o->d) < 0)
		r = err_set(o->err, -ENOMEM, "out of memory");
	how->list_ns = tick_wall() - start;
	if (r == 0 && !how->from_index &&
	    (q->index == FORMAT_INDEX_REBUILD ||
	     (q->index == FORMAT_INDEX_AUTO && how->list_ns > WORTH_NS)))
		keep(o, how);
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
