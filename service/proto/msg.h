/* SPDX-License-Identifier: MIT */
/*
 * The messages of the preparation service, each a frame of net/frame.h; the
 * journal of the dispatcher (service/core/journal.h) has records of the same
 * form. All begin with the same PREPD_HEAD bytes; a field that a message does
 * not use is 0. Numbers are little-endian.
 *
 *	u8 type, u8 role, u16 PREPD_VERSION, u32 count, u32 split, u32 share,
 *	u64 id, u64 job, u64 epoch, u64 a, u64 b, u64 c, then the rest
 *
 *	w worker, d dispatcher, t trainer; what the fields are
 *
 *	HELLO	w>d	role WORKER, id: this process; rest: its address
 *		t>d	role TRAINER, id: this trainer, job, count: its number
 *			among the consumers of rounds, from 0
 *		t>w	role READER, the same
 *	WELCOME	d>w t	a: within so many wall ns a message must come; count:
 *			1: it knows this worker, 0: it does not
 *	REFUSE	any	rest: why; the connection is then closed
 *	BEAT	w t>d	a: batches so far; b: emulated ns of a batch of the job:
 *			that a worker takes to make it, and a trainer to use it
 *			if it never waits; 0: unknown; returned as it is
 *	JOB	t>d>w	job, role: enum split_mode, count: samples of a batch,
 *			split: batches of a split; share: enum share_how; of
 *			rounds also a: the width of a bucket, b: consumers; c:
 *			this trainer has 1 brought it before, 0 not; id: of the
 *			dispatcher: another one if its name is used again, 0:
 *			not known; rest: definition
 *	EPOCH	t>d>w	job, epoch, a: its samples
 *		d>t	of rounds: rest: their workers by turns, u64 each
 *	WANT	w>d	job, epoch, count: splits
 *	SPLIT	d>w	job, epoch, split
 *	NONE	d>w	job, epoch: there are no more splits
 *	LEAVE	w>d	it takes no more splits
 *		d>w	it has none that is not complete: it may end
 *	FAILED	w>d	job; rest: why this worker cannot do it
 *		d>t	the same, id: the worker
 *	DONE	t>d	job, epoch, split: all its batches were received
 *	DROP	t>d>w	job: it is over
 *	TASK	d>t	id: a worker, count: 1 it is there, 0 it is gone;
 *			rest: its address
 *	LOST	d>t	job, epoch, split, id: the worker that was lost
 *	READ	t>w	job, epoch, a: batches received over this connection in
 *			this epoch, b: batches that may be sent; c: of a shared
 *			job: the next batch that it wants, as in BATCH
 *	BATCH	w>t	job, epoch, a: its number, as in READ, split, c: its
 *			position in the order of the epoch, in batches, or of a
 *			shared job in those of its worker; count:
 *			samples; share: of reads, in millionths; id: ns that it
 *			was ready before it was sent; b: ns that its worker
 *			waited for a split; rest: count times
 *				u32 sample, i32 error, u64 bytes, of which the
 *				highest bit: read past the mount of the worker
 *			zeros up to a multiple of PREPD_ALIGN, the samples
 *	EMPTY	w>t	job, epoch, a: it will have no batch of this number
 *	KEY	w>t	job; rest: the key of its parcels
 *	SHARED	w>t	of a shared job: as BATCH, but the rest, which is in
 *			the parcel behind it (net/parcel.h): sealed under the
 *			job's key, its number c, as it is of the job
 *
 * docs/service.md describes the protocol and its limits.
 */
#ifndef GPEMU_SERVICE_PROTO_MSG_H
#define GPEMU_SERVICE_PROTO_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PREPD_VERSION = 4,
	PREPD_HEAD = 64,
	PREPD_SAMPLE = 16, /* bytes of an entry of BATCH */
	PREPD_ALIGN = 64,  /* as loader/prep/prep.h */
	/* of the rest, but in BATCH. arbitrary: a definition names a few files
	 */
	PREPD_TEXT = 64 << 10,
	PREPD_MOST = PREPD_HEAD + PREPD_TEXT,
	PREPD_CONSUMERS = 64, /* of rounds; as service/decide/rounds.h */
};

/* Wall time between BEATs, whatever a WELCOME says. arbitrary: less than a
 * third of the shortest --timeout */
enum { LEAST_BEAT_NS = 1000 * 1000 };

enum msg_type {
	PREPD_HELLO = 1,
	PREPD_WELCOME,
	PREPD_REFUSE,
	PREPD_BEAT,
	PREPD_JOB,
	PREPD_EPOCH,
	PREPD_WANT,
	PREPD_SPLIT,
	PREPD_NONE,
	PREPD_FAILED,
	PREPD_DONE,
	PREPD_DROP,
	PREPD_TASK,
	PREPD_LOST,
	PREPD_READ,
	PREPD_BATCH,
	PREPD_EMPTY,
	PREPD_LEAVE,
	PREPD_KEY,
	PREPD_SHARED,
	PREPD_TYPES,
};

enum msg_role { PREPD_WORKER = 1, PREPD_TRAINER, PREPD_READER };

/* Do several trainers read the batches of one job? */
enum share_how {
	SHARE_NONE,   /* one trainer */
	SHARE_WINDOW, /* all of them the same: service/decide/sweep.h */
	SHARE_ROUNDS, /* each its own: service/decide/rounds.h */
	SHARE_MODES,
};

struct share {
	enum share_how how;
	uint32_t consumers;
	uint64_t bucket;
};

struct msg {
	enum msg_type type;
	uint8_t role;
	uint32_t count, split, share;
	uint64_t id, job, epoch, a, b, c;
	const void *rest; /* in the decoded bytes */
	size_t n_rest;
};

struct msg_sample {
	uint32_t sample;
	int32_t error; /* 0 or -errno */
	uint64_t bytes;
	bool bypassed; /* read past the worker's mount of gpemu-fs */
};

/* -EPROTO: no message; a text with a NUL; a BATCH whose samples are not as long
 * as the message. -EPROTONOSUPPORT: of a different version. */
int msg_decode(const void *bytes, size_t n, struct msg *ret);
/* All but the rest. */
void msg_encode(const struct msg *m, unsigned char ret[PREPD_HEAD]);
/* The rest as a string, malloc'ed; NULL: no memory. */
char *msg_text(const struct msg *m);

/* Bytes of a BATCH of `n` samples in front of them. */
size_t msg_batch_head(uint32_t n);
/* The same of the rest of one. */
static inline size_t msg_batch_table(uint32_t n)
{
	return msg_batch_head(n) - PREPD_HEAD;
}
/* Sample `i` of a decoded BATCH. */
struct msg_sample msg_batch_sample(const struct msg *m, uint32_t i);
/* The first sample of one. */
const unsigned char *msg_batch_data(const struct msg *m);
/* Entry `i` of a BATCH, whose rest begins at `rest`. */
void msg_batch_put(unsigned char *rest, uint32_t i, const struct msg_sample *s);

#endif
