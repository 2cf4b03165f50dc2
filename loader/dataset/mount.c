/* SPDX-License-Identifier: MIT */
#include "loader/dataset/mount.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/json.h"
#include "common/pack/grouping.h"
#include "common/system/control.h"
#include "common/system/future.h"
#include "common/system/importance.h"
#include "common/util.h"

/* `dir` is canonical. */
static char *control_dir(const char *dir)
{
	_cleanup_free_ char *ret = util_join(dir, ".gpemu");
	_cleanup_close_ int fd = -1;

	if (ret)
		fd = control_open(ret, "stats", O_PATH);
	return fd < 0 ? NULL : TAKE_PTR(ret);
}

void mount_find(const char *dir, struct dataset_mount *ret)
{
	_cleanup_free_ char *at = realpath(dir, NULL);
	struct stat first, st;

	*ret = (struct dataset_mount){ 0 };
	if (!at || stat(at, &first) < 0)
		return;
	ret->dev = first.st_dev;
	while (!(ret->dir = control_dir(at))) {
		char *slash = strrchr(at, '/');

		if (!slash || slash == at)
			return;
		*slash = 0;
		if (stat(at, &st) < 0 || st.st_dev != first.st_dev)
			return;
	}
}

void mount_fini(struct dataset_mount *m)
{
	free(m->dir);
	m->dir = NULL;
}

int mount_command(const struct dataset_mount *m, const char *command,
		  struct err *err)
{
	_cleanup_close_ int fd = control_open(m->dir, "control", O_WRONLY);
	int r = fd < 0 ? fd : 0;

	if (r == 0 && write(fd, command, strlen(command)) < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "%s/control: '%s': %s", m->dir, command,
			       strerror(-r))
		     : 0;
}

int mount_mark_epoch(const struct dataset_mount *m, struct err *err)
{
	int r = m->dir ? mount_command(m, "epoch", err) : 0;

	return r == -EACCES || r == -EROFS ? 0 : r;
}

json_t *mount_stats(const struct dataset_mount *m)
{
	_cleanup_free_ char *path = m->dir ? util_join(m->dir, "stats") : NULL;
	json_t *j = NULL;

	if (!path || json_read(path, &j, NULL) < 0)
		return NULL;
	return j;
}

int mount_nic(const struct dataset_mount *m, json_t **ret, struct err *err)
{
	_cleanup_free_ char *path = util_join(m->dir, "nic");

	return path ? json_read(path, ret, err)
		    : err_set(err, -ENOMEM, "out of memory");
}

bool mount_hits(const struct dataset_mount *m, struct mount_hits *ret)
{
	json_auto_t *j = mount_stats(m);
	const json_t *hits = json_object_get(j, "hits");
	const json_t *misses = json_object_get(j, "misses");

	if (!json_is_integer(hits) || !json_is_integer(misses))
		return false;
	ret->hits = (uint64_t)json_integer_value(hits);
	ret->misses = (uint64_t)json_integer_value(misses);
	return true;
}

/* --- groups -------------------------------------------------------------- */

/* The samples by path, and the prefix of their paths in the mount. */
struct names {
	const struct dataset *data;
	uint32_t *sorted; /* data->n */
	const char *prefix;
	size_t prefix_len;
};

static int by_path(const void *a, const void *b, void *data)
{
	return strcmp(dataset_path(data, *(const uint32_t *)a),
		      dataset_path(data, *(const uint32_t *)b));
}

static uint32_t find_sample(const void *ctx, const char *path)
{
	const struct names *n = ctx;
	size_t from = 0, to = n->data->n;

	if (strncmp(path, n->prefix, n->prefix_len) != 0)
		return UINT32_MAX;
	path += n->prefix_len;
	while (from < to) {
		size_t mid = from + (to - from) / 2;
		uint32_t sample = n->sorted[mid];
		int c = strcmp(path, dataset_path(n->data, sample));

		if (c == 0)
			return sample;
		if (c < 0)
			to = mid;
		else
			from = mid + 1;
	}
	return UINT32_MAX;
}

/* Below the mount's root: "class1/", or "" for the root itself. */
static char *prefix_of(const struct dataset_mount *m, const char *dir)
{
	_cleanup_free_ char *at = realpath(dir, NULL);
	size_t root = strlen(m->dir) - strlen("/.gpemu");

	if (!at)
		return NULL;
	if (strlen(at) <= root)
		return strdup("");
	return util_text("%s/", at + root + 1);
}

static int take_over(const struct grouping *g, struct dataset *d)
{
	uint32_t *group;

	if (g->n_groups == d->n) /* one file per group: no groups */
		return 0;
	group = calloc(d->n, sizeof(*group));
	if (!group)
		return -ENOMEM;
	for (uint32_t k = 0; k < g->n_groups; k++)
		for (uint32_t i = g->first[k]; i < g->first[k + 1]; i++)
			group[g->file[i]] = k;
	d->group = group;
	d->n_groups = g->n_groups;
	return 0;
}

int mount_groups(const struct dataset_mount *m, const char *dir,
		 struct dataset *d, struct err *err)
{
	_cleanup_free_ char *prefix = NULL, *path = NULL;
	_cleanup_free_ uint32_t *sorted = NULL;
	struct grouping_files files = { .n = (uint32_t)d->n,
					.bytes = d->size,
					.class = d->label,
					.find = find_sample,
					.skip_unknown = true };
	struct grouping groups;
	struct names names;
	int r;

	if (!m->dir || d->group || d->container)
		return 0;
	prefix = prefix_of(m, dir);
	sorted = calloc(d->n, sizeof(*sorted));
	if (!prefix || !sorted || asprintf(&path, "%s/groups", m->dir) < 0)
		return err_set(err, -ENOMEM, "out of memory for groups");
	for (uint32_t i = 0; i < d->n; i++)
		sorted[i] = i;
	qsort_r(sorted, d->n, sizeof(*sorted), by_path, d);
	names = (struct names){ d, sorted, prefix, strlen(prefix) };
	files.ctx = &names;
	r = grouping_new(&files, 1, path, 0, &groups, err);
	if (r < 0)
		return r;
	r = take_over(&groups, d);
	grouping_free(&groups);
	return r < 0 ? err_set(err, r, "out of memory for groups") : 0;
}

/* --- attributes of files ------------------------------------------------- */

bool mount_attribute(const struct dataset *d, size_t i, const char *name,
		     uint64_t *ret)
{
	char path[PATH_MAX], text[24];
	ssize_t n;

	if (d->container ||
	    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", d->dirfd,
		     dataset_path(d, i)) >= (int)sizeof(path))
		return false;
	n = getxattr(path, name, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	*ret = strtoull(text, NULL, 10);
	return true;
}

/* The mount is node `rank` of `world`. */
static int check_node(const struct dataset_mount *m, const json_t *peer,
		      uint64_t rank, uint64_t world, struct err *err)
{
	uint64_t node =
		(uint64_t)json_integer_value(json_object_get(peer, "node"));
	uint64_t nodes = json_array_size(json_object_get(peer, "peers")) + 1;

	if (node == rank && nodes == world)
		return 0;
	return err_set(err, -EINVAL,
		       "%s: the mount is node %" PRIu64 " of %" PRIu64
		       ", and this is rank %" PRIu64 " of %" PRIu64
		       ": --order locality needs one node for each rank, in "
		       "the same order",
		       m->dir, node, nodes, rank, world);
}

int mount_owners(const struct dataset_mount *m, const struct dataset *d,
		 uint64_t rank, uint64_t world, uint32_t **ret, struct err *err)
{
	json_auto_t *stats = mount_stats(m);
	const json_t *peer = json_object_get(stats, "peer");
	_cleanup_free_ uint32_t *owner = NULL;
	int r = 0;

	*ret = NULL;
	if (!peer || world < 2)
		return 0;
	r = check_node(m, peer, rank, world, err);
	if (r == 0 && d->container)
		r = err_set(err, -EINVAL,
			    "--order locality on a mount with --peers: the "
			    "samples must be files of their own");
	if (r < 0)
		return r;
	owner = calloc(d->n, sizeof(*owner));
	if (!owner)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < d->n; i++) {
		uint64_t n;
		bool has = mount_attribute(d, i, "user.gpemu.owner", &n);

		owner[i] = has && n < world ? (uint32_t)n : UINT32_MAX;
	}
	*ret = TAKE_PTR(owner);
	return 0;
}

/* --- announcements ------------------------------------------------------- */

/* Numbers written at once. arbitrary: 64 KiB on the stack */
enum { PIECE = 16 << 10 };

_Static_assert((int)MOUNT_MOST_ACCESSES == (int)FUTURE_MOST, "the same");

bool mount_foresees(const struct dataset_mount *m)
{
	json_auto_t *stats = mount_stats(m);

	return json_is_object(json_object_get(stats, "prefetch"));
}

static int put_bytes(const struct dataset_mount *m, int fd, const char *name,
		     const void *bytes, size_t n, struct err *err)
{
	int r = util_write_all(fd, bytes, n);

	return r < 0 ? err_set(err, r, "%s/%s: %s", m->dir, name, strerror(-r))
		     : 0;
}

int mount_announce(const struct dataset_mount *m, int fd,
		   const uint32_t *inodes, size_t n, struct err *err)
{
	uint32_t piece[PIECE];
	int r = 0;

	while (r == 0 && n > 0) {
		size_t k = MIN(n, PIECE);

		for (size_t i = 0; i < k; i++)
			piece[i] = htole32(inodes[i]);
		r = put_bytes(m, fd, FUTURE_FILE, piece, k * sizeof(piece[0]),
			      err);
		inodes += k;
		n -= k;
	}
	return r;
}

int mount_open_future(const struct dataset_mount *m,
		      const struct mount_future *f, struct err *err)
{
	const uint32_t v[FUTURE_FIELDS] = {
		[FUTURE_VERSION] = FUTURE_IS_VERSION,
		[FUTURE_RANK] = f->rank,
		[FUTURE_WORLD] = f->world,
		[FUTURE_EPOCHS] = f->epochs,
		[FUTURE_FIRST] = f->first,
		[FUTURE_REST] = f->rest,
		[FUTURE_FLAGS] = f->continues ? FUTURE_CONTINUES : 0,
	};
	_cleanup_close_ int fd = control_open(m->dir, FUTURE_FILE, O_WRONLY);
	int r;

	if (fd < 0)
		return err_set(err, fd, "%s/" FUTURE_FILE ": %s", m->dir,
			       strerror(-fd));
	r = put_bytes(m, fd, FUTURE_FILE, FUTURE_MAGIC, strlen(FUTURE_MAGIC),
		      err);
	if (r == 0)
		r = mount_announce(m, fd, v, FUTURE_FIELDS, err);
	return r < 0 ? r : TAKE_FD(fd);
}

bool mount_weighs(const struct dataset_mount *m)
{
	json_auto_t *stats = mount_stats(m);

	return json_is_true(json_object_get(stats, "uses_importance"));
}

int mount_weigh(const struct dataset_mount *m, const uint32_t *inodes,
		const float *importance, size_t n, struct err *err)
{
	_cleanup_close_ int fd =
		control_open(m->dir, IMPORTANCE_FILE, O_WRONLY);
	uint64_t piece[PIECE / 2];
	size_t k = 0;
	int r = 0;

	if (fd < 0)
		return err_set(err, fd, "%s/" IMPORTANCE_FILE ": %s", m->dir,
			       strerror(-fd));
	_Static_assert(sizeof(piece[0]) == IMPORTANCE_RECORD, "one record");
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (inodes[i])
			importance_put((unsigned char *)&piece[k++], inodes[i],
				       importance[i]);
		if (k < ARRAY_SIZE(piece) && i + 1 < n)
			continue;
		r = put_bytes(m, fd, IMPORTANCE_FILE, piece,
			      k * sizeof(piece[0]), err);
		k = 0;
	}
	return r;
}

uint32_t *mount_inodes(const struct dataset_mount *m, const struct dataset *d)
{
	uint32_t *ret = calloc(d->n, sizeof(*ret));
	struct stat root, st;

	if (!ret || stat(m->dir, &root) < 0)
		return ret;
	for (size_t i = 0; i < d->n; i++)
		if (fstatat(d->dirfd, dataset_path(d, i), &st, 0) == 0 &&
		    st.st_dev == root.st_dev && S_ISREG(st.st_mode))
			ret[i] = (uint32_t)st.st_ino;
	return ret;
}
