/* SPDX-License-Identifier: MIT */
#include "platform/grpc/grpc_frame.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

void grpc_inbox_init(struct grpc_inbox *in, size_t most)
{
	*in = (struct grpc_inbox){ .most = most };
}

void grpc_inbox_fini(struct grpc_inbox *in)
{
	free(in->bytes);
	*in = (struct grpc_inbox){ 0 };
}

static size_t length(const struct grpc_inbox *in)
{
	const uint8_t *p = in->prefix;

	return (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 |
	       p[4];
}

int grpc_inbox_add(struct grpc_inbox *in, const uint8_t *data, size_t n)
{
	size_t k = MIN(n, GRPC_PREFIX - in->n_prefix);

	if (k) /* `data` of no bytes may be NULL */
		memcpy(in->prefix + in->n_prefix, data, k);
	in->n_prefix += k;
	data += k;
	n -= k;
	if (in->n_prefix < GRPC_PREFIX)
		return 0;
	if (in->prefix[0])
		return -EBADMSG;
	if (length(in) > in->most)
		return -EMSGSIZE;
	if (n > length(in) - in->n)
		return -EBADMSG;
	if (n == 0)
		return 0;
	if (util_reserve(&in->bytes, &in->size, in->n + n, 1) < 0)
		return -ENOMEM;
	memcpy(in->bytes + in->n, data, n);
	in->n += n;
	return 0;
}

bool grpc_inbox_whole(const struct grpc_inbox *in)
{
	return in->n_prefix == GRPC_PREFIX && in->n == length(in);
}

void grpc_prefix(uint8_t ret[GRPC_PREFIX], size_t n)
{
	ret[0] = 0;
	for (int i = 1; i < GRPC_PREFIX; i++)
		ret[i] = (uint8_t)(n >> 8 * (GRPC_PREFIX - 1 - i));
}

void grpc_text_encode(const char *text, char ret[GRPC_TEXT])
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (; *text && n + 4 <= GRPC_TEXT; text++) {
		uint8_t c = (uint8_t)*text;

		if (c >= ' ' && c <= '~' && c != '%') {
			ret[n++] = (char)c;
			continue;
		}
		ret[n++] = '%';
		ret[n++] = digits[c >> 4];
		ret[n++] = digits[c & 15];
	}
	ret[n] = '\0';
}

static int digit(uint8_t c)
{
	if (!isxdigit(c))
		return -1;
	return isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
}

void grpc_text_decode(const uint8_t *text, size_t n, char ret[GRPC_TEXT])
{
	size_t k = 0;

	for (size_t i = 0; i < n && k + 1 < GRPC_TEXT; i++) {
		int c = text[i];

		if (c == '%' && n - i > 2 && digit(text[i + 1]) >= 0 &&
		    digit(text[i + 2]) >= 0) {
			c = digit(text[i + 1]) << 4 | digit(text[i + 2]);
			i += 2;
		}
		ret[k++] = (char)(c >= ' ' && c <= '~' ? c : '?');
	}
	ret[k] = '\0';
}
