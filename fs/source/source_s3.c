/* SPDX-License-Identifier: MIT */
/*
 * A bucket of an object store (store/bucket.h): its keys below a prefix are
 * the paths. Keys that are no paths are left out.
 *
 * The tree has the names; beside it there are 8 bytes for each object that
 * stand for its ETag. A read whose answer has another one, or another size, is
 * stale.
 */
#include "fs/source/source.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/util.h"
#include "fs/source/tree_paths.h"
#include "store/bucket.h"

/* arbitrary: 64 requests of 30 ms are 2000 a second; AWS's own clients have 10
 * (boto3) to 128 (the CRT) */
enum { CONNECTIONS = 64 };

/* An object of the listing. */
struct listed {
	uint64_t name; /* of its key below the prefix, in the names */
	uint64_t bytes, tag;
	int64_t mtime_s;
};

struct store {
	char *url; /* "//BUCKET/PREFIX" */
	struct bucket *bucket;
	uint64_t *tags; /* by node */
	/* during the scan */
	struct listed *objects;
	size_t n, n_allocated;
	char *names;
	size_t n_names, n_names_allocated;
	uint64_t n_left; /* out, of which the first is: */
	char left[ANSWER_KEY + 1];
};

static int s3_init(void *state, const char *arg, struct err *err)
{
	struct store *s = state;
	int r;

	s->url = strdup(arg);
	if (!s->url)
		return err_set(err, -ENOMEM, "out of memory");
	r = bucket_open(arg, CONNECTIONS, &s->bucket, err);
	if (r < 0)
		err_prefix(err, "s3:%s", arg);
	return r;
}

static void s3_fini(void *state)
{
	struct store *s = state;

	bucket_free(s->bucket);
	free(s->url);
	free(s->tags);
	free(s->objects);
	free(s->names);
}

/* --- the scan ------------------------------------------------------------- */

static void leave_out(struct store *s, const char *key)
{
	if (!s->n_left++)
		snprintf(s->left, sizeof(s->left), "%s", key);
}

/* Can a file have this path? */
static bool is_path(const char *path)
{
	size_t n;

	for (;; path += n + 1) {
		n = strcspn(path, "/");
		if (n == 0 || n > NAME_MAX || (n == 1 && path[0] == '.') ||
		    (n == 2 && !strncmp(path, "..", 2)))
			return false;
		if (!path[n])
			return true;
	}
}

static int found(void *ctx, const struct answer_object *o)
{
	struct store *s = ctx;
	size_t n = strlen(o->key) + 1;

	if (o->bytes > TREE_MOST_BYTES)
		return -EFBIG;
	if (s->n == UINT32_MAX - 1)
		return -EOVERFLOW;
	/* a folder, as clients of S3 make one */
	if (o->key[n - 2] == '/' && o->bytes == 0)
		return 0;
	if (!is_path(o->key)) {
		leave_out(s, o->key);
		return 0;
	}
	if (util_reserve(&s->objects, &s->n_allocated, s->n + 1,
			 sizeof(*s->objects)) < 0 ||
	    util_reserve(&s->names, &s->n_names_allocated, s->n_names + n, 1) <
		    0)
		return -ENOMEM;
	memcpy(s->names + s->n_names, o->key, n);
	s->objects[s->n++] =
		(struct listed){ s->n_names, o->bytes, o->tag, o->mtime_s };
	s->n_names += n;
	return 0;
}

static int by_path(const void *a, const void *b, void *names)
{
	const struct listed *x = a, *y = b;

	return grouping_compare((char *)names + x->name,
				(char *)names + y->name);
}

/* Sort, and leave out keys that are also folders of others ("a" beside "a/b"),
 * and what a server lists twice. */
static void settle_keys(struct store *s)
{
	size_t n = 0;

	if (s->n)
		qsort_r(s->objects, s->n, sizeof(*s->objects), by_path,
			s->names);
	for (size_t i = 0; i < s->n; i++) {
		const char *path = s->names + s->objects[i].name;
		const char *next =
			i + 1 < s->n ? s->names + s->objects[i + 1].name : "";
		size_t len = strlen(path);

		if (!strncmp(path, next, len) &&
		    (!next[len] || next[len] == '/'))
			leave_out(s, path);
		else
			s->objects[n++] = s->objects[i];
	}
	s->n = n;
}

static void file_of(const void *ctx, uint32_t i, const char **ret_path,
		    struct tree_child *c)
{
	const struct store *s = ctx;
	const struct listed *o = &s->objects[i];

	*ret_path = s->names + o->name;
	c->bytes = o->bytes;
	c->mtime = (struct timespec){ .tv_sec = o->mtime_s };
	c->mode = S_IFREG | 0444;
}

static int fill_tree(struct store *s, struct tree *tree)
{
	const struct tree_paths paths = {
		.n = (uint32_t)s->n,
		.folder = { .mode = S_IFDIR | 0555,
			    .uid = getuid(),
			    .gid = getgid() },
		.file = file_of,
		.ctx = s,
	};
	_cleanup_free_ uint32_t *file = NULL;
	int r = tree_of_paths(tree, &paths, &file);

	if (r < 0)
		return r;
	s->tags = calloc(tree->n_nodes, sizeof(*s->tags));
	for (uint32_t i = 0; s->tags && i < tree->n_nodes; i++)
		if (S_ISREG(tree->nodes[i].mode))
			s->tags[i] = s->objects[file[i]].tag;
	return s->tags ? 0 : -ENOMEM;
}

static int s3_scan(void *state, struct tree *tree, struct err *err)
{
	struct store *s = state;
	int r = bucket_list(s->bucket, 0, found, s, err);

	if (r == 0) {
		settle_keys(s);
		r = fill_tree(s, tree);
	}
	if (s->n_left)
		log_warn("s3:%s: %" PRIu64
			 " keys are left out, which are no paths of files; the "
			 "first is %s",
			 s->url, s->n_left, s->left);
	free(s->objects);
	free(s->names);
	s->objects = NULL;
	s->names = NULL;
	return r < 0 ? err_set(err, r, "s3:%s: %s", s->url, strerror(-r)) : 0;
}

/* --- reads ---------------------------------------------------------------- */

static int s3_read(void *state, const struct tree *tree, uint32_t node,
		   void *buf, size_t n, uint64_t offset, bool nowait)
{
	const struct store *s = state;
	struct bucket_read r = { .object = { .bytes = tree->nodes[node].bytes,
					     .tag = s->tags[node] },
				 .offset = offset,
				 .n = n,
				 .buf = buf };
	char key[ANSWER_KEY + 1];

	if (nowait)
		return -EAGAIN;
	if (tree_path(tree, node, key, sizeof(key)) < 0)
		return -ENAMETOOLONG;
	r.object.key = key;
	return n ? bucket_wait(s->bucket, &r) : 0;
}

static int no_link(void *state, const struct tree *tree, uint32_t node,
		   char *buf, size_t n)
{
	(void)state, (void)tree, (void)node, (void)buf, (void)n;
	return -EINVAL;
}

static json_t *s3_stats(void *state)
{
	struct store *s = state;

	return bucket_stats(s->bucket);
}

const struct source_ops source_s3 = {
	.plugin = { .name = "s3",
		    .summary = "a bucket of an object store: "
			       "s3://BUCKET[/PREFIX]",
		    .state_size = sizeof(struct store) },
	.readers = CONNECTIONS,
	.init = s3_init,
	.fini = s3_fini,
	.scan = s3_scan,
	.read = s3_read,
	.readlink = no_link,
	.stats = s3_stats,
};
