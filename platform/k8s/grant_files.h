/* SPDX-License-Identifier: MIT */
/*
 * Grants on disk, so that the next plugin knows those of the last one: a file
 * each, with its name, in a folder of its own below the kubelet's. There they
 * live as long as the kubelet's own record of what it allocated: a kubelet that
 * starts removes what it finds in its folder, but no folders.
 */
#ifndef GPEMU_PLATFORM_K8S_GRANT_FILES_H
#define GPEMU_PLATFORM_K8S_GRANT_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "platform/k8s/devices.h"

/* Below the kubelet's folder. */
#define GRANT_FILES "gpemu-grants"

/* Synced. The folder is made if it is not there. -errno. */
int grant_files_write(const char *folder, const char *name,
		      const char *resource,
		      const struct k8s_device *const *devices, size_t n);
void grant_files_remove(const char *folder, const char *name);
bool grant_files_has(const char *folder, const char *name);

/* The lines of a file, in place: the resource, then the identifiers of devices.
 * *ret is malloc'ed. -EINVAL: malformed; -ENOMEM. */
int grant_file_parse(char *bytes, size_t n, char ***ret, size_t *ret_n);
/* Calls `fn` with each file's lines until one is < 0; -EINVAL: nothing of the
 * file is of use, and it is removed. No folder: no files. -errno with a text.
 */
int grant_files_load(const char *folder,
		     int (*fn)(void *ctx, const char *name, char *const *lines,
			       size_t n),
		     void *ctx, struct err *err);

#endif
