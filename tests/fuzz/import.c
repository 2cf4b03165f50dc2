/* SPDX-License-Identifier: MIT */
/* Published tables, in each format: steps that are accepted are positive. */
#include "emu/import/import.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct table_model *m = &t->models[i];

		PROMISED(m->name[0] && m->n);
		for (size_t k = 0; k < m->n; k++) {
			PROMISED(m->points[k].batch >= 1);
			PROMISED(m->points[k].batch <= IMPORT_BATCH_MAX);
			PROMISED(m->points[k].v[0] >= 0);
			PROMISED(m->points[k].v[1] >= 0);
			PROMISED(!k ||
				 m->points[k].batch > m->points[k - 1].batch);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const formats[] = {
		NULL,	    "gpemu",	      "timm",
		"neusight", "mlperf_storage", "mlperf_training:gpus=8",
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct table t = { 0 };
		struct err err = { 0 };
		int r = import_parse((const char *)data, n, "m-train-8-1.json",
				     formats[i], &t, &err);

		PROMISED(r == 0 || (r < 0 && err.text[0]));
		if (r == 0)
			check(&t);
		table_free(&t);
	}
	return 0;
}
