/* SPDX-License-Identifier: MIT */
#ifndef GPEMU_LOADER_DATA_DATA_STAT_PACK_H
#define GPEMU_LOADER_DATA_DATA_STAT_PACK_H

#include <stdbool.h>

#include "common/err.h"

struct data_stat_pack {
	const char *path;
	bool verify; /* read every file and verify its sum */
	bool groups; /* print only the groups */
	const char *json;
};

/* Describe a pack on stdout, and in `json`. -EBADMSG: a sum is wrong. */
int data_stat_pack(const struct data_stat_pack *s, struct err *err);

#endif
