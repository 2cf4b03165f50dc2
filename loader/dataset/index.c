/* SPDX-License-Identifier: MIT */
#include "loader/dataset/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/replace.h"
#include "common/util.h"
#include "loader/dataset/peek.h"

#define MAGIC "GPEMUIX\n"

struct header {
	char magic[8];
	uint64_t sum;
	uint32_t version;
	uint16_t n_notes, token_from;
	uint64_t recipe;
	uint64_t n, n_origins, names_bytes;
	uint32_t n_classes, n_groups, n_containers, token_bytes;
};

enum { SUMMED = 16 }; /* the sum covers the bytes after it */

/* Offsets of the arrays, in bytes from the start. */
struct layout {
	uint64_t path, size, offset, label, container, group, origin, notes;
	uint64_t names;
	uint64_t end;
};

static int bad(struct err *err, const char *what)
{
	return err_set(err, -EINVAL, "a damaged index: %s", what);
}

static uint64_t place(uint64_t *at, uint64_t n, uint64_t item)
{
	uint64_t ret = *at;

	*at += (n * item + 7) / 8 * 8;
	return ret;
}

/* The counts are at most 2^32 and 2^56: no overflow. */
static struct layout layout_of(const struct header *h)
{
	uint64_t at = sizeof(*h), held = h->n_containers ? h->n : 0;
	struct layout l;

	l.path = place(&at, h->n, sizeof(uint64_t));
	l.size = place(&at, h->n, sizeof(uint64_t));
	l.offset = place(&at, held, sizeof(uint64_t));
	l.label = place(&at, h->n, sizeof(uint32_t));
	l.container = place(&at, held, sizeof(uint32_t));
	l.group = place(&at, held, sizeof(uint32_t));
	l.origin = place(&at, h->n_origins, sizeof(struct origin));
	l.notes = place(&at, h->n_notes, sizeof(struct note));
	l.names = place(&at, h->names_bytes, 1);
	l.end = at;
	return l;
}

/* --- bytes -> dataset --------------------------------------------------- */

static int check_header(const struct header *h, size_t n, uint64_t recipe,
			struct err *err)
{
	if (n < sizeof(*h) || memcmp(h->magic, MAGIC, sizeof(h->magic)))
		return bad(err, "not an index");
	if (h->version != INDEX_VERSION)
		return err_set(err, -EINVAL, "an index of another version");
	if (h->recipe != recipe)
		return err_set(err, -EINVAL,
			       "an index of another format, or made with other "
			       "options");
	if (!h->n || h->n > UINT32_MAX || h->n_origins > UINT32_MAX ||
	    h->names_bytes > n || !h->names_bytes || !h->n_classes ||
	    (h->n_containers && h->n_containers != h->n_origins) ||
	    !h->n_containers != !h->n_groups || h->token_bytes > 8 ||
	    h->n_notes > NOTES_MOST || h->token_from >= TOKENS_N_FROM)
		return bad(err, "the counts");
	return layout_of(h).end == n ? 0 : bad(err, "the length");
}

static int check_origins(const struct dataset *d, struct err *err)
{
	for (size_t i = 0; i < d->n_origins; i++) {
		const struct origin *o = &d->origin[i];

		if (o->path >= d->names_bytes)
			return bad(err, "a path");
		if (d->n_containers && o->size > INT64_MAX)
			return bad(err, "a size");
	}
	return 0;
}

static int check_contained(const struct dataset *d, size_t i, struct err *err)
{
	uint64_t size;

	if (d->container[i] >= d->n_containers || d->group[i] >= d->n_groups ||
	    (i && d->container[i] < d->container[i - 1]))
		return bad(err, "a container");
	size = d->origin[d->container[i]].size;
	if (d->offset[i] > size || d->size[i] > size - d->offset[i])
		return bad(err, "a sample outside its container");
	return 0;
}

static int check_notes(const struct dataset *d, struct err *err)
{
	for (size_t i = 0; i < d->notes.n; i++)
		if (!note_is_valid(&d->notes.note[i]))
			return bad(err, "a note");
	return 0;
}

static int check_samples(struct dataset *d, struct err *err)
{
	int r = 0;

	/* the last byte is a NUL, so every name is terminated */
	if (d->names[d->names_bytes - 1])
		return bad(err, "a path");
	for (size_t i = 0; r == 0 && i < d->n; i++) {
		if (d->path[i] >= d->names_bytes)
			return bad(err, "a path");
		if (d->label[i] >= d->n_classes)
			return bad(err, "a label");
		if (d->size[i] > INT64_MAX ||
		    __builtin_add_overflow(d->bytes, d->size[i], &d->bytes))
			return bad(err, "a size");
		d->largest = MAX(d->largest, d->size[i]);
		if (d->n_containers)
			r = check_contained(d, i, err);
	}
	return r;
}

int index_parse(void *bytes, size_t n, uint64_t recipe, struct dataset *ret,
		struct err *err)
{
	const struct header *h = bytes;
	char *base = bytes;
	struct layout l;
	int r = check_header(h, n, recipe, err);

	*ret = (struct dataset){ .dirfd = -1 };
	if (r < 0)
		return r;
	l = layout_of(h);
	*ret = (struct dataset){
		.dirfd = -1,
		.n = h->n,
		.n_classes = h->n_classes,
		.n_groups = h->n_groups,
		.n_containers = h->n_containers,
		.token_bytes = h->token_bytes,
		.token_from = h->token_from,
		.n_origins = h->n_origins,
		.names_bytes = h->names_bytes,
		.names = base + l.names,
		.path = (uint64_t *)(base + l.path),
		.size = (uint64_t *)(base + l.size),
		.label = (uint32_t *)(base + l.label),
		.origin = (struct origin *)(base + l.origin),
		.notes = { (struct note *)(base + l.notes), h->n_notes, 0 },
	};
	if (h->n_containers) {
		ret->offset = (uint64_t *)(base + l.offset);
		ret->container = (uint32_t *)(base + l.container);
		ret->group = (uint32_t *)(base + l.group);
	}
	r = check_samples(ret, err);
	if (r == 0)
		r = check_origins(ret, err);
	return r < 0 ? r : check_notes(ret, err);
}

/* --- dataset -> bytes --------------------------------------------------- */

static void put_items(char *to, const void *from, uint64_t n, size_t item)
{
	if (n)
		memcpy(to, from, n * item);
}

int index_format(const struct dataset *d, uint64_t recipe, void **ret,
		 size_t *ret_n)
{
	struct header h = { .version = INDEX_VERSION,
			    .n_notes = (uint16_t)MIN(d->notes.n, NOTES_MOST),
			    .recipe = recipe,
			    .n = d->n,
			    .n_origins = d->n_origins,
			    .names_bytes = d->names_bytes,
			    .n_classes = d->n_classes,
			    .n_groups = d->n_groups,
			    .n_containers = d->n_containers,
			    .token_bytes = d->token_bytes,
			    .token_from = (uint16_t)d->token_from };
	struct layout l = layout_of(&h);
	uint64_t held = d->n_containers ? d->n : 0;
	char *v = calloc(1, l.end);

	if (!v)
		return -ENOMEM;
	memcpy(h.magic, MAGIC, sizeof(h.magic));
	put_items(v, &h, 1, sizeof(h));
	put_items(v + l.path, d->path, d->n, sizeof(*d->path));
	put_items(v + l.size, d->size, d->n, sizeof(*d->size));
	put_items(v + l.offset, d->offset, held, sizeof(*d->offset));
	put_items(v + l.label, d->label, d->n, sizeof(*d->label));
	put_items(v + l.container, d->container, held, sizeof(*d->container));
	put_items(v + l.group, d->group, held, sizeof(*d->group));
	put_items(v + l.origin, d->origin, d->n_origins, sizeof(*d->origin));
	put_items(v + l.notes, d->notes.note, h.n_notes,
		  sizeof(*d->notes.note));
	put_items(v + l.names, d->names, d->names_bytes, 1);
	h.sum = XXH3_64bits(v + SUMMED, l.end - SUMMED);
	memcpy(v, &h, sizeof(h));
	*ret = v;
	*ret_n = l.end;
	return 0;
}

/* --- files ---------------------------------------------------------------- */

enum { SUM = 8 }; /* where it is. Source: index.h */

static int load(int fd, void **ret, size_t *ret_n)
{
	_cleanup_free_ char *v = NULL;
	struct peek p = { .fd = fd };
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < SUMMED)
		return -EINVAL;
	p.size = (uint64_t)st.st_size;
	v = malloc(p.size);
	r = v ? peek_copy(&p, 0, p.size, v) : -ENOMEM;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(v);
	*ret_n = p.size;
	return 0;
}

int index_read(const char *path, uint64_t recipe, struct dataset *ret,
	       struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ void *v = NULL;
	uint64_t sum;
	size_t n = 0;
	struct notes notes;
	int r = fd < 0 ? -errno : load(fd, &v, &n);

	*ret = (struct dataset){ .dirfd = -1 };
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	memcpy(&sum, (char *)v + SUM, sizeof(sum));
	if (XXH3_64bits((char *)v + SUMMED, n - SUMMED) != sum)
		r = err_set(err, -EINVAL, "a damaged index: its checksum");
	else
		r = index_parse(v, n, recipe, ret, err);
	/* more may be added */
	notes = ret->notes;
	ret->notes = (struct notes){ 0 };
	if (r == 0 && notes_merge(&ret->notes, &notes) < 0)
		r = err_set(err, -ENOMEM, "out of memory");
	if (r < 0) {
		notes_fini(&ret->notes);
		*ret = (struct dataset){ .dirfd = -1 };
		err_prefix(err, "%s", path);
		return r;
	}
	ret->block = TAKE_PTR(v);
	return 0;
}

/* No fsync: the checksum detects a torn file after a crash. */
static int replace(const char *path, const void *v, size_t n)
{
	struct replace file;
	_cleanup_close_ int fd = replace_begin(&file, AT_FDCWD, path, 0666);

	if (fd < 0)
		return fd;
	/* as readable as the dataset; it holds nothing else */
	return replace_end(&file, fchmod(fd, 0644) < 0
					  ? -errno
					  : util_write_all(fd, v, n));
}

int index_write(const char *path, uint64_t recipe, const struct dataset *d,
		struct err *err)
{
	_cleanup_free_ void *v = NULL;
	size_t n = 0;
	int r = index_format(d, recipe, &v, &n);

	if (r == 0)
		r = replace(path, v, n);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}
