/* SPDX-License-Identifier: MIT */
/*
 * A sorted array: a listing walks it, a lookup halves it, and what a new key
 * moves is cheap: 8 MB for a million of objects.
 */
#include "s3/store/index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/util.h"

struct stored *stored_new(const char *key)
{
	size_t n = strlen(key) + 1;
	struct stored *o = calloc(1, sizeof(*o) + n);

	if (!o)
		return NULL;
	memcpy(o->key, key, n);
	o->refs = 1;
	return o;
}

struct stored *stored_get(struct stored *o)
{
	__atomic_fetch_add(&o->refs, 1, __ATOMIC_RELAXED);
	return o;
}

void stored_put(struct stored *o)
{
	if (!o || __atomic_sub_fetch(&o->refs, 1, __ATOMIC_ACQ_REL))
		return;
	free(o->headers);
	free(o->path);
	free(o);
}

void stored_make_etag(const char *key, uint64_t bytes, int64_t mtime_s,
		      uint32_t mtime_ns, char ret[STORED_ETAG])
{
	uint64_t what[] = { bytes, (uint64_t)mtime_s, mtime_ns,
			    XXH3_64bits(key, strlen(key)) };
	XXH128_hash_t h = XXH3_128bits(what, sizeof(what));

	snprintf(ret, STORED_ETAG, "\"%016" PRIx64 "%016" PRIx64 "-1\"",
		 h.high64, h.low64);
}

void index_fini(struct index *x)
{
	for (size_t i = 0; i < x->n; i++)
		stored_put(x->v[i]);
	free(x->v);
	*x = (struct index){ 0 };
}

size_t index_bound(const struct index *x, const char *text, size_t n,
		   bool beyond)
{
	size_t low = 0, high = x->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = strncmp(x->v[middle]->key, text, n);

		if (c < 0 || (beyond && c == 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Is it there, at the place where it is or would be? */
static bool find_key(const struct index *x, const char *key, size_t *ret)
{
	*ret = index_bound(x, key, SIZE_MAX, false);
	return *ret < x->n && !strcmp(x->v[*ret]->key, key);
}

struct stored *index_find(const struct index *x, const char *key)
{
	size_t i;

	return find_key(x, key, &i) ? x->v[i] : NULL;
}

int index_reserve(struct index *x)
{
	return util_reserve(&x->v, &x->allocated, x->n + 1, sizeof(*x->v));
}

void index_add(struct index *x, struct stored *o)
{
	size_t i;

	if (find_key(x, o->key, &i)) {
		stored_put(x->v[i]);
	} else {
		memmove(x->v + i + 1, x->v + i, (x->n - i) * sizeof(*x->v));
		x->n++;
	}
	x->v[i] = o;
}

void index_remove(struct index *x, const char *key)
{
	size_t i;

	if (!find_key(x, key, &i))
		return;
	stored_put(x->v[i]);
	x->n--;
	memmove(x->v + i, x->v + i + 1, (x->n - i) * sizeof(*x->v));
}
