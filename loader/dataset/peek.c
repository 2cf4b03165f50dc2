/* SPDX-License-Identifier: MIT */
#include "loader/dataset/peek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* The least that one read fetches: it includes the headers of small members,
 * and no device reads less. Source: the page size */
enum { AHEAD = 4096 };

int peek_init(struct peek *p, int fd, uint64_t size)
{
	*p = (struct peek){ .fd = fd, .size = size };
	p->window = malloc(PEEK_MOST);
	return p->window ? 0 : -ENOMEM;
}

void peek_init_memory(struct peek *p, const void *bytes, size_t n)
{
	*p = (struct peek){ .fd = -1, .bytes = bytes, .size = n };
}

void peek_fini(struct peek *p)
{
	free(p->window);
	p->window = NULL;
}

/* All `n` bytes; -ENODATA: the file ends before. */
static int read_all(struct peek *p, uint64_t at, size_t n, uint8_t *to)
{
	ssize_t got = util_read_all(p->fd, to, n, (int64_t)at);

	if (got < 0)
		return (int)got;
	p->bytes_read += (uint64_t)got;
	return (size_t)got < n ? -ENODATA : 0;
}

int peek_get(struct peek *p, uint64_t at, size_t n, const uint8_t **ret)
{
	size_t want = MAX(n, AHEAD);
	int r;

	if (at > p->size || n > p->size - at || n > PEEK_MOST)
		return -ENODATA;
	if (p->bytes) {
		*ret = p->bytes + at;
		return 0;
	}
	if (at < p->at || at - p->at > p->n || n > p->n - (at - p->at)) {
		want = MIN(want, p->size - at);
		p->n = 0;
		r = read_all(p, at, want, p->window);
		if (r < 0)
			return r;
		p->at = at;
		p->n = want;
	}
	*ret = p->window + (at - p->at);
	return 0;
}

int peek_copy(struct peek *p, uint64_t at, size_t n, void *ret)
{
	if (at > p->size || n > p->size - at)
		return -ENODATA;
	if (!p->bytes)
		return read_all(p, at, n, ret);
	if (n)
		memcpy(ret, p->bytes + at, n);
	return 0;
}
