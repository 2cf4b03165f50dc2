/* SPDX-License-Identifier: MIT */
/*
 * The objects that clients put, in the writable folder (--writable), as files
 * at the paths that their keys are:
 *
 *	DIR/a/b			the object a/b
 *	DIR/.gpemu/uploads/	files that are being written, under numbers
 *	DIR/.gpemu/objects/	objects whose keys are no paths here: "a//b",
 *				"a/", "..", or "a/b" beside an object "a"
 *
 * A file is renamed into its place when it is complete, so an object is there
 * as a whole or not at all, also if the process is killed; the next one empties
 * `uploads`. Its bytes are on the disk before it has its name, and the name is
 * when the call returns, so it survives a loss of power as well.
 *
 * What is more than bytes, the ETag and headers, is an extended attribute, and
 * counts as long as the file is not changed by others. Links in DIR are not
 * followed.
 *
 * All calls may wait for the file system, those that commit and remove for a
 * sync of it; any thread. They return >= 0 or -errno.
 */
#ifndef GPEMU_S3_STORE_OBJECTS_H
#define GPEMU_S3_STORE_OBJECTS_H

#include "common/err.h"
#include "s3/store/names.h"

struct objects;

/* Uses `dir`, as of a mount (fs/upper/upper.h), and reads what is in it. Keys
 * of the dataset are hidden by it. -errno with a text. */
int objects_new(const char *dir, const struct names *names,
		struct objects **ret, struct err *err);
/* Before all others: the store holds so many bytes, as upper_limit. */
int objects_limit(struct objects *o, uint64_t bytes, struct err *err);
/* NULL is allowed. */
void objects_free(struct objects *o);

/* A reference, or NULL: there is none of this key. `ret_fd` NULL: its bytes are
 * not needed; -errno in it: it cannot be opened. */
struct stored *objects_find(struct objects *o, const char *key, int *ret_fd);
bool objects_list(struct objects *o, const struct names_query *q,
		  char last[NAMES_MOST + 1]);

/* A file that is being written. */
struct staged {
	int fd;		 /* -1: it was closed */
	uint64_t number; /* its name; 0: there is none */
	uint64_t blocks; /* of the store's limit */
};

/* One of so many bytes. -ENOSPC: the store is full. */
int objects_stage(struct objects *o, uint64_t bytes, struct staged *ret);
/* Remove it, if it is there, and close it. */
void objects_drop(struct objects *o, struct staged *s);
/* Open again what was closed. */
int objects_reopen(struct objects *o, struct staged *s);

/*
 * It is the object `what->key` from now on. Takes `what`, whose bytes, time and
 * place are filled in, and `s`, in any case. `may` is called with the present
 * object or NULL, while no other changes: what it returns < 0 ends the call.
 * Another error may be of the sync of its name: the object may be there.
 */
typedef int objects_may(void *ctx, const struct stored *now);
int objects_commit(struct objects *o, struct staged *s, struct stored *what,
		   objects_may *may, void *ctx);
/* 0 also if it is not there. */
int objects_remove(struct objects *o, const char *key, objects_may *may,
		   void *ctx);
/* The same of many, with a sync for each folder and not for each of them. In:
 * those with an error are left out; out: the error of each. */
void objects_remove_all(struct objects *o, char *const *keys, size_t n,
			int *errors);

#endif
