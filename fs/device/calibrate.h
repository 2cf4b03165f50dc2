/* SPDX-License-Identifier: MIT */
/*
 * The time that a request to the mount takes without any device: through the
 * kernel, the wake-up of this process, and back. The reader sees it on top of
 * every emulated duration. It is measured once at the start and subtracted from
 * the deadlines.
 */
#ifndef GPEMU_FS_DEVICE_CALIBRATE_H
#define GPEMU_FS_DEVICE_CALIBRATE_H

#include <stdint.h>
#include <sys/types.h>

#include "emu/profile/profile_storage.h"

struct round_trip {
	uint64_t busy_ns, alone_ns[STORAGE_N_OPS]; /* wall */
	/* per MiB of the answer, after a brief wait and after a slow one */
	uint64_t alone_mib_ns, slow_mib_ns;
};

/* The stages of the measurement, in order. */
enum calibrate_stage {
	CALIBRATE_BUSY,
	CALIBRATE_ALONE,
	CALIBRATE_SLOW,
	CALIBRATE_N_STAGES
};
/* The delay of the probes in a stage, wall: that of a fast device, and that of
 * a disk that reads 1 MiB. */
#define CALIBRATE_ALONE_NS 400000u
#define CALIBRATE_SLOW_NS 8000000u
/* The longest read that the kernel sends as one request, unless
 * fs.fuse.max_pages_limit was lowered. */
#define CALIBRATE_BYTES (1u << 20)
/* The offset of the probes' reads; no other read uses it. */
#define CALIBRATE_OFFSET (1ull << 40)

/*
 * busy_ns, for a request among others: half of the shortest of many reads of a
 * `file` in the mount's `dir` that cost nothing, one after the other. The rest
 * of a reader's extra wait is the wake-up of sleeping threads. That varies too
 * much to be subtracted: with three quarters instead of half, some of a
 * thousand readers had their bytes early.
 *
 * alone_ns, for a lone request, per class: the lower quartile of its extra time
 * over probe_ns where the mount answers after probe_ns. This covers the way to
 * the mount, the wake-up of a processor that sleeps meanwhile, and the kernel's
 * work on the answer, which is largest for a folder. Some answers are early by
 * that: at most 9 us in 2,000 lookups that took as long as the probes. Their
 * mean was 1 to 10 us late, that of lookups of 1 ms 13 to 34 us: a processor
 * that waits longer sleeps deeper. Source: measured, 2 virtual CPUs on a shared
 * host, Linux 6.18.
 *
 * The probes, in `dir`: lookups of "probe-N", which do not exist, listings, and
 * reads of `file`. An open is assumed to take as long as a read.
 *
 * alone_mib_ns, for a long answer that is alone: the kernel's copy, measured as
 * the median of 32 reads of CALIBRATE_BYTES less that of reads of one byte. 0
 * if the kernel split them into several requests.
 *
 * slow_mib_ns: the same when the mount answers after 8 ms. By then the bytes
 * and their destination have left the processor's caches: 0.47 to 0.65 ms,
 * against 0.13 to 0.34 (once 0.59) after a brief wait.
 *
 * The client is a separate process. If a thread of this process waited for an
 * answer while the process is killed, it would keep the mount's device open.
 * Then it, and all other readers, would wait forever.
 *
 * All stages take some 220 ms. Call from one thread that does not serve the
 * mount and that lives until calibrate_end. -errno.
 */
struct calibration {
	pid_t pid; /* 0: none */
	int fd;
};

int calibrate_begin(struct calibration *c, const char *dir, const char *file);
/* Adds the result of `stage` to *ret, which has those of the stages before. The
 * caller has set the delay of the stage. */
int calibrate_run(struct calibration *c, enum calibrate_stage stage,
		  struct round_trip *ret);
/* Waits for the process to end. All zeros is allowed. */
void calibrate_end(struct calibration *c);

/* The answer to a probe that reads n bytes, malloc'ed and written, like a
 * file's bytes before the wait for the deadline. NULL: no memory. */
void *calibrate_answer(size_t n);

#endif
