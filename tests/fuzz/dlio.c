/* SPDX-License-Identifier: MIT */
/* A workload of DLIO: refused with a position, or what is written for it is
 * YAML of one document, with the notes in its comments. */
#include <stdlib.h>
#include <string.h>

#include "runner/dlio/dlio.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct dlio *d)
{
	struct conf_node *root = NULL;
	struct err err = { 0 };
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	PROMISED(f && dlio_write(d, "dir/x.y.yaml", f) == 0);
	fclose(f);
	PROMISED(conf_tree_parse(text, n, "y", &root, &err) == 0);
	PROMISED(conf_node_get(root, "name") && conf_node_get(root, "base"));
	/* with metric.au three more, and one with a seed */
	PROMISED(root->n >= 4 && root->n <= 8);
	conf_node_free(root);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dlio d;
	struct err err = { 0 };
	int r = dlio_parse((const char *)data, n, "x", &d, &err);

	PROMISED(r == 0 || (r < 0 && !strncmp(err.text, "x:", 2)));
	if (r == 0)
		check(&d);
	dlio_free(&d);
	return 0;
}
