/* SPDX-License-Identifier: MIT */
/*
 * What a request to the mount takes without any device: the way through the
 * kernel, the wake-up of this process, and back. It comes on top of every
 * emulated duration, as its reader sees it, and is known beforehand: measured
 * once at the start and taken off the deadlines.
 */
#ifndef GPEMU_FS_DEVICE_CALIBRATE_H
#define GPEMU_FS_DEVICE_CALIBRATE_H

#include <stdint.h>
#include <sys/types.h>

#include "emu/profile/profile_storage.h"

struct round_trip {
	uint64_t busy_ns, alone_ns[STORAGE_N_OPS]; /* wall */
	/* for each MiB of the answer, after a brief wait and after a slow one
	 */
	uint64_t alone_mib_ns, slow_mib_ns;
};

/* What is measured, in this order. */
enum calibrate_stage {
	CALIBRATE_BUSY,
	CALIBRATE_ALONE,
	CALIBRATE_SLOW,
	CALIBRATE_N_STAGES
};
/* How long the probes are to be delayed meanwhile, wall: as long as what a fast
 * device takes, and a disk that reads 1 MiB. */
#define CALIBRATE_ALONE_NS 400000u
#define CALIBRATE_SLOW_NS 8000000u
/* The longest read that the kernel makes one request of, where nobody has
 * lowered fs.fuse.max_pages_limit. */
#define CALIBRATE_BYTES (1u << 20)
/* Where the probes' reads are, and nobody else's. */
#define CALIBRATE_OFFSET (1ull << 40)

/*
 * busy_ns, for requests among others: half of the shortest of many reads of a
 * `file` in the mount's `dir` that costs nothing, one behind the other. The
 * rest of what a reader waits on top is the wake-up of sleeping threads, which
 * varies too much to be taken off: with three quarters some of a thousand
 * readers had their bytes early.
 *
 * alone_ns, for a request that is alone, of each class: how much longer than
 * probe_ns it took where the mount answers after probe_ns, as three of four do
 * at least: the way there, the wake-up of a processor that sleeps meanwhile,
 * and what the kernel does with the answer, which is most for a folder. Some
 * are early by that, by 9 us at most of 2,000 lookups that took as long as the
 * probes; in the mean these were 1 to 10 us late, and lookups of 1 ms 13 to 34,
 * for a processor sleeps deeper the longer. Source: measured, 2 virtual CPUs
 * on a shared host, Linux 6.18.
 *
 * The probes are, in `dir`: lookups of "probe-N", which there are not,
 * listings, and reads of `file`. An open is taken to be as a read.
 *
 * alone_mib_ns, for a long answer that is alone: how much longer a read of
 * CALIBRATE_BYTES took than one of a byte, as half of 32 do at least: the
 * kernel's copy. 0 where the kernel made several requests of it.
 *
 * slow_mib_ns: the same when the mount answers after 8 ms, by when both the
 * bytes and where they go to have left the processor's caches: 0.47 to 0.65 ms,
 * with 0.13 to 0.34, once 0.59, after a brief wait.
 *
 * The client is a process of its own. A thread of this one that waits for an
 * answer while this process is killed would keep the mount's device open, and
 * so itself, and all other readers, waiting for good.
 *
 * Together some 220 ms. From one thread, not one that serves the mount, and
 * which stays until calibrate_end. -errno.
 */
struct calibration {
	pid_t pid; /* 0: none */
	int fd;
};

int calibrate_begin(struct calibration *c, const char *dir, const char *file);
/* Adds what `stage` measures to *ret, which has that of the stages before. The
 * delay of the stage is in force. */
int calibrate_run(struct calibration *c, enum calibrate_stage stage,
		  struct round_trip *ret);
/* Waits for the process. All zeros is allowed. */
void calibrate_end(struct calibration *c);

/* The answer to a probe that reads n bytes, malloc'ed and written, as a file's
 * bytes would be before they are waited for. NULL: no memory. */
void *calibrate_answer(size_t n);

#endif
