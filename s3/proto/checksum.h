/* SPDX-License-Identifier: MIT */
/* The checksums that clients send beside an object. Source: Amazon S3 user
 * guide, "Checking object integrity". Pure. */
#ifndef GPEMU_S3_PROTO_CHECKSUM_H
#define GPEMU_S3_PROTO_CHECKSUM_H

#include <nettle/md5.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum checksum_kind {
	CHECKSUM_NONE,
	CHECKSUM_CRC32,
	CHECKSUM_CRC32C,
	CHECKSUM_CRC64NVME,
	CHECKSUM_SHA1,
	CHECKSUM_SHA256,
	CHECKSUM_N,
};

/* In base64, with a NUL; the longest is that of SHA-256. */
enum { CHECKSUM_TEXT = 4 * ((SHA256_DIGEST_SIZE + 2) / 3) + 1 };

struct checksum {
	enum checksum_kind kind;
	uint64_t crc, table[256]; /* of a CRC */
	union {
		struct sha1_ctx sha1;
		struct sha256_ctx sha256;
	} hash;
};

/* "x-amz-checksum-crc32" and so on. */
const char *checksum_header(enum checksum_kind kind);
/* Of a name such as "CRC32"; CHECKSUM_NONE: it is none. */
enum checksum_kind checksum_named(const char *name);
/* The name, in capitals. */
const char *checksum_name(enum checksum_kind kind);

void checksum_init(struct checksum *c, enum checksum_kind kind);
void checksum_add(struct checksum *c, const void *bytes, size_t n);
/* Once, at the end. "" of CHECKSUM_NONE. */
void checksum_end(struct checksum *c, char ret[CHECKSUM_TEXT]);

/* The 16 bytes of Content-MD5; false: it has not as many. */
bool checksum_read_md5(const char *text, unsigned char ret[MD5_DIGEST_SIZE]);

#endif
