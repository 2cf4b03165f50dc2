/* SPDX-License-Identifier: MIT */
#include "s3/store/uploads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include <utlist.h>

#include "common/thread.h"
#include "common/util.h"

void uploads_init(struct uploads *u, struct objects *o)
{
	*u = (struct uploads){ .objects = o };
	pthread_mutex_init(&u->lock, NULL);
}

void uploads_drop(struct uploads *u, struct upload *up)
{
	if (!up)
		return;
	for (size_t i = 0; i < up->n; i++)
		objects_drop(u->objects, &up->v[i].file);
	free(up->v);
	free(up->key);
	free(up->headers);
	free(up);
}

void uploads_fini(struct uploads *u)
{
	struct upload *up, *next;

	DL_FOREACH_SAFE (u->list, up, next)
		uploads_drop(u, up);
	pthread_mutex_destroy(&u->lock);
}

static int compare_uploads(const struct upload *a, const struct upload *b)
{
	int c = strcmp(a->key, b->key);

	return c ? c : strcmp(a->id, b->id);
}

/* Under the lock. */
static void add_to_list(struct uploads *u, struct upload *up)
{
	DL_INSERT_INORDER(u->list, up, compare_uploads);
	u->n++;
}

/* Under the lock. */
static struct upload *find_upload(struct uploads *u, const char *id,
				  const char *key)
{
	struct upload *up;

	DL_FOREACH (u->list, up)
		if (!strcmp(up->id, id) && !strcmp(up->key, key))
			return up;
	return NULL;
}

int uploads_begin(struct uploads *u, const char *key, char *headers,
		  enum checksum_kind checksum, int64_t now_s,
		  char ret_id[UPLOAD_ID])
{
	struct upload *up = calloc(1, sizeof(*up));
	int r = -ENOMEM;

	if (up)
		up->key = strdup(key);
	if (!up || !up->key) {
		free(up);
		free(headers);
		return r;
	}
	up->headers = headers;
	up->checksum = checksum;
	up->time_s = now_s;
	pthread_mutex_lock(&u->lock);
	/* unique here, and later than those of an earlier server */
	snprintf(up->id, sizeof(up->id), "%016" PRIx64 "%016" PRIx64,
		 (uint64_t)now_s, u->n_made++);
	strcpy(ret_id, up->id);
	r = u->n < UPLOADS_MOST ? 0 : -EBUSY;
	if (r == 0)
		add_to_list(u, up);
	pthread_mutex_unlock(&u->lock);
	if (r < 0)
		uploads_drop(u, up);
	return r;
}

int uploads_check(struct uploads *u, const char *id, const char *key)
{
	LOCK_SCOPE(&u->lock);

	return find_upload(u, id, key) ? 0 : -ENOENT;
}

/* Under the lock. */
static int add_part(struct upload *up, struct part *part,
		    struct staged *ret_old)
{
	size_t i = up->n;
	int r;

	while (i && up->v[i - 1].number >= part->number)
		i--;
	if (i < up->n && up->v[i].number == part->number) {
		*ret_old = up->v[i].file;
		up->v[i] = *part;
		return 0;
	}
	r = util_reserve(&up->v, &up->allocated, up->n + 1, sizeof(*up->v));
	if (r < 0)
		return r;
	memmove(up->v + i + 1, up->v + i, (up->n - i) * sizeof(*up->v));
	up->v[i] = *part;
	up->n++;
	return 0;
}

int uploads_add(struct uploads *u, const char *id, const char *key,
		struct part *part)
{
	struct staged old = { .fd = -1 };
	struct upload *up;
	int r = -ENOENT;

	if (part->file.fd >= 0)
		close(part->file.fd);
	part->file.fd = -1;
	pthread_mutex_lock(&u->lock);
	up = find_upload(u, id, key);
	if (up)
		r = add_part(up, part, &old);
	pthread_mutex_unlock(&u->lock);
	if (r < 0)
		objects_drop(u->objects, &part->file);
	else
		part->file = (struct staged){ .fd = -1 };
	objects_drop(u->objects, &old);
	return r;
}

struct upload *uploads_take(struct uploads *u, const char *id, const char *key)
{
	struct upload *up;

	LOCK_SCOPE(&u->lock);
	up = find_upload(u, id, key);
	if (up) {
		DL_DELETE(u->list, up);
		u->n--;
	}
	return up;
}

void uploads_put_back(struct uploads *u, struct upload *up)
{
	LOCK_SCOPE(&u->lock);

	add_to_list(u, up);
}

void uploads_complete(struct uploads *u, struct upload *up, const char *etag)
{
	struct upload_done *d;

	pthread_mutex_lock(&u->lock);
	d = &u->done[u->n_done++ % UPLOADS_DONE];
	strcpy(d->id, up->id);
	strcpy(d->etag, etag);
	d->key = XXH3_64bits(up->key, strlen(up->key));
	pthread_mutex_unlock(&u->lock);
	uploads_drop(u, up);
}

bool uploads_was(struct uploads *u, const char *id, const char *key,
		 char ret_etag[STORED_ETAG])
{
	uint64_t hash = XXH3_64bits(key, strlen(key));

	LOCK_SCOPE(&u->lock);
	for (size_t i = 0; i < MIN(u->n_done, (size_t)UPLOADS_DONE); i++) {
		if (u->done[i].key != hash || strcmp(u->done[i].id, id) != 0)
			continue;
		strcpy(ret_etag, u->done[i].etag);
		return true;
	}
	return false;
}

void uploads_each(struct uploads *u,
		  bool (*each)(void *ctx, const struct upload *up), void *ctx)
{
	const struct upload *up;

	LOCK_SCOPE(&u->lock);
	DL_FOREACH (u->list, up)
		if (!each(ctx, up))
			return;
}
