/* SPDX-License-Identifier: MIT */
/*
 * A line for each operation of the mount, in a file (docs/trace-format.md).
 *
 * trace_add copies a record into a ring of fixed size and returns; a thread
 * writes it to the file. If the ring is full, because the disk is slower than
 * the readers, the record is counted and dropped: no operation waits for the
 * trace.
 */
#ifndef GPEMU_FS_LAYER_TRACE_H
#define GPEMU_FS_LAYER_TRACE_H

#include <jansson.h>

#include "common/tick.h"
#include "fs/source/tree.h"

#define TRACE_MAGIC "#gpemu-fs-trace "
enum { TRACE_VERSION = 1 };
/* The header line, before the records. */
#define TRACE_COLUMNS                                                       \
	"time,op,id,size,offset,bytes,seq,result,requested_us,achieved_us," \
	"error,file_size,path"
enum { TRACE_N_COLUMNS = 13 };

enum trace_op {
	/* operations of readers */
	TRACE_LOOKUP,
	TRACE_READDIR,
	TRACE_OPEN,
	TRACE_READ,
	TRACE_PASSTHROUGH, /* an open after which the kernel reads by itself */
	TRACE_SERVE,	   /* another node's request for an object (--peers) */
	TRACE_WRITE,
	TRACE_SYNC,
	TRACE_CREATE, /* also other changes of a file's entry */
	TRACE_UNLINK, /* a file's or a folder's name was removed */
	TRACE_RENAME,
	/* other events of the cache */
	TRACE_OFFER,  /* an object was prefetched with its group */
	TRACE_WARM,   /* cached by a command, if there is room */
	TRACE_REMOVE, /* its fetch failed */
	TRACE_DROP_CACHE,
	TRACE_SET_CACHE, /* a new policy or capacity: an empty cache */
	TRACE_EPOCH,
	TRACE_RESET,
	TRACE_N_OPS,
};
const char *trace_op_name(enum trace_op op);

enum trace_result { TRACE_NOT_COUNTED, TRACE_HIT, TRACE_MISS };

struct trace_record {
	/* place in the order of accesses, from 1; 0: not counted */
	uint64_t seq;
	uint64_t time;		      /* of arrival, emulated ns */
	uint64_t requested, achieved; /* emulated ns */
	uint64_t offset;	      /* in the file */
	uint64_t bytes;
	/* malloc'ed: of a file that is not of the tree; NULL: of `node` */
	char *path;
	uint32_t node;
	uint16_t error; /* positive errno, or 0 */
	uint8_t op, result;
};

struct trace;

struct trace_config {
	const char *path;	 /* absolute */
	const struct tree *tree; /* borrowed, as is tick */
	struct tick *tick;
	uint64_t seed; /* for readers of the trace */
};

/* Start a trace in a new file. -errno with a text. */
int trace_new(const struct trace_config *config, struct trace **ret,
	      struct err *err);
/* Writes the remaining records. NULL is allowed. */
void trace_free(struct trace *t);
/* Takes r->path. Any thread; never blocks for I/O. */
void trace_add(struct trace *t, const struct trace_record *r);
/* Continue in the file that has the name now, which may be a new one. -errno
 * with a text: it continues in the old one. */
int trace_reopen(struct trace *t, struct err *err);
/* {"records","lost"}; NULL: no memory. */
json_t *trace_json(struct trace *t);

#endif
