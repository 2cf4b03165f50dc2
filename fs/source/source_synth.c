/* SPDX-License-Identifier: MIT */
/*
 * A dataset without a disk: the tree is that of `gpemu-data make`, the bytes
 * are computed when they are read (emu/image/synth.h). A file's name contains
 * its number, so that no table from nodes to files is needed.
 */
#include "fs/source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"
#include "emu/image/synth.h"

/* arbitrary: 2012-01-01; tools treat a file of 1970 as an error */
#define MTIME_S 1325376000

struct made_up {
	struct synth *synth;
};

/* The attributes of all files and folders; the mounter owns them. */
static struct tree_child common_child(void)
{
	return (struct tree_child){ .mtime.tv_sec = MTIME_S,
				    .uid = geteuid(),
				    .gid = getegid() };
}

static int synth_init(void *state, const char *arg, struct err *err)
{
	struct made_up *m = state;

	return synth_open(arg, &m->synth, err);
}

static int make_images(void *state, struct err *err)
{
	struct made_up *m = state;

	return synth_prepare(m->synth, err);
}

static void synth_fini(void *state)
{
	struct made_up *m = state;

	synth_close(m->synth);
}

/* The names of a directory's children, in one allocation. */
struct listing {
	struct tree_child *children;
	char (*names)[DATASET_FILES_PATH];
};

static int listing_init(struct listing *l, size_t n)
{
	const struct tree_child common = common_child();

	l->children = calloc(n, sizeof(*l->children));
	l->names = calloc(n, sizeof(*l->names));
	if (!l->children || !l->names)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		l->children[i] = common;
		l->children[i].name = l->names[i];
	}
	return 0;
}

static void listing_fini(struct listing *l)
{
	free(l->children);
	free(l->names);
}

static int add_classes(const struct dataset_files *d, struct tree *tree)
{
	_cleanup_(listing_fini) struct listing l = { 0 };
	int r = listing_init(&l, d->classes);

	for (uint64_t c = 0; r == 0 && c < d->classes; c++) {
		dataset_files_folder(c, l.names[c]);
		l.children[c].mode = S_IFDIR | 0555;
	}
	return r < 0 ? r
		     : tree_add_children(tree, TREE_ROOT, l.children,
					 d->classes);
}

/* The number in "class_0007" or "img_00001234.bin". */
static uint64_t number_in(const char *name)
{
	return strtoull(strchr(name, '_') + 1, NULL, 10);
}

static int add_files(const struct synth *s, struct tree *tree, uint32_t dir)
{
	_cleanup_(listing_fini) struct listing l = { 0 };
	const struct dataset_files *d = synth_files(s);
	uint64_t class = number_in(tree_name(tree, dir));
	uint64_t first = dataset_files_first(d, class);
	size_t n = dataset_files_first(d, class + 1) - first;
	int r = listing_init(&l, n);

	for (size_t i = 0; r == 0 && i < n; i++) {
		dataset_files_name(d, first + i, l.names[i]);
		l.children[i].mode = S_IFREG | 0444;
		l.children[i].bytes = synth_size(s, first + i);
	}
	return r < 0 ? r : tree_add_children(tree, dir, l.children, n);
}

static int synth_scan(void *state, struct tree *tree, struct err *err)
{
	const struct made_up *m = state;
	struct tree_child root = common_child();
	uint32_t n;
	int r;

	root.mode = S_IFDIR | 0555;
	tree_set_root(tree, &root);
	r = add_classes(synth_files(m->synth), tree);
	n = tree->n_nodes;
	for (uint32_t dir = 1; r == 0 && dir < n; dir++)
		r = add_files(m->synth, tree, dir);
	return r < 0 ? err_set(err, r, "synth: %s", strerror(-r)) : 0;
}

static int read_made_up(void *state, const struct tree *tree, uint32_t node,
			void *buf, size_t n, uint64_t offset, bool nowait)
{
	const struct made_up *m = state;

	(void)nowait; /* never blocks */
	synth_read(m->synth, number_in(tree_name(tree, node)), offset, buf, n);
	return 0;
}

static int no_link(void *state, const struct tree *tree, uint32_t node,
		   char *buf, size_t n)
{
	(void)state, (void)tree, (void)node, (void)buf, (void)n;
	return -EINVAL;
}

const struct source_ops source_synth = {
	.plugin = { .name = "synth",
		    .summary = "generated on read: synth:DATASET[,files=N]"
			       "[,classes=N][,seed=N][,content=random|jpeg]"
			       "[,scale=X]",
		    .state_size = sizeof(struct made_up) },
	.init = synth_init,
	.fini = synth_fini,
	.scan = synth_scan,
	.prepare = make_images,
	.read = read_made_up,
	.readlink = no_link,
};
