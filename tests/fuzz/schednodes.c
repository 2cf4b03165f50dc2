/* SPDX-License-Identifier: MIT */
/* Nodes, as a CSV file and as text. */
#include <string.h>

#include "sched/trace/workload.h"
#include "tests/fuzz/digits.h"
#include "tests/fuzz/fuzz.h"

static void check(struct cluster *c, int r, const struct err *err)
{
	PROMISED(r == 0 || (r < 0 && err->text[0]));
	PROMISED(r < 0 || c->n);
	PROMISED(c->free.gpu_milli == c->whole.gpu_milli);
	for (size_t i = 0; i < c->n; i++) {
		PROMISED(c->nodes[i].n_gpus <= CLUSTER_GPUS_MAX);
		PROMISED(c->nodes[i].model < c->n_models);
	}
	cluster_fini(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cluster c = { 0 };
	struct err err = { 0 };
	char *text = strndup((const char *)data, n);

	if (text && !has_large_number(data, n)) {
		check(&c, nodes_parse_csv((const char *)data, n, "x", &c, &err),
		      &err);
		err = (struct err){ 0 };
		check(&c, nodes_parse(text, &c, &err), &err);
	}
	free(text);
	return 0;
}
