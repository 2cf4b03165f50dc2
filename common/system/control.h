/* SPDX-License-Identifier: MIT */
/* The control folder of a mount, for the programs that use one. */
#ifndef GPEMU_COMMON_SYSTEM_CONTROL_H
#define GPEMU_COMMON_SYSTEM_CONTROL_H

/*
 * Open the file `name` in `dir`, the .gpemu of a mount. Through no link, and
 * of a FUSE file system only: a folder of that name anybody can make, above or
 * in a dataset, with links to what the caller may write.
 *
 * A descriptor, or -errno; -ENODEV: it is no mount's.
 */
int control_open(const char *dir, const char *name, int flags);

#endif
