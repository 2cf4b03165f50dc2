/* SPDX-License-Identifier: MIT */
/* gpemu-prepd's subcommands, one file each, and what their options have in
 * common. */
#ifndef GPEMU_SERVICE_PREPD_H
#define GPEMU_SERVICE_PREPD_H

#include "common/err.h"
#include "net/addr.h"

int prepd_dispatcher_main(int argc, char **argv);
int prepd_worker_main(int argc, char **argv);

/* For `check` of a conf_field: is the text HOST:PORT? */
static inline int prepd_check_address(const void *object, struct err *err)
{
	return addr_check(*(char *const *)object, err);
}

#endif
