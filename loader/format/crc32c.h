/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli), as iSCSI and TFRecord use it. */
#ifndef GPEMU_LOADER_FORMAT_CRC32C_H
#define GPEMU_LOADER_FORMAT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The sum of `n` more bytes; `crc` is the sum of those before, 0 at the start.
 * Source: RFC 3720, appendix B.4 */
uint32_t crc32c(uint32_t crc, const void *v, size_t n);
/* The masked form, stored after the data it covers. Source:
 * tensorflow/core/lib/hash/crc32c.h */
uint32_t crc32c_mask(uint32_t crc);

#endif
