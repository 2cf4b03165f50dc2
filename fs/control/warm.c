/* SPDX-License-Identifier: MIT */
#include "fs/control/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "common/thread.h"
#include "common/util.h"
#include "fs/layer/fault.h"
#include "fs/server/server.h"

enum { N_RESULTS = WARM_FAILED + 1 };

struct warm {
	struct server *server;
	pthread_t thread;
	pthread_mutex_t begin_lock; /* the next two */
	bool started;		    /* the thread; not joined yet */
	bool ended;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t wake;
	bool stopping;
	bool busy; /* reading */
	uint32_t *nodes;
	size_t n, next;
	uint64_t requested, results[N_RESULTS];
};

/* Files to load, before they are in the queue. */
struct files {
	uint32_t *nodes;
	size_t n, allocated;
};

static void files_fini(struct files *f)
{
	free(f->nodes);
}

static int files_add(struct files *f, uint32_t node)
{
	int r = util_reserve(&f->nodes, &f->allocated, f->n + 1,
			     sizeof(*f->nodes));

	if (r == 0)
		f->nodes[f->n++] = node;
	return r;
}

/* --- the thread --------------------------------------------------------- */

/* Under the lock, which is released while it loads. */
static void load_file(struct warm *w, uint32_t node)
{
	uint32_t n = server_extents(w->server, node);

	for (uint32_t x = 0; x < n && !w->stopping; x++) {
		enum layer_warmth r;

		pthread_mutex_unlock(&w->lock);
		r = server_warm(w->server, node, x);
		pthread_mutex_lock(&w->lock);
		w->results[r]++;
	}
}

static void *run_warm(void *arg)
{
	struct warm *w = arg;

	LOCK_SCOPE(&w->lock);
	while (!w->stopping) {
		if (w->next < w->n) {
			load_file(w, w->nodes[w->next++]);
			continue;
		}
		w->busy = false;
		w->n = w->next = 0;
		pthread_cond_wait(&w->wake, &w->lock);
	}
	return NULL;
}

/* arbitrary: all files, several times */
static size_t most_waiting(const struct warm *w)
{
	return 4 * (size_t)server_tree(w->server)->n_files;
}

static int enqueue(struct warm *w, const struct files *f)
{
	uint32_t *more;
	int r = 0;

	pthread_mutex_lock(&w->lock);
	/* drop finished files from the queue */
	w->n -= w->next;
	if (w->n)
		memmove(w->nodes, w->nodes + w->next, w->n * sizeof(*more));
	w->next = 0;
	if (w->n && w->n + f->n > most_waiting(w)) {
		pthread_mutex_unlock(&w->lock);
		return -EBUSY;
	}
	more = reallocarray(w->nodes, w->n + f->n, sizeof(*more));
	if (!more) {
		r = -ENOMEM;
	} else {
		w->nodes = more;
		memcpy(more + w->n, f->nodes, f->n * sizeof(*more));
		w->n += f->n;
		if (!w->busy) {
			w->requested = 0;
			memset(w->results, 0, sizeof(w->results));
		}
		w->busy = true;
		for (size_t i = 0; i < f->n; i++)
			w->requested += server_extents(w->server, f->nodes[i]);
		pthread_cond_signal(&w->wake);
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}

/* --- the list ----------------------------------------------------------- */

static int match(const struct tree *t, const char *pattern, struct files *f,
		 struct err *err)
{
	bool all = !strcmp(pattern, "all");
	char path[PATH_MAX];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < t->n_nodes; i++)
		if (S_ISREG(t->nodes[i].mode) &&
		    (all ? !t->nodes[i].again
			 : (tree_path(t, i, path, sizeof(path)) == 0 &&
			    fault_glob(pattern, path))))
			r = files_add(f, tree_file(t, i));
	if (r == 0 && !f->n)
		return err_set(err, -ENOENT, "warm: no file matches '%s'",
			       pattern);
	return r;
}

static int read_lines(const struct tree *t, const char *path, FILE *in,
		      struct files *f, struct err *err)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0, number = 0;
	const size_t most_files = 4 * (size_t)t->n_files;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = getline(&line, &size, in)) > 0) {
		uint32_t node;

		number++;
		line[strcspn(line, "\n")] = 0;
		if (!*line)
			continue;
		node = tree_find(t, line);
		if (node == TREE_NONE || !S_ISREG(t->nodes[node].mode))
			return err_set(
				err, -ENOENT,
				"warm: %s:%zu: the mount has no file '%s'",
				path, number, line);
		if (f->n >= most_files)
			return err_set(
				err, -E2BIG,
				"warm: %s: many times more lines than files",
				path);
		r = files_add(f, tree_file(t, node));
	}
	if (r == 0 && ferror(in))
		return err_set(err, -EIO, "warm: %s: cannot be read", path);
	return r;
}

static int read_list(const struct warm *w, const char *path, struct files *f,
		     struct err *err)
{
	_cleanup_fclose_ FILE *in = NULL;
	struct stat st;
	int fd, r;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_set(err, -errno, "warm: %s: %s", path,
			       strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !(in = fdopen(fd, "r"))) {
		close(fd);
		return err_set(err, -EINVAL, "warm: %s: not a regular file",
			       path);
	}
	r = read_lines(server_tree(w->server), path, in, f, err);
	if (r == 0 && !f->n)
		return err_set(err, -ENOENT, "warm: %s: contains no paths",
			       path);
	return r;
}

static int start_thread(struct warm *w)
{
	int r = 0;

	LOCK_SCOPE(&w->begin_lock);
	if (w->ended)
		r = -ECONNABORTED;
	else if (!w->started)
		r = -pthread_create(&w->thread, NULL, run_warm, w);
	if (r == 0)
		w->started = true;
	return r;
}

int warm_begin(struct warm *w, const char *list, struct err *err)
{
	_cleanup_(files_fini) struct files f = { 0 };
	int r = *list == '/' ? read_list(w, list, &f, err)
			     : match(server_tree(w->server), list, &f, err);

	if (r == 0)
		r = start_thread(w);
	if (r == 0)
		r = enqueue(w, &f);
	return r < 0 ? err_set(err, r, "warm: %s", strerror(-r)) : 0;
}

json_t *warm_json(struct warm *w)
{
	const uint64_t *results = w->results;

	LOCK_SCOPE(&w->lock);
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:b}", "requested",
			 (json_int_t)w->requested, "loaded",
			 (json_int_t)results[WARM_LOADED], "cached",
			 (json_int_t)results[WARM_CACHED], "rejected",
			 (json_int_t)results[WARM_REJECTED], "failed",
			 (json_int_t)results[WARM_FAILED], "done", !w->busy);
}

/* --- start and stop ----------------------------------------------------- */

int warm_new(struct server *server, struct warm **ret)
{
	struct warm *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->server = server;
	pthread_mutex_init(&w->begin_lock, NULL);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	*ret = w;
	return 0;
}

void warm_stop(struct warm *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_lock(&w->begin_lock);
	w->ended = true;
	if (w->started)
		pthread_join(w->thread, NULL);
	w->started = false;
	pthread_mutex_unlock(&w->begin_lock);
}

void warm_free(struct warm *w)
{
	if (!w)
		return;
	warm_stop(w);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	pthread_mutex_destroy(&w->begin_lock);
	free(w->nodes);
	free(w);
}
