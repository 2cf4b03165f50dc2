/* SPDX-License-Identifier: MIT */
#include "common/pack/pack.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "common/util.h"

static uint64_t get(const unsigned char **at, unsigned bytes)
{
	uint64_t v = 0;

	memcpy(&v, *at, bytes);
	*at += bytes;
	return le64toh(v);
}

static void put_number(unsigned char **at, uint64_t v, unsigned bytes)
{
	v = htole64(v);
	memcpy(*at, &v, bytes);
	*at += bytes;
}

static int bad(struct err *err, const char *what)
{
	return err_set(err, -EINVAL, "the index is damaged: %s", what);
}

/* --- header ------------------------------------------------------------- */

int pack_parse_header(const unsigned char *bytes, uint64_t file_size,
		      struct pack_header *ret, struct err *err)
{
	const unsigned char *at = bytes + 8;
	uint64_t version, header, sum;

	if (memcmp(bytes, PACK_MAGIC, 8))
		return err_set(err, -EINVAL,
			       "not a pack, or its writing was interrupted");
	version = get(&at, 4);
	header = get(&at, 4);
	if (version != PACK_VERSION)
		return err_set(err, -EINVAL,
			       "a pack of version %" PRIu64
			       "; this program reads version %d",
			       version, PACK_VERSION);
	ret->index_offset = get(&at, 8);
	ret->index_bytes = get(&at, 8);
	ret->index_sum = get(&at, 8);
	at = bytes + PACK_HEADER_BYTES - 8;
	sum = get(&at, 8);
	if (header != PACK_HEADER_BYTES ||
	    sum != XXH3_64bits(bytes, PACK_HEADER_BYTES - 8))
		return err_set(err, -EINVAL, "the header is damaged");
	if (ret->index_offset < PACK_HEADER_BYTES ||
	    ret->index_offset > file_size ||
	    ret->index_bytes != file_size - ret->index_offset)
		return err_set(err, -EINVAL,
			       "%" PRIu64 " bytes long, not %" PRIu64
			       ": truncated or extended",
			       file_size, ret->index_offset + ret->index_bytes);
	return 0;
}

void pack_write_header(const struct pack_header *h,
		       unsigned char bytes[PACK_HEADER_BYTES])
{
	unsigned char *at = bytes + 8;

	memset(bytes, 0, PACK_HEADER_BYTES);
	memcpy(bytes, PACK_MAGIC, 8);
	put_number(&at, PACK_VERSION, 4);
	put_number(&at, PACK_HEADER_BYTES, 4);
	put_number(&at, h->index_offset, 8);
	put_number(&at, h->index_bytes, 8);
	put_number(&at, h->index_sum, 8);
	at = bytes + PACK_HEADER_BYTES - 8;
	put_number(&at, XXH3_64bits(bytes, PACK_HEADER_BYTES - 8), 8);
}

/* --- index: its parts, in their order ----------------------------------- */

struct parse {
	const unsigned char *at;
	struct pack *p;
	uint64_t names_bytes, data_end;
	uint64_t *group_offset;
	struct err *err;
};

/* Lower-case letters, then zeros. */
static bool order_is_good(const char *order)
{
	size_t n = strspn(order, "abcdefghijklmnopqrstuvwxyz");

	while (n < PACK_ORDER_BYTES && !order[n])
		n++;
	return n == PACK_ORDER_BYTES;
}

static int parse_counts(struct parse *s, size_t n)
{
	struct pack *p = s->p;
	uint64_t left = n - PACK_INDEX_BYTES;

	p->n_files = (uint32_t)get(&s->at, 4);
	p->n_groups = (uint32_t)get(&s->at, 4);
	p->n_classes = (uint32_t)get(&s->at, 4);
	get(&s->at, 4); /* reserved */
	p->group_size = get(&s->at, 8);
	p->seed = get(&s->at, 8);
	s->names_bytes = get(&s->at, 8);
	memcpy(p->order, s->at, PACK_ORDER_BYTES);
	s->at += PACK_ORDER_BYTES + 8;
	/* check each subtraction, so that no sum of input values can wrap */
	if (!order_is_good(p->order))
		return bad(s->err, "the name of the order");
	if (p->n_groups > p->n_files || p->n_files == UINT32_MAX ||
	    (p->n_files && !p->n_groups))
		return bad(s->err, "the counts");
	if (left / PACK_GROUP_BYTES < p->n_groups)
		return bad(s->err, "more groups than fit");
	left -= (uint64_t)p->n_groups * PACK_GROUP_BYTES;
	if (left / PACK_FILE_BYTES < p->n_files)
		return bad(s->err, "more files than fit");
	left -= (uint64_t)p->n_files * PACK_FILE_BYTES;
	return left == s->names_bytes ? 0 : bad(s->err, "the length");
}

static int allocate(struct parse *s)
{
	struct pack *p = s->p;

	p->files = calloc((size_t)p->n_files + 1, sizeof(*p->files));
	p->first = calloc((size_t)p->n_groups + 1, sizeof(*p->first));
	p->sorted = calloc((size_t)p->n_files + 1, sizeof(*p->sorted));
	p->names = malloc(s->names_bytes + 1);
	s->group_offset = calloc((size_t)p->n_groups + 1, 8);
	return p->files && p->first && p->sorted && p->names && s->group_offset
		       ? 0
		       : err_set(s->err, -ENOMEM, "out of memory");
}

static int parse_groups(struct parse *s)
{
	struct pack *p = s->p;

	for (uint32_t g = 0; g < p->n_groups; g++) {
		s->group_offset[g] = get(&s->at, 8);
		p->first[g] = (uint32_t)get(&s->at, 4);
		get(&s->at, 4); /* reserved */
		if (s->group_offset[g] % PACK_ALIGN)
			return bad(s->err, "a group is not aligned");
		if (g ? p->first[g] <= p->first[g - 1] : p->first[g])
			return bad(s->err, "a group without files");
	}
	p->first[p->n_groups] = p->n_files;
	if (p->n_groups && p->first[p->n_groups - 1] >= p->n_files)
		return bad(s->err, "a group without files");
	return 0;
}

/* Files of a group are contiguous, and groups follow each other. */
static int parse_files(struct parse *s)
{
	struct pack *p = s->p;
	uint64_t want = PACK_HEADER_BYTES;

	for (uint32_t i = 0, g = 0; i < p->n_files; i++) {
		struct pack_file *f = &p->files[i];

		f->offset = get(&s->at, 8);
		f->bytes = get(&s->at, 8);
		f->sum = get(&s->at, 8);
		f->mtime_ns = (int64_t)get(&s->at, 8);
		f->mode = (uint32_t)get(&s->at, 4);
		f->class = (uint32_t)get(&s->at, 4);
		s->at += 8; /* reserved */
		if (g < p->n_groups && p->first[g] == i) {
			if (s->group_offset[g] < want)
				return bad(s->err, "groups overlap");
			want = s->group_offset[g++];
		}
		if (f->offset != want || f->offset > s->data_end ||
		    f->bytes > s->data_end - f->offset)
			return bad(s->err, "a file outside its group");
		if (f->mode & ~0777u)
			return bad(s->err, "a file's mode");
		want += f->bytes;
		p->file_bytes += f->bytes;
	}
	return 0;
}

/* "a/b/c": components of 1 to 255 bytes, none of them "." or "..". */
static bool path_is_good(const char *path, size_t n)
{
	size_t start = 0;

	for (size_t i = 0; i <= n; i++) {
		size_t len = i - start;
		const char *c = path + start;

		if (i < n && path[i] != '/')
			continue;
		if (len == 0 || len > NAME_MAX || (len == 1 && c[0] == '.') ||
		    (len == 2 && c[0] == '.' && c[1] == '.'))
			return false;
		start = i + 1;
	}
	return n < PATH_MAX;
}

static int parse_names(struct parse *s)
{
	struct pack *p = s->p;
	uint64_t at = 0;

	memcpy(p->names, s->at, s->names_bytes);
	for (uint32_t i = 0; i < p->n_files; i++) {
		const char *path = p->names + at;
		size_t n = strnlen(path, s->names_bytes - at);

		if (n == s->names_bytes - at || !path_is_good(path, n))
			return bad(s->err, "a path");
		p->files[i].path = path;
		at += n + 1;
	}
	return at == s->names_bytes ? 0 : bad(s->err, "more paths than files");
}

static int by_path(const void *a, const void *b, void *files)
{
	const struct pack_file *f = files;

	return grouping_compare(f[*(const uint32_t *)a].path,
				f[*(const uint32_t *)b].path);
}

uint32_t pack_classify(struct pack_file *files, const uint32_t *sorted,
		       uint32_t n)
{
	const char *last = NULL;
	uint32_t classes = 0;
	size_t len = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct pack_file *f = &files[sorted[i]];
		const char *slash = strchr(f->path, '/');

		f->class = PACK_NO_CLASS;
		if (!slash)
			continue;
		if (!last || strncmp(last, f->path, len + 1)) {
			last = f->path;
			len = (size_t)(slash - f->path);
			classes++;
		}
		f->class = classes - 1;
	}
	return classes;
}

/* In sorted order a duplicate path, or one that is also a folder, is adjacent.
 */
static int check_paths(struct parse *s)
{
	struct pack *p = s->p;
	_cleanup_free_ uint32_t *class =
		calloc((size_t)p->n_files + 1, sizeof(*class));

	if (!class)
		return err_set(s->err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < p->n_files; i++) {
		p->sorted[i] = i;
		class[i] = p->files[i].class;
	}
	qsort_r(p->sorted, p->n_files, sizeof(*p->sorted), by_path, p->files);
	for (uint32_t i = 1; i < p->n_files; i++) {
		const char *a = p->files[p->sorted[i - 1]].path;
		const char *b = p->files[p->sorted[i]].path;
		size_t n = strlen(a);

		if (!strncmp(a, b, n) && (!b[n] || b[n] == '/'))
			return bad(s->err, "duplicate paths");
	}
	if (pack_classify(p->files, p->sorted, p->n_files) != p->n_classes)
		return bad(s->err, "the number of classes");
	for (uint32_t i = 0; i < p->n_files; i++)
		if (class[i] != p->files[i].class)
			return bad(s->err, "a file's class");
	return 0;
}

int pack_parse_index(const unsigned char *bytes, size_t n, uint64_t data_end,
		     struct pack *ret, struct err *err)
{
	struct parse s = {
		.at = bytes, .p = ret, .data_end = data_end, .err = err
	};
	int r;

	*ret = (struct pack){ 0 };
	if (n < PACK_INDEX_BYTES)
		return bad(err, "the length");
	r = parse_counts(&s, n);
	if (r == 0)
		r = allocate(&s);
	if (r == 0)
		r = parse_groups(&s);
	if (r == 0)
		r = parse_files(&s);
	if (r == 0)
		r = parse_names(&s);
	if (r == 0)
		r = check_paths(&s);
	free(s.group_offset);
	return r;
}

int pack_write_index(const struct pack *p, unsigned char **ret, size_t *ret_n)
{
	size_t names = 0, n;
	unsigned char *at;

	for (uint32_t i = 0; i < p->n_files; i++)
		names += strlen(p->files[i].path) + 1;
	n = PACK_INDEX_BYTES + (size_t)p->n_groups * PACK_GROUP_BYTES +
	    (size_t)p->n_files * PACK_FILE_BYTES + names;
	*ret = at = calloc(1, n);
	if (!at)
		return -ENOMEM;
	put_number(&at, p->n_files, 4);
	put_number(&at, p->n_groups, 4);
	put_number(&at, p->n_classes, 8);
	put_number(&at, p->group_size, 8);
	put_number(&at, p->seed, 8);
	put_number(&at, names, 8);
	memcpy(at, p->order, PACK_ORDER_BYTES);
	at += PACK_ORDER_BYTES + 8;
	for (uint32_t g = 0; g < p->n_groups; g++) {
		put_number(&at, p->files[p->first[g]].offset, 8);
		put_number(&at, p->first[g], 8);
	}
	for (uint32_t i = 0; i < p->n_files; i++) {
		const struct pack_file *f = &p->files[i];

		put_number(&at, f->offset, 8);
		put_number(&at, f->bytes, 8);
		put_number(&at, f->sum, 8);
		put_number(&at, (uint64_t)f->mtime_ns, 8);
		put_number(&at, f->mode, 4);
		put_number(&at, f->class, 4);
		at += 8;
	}
	for (uint32_t i = 0; i < p->n_files; i++)
		at = (unsigned char *)stpcpy((char *)at, p->files[i].path) + 1;
	*ret_n = n;
	return 0;
}

void pack_fini(struct pack *p)
{
	free(p->files);
	free(p->first);
	free(p->sorted);
	free(p->names);
	*p = (struct pack){ 0 };
}

/* --- a file ------------------------------------------------------------- */

static int read_at(int fd, unsigned char *v, size_t n, uint64_t offset)
{
	ssize_t got = util_read_all(fd, v, n, (int64_t)offset);

	return got < 0 ? (int)got : (size_t)got < n ? -EINVAL : 0;
}

int pack_load(int fd, uint64_t size, struct pack *ret, struct err *err)
{
	unsigned char header[PACK_HEADER_BYTES];
	_cleanup_free_ unsigned char *index = NULL;
	struct pack_header h;
	int r;

	*ret = (struct pack){ 0 };
	if (size < sizeof(header))
		return err_set(err, -EINVAL,
			       "not a pack, or its writing was interrupted");
	r = read_at(fd, header, sizeof(header), 0);
	if (r == 0)
		r = pack_parse_header(header, size, &h, err);
	if (r < 0)
		return r;
	index = malloc(h.index_bytes + 1);
	r = index ? read_at(fd, index, h.index_bytes, h.index_offset) : -ENOMEM;
	if (r < 0)
		return r;
	if (XXH3_64bits(index, h.index_bytes) != h.index_sum)
		return bad(err, "wrong checksum");
	return pack_parse_index(index, h.index_bytes, h.index_offset, ret, err);
}

int pack_open(const char *path, int *ret_fd, struct pack *ret, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(AT_FDCWD, path, 0, &st);
	int r;

	*ret = (struct pack){ 0 };
	if (fd < 0 && fd != -EISDIR && fd != -ESPIPE)
		return err_set(err, fd, "%s: %s", path, strerror(-fd));
	r = fd < 0 ? err_set(err, -EINVAL, "not a pack")
		   : pack_load(fd, (uint64_t)st.st_size, ret, err);
	if (r < 0) {
		pack_fini(ret);
		err_set(err, r, "%s", strerror(-r));
		err_prefix(err, "%s", path);
		return r;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}
