/* SPDX-License-Identifier: MIT */
#include "s3/proto/checksum.h"

#include <sodium.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"

/* All CRCs of S3 are reflected, begin with ones and end inverted. */
static const struct {
	const char *name, *header;
	uint64_t poly; /* 0: no CRC */
	size_t bytes;
} kinds[CHECKSUM_N] = {
	[CHECKSUM_NONE] = { "", "", 0, 0 },
	[CHECKSUM_CRC32] = { "CRC32", "x-amz-checksum-crc32", 0xedb88320, 4 },
	[CHECKSUM_CRC32C] = { "CRC32C", "x-amz-checksum-crc32c", 0x82f63b78,
			      4 },
	[CHECKSUM_CRC64NVME] = { "CRC64NVME", "x-amz-checksum-crc64nvme",
				 0x9a6c9329ac4bc9b5, 8 },
	[CHECKSUM_SHA1] = { "SHA1", "x-amz-checksum-sha1", 0,
			    SHA1_DIGEST_SIZE },
	[CHECKSUM_SHA256] = { "SHA256", "x-amz-checksum-sha256", 0,
			      SHA256_DIGEST_SIZE },
};

const char *checksum_header(enum checksum_kind kind)
{
	return kinds[kind].header;
}

const char *checksum_name(enum checksum_kind kind)
{
	return kinds[kind].name;
}

enum checksum_kind checksum_named(const char *name)
{
	for (int i = CHECKSUM_NONE + 1; i < CHECKSUM_N; i++)
		if (!strcasecmp(kinds[i].name, name))
			return (enum checksum_kind)i;
	return CHECKSUM_NONE;
}

void checksum_init(struct checksum *c, enum checksum_kind kind)
{
	uint64_t poly = kinds[kind].poly;

	c->kind = kind;
	c->crc = kinds[kind].bytes == 4 ? UINT32_MAX : UINT64_MAX;
	if (kind == CHECKSUM_SHA1)
		sha1_init(&c->hash.sha1);
	else if (kind == CHECKSUM_SHA256)
		sha256_init(&c->hash.sha256);
	for (unsigned i = 0; poly && i < ARRAY_SIZE(c->table); i++) {
		uint64_t v = i;

		for (int bit = 0; bit < 8; bit++)
			v = v >> 1 ^ (v & 1 ? poly : 0);
		c->table[i] = v;
	}
}

void checksum_add(struct checksum *c, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t crc = c->crc;

	if (c->kind == CHECKSUM_SHA1)
		sha1_update(&c->hash.sha1, n, p);
	else if (c->kind == CHECKSUM_SHA256)
		sha256_update(&c->hash.sha256, n, p);
	if (!kinds[c->kind].poly)
		return;
	for (size_t i = 0; i < n; i++)
		crc = crc >> 8 ^ c->table[(crc ^ p[i]) & 0xff];
	c->crc = crc;
}

void checksum_end(struct checksum *c, char ret[CHECKSUM_TEXT])
{
	unsigned char out[SHA256_DIGEST_SIZE];
	size_t n = kinds[c->kind].bytes;

	if (c->kind == CHECKSUM_SHA1)
		sha1_digest(&c->hash.sha1, n, out);
	else if (c->kind == CHECKSUM_SHA256)
		sha256_digest(&c->hash.sha256, n, out);
	for (size_t i = 0; kinds[c->kind].poly && i < n; i++)
		out[i] = (unsigned char)(~c->crc >> 8 * (n - 1 - i));
	sodium_bin2base64(ret, CHECKSUM_TEXT, out, n,
			  sodium_base64_VARIANT_ORIGINAL);
}

bool checksum_read_md5(const char *text, unsigned char ret[MD5_DIGEST_SIZE])
{
	size_t n;

	return sodium_base642bin(ret, MD5_DIGEST_SIZE, text, strlen(text), NULL,
				 &n, NULL,
				 sodium_base64_VARIANT_ORIGINAL) == 0 &&
	       n == MD5_DIGEST_SIZE;
}
