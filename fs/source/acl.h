/* SPDX-License-Identifier: MIT */
/*
 * Access control lists of the source's files, which a mount does not show. If a
 * file has one, the group bits of its mode hold the list's mask, not the rights
 * of its group: shown unchanged, they would admit users that the list excludes.
 */
#ifndef GPEMU_FS_SOURCE_ACL_H
#define GPEMU_FS_SOURCE_ACL_H

#include <stddef.h>
#include <stdint.h>

/*
 * `mode` reduced to what the list, the value of system.posix_acl_access, gives
 * to the group and to all others: it grants no user more than the list does.
 * An invalid list leaves the owner's bits alone.
 */
uint32_t acl_limit(uint32_t mode, const void *list, size_t n);
/* The same for the file of `fd`, or for `name` in that directory, unless NULL;
 * a directory may be open with O_PATH. `mode` if there is no list, or the file
 * system has none; the owner's bits if that is unknown. */
uint32_t acl_limit_file(uint32_t mode, int fd, const char *name);

#endif
