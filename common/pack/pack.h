/* SPDX-License-Identifier: MIT */
/*
 * A dataset packed into one file, group after group: docs/pack-format.md.
 * The reader; gpemu-data pack writes them.
 *
 * A pure function parses the index without trusting it. In an accepted index
 * every offset is inside the file, paths are unique and stay below the root,
 * and no path is both a file and a folder.
 */
#ifndef GPEMU_COMMON_PACK_PACK_H
#define GPEMU_COMMON_PACK_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/pack/grouping.h"

#define PACK_MAGIC "GPEMUPK\n"

enum {
	PACK_VERSION = 1,
	PACK_HEADER_BYTES = 64,
	PACK_INDEX_BYTES = 64, /* the index's fixed part */
	PACK_GROUP_BYTES = 16,
	PACK_FILE_BYTES = 48,
	PACK_ORDER_BYTES = 16,
	/* Groups begin at multiples of it: a whole one can be read with
	 * O_DIRECT from any disk. */
	PACK_ALIGN = 4096,
};

/* Class of a file in the root. */
#define PACK_NO_CLASS UINT32_MAX

struct pack_header {
	uint64_t index_offset, index_bytes, index_sum;
};

struct pack_file {
	const char *path; /* in pack->names */
	uint64_t offset, bytes;
	uint64_t sum; /* XXH3, 64 bits */
	int64_t mtime_ns;
	uint32_t mode; /* permission bits */
	uint32_t class;
};

struct pack {
	struct pack_file *files; /* group after group */
	uint32_t n_files, n_groups, n_classes;
	uint32_t *first;  /* n_groups + 1: where in `files` each begins */
	uint32_t *sorted; /* n_files: the files in the order of their paths */
	uint64_t group_size, seed; /* as requested */
	char order[PACK_ORDER_BYTES + 1];
	uint64_t file_bytes; /* the sum of the files' sizes */
	char *names;	     /* owned, as is all above */
};

/* 64 bytes -> header. -EINVAL with a text, also of an unfinished pack. */
int pack_parse_header(const unsigned char *bytes, uint64_t file_size,
		      struct pack_header *ret, struct err *err);
void pack_write_header(const struct pack_header *h,
		       unsigned char bytes[PACK_HEADER_BYTES]);
/* Bytes -> pack. `data_end`: no file lies beyond. Free with pack_fini, failed
 * or not. -EINVAL with a text, -ENOMEM. */
int pack_parse_index(const unsigned char *bytes, size_t n, uint64_t data_end,
		     struct pack *ret, struct err *err);
/* Pack -> bytes, malloc'ed: `sorted` and `names` are not needed. -ENOMEM. */
int pack_write_index(const struct pack *p, unsigned char **ret, size_t *ret_n);
void pack_fini(struct pack *p);

/* The classes (top folders, sorted, from 0) of files sorted by path. */
uint32_t pack_classify(struct pack_file *files, const uint32_t *sorted,
		       uint32_t n);

/*
 * Open `path`, *ret_fd, and read its index. The descriptor is the caller's.
 * Of open(2) and read(2), -EINVAL; with a text that begins with the path.
 */
int pack_open(const char *path, int *ret_fd, struct pack *ret, struct err *err);
/* The same of an open file of `size` bytes; the text does not name it. Free
 * with pack_fini, failed or not. */
int pack_load(int fd, uint64_t size, struct pack *ret, struct err *err);

#endif
