/* SPDX-License-Identifier: MIT */
/*
 * The timed operation is one call that causes one request of the kernel; its
 * preparation is not timed:
 *
 *	lookup   lstat of a new name, when the folder's own name is known
 *	open     open of a known name
 *	readdir  the first readdir of an open folder
 *	read     pread of an open file
 */
#include "fs/selftest/selftest_client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "common/rng.h"
#include "common/system/walk.h"
#include "common/thread.h"
#include "common/tick.h"
#include "common/util.h"

enum {
	MAX_FILES = 20000,
	/* open files that all streams share: below common limits */
	MAX_FDS = 256,
	/* for system calls and the C library; buffers are on the heap */
	STACK_BYTES = 256 << 10,
};

/* --- the tree ------------------------------------------------------------- */

struct scan {
	const char *root;
	struct client_tree *t;
};

static char *path_of(const struct scan *s, const char *below)
{
	return util_text("%s%s%s", s->root, *below ? "/" : "", below);
}

static int add_dir(void *ctx, const char *path, const struct statx *st,
		   struct err *err)
{
	struct scan *s = ctx;
	struct client_tree *t = s->t;
	char **more = reallocarray(t->dirs, t->n_dirs + 1, sizeof(*more));

	(void)st;
	(void)err;
	if (!more)
		return -ENOMEM;
	t->dirs = more;
	t->dirs[t->n_dirs] = path_of(s, path);
	return t->dirs[t->n_dirs] ? (t->n_dirs++, 0) : -ENOMEM;
}

/* 1: enough files. */
static int add_file(void *ctx, const char *path, const struct walk_entry *e,
		    struct err *err)
{
	struct scan *s = ctx;
	struct client_file *f = &s->t->files[s->t->n_files];

	(void)err;
	if (!S_ISREG(e->mode))
		return 0;
	f->bytes = e->bytes;
	f->path = path_of(s, path);
	return f->path ? ++s->t->n_files == MAX_FILES : -ENOMEM;
}

static int larger_first(const void *a, const void *b)
{
	const struct client_file *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

int client_scan(const char *root, struct client_tree *ret, struct err *err)
{
	_cleanup_close_ int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct client_tree t = { .files = calloc(MAX_FILES, sizeof(*t.files)) };
	struct scan scan = { .root = root, .t = &t };
	struct walk walk = { .flags = WALK_HIDDEN | WALK_FILES,
			     .ctx = &scan,
			     .folder = add_dir,
			     .file = add_file };
	int r = fd < 0 ? -errno : t.files ? 0 : -ENOMEM;

	if (r == 0)
		r = walk_tree(&walk, fd, "", err);
	if (r >= 0 && !t.n_files)
		r = err_set(err, -ENOENT, "no file to read");
	if (r < 0) {
		client_tree_fini(&t);
		err_set(err, r, "%s", strerror(-r));
		err_prefix(err, "%s", root);
		return r;
	}
	qsort(t.files, t.n_files, sizeof(*t.files), larger_first);
	*ret = t;
	return 0;
}

void client_tree_fini(struct client_tree *t)
{
	for (size_t i = 0; i < t->n_files; i++)
		free(t->files[i].path);
	for (size_t i = 0; i < t->n_dirs; i++)
		free(t->dirs[i]);
	free(t->files);
	free(t->dirs);
	*t = (struct client_tree){ 0 };
}

size_t client_n_files_of(const struct client_tree *t, uint64_t bytes)
{
	size_t n = 0;

	while (n < t->n_files && t->files[n].bytes >= bytes)
		n++;
	return n;
}

/* --- one measurement ------------------------------------------------------ */

struct measurement {
	const struct client_tree *tree;
	struct client_run *run;
	size_t n_files;	      /* files that are long enough for a read */
	int fds[MAX_FDS];     /* of the first of these, -1: not open */
	pthread_mutex_t lock; /* started */
	pthread_cond_t wake;
	bool started;
	uint64_t limit; /* wall ns */
	size_t next;	/* atomic: the next operation */
	int error;	/* atomic: the first */
	uint64_t *done; /* end of each operation, wall ns; 0: not done */
	size_t n_ready; /* under lock: prepared streams */
};

struct stream {
	struct measurement *m;
	size_t number;
	pthread_t thread;
	struct rng rng;
	void *buf;
	uint64_t at; /* sequential reader: number of the next read */
};

static void fail_client(struct measurement *m, int error)
{
	int none = 0;

	__atomic_compare_exchange_n(&m->error, &none, error, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static int lookup(struct stream *s, size_t i, uint64_t *ret_ns)
{
	const char *path = s->m->tree->files[i].path;
	_cleanup_free_ char *dir =
		strndup(path, (size_t)(strrchr(path, '/') - path));
	struct stat st;
	uint64_t start;

	if (!dir || lstat(dir, &st) < 0)
		return dir ? -errno : -ENOMEM;
	start = tick_wall();
	if (lstat(path, &st) < 0)
		return -errno;
	*ret_ns = tick_wall() - start;
	return 0;
}

static int open_file(struct stream *s, size_t i, uint64_t *ret_ns)
{
	const struct client_tree *t = s->m->tree;
	const char *path = t->files[i % MIN(t->n_files, (size_t)MAX_FDS)].path;
	struct stat st;
	uint64_t start;
	int fd;

	if (lstat(path, &st) < 0)
		return -errno;
	start = tick_wall();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	*ret_ns = tick_wall() - start;
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int list(struct stream *s, size_t i, uint64_t *ret_ns)
{
	const struct client_tree *t = s->m->tree;
	DIR *d = opendir(t->dirs[i % t->n_dirs]);
	uint64_t start;

	if (!d)
		return -errno;
	start = tick_wall();
	errno = 0;
	readdir(d);
	*ret_ns = tick_wall() - start;
	int r = -errno;

	closedir(d);
	return r;
}

static int read_file(struct stream *s, uint64_t *ret_ns)
{
	const struct measurement *m = s->m;
	const struct model_load *load = &m->run->load;
	size_t file = s->number % MIN(m->n_files, (size_t)MAX_FDS);
	uint64_t places = m->tree->files[file].bytes / load->bytes, start, at;
	ssize_t got;

	at = load->sequential ? s->at++ % places : rng_below(&s->rng, places);
	if (load->sequential && at == 0)
		__atomic_fetch_add(&m->run->n_again, 1, __ATOMIC_RELAXED);
	start = tick_wall();
	got = pread(m->fds[file], s->buf, load->bytes,
		    (off_t)(at * load->bytes));
	*ret_ns = tick_wall() - start;
	if (got < 0)
		return -errno;
	return got == (ssize_t)load->bytes ? 0 : -EIO;
}

static int operate(struct stream *s, size_t i, uint64_t *ret_ns)
{
	switch (s->m->run->load.op) {
	case STORAGE_LOOKUP: return lookup(s, i, ret_ns);
	case STORAGE_OPEN: return open_file(s, i, ret_ns);
	case STORAGE_READDIR: return list(s, i, ret_ns);
	case STORAGE_READ: return read_file(s, ret_ns);
	default: break;
	}
	return -EINVAL;
}

/* Allocate the stream's memory, and open one of the shared files. */
static int prepare(struct stream *s)
{
	struct measurement *m = s->m;
	const struct model_load *load = &m->run->load;

	if (load->op != STORAGE_READ)
		return 0;
	s->rng = rng_stream(m->run->seed, "selftest", s->number);
	s->at = rng_u64(&s->rng) % (1 << 20);
	if (posix_memalign(&s->buf, 4096, load->bytes))
		return -ENOMEM;
	if (s->number >= MIN(m->n_files, (size_t)MAX_FDS))
		return 0;
	m->fds[s->number] =
		open(m->tree->files[s->number].path, O_RDONLY | O_CLOEXEC);
	return m->fds[s->number] < 0 ? -errno : 0;
}

static void wait_for_start(struct measurement *m)
{
	LOCK_SCOPE(&m->lock);
	m->n_ready++;
	pthread_cond_broadcast(&m->wake);
	while (!m->started)
		pthread_cond_wait(&m->wake, &m->lock);
}

static void *stream(void *arg)
{
	struct stream *s = arg;
	struct measurement *m = s->m;
	struct client_run *run = m->run;
	int r = prepare(s);
	size_t i;

	if (r < 0)
		fail_client(m, r);
	wait_for_start(m);
	while (!__atomic_load_n(&m->error, __ATOMIC_RELAXED) &&
	       tick_wall() < m->limit &&
	       (i = __atomic_fetch_add(&m->next, 1, __ATOMIC_RELAXED)) <
		       run->n) {
		r = operate(s, i, &run->ns[i]);
		if (r < 0)
			fail_client(m, r);
		else
			m->done[i] = tick_wall();
	}
	return NULL;
}

/* Start all streams at the same time and wait; -EAGAIN: no thread. */
static int run_streams(struct measurement *m, struct stream *streams)
{
	size_t n = 0, want = m->run->load.streams;
	pthread_attr_t attr;
	int r = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (; n < want; n++) {
		streams[n] = (struct stream){ .m = m, .number = n };
		r = -pthread_create(&streams[n].thread, &attr, stream,
				    &streams[n]);
		if (r < 0)
			break;
	}
	pthread_attr_destroy(&attr);
	if (r < 0)
		fail_client(m, r);
	pthread_mutex_lock(&m->lock);
	while (m->n_ready < n)
		pthread_cond_wait(&m->wake, &m->lock);
	m->limit = tick_wall() + m->run->limit_ns;
	m->started = true;
	pthread_cond_broadcast(&m->wake);
	pthread_mutex_unlock(&m->lock);
	for (size_t i = 0; i < n; i++) {
		pthread_join(streams[i].thread, NULL);
		free(streams[i].buf);
	}
	return m->error;
}

/*
 * In the first round all streams start at once, and in the last one some have
 * already ended: the rate is taken in between.
 */
static void sum_up(struct measurement *m)
{
	struct client_run *run = m->run;
	size_t n = 0, first, last;
	double sum = 0;

	for (size_t i = 0; i < run->n; i++) {
		if (!m->done[i])
			continue;
		m->done[n] = m->done[i];
		run->ns[n] = run->ns[i];
		sum += (double)run->ns[n++];
	}
	run->n_done = n;
	run->mean_ns = n ? sum / (double)n : 0;
	qsort(run->ns, n, sizeof(*run->ns), util_compare_u64);
	qsort(m->done, n, sizeof(*m->done), util_compare_u64);
	first = MIN(2 * run->load.streams, n / 4);
	last = n - MIN(run->load.streams, n / 4);
	if (last > first + 1)
		run->rate = (double)(last - 1 - first) * 1e9 /
			    (double)(m->done[last - 1] - m->done[first]);
}

int client_measure(const struct client_tree *t, struct client_run *run,
		   struct err *err)
{
	struct measurement m = { .tree = t, .run = run };
	_cleanup_free_ struct stream *streams =
		calloc(run->load.streams, sizeof(*streams));
	_cleanup_free_ uint64_t *done = NULL;
	int r = -ENOMEM;

	if (run->load.op == STORAGE_LOOKUP)
		run->n = MIN(run->n, t->n_files);
	if (run->load.op == STORAGE_READ) {
		m.n_files = client_n_files_of(t, run->load.bytes);
		if (!m.n_files)
			return err_set(err, -EINVAL, "no file is long enough");
	}
	for (size_t i = 0; i < MAX_FDS; i++)
		m.fds[i] = -1;
	m.done = done = calloc(run->n, sizeof(*done));
	run->ns = calloc(run->n, sizeof(*run->ns));
	pthread_mutex_init(&m.lock, NULL);
	pthread_cond_init(&m.wake, NULL);
	if (streams && done && run->ns)
		r = run_streams(&m, streams);
	if (r == 0)
		sum_up(&m);
	pthread_cond_destroy(&m.wake);
	pthread_mutex_destroy(&m.lock);
	for (size_t i = 0; i < MAX_FDS; i++)
		if (m.fds[i] >= 0)
			close(m.fds[i]);
	return r < 0 ? err_set(err, r, "%s in the mount: %s",
			       storage_op_name(run->load.op), strerror(-r))
		     : 0;
}

void client_run_fini(struct client_run *run)
{
	free(run->ns);
	run->ns = NULL;
}
