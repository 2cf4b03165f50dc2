/* SPDX-License-Identifier: MIT */
/* The parts that a contract is tried on: those of gpemu, or the one in a file,
 * which `gpemu part check` names as the argument. */
#ifndef GPEMU_TESTS_CONTRACT_TESTED_H
#define GPEMU_TESTS_CONTRACT_TESTED_H

#include <stdio.h>
#include <stdlib.h>

#include "common/conf/part.h"

static inline const struct plugin *const *
tested_parts(int argc, char **argv, const struct plugin *const table[])
{
	static const struct plugin *one[2];
	struct err err = { 0 };

	if (argc < 2)
		return table;
	part_files_allow(true);
	one[0] = plugin_find(table, "part", argv[1], &err);
	part_files_allow(false);
	if (!one[0]) {
		fprintf(stderr, "%s\n", err.text);
		exit(EXIT_STATUS_FAILED);
	}
	return one;
}

#endif
