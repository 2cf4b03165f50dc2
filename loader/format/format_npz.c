/* SPDX-License-Identifier: MIT */
/*
 * NumPy's archives of arrays. Each is one sample, as in MLPerf Storage's unet3d
 * and cosmoflow: the bytes of the array `x` or, without one, of the first
 * array. An archive is a zip file. Only uncompressed members (numpy.savez) can
 * be read in place.
 *
 * It is read from its end: the end record (zip64's before it if numbers do not
 * fit), the central directory, then the local header of the chosen member.
 * Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3
 */
#include "loader/dataset/format.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "loader/format/npy.h"

enum {
	END = 22,
	END64_LOCATOR = 20,
	END64 = 56,
	CENTRAL = 46,
	LOCAL = 30,
	COMMENT_MOST = 65535,
	ENCRYPTED = 1, /* flag */
	ZIP64 = 1,     /* extra field */
};

#define END_MAGIC 0x06054b50u
#define LOCATOR_MAGIC 0x07064b50u
#define END64_MAGIC 0x06064b50u
#define CENTRAL_MAGIC 0x02014b50u
#define LOCAL_MAGIC 0x04034b50u

struct zip {
	struct peek *p;
	struct err *err;
	uint64_t central, end; /* the central directory */
};

struct member {
	unsigned method, flags;
	uint64_t packed, size, local;
};

static int bad(struct zip *z, const char *what)
{
	return err_set(z->err, -EINVAL, "%s", what);
}

static int failed(struct zip *z, int r)
{
	if (r == -ENODATA)
		return bad(z, "truncated, or not a .npz file");
	return err_set(z->err, r, "%s", strerror(-r));
}

static uint64_t get(const uint8_t *v, unsigned bytes)
{
	uint64_t x = 0;

	memcpy(&x, v, bytes);
	return le64toh(x);
}

/* `n` bytes that begin with `magic`. */
static int look(struct zip *z, uint64_t at, size_t n, uint32_t magic,
		const uint8_t **ret)
{
	int r = peek_get(z->p, at, n, ret);

	if (r < 0)
		return failed(z, r);
	return get(*ret, 4) == magic ? 0 : bad(z, "a damaged zip file");
}

/* --- the end ------------------------------------------------------------ */

static bool is_end(const uint8_t *v, uint64_t behind)
{
	return get(v, 4) == END_MAGIC && get(v + 20, 2) == behind;
}

/* Find the end record. A comment follows it, of the length that it states;
 * usually there is none. */
static int find_end(struct zip *z, uint64_t *ret)
{
	size_t n = MIN(z->p->size, END + COMMENT_MOST);
	_cleanup_free_ uint8_t *tail = malloc(n + 1);
	int r;

	if (!tail)
		return failed(z, -ENOMEM);
	r = n < END ? -ENODATA : peek_copy(z->p, z->p->size - END, END, tail);
	*ret = z->p->size - END;
	if (r < 0 || is_end(tail, 0))
		return r < 0 ? failed(z, r) : 0;
	r = peek_copy(z->p, z->p->size - n, n, tail);
	for (size_t i = n - END; r == 0; i--) {
		*ret = z->p->size - n + i;
		if (is_end(tail + i, n - END - i))
			return 0;
		if (i == 0)
			r = -ENODATA;
	}
	return failed(z, r);
}

/* Fields that do not fit the end record are in another record before it. */
static int read_end64(struct zip *z, uint64_t end, uint64_t *n, uint64_t *size)
{
	const uint8_t *v;
	uint64_t at;
	int r = end < END64_LOCATOR ? bad(z, "a damaged zip file")
				    : look(z, end - END64_LOCATOR,
					   END64_LOCATOR, LOCATOR_MAGIC, &v);

	if (r < 0)
		return r;
	at = get(v + 8, 8);
	r = look(z, at, END64, END64_MAGIC, &v);
	if (r < 0)
		return r;
	*n = get(v + 32, 8);
	*size = get(v + 40, 8);
	z->central = get(v + 48, 8);
	z->end = at;
	return 0;
}

static int read_end(struct zip *z, uint64_t *n)
{
	uint64_t end = 0, size;
	const uint8_t *v;
	int r = find_end(z, &end);

	if (r == 0)
		r = look(z, end, END, END_MAGIC, &v);
	if (r < 0)
		return r;
	if (get(v + 4, 2) != get(v + 6, 2))
		return bad(z, "an archive of several disks: not supported");
	*n = get(v + 10, 2);
	size = get(v + 12, 4);
	z->central = get(v + 16, 4);
	z->end = end;
	if (*n == 0xffff || size == 0xffffffff || z->central == 0xffffffff)
		r = read_end64(z, end, n, &size);
	if (r < 0)
		return r;
	if (z->central > z->end || size > z->end - z->central)
		return bad(z, "a damaged zip file: its directory is outside");
	z->end = z->central + size;
	return 0;
}

/* --- the central directory ---------------------------------------------- */

/* Sizes and offsets of 32 bits that are all ones are in an extra field, in this
 * order. */
static int read_zip64(struct zip *z, const uint8_t *v, size_t n,
		      struct member *m)
{
	uint64_t *wide[] = { &m->size, &m->packed, &m->local };

	while (n >= 4) {
		size_t id = get(v, 2), length = get(v + 2, 2);

		v += 4;
		n -= 4;
		if (length > n)
			return bad(z, "a damaged zip file");
		for (size_t i = 0; id == ZIP64 && i < 3; i++) {
			if (*wide[i] != 0xffffffff)
				continue;
			if (length < 8)
				return bad(z, "a damaged zip file");
			*wide[i] = get(v, 8);
			v += 8;
			n -= 8;
			length -= 8;
		}
		if (id == ZIP64)
			return 0;
		v += length;
		n -= length;
	}
	return 0;
}

/* Parse the member at *at and advance *at; `name` has room for 65536. */
static int read_member(struct zip *z, uint64_t *at, struct member *m,
		       char *name)
{
	const uint8_t *v;
	size_t name_n, extra_n, all;
	int r = z->end - *at < CENTRAL
			? bad(z, "a damaged zip file: its directory is cut off")
			: look(z, *at, CENTRAL, CENTRAL_MAGIC, &v);

	if (r < 0)
		return r;
	*m = (struct member){ .flags = (unsigned)get(v + 8, 2),
			      .method = (unsigned)get(v + 10, 2),
			      .packed = get(v + 20, 4),
			      .size = get(v + 24, 4),
			      .local = get(v + 42, 4) };
	name_n = get(v + 28, 2);
	extra_n = get(v + 30, 2);
	all = CENTRAL + name_n + extra_n + get(v + 32, 2);
	if (all > z->end - *at)
		return bad(z, "a damaged zip file: its directory is cut off");
	r = peek_copy(z->p, *at + CENTRAL, name_n, name);
	name[r < 0 ? 0 : name_n] = 0;
	if (r == 0)
		r = peek_get(z->p, *at + CENTRAL + name_n, extra_n, &v);
	*at += all;
	return r < 0 ? failed(z, r) : read_zip64(z, v, extra_n, m);
}

/* The array to use as the sample. */
static int choose(struct zip *z, struct member *ret)
{
	_cleanup_free_ char *name = malloc(1 << 16);
	uint64_t at, n = 0;
	bool found = false;
	int r = name ? read_end(z, &n) : failed(z, -ENOMEM);

	at = z->central;
	for (uint64_t i = 0; r == 0 && i < n; i++) {
		struct member m;
		size_t length;

		r = read_member(z, &at, &m, name);
		length = r < 0 ? 0 : strlen(name);
		if (length < 4 || strcmp(name + length - 4, ".npy"))
			continue;
		if (found && strcmp(name, "x.npy"))
			continue;
		found = true;
		*ret = m;
		if (!strcmp(name, "x.npy"))
			break;
	}
	return r == 0 && !found ? bad(z, "no array in it") : r;
}

/* --- the array ---------------------------------------------------------- */

static int scan_array(struct zip *z, const struct member *m,
		      struct dataset_part *ret)
{
	const uint8_t *v;
	struct npy a;
	uint64_t at;
	int r;

	if (m->method || m->flags & ENCRYPTED)
		return bad(z, "its array is compressed: not supported; save it "
			      "with numpy.savez, not savez_compressed");
	if (m->packed != m->size)
		return bad(z, "a damaged zip file: two sizes of one array");
	r = look(z, m->local, LOCAL, LOCAL_MAGIC, &v);
	if (r < 0)
		return r;
	at = m->local + LOCAL + get(v + 26, 2) + get(v + 28, 2);
	if (at > z->central || m->size > z->central - at)
		return bad(z, "truncated: its array is incomplete");
	r = npy_parse(z->p, at, m->size, &a, z->err);
	if (r == 0)
		r = part_add(ret, NULL, 0, a.offset, a.bytes, PART_BY_FOLDER);
	return r < 0 ? failed(z, r) : 0;
}

static int scan(struct peek *p, const void *options, struct dataset_part *ret,
		struct err *err)
{
	struct zip z = { .p = p, .err = err };
	struct member m = { 0 };
	int r = choose(&z, &m);

	(void)options;
	return r < 0 ? r : scan_array(&z, &m, ret);
}

static bool named(const char *name)
{
	return util_ends_in(name, ".npz");
}

/* An archive of arrays begins with a member: "PK", then the array's name. */
static bool looks(const uint8_t *head, size_t n)
{
	size_t name = n < LOCAL ? 0 : get(head + 26, 2);

	return n >= LOCAL && get(head, 4) == LOCAL_MAGIC && name >= 4 &&
	       n >= LOCAL + name && !memcmp(head + LOCAL + name - 4, ".npy", 4);
}

const struct format_ops format_npz = {
	.plugin = { .name = "npz",
		    .summary = "NumPy archives: the array x, or the first, of "
			       "each file is a sample" },
	.named = named,
	.looks = looks,
	.scan = scan,
};
