/* SPDX-License-Identifier: MIT */
#include "loader/format/payload.h"

#include <string.h>

int payload_rank(const char *payload, const char *ext, size_t n)
{
	for (int rank = 0;; rank++) {
		size_t m = strcspn(payload, ",");

		if (m == n && m && !strncasecmp(payload, ext, n))
			return rank;
		if (!payload[m])
			return -1;
		payload += m + 1;
	}
}
