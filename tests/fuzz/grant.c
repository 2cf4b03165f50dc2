/* SPDX-License-Identifier: MIT */
/* The file of a grant that a plugin left: lines, one at least, without a 0. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform/k8s/grant_files.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *bytes = malloc(n + 1), **lines = NULL;
	size_t k = 0, all = 0;
	int r;

	if (!bytes)
		return 0;
	memcpy(bytes, data, n);
	bytes[n] = '\0';
	r = grant_file_parse(bytes, n, &lines, &k);
	PROMISED(r == 0 || r == -EINVAL);
	PROMISED(r < 0 || k >= 1);
	for (size_t i = 0; r == 0 && i < k; i++) {
		PROMISED(lines[i][0]);
		all += strlen(lines[i]) + 1;
	}
	PROMISED(r < 0 || all + strlen("end\n") == n);
	free(lines);
	free(bytes);
	return 0;
}
