/* SPDX-License-Identifier: MIT */
#include "loader/format/crc32c.h"
#include "tests/fuzz/shard.h"

extern const struct format_ops format_tfrecord;

/* libFuzzer's; declared in no header for C. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max,
			       unsigned seed);

/* Correct the checksums of all lengths, so that the code behind the check is
 * reached. */
static void fix_sums(uint8_t *data, size_t n)
{
	while (n >= 16) {
		uint32_t crc = crc32c_mask(crc32c(0, data, 8));
		uint64_t length;

		memcpy(data + 8, &crc, sizeof(crc));
		memcpy(&length, data, sizeof(length));
		if (length > n - 16)
			break;
		crc = crc32c_mask(crc32c(0, data + 12, length));
		memcpy(data + 12 + length, &crc, sizeof(crc));
		data += length + 16;
		n -= length + 16;
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
	scan_shard(&format_tfrecord,
		   "tfrecord:verify=on,image=image,label=label", data, n);
	return 0;
}
