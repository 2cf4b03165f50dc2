/* SPDX-License-Identifier: MIT */
/*
 * A pack (docs/pack-format.md) as the tree from which it was made.
 *
 * Sorted by path, the files of a folder are neighbours: a directory of the
 * tree is a range of the sorted files and the length of the path up to it.
 * The tree is built breadth first from these ranges.
 */
#include "fs/source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/pack/pack.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/source/acl.h"

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

/* A directory that is still to be filled, or a file. */
struct range {
	uint32_t from, to; /* of the sorted files */
	uint32_t prefix;   /* length of their paths above it */
};

struct scan {
	struct packed *p;
	struct tree *tree;
	struct range *ranges; /* by node */
	struct tree_child *children;
	struct range *found; /* of the children */
	size_t n;
};

static const struct pack_file *sorted(const struct packed *p, uint32_t i)
{
	return &p->pack.files[p->pack.sorted[i]];
}

/* Add a child of a directory: all files from `i` with the same next component;
 * returns where the next child begins, 0 without memory. */
static uint32_t next_child(struct scan *s, uint32_t node, uint32_t i)
{
	const struct pack_file *f = sorted(s->p, i);
	const struct range *dir = &s->ranges[node];
	struct tree_child *child;
	const char *name = f->path + dir->prefix;
	size_t len = strcspn(name, "/");
	bool is_file = !name[len];
	uint32_t end = i + 1;

	while (!is_file && end < dir->to &&
	       !strncmp(sorted(s->p, end)->path + dir->prefix, name, len + 1))
		end++;
	child = &s->children[s->n];
	*child = s->p->folder;
	child->name = strndup(name, len);
	if (is_file) {
		child->bytes = f->bytes;
		child->mtime = units_timespec(f->mtime_ns);
		child->mode = S_IFREG | f->mode;
	}
	if (child->name && tree_hides(s->tree, node, child->name)) {
		free(child->name);
		return end;
	}
	s->found[s->n] = (struct range){
		.from = i,
		.to = end,
		.prefix = dir->prefix + (uint32_t)len + 1,
	};
	return s->children[s->n++].name ? end : 0;
}

/* Gives directory `node` its children and notes their ranges. */
static int fill_dir(struct scan *s, uint32_t node)
{
	const struct range dir = s->ranges[node];
	uint32_t i = dir.from, first = s->tree->n_nodes;
	struct range *more;
	int r = 0;

	s->n = 0;
	while (r == 0 && i < dir.to) {
		i = next_child(s, node, i);
		r = i ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = tree_add_children(s->tree, node, s->children, s->n);
	for (size_t k = 0; k < s->n; k++)
		free(s->children[k].name);
	if (r < 0)
		return r;
	more = reallocarray(s->ranges, s->tree->n_nodes, sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->ranges = more;
	/* already sorted, so the tree kept their order */
	memcpy(more + first, s->found, s->n * sizeof(*more));
	return 0;
}

static int fill_tree(struct scan *s)
{
	struct tree *t = s->tree;
	uint32_t n = s->p->pack.n_files;
	int r = 0;

	s->ranges = calloc(1, sizeof(*s->ranges));
	s->children = calloc((size_t)n + 1, sizeof(*s->children));
	s->found = calloc((size_t)n + 1, sizeof(*s->found));
	if (!s->ranges || !s->children || !s->found)
		return -ENOMEM;
	s->ranges[TREE_ROOT].to = n;
	tree_set_root(t, &s->p->folder);
	for (uint32_t i = 0; r == 0 && i < t->n_nodes; i++)
		if (S_ISDIR(t->nodes[i].mode))
			r = fill_dir(s, i);
	if (r < 0)
		return r;
	s->p->file_of = calloc(t->n_nodes, sizeof(*s->p->file_of));
	if (!s->p->file_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (S_ISREG(t->nodes[i].mode))
			s->p->file_of[i] = s->p->pack.sorted[s->ranges[i].from];
	return 0;
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
	struct scan s = { .p = state, .tree = tree };
	struct stat st;
	int r = look(s.p, tree, &st);

	/* only users who may read the pack may enter folders */
	if (r == 0)
		s.p->folder = (struct tree_child){
			.mtime = st.st_mtim,
			.mode = S_IFDIR | (st.st_mode & 0444) |
				(st.st_mode & 0444) >> 2,
			.uid = st.st_uid,
			.gid = st.st_gid,
		};
	if (r == 0)
		r = fill_tree(&s);
	free(s.ranges);
	free(s.children);
	free(s.found);
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
	char *at = buf;

	if (r < 0)
		return r;
	offset += p->pack.files[p->file_of[node]].offset;
	while (n) {
		struct iovec iov = { .iov_base = at, .iov_len = n };
		ssize_t got = preadv2(p->fd, &iov, 1, (off_t)offset,
				      nowait ? RWF_NOWAIT : 0);

		if (got < 0 && errno == EINTR)
			continue;
		/* no RWF_NOWAIT here: leave the read to a thread */
		if (got < 0 && nowait && errno == EOPNOTSUPP)
			return -EAGAIN;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ESTALE;
		at += got;
		n -= (size_t)got;
		offset += (uint64_t)got;
	}
	return 0;
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
