/* SPDX-License-Identifier: MIT */
#include "common/pack/grouping.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/util.h"

/* State while files are divided into groups. */
struct build {
	const struct grouping_files *files;
	uint32_t *order; /* the files, as the order has them */
	uint32_t n;
	bool *taken; /* by file: is in `order` */
	/* by place in `order`: a group begins here; NULL: every `size` */
	bool *begins;
	struct err *err;
};

static void take_one(struct build *b, uint32_t file, bool begins)
{
	if (b->begins)
		b->begins[b->n] = begins;
	b->taken[file] = true;
	b->order[b->n++] = file;
}

static void take_sequential(struct build *b)
{
	for (uint32_t i = 0; i < b->files->n; i++)
		take_one(b, i, true);
}

static void take_random(struct build *b, uint64_t seed)
{
	struct rng rng = rng_stream(seed, "group", 0);

	take_sequential(b);
	rng_shuffle_u32(&rng, b->order, b->n);
}

static int by_class(const void *a, const void *b, void *ctx)
{
	const uint32_t *class = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (class[x] != class[y])
		return class[x] < class[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

/*
 * Round-robin over the classes with remaining files. The authors of GPEmu's
 * grouping study begin every group with the first class; here the round
 * continues where the last group ended: with 1000 classes and groups of 64
 * theirs would use up the first 64 classes first.
 */
static int take_diffclass(struct build *b)
{
	uint32_t n = b->files->n, left = 0, kept;
	_cleanup_free_ uint32_t *sorted = calloc(n + 1, sizeof(*sorted));
	/* of each class that has files left: its next one and its end */
	_cleanup_free_ uint32_t *next = calloc(n + 1, sizeof(*next));
	_cleanup_free_ uint32_t *end = calloc(n + 1, sizeof(*end));

	if (!sorted || !next || !end)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = i;
	qsort_r(sorted, n, sizeof(*sorted), by_class, (void *)b->files->class);
	for (uint32_t i = 0; i < n; i++) {
		if (!i || b->files->class[sorted[i]] !=
				  b->files->class[sorted[i - 1]])
			next[left++] = i;
		end[left - 1] = i + 1;
	}
	for (; left; left = kept) {
		kept = 0;
		for (uint32_t c = 0; c < left; c++) {
			take_one(b, sorted[next[c]], false);
			if (next[c] + 1 == end[c])
				continue;
			next[kept] = next[c] + 1;
			end[kept++] = end[c];
		}
	}
	return 0;
}

/* --- from a file -------------------------------------------------------- */

static int take_path(struct build *b, const char *path, bool begins,
		     const char *name, size_t line)
{
	uint32_t file = b->files->find(b->files->ctx, path);

	if (file == UINT32_MAX && b->files->skip_unknown)
		return 0;
	if (file == UINT32_MAX)
		return err_set(b->err, -EINVAL, "%s:%zu: no such file: '%s'",
			       name, line, path);
	if (b->taken[file])
		return err_set(b->err, -EINVAL, "%s:%zu: '%s' is listed twice",
			       name, line, path);
	take_one(b, file, begins);
	return 0;
}

static int take_group(struct build *b, const char *text, const char *name,
		      size_t line)
{
	json_error_t why;
	json_auto_t *group = json_loads(text, 0, &why);
	uint32_t begin = b->n;
	const json_t *path;
	size_t i;
	int r = 0;

	if (!group)
		return err_set(b->err, -EINVAL, "%s:%zu:%d: %s", name, line,
			       why.column, why.text);
	if (!json_is_array(group))
		return err_set(b->err, -EINVAL, "%s:%zu: not an array of paths",
			       name, line);
	json_array_foreach (group, i, path) {
		if (!json_is_string(path))
			return err_set(b->err, -EINVAL,
				       "%s:%zu: not an array of paths", name,
				       line);
		r = take_path(b, json_string_value(path), b->n == begin, name,
			      line);
		if (r < 0)
			break;
	}
	return r;
}

static int take_lines(struct build *b, FILE *f, const char *name)
{
	_cleanup_free_ char *text = NULL;
	size_t allocated = 0;
	bool json = false;
	int r = 0;
	ssize_t n;

	for (size_t line = 1; r == 0; line++) {
		n = getline(&text, &allocated, f);
		if (n < 0)
			break;
		if (text[n - 1] == '\n')
			text[--n] = 0;
		if (line == 1)
			json = text[0] == '[';
		if (!n)
			continue;
		if (strlen(text) != (size_t)n)
			r = err_set(b->err, -EINVAL,
				    "%s:%zu: contains a NUL byte", name, line);
		else if (json)
			r = take_group(b, text, name, line);
		else
			r = take_path(b, text, false, name, line);
	}
	if (r == 0 && ferror(f))
		r = err_set(b->err, -EIO, "%s: cannot be read", name);
	if (r == 0 && !json) {
		free(b->begins);
		b->begins = NULL;
	}
	return r;
}

static int take_file(struct build *b, const char *name)
{
	_cleanup_fclose_ FILE *f = fopen(name, "re");
	int r = -errno;

	if (!f)
		return err_set(b->err, r,
			       "%s: %s; group orders are sequential, random, "
			       "diffclass, or a file",
			       name, strerror(-r));
	b->begins = calloc((size_t)b->files->n + 1, sizeof(*b->begins));
	r = b->begins ? take_lines(b, f, name) : -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < b->files->n; i++)
		if (!b->taken[i])
			take_one(b, i, true);
	return r;
}

/* --- cutting ------------------------------------------------------------ */

static void cut(const struct build *b, uint32_t size, struct grouping *g)
{
	uint32_t in_group = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		bool begins = b->begins ? b->begins[i] : in_group == size;

		/* if the first file of a group is alone, the next one begins it
		 */
		if (begins)
			in_group = 0;
		if (b->files->bytes[b->order[i]] > GROUPING_ALONE)
			continue;
		if (!in_group++)
			g->first[g->n_groups++] = g->n_files;
		g->file[g->n_files++] = b->order[i];
	}
	for (uint32_t i = 0; i < b->n; i++) {
		if (b->files->bytes[b->order[i]] <= GROUPING_ALONE)
			continue;
		g->first[g->n_groups++] = g->n_files;
		g->file[g->n_files++] = b->order[i];
	}
	g->first[g->n_groups] = g->n_files;
}

static int take_all(struct build *b, const char *order, uint64_t seed)
{
	if (!strcmp(order, "sequential"))
		take_sequential(b);
	else if (!strcmp(order, "random"))
		take_random(b, seed);
	else if (!strcmp(order, "diffclass"))
		return take_diffclass(b);
	else
		return take_file(b, order);
	return 0;
}

bool grouping_is_order(const char *order)
{
	return !strcmp(order, "sequential") || !strcmp(order, "random") ||
	       !strcmp(order, "diffclass");
}

int grouping_new(const struct grouping_files *files, uint32_t size,
		 const char *order, uint64_t seed, struct grouping *ret,
		 struct err *err)
{
	size_t n = (size_t)files->n + 1;
	struct build b = { .files = files,
			   .order = calloc(n, sizeof(*b.order)),
			   .taken = calloc(n, sizeof(*b.taken)),
			   .err = err };
	int r = -ENOMEM;

	*ret = (struct grouping){ .file = calloc(n, sizeof(*ret->file)),
				  .first = calloc(n, sizeof(*ret->first)) };
	if (b.order && b.taken && ret->file && ret->first)
		r = take_all(&b, order, seed);
	if (r == 0)
		cut(&b, size, ret);
	else
		grouping_free(ret);
	free(b.order);
	free(b.taken);
	free(b.begins);
	return r < 0 ? err_set(err, r, "groups: %s", strerror(-r)) : 0;
}

void grouping_free(struct grouping *g)
{
	free(g->file);
	free(g->first);
	*g = (struct grouping){ 0 };
}

int grouping_compare(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	/* the end of a component comes before any byte */
	int x = *a == '/' ? 1 : (unsigned char)*a + 1;
	int y = *b == '/' ? 1 : (unsigned char)*b + 1;

	return (*a ? x : 0) - (*b ? y : 0);
}

void grouping_print_path(FILE *f, const char *path, bool is_first)
{
	fputs(is_first ? "[\"" : ",\"", f);
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;

		if (c < 0x20)
			fprintf(f, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else
			putc_unlocked(c, f);
	}
	putc_unlocked('"', f);
}

void grouping_print_end(FILE *f)
{
	fputs("]\n", f);
}
