/* SPDX-License-Identifier: MIT */
/* An access control list, as the kernel gives it. */
#include <string.h>

#include "fs/source/acl.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint32_t modes[] = { 0100777, 0040755, 0100640, 0 };
	/* a copy of its own, so that the sanitizer sees its end */
	void *list = malloc(n ? n : 1);

	if (!list)
		return 0;
	memcpy(list, data, n);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		uint32_t mode = modes[i], limited = acl_limit(mode, list, n);

		/* fewer rights, and none of the owner's */
		PROMISED(!(limited & ~mode));
		PROMISED((limited & ~077u) == (mode & ~077u));
		PROMISED(acl_limit(limited, list, n) == limited);
	}
	free(list);
	return 0;
}
