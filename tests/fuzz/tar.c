/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/shard.h"

extern const struct format_ops format_tar;

/* libFuzzer's; declared in no header for C. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max,
			       unsigned seed);

/* Give each block the checksum of a header, so that the code behind the check
 * is reached. */
static void fix_sums(uint8_t *data, size_t n)
{
	for (; n >= 512; data += 512, n -= 512) {
		char text[8] = "";
		unsigned sum = 8 * ' ';

		if (!data[0])
			continue;
		for (size_t i = 0; i < 512; i++)
			sum += i < 148 || i >= 156 ? data[i] : 0;
		snprintf(text, sizeof(text), "%06o", sum);
		memcpy(data + 148, text, 8);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max,
			       unsigned seed)
{
	n = LLVMFuzzerMutate(data, n, max);
	if (seed % 8)
		fix_sums(data, n);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	scan_shard(&format_tar, "tar:payload=txt,seg.jpg", data, n);
	return 0;
}
