/* SPDX-License-Identifier: MIT */
#include "loader/dataset/part.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

static int no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory while listing a dataset");
}

/* --- a part ------------------------------------------------------------- */

int part_add(struct dataset_part *p, const char *name, size_t name_n,
	     uint64_t offset, uint64_t size, uint32_t label)
{
	uint32_t at = PART_NO_NAME;

	if (p->n >= UINT32_MAX || name_n >= UINT32_MAX - 1 - p->names_n)
		return -E2BIG;
	if (name) {
		at = (uint32_t)p->names_n;
		if (util_reserve(&p->names, &p->names_capacity,
				 p->names_n + name_n + 1, 1) < 0)
			return -ENOMEM;
		memcpy(p->names + at, name, name_n);
		p->names[at + name_n] = 0;
	}
	if (util_reserve(&p->sample, &p->capacity, p->n + 1,
			 sizeof(*p->sample)) < 0)
		return -ENOMEM;
	p->names_n += name ? name_n + 1 : 0;
	p->sample[p->n++] = (struct part_sample){
		.offset = offset, .size = size, .name = at, .label = label
	};
	return 0;
}

static const struct note_kind unlabelled_shards = {
	"shards_without_labels",
	"shards in which no sample has a label",
};

int part_note_labels(struct dataset_part *p, const char *path)
{
	if (!p->n || (path && strchr(path, '/')))
		return 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct part_sample *s = &p->sample[i];

		if (s->label != PART_BY_FOLDER ||
		    (s->name != PART_NO_NAME &&
		     strchr(p->names + s->name, '/')))
			return 0;
	}
	return notes_add(&p->notes, &unlabelled_shards, 1, path);
}

void part_fini(struct dataset_part *p)
{
	notes_fini(&p->notes);
	free(p->sample);
	free(p->names);
	*p = (struct dataset_part){ 0 };
}

/* --- a dataset ---------------------------------------------------------- */

/* Room for `n` more samples, in all of their arrays. */
static int reserve(struct builder *b, size_t n, bool container)
{
	struct dataset *d = b->d;
	size_t want = d->n + n, capacity[6];
	struct {
		void *array;
		size_t item;
		bool wanted;
	} arrays[] = {
		{ &d->path, sizeof(*d->path), true },
		{ &d->size, sizeof(*d->size), true },
		{ &d->label, sizeof(*d->label), true },
		{ &d->container, sizeof(*d->container), container },
		{ &d->offset, sizeof(*d->offset), container },
		{ &d->group, sizeof(*d->group), container },
	};

	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
		capacity[i] = b->capacity;
		if (arrays[i].wanted &&
		    util_reserve(arrays[i].array, &capacity[i], want,
				 arrays[i].item) < 0)
			return -ENOMEM;
	}
	b->capacity = capacity[0];
	return 0;
}

static int add_names(struct builder *b, const char *names, size_t n,
		     uint64_t *ret)
{
	struct dataset *d = b->d;

	if (util_reserve(&d->names, &b->names_capacity, d->names_bytes + n, 1) <
	    0)
		return -ENOMEM;
	if (n)
		memcpy(d->names + d->names_bytes, names, n);
	*ret = d->names_bytes;
	d->names_bytes += n;
	return 0;
}

int builder_origin(struct builder *b, const char *path,
		   const struct origin *like, struct err *err)
{
	struct dataset *d = b->d;
	struct origin o = *like;

	if (util_reserve(&d->origin, &b->origin_capacity, d->n_origins + 1,
			 sizeof(*d->origin)) < 0 ||
	    add_names(b, path, strlen(path) + 1, &o.path) < 0)
		return no_memory(err);
	d->origin[d->n_origins++] = o;
	return 0;
}

static int append(struct builder *b, const struct dataset_part *p,
		  bool container, struct err *err)
{
	struct dataset *d = b->d;
	uint64_t names;

	if (p->n > UINT32_MAX - d->n ||
	    MAX(p->n_groups, 1) > UINT32_MAX - d->n_groups)
		return err_set(err, -E2BIG,
			       "more than %u samples in one dataset",
			       UINT32_MAX);
	if (reserve(b, p->n, container) < 0 ||
	    notes_merge(&d->notes, &p->notes) < 0 ||
	    add_names(b, p->names, p->names_n, &names) < 0)
		return no_memory(err);
	for (size_t i = 0; i < p->n; i++) {
		const struct part_sample *s = &p->sample[i];
		size_t k = d->n + i;

		d->path[k] = s->name == PART_NO_NAME
				     ? d->origin[d->n_origins - 1].path
				     : names + s->name;
		d->size[k] = s->size;
		d->label[k] = s->label;
		b->by_folder |= s->label == PART_BY_FOLDER;
		b->labelled |= s->label != PART_BY_FOLDER;
		if (!container)
			continue;
		d->container[k] = (uint32_t)d->n_origins - 1;
		d->offset[k] = s->offset;
		d->group[k] = d->n_groups + s->group;
	}
	d->n += p->n;
	return 0;
}

int builder_files(struct builder *b, const struct dataset_part *p,
		  struct err *err)
{
	return append(b, p, false, err);
}

/* All files of a dataset have the same tokens, and all of them a header or
 * none. */
static int check_tokens(const struct dataset *d, const struct dataset_part *p,
			struct err *err)
{
	bool header = p->token_from == TOKENS_BY_HEADER;
	const char *this, *first;

	if (!p->n || !d->n)
		return 0;
	this = d->names + d->origin[d->n_origins - 1].path;
	first = d->names + d->origin[d->container[0]].path;
	if (header != (d->token_from == TOKENS_BY_HEADER))
		return err_set(err, -EINVAL,
			       "%s has a header before its tokens, %s has none",
			       header ? this : first, header ? first : this);
	if (p->token_bytes != d->token_bytes)
		return err_set(err, -EINVAL,
			       "%s: tokens of %u bytes, in %s of %u", this,
			       p->token_bytes, first, d->token_bytes);
	return 0;
}

int builder_container(struct builder *b, const struct dataset_part *p,
		      struct err *err)
{
	struct dataset *d = b->d;
	int r = check_tokens(d, p, err);

	if (r == 0)
		r = append(b, p, true, err);
	if (r == 0 && p->n) {
		d->token_bytes = p->token_bytes;
		d->token_from = p->token_from;
	}

	/* a shard without samples uses no group */
	if (r == 0 && p->n)
		d->n_groups += MAX(p->n_groups, 1);
	return r;
}

/* --- classes by folder -------------------------------------------------- */

struct class
{
	const char *name; /* of the folder, not terminated */
	size_t n;
};

struct classes {
	struct class *class; /* sorted */
	size_t n, capacity;
};

static int compare_classes(const struct class *a, const struct class *b)
{
	int c = memcmp(a->name, b->name, MIN(a->n, b->n));

	if (c)
		return c;
	return a->n < b->n ? -1 : a->n > b->n;
}

/* The class's index, or its insertion point. */
static size_t find_class(const struct classes *c, const struct class *want)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_classes(&c->class[middle], want) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first folder of sample `i`; false: no folder. */
static bool folder_of(const struct dataset *d, size_t i, struct class *ret)
{
	const char *name = dataset_path(d, i), *slash = strchr(name, '/');

	if (!slash)
		return false;
	*ret = (struct class){ name, (size_t)(slash - name) };
	return true;
}

static int collect(const struct dataset *d, struct classes *c)
{
	struct class last = { 0 };

	for (size_t i = 0; i < d->n; i++) {
		struct class want;
		size_t at;

		/* samples of a class are consecutive, mostly */
		if (!folder_of(d, i, &want) ||
		    (last.name && compare_classes(&last, &want) == 0))
			continue;
		last = want;
		at = find_class(c, &want);
		if (at < c->n && compare_classes(&c->class[at], &want) == 0)
			continue;
		if (util_reserve(&c->class, &c->capacity, c->n + 1,
				 sizeof(*c->class)) < 0)
			return -ENOMEM;
		memmove(&c->class[at + 1], &c -> class[at],
			(c->n - at) * sizeof(*c->class));
		c->class[at] = want;
		c->n++;
	}
	return 0;
}

static const struct note_kind unlabelled = {
	"samples_without_label",
	"samples without a label, unlike others: their class is 0",
};

/* Some samples have numeric labels. */
static int label_the_others(struct dataset *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n; i++) {
		if (d->label[i] != PART_BY_FOLDER)
			continue;
		d->label[i] = 0;
		r = notes_add(&d->notes, &unlabelled, 1, dataset_path(d, i));
	}
	return r;
}

static int label_by_folder(struct dataset *d)
{
	struct class last = { 0 }, want;
	struct classes c = { 0 };
	int r = collect(d, &c);
	uint32_t label = 0;

	for (size_t i = 0; r == 0 && i < d->n; i++) {
		if (d->label[i] != PART_BY_FOLDER)
			continue;
		if (!folder_of(d, i, &want)) {
			d->label[i] = 0;
			continue;
		}
		if (!last.name || compare_classes(&last, &want))
			label = (uint32_t)find_class(&c, &want);
		last = want;
		d->label[i] = label;
	}
	free(c.class);
	return r;
}

/* --- the end ------------------------------------------------------------ */

static void shrink(void *pp, size_t n, size_t item)
{
	void *p;

	if (!*(void **)pp || !n)
		return;
	p = reallocarray(*(void **)pp, n, item);
	if (p)
		*(void **)pp = p;
}

int builder_finish(struct builder *b, struct err *err)
{
	struct dataset *d = b->d;
	uint32_t classes = 0;

	if (!d->n)
		return err_set(err, -ENODATA, "no samples");
	if (b->by_folder &&
	    (b->labelled ? label_the_others(d) : label_by_folder(d)) < 0)
		return no_memory(err);
	for (size_t i = 0; i < d->n; i++) {
		/* what a server lists is any number */
		if (d->size[i] > INT64_MAX - d->bytes)
			return err_set(err, -EFBIG,
				       "%s: the samples have more than 8 EiB",
				       dataset_path(d, i));
		d->bytes += d->size[i];
		d->largest = MAX(d->largest, d->size[i]);
		classes = MAX(classes, d->label[i]);
	}
	d->n_classes = MAX(d->n_classes, classes + 1);
	shrink(&d->names, d->names_bytes, 1);
	shrink(&d->origin, d->n_origins, sizeof(*d->origin));
	shrink(&d->path, d->n, sizeof(*d->path));
	shrink(&d->size, d->n, sizeof(*d->size));
	shrink(&d->label, d->n, sizeof(*d->label));
	shrink(&d->container, d->n, sizeof(*d->container));
	shrink(&d->offset, d->n, sizeof(*d->offset));
	shrink(&d->group, d->n, sizeof(*d->group));
	/* return what the listing threads freed to the system */
	malloc_trim(0);
	return 0;
}
