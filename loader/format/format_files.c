/* SPDX-License-Identifier: MIT */
/*
 * A folder of files, as torchvision's ImageFolder lists it. Every folder of the
 * root that has a sample is a class. Classes are in byte order of their names,
 * labels count from 0. The samples of a class are all regular files below its
 * folder, folder by folder, in byte order. Files in the root count only if
 * there is no class folder; their label is 0.
 *
 * Several classes are listed in parallel. A file costs one statx(2), for its
 * size, right after its name was read: network file systems and FUSE send the
 * attributes along with the names. Folders cost none if the file system reports
 * the type with the name.
 *
 * The times of the folders show whether a tree has changed: adding, removing or
 * renaming a file changes the time of its folder. The root's time does not
 * count, since an index may be written there; its names are compared instead. A
 * file that was rewritten in place is detected only by chance (PROBES), or by
 * its read.
 */
#include "loader/dataset/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/pool.h"
#include "common/system/walk.h"
#include "common/util.h"
#include "loader/dataset/images.h"

/* Files whose sizes are compared with the index. A dataset rebuilt with the
 * same names, in the same folders, has other sizes. arbitrary: enough to detect
 * that, few enough to cost nothing */
enum { PROBES = 64 };

struct entry {
	uint64_t size;
	uint32_t path;	  /* offset in names */
	uint32_t dir_len; /* length of the folder's part of the path */
};

/* One class, or the whole root without classes. */
struct class
{
	char *name;
	struct entry *entry;
	size_t n, capacity;
	char *names;
	size_t names_n, names_capacity;
	struct origin *folder; /* path: offset in `names` */
	size_t n_folders, folders_capacity;
	struct dataset_part part;
};

struct scan {
	struct builder *b;
	struct class *class;
	size_t n, capacity;
	struct origin root;
	struct notes beside; /* files in the root, beside classes */
	bool flat;	     /* the only class is the root */
};

static const struct note_kind empty = {
	"empty_folders",
	"folders without files, not classes",
};

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory while listing a dataset");
}

/* --- one class ---------------------------------------------------------- */

static int add_name(struct class *c, const char *path, uint32_t *ret,
		    struct err *err)
{
	size_t n = strlen(path) + 1;

	if (n > UINT32_MAX - c->names_n)
		return err_set(err, -E2BIG, "%s: too many names", c->name);
	if (util_reserve(&c->names, &c->names_capacity, c->names_n + n, 1) < 0)
		return no_memory(err);
	memcpy(c->names + c->names_n, path, n);
	*ret = (uint32_t)c->names_n;
	c->names_n += n;
	return 0;
}

static int add_file(void *ctx, const char *path, const struct walk_entry *st,
		    struct err *err)
{
	const char *slash = strrchr(path, '/');
	struct entry e = { .size = st->bytes,
			   .dir_len = (uint32_t)(slash ? slash - path : 0) };
	struct class *c = ctx;
	int r = add_name(c, path, &e.path, err);

	if (r < 0)
		return r;
	if (util_reserve(&c->entry, &c->capacity, c->n + 1, sizeof(e)) < 0)
		return no_memory(err);
	c->entry[c->n++] = e;
	return 0;
}

static int add_folder(void *ctx, const char *path, const struct statx *st,
		      struct err *err)
{
	struct class *c = ctx;
	uint32_t at;
	int r = *path ? add_name(c, path, &at, err) : 0;

	if (r < 0 || !*path)
		return r;
	if (util_reserve(&c->folder, &c->folders_capacity, c->n_folders + 1,
			 sizeof(*c->folder)) < 0)
		return no_memory(err);
	c->folder[c->n_folders++] = (struct origin){
		.path = at,
		.mtime_ns = walk_mtime_ns(st),
		.ino = st->stx_ino,
	};
	return 0;
}

/* By folder, then by name, bytewise: sorted(os.walk()) of Python. */
static int by_path(const void *a, const void *b, void *names)
{
	const struct entry *x = a, *y = b;
	const char *px = (char *)names + x->path, *py = (char *)names + y->path;
	size_t n = MIN(x->dir_len, y->dir_len);
	int c = memcmp(px, py, n);

	if (c)
		return c;
	if (x->dir_len != y->dir_len)
		return x->dir_len < y->dir_len ? -1 : 1;
	return strcmp(px + n, py + n);
}

static void class_fini(struct class *c)
{
	free(c->name);
	free(c->entry);
	free(c->names);
	free(c->folder);
	part_fini(&c->part);
	*c = (struct class){ 0 };
}

static int list_class(void *ctx, void *state, size_t i, struct err *err)
{
	struct scan *s = ctx;
	struct class *c = &s->class[i];
	struct walk walk = { .flags = WALK_FOLLOW | WALK_FILES,
			     .ctx = c,
			     .folder = add_folder,
			     .file = add_file };
	int r = walk_tree(&walk, s->b->d->dirfd, c->name, err);

	(void)state;
	/* the files of one folder are sorted */
	if (r == 0 && c->n_folders > 1)
		qsort_r(c->entry, c->n, sizeof(*c->entry), by_path, c->names);
	for (size_t k = 0; r == 0 && k < c->n; k++) {
		const char *path = c->names + c->entry[k].path;

		r = part_add(&c->part, path, strlen(path), 0, c->entry[k].size,
			     PART_BY_FOLDER);
		if (r < 0)
			err_set(err, r, "%s: %s", c->name, strerror(-r));
	}
	return r;
}

static int take_class(void *ctx, size_t i, struct err *err)
{
	struct scan *s = ctx;
	struct class *c = &s->class[i];
	int r = 0;

	if (!c->n && !s->flat &&
	    notes_add(&s->b->d->notes, &empty, 1, c->name) < 0)
		r = no_memory(err);
	for (size_t k = 0; r == 0 && k < c->n_folders; k++)
		r = builder_origin(s->b, c->names + c->folder[k].path,
				   &c->folder[k], err);
	if (r == 0)
		r = builder_files(s->b, &c->part, err);
	class_fini(c);
	return r;
}

/* --- the root ----------------------------------------------------------- */

/* Of the root. */
static int each_name(int dirfd, struct walk_names *w, struct err *err)
{
	_cleanup_close_ int fd =
		openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : walk_names(w, fd);

	return r < 0 ? err_set(err, r, "%s: %s", w->failed[0] ? w->failed : ".",
			       strerror(-r))
		     : 0;
}

/* Independent of the order of the names: their number, and the sum of
 * hashes. */
static int count_name(void *ctx, const char *name, const struct walk_entry *e)
{
	struct origin *root = ctx;

	root->size++;
	root->ino += XXH3_64bits_withSeed(name, strlen(name), S_ISDIR(e->mode));
	return 0;
}

static int add_class(struct scan *s, const char *name)
{
	char *own = strdup(name);

	if (!own || util_reserve(&s->class, &s->capacity, s->n + 1,
				 sizeof(*s->class)) < 0) {
		free(own);
		return -ENOMEM;
	}
	s->class[s->n++] = (struct class){ .name = own };
	return 0;
}

static int take_name(void *ctx, const char *name, const struct walk_entry *e)
{
	struct scan *s = ctx;

	count_name(&s->root, name, e);
	return S_ISDIR(e->mode)
		       ? add_class(s, name)
		       : notes_add(&s->beside, &note_files_aside, 1, name);
}

static int by_name(const void *a, const void *b)
{
	const struct class *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int list_root(struct scan *s, struct err *err)
{
	struct walk_names names = { .flags = WALK_FOLLOW,
				    .name = take_name,
				    .ctx = s };
	int r = each_name(s->b->d->dirfd, &names, err);

	if (s->n)
		qsort(s->class, s->n, sizeof(*s->class), by_name);
	s->flat = s->n == 0;
	if (r == 0 && s->flat && add_class(s, "") < 0)
		r = no_memory(err);
	return r;
}

static int list(struct builder *b, unsigned threads, struct err *err)
{
	struct scan s = { .b = b };
	struct pool pool = { .threads = threads,
			     .ctx = &s,
			     .work = list_class,
			     .take = take_class };
	int r = list_root(&s, err);

	pool.n = s.n;
	if (r == 0)
		r = builder_origin(b, "", &s.root, err);
	if (r == 0 && !s.flat && notes_merge(&b->d->notes, &s.beside) < 0)
		r = no_memory(err);
	if (r == 0)
		r = pool_run(&pool, err);
	notes_fini(&s.beside);
	for (size_t i = 0; i < s.n; i++)
		class_fini(&s.class[i]);
	free(s.class);
	return r;
}

/* --- checking for changes ----------------------------------------------- */

static int stale(struct err *err, const char *path, const char *what)
{
	return err_set(err, -ESTALE, "%s: %s", *path ? path : "its folder",
		       what);
}

static int root_unchanged(const struct dataset *d, struct err *err)
{
	struct origin now = { 0 };
	struct walk_names names = { .flags = WALK_FOLLOW,
				    .name = count_name,
				    .ctx = &now };
	int r = each_name(d->dirfd, &names, err);

	if (r < 0)
		return r;
	return now.size == d->origin[0].size && now.ino == d->origin[0].ino
		       ? 0
		       : stale(err, "", "its names changed");
}

static int probe(const struct dataset *d, size_t i, struct err *err)
{
	struct statx st;
	int r = walk_look(d->dirfd, dataset_path(d, i), 0, &st);

	if (r == 0 ? !S_ISREG(st.stx_mode) || st.stx_size != d->size[i]
		   : d->size[i] != 0)
		return stale(err, dataset_path(d, i), "its size changed");
	return 0;
}

/* Folders other than the root, then probes. */
static int look_again(void *ctx, void *state, size_t i, struct err *err)
{
	const struct dataset *d = ctx;
	size_t folders = d->n_origins - 1, n = MIN(d->n, PROBES);
	const struct origin *o;
	struct statx st;
	int r;

	(void)state;
	if (i >= folders)
		return probe(d, (i - folders) * (d->n - 1) / MAX(n - 1, 1),
			     err);
	o = &d->origin[i + 1];
	r = walk_look(d->dirfd, d->names + o->path, 0, &st);
	if (r < 0 || !S_ISDIR(st.stx_mode) || st.stx_ino != o->ino ||
	    walk_mtime_ns(&st) != o->mtime_ns)
		return stale(err, d->names + o->path, "changed");
	return 0;
}

static int unchanged(const struct dataset *d, unsigned threads, struct err *err)
{
	struct pool pool = { .threads = threads,
			     .ctx = (void *)d,
			     .work = look_again };
	int r;

	if (!d->n_origins)
		return stale(err, "", "not in the index");
	r = root_unchanged(d, err);
	pool.n = d->n_origins - 1 + MIN(d->n, PROBES);
	return r < 0 ? r : pool_run(&pool, err);
}

const struct format_ops format_files = {
	.plugin = { .name = "files",
		    .summary = "a file is a sample; folders in the root are "
			       "classes, as in ImageFolder" },
	.whole_files = true,
	.list = list,
	.unchanged = unchanged,
};
