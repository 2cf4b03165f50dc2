/* SPDX-License-Identifier: MIT */
#include "loader/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <xxhash.h>

#include "common/rng.h"
#include "common/units.h"
#include "common/thread.h"
#include "common/util.h"

static const char unfinished[] = "checkpoint.tmp";

struct checkpoint {
	struct checkpoint_config c;
	size_t piece;
	uint8_t *pattern; /* CHECKPOINT_PIECE */
	uint8_t *staging; /* state_bytes, async; else NULL */

	/* the checkpoint to write: the caller's unless busy */
	struct checkpoint_head head;
	uint8_t *visited;
	uint64_t step;

	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy, stopping;	       /* lock */
	int error;		       /* lock; the first error */
	struct err err;		       /* lock */
	struct checkpoint_stats stats; /* lock */
	struct hist times;
};

/* --- the state ------------------------------------------------------------ */

/* The piece of the state at `offset`, a multiple of its size, in `pattern`. */
static const uint8_t *state_at(struct checkpoint *c, uint64_t offset)
{
	uint8_t *piece = c->pattern + offset % CHECKPOINT_PIECE;

	for (size_t at = 0; at < c->piece; at += CHECKPOINT_BLOCK) {
		uint64_t stamp[] = { c->step, offset + at };

		memcpy(piece + at, stamp, sizeof(stamp));
	}
	return piece;
}

static void fill_staging(struct checkpoint *c)
{
	for (uint64_t at = 0; at < c->c.state_bytes; at += c->piece)
		memcpy(c->staging + at, state_at(c, at),
		       MIN(c->piece, c->c.state_bytes - at));
}

/* --- writing -------------------------------------------------------------- */

/* The part after the head; its hash goes into the head. */
static int write_body(struct checkpoint *c, int fd, XXH3_state_t *hash)
{
	int r = util_write_all(fd, c->visited, c->c.visited_bytes);

	XXH3_64bits_reset(hash);
	XXH3_64bits_update(hash, c->visited, c->c.visited_bytes);
	for (uint64_t at = 0; r == 0 && at < c->c.state_bytes; at += c->piece) {
		size_t n = (size_t)MIN(c->piece, c->c.state_bytes - at);
		const uint8_t *from = c->staging ? c->staging + at
						 : state_at(c, at);

		XXH3_64bits_update(hash, from, n);
		r = util_write_all(fd, from, n);
	}
	c->head.body_hash = XXH3_64bits_digest(hash);
	return r;
}

static int write_file(struct checkpoint *c, int fd)
{
	XXH3_state_t *hash = XXH3_createState();
	int r = hash ? 0 : -ENOMEM;

	if (r == 0 && lseek(fd, CHECKPOINT_HEAD, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = write_body(c, fd, hash);
	XXH3_freeState(hash);
	c->head.head_hash = checkpoint_head_hash(&c->head);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = util_write_all(fd, &c->head, sizeof(c->head));
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

/* The oldest checkpoint to keep; 0: keep all. */
static int oldest_kept(struct checkpoint *c, uint64_t *ret)
{
	_cleanup_free_ uint64_t *steps = NULL;
	size_t n = 0;
	int r = c->c.ranks ? ranks_complete_now(c->c.ranks, &steps, &n)
			   : checkpoint_list(c->c.dirfd, &steps, &n);

	*ret = 0;
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	while (n && steps[n - 1] > c->step)
		n--;
	if (n >= c->c.keep)
		*ret = steps[n - c->c.keep];
	return 0;
}

static int prune(struct checkpoint *c)
{
	_cleanup_free_ uint64_t *steps = NULL;
	uint64_t oldest;
	size_t n = 0;
	int r;

	if (c->c.keep == 0)
		return 0;
	r = oldest_kept(c, &oldest);
	if (r == 0)
		r = checkpoint_list(c->c.dirfd, &steps, &n);
	for (size_t i = 0; r == 0 && i < n && steps[i] < oldest; i++)
		r = checkpoint_remove(c->c.dirfd, steps[i]);
	return r;
}

static int write_one(struct checkpoint *c)
{
	_cleanup_close_ int fd = -1;
	char name[CHECKPOINT_NAME];
	int r;

	/* one fixed name, or the files of killed runs would fill the disk */
	unlinkat(c->c.dirfd, unfinished, 0);
	fd = openat(c->c.dirfd, unfinished,
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	r = fd < 0 ? -errno : write_file(c, fd);
	checkpoint_name(c->step, name);
	/* the checkpoint counts only after the log it refers to is on disk;
	 * -EINVAL: this kind of log cannot be synced */
	if (r == 0 && c->c.log_fd >= 0 && fsync(c->c.log_fd) < 0 &&
	    errno != EINVAL)
		r = -errno;
	if (r == 0 && renameat(c->c.dirfd, unfinished, c->c.dirfd, name) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(c->c.dirfd, unfinished, 0);
	if (r == 0 && fsync(c->c.dirfd) < 0)
		r = -errno;
	return r < 0 ? r : prune(c);
}

/* Write, then count the checkpoint or keep the error. Without the lock. */
static void write_counted(struct checkpoint *c)
{
	uint64_t start = tick_now(c->c.tick), wall = tick_wall();
	int r = write_one(c);
	uint64_t took = tick_now(c->c.tick) - start;

	wall = tick_wall() - wall;
	pthread_mutex_lock(&c->lock);
	if (r < 0 && c->error == 0) {
		c->error = r;
		err_set(&c->err, r, "%s: cannot write a checkpoint: %s",
			c->c.dir, strerror(-r));
	}
	if (r == 0) {
		c->stats.n++;
		c->stats.bytes +=
			sizeof(c->head) + c->c.visited_bytes + c->c.state_bytes;
		c->stats.write_ns += took;
		c->stats.write_wall_ns += wall;
		hist_add(&c->times, took);
	}
	pthread_mutex_unlock(&c->lock);
}

static void *writer(void *arg)
{
	struct checkpoint *c = arg;

	pthread_mutex_lock(&c->lock);
	while (!c->stopping || c->busy) {
		if (!c->busy) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		pthread_mutex_unlock(&c->lock);
		write_counted(c);
		pthread_mutex_lock(&c->lock);
		c->busy = false;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* --- the caller's side ---------------------------------------------------- */

int checkpoint_new(const struct checkpoint_config *config,
		   struct checkpoint **ret, struct err *err)
{
	struct checkpoint *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c)
		return err_set(err, -ENOMEM, "out of memory for checkpoints");
	c->c = *config;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->piece = checkpoint_piece(config->scale);
	c->pattern = malloc(CHECKPOINT_PIECE);
	c->visited = malloc(config->visited_bytes + 1);
	if (config->async)
		c->staging = malloc(config->state_bytes);
	if (!c->pattern || !c->visited || (config->async && !c->staging))
		r = err_set(err, -ENOMEM,
			    "out of memory for a checkpoint of %llu bytes",
			    (unsigned long long)config->state_bytes);
	if (r == 0) {
		rng_bytes_at(rng_key(config->seed, "checkpoint", 0), 0,
			     c->pattern, CHECKPOINT_PIECE);
		if (c->staging) /* to fault in its pages */
			fill_staging(c);
	}
	if (r == 0 && config->async) {
		r = thread_start(&c->thread, NULL, writer, c);
		c->started = r == 0;
		if (r < 0)
			err_set(err, r, "cannot start a thread: %s",
				strerror(-r));
	}
	if (r < 0) {
		checkpoint_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

void checkpoint_free(struct checkpoint *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (c->started)
		pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c->pattern);
	free(c->staging);
	free(c->visited);
	free(c);
}

int checkpoint_drain(struct checkpoint *c, struct err *err)
{
	int r;

	pthread_mutex_lock(&c->lock);
	while (c->busy)
		pthread_cond_wait(&c->changed, &c->lock);
	r = c->error;
	if (r < 0)
		err_set(err, r, "%s", c->err.text);
	pthread_mutex_unlock(&c->lock);
	return r;
}

int checkpoint_save(struct checkpoint *c, const struct checkpoint_point *p,
		    const uint8_t *visited, struct err *err)
{
	int r = checkpoint_drain(c, err);
	uint64_t copied = tick_now(c->c.tick) + c->c.copy_ns;

	if (r < 0)
		return r;
	r = checkpoint_head_make(p, c->c.visited_bytes, c->c.state_bytes,
				 &c->head);
	if (r < 0)
		return err_set(err, r, "%s: the header of a checkpoint: %s",
			       c->c.dir, strerror(-r));
	c->step = p->step;
	if (visited)
		memcpy(c->visited, visited, c->c.visited_bytes);
	if (c->staging)
		fill_staging(c);
	tick_wait(c->c.tick, copied);
	if (!c->staging) {
		write_counted(c);
		return checkpoint_drain(c, err);
	}
	pthread_mutex_lock(&c->lock);
	c->busy = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

struct checkpoint_stats checkpoint_stats(struct checkpoint *c)
{
	struct checkpoint_stats ret;

	pthread_mutex_lock(&c->lock);
	ret = c->stats;
	pthread_mutex_unlock(&c->lock);
	return ret;
}

const struct hist *checkpoint_times(const struct checkpoint *c)
{
	return &c->times;
}
