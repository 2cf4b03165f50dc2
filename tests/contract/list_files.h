/* SPDX-License-Identifier: MIT */
#ifndef GPEMU_TESTS_CONTRACT_LIST_FILES_H
#define GPEMU_TESTS_CONTRACT_LIST_FILES_H

#include "loader/dataset/format_open.h"

/* As format `files` lists a folder, without an index. */
static inline int list_files(const char *dir, struct dataset *ret,
			     struct err *err)
{
	struct format_request q = { .path = dir,
				    .format = "files",
				    .index = FORMAT_INDEX_OFF };
	struct format_result how;
	int r = format_open(&q, ret, &how, err);

	format_result_fini(&how);
	return r;
}

#endif
