/* SPDX-License-Identifier: MIT */
/*
 * The part of the FUSE protocol that the transports use; libfuse 3.14 and
 * Debian 12's headers do not have all of it.
 *
 * Source: include/uapi/linux/fuse.h of Linux 6.14, protocol 7.42.
 */
#ifndef GPEMU_FS_TRANSPORT_TRANSPORT_PROTOCOL_H
#define GPEMU_FS_TRANSPORT_TRANSPORT_PROTOCOL_H

#include <stdint.h>

enum { OP_INIT = 26, OP_INTERRUPT = 36 };

/* Bits of INIT's flags, and of flags2, which holds bits 32 and up. */
#define INIT_PARALLEL_DIROPS (1u << 18)
#define INIT_EXT (1u << 30) /* flags2 is valid */
#define INIT2_DIRECT_IO_ALLOW_MMAP (1u << (36 - 32))
#define INIT2_PASSTHROUGH (1u << (37 - 32))
#define INIT2_OVER_IO_URING (1u << (41 - 32))

struct in_header {
	uint32_t len, opcode;
	uint64_t unique, nodeid;
	uint32_t uid, gid, pid, padding;
};

struct out_header {
	uint32_t len;
	int32_t error;
	uint64_t unique;
};

struct init_in {
	uint32_t major, minor, max_readahead, flags, flags2;
};

struct init_out {
	uint32_t major, minor, max_readahead, flags;
	uint16_t max_background, congestion_threshold;
	uint32_t max_write, time_gran;
	uint16_t max_pages, map_alignment;
	uint32_t flags2, max_stack_depth;
};

/* --- over io_uring ------------------------------------------------------- */

enum { URING_CMD_REGISTER = 1, URING_CMD_COMMIT_AND_FETCH = 2 };

/* The header of a request and of its answer; the payload is separate. */
struct uring_header {
	char in_out[128]; /* struct in_header, or struct out_header */
	char op_in[128];  /* the operation's first argument, if of fixed size */
	struct {
		uint64_t flags, commit_id;
		uint32_t payload_bytes, padding;
		uint64_t reserved;
	} entry;
};

/* In the command area of the submission entry. */
struct uring_command {
	uint64_t flags, commit_id;
	uint16_t queue;
	uint8_t padding[6];
};

#endif
