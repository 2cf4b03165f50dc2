/* SPDX-License-Identifier: MIT */
/*
 * The objects of a bucket (s3://BUCKET/PREFIX), as format `files` has the files
 * of a folder: the same samples, classes and labels in the same order, so that
 * a run reads what it would read from a copy of the bucket.
 */
#include "loader/dataset/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "loader/dataset/images.h"
#include "store/bucket.h"

struct object {
	uint64_t key; /* in `names` */
	uint64_t size, tag;
	uint32_t class_len, dir_len; /* of the key; 0: it has none */
};

struct listing {
	struct object *object;
	size_t n, capacity;
	char *names;
	size_t names_n, names_capacity;
	bool classes; /* some key has a folder */
};

static int found(void *ctx, const struct answer_object *o)
{
	const char *slash = strchr(o->key, '/'), *last = strrchr(o->key, '/');
	size_t n = strlen(o->key) + 1;
	struct listing *l = ctx;

	if (last && !last[1]) /* a folder, as clients of S3 make one */
		return 0;
	if (util_reserve(&l->object, &l->capacity, l->n + 1,
			 sizeof(*l->object)) < 0 ||
	    util_reserve(&l->names, &l->names_capacity, l->names_n + n, 1) < 0)
		return -ENOMEM;
	l->classes |= slash != NULL;
	l->object[l->n++] = (struct object){
		.key = l->names_n,
		.size = o->bytes,
		.tag = o->tag,
		.class_len = (uint32_t)(slash ? slash - o->key : 0),
		.dir_len = (uint32_t)(last ? last - o->key : 0),
	};
	memcpy(l->names + l->names_n, o->key, n);
	l->names_n += n;
	return 0;
}

static int compare_text(const char *a, size_t n_a, const char *b, size_t n_b)
{
	int c = memcmp(a, b, MIN(n_a, n_b));

	return c ? c : n_a < n_b ? -1 : n_a > n_b;
}

/* By class, by folder, then by name, bytewise, as format_files.c. */
static int by_place(const void *a, const void *b, void *names)
{
	const struct object *x = a, *y = b;
	const char *p = (char *)names + x->key, *q = (char *)names + y->key;
	int c = compare_text(p, x->class_len, q, y->class_len);

	if (!c)
		c = compare_text(p, x->dir_len, q, y->dir_len);
	return c ? c : strcmp(p + x->dir_len, q + y->dir_len);
}

/* Those beside classes are no samples. */
static int put_object(struct builder *b, const struct listing *l,
		      struct dataset_part *part, const struct object *o)
{
	const char *key = l->names + o->key;

	if (l->classes && !o->class_len)
		return notes_add(&b->d->notes, &note_files_aside, 1, key);
	b->d->tag[part->n] = o->tag;
	return part_add(part, key, strlen(key), 0, o->size, PART_BY_FOLDER);
}

static int fill_dataset(struct builder *b, struct listing *l, struct err *err)
{
	struct dataset_part part = { 0 };
	int r;

	b->d->tag = calloc(l->n + 1, sizeof(*b->d->tag));
	r = b->d->tag ? 0 : -ENOMEM;
	if (l->n)
		qsort_r(l->object, l->n, sizeof(*l->object), by_place,
			l->names);
	for (size_t i = 0; r == 0 && i < l->n; i++)
		r = put_object(b, l, &part, &l->object[i]);
	if (r == 0)
		r = builder_files(b, &part, err);
	part_fini(&part);
	return r < 0 ? err_set(err, r, "%s", strerror(-r)) : 0;
}

static int list(struct builder *b, unsigned threads, struct err *err)
{
	struct listing l = { 0 };
	int r;

	(void)threads;
	if (!b->d->bucket)
		return err_set(err, -EINVAL,
			       "format s3 is that of s3://BUCKET");
	r = bucket_list(b->d->bucket, 0, found, &l, err);
	if (r == 0)
		r = fill_dataset(b, &l, err);
	free(l.object);
	free(l.names);
	return r;
}

/* It has no index: a listing takes a request for each thousand objects. */
static int unchanged(const struct dataset *d, unsigned threads, struct err *err)
{
	(void)d;
	(void)threads;
	return err_set(err, -ESTALE, "a bucket has no index");
}

const struct format_ops format_s3 = {
	.plugin = { .name = "s3",
		    .summary = "an object of a bucket is a sample; prefixes "
			       "are classes, as folders of files" },
	.explicit = true,
	.whole_files = true,
	.list = list,
	.unchanged = unchanged,
};
