/* SPDX-License-Identifier: MIT */
#include "loader/format/token_width.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"

/* Source: llm.c, dev/data/data_common.py; hellaswag.c of dev/data writes
 * evaluations */
static const struct {
	uint32_t magic, version;
	uint32_t bytes; /* of a token; 0: the file has other content */
	const char *what;
} headers[] = {
	{ 20240520, 1, 2, "tokens of GPT-2" },
	{ 20240801, 7, 4, "tokens of Llama 3" },
	{ 20240522, 1, 0, "an evaluation, not a stream of tokens" },
};

static int failed(struct err *err, int r)
{
	return err_set(err, r, "%s", strerror(-r));
}

int token_header(struct peek *p, uint32_t *ret_bytes, struct err *err)
{
	uint32_t word[3];
	size_t i = 0;
	uint64_t room;
	int r;

	if (p->size < TOKEN_HEADER)
		return 0;
	r = peek_copy(p, 0, sizeof(word), word);
	if (r < 0)
		return failed(err, r);
	while (i < ARRAY_SIZE(headers) && headers[i].magic != le32toh(word[0]))
		i++;
	if (i == ARRAY_SIZE(headers))
		return 0;
	if (!headers[i].bytes)
		return err_set(err, -EINVAL, "a file of llm.c with %s",
			       headers[i].what);
	if (le32toh(word[1]) != headers[i].version)
		return err_set(err, -EINVAL,
			       "its header (llm.c, %s) has version %" PRIu32
			       ", not %" PRIu32,
			       headers[i].what, le32toh(word[1]),
			       headers[i].version);
	room = (p->size - TOKEN_HEADER) / headers[i].bytes;
	if ((p->size - TOKEN_HEADER) % headers[i].bytes ||
	    room != le32toh(word[2]))
		return err_set(err, -EINVAL,
			       "its header counts %" PRIu32
			       " tokens of %" PRIu32 " bytes, and %" PRIu64
			       " bytes follow it",
			       le32toh(word[2]), headers[i].bytes,
			       p->size - TOKEN_HEADER);
	*ret_bytes = headers[i].bytes;
	return 1;
}

/*
 * Behind the key stands, maybe, that it is remembered (MEMOIZE, BINPUT,
 * LONG_BINPUT), and then the number (BININT1, BININT2, BININT). Source:
 * CPython, Lib/pickletools.py
 */
uint64_t token_pickled_vocabulary(const uint8_t *bytes, size_t n)
{
	static const char key[] = "vocab_size";
	const uint8_t *p = memmem(bytes, n, key, sizeof(key) - 1);
	const uint8_t *end = bytes + n;
	uint64_t ret = 0;
	int length = 0;

	if (!p)
		return 0;
	p += sizeof(key) - 1;
	if (p < end && (*p == 0x94 || *p == 'q' || *p == 'r'))
		p += *p == 0x94 ? 1 : *p == 'q' ? 2 : 5;
	if (p < end)
		length = *p == 'K' ? 1 : *p == 'M' ? 2 : *p == 'J' ? 4 : 0;
	if (end - p <= length)
		return 0;
	for (int i = length; i > 0; i--)
		ret = ret << 8 | p[i];
	return ret <= INT32_MAX ? ret : 0;
}

static uint64_t id_at(const uint8_t *v, size_t i, uint32_t bytes)
{
	uint64_t id = 0;

	memcpy(&id, v + i * bytes, bytes);
	return le64toh(id);
}

/*
 * Ids of four bytes, read as two: every second one is the upper half of an id,
 * below 256 up to a vocabulary of 16 million, and some lower half is not.
 * Text has no such run of 64: the ids below 256 of a byte-pair encoding are
 * single bytes.
 */
static bool look_wider(const uint8_t *v, size_t n)
{
	bool low = true, high = true;

	for (size_t i = 0; i + 1 < n; i += 2) {
		low &= id_at(v, i, 2) < 256;
		high &= id_at(v, i + 1, 2) < 256;
	}
	return n >= 128 && high && !low;
}

int token_check(struct peek *p, uint64_t at, uint32_t bytes,
		uint64_t vocabulary, bool guessed, struct err *err)
{
	size_t n = (size_t)(MIN(p->size - at, (uint64_t)PEEK_MOST) / bytes);
	const uint8_t *v;
	int r;

	if (bytes < 8 && vocabulary > 1ull << (8 * bytes))
		return err_set(err, -EINVAL,
			       "a vocabulary of %" PRIu64
			       " does not fit tokens of %" PRIu32
			       " bytes: give token_bytes",
			       vocabulary, bytes);
	r = peek_get(p, at, n * bytes, &v);
	if (r < 0)
		return failed(err, r);
	for (size_t i = 0; vocabulary && i < n; i++)
		if (id_at(v, i, bytes) >= vocabulary)
			return err_set(err, -EINVAL,
				       "token %zu is %" PRIu64
				       ", outside the vocabulary of %" PRIu64,
				       i, id_at(v, i, bytes), vocabulary);
	if (guessed && bytes == 2 && look_wider(v, n))
		return err_set(err, -EINVAL,
			       "its tokens look like four bytes each, and "
			       "nothing says so: give token_bytes=4, or "
			       "token_bytes=2 if they have two");
	return 0;
}
