/* SPDX-License-Identifier: MIT */
/*
 * The namespace of a mount: every directory, file and symbolic link of the
 * source, scanned once at start and never changed. The children of a directory
 * are adjacent in one array, sorted by name, so that a lookup is a binary
 * search and a readdir a linear scan; a file costs 48 bytes plus its name.
 *
 * Node numbers count from 0 (the root); an inode number is the node's + 1.
 *
 * A file may have several names: hard links, and symbolic links that the source
 * follows (fs/source/source_dir.c). Each name is a node, and tree_file() of all
 * of them is the first one, the node of the file: it alone is opened, read and
 * cached, and the inode number of all names is its number + 1.
 * Reading is safe from all threads.
 */
#ifndef GPEMU_FS_SOURCE_TREE_H
#define GPEMU_FS_SOURCE_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "common/err.h"

#define TREE_ROOT 0u
#define TREE_NONE UINT32_MAX
/* The mount's own folder in the root (fs/control/ctl.h). */
#define TREE_CONTROL_NAME ".gpemu"
/* The largest file: 8 PiB. Extents of 4 MiB are counted in 32 bits. */
#define TREE_MOST_BYTES (1ull << 53)

struct tree_node {
	union {
		uint64_t bytes; /* of a file, of a link's target */
		struct {
			uint32_t first_child, n_children; /* of a directory */
		};
	};
	int64_t mtime_s; /* since 1970 */
	uint64_t name;	 /* offset into the names */
	uint32_t mtime_ns : 30;
	uint32_t again : 1; /* a further name of a file */
	uint32_t parent;
	uint32_t mode; /* S_IFMT and permissions, without write bits */
	uint32_t uid, gid;
	uint32_t names_of; /* again: the file's node; else the number of further
			    * names it has */
};

/* Symbolic links of the source. */
struct tree_links {
	uint64_t followed;
	uint64_t dangling; /* no file or folder that can be opened is there */
	uint64_t loops;	   /* to a folder that the link is in, or too often */
	uint64_t outside;  /* of the folders below which links are followed */
	uint32_t first;	   /* node of one that is not followed, if any is */
};

static inline uint64_t tree_links_left(const struct tree_links *l)
{
	return l->dangling + l->loops + l->outside;
}

struct tree {
	struct tree_node *nodes;
	uint32_t n_nodes, n_allocated;
	char *names;
	size_t names_bytes, names_allocated;
	/* Users other than the mounter may see it: sources check permissions,
	 * including access control lists. Set before the scan. */
	bool shared;
	/* The folders below which symbolic links are followed, as
	 * --follow-links (docs/gpemu-fs.1.scd); NULL: its default. Set before
	 * the scan. */
	const char *follow;
	struct tree_links links;
	uint64_t n_hidden;   /* names that tree_hides hid */
	uint64_t n_files;    /* regular files, each once */
	uint64_t n_again;    /* further names of them */
	uint64_t file_bytes; /* the sum of their sizes */
};

/* A tree with the root alone, which all may read. -ENOMEM. */
int tree_init(struct tree *t);
void tree_fini(struct tree *t);

/* An entry that a source found in a directory. */
struct tree_child {
	char *name; /* owned by the caller */
	uint64_t bytes;
	struct timespec mtime;
	uint32_t mode; /* bits besides S_IFMT and 0555 are left out */
	uint32_t uid, gid;
};

/* Mode, owner and time of the root. */
void tree_set_root(struct tree *t, const struct tree_child *root);
/* Is this name in directory `dir` reserved for the mount? Then the source omits
 * its own entry; counted. */
bool tree_hides(struct tree *t, uint32_t dir, const char *name);

/*
 * Give directory `dir` its children: sorts `children` by name and appends
 * them; the first gets number t->nodes[dir].first_child. Once per directory.
 * -ENOMEM, -EOVERFLOW (more than 2^32 - 1 nodes), -EEXIST (a name twice),
 * -EFBIG (a file of more than TREE_MOST_BYTES, or 2^63 bytes together).
 */
int tree_add_children(struct tree *t, uint32_t dir, struct tree_child *children,
		      size_t n);

/* The file that a device and an inode number identify, at a node. */
struct tree_id {
	uint64_t dev, ino;
};
/*
 * Find the files that have several names, once all nodes are there: `id` of
 * each node. In a shared tree only names with equal permissions, in folders
 * that are open to all, or in one folder: whoever may read one name may read
 * the others, also after the names no longer are those of one file. -ENOMEM.
 */
int tree_join_names(struct tree *t, const struct tree_id *id);
/* The node of the file that `node` names. */
static inline uint32_t tree_file(const struct tree *t, uint32_t node)
{
	return t->nodes[node].again ? t->nodes[node].names_of : node;
}

const char *tree_name(const struct tree *t, uint32_t node);
/* The node of a name; TREE_NONE: no such child. */
uint32_t tree_lookup(const struct tree *t, uint32_t dir, const char *name);
/* Find a path "a/b/c" below the root; TREE_NONE: there is none. */
uint32_t tree_find(const struct tree *t, const char *path);
/* "a/b/c" below the root (the root is "."); -ENAMETOOLONG. */
int tree_path(const struct tree *t, uint32_t node, char *buf, size_t n);
/* The same below the folder `top`, which is above `node` or the node itself. */
int tree_path_below(const struct tree *t, uint32_t top, uint32_t node,
		    char *buf, size_t n);
/*
 * Classes of files, as loaders have them: the first folder of the path, and 0
 * for files in the root (or of no node). Folders are numbered as the root's
 * children, from 1; other numbers have no files.
 */
uint32_t tree_label(const struct tree *t, uint32_t file);
/* All labels are below: 1 without folders, however many files there are. */
uint32_t tree_labels(const struct tree *t);
/* As in struct policy_params, with a tree: of an object's file. */
uint32_t tree_label_of(const void *tree, uint64_t key);

/* The sizes of all n_files files, ascending, malloc'ed; NULL without memory. */
uint64_t *tree_sizes(const struct tree *t);

#endif
