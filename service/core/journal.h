/* SPDX-License-Identifier: MIT */
/*
 * The journal of a dispatcher: an append-only file of records, from which the
 * next run of it starts.
 *
 *	8	"gpemujrn"
 *	u32	JOURNAL_VERSION
 *	record	u32 length, u32 its complement, u64 XXH3 of the bytes with the
 *		length as seed, the bytes; any number
 *
 * A dispatcher that is killed leaves whole records and at most one that is
 * incomplete; a machine that stops may also leave zeros behind them. Such a
 * tail is cut off. Anything else that does not check is damage, and an error.
 */
#ifndef GPEMU_SERVICE_CORE_JOURNAL_H
#define GPEMU_SERVICE_CORE_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "service/core/book.h"

enum {
	JOURNAL_VERSION = 1,
	JOURNAL_START = 8 + 4,
	JOURNAL_RECORD = 4 + 4 + 8, /* in front of its bytes */
};

/* Each record of a journal, in turn; < 0 ends the scan with that error. */
typedef int (*journal_fn)(void *ctx, const unsigned char *bytes, size_t n);

/*
 * Pure: the records of a whole journal; *ret_good: the bytes that are not a
 * tail. 0; -EBADMSG: not a journal, or damaged behind *ret_good;
 * -EPROTONOSUPPORT: of a different version; what `fn` returns.
 */
int journal_scan(const unsigned char *bytes, size_t n, journal_fn fn, void *ctx,
		 size_t *ret_good);

struct journal {
	int fd; /* -1: there is none, and nothing is kept */
	char *path;
	uint64_t bytes, least_bytes; /* now, and when it was rewritten */
	uint64_t cut;		     /* bytes of the tail that was cut off */
};

/*
 * Open or create, lock, and apply all records to an empty book. -EBUSY: another
 * dispatcher has it; -EBADMSG, -EPROTONOSUPPORT; -EPROTO: a record does not
 * follow from those before; as open(2); with a text. `path` NULL: no journal.
 * Close with journal_close, failed or not.
 */
int journal_open(struct journal *j, const char *path, struct book *book,
		 struct err *err);
void journal_close(struct journal *j);
/* Append an event. -errno: do not go on. */
int journal_put(struct journal *j, const struct msg *event);
/* What was appended survives a stop of the machine. -errno as fdatasync(2). */
int journal_sync(struct journal *j);
/* Replace it by the events that lead to this book, once it is far larger. */
int journal_shorten(struct journal *j, const struct book *book);

#endif
