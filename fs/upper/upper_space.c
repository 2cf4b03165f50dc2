/* SPDX-License-Identifier: MIT */
#include "fs/upper/upper_space.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/server/hash.h"

/* --- names; all under the lock -------------------------------------------- */

/* Others may give a file of the folder a name outside of it, and take that
 * away: so its links, but for none, say nothing of the names that count. */
struct upper_linked {
	struct {
		uint64_t dev, ino;
	} id;
	unsigned names; /* in the folder */
	UT_hash_handle hh;
};

static struct upper_linked *linked_find(const struct upper_space *s,
					const struct stat *st)
{
	const struct upper_linked key = { .id = { st->st_dev, st->st_ino } };
	struct upper_linked *l;

	HASH_FIND(hh, s->linked, &key.id, sizeof(key.id), l);
	return l;
}

/* The one of a file, which is made with so many names. NULL: no memory. */
static struct upper_linked *linked_get(struct upper_space *s,
				       const struct stat *st, unsigned names)
{
	struct upper_linked *l = linked_find(s, st);

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->id.dev = st->st_dev;
	l->id.ino = st->st_ino;
	l->names = names;
	HASH_ADD(hh, s->linked, id, sizeof(l->id), l);
	if (l->hh.tbl)
		return l;
	free(l);
	return NULL;
}

static void linked_drop(struct upper_space *s, struct upper_linked *l)
{
	HASH_DELETE(hh, s->linked, l);
	free(l);
}

static void linked_clear(struct upper_space *s)
{
	struct upper_linked *l, *next;

	HASH_ITER (hh, s->linked, l, next)
		linked_drop(s, l);
}

static bool has_name(const struct upper_space *s, const struct stat *st)
{
	const struct upper_linked *l = linked_find(s, st);

	return st->st_nlink && (!l || l->names);
}

/* --- life ----------------------------------------------------------------- */

void upper_space_init(struct upper_space *s)
{
	pthread_mutex_init(&s->lock, NULL);
}

void upper_space_fini(struct upper_space *s)
{
	linked_clear(s);
	pthread_mutex_destroy(&s->lock);
}

/* --- blocks --------------------------------------------------------------- */

static uint64_t round_up(uint64_t bytes)
{
	return bytes / UPPER_BLOCK + (bytes % UPPER_BLOCK != 0);
}

uint64_t upper_space_blocks(const struct upper_space *s, uint64_t bytes)
{
	return round_up(units_unscaled(bytes, s->scale));
}

/* The largest size that has so many blocks. */
static uint64_t most_bytes(const struct upper_space *s, uint64_t blocks)
{
	uint64_t n = (uint64_t)((double)(blocks * UPPER_BLOCK) * s->scale);

	while (upper_space_blocks(s, n) > blocks)
		n--; /* it was rounded up, a step or two */
	return n;
}

/* Under the lock. */
static uint64_t left(const struct upper_space *s)
{
	return s->used < s->capacity ? s->capacity - s->used : 0;
}

/* Under the lock. A file that could not be looked at at the start was not
 * counted. */
static void less(struct upper_space *s, uint64_t blocks)
{
	s->used -= MIN(s->used, blocks);
}

/* Under the lock. */
static void set_blocks(struct upper_space *s, struct upper_taken *t,
		       uint64_t blocks)
{
	if (blocks >= t->blocks)
		s->used += blocks - t->blocks;
	else
		less(s, t->blocks - blocks);
	t->blocks = blocks;
}

/* --- the start ------------------------------------------------------------ */

static uint64_t of_dataset(const struct tree *t)
{
	uint64_t blocks = 0;

	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (S_ISREG(t->nodes[i].mode) && !t->nodes[i].again)
			blocks += round_up(t->nodes[i].bytes);
	return blocks;
}

static int add_entry(struct upper_space *s, const FTSENT *e)
{
	struct upper_linked *l = NULL;

	/* nor what cannot be looked at: it is served all the same */
	if (e->fts_info != FTS_F || !S_ISREG(e->fts_statp->st_mode))
		return 0;
	if (e->fts_statp->st_nlink > 1) {
		l = linked_get(s, e->fts_statp, 0);
		if (!l)
			return -ENOMEM;
	}
	if (!l || !l->names++)
		s->used +=
			upper_space_blocks(s, (uint64_t)e->fts_statp->st_size);
	return 0;
}

/* What is in the folder, which nobody changes. */
static int add_folder(struct upper_space *s, int dir)
{
	char path[48], *paths[] = { path, NULL };
	FTSENT *e;
	FTS *fts;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/.", dir);
	fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (!fts)
		return -errno;
	while (r == 0 && (errno = 0, e = fts_read(fts)))
		r = add_entry(s, e);
	if (r == 0)
		r = -errno;
	fts_close(fts);
	return r;
}

int upper_space_limit(struct upper_space *s, uint64_t bytes, double scale,
		      const struct tree *tree, int dir, struct err *err)
{
	uint64_t dataset = of_dataset(tree);
	char a[UNITS_TEXT], b[UNITS_TEXT], c[UNITS_TEXT];
	int r;

	if (bytes < UPPER_BLOCK)
		return err_set(err, -EINVAL,
			       "a capacity of %s has no block of %s",
			       units_human_size((double)bytes, a),
			       units_human_size(UPPER_BLOCK, b));
	s->capacity = bytes / UPPER_BLOCK;
	s->scale = scale;
	s->used = dataset;
	linked_clear(s);
	r = add_folder(s, dir);
	if (r < 0)
		return err_set(err, r, "the sizes of its files: %s",
			       strerror(-r));
	if (s->used <= s->capacity)
		return 0;
	return err_set(
		err, -ENOSPC,
		"the device has a capacity of %s, but the dataset %s "
		"and its files %s",
		units_human_size((double)bytes, a),
		units_human_size((double)dataset * UPPER_BLOCK, b),
		units_human_size((double)(s->used - dataset) * UPPER_BLOCK, c));
}

/* --- changes -------------------------------------------------------------- */

int upper_space_check(struct upper_space *s)
{
	LOCK_SCOPE(&s->lock);

	return left(s) ? 0 : -ENOSPC;
}

int upper_space_take(struct upper_space *s, uint64_t add)
{
	LOCK_SCOPE(&s->lock);

	if (add > left(s))
		return -ENOSPC;
	s->used += add;
	return 0;
}

void upper_space_move(struct upper_space *s, uint64_t add, uint64_t less)
{
	LOCK_SCOPE(&s->lock);

	/* others may have changed what it knows of */
	s->used = s->used + add > less ? s->used + add - less : 0;
}

void upper_space_open(struct upper_space *s, struct upper_taken *t, int fd)
{
	struct stat st;

	LOCK_SCOPE(&s->lock);
	if (t->opens++ || fstat(fd, &st) < 0)
		return;
	t->blocks = upper_space_blocks(s, (uint64_t)st.st_size);
	/* removed, closed, and opened again by /proc */
	if (!has_name(s, &st))
		s->used += t->blocks;
}

void upper_space_close(struct upper_space *s, struct upper_taken *t, int fd)
{
	struct stat st;

	LOCK_SCOPE(&s->lock);
	if (--t->opens == 0 && fstat(fd, &st) == 0 && !has_name(s, &st))
		set_blocks(s, t, 0);
}

void upper_space_fresh(struct upper_space *s, int fd)
{
	struct upper_linked *l;
	struct stat st;

	LOCK_SCOPE(&s->lock);
	if (!s->linked || fstat(fd, &st) < 0)
		return;
	l = linked_find(s, &st);
	if (l)
		linked_drop(s, l);
}

int upper_space_named(struct upper_space *s, int fd, bool open)
{
	struct upper_linked *l;
	uint64_t blocks = 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	/* removed, and linked again by /proc */
	if (!open && !has_name(s, &st))
		blocks = upper_space_blocks(s, (uint64_t)st.st_size);
	if (blocks > left(s))
		return -ENOSPC;
	l = linked_get(s, &st, 1);
	if (!l)
		return -ENOMEM;
	l->names++;
	s->used += blocks;
	return 0;
}

void upper_space_gone(struct upper_space *s, int fd, bool open)
{
	struct upper_linked *l;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	/* with a link outside it has to be known that no name is left: without
	 * memory for that it counts until the next mount */
	l = st.st_nlink ? linked_get(s, &st, 1) : linked_find(s, &st);
	if (l && l->names)
		l->names--;
	if (!open && !has_name(s, &st))
		less(s, upper_space_blocks(s, (uint64_t)st.st_size));
	if (l && (l->names == 1 || !st.st_nlink))
		linked_drop(s, l);
}

ssize_t upper_space_grow(struct upper_space *s, struct upper_taken *t,
			 uint64_t offset, size_t n, bool whole)
{
	uint64_t need = upper_space_blocks(s, offset + n), most;

	LOCK_SCOPE(&s->lock);
	if (need > t->blocks && need - t->blocks > left(s)) {
		most = most_bytes(s, t->blocks + left(s));
		if (whole || most <= offset)
			return -ENOSPC;
		n = MIN(n, most - offset);
		need = upper_space_blocks(s, offset + n);
	}
	if (need > t->blocks)
		set_blocks(s, t, need);
	t->changes++;
	return (ssize_t)n;
}

void upper_space_settle(struct upper_space *s, struct upper_taken *t, int fd)
{
	struct stat st;

	LOCK_SCOPE(&s->lock);
	if (--t->changes == 0 && fstat(fd, &st) == 0)
		set_blocks(s, t, upper_space_blocks(s, (uint64_t)st.st_size));
}

int upper_space_truncate(struct upper_space *s, struct upper_taken *t, int fd,
			 uint64_t bytes)
{
	ssize_t room = upper_space_grow(s, t, 0, bytes, true);
	int r;

	if (room < 0)
		return (int)room;
	r = ftruncate(fd, (off_t)bytes) < 0 ? -errno : 0;
	upper_space_settle(s, t, fd);
	return r;
}

void upper_space_statvfs(struct upper_space *s, struct statvfs *st)
{
	/* of the folder's file system, which may have less */
	uint64_t real = round_up(units_unscaled(
		(uint64_t)st->f_bavail * st->f_frsize, s->scale));

	LOCK_SCOPE(&s->lock);
	st->f_bsize = st->f_frsize = UPPER_BLOCK;
	st->f_blocks = s->capacity;
	st->f_bfree = left(s);
	st->f_bavail = MIN(left(s), real);
}
