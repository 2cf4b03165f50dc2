/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "loader/dataset/index.h"
#include "tests/fuzz/fuzz.h"

static void check_sample(const struct dataset *d, size_t i)
{
	char name[256];

	PROMISED(strlen(dataset_path(d, i)) < d->names_bytes);
	PROMISED(d->label[i] < d->n_classes);
	PROMISED(d->size[i] <= d->largest && d->size[i] <= INT64_MAX);
	if (d->container) {
		uint64_t size = d->origin[d->container[i]].size;

		PROMISED(d->container[i] < d->n_containers);
		PROMISED(d->group[i] < d->n_groups);
		PROMISED(d->offset[i] <= size);
		PROMISED(d->size[i] <= size - d->offset[i]);
	}
	/* computing its rank counts entries: not for all of many */
	if (i < 64)
		PROMISED(dataset_name(d, i, name, sizeof(name))[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char root[] = "root";
	/* aligned, and exactly as long */
	void *own = malloc(n ? n : 1);
	struct err err = { 0 };
	struct dataset d;
	int r;

	PROMISED(own);
	memcpy(own, data, n);
	r = index_parse(own, n, 0, &d, &err);
	PROMISED(r == 0 || err.text[0]);
	d.root = root;
	for (size_t i = 0; r == 0 && i < d.n; i++)
		check_sample(&d, i);
	for (size_t i = 0; r == 0 && i < d.n_origins; i++)
		PROMISED(strlen(d.names + d.origin[i].path) < d.names_bytes);
	for (size_t i = 0; r == 0 && i < d.notes.n; i++)
		free(note_text(&d.notes.note[i]));
	free(own);
	return 0;
}
