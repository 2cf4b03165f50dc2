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
#include "cachesim/input.h"
#include "common/conf/conf.h"
#include "common/plugin.h"
#include "fs/cache/cache_index.h"

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
