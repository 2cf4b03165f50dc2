/* SPDX-License-Identifier: MIT */
/* uthash, which ends the process where there is no memory unless it is told
 * otherwise before its header is read: nobody else includes that. */
#ifndef GPEMU_FS_SERVER_HASH_H
#define GPEMU_FS_SERVER_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* HASH_ADD by a field. false: no memory, and the table is as it was. */
#define HASH_TRY_ADD(head, field, item)                                 \
	({                                                              \
		HASH_ADD(hh, head, field, sizeof((item)->field), item); \
		(item)->hh.tbl != NULL;                                 \
	})

#endif
