/* SPDX-License-Identifier: MIT */
#include "loader/dataset/detect.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/image_file.h"
#include "common/system/walk.h"
#include "common/util.h"

static const struct format_ops *ops_at(size_t i)
{
	return format_table[i] ? container_of(format_table[i],
					      struct format_ops, plugin)
			       : NULL;
}

const struct format_ops *detect_find(const char *format, struct err *err)
{
	const struct plugin *p =
		plugin_find(format_table, "format", format, err);

	return p ? container_of(p, struct format_ops, plugin) : NULL;
}

/* --- by names ------------------------------------------------------------- */

/* Formats of shards that others read. A name is compared as a whole, an
 * extension at its end. */
static const struct unsupported {
	const char *end, *name;
	bool whole;
	bool beside; /* also written beside shards: img2dataset's metadata */
} unsupported[] = {
	{ ".mds", "MDS of MosaicML Streaming" },
	{ ".beton", "FFCV" },
	{ ".parquet", "Parquet", .beside = true },
	{ ".arrow", "Arrow" },
	{ ".rec", "RecordIO of MXNet" },
	{ ".tar.gz", "tar, compressed" },
	{ ".tgz", "tar, compressed" },
	{ ".tar.zst", "tar, compressed" },
	{ ".tfrecord.gz", "TFRecord, compressed" },
	{ ".zip", "zip" },
	{ "data.mdb", "LMDB", .whole = true },
};

static const struct unsupported *find_unsupported(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(unsupported); i++) {
		const struct unsupported *u = &unsupported[i];
		size_t m = strlen(u->end);

		if (u->whole ? !strcmp(name, u->end)
			     : n > m && !strcasecmp(name + n - m, u->end))
			return u;
	}
	return NULL;
}

/* Files that accompany shards, and do not decide the format: texts, tables,
 * checksums, indexes, markers. */
static bool is_beside(const char *name)
{
	return image_file_named(name) == IMAGE_FILE_NO ||
	       !strcmp(name, "lock.mdb");
}

static const struct format_ops *by_name(const char *name)
{
	const struct format_ops *f;

	for (size_t i = 0; (f = ops_at(i)); i++)
		if (f->named && !f->explicit && f->named(name))
			return f;
	return NULL;
}

static void keep_name(char to[NAME_MAX + 1], const char *name)
{
	snprintf(to, NAME_MAX + 1, "%s", name);
}

void detect_name(struct detect *d, const char *name)
{
	const struct format_ops *f = by_name(name);
	const struct unsupported *u = f ? NULL : find_unsupported(name);

	if (f && !d->shards) {
		d->shards = f;
		keep_name(d->shard, name);
	} else if (f && f != d->shards && !d->second) {
		d->second = f;
		keep_name(d->other_shard, name);
	} else if (u && (!d->unsupported || d->beside)) {
		d->unsupported = u->name;
		d->beside = u->beside;
		keep_name(d->foreign, name);
	} else if (!f && !u && image_file_named(name) == IMAGE_FILE_YES) {
		if (!d->images)
			keep_name(d->image, name);
		d->images = true;
	} else if (!f && !u) {
		d->others |= !is_beside(name);
	}
}

/* `option`: the format that reads those of the second, or all files. */
static int mixture(const struct detect *d, const char *second, const char *name,
		   const char *option, struct err *err)
{
	const char *first = d->shards->plugin.name;

	return err_set(err, -EINVAL,
		       "files of two formats, %s (%s) and %s (%s): choose with "
		       "--format %s or --format %s",
		       first, d->shard, second, name, first, option);
}

int detect_format(const struct detect *d, const struct format_ops **ret,
		  struct err *err)
{
	*ret = NULL;
	if (d->second)
		return mixture(d, d->second->plugin.name, d->other_shard,
			       d->second->plugin.name, err);
	if (d->shards && d->images)
		return mixture(d, "files", d->image, "files", err);
	if (d->shards && d->unsupported && !d->beside)
		return mixture(d, d->unsupported, d->foreign, "files", err);
	if (!d->shards && d->unsupported && !d->images && !d->others)
		return err_set(
			err, -EINVAL,
			"shards of a format that is not supported, %s "
			"(%s); --format files makes each file one sample",
			d->unsupported, d->foreign);
	*ret = d->shards;
	return 0;
}

int detect_listed(const struct dataset *d, struct err *err)
{
	for (size_t i = 0; i < d->n; i++) {
		const char *path = dataset_path(d, i);
		const char *slash = strrchr(path, '/');
		struct detect one = { 0 };

		if (i && d->label[i] == d->label[i - 1])
			continue;
		detect_name(&one, slash ? slash + 1 : path);
		if (one.shards)
			return err_set(err, -EINVAL,
				       "%s is a shard (%s), and other folders "
				       "have files: name the folder of the "
				       "shards, or choose --format files",
				       path, one.shards->plugin.name);
	}
	return 0;
}

/* --- of a folder ---------------------------------------------------------- */

/* Its contents: what the files' names say, and its first subfolder,
 * bytewise. */
struct names {
	struct detect files;
	char first[NAME_MAX + 1]; /* "": no subfolder */
};

static int take_name(void *ctx, const char *name, const struct walk_entry *e)
{
	struct names *n = ctx;

	if (!S_ISDIR(e->mode))
		detect_name(&n->files, name);
	else if (!*n->first || strcmp(name, n->first) < 0)
		strcpy(n->first, name);
	return 0;
}

static int read_names(int dirfd, const char *dir, struct names *ret,
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

static bool decides(const struct detect *d)
{
	return d->shards || d->unsupported || d->images || d->others;
}

/* Descend into the first folder until one has files that decide. */
int detect_folder(int dirfd, const struct format_ops **ret, struct err *err)
{
	char path[PATH_MAX] = "";
	size_t at = 0;
	int r = 0;

	*ret = NULL;
	for (int depth = 0; r == 0 && depth < WALK_DEPTH; depth++) {
		struct names names = { 0 };

		r = read_names(dirfd, path, &names, err);
		if (r == 0)
			r = detect_format(&names.files, ret, err);
		if (r < 0 || decides(&names.files) || !names.first[0])
			break;
		if (at + strlen(names.first) + 2 > sizeof(path))
			break;
		at += (size_t)sprintf(path + at, "%s%s", at ? "/" : "",
				      names.first);
	}
	return r;
}

/* --- of a file ------------------------------------------------------------ */

int detect_file(int dirfd, const char *name, const struct format_ops **ret,
		struct err *err)
{
	_cleanup_close_ int fd =
		openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char known[ERR_LIST] = "";
	uint8_t head[FORMAT_HEAD];
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);
	const struct format_ops *f;

	*ret = NULL;
	if (n < 0)
		return err_set(err, -errno, "%s", strerror(errno));
	for (size_t i = 0; (f = ops_at(i)); i++) {
		if (!f->looks)
			continue;
		if (f->looks(head, (size_t)n))
			*ret = f;
		err_list(known, f->plugin.name);
	}
	return *ret ? 0
		    : err_set(err, -EINVAL,
			      "does not look like a file of any format "
			      "(known: %s)",
			      known);
}
