/* SPDX-License-Identifier: MIT */
/*
 * The gpemu-fs mount under a dataset, met by its files only:
 * MOUNTPOINT/.gpemu/stats (JSON), MOUNTPOINT/.gpemu/control (a command a line)
 * and MOUNTPOINT/.gpemu/groups (a group a line, a JSON array of paths); and by
 * an attribute of the others, user.gpemu.place (loader/dataset/extents.h).
 */
#ifndef GPEMU_LOADER_DATASET_MOUNT_H
#define GPEMU_LOADER_DATASET_MOUNT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "loader/dataset/dataset.h"

struct mount {
	char *dir; /* .../.gpemu; NULL: not on such a mount */
};

/* Look at `dir` and at the folders above it on the same file system. */
void mount_find(const char *dir, struct mount *ret);
void mount_fini(struct mount *m);

/* Write a command to `control`. -errno with a text; there must be a mount. */
int mount_command(const struct mount *m, const char *command, struct err *err);

/*
 * From here on the mount counts for a new epoch. 0 when there is no mount, or
 * one of another user, who alone may tell it; -errno with a text.
 */
int mount_mark_epoch(const struct mount *m, struct err *err);

/* The contents of `stats`; NULL without a mount or when it cannot be read. */
json_t *mount_stats(const struct mount *m);

struct mount_hits {
	uint64_t hits, misses;
};
/* The counters now; false when there are none. */
bool mount_hits(const struct mount *m, struct mount_hits *ret);

/*
 * Give the samples of the dataset that was scanned at `dir` the groups in
 * which the mount reads its files; a file of the dataset that no group names
 * is one of its own. Nothing happens without a mount, when the mount does not
 * group, or when the dataset has groups. -EINVAL with "path:line: what".
 */
int mount_groups(const struct mount *m, const char *dir, struct dataset *d,
		 struct err *err);

#endif
