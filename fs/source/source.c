/* SPDX-License-Identifier: MIT */
#include "fs/source/source.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/util.h"

const struct source_ops *source_of(const char *spec, const char **ret_arg,
				   struct err *err)
{
	const char *colon = strchr(spec, ':');
	_cleanup_free_ char *word = NULL;
	const struct plugin *p;

	*ret_arg = spec;
	/* a path may have a colon */
	if (colon && access(spec, F_OK) < 0) {
		word = strndup(spec, (size_t)(colon - spec));
		*ret_arg = colon + 1;
	}
	p = plugin_find(source_table, "source", word ? word : "dir", err);
	if (!p) {
		err_set(err, -EINVAL, "no such kind of source");
		return NULL;
	}
	return container_of(p, const struct source_ops, plugin);
}

int source_pread(int fd, char *buf, size_t n, uint64_t offset, bool nowait)
{
	while (n) {
		struct iovec iov = { .iov_base = buf, .iov_len = n };
		ssize_t got = preadv2(fd, &iov, 1, (off_t)offset,
				      nowait ? RWF_NOWAIT : 0);

		if (got < 0 && errno == EINTR)
			continue;
		/* a file system without it: leave the read to a thread */
		if (got < 0 && nowait && errno == EOPNOTSUPP)
			return -EAGAIN;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ESTALE;
		buf += got;
		n -= (size_t)got;
		offset += (uint64_t)got;
	}
	return 0;
}

int source_list(const struct source_ops *ops, const char *arg, struct tree *ret,
		struct err *err)
{
	_cleanup_free_ void *state = calloc(1, ops->plugin.state_size + 1);
	int r;

	if (!state || tree_init(ret) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	r = ops->init(state, arg, err);
	if (r == 0)
		r = ops->scan(state, ret, err);
	ops->fini(state);
	return r;
}
