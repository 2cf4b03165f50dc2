/* SPDX-License-Identifier: MIT */
#include "loader/checkpoint/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/util.h"
#include "loader/checkpoint/checkpoint_file.h"

static const char file_name[] = "ranks";

void ranks_name(uint64_t rank, char ret[32])
{
	snprintf(ret, 32, "rank-%" PRIu64, rank);
}

int ranks_dir(const struct ranks *r, uint64_t rank)
{
	char name[32];
	int fd;

	ranks_name(rank, name);
	fd = openat(r->dirfd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool has_joined(const struct ranks *r, uint64_t rank)
{
	const json_t *one;
	size_t i;

	json_array_foreach (r->joined, i, one)
		if ((uint64_t)json_integer_value(one) == rank)
			return true;
	return false;
}

/* --- the file ------------------------------------------------------------- */

static bool is_count(const json_t *j)
{
	return json_is_integer(j) && json_integer_value(j) >= 0;
}

static bool are_counts(const json_t *list)
{
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one)
		if (!is_count(one))
			return false;
	return json_is_array(list);
}

int ranks_take(struct ranks *r, json_t *j, struct err *err)
{
	json_t *step = NULL, *joined = NULL;
	json_int_t world;

	if (json_unpack(j, "{s:I, s?o, s?o}", "world", &world, "step", &step,
			"joined", &joined) < 0)
		return -EAGAIN;
	if ((uint64_t)world != r->world)
		return err_set(err, -EINVAL,
			       "%s has checkpoints of a run with --world-size "
			       "%" JSON_INTEGER_FORMAT
			       "; this one has %" PRIu64,
			       r->path, world, r->world);
	json_decref(r->joined);
	r->agreed = is_count(step) && are_counts(joined);
	r->step = r->agreed ? (uint64_t)json_integer_value(step) : 0;
	r->joined = r->agreed ? json_incref(joined) : NULL;
	return 0;
}

static int read_file(struct ranks *r, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd =
		util_open_file(r->dirfd, file_name, O_NOFOLLOW, &st);
	json_auto_t *j = NULL;

	if (fd < 0)
		return err_set(err, fd, "%s/%s: %s", r->path, file_name,
			       strerror(-fd));
	j = json_loadfd(fd, JSON_DISABLE_EOF_CHECK, NULL);
	return ranks_take(r, j, err);
}

static int write_file(const struct ranks *r, struct err *err)
{
	json_auto_t *j = json_pack(
		"{s:I, s:o, s:O*}", "world", (json_int_t)r->world, "step",
		r->agreed ? json_integer((json_int_t)r->step) : json_null(),
		"joined", r->joined);
	_cleanup_free_ char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	size_t n = text ? strlen(text) : 0;
	int e = text ? 0 : -ENOMEM;

	/* bytes after it are never read */
	if (e == 0 && (pwrite(r->file, text, n, 0) != (ssize_t)n ||
		       ftruncate(r->file, (off_t)n) < 0 || fsync(r->file) < 0))
		e = errno ? -errno : -EIO;
	return e < 0 ? err_set(err, e, "%s/%s: %s", r->path, file_name,
			       strerror(-e))
		     : 0;
}

/* --- opening -------------------------------------------------------------- */

/* The checkpoints of a run with one rank are in DIR itself. */
static int check_alone(const struct ranks *r, struct err *err)
{
	_cleanup_free_ uint64_t *steps = NULL;
	size_t n = 0;
	int e = checkpoint_list(r->dirfd, &steps, &n);

	if (e < 0)
		return err_set(err, e, "%s: %s", r->path, strerror(-e));
	return n ? err_set(err, -EINVAL,
			   "%s has checkpoints of a run with --world-size 1; "
			   "this one has %" PRIu64,
			   r->path, r->world)
		 : 0;
}

static int open_own(const struct ranks *r, int *ret, struct err *err)
{
	char name[32];
	int fd;

	ranks_name(r->rank, name);
	if (mkdirat(r->dirfd, name, 0777) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s/%s: %s", r->path, name,
			       strerror(errno));
	fd = ranks_dir(r, r->rank);
	if (fd < 0)
		return err_set(err, fd, "%s/%s: %s", r->path, name,
			       strerror(-fd));
	*ret = fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, errno == EWOULDBLOCK ? -EBUSY : -errno,
			       "%s/%s: another run has its checkpoints there",
			       r->path, name);
	return 0;
}

int ranks_open(struct ranks *r, const char *path, uint64_t rank, uint64_t world,
	       int *ret_own, struct err *err)
{
	int e;

	*r = (struct ranks){ .path = path,
			     .rank = rank,
			     .world = world,
			     .dirfd = -1,
			     .file = -1 };
	r->dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dirfd < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	e = check_alone(r, err);
	if (e < 0)
		return e;
	/* others may write to the folder: do not follow a link out of it */
	r->file = openat(r->dirfd, file_name,
			 O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (r->file < 0 || flock(r->file, LOCK_EX) < 0)
		return err_set(err, -errno, "%s/%s: %s", path, file_name,
			       strerror(errno));
	e = read_file(r, err);
	if (e == -EAGAIN) /* new, or torn when a machine crashed */
		e = write_file(r, err);
	return e < 0 ? e : open_own(r, ret_own, err);
}

void ranks_close(struct ranks *r)
{
	ranks_unlock(r);
	if (r->dirfd >= 0)
		close(r->dirfd);
	json_decref(r->joined);
	*r = (struct ranks){ .dirfd = -1, .file = -1 };
}

int ranks_check_none(int dirfd, const char *path, struct err *err)
{
	return faccessat(dirfd, file_name, F_OK, 0) < 0
		       ? 0
		       : err_set(err, -EINVAL,
				 "%s has checkpoints of a run with several "
				 "ranks; this one has --world-size 1",
				 path);
}

/* --- agreement ------------------------------------------------------------ */

bool ranks_follows(const struct ranks *r)
{
	return r->agreed && !r->first && !has_joined(r, r->rank);
}

int ranks_check_ended(const struct ranks *r, struct err *err)
{
	for (uint64_t i = 0; i < r->world; i++) {
		_cleanup_close_ int fd = i == r->rank ? -1 : ranks_dir(r, i);

		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 &&
		    errno == EWOULDBLOCK)
			return err_set(err, -EBUSY,
				       "rank %" PRIu64
				       " is still running; stop all ranks "
				       "before you resume",
				       i);
	}
	return 0;
}

/* The checkpoints of `rank` that count. */
static int list(const struct ranks *r, uint64_t rank, uint64_t **ret, size_t *n)
{
	_cleanup_close_ int fd = ranks_dir(r, rank);
	int e;

	*n = 0;
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	e = checkpoint_list(fd, ret, n);
	while (e == 0 && r->agreed && !has_joined(r, rank) && *n &&
	       (*ret)[*n - 1] > r->step)
		--*n;
	return e;
}

/* Intersect two ascending lists in place, in `a`. */
static size_t intersect(uint64_t *a, size_t n, const uint64_t *b, size_t m)
{
	size_t both = 0;

	for (size_t i = 0, k = 0; i < n; i++) {
		while (k < m && b[k] < a[i])
			k++;
		if (k < m && b[k] == a[i])
			a[both++] = a[i];
	}
	return both;
}

/* *ret_lacks: a rank without any; *ret_any: at least one rank has some. */
static int complete(const struct ranks *r, uint64_t **ret, size_t *ret_n,
		    uint64_t *ret_lacks, bool *ret_any)
{
	_cleanup_free_ uint64_t *all = NULL;
	size_t n_all = 0;

	for (uint64_t i = 0; i < r->world; i++) {
		_cleanup_free_ uint64_t *steps = NULL;
		size_t n;
		int e = list(r, i, &steps, &n);

		if (e < 0)
			return e;
		if (n == 0)
			*ret_lacks = i;
		*ret_any |= n > 0;
		if (i) {
			n_all = intersect(all, n_all, steps, n);
			continue;
		}
		all = TAKE_PTR(steps);
		n_all = n;
	}
	*ret = TAKE_PTR(all);
	*ret_n = n_all;
	return 0;
}

int ranks_complete(const struct ranks *r, uint64_t **ret, size_t *ret_n,
		   struct err *err)
{
	uint64_t lacks = r->world;
	bool any = false;
	char which[64] = "";
	int e = complete(r, ret, ret_n, &lacks, &any);

	if (e < 0)
		return err_set(err, e, "%s", strerror(-e));
	if (*ret_n || !any)
		return 0;
	if (lacks < r->world)
		snprintf(which, sizeof(which), " (rank %" PRIu64 " has none)",
			 lacks);
	return err_set(err, -ENOENT,
		       "no step has a checkpoint of all %" PRIu64
		       " ranks%s; --resume-step 0 starts from the beginning",
		       r->world, which);
}

int ranks_complete_now(struct ranks *r, uint64_t **ret, size_t *ret_n)
{
	uint64_t lacks;
	bool any = false;
	int e = read_file(r, NULL);

	return e < 0 ? e : complete(r, ret, ret_n, &lacks, &any);
}

int ranks_join(struct ranks *r, uint64_t step, struct err *err)
{
	if (!ranks_follows(r)) {
		json_decref(r->joined);
		r->joined = json_array();
		r->step = step;
		r->agreed = true;
	}
	if (json_array_append_new(r->joined,
				  json_integer((json_int_t)r->rank)) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	return write_file(r, err);
}

void ranks_unlock(struct ranks *r)
{
	if (r->file >= 0)
		close(r->file);
	r->file = -1;
}
