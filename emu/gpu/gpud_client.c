/* SPDX-License-Identifier: MIT */
#include "emu/gpu/gpud_client.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/util.h"

/* One read at least this large. arbitrary: many small messages */
enum { READ_BYTES = 4096 };

char *gpud_default_path(void)
{
	const char *dir = secure_getenv("XDG_RUNTIME_DIR");
	char *path;
	int n;

	if (dir && dir[0])
		n = asprintf(&path, "%s/gpemu-gpud.sock", dir);
	else if (geteuid() == 0)
		n = asprintf(&path, "/run/gpemu-gpud.sock");
	else
		n = asprintf(&path, "/tmp/gpemu-%u/gpud.sock",
			     (unsigned)geteuid());
	return n < 0 ? NULL : path;
}

int gpud_given(char **ret_path, char **ret_user, struct err *err)
{
	const char *paths = secure_getenv("GPEMU_GPU_SERVER"),
		   *user = secure_getenv("GPEMU_SERVER_USER");

	*ret_path = *ret_user = NULL;
	if (!paths || !paths[0])
		return 0;
	*ret_path = strndup(paths, strcspn(paths, ":"));
	if (user && user[0])
		*ret_user = strdup(user);
	if (*ret_path && (*ret_user || !user || !user[0]))
		return 0;
	free(*ret_path);
	*ret_path = NULL;
	return err_set(err, -ENOMEM, "out of memory");
}

int gpud_user(const char *name, uid_t *ret)
{
	const struct passwd *p;
	char *end;
	unsigned long uid = strtoul(name, &end, 10);

	if (name[0] >= '0' && name[0] <= '9') {
		if (*end || uid >= UINT32_MAX)
			return -EINVAL;
		*ret = (uid_t)uid;
		return 0;
	}
	p = getpwnam(name);
	if (!p)
		return -EINVAL;
	*ret = p->pw_uid;
	return 0;
}

/* Any user may listen at a path: which ones are trusted? */
static int check_server(const char *path, int fd, const char *user,
			struct err *err)
{
	struct ucred cred = { 0 };
	socklen_t n = sizeof(cred);
	uid_t trusted = geteuid();

	if (user && gpud_user(user, &trusted) < 0)
		return err_set(err, -EINVAL, "unknown user '%s'", user);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (cred.uid == 0 || cred.uid == trusted)
		return 0;
	return err_set(err, -EACCES,
		       "%s: the server belongs to user %u; to trust it, name "
		       "that user (--server-user)",
		       path, (unsigned)cred.uid);
}

static int connect_to(const char *path, int fd, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(a.sun_path))
		return err_set(err, -ENAMETOOLONG,
			       "%s: path too long for a socket", path);
	strcpy(a.sun_path, path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return 0;
	if (errno == EAGAIN) /* its queue of clients is full */
		return err_set(err, -EAGAIN,
			       "%s: gpemu-gpud accepts no connections; its "
			       "listen queue is full",
			       path);
	if (errno == ENOENT || errno == ECONNREFUSED)
		return err_set(err, -ENODEV,
			       "%s: no gpemu-gpud listens there; start one "
			       "with --socket %s",
			       path, path);
	return err_set(err, -errno, "%s: %s", path, strerror(errno));
}

int gpud_patience(struct gpud_client *c, unsigned seconds, struct err *err)
{
	struct timeval t = { .tv_sec = seconds };

	/* the timeout of sending is also that of connecting */
	if (setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) < 0 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) < 0)
		return err_set(err, -errno, "%s: %s", c->path, strerror(errno));
	c->patience_s = seconds;
	return 0;
}

static int open_socket(const char *path, const char *user, int flags,
		       unsigned seconds, struct gpud_client *ret,
		       struct err *err)
{
	int r;

	*ret = (struct gpud_client){ .fd = -1 };
	ret->path = strdup(path);
	ret->buf = malloc(READ_BYTES);
	if (!ret->path || !ret->buf)
		return err_set(err, -ENOMEM, "out of memory");
	ret->size = READ_BYTES;
	ret->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	if (ret->fd < 0)
		return err_set(err, -errno, "socket: %s", strerror(errno));
	r = gpud_patience(ret, seconds, err);
	if (r == 0)
		r = connect_to(path, ret->fd, err);
	return r < 0 ? r : check_server(path, ret->fd, user, err);
}

int gpud_begin(const char *path, const char *user, struct gpud_client *ret,
	       struct err *err)
{
	return open_socket(path, user, SOCK_NONBLOCK, GPUD_PATIENCE_S, ret,
			   err);
}

int gpud_open_within(const char *path, const char *user, unsigned seconds,
		     struct gpud_client *ret, struct err *err)
{
	struct gpud_msg m;
	int r = open_socket(path, user, 0, seconds, ret, err);

	if (r == 0)
		r = gpud_receive(ret, &m, err);
	if (r == 0 && m.type != GPUD_WELCOME)
		r = err_set(err, -EPROTO,
			    "%s: received a %s instead of a welcome", path,
			    gpud_type_name(m.type));
	if (r == 0)
		ret->server = m.welcome;
	return r;
}

int gpud_open(const char *path, const char *user, struct gpud_client *ret,
	      struct err *err)
{
	return gpud_open_within(path, user, GPUD_PATIENCE_S, ret, err);
}

void gpud_close(struct gpud_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->path);
	free(c->buf);
	*c = (struct gpud_client){ .fd = -1 };
}

static int gone(const struct gpud_client *c, int error, struct err *err)
{
	return err_set(err, -ECONNRESET,
		       "%s: gpemu-gpud closed the connection%s%s", c->path,
		       error ? ": " : "", error ? strerror(error) : "");
}

/* The last message may be an ERROR with the reason. */
static int last_words(struct gpud_client *c, int error, struct err *err)
{
	struct gpud_msg m;
	int r;

	while ((r = gpud_receive(c, &m, err)) == 0)
		;
	return r == -ECONNRESET ? gone(c, error, err) : r;
}

int gpud_send(struct gpud_client *c, const struct gpud_msg *m, struct err *err)
{
	char buf[GPUD_MAX_REQUEST], *p = buf;
	size_t n = gpud_size(m);

	gpud_encode(m, buf);
	while (n) {
		ssize_t k = send(c->fd, p, n, MSG_NOSIGNAL);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return last_words(c, errno, err);
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/* Reserve space for READ_BYTES more. */
static int make_room(struct gpud_client *c)
{
	char *buf;

	memmove(c->buf, c->buf + c->start, c->n);
	c->start = 0;
	if (c->size - c->n >= READ_BYTES)
		return 0;
	buf = realloc(c->buf, 2 * c->size + READ_BYTES);
	if (!buf)
		return -ENOMEM;
	c->buf = buf;
	c->size = 2 * c->size + READ_BYTES;
	return 0;
}

/* Do not trust the errno of a server: two values would be mistaken for the end
 * of an epoch and for an interrupt. */
static int code_of(const struct gpud_error *e)
{
	if (e->code == 0 || e->code > MAX_ERRNO || e->code == ENODATA ||
	    e->code == ECANCELED)
		return -EPROTO;
	return -(int)e->code;
}

int gpud_receive(struct gpud_client *c, struct gpud_msg *ret, struct err *err)
{
	for (;;) {
		int r = gpud_decode(c->buf + c->start, c->n, GPUD_MAX_MESSAGE,
				    ret, err);
		ssize_t k;

		if (r < 0) {
			err_prefix(err, "%s", c->path);
			return r;
		}
		if (r > 0) {
			c->start += (size_t)r;
			c->n -= (size_t)r;
			break;
		}
		if (make_room(c) < 0)
			return err_set(err, -ENOMEM, "out of memory");
		k = recv(c->fd, c->buf + c->n, c->size - c->n, 0);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && errno == EAGAIN)
			return err_set(err, -EAGAIN,
				       "%s: gpemu-gpud has not answered for "
				       "%u s; is it stopped?",
				       c->path, c->patience_s);
		if (k <= 0)
			return gone(c, k < 0 ? errno : 0, err);
		c->n += (size_t)k;
	}
	if (ret->type != GPUD_ERROR)
		return 0;
	/* prefix the text with the path of the server */
	return err_set(err, code_of(&ret->error), "%s: %s", c->path,
		       ret->error.text);
}

void gpud_stop(struct gpud_client *c)
{
	shutdown(c->fd, SHUT_RDWR);
}
