/* SPDX-License-Identifier: MIT */
/* Traces of lines, in each layout; the first byte says which. */
#include "tests/fuzz/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const layouts[] = {
		"csv",
		"csv:key=2,size=3+4,op=1,ops=get,set,unit=ms",
		"csv:key=id,size=size,time=time,delimiter=semicolon",
		"twitter",
		"msr:block=1T", /* a line is up to 1025 requests */
		"ibm",
		"mooncake",
	};
	enum { N = sizeof(layouts) / sizeof(layouts[0]) };

	if (n)
		fuzz_sim(layouts[data[0] % N], data + 1, n - 1,
			 data[0] / N % 2 ? 7 : 0);
	return 0;
}
