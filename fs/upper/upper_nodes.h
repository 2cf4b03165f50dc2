/* SPDX-License-Identifier: MIT */
/*
 * What the files of the writable folder have in common: the tables of the files
 * and names that the kernel knows, and how a file is opened.
 *
 *	(folder, "a") --+			 folder: an inode number, of the
 *			+--> node <-- real file	 dataset or of a node
 *	(folder, "b") --+
 *
 * A node is a file that the kernel has looked up, by one or several of its
 * names. Its inode number is UPPER_INO or more and never used again; those of
 * the dataset are below (fs/source/tree.h). A node has no descriptor while it
 * has a name: a name is opened at each use. When the last one that is known is
 * removed, an O_PATH descriptor stays until the kernel forgets the node.
 *
 * Three locks, outermost first:
 *	paths	held from the moment at which a path is made of names until the
 *		call that uses it returns; waits for the folder's file system
 *	space.lock	sizes of files (upper_space.h)
 *	lock	guards the nodes; nothing waits under it
 */
#ifndef GPEMU_FS_UPPER_UPPER_NODES_H
#define GPEMU_FS_UPPER_UPPER_NODES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/err.h"
#include "fs/server/hash.h"
#include "fs/source/beneath.h"
#include "fs/source/tree.h"
#include "fs/upper/upper_space.h"

/* above the numbers of the tree and of the control files */
#define UPPER_INO (1ull << 56)

struct upper_file;
struct upper_list;

struct upper_node;

struct upper_name {
	struct upper_node *node;
	struct upper_node *in;		/* the folder; NULL: of the dataset */
	struct upper_name *prev, *next; /* utlist: the names of the node */
	UT_hash_handle hh;
	/* the key: */
	uint64_t folder; /* inode number */
	char text[];
};

/* What a file is in the writable folder. */
struct upper_real {
	uint64_t dev, ino;
};

struct upper_node {
	uint64_t ino;
	struct upper_real real;
	uint64_t lookups;	  /* by the kernel, less those it forgot */
	unsigned refs;		  /* names in it, open files */
	struct upper_name *names; /* those that the kernel knows */
	int fd;			  /* of one without any; else -1 */
	bool unsynced;		  /* a name is newer than the last sync */
	struct upper_taken taken; /* by the lock of `space` */
	struct upper_node *next;  /* in a list of unused ones */
	UT_hash_handle by_ino, by_real;
};

struct upper {
	struct beneath dir;
	const struct tree *tree;
	struct upper_space space;
	pthread_mutex_t paths, lock;
	/* all below under `lock` */
	struct upper_node *inos, *reals;
	struct upper_name *names;
	uint64_t n_made;
	uint64_t most_fds; /* constant: that this process may have */
	uint64_t n_fds;	   /* of open files, and of nodes without a name */
	struct upper_file *files; /* the open ones (upper_file.h) */
	struct upper_list *lists; /* of open folders (upper.h) */
	size_t listed_bytes;	  /* of those of other users */
};

/* All of them, at the end. */
void upper_free_nodes(struct upper *u);

static inline bool upper_has(uint64_t ino)
{
	return ino >= UPPER_INO;
}

/* A name in a folder, by the folder's inode number. */
struct upper_at {
	uint64_t folder;
	const char *name;
};

/* Is the name one of the dataset, or of the mount? Then nothing of upper.h may
 * be called with it. Does not wait. */
bool upper_is_taken(const struct upper *u, const struct upper_at *at);

/* May clients have another descriptor? They leave a quarter of all to the
 * mount, whose reads need them; other users (`other`) half, so that its owner
 * can still work. 0 or -EMFILE. */
int upper_has_room(struct upper *u, bool other);

/* The object on the emulated device, a number above all of the tree. */
uint32_t upper_object(const struct upper *u, uint64_t ino);
/* "a/b/c" below the root of the mount, of a name in a folder or (NULL) of an
 * inode; malloc'ed, NULL without memory. Does not wait. */
char *upper_path(struct upper *u, uint64_t ino, const char *name);

/* --- under `paths` -------------------------------------------------------- */

/* The same into buf[PATH_MAX]. -ESTALE, -ENAMETOOLONG. */
int upper_path_of(struct upper *u, uint64_t ino, const char *name, char *buf);
/* An O_PATH descriptor of an inode; of a folder of the dataset, that of its
 * counterpart. -errno; -ENOENT: it has none. */
int upper_fd(struct upper *u, uint64_t ino);

/* --- takes `lock` --------------------------------------------------------- */

/* The kernel looked up this name of a file, or just made it (`fresh`); its
 * number. 0: no memory. */
uint64_t upper_note(struct upper *u, uint64_t folder, const char *name,
		    const struct stat *st, bool fresh);
/* The kernel forgets `n` lookups. Does not wait, but for the close of a file
 * without a name. */
void upper_forget(struct upper *u, uint64_t ino, uint64_t n);
/* A reference, for upper_put. NULL: there is no such node. */
struct upper_node *upper_get(struct upper *u, uint64_t ino);
void upper_put(struct upper *u, struct upper_node *n);
/* Does a client have the file `fd` open? Under the lock of `space`. */
bool upper_is_open(struct upper *u, int fd);
bool upper_knows(struct upper *u, uint64_t folder, const char *name);
/* The name is gone; takes `fd`, O_PATH, of what it named. */
void upper_unname(struct upper *u, uint64_t folder, const char *name, int fd);
/* A name that no node has yet; NULL: no memory. */
struct upper_name *upper_name_new(uint64_t folder, const char *name);
/* The name is `to` now, which it takes. */
void upper_rekey(struct upper *u, uint64_t folder, const char *name,
		 struct upper_name *to);
/* Two names were exchanged. */
void upper_swap(struct upper *u, uint64_t folder, const char *name, uint64_t to,
		const char *to_name);

#endif
