/* SPDX-License-Identifier: MIT */
/*
 * The storage device model: when will an operation that arrives now complete?
 * Virtual-time scheduling, as in NVMeVirt (Kim et al., FAST'23): the device
 * keeps until when its channels and its link are busy, and nothing waits. Pure:
 * no lock (the caller's), no clock (`now` is an argument), no I/O; with the
 * same seed the same calls give the same answers.
 */
#ifndef GPEMU_FS_DEVICE_DEVICE_H
#define GPEMU_FS_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/profile/profile_storage.h"

struct device;

/* Keeps a pointer to `profile`, which must outlive it. -ENOMEM. */
int device_new(const struct storage_profile *profile, uint64_t seed,
	       struct device **ret);
void device_free(struct device *d);
const struct storage_profile *device_profile(const struct device *d);

/* From `now` on its link has at most so many 10^6 bytes per s, whatever the
 * profile says; 0: what that says. What was scheduled before completes as it
 * was, but holds up no other for longer than with this limit. */
void device_limit(struct device *d, double mb_per_s, uint64_t now);

/* Is the next operation the only one without an answer? An answer may leave
 * before its completion, by the time that it takes to its client (calibrate.h):
 * what a lone client asks for next has not found it in the queue. */
void device_alone(struct device *d, bool alone);

/* The place on the device of the bytes at `offset` of an object, as a fraction
 * of 2^64: files lie scattered, in pieces of 8 MiB. Used by devices whose
 * profile has `settle`. */
uint64_t device_place(uint64_t object, uint64_t offset);

/*
 * Schedule an operation of class `op` that arrives at `now` (ns, never less
 * than in an earlier call): `bytes` at `offset` of `object` (an inode number).
 * A read that starts where the device's last read ended needs no seek, and one
 * that starts a little later in the same object takes the time of the bytes
 * between, where that is shorter than a mean movement of the head. Any other
 * moves the head to its place; writes do the same. Of a sync `bytes` is 0, and
 * all that the write buffer holds leaves it first. Returns the time of
 * completion, ns, >= now.
 */
uint64_t device_schedule(struct device *d, enum storage_op op, uint64_t object,
			 uint64_t offset, uint64_t bytes, uint64_t now);
/*
 * The next `bytes` of a read whose first `before` bytes came at `now`, the
 * deadline of those, which other calls may have passed: only its bytes take
 * time, in the quota, on a channel and on the link.
 */
uint64_t device_go_on(struct device *d, uint64_t before, uint64_t bytes,
		      uint64_t now);

#endif
