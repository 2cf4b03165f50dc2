/* SPDX-License-Identifier: MIT */
#include "fs/upper/upper_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "common/thread.h"
#include "common/util.h"

int upper_has_room(struct upper *u, bool other)
{
	uint64_t n;

	LOCK_SCOPE(&u->lock);
	n = u->n_fds;
	return n < u->most_fds / 4 * (other ? 2 : 3) ? 0 : -EMFILE;
}

static void node_free(struct upper_node *n)
{
	struct upper_name *name, *next;

	if (n->fd >= 0)
		close(n->fd);
	DL_FOREACH_SAFE (n->names, name, next)
		free(name);
	free(n);
}

void upper_free_nodes(struct upper *u)
{
	struct upper_node *n, *next;

	HASH_CLEAR(hh, u->names);
	HASH_CLEAR(by_real, u->reals);
	HASH_ITER (by_ino, u->inos, n, next) {
		HASH_DELETE(by_ino, u->inos, n);
		node_free(n);
	}
}

uint32_t upper_object(const struct upper *u, uint64_t ino)
{
	/* a number that was used before, after 2^32, only places a file where
	 * another was */
	return upper_has(ino) ? u->tree->n_nodes + (uint32_t)(ino - UPPER_INO)
			      : (uint32_t)(ino - 1);
}

bool upper_is_taken(const struct upper *u, const struct upper_at *at)
{
	if (upper_has(at->folder))
		return false;
	return (at->folder == TREE_ROOT + 1ull &&
		!strcmp(at->name, TREE_CONTROL_NAME)) ||
	       tree_lookup(u->tree, (uint32_t)(at->folder - 1), at->name) !=
		       TREE_NONE;
}

/* --- paths ---------------------------------------------------------------- */

/* Put a name, and a slash where one follows, before buf + *at. */
static bool prepend(char *buf, size_t *at, const char *name)
{
	size_t n = strlen(name), slash = buf[*at] != 0;

	if (n + slash > *at)
		return false;
	if (slash)
		buf[--*at] = '/';
	*at -= n;
	memcpy(buf + *at, name, n);
	return true;
}

static struct upper_node *node_of(const struct upper *u, uint64_t ino)
{
	struct upper_node *n;

	HASH_FIND(by_ino, u->inos, &ino, sizeof(ino), n);
	return n;
}

/* The names from `ino` up to the folder of the dataset that they are in, or
 * -errno. */
static int prepend_nodes(struct upper *u, uint64_t *ino, char *buf, size_t *at)
{
	int r = 0;

	LOCK_SCOPE(&u->lock);
	while (r == 0 && upper_has(*ino)) {
		const struct upper_node *n = node_of(u, *ino);

		if (!n || !n->names)
			r = -ESTALE;
		else if (!prepend(buf, at, n->names->text))
			r = -ENAMETOOLONG;
		else
			*ino = n->names->folder;
	}
	return r;
}

int upper_path_of(struct upper *u, uint64_t ino, const char *name, char *buf)
{
	char folder[PATH_MAX];
	size_t at = PATH_MAX - 1;
	int r;

	buf[at] = 0;
	if (name && !prepend(buf, &at, name))
		return -ENAMETOOLONG;
	r = prepend_nodes(u, &ino, buf, &at);
	if (r < 0)
		return r;
	if (ino != TREE_ROOT + 1ull) {
		r = tree_path(u->tree, (uint32_t)(ino - 1), folder,
			      sizeof(folder));
		if (r < 0 || !prepend(buf, &at, folder))
			return r < 0 ? r : -ENAMETOOLONG;
	} else if (!buf[at]) {
		prepend(buf, &at, ".");
	}
	memmove(buf, buf + at, PATH_MAX - at);
	return 0;
}

char *upper_path(struct upper *u, uint64_t ino, const char *name)
{
	char path[PATH_MAX];

	/* too long for a rule or a trace: an open will report it */
	return strdup(upper_path_of(u, ino, name, path) == 0 ? path : "?");
}

/* Of a node without a name. -ENOENT: it has one. */
static int left_fd(struct upper *u, uint64_t ino)
{
	const struct upper_node *n;
	int fd = -ENOENT;

	LOCK_SCOPE(&u->lock);
	n = upper_has(ino) ? node_of(u, ino) : NULL;
	if (n && n->fd >= 0) {
		fd = fcntl(n->fd, F_DUPFD_CLOEXEC, 0);
		fd = fd < 0 ? -errno : fd;
	}
	return fd;
}

int upper_fd(struct upper *u, uint64_t ino)
{
	char path[PATH_MAX];
	int r = left_fd(u, ino);

	if (r != -ENOENT)
		return r;
	r = upper_path_of(u, ino, NULL, path);
	return r < 0 ? r : beneath_open(&u->dir, path, O_PATH, false);
}

/* --- nodes ---------------------------------------------------------------- */

static unsigned key_bytes(const char *text)
{
	return (unsigned)(sizeof(uint64_t) + strlen(text));
}

struct upper_name *upper_name_new(uint64_t folder, const char *text)
{
	size_t n = strlen(text) + 1;
	struct upper_name *name = calloc(1, sizeof(*name) + n);

	if (!name)
		return NULL;
	name->folder = folder;
	memcpy(name->text, text, n);
	return name;
}

/* Under the lock. */
static struct upper_name *find_name(const struct upper *u, uint64_t folder,
				    const char *text)
{
	union {
		struct upper_name name;
		char bytes[sizeof(struct upper_name) + PATH_MAX];
	} key;
	struct upper_name *found;

	if (strlen(text) >= PATH_MAX)
		return NULL;
	key.name.folder = folder;
	strcpy(key.bytes + offsetof(struct upper_name, text), text);
	HASH_FIND(hh, u->names, &key.name.folder, key_bytes(text), found);
	return found;
}

/* Under the lock: a list of the nodes, from `n` up, that nothing needs any
 * more. */
static struct upper_node *take_unused(struct upper *u, struct upper_node *n)
{
	struct upper_node *list = NULL, *todo = n, *in;
	struct upper_name *name, *next;

	if (n)
		n->next = NULL;
	while ((n = todo)) {
		todo = n->next;
		if (n->lookups || n->refs)
			continue;
		HASH_DELETE(by_ino, u->inos, n);
		if (n->by_real.tbl)
			HASH_DELETE(by_real, u->reals, n);
		u->n_fds -= n->fd >= 0;
		DL_FOREACH_SAFE (n->names, name, next) {
			if (name->hh.tbl)
				HASH_DELETE(hh, u->names, name);
			in = name->in;
			if (in && !--in->refs) {
				in->next = todo;
				todo = in;
			}
		}
		n->next = list;
		list = n;
	}
	return list;
}

static void free_list(struct upper_node *list)
{
	while (list) {
		struct upper_node *next = list->next;

		node_free(list);
		list = next;
	}
}

/* Under the lock: one more name of a node. Without memory for it in the table a
 * lookup finds the node by its real file. */
static void add_name(struct upper *u, struct upper_node *n,
		     struct upper_name *name)
{
	name->node = n;
	name->in = upper_has(name->folder) ? node_of(u, name->folder) : NULL;
	if (name->in)
		name->in->refs++;
	DL_PREPEND(n->names, name); /* a sync is that of the newest */
	HASH_ADD_KEYPTR(hh, u->names, &name->folder, key_bytes(name->text),
			name);
	if (n->fd >= 0) {
		close(n->fd);
		n->fd = -1;
		u->n_fds--;
	}
}

/* Under the lock; the list of the folders that nothing needs any more. */
static struct upper_node *drop_name(struct upper *u, struct upper_name *name)
{
	struct upper_node *in = name->in;

	if (name->hh.tbl)
		HASH_DELETE(hh, u->names, name);
	DL_DELETE(name->node->names, name);
	free(name);
	if (in)
		in->refs--;
	return take_unused(u, in);
}

/* Under the lock. NULL: no memory. */
static struct upper_node *node_new(struct upper *u,
				   const struct upper_real *real)
{
	struct upper_node *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->ino = UPPER_INO + u->n_made++;
	n->real = *real;
	n->fd = -1;
	HASH_ADD(by_ino, u->inos, ino, sizeof(n->ino), n);
	if (!n->by_ino.tbl) {
		free(n);
		return NULL;
	}
	HASH_ADD(by_real, u->reals, real, sizeof(n->real), n);
	return n;
}

/* Under the lock: the node of a file. What was just made is a file of its own:
 * a node of the same number is one that was removed behind our back. */
static struct upper_node *node_real(struct upper *u,
				    const struct upper_real *real, bool fresh)
{
	struct upper_node *n;

	HASH_FIND(by_real, u->reals, real, sizeof(*real), n);
	if (n && fresh) {
		HASH_DELETE(by_real, u->reals, n);
		n->by_real.tbl = NULL;
		n = NULL;
	}
	return n ? n : node_new(u, real);
}

uint64_t upper_note(struct upper *u, uint64_t folder, const char *text,
		    const struct stat *st, bool fresh)
{
	const struct upper_real real = { st->st_dev, st->st_ino };
	struct upper_name *name = upper_name_new(folder, text), *known;
	struct upper_node *n;
	uint64_t ino = 0;

	if (!name)
		return 0;
	pthread_mutex_lock(&u->lock);
	known = find_name(u, folder, text);
	n = known ? known->node : node_real(u, &real, fresh);
	if (n) {
		if (!known)
			add_name(u, n, TAKE_PTR(name));
		n->lookups++;
		n->unsynced |= fresh;
		ino = n->ino;
	}
	pthread_mutex_unlock(&u->lock);
	free(name);
	return ino;
}

void upper_forget(struct upper *u, uint64_t ino, uint64_t lookups)
{
	struct upper_node *n, *list = NULL;

	pthread_mutex_lock(&u->lock);
	n = node_of(u, ino);
	if (n) {
		n->lookups -= MIN(lookups, n->lookups);
		list = take_unused(u, n);
	}
	pthread_mutex_unlock(&u->lock);
	free_list(list);
}

struct upper_node *upper_get(struct upper *u, uint64_t ino)
{
	struct upper_node *n;

	LOCK_SCOPE(&u->lock);
	n = node_of(u, ino);
	if (n)
		n->refs++;
	return n;
}

void upper_put(struct upper *u, struct upper_node *n)
{
	struct upper_node *list;

	pthread_mutex_lock(&u->lock);
	n->refs--;
	list = take_unused(u, n);
	pthread_mutex_unlock(&u->lock);
	free_list(list);
}

bool upper_is_open(struct upper *u, int fd)
{
	const struct upper_node *n = NULL;
	struct upper_real real;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	real = (struct upper_real){ st.st_dev, st.st_ino };
	LOCK_SCOPE(&u->lock);
	HASH_FIND(by_real, u->reals, &real, sizeof(real), n);
	return n && n->taken.opens;
}

bool upper_knows(struct upper *u, uint64_t folder, const char *name)
{
	LOCK_SCOPE(&u->lock);

	return find_name(u, folder, name);
}

void upper_unname(struct upper *u, uint64_t folder, const char *text, int fd)
{
	struct upper_node *list = NULL, *n;
	struct upper_name *name;

	pthread_mutex_lock(&u->lock);
	name = find_name(u, folder, text);
	if (name) {
		n = name->node;
		list = drop_name(u, name);
		if (!n->names && fd >= 0) {
			n->fd = TAKE_FD(fd);
			u->n_fds++;
		}
	}
	pthread_mutex_unlock(&u->lock);
	free_list(list);
	if (fd >= 0) /* the kernel forgot it meanwhile, or it has other names */
		close(fd);
}

void upper_rekey(struct upper *u, uint64_t folder, const char *text,
		 struct upper_name *to)
{
	struct upper_node *list = NULL, *n;
	struct upper_name *name;

	pthread_mutex_lock(&u->lock);
	name = find_name(u, folder, text);
	if (name) {
		n = name->node;
		n->unsynced = true;
		add_name(u, n, TAKE_PTR(to));
		list = drop_name(u, name);
	}
	pthread_mutex_unlock(&u->lock);
	free_list(list);
	free(to);
}

void upper_swap(struct upper *u, uint64_t folder, const char *text, uint64_t to,
		const char *to_text)
{
	struct upper_name *a, *b;

	LOCK_SCOPE(&u->lock);
	a = find_name(u, folder, text);
	b = find_name(u, to, to_text);
	if (a && b && a->node != b->node) {
		struct upper_node *n = a->node;

		DL_DELETE(n->names, a);
		DL_DELETE(b->node->names, b);
		a->node = b->node;
		b->node = n;
		DL_APPEND(a->node->names, a);
		DL_APPEND(b->node->names, b);
		a->node->unsynced = b->node->unsynced = true;
	}
}
