/* SPDX-License-Identifier: MIT */
/*
 * Access control lists of the source's files, which a mount does not show. With
 * one, the group bits of a file's mode are not its group's but the list's mask:
 * shown as they are they would let in whom the list keeps out.
 */
#ifndef GPEMU_FS_SOURCE_ACL_H
#define GPEMU_FS_SOURCE_ACL_H

#include <stddef.h>
#include <stdint.h>

/*
 * `mode` without what the list, the value of system.posix_acl_access, does not
 * give to the group, or to all others: nobody has more by it than by the list.
 * Of a list that makes no sense: the owner's bits alone.
 */
uint32_t acl_limit(uint32_t mode, const void *list, size_t n);
/* The same of what `fd` is open on, a directory maybe with O_PATH, or of `name`
 * in that, unless NULL; `mode` where there is no list, or the file system has
 * none, the owner's bits where that cannot be told. */
uint32_t acl_limit_file(uint32_t mode, int fd, const char *name);

#endif
