/* SPDX-License-Identifier: MIT */
/*
 * The protocol between gpemu-gpud and its clients, over a Unix stream socket. A
 * message is
 *
 *	u32 length	of all of it, these 8 bytes included
 *	u16 version	GPUD_VERSION
 *	u16 type	enum gpud_type
 *	fields		in the order of the struct, numbers little-endian,
 *			double as the bits of IEEE 754, texts as printable
 *			ASCII filled up with zero bytes
 *
 * All messages of a type have the same length, except GPUD_STATUS, which ends
 * with JSON. Times are ns on the server's emulated clock.
 *
 *	client			server
 *				WELCOME		or ERROR, and closed
 *	HELLO ->		QUEUED		if there is no room now
 *				ADMITTED
 *	COPY ->			ACCEPTED	of the next iteration, to one
 *						of the job's GPUs: the copy's
 *						times
 *	SUBMIT ->		ACCEPTED	at once: the times of the copy
 *						to the GPUs without a COPY
 *				DONE		when it was computed
 *	QUERY ->		STATUS		at any time, HELLO or not
 *	WATCH ->		HEALTH		at once, and at each change
 *	MARK ->			HEALTH		a GPU fails, or is repaired;
 *						from root and the server's user
 *	GRANT ->		ACK		likewise: memory of a GPU, and
 *						a part of its time, for who
 *						connects to a socket of its
 *						own, which is in
 *						gpud_grant_folder()
 *	REVOKE ->		ACK		that socket goes, and its jobs
 *
 * Up to SHARE_DEPTH iterations may be in flight; they complete in order. The
 * server answers violations with an ERROR and closes the connection. A client
 * leaves by closing it.
 */
#ifndef GPEMU_EMU_GPU_GPUD_PROTO_H
#define GPEMU_EMU_GPU_GPUD_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum {
	GPUD_VERSION = 4,
	GPUD_HEADER = 8,
	GPUD_MAX_REQUEST = 512, /* bytes of a client's message */
	/* Bytes of any. The longest lists 4096 jobs, as many as a server has
	 * clients: 0.35 KB each, 1.3 KB with the longest names on 64 GPUs */
	GPUD_MAX_MESSAGE = 8 << 20,
	GPUD_NAME = 64, /* of texts, terminator included */
	GPUD_PATH = 256,
	GPUD_TEXT = 512,
};

enum gpud_type {
	GPUD_HELLO = 1,
	GPUD_SUBMIT,
	GPUD_QUERY,
	GPUD_WATCH,
	GPUD_MARK,
	GPUD_GRANT,
	GPUD_REVOKE,
	GPUD_COPY,
	GPUD_WELCOME = 16,
	GPUD_QUEUED,
	GPUD_ADMITTED,
	GPUD_ACCEPTED,
	GPUD_DONE,
	GPUD_ERROR,
	GPUD_STATUS,
	GPUD_HEALTH,
	GPUD_ACK,
};

enum gpud_hello_flags {
	GPUD_PINNED = 1,      /* batches come from page-locked memory */
	GPUD_EXTRAPOLATE = 2, /* batch sizes that were not measured */
	GPUD_LOAD = 4,	      /* the model is copied to the device first */
	GPUD_HELLO_FLAGS = 7, /* all flags */
};

struct gpud_hello {
	char name[GPUD_NAME];  /* for display */
	char model[GPUD_NAME]; /* of the server's GPU profile */
	uint32_t batch;	       /* samples of an iteration, per GPU */
	uint32_t n_gpus;
	uint32_t flags;
	uint32_t zero;
	uint64_t iterations; /* expected; 0: unknown */
	/* bytes on each GPU; both 0: as the profile says */
	uint64_t persistent_bytes, peak_bytes;
	/* additionally, of a waiting batch, and of flat gradients */
	uint64_t waiting_bytes, bucket_bytes;
	uint64_t reduce_ns; /* expected, see gpud_submit */
};

/* Of a step; a framework with a loop of its own submits them one by one. */
enum gpud_parts {
	GPUD_FORWARD = 1,
	GPUD_BACKWARD = 2, /* without the optimiser */
	GPUD_OPTIMIZER = 4,
	GPUD_PARTS = 7, /* all parts */
};

struct gpud_submit {
	uint64_t id;	    /* chosen by the client, returned */
	uint64_t staged_ns; /* of the copy, already done on the host */
	uint64_t bytes;	    /* per GPU, that are copied */
	/* gradients, reduced after it and hidden by nothing */
	uint64_t reduce_ns;
	uint32_t samples; /* of the GPU with the most, up to the hello's batch
			   */
	uint32_t parts;	  /* that it has; 0: all */
};

struct gpud_copy {
	uint64_t staged_ns, bytes; /* as of a submit */
	uint32_t gpu;		   /* of the job's, from 0 */
	uint32_t zero;
};

struct gpud_mark {
	uint32_t gpu;
	uint32_t failed; /* 1, or 0: repaired */
};

/* What is granted on other GPUs stays. */
struct gpud_grant {
	char name[GPUD_NAME]; /* letters, digits, '-', '_' */
	uint64_t bytes;	      /* of all jobs at their peaks; 0: not this GPU */
	uint32_t gpu;
	/* thousandths of its time, for these jobs alone; 0: they share it with
	 * all others */
	uint32_t part_milli;
};

struct gpud_revoke {
	char name[GPUD_NAME];
};

struct gpud_welcome {
	char gpu[GPUD_NAME];	 /* the device, as its vendor calls it */
	char profile[GPUD_PATH]; /* path of its file */
	char scheduler[GPUD_NAME];
	char share[GPUD_NAME];
	char slicing[GPUD_NAME]; /* profile of what it costs, or "no cost" */
	double time_scale;
	/* the server's emulated clock when CLOCK_MONOTONIC showed wall_ns */
	uint64_t now_ns, wall_ns;
	uint32_t n_gpus;
	uint32_t zero;
};

struct gpud_queued {
	uint64_t ahead; /* jobs ahead in the queue */
};

struct gpud_admitted {
	uint64_t job;
	uint64_t gpus;	   /* mask */
	uint64_t queue_ns; /* time in the queue */
};

struct gpud_accepted {
	uint64_t id;
	uint64_t copy_start, copy_end; /* the end may be in the future */
};

struct gpud_done {
	uint64_t id;
	uint64_t start, end; /* of the computation */
};

struct gpud_error {
	char text[GPUD_TEXT];
	uint32_t code; /* errno */
	uint32_t zero;
};

struct gpud_health {
	uint64_t failed; /* mask of the GPUs that compute nothing now */
	uint32_t n_gpus;
	uint32_t zero;
};

struct gpud_ack {
	char name[GPUD_NAME]; /* of the grant */
	uint32_t error;	      /* errno; 0: done */
	uint32_t revoked;     /* 1: of a REVOKE; 0: of a GRANT */
};

struct gpud_status {
	const char *json; /* borrowed; not ended by a zero */
	size_t n;
};

struct gpud_msg {
	enum gpud_type type;
	union {
		struct gpud_hello hello;
		struct gpud_submit submit;
		struct gpud_copy copy;
		struct gpud_mark mark;
		struct gpud_grant grant;
		struct gpud_revoke revoke;
		struct gpud_welcome welcome;
		struct gpud_queued queued;
		struct gpud_admitted admitted;
		struct gpud_accepted accepted;
		struct gpud_done done;
		struct gpud_error error;
		struct gpud_status status;
		struct gpud_health health;
		struct gpud_ack ack;
	};
};

/* Bytes of a message once encoded. */
size_t gpud_size(const struct gpud_msg *m);
/* Write gpud_size bytes; texts are truncated, and unprintable characters become
 * '?'. */
void gpud_encode(const struct gpud_msg *m, void *buf);
/*
 * Decode the first message of buf[0..n), no longer than `most` bytes. Returns
 * its length; 0: incomplete; -EPROTONOSUPPORT (version) or -EBADMSG with a
 * text. Any input is safe. A decoded message encodes to the same bytes.
 */
int gpud_decode(const void *buf, size_t n, size_t most, struct gpud_msg *ret,
		struct err *err);
/*
 * The folder of the socket of a grant on the server that listens at `socket`:
 * SOCKET.d/NAME. The socket's name in it is that of `socket`. Malloc'ed; NULL:
 * no memory.
 */
char *gpud_grant_folder(const char *socket, const char *name);
/* "hello", "submit" ... */
const char *gpud_type_name(enum gpud_type type);

#endif
