/* SPDX-License-Identifier: MIT */
/*
 * Plug-in kind `layout`: what the bytes of a trace mean. A layout reads
 * requests, front to back, into the objects and requests of a trace, and counts
 * what it leaves out (struct sim_read).
 *
 * Most traces are text with columns: a layout that differs from others only in
 * its columns is layout_csv_read with other defaults, see layout_msr.c.
 */
#ifndef GPEMU_CACHESIM_LAYOUT_H
#define GPEMU_CACHESIM_LAYOUT_H

#include "cachesim/cachesim.h"
#include "common/conf/conf.h"
#include "common/plugin.h"
#include "fs/cache/cache_index.h"

/*
 * The bytes of a trace, front to back: a file, a pipe or bytes in memory, as
 * they are or compressed by zstd, which the first bytes tell. A regular file is
 * mapped; of all others a window of 1 MiB is in memory, or the longest line.
 */
struct sim_input {
	const char *name;     /* for messages; borrowed */
	const char *at, *end; /* the window: bytes to be taken */
	bool last;	      /* nothing is behind it */
	bool compressed;      /* by zstd */
	struct err *err;      /* borrowed */
	/* private */
	int fd;	      /* -1: nothing to read */
	size_t grain; /* bytes of a read */
	char *buffer;
	size_t size;
	char *raw; /* as read, or mapped: not yet unpacked */
	size_t raw_at, raw_n;
	size_t mapped; /* bytes to unmap; 0: raw is malloc'ed or borrowed */
	bool own_raw;
	void *unpacker;
	bool inside; /* a frame has begun and not ended */
};

/* "-": standard input. Errors of open(2), -EISDIR, -EINVAL (empty; compressed
 * in another way), -ENOMEM, with a text. Close it, failed or not. */
int sim_input_open(struct sim_input *in, const char *path, struct err *err);
/* A descriptor, which it closes, read `grain` bytes at a time. */
int sim_input_open_fd(struct sim_input *in, int fd, size_t grain,
		      const char *name, struct err *err);
/* Bytes in memory, borrowed. */
int sim_input_open_memory(struct sim_input *in, const void *bytes, size_t n,
			  const char *name, struct err *err);
void sim_input_close(struct sim_input *in);

/* At least `need` bytes in the window, or all that are left; moves it. Errors
 * of read(2), -EINVAL (damaged or truncated), -ENOMEM, with a text. */
int sim_input_fill(struct sim_input *in, size_t need);
/* The next line, without its newline: 1; 0 behind the last. Valid until the
 * next call. Errors as above; -E2BIG: longer than 16 MiB. */
int sim_input_line(struct sim_input *in, const char **ret,
		   const char **ret_end);

/* arbitrary: a larger size is a wrong column; keeps 2^13 such sums below 2^63
 */
#define SIM_MOST_BYTES (1ull << 50)

struct layout_ops {
	struct plugin plugin;
	/* Do these first bytes say that it is this layout? NULL: never. */
	bool (*looks)(const char *head, size_t n);
	/* Does the name of the file (without .zst)? NULL: never. */
	bool (*named)(const char *name);
	/*
	 * Read to the end. `options`: its own. -EINVAL with "name:line:column:
	 * what" or "name: offset N: what"; -ENOMEM, -E2BIG; errors of
	 * sim_input_fill. Safe on any input.
	 */
	int (*read)(struct sim_input *in, const void *options,
		    struct sim_trace *t, struct err *err);
};

extern const struct plugin *const layout_table[];

/* --- for layouts --------------------------------------------------------- */

/* Room for one more item of `item` bytes in *(void **)pp. -ENOMEM, -E2BIG. */
int sim_grow(void *pp, size_t n, size_t *allocated, size_t item);
/* The number of an existing or new object; `index` has 4 bytes per key.
 * -ENOMEM, -E2BIG. */
int sim_trace_number(struct sim_trace *t, struct cache_index *index,
		     uint64_t key, uint64_t bytes, uint64_t file_bytes,
		     uint32_t *ret);
/* A request by key, of an object that is a file. As above. */
int sim_trace_add_key(struct sim_trace *t, struct cache_index *index,
		      uint64_t key, uint64_t bytes);
/* After the last: each object is a file. -ENOMEM, -EOVERFLOW. */
int sim_trace_finish(struct sim_trace *t);
/* The time of a record, in seconds. */
void sim_read_time(struct sim_read *r, double s);

/*
 * Lines of columns, as these options say. A column is a number from 1, or a
 * name in the header; several of a key are one key, several of a size add up.
 * NULL: not there.
 */
struct layout_csv_options {
	char *time, *key, *size, *op, *offset;
	char *ops;	 /* operations that are requests: get,gets; all */
	char *unit;	 /* of the time */
	char *delimiter; /* comma space tab semicolon */
	char *header;	 /* auto on off */
	char *unsized;	 /* error skip zero */
	uint64_t block;	 /* bytes of an object, with `offset` */
};
extern const struct conf_field layout_csv_fields[];
int layout_csv_read(struct sim_input *in, const void *options,
		    struct sim_trace *t, struct err *err);

#endif
