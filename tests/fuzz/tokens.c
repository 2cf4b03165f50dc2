/* SPDX-License-Identifier: MIT */
/* A token file: its header, its width; and the pickle beside it. */
#include "loader/format/token_width.h"
#include "tests/fuzz/shard.h"

extern const struct format_ops format_tokens;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const choices[] = {
		"tokens:sequence_length=3",
		"tokens:vocabulary=50257",
		"tokens:token_bytes=4,sequence_length=1",
	};
	void *own = malloc(n ? n : 1); /* exactly as long */

	PROMISED(own);
	memcpy(own, data, n);
	PROMISED(token_pickled_vocabulary(own, n) <= INT32_MAX);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		scan_choice(&format_tokens, choices[i], own, n);
	free(own);
	return 0;
}
