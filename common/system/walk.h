/* SPDX-License-Identifier: MIT */
/*
 * The names of a folder, and the tree below one. All programs list by these
 * rules, so that gpemu-fs, gpemu-train and gpemu-data see the same tree.
 *
 *	kinds	Regular files, folders and symbolic links. Sockets, pipes and
 *		devices are left out.
 *	order	Names of a folder in byte order. Of a tree: the files of a
 *		folder, then its folders, each with all that is below it.
 *	hidden	Names that begin with '.' are left out. With WALK_HIDDEN only
 *		"." and "..".
 *	links	Are listed as links. With WALK_FOLLOW as what they lead to, in
 *		the tree or out of it; one that leads nowhere, or to what is
 *		left out, stays a link, of 0 bytes: whoever opens it gets the
 *		error.
 *	loops	A link to a folder that it is in ends the walk: -ELOOP. One to
 *		another folder of the tree lists that once more, WALK_AGAIN
 *		times at most: links to folders with links multiply.
 *	depth	Of WALK_DEPTH folders at most below the root, else -ELOOP.
 *	failures	A folder that cannot be opened or read ends the walk, as
 *		does a name that cannot be looked at. A name that is gone when
 *		it is looked at is left out.
 *	beneath	Without WALK_FOLLOW nothing outside the tree is opened: a
 *		folder is opened from the one it is in, through no link. For
 *		paths in a tree that others change: fs/source/beneath.h.
 *	ending	A callback ends the walk when it does not return 0.
 */
#ifndef GPEMU_COMMON_SYSTEM_WALK_H
#define GPEMU_COMMON_SYSTEM_WALK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/err.h"

/* arbitrary: no known dataset nests its folders this deep. A walk has a
 * descriptor open for each. */
enum { WALK_DEPTH = 64 };
#define WALK_TOO_DEEP "folders nested more than 64 deep"

/* How often links may lead to one folder. arbitrary: no known dataset links
 * to one folder this often, and 64 folders of 1,000 links are listed in a
 * second. */
enum { WALK_AGAIN = 1000 };

enum walk_flags {
	WALK_FOLLOW = 1,
	WALK_HIDDEN = 2,
	/* Look at files, or at folders, which is a call for each: their size,
	 * time, permissions and owner. Without it an entry has its kind, for
	 * which there is a call only where the folder does not say it, and for
	 * links that are followed. */
	WALK_FILES = 4,
	WALK_FOLDERS = 8,
};

struct walk_entry {
	uint64_t bytes;
	int64_t mtime_s; /* since 1970 */
	uint32_t mtime_ns;
	uint32_t mode; /* S_IFMT, and permissions where it was looked at */
	uint32_t uid, gid;
	uint64_t dev, ino; /* the file, and the number of its names */
	uint32_t n_names;
	uint32_t name; /* in a list: where in its names */
};

/* --- a folder ------------------------------------------------------------- */

/*
 * Call `name` with all names of the folder `fd`, as they come, which is in no
 * order: each was looked at right after it was read, as file systems expect
 * it. 0, -errno, or what `name` returned that is not 0. On failure `failed` is
 * the name that could not be looked at, or "".
 */
struct walk_names {
	unsigned flags;
	int (*name)(void *ctx, const char *name, const struct walk_entry *e);
	void *ctx;
	char failed[256]; /* NAME_MAX + 1 */
};

int walk_names(struct walk_names *w, int fd);

struct walk_list {
	struct walk_entry *entry;
	size_t n, capacity;
	char *names;
	size_t names_bytes, names_capacity;
	char failed[256];
};

/* All of them, in order. -ENOMEM; -E2BIG: 32 bits do not count the bytes of
 * their names; as above. Free with walk_list_fini, failed or not. */
int walk_list(int fd, unsigned flags, struct walk_list *ret);
void walk_list_fini(struct walk_list *l);
static inline const char *walk_name(const struct walk_list *l,
				    const struct walk_entry *e)
{
	return l->names + e->name;
}

/* --- a tree --------------------------------------------------------------- */

struct walk {
	unsigned flags;
	void *ctx;
	/* A folder, before its names are read: what changes in it meanwhile
	 * changes its time later. `path` is below `dirfd`, "" for `dirfd`
	 * itself. Also the place to show progress. NULL: nothing to do. */
	int (*folder)(void *ctx, const char *path, const struct statx *st,
		      struct err *err);
	/* What is no folder. */
	int (*file)(void *ctx, const char *path, const struct walk_entry *e,
		    struct err *err);
};

/*
 * Walk the folder `path` below `dirfd`, or `dirfd` itself where it is "". 0,
 * -errno with a text that begins with a path below `dirfd`, or what a callback
 * returned that is not 0.
 */
int walk_tree(const struct walk *w, int dirfd, const char *path,
	      struct err *err);

/* --- folders that links lead to ------------------------------------------ */

/* Zeroed is valid: none was seen. */
struct walk_seen {
	void *root;
};

/* Count a link to the folder. 1: it is one more than WALK_AGAIN; 0; -ENOMEM. */
int walk_seen_add(struct walk_seen *s, uint64_t dev, uint64_t ino);
void walk_seen_fini(struct walk_seen *s);

/* --- a name --------------------------------------------------------------- */

/* What `path` below `dirfd` is, "" for `dirfd` itself; links are followed
 * unless `flags` have AT_SYMLINK_NOFOLLOW. -errno. */
int walk_look(int dirfd, const char *path, int flags, struct statx *ret);
int64_t walk_mtime_ns(const struct statx *st);

#endif
