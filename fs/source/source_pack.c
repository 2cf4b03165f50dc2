/* SPDX-License-Identifier: MIT */
/* A pack (docs/pack-format.md) as the tree from which it was made. */
#include "fs/source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/pack/pack.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/source/acl.h"
#include "fs/source/tree_paths.h"

struct packed {
	int fd;
	struct tree_child folder; /* of all folders: as the pack's file */
	struct pack pack;
	uint32_t *file_of; /* by node: the file in the pack */
};

static int pack_init(void *state, const char *arg, struct err *err)
{
	struct packed *p = state;

	p->fd = -1;
	return pack_open(arg, &p->fd, &p->pack, err);
}

static void pack_source_fini(void *state)
{
	struct packed *p = state;

	if (p->fd >= 0)
		close(p->fd);
	pack_fini(&p->pack);
	free(p->file_of);
}

static void file_of(const void *ctx, uint32_t i, const char **ret_path,
		    struct tree_child *c)
{
	const struct packed *p = ctx;
	const struct pack_file *f = &p->pack.files[p->pack.sorted[i]];

	*ret_path = f->path;
	c->bytes = f->bytes;
	c->mtime = units_timespec(f->mtime_ns);
	c->mode = S_IFREG | f->mode;
}

static int fill_tree(struct packed *p, struct tree *t)
{
	const struct tree_paths paths = { .n = p->pack.n_files,
					  .folder = p->folder,
					  .file = file_of,
					  .ctx = p };
	int r = tree_of_paths(t, &paths, &p->file_of);

	for (uint32_t i = 0; r == 0 && i < t->n_nodes; i++)
		p->file_of[i] = p->pack.n_files ? p->pack.sorted[p->file_of[i]]
						: 0;
	return r;
}

/* Who may read the pack; a shared mount also applies access control lists. */
static int look(const struct packed *p, const struct tree *tree,
		struct stat *ret)
{
	if (fstat(p->fd, ret) < 0)
		return -errno;
	if (tree->shared)
		ret->st_mode = acl_limit_file(ret->st_mode, p->fd, NULL);
	return 0;
}

static int pack_scan(void *state, struct tree *tree, struct err *err)
{
	struct packed *p = state;
	struct stat st;
	int r = look(p, tree, &st);

	/* only users who may read the pack may enter folders */
	if (r == 0)
		p->folder = (struct tree_child){
			.mtime = st.st_mtim,
			.mode = S_IFDIR | (st.st_mode & 0444) |
				(st.st_mode & 0444) >> 2,
			.uid = st.st_uid,
			.gid = st.st_gid,
		};
	if (r == 0)
		r = fill_tree(p, tree);
	return r < 0 ? err_set(err, r, "pack: %s", strerror(-r)) : 0;
}

/* May all users of the mount still read the pack? */
static int check_shared(const struct packed *p, const struct tree *tree)
{
	struct stat st;
	int r = look(p, tree, &st);

	if (r < 0)
		return r;
	return p->folder.mode & 0444 & ~st.st_mode ||
			       st.st_uid != p->folder.uid ||
			       st.st_gid != p->folder.gid
		       ? -ESTALE
		       : 0;
}

static int pack_read(void *state, const struct tree *tree, uint32_t node,
		     void *buf, size_t n, uint64_t offset, bool nowait)
{
	const struct packed *p = state;
	int r = tree->shared ? check_shared(p, tree) : 0;

	offset += p->pack.files[p->file_of[node]].offset;
	return r < 0 ? r : source_pread(p->fd, buf, n, offset, nowait);
}

static int no_link(void *state, const struct tree *tree, uint32_t node,
		   char *buf, size_t n)
{
	(void)state, (void)tree, (void)node, (void)buf, (void)n;
	return -EINVAL;
}

static int pack_groups(void *state, const struct tree *tree,
		       struct grouping *ret)
{
	const struct packed *p = state;
	const struct pack *pack = &p->pack;
	_cleanup_free_ uint32_t *node = calloc((size_t)pack->n_files + 1, 4);

	*ret = (struct grouping){
		.file = calloc((size_t)pack->n_files + 1, 4),
		.first = calloc((size_t)pack->n_groups + 1, 4),
	};
	if (!node || !ret->file || !ret->first) {
		grouping_free(ret);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < tree->n_nodes; i++)
		if (S_ISREG(tree->nodes[i].mode))
			node[p->file_of[i]] = i;
	for (uint32_t g = 0; g < pack->n_groups; g++) {
		ret->first[ret->n_groups] = ret->n_files;
		/* a file without a node is hidden */
		for (uint32_t i = pack->first[g]; i < pack->first[g + 1]; i++)
			if (node[i])
				ret->file[ret->n_files++] = node[i];
		ret->n_groups += ret->n_files > ret->first[ret->n_groups];
	}
	ret->first[ret->n_groups] = ret->n_files;
	return 0;
}

const struct source_ops source_pack = {
	.plugin = { .name = "pack",
		    .summary = "a packed dataset: pack:FILE",
		    .state_size = sizeof(struct packed) },
	.init = pack_init,
	.fini = pack_source_fini,
	.scan = pack_scan,
	.read = pack_read,
	.readlink = no_link,
	.groups = pack_groups,
};
