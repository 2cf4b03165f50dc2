/* SPDX-License-Identifier: MIT */
#include "fs/front/front_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CTL_DIR_INO (1ull << 40)

bool front_is_ctl(fuse_ino_t ino)
{
	return ino >= CTL_DIR_INO && !upper_has(ino);
}

enum ctl_file front_ctl_file(fuse_ino_t ino)
{
	if (ino == CTL_DIR_INO)
		return CTL_N_FILES;
	return (enum ctl_file)((ino - CTL_DIR_INO - 1) % CTL_N_FILES);
}

/*
 * The kernel locks the inode during a write, so a second writer would block.
 * But a command may have to wait for another one. So each lookup of control
 * returns a new inode number, which the kernel does not cache.
 */
fuse_ino_t front_ctl_lookup(struct front *f, fuse_ino_t parent,
			    const char *name)
{
	enum ctl_file file = ctl_lookup(name);
	fuse_ino_t ino = CTL_DIR_INO + 1 + file;

	if (parent != CTL_DIR_INO)
		return CTL_DIR_INO;
	if (file == CTL_N_FILES)
		return 0;
	if (ctl_writable(file))
		ino += CTL_N_FILES *
		       __atomic_add_fetch(&f->n_lookups, 1, __ATOMIC_RELAXED);
	return ino;
}

static void stat_ctl(fuse_ino_t ino, struct stat *ret)
{
	ret->st_mode = ino == CTL_DIR_INO
			       ? S_IFDIR | 0555
			       : S_IFREG | ctl_mode(front_ctl_file(ino));
	ret->st_nlink = ino == CTL_DIR_INO ? 2 : 1;
}

void front_stat(const struct front *f, fuse_ino_t ino, struct stat *ret)
{
	const struct tree_node *n;

	*ret = (struct stat){ .st_ino = ino,
			      .st_uid = f->uid,
			      .st_gid = f->gid,
			      .st_blksize = 4096 };
	if (front_is_ctl(ino)) {
		stat_ctl(ino, ret);
		return;
	}
	n = &server_tree(f->c.server)->nodes[ino - 1];
	if (f->shared) {
		ret->st_uid = n->uid;
		ret->st_gid = n->gid;
	}
	ret->st_mode = n->mode;
	if (f->c.upper && S_ISDIR(n->mode))
		ret->st_mode |= S_IWUSR;
	ret->st_nlink = S_ISDIR(n->mode) ? 2 : 1 + n->names_of;
	ret->st_size = S_ISDIR(n->mode) ? 0 : (off_t)n->bytes;
	ret->st_blocks = (blkcnt_t)((ret->st_size + 511) / 512);
	ret->st_mtim.tv_sec = n->mtime_s;
	ret->st_mtim.tv_nsec = n->mtime_ns;
	ret->st_atim = ret->st_ctim = ret->st_mtim;
}

/* Wall seconds that the kernel may keep a name of the dataset and its
 * attributes: `names` of the profile, times the time scale, else
 * FRONT_TIMEOUT_S. */
static double kept_s(const struct front *f)
{
	uint64_t ns;

	return server_keeps_names(f->c.server, &ns)
		       ? (double)ns / NS_PER_S *
				 tick_scale(server_tick(f->c.server))
		       : FRONT_TIMEOUT_S;
}

void front_entry(const struct front *f, fuse_ino_t ino,
		 struct fuse_entry_param *ret)
{
	double kept = front_is_ctl(ino) ? FRONT_TIMEOUT_S : kept_s(f);
	uint64_t ns;

	if (!ino && server_keeps_names(f->c.server, &ns))
		kept = 0; /* FUSE's default for what does not exist */
	*ret = (struct fuse_entry_param){ .ino = ino,
					  .attr_timeout = kept,
					  .entry_timeout = kept };
	if (front_is_ctl(ino) && ctl_writable(front_ctl_file(ino)))
		ret->entry_timeout = 0;
	if (ino)
		front_stat(f, ino, &ret->attr);
	/* more is known of it than may be waited for here: front_upper_stat */
	if (f->c.upper && ino && S_ISDIR(ret->attr.st_mode))
		ret->attr_timeout = 0;
}

/* A listing under construction. */
struct page {
	const struct front *front;
	fuse_req_t req;
	char *buf;
	size_t used, size;
	bool plus;
};

/* false: full. `next` is the offset of the entry after this one. */
static bool put_entry(struct page *p, const char *name,
		      struct fuse_entry_param *ret, off_t next)
{
	struct fuse_entry_param e = *ret;
	size_t n;

	if (p->plus) {
		/* "." and ".." take no reference on an inode */
		if (name[0] == '.' && (!name[1] || !strcmp(name, "..")))
			e.ino = 0;
		n = fuse_add_direntry_plus(p->req, p->buf + p->used,
					   p->size - p->used, name, &e, next);
	} else {
		n = fuse_add_direntry(p->req, p->buf + p->used,
				      p->size - p->used, name, &e.attr, next);
	}
	if (n > p->size - p->used)
		return false;
	p->used += n;
	return true;
}

static bool add_folder(struct page *p, const char *name, fuse_ino_t ino,
		       off_t next)
{
	struct fuse_entry_param e = { .attr.st_ino = ino,
				      .attr.st_mode = S_IFDIR };

	/* of a folder of the upper only its own entry, and that above it */
	if (!upper_has(ino))
		front_entry(p->front, ino, &e);
	return put_entry(p, name, &e, next);
}

/* No lookup of these names is counted: the kernel gets only number and type. */
static void add_listed(struct page *p, const struct upper_list *l, uint64_t i,
		       uint64_t first)
{
	for (; i - first < l->n; i++) {
		const struct upper_listed *x = &l->v[i - first];
		struct fuse_entry_param e = { .attr.st_ino = x->ino,
					      .attr.st_mode = x->type };

		if (!put_entry(p, x->name, &e, (off_t)i + 1))
			return;
	}
}

/* The number of the entry after them. false: full. */
static bool add_children(struct page *p, fuse_ino_t ino, uint64_t *i)
{
	const struct tree *t = server_tree(p->front->c.server);
	const struct tree_node *dir = &t->nodes[ino - 1];

	for (; *i - 2 < dir->n_children; ++*i) {
		uint32_t child = dir->first_child + (uint32_t)(*i - 2);

		if (!add_folder(p, tree_name(t, child),
				tree_file(t, child) + 1ull, (off_t)*i + 1))
			return false;
	}
	return true;
}

/* Those of the dataset, then those of the writable folder. */
static void add_all(struct page *p, fuse_ino_t ino, uint64_t i,
		    const struct upper_list *l)
{
	const struct tree *t = server_tree(p->front->c.server);
	uint64_t first = 2;

	if (!upper_has(ino)) {
		first += t->nodes[ino - 1].n_children;
		if (!add_children(p, ino, &i))
			return;
	}
	if (l)
		add_listed(p, l, i, first);
}

static void add_ctl(struct page *p, uint64_t i)
{
	for (; i - 2 < CTL_N_FILES; i++)
		if (!add_folder(p, ctl_name((enum ctl_file)(i - 2)),
				CTL_DIR_INO + i - 1, (off_t)i + 1))
			return;
}

static fuse_ino_t above(const struct front *f, fuse_ino_t ino)
{
	if (upper_has(ino)) /* the kernel knows better */
		return ino;
	if (front_is_ctl(ino))
		return FUSE_ROOT_ID;
	return server_tree(f->c.server)->nodes[ino - 1].parent + 1ull;
}

void front_readdir(const struct front *f, fuse_req_t req, fuse_ino_t ino,
		   size_t size, off_t offset, bool plus,
		   const struct upper_list *list)
{
	struct page p = { .front = f,
			  .req = req,
			  .size = size,
			  .plus = plus,
			  .buf = malloc(size) };
	uint64_t i = (uint64_t)offset;

	if (!p.buf) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	/* entries 0 and 1 are the dots, then the children */
	if (i == 0 && add_folder(&p, ".", ino, 1))
		i = 1;
	if (i == 1 && add_folder(&p, "..", above(f, ino), 2))
		i = 2;
	if (i >= 2 && front_is_ctl(ino))
		add_ctl(&p, i);
	else if (i >= 2)
		add_all(&p, ino, i, list);
	fuse_reply_buf(req, p.buf, p.used);
	free(p.buf);
}
