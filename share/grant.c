/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"
#include "share/server.h"

/* Anybody in the container may connect: its folder is the permission. */
enum { SOCKET_MODE = 0666, FOLDER_MODE = 0755, PARENT_MODE = 0700 };

/* --- folders of sockets --------------------------------------------------- */

/* The folder, which is created with this mode if it is missing, must be private
 * to this user. -EACCES: it is not; -errno; with a text. */
static int own_folder(const char *folder, mode_t mode, struct err *err)
{
	mode_t mask = umask((mode_t)~mode & 0777);
	int r = mkdir(folder, mode) < 0 && errno != EEXIST ? -errno : 0;
	struct stat st;

	umask(mask);
	if (r == 0 && lstat(folder, &st) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, r, "%s: %s", folder, strerror(-r));
	/* in /tmp any user can create a folder of this name first */
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, -EACCES,
			       "%s: not a private folder of this user; choose "
			       "another --socket",
			       folder);
	return 0;
}

int server_make_folder(const char *path, struct err *err)
{
	_cleanup_free_ char *folder = strdup(path);

	if (!folder)
		return err_set(err, -ENOMEM, "out of memory");
	*strrchr(folder, '/') = '\0';
	return own_folder(folder, 0700, err);
}

/* --- grants --------------------------------------------------------------- */

static struct grant *find_grant(const struct server *s, const char *name)
{
	struct grant *g = s->grants;

	while (g && (g->revoked || strcmp(g->name, name) != 0))
		g = g->next;
	return g;
}

/* It becomes part of a path. */
static int check_name(const char *name, struct err *err)
{
	if (name[0] && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz"
					  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789-_")])
		return 0;
	return err_set(err, -EINVAL, "'%s' is not a name of a grant", name);
}

/* SOCKET.d/NAME/SOCKET. Malloc'ed; NULL: no memory. */
static char *socket_in(const struct server *s, const char *folder)
{
	const char *slash = strrchr(s->config.path, '/');

	return util_text("%s/%s", folder, slash ? slash + 1 : s->config.path);
}

/* SOCKET.d, SOCKET.d/NAME, and the socket in it. */
static int open_socket(struct server *s, struct grant *g, struct err *err)
{
	_cleanup_free_ char *folder =
		gpud_grant_folder(s->config.path, g->name);
	_cleanup_free_ char *parent = NULL;
	int r;

	g->path = folder ? socket_in(s, folder) : NULL;
	if (g->path)
		parent = strndup(folder,
				 (size_t)(strrchr(folder, '/') - folder));
	if (!parent)
		return err_set(err, -ENOMEM, "out of memory");
	r = own_folder(parent, PARENT_MODE, err);
	if (r == 0)
		r = own_folder(folder, FOLDER_MODE, err);
	if (r == 0)
		r = local_socket_listen(g->path, SOCKET_MODE, &g->place, err);
	if (r < 0)
		return r;
	g->listener.fd = r;
	r = events_add(&s->events, &g->listener, EPOLLIN);
	return r < 0 ? err_set(err, r, "epoll: %s", strerror(-r)) : 0;
}

static void free_grant(struct grant *g)
{
	if (g->listener.fd >= 0 && !g->revoked)
		local_socket_leave(g->path, &g->place);
	events_close(&g->server->events, &g->listener);
	free(g->path);
	free(g);
}

static int make(struct server *s, const char *name, struct grant **ret,
		struct err *err)
{
	struct grant *g;
	size_t n = 0;
	int r;

	for (g = s->grants; g; g = g->next)
		n++;
	if (n >= GRANTS_MOST)
		return err_set(err, -EAGAIN, "%zu grants already", n);
	g = calloc(1, sizeof(*g));
	if (!g)
		return err_set(err, -ENOMEM, "out of memory");
	g->listener = (struct event){ .fd = -1, .fn = s->knock_grant };
	g->server = s;
	snprintf(g->name, sizeof(g->name), "%s", name);
	r = open_socket(s, g, err);
	if (r < 0) {
		free_grant(g);
		return r;
	}
	g->next = s->grants;
	s->grants = g;
	*ret = g;
	return 0;
}

int grant_set(struct server *s, const struct gpud_grant *q, struct err *err)
{
	struct share_quota fresh = { 0 };
	struct grant *g;
	int r = check_name(q->name, err);

	if (r == 0 && q->gpu >= s->config.share.n_gpus)
		r = err_set(err, -EINVAL, "GPU %u: the server has %u", q->gpu,
			    s->config.share.n_gpus);
	if (r == 0 &&
	    (q->part_milli > SHARE_WHOLE || (q->part_milli && !q->bytes)))
		r = err_set(err, -EINVAL,
			    "%u thousandths of a GPU's time, and %" PRIu64
			    " bytes",
			    q->part_milli, q->bytes);
	if (r < 0)
		return r;
	g = find_grant(s, q->name);
	r = share_set_part(s->share, g ? &g->quota : &fresh, q->gpu,
			   q->part_milli, err);
	if (r == 0 && !g) {
		r = make(s, q->name, &g, err);
		if (r == 0)
			g->quota = fresh;
		else
			share_end_parts(s->share, &fresh);
	}
	if (r < 0)
		return r;
	g->quota.bytes[q->gpu] = MIN(q->bytes, s->share->config.memory_bytes);
	share_admit(s->share);
	return 0;
}

int grant_revoke(struct server *s, const char *name, struct err *err)
{
	_cleanup_free_ char *folder = gpud_grant_folder(s->config.path, name);
	_cleanup_free_ char *path = folder ? socket_in(s, folder) : NULL;
	struct grant *g = find_grant(s, name);
	int r = check_name(name, err);

	if (r == 0 && !path)
		r = err_set(err, -ENOMEM, "out of memory");
	if (r < 0)
		return r;
	if (g) {
		g->revoked = true;
		share_end_parts(s->share, &g->quota);
	}
	unlink(path);
	for (uint32_t i = 0; g && i < s->n_clients; i++)
		if (s->clients[i]->grant == g)
			client_refuse(s->clients[i], -EPERM,
				      "the grant was revoked");
	rmdir(folder);
	return 0;
}

uint64_t grant_memory(const struct grant *g, uint32_t n_gpus)
{
	const uint64_t *bytes = g->quota.bytes;
	uint64_t best = 0;

	for (uint32_t i = 0; i < SHARE_MAX_GPUS; i++) {
		uint32_t n = 0;

		for (uint32_t k = 0; k < SHARE_MAX_GPUS; k++)
			n += bytes[k] >= bytes[i];
		if (n >= n_gpus)
			best = MAX(best, bytes[i]);
	}
	return best;
}

/* No client of a revoked one is left: dead ones are reaped before. */
void grant_reap(struct server *s, bool all)
{
	struct grant **at = &s->grants;

	while (*at) {
		struct grant *g = *at;

		if (!all && !g->revoked) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		free_grant(g);
	}
}
