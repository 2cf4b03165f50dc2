/* SPDX-License-Identifier: MIT */
/* Loads a trace file: detects its format and repeats its epochs. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/util.h"
#include "common/word.h"
#include "cachesim/cachesim_private.h"
#include "fs/layer/trace.h"

typedef int (*parse_fn)(const char *bytes, size_t n, const char *name,
			struct sim_trace *t, struct err *err);

/* NULL: no such format. */
static parse_fn parser_of(const char *path, const char *format, struct err *err)
{
	static const char *const words[] = { "csv", "bin" };
	static const parse_fn parsers[] = { sim_trace_parse_csv,
					    sim_trace_parse_bin };
	const char *dot = strrchr(path, '.');
	int i;

	i = format ? WORD_FIND(words, "trace format", format, err)
		   : WORD_FIND(words, "ending", dot ? dot + 1 : "", NULL);
	if (i >= 0)
		return parsers[i];
	err_set(err, -EINVAL,
		"%s: the suffix is neither .csv nor .bin; give "
		"--trace-format",
		path);
	return NULL;
}

static bool is_of_mount(const char *bytes, size_t n)
{
	size_t magic = strlen(TRACE_MAGIC);

	return n >= magic && !memcmp(bytes, TRACE_MAGIC, magic);
}

static int parse_file(const char *path, const char *format, struct sim_trace *t,
		      struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = util_open_file(AT_FDCWD, path, 0, &st);
	parse_fn parse;
	char *bytes;
	int r;

	if (fd == -EISDIR || fd == -ESPIPE)
		return err_set(err, -EINVAL, "%s: not a regular file", path);
	if (fd < 0)
		return err_set(err, fd, "%s: %s", path, strerror(-fd));
	if (!st.st_size)
		return err_set(err, -EINVAL, "%s: empty", path);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	parse = is_of_mount(bytes, (size_t)st.st_size)
			? sim_trace_parse_mount
			: parser_of(path, format, err);
	r = parse ? parse(bytes, (size_t)st.st_size, path, t, err) : -EINVAL;
	munmap(bytes, (size_t)st.st_size);
	return r;
}

/* Append all requests again, with their epochs and events. */
static int repeat(struct sim_trace *t, size_t n, size_t n_events,
		  size_t n_epochs)
{
	size_t event = 0, from = 0;
	int r = 0;

	for (size_t e = 0; r == 0 && e < n_epochs; e++) {
		for (size_t i = from; r == 0 && i < t->epoch_ends[e]; i++) {
			for (; r == 0 && event < n_events &&
			       t->events[event].at <= i;
			     event++)
				r = sim_trace_add_event(
					t, t->events[event].kind,
					t->events[event].object);
			if (r == 0)
				r = sim_trace_add_request(t, t->requests[i]);
		}
		from = t->epoch_ends[e];
		if (r == 0)
			r = sim_trace_end_epoch(t);
	}
	return r == 0 && from != n ? -EINVAL : r;
}

int sim_trace_load(const char *path, const char *format, uint64_t epochs,
		   struct sim_trace *t, struct err *err)
{
	int r = parse_file(path, format, t, err);
	size_t n = t->n_requests, n_events = t->n_events, n_epochs;

	if (r == 0 && !n)
		return err_set(err, -EINVAL, "%s: contains no requests", path);
	if (r == 0 && (!t->n_epochs || t->epoch_ends[t->n_epochs - 1] < n))
		r = sim_trace_end_epoch(t);
	n_epochs = t->n_epochs;
	for (uint64_t e = 1; r == 0 && e < epochs; e++)
		r = repeat(t, n, n_events, n_epochs);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}
