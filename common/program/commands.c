/* SPDX-License-Identifier: MIT */
#include "common/program/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "common/thread.h"
#include "common/util.h"

/* arbitrary: several times the longest command */
enum { LINE_MAX_BYTES = 256 };

struct commands {
	struct commands_config c;
	int fd, stop_fd;
	pthread_t thread;
	bool started;
	char text[LINE_MAX_BYTES]; /* the thread's: not yet a line */
	size_t n;
};

static void fail_command(const struct commands *c, struct err *err)
{
	err_prefix(err, "%s", c->c.path);
	c->c.failed(c->c.ctx, err);
}

/* Run the lines that are complete. */
static void run_lines(struct commands *c)
{
	char *line = c->text, *end = c->text + c->n, *eol;
	struct err err;

	while ((eol = memchr(line, '\n', (size_t)(end - line)))) {
		err = (struct err){ 0 };
		*eol = 0;
		if (c->c.run(c->c.ctx, line, &err) < 0)
			fail_command(c, &err);
		line = eol + 1;
	}
	c->n = (size_t)(end - line);
	memmove(c->text, line, c->n);
	if (c->n < sizeof(c->text))
		return;
	c->n = 0;
	err = (struct err){ 0 };
	err_set(&err, -E2BIG, "a line of more than %d bytes", LINE_MAX_BYTES);
	fail_command(c, &err);
}

static void *serve(void *arg)
{
	struct commands *c = arg;
	struct pollfd fds[] = { { .fd = c->fd, .events = POLLIN },
				{ .fd = c->stop_fd, .events = POLLIN } };

	while (!fds[1].revents) {
		ssize_t n;

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 || !fds[0].revents)
			continue;
		n = read(c->fd, c->text + c->n, sizeof(c->text) - c->n);
		if (n <= 0)
			continue; /* another reader was faster */
		c->n += (size_t)n;
		run_lines(c);
	}
	return NULL;
}

int commands_open(const char *path, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (mkfifo(path, 0600) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISFIFO(st.st_mode))
		return err_set(err, -EEXIST, "%s: not a FIFO", path);
	if (!util_follows(st.st_uid))
		return err_set(err, -EACCES, "%s belongs to user %u", path,
			       (unsigned)st.st_uid);
	return TAKE_FD(fd);
}

int commands_new(const struct commands_config *config, struct commands **ret,
		 struct err *err)
{
	struct commands *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(err, -ENOMEM, "out of memory");
	c->c = *config;
	c->stop_fd = eventfd(0, EFD_CLOEXEC);
	c->fd = r = commands_open(config->path, err);
	if (r >= 0)
		r = c->stop_fd < 0 ? -EMFILE
				   : thread_start(&c->thread, NULL, serve, c);
	c->started = r == 0;
	if (r < 0) {
		commands_free(c);
		return err_set(err, r, "%s: %s", config->path, strerror(-r));
	}
	*ret = c;
	return 0;
}

void commands_free(struct commands *c)
{
	if (!c)
		return;
	if (c->started) {
		eventfd_write(c->stop_fd, 1);
		pthread_join(c->thread, NULL);
	}
	util_closep(&c->fd);
	util_closep(&c->stop_fd);
	free(c);
}
