/* SPDX-License-Identifier: MIT */
/*
 * The gpemu-fs mount under a dataset. The interface is its files:
 * MOUNTPOINT/.gpemu/stats (JSON), MOUNTPOINT/.gpemu/control (one command per
 * line), MOUNTPOINT/.gpemu/groups (one group per line, a JSON array of paths)
 * MOUNTPOINT/.gpemu/future (the accesses to come) and
 * MOUNTPOINT/.gpemu/importance (how much files matter); and attributes of the
 * other files: user.gpemu.place (loader/dataset/reading.h), user.gpemu.owner.
 */
#ifndef GPEMU_LOADER_DATASET_MOUNT_H
#define GPEMU_LOADER_DATASET_MOUNT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

struct dataset_mount {
	char *dir; /* .../.gpemu; NULL: not on such a mount */
	dev_t dev; /* of its files */
};

/* Check `dir` and its parents on the same file system. */
void mount_find(const char *dir, struct dataset_mount *ret);
void mount_fini(struct dataset_mount *m);

/* Write a command to `control`. -errno with a text; there must be a mount. */
int mount_command(const struct dataset_mount *m, const char *command,
		  struct err *err);

/*
 * The mount counts for a new epoch from here on. 0 also without a mount, or on
 * one of another user, whose control file is closed to us, or with --read-only;
 * -errno with a text.
 */
int mount_mark_epoch(const struct dataset_mount *m, struct err *err);

/* The contents of `stats`; NULL without a mount or on a read error. */
json_t *mount_stats(const struct dataset_mount *m);

/* The contents of `nic`; there must be a mount. As json_read. */
int mount_nic(const struct dataset_mount *m, json_t **ret, struct err *err);

struct mount_hits {
	uint64_t hits, misses;
};
/* The current counters; false: none available. */
bool mount_hits(const struct dataset_mount *m, struct mount_hits *ret);

/* A number that the mount has as an attribute of the sample's file; false: it
 * has none, or the sample is in a container. */
bool mount_attribute(const struct dataset *d, size_t i, const char *name,
		     uint64_t *ret);
/*
 * The node whose cache owns each sample (gpemu-fs --peers), for rank `rank` of
 * `world`; UINT32_MAX: none does. *ret: as many as samples, the caller's; NULL:
 * the mount has no peers. -EINVAL with a text: its nodes are not the ranks, or
 * the samples are in containers.
 */
int mount_owners(const struct dataset_mount *m, const struct dataset *d,
		 uint64_t rank, uint64_t world, uint32_t **ret,
		 struct err *err);
/* Accesses of all ranks in an announcement; FUTURE_MOST. */
enum { MOUNT_MOST_ACCESSES = 1 << 24 };
/* Does the mount fetch ahead what a loader announces? */
bool mount_foresees(const struct dataset_mount *m);
/* The head of an announcement (common/system/future.h). */
struct mount_future {
	uint32_t rank, world, epochs;
	uint32_t first, rest; /* accesses of a rank in an epoch */
	bool continues;
};
/* Begin one: a descriptor for mount_announce, or -errno with a text. */
int mount_open_future(const struct dataset_mount *m,
		      const struct mount_future *f, struct err *err);
/* The next accesses, as inode numbers. Errors as above. */
int mount_announce(const struct dataset_mount *m, int fd,
		   const uint32_t *inodes, size_t n, struct err *err);
/* Does a cache of the mount use the importance of files? */
bool mount_weighs(const struct dataset_mount *m);
/* Tell it the importance of files (common/system/importance.h); inode 0: of
 * none. -errno with a text. */
int mount_weigh(const struct dataset_mount *m, const uint32_t *inodes,
		const float *importance, size_t n, struct err *err);
/* The inode numbers of all samples, which are files, for the caller to free; 0:
 * none, or of another file system. NULL: no memory. */
uint32_t *mount_inodes(const struct dataset_mount *m, const struct dataset *d);

/*
 * Assign to the samples of the dataset that was scanned at `dir` the groups in
 * which the mount reads its files. A file that is in no group becomes a group
 * of its own. Does nothing without a mount, if the mount does not group, or if
 * the dataset has groups. -EINVAL with "path:line: what".
 */
int mount_groups(const struct dataset_mount *m, const char *dir,
		 struct dataset *d, struct err *err);

#endif
