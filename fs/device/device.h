/* SPDX-License-Identifier: MIT */
/*
 * The storage device model: when will an operation that arrives now be done?
 * Virtual-time scheduling, as NVMeVirt does (Kim et al., FAST'23): the device
 * keeps until when each of its channels and its link are busy, and nothing
 * waits. Pure: no lock (the caller's), no clock (`now` is an argument), no
 * I/O; with one seed the same calls give the same answers.
 */
#ifndef GPEMU_FS_DEVICE_DEVICE_H
#define GPEMU_FS_DEVICE_DEVICE_H

#include <stdint.h>

#include "emu/profile/profile_storage.h"

struct device;

/* Keeps a pointer to `profile`, which must outlive it. -ENOMEM. */
int device_new(const struct storage_profile *profile, uint64_t seed,
	       struct device **ret);
void device_free(struct device *d);

/* Where on the device the bytes of an object at `offset` begin, as a part of
 * 2^64: files lie scattered, in pieces of 8 MiB. For those devices whose
 * profile has `settle`. */
uint64_t device_place(uint64_t object, uint64_t offset);

/*
 * Schedule an operation of class `op` that arrives at `now` (ns, never less
 * than in an earlier call): `bytes` at `offset` of `object` (an inode number;
 * for the seek term: a read that starts where the last one of the device
 * ended needs no seek, one elsewhere moves the head to its place). Returns when
 * it is done, ns, >= now.
 */
uint64_t device_schedule(struct device *d, enum storage_op op, uint64_t object,
			 uint64_t offset, uint64_t bytes, uint64_t now);

#endif
