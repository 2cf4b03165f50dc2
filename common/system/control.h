/* SPDX-License-Identifier: MIT */
/* The control folder of a mount, for the programs that use one. */
#ifndef GPEMU_COMMON_SYSTEM_CONTROL_H
#define GPEMU_COMMON_SYSTEM_CONTROL_H

/*
 * Open the file `name` in `dir`, the .gpemu of a mount. Follows no links and
 * accepts only FUSE file systems: any user can create a folder of that name,
 * with links to files that the caller may write.
 *
 * A descriptor, or -errno; -ENODEV: it is no mount's.
 */
int control_open(const char *dir, const char *name, int flags);

#endif
