/* SPDX-License-Identifier: MIT */
/* Input by bytes: whatever the window, it is the same lines; compressed input
 * that zstd accepts, and that it does not. */
#include <string.h>

#include "tests/fuzz/sim.h"

/* A hash of all lines and their number; -errno. */
static int lines(struct sim_input *in, uint64_t *ret)
{
	const char *at, *end;
	int r;

	*ret = 0;
	while ((r = sim_input_line(in, &at, &end)) > 0) {
		for (; at < end; at++)
			*ret = *ret * 31 + (uint8_t)*at;
		*ret = *ret * 31 + 256;
	}
	return r;
}

/* A frame whose header asks for a window of more than 1 MiB costs more time in
 * ASan's allocator than all else. Source: RFC 8878, section 3.1.1.1 */
static bool has_large_window(const uint8_t *data, size_t n)
{
	bool single = n > 5 && data[4] & 0x20;

	return n > 5 && data[0] == 0x28 &&
	       (single ? data[4] >> 6 >= 2 : data[5] >> 3 > 10);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd, r[2];
	struct err err[2] = { 0 };
	struct sim_input in[2];
	uint64_t sum[2] = { 0 };

	if (has_large_window(data, n))
		return 0;
	fd = memfd_create("trace", 0);
	PROMISED(write(fd, data, n) == (ssize_t)n);
	PROMISED(lseek(fd, 0, SEEK_SET) == 0);
	r[0] = sim_input_open_memory(&in[0], data, n, "x", &err[0]);
	r[1] = sim_input_open_fd(&in[1], fd, n % 61, "x", &err[1]);
	for (int i = 0; i < 2; i++) {
		if (r[i] == 0)
			r[i] = lines(&in[i], &sum[i]);
		PROMISED(r[i] == 0 || (r[i] < 0 && err[i].text[0]));
		sim_input_close(&in[i]);
	}
	PROMISED((r[0] == 0) == (r[1] == 0));
	PROMISED(r[0] < 0 || sum[0] == sum[1]);
	return 0;
}
