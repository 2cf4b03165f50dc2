/* SPDX-License-Identifier: MIT */
/* The file of a node. */
#include "platform/node.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct err err = { 0 };
	struct node node;
	int r = node_parse((const char *)data, n, "node", &node, &err);

	PROMISED((r < 0) == (err.text[0] != '\0'));
	for (size_t i = 0; r == 0 && i < node.gpus.n; i++) {
		const struct node_kind *k = node_kind(&node, i);

		PROMISED(k->count >= 1 && k->count <= NODE_MAX_GPUS);
		PROMISED(k->n_slices >= 1 &&
			 k->count * k->n_slices <= NODE_MAX_DEVICES);
		PROMISED(node_slice_bytes(k) * k->n_slices <= k->memory_bytes);
		for (uint32_t gpu = 0; gpu < k->count; gpu++)
			PROMISED(node_numa(k, gpu) >= -1);
	}
	node_free(&node);
	return 0;
}
