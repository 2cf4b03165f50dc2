/* SPDX-License-Identifier: MIT */
/* The header of a pack, then its index, with the right checksums. */
#include <string.h>

#include "common/pack/pack.h"
#include "tests/fuzz/fuzz.h"

/* Where the data of the pack ends. arbitrary: the seeds were made for it */
enum { DATA_END = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct pack_header h;
	struct err err = { 0 };
	struct pack p;

	if (n >= PACK_HEADER_BYTES)
		pack_parse_header(data, n, &h, NULL);
	if (pack_parse_index(data, n, DATA_END, &p, &err) < 0)
		PROMISED(err.text[0]);
	for (uint32_t i = 0; !err.text[0] && i < p.n_files; i++) {
		const struct pack_file *f = &p.files[i];

		PROMISED(f->offset <= DATA_END);
		PROMISED(f->bytes <= DATA_END - f->offset);
		PROMISED(!i || grouping_compare(p.files[p.sorted[i - 1]].path,
						p.files[p.sorted[i]].path) < 0);
	}
	pack_fini(&p);
	return 0;
}
