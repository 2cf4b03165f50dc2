/* SPDX-License-Identifier: MIT */
/*
 * What a request to the mount takes without any device: the way through the
 * kernel, the wake-up of this process, and back. It comes on top of every
 * emulated duration, as its reader sees it, and is known beforehand: measured
 * once at the start and taken off the deadlines.
 */
#ifndef GPEMU_FS_CALIBRATE_H
#define GPEMU_FS_CALIBRATE_H

#include <stdint.h>

/*
 * Three quarters of the shortest of many reads of a file in the mount that
 * costs nothing (`path`), wall ns: no later read will take less, so that taking
 * it off makes none return early. From any thread but those that serve the
 * mount. -errno.
 */
int calibrate_round_trip(const char *path, uint64_t *ret_ns);

#endif
