/* SPDX-License-Identifier: MIT */
/* uthash ends the process when it is out of memory, unless configured before
 * its header is read. So only this file includes that header. */
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
