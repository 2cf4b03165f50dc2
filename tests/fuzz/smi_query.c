/* SPDX-License-Identifier: MIT */
/* The fields of --query-gpu, or with a first byte of '!' of
 * --query-compute-apps, and after a line break the format. */
#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "share/smi/smi_query.h"
#include "tests/fuzz/fuzz.h"

static json_t *facts(void)
{
	static json_t *all;
	json_t *status;

	if (!all) {
		status = json_pack("[{s:[{s:s, s:f}], s:[{s:i, s:[i]}]}]",
				   "gpus", "name", "a GPU", "memory_used_mib",
				   5., "processes", "pid", 7, "gpus", 0);
		all = smi_facts(status);
		json_decref(status);
	}
	return all;
}

/* A row has as many columns as the query has. */
static void check_row(const struct smi_query *q)
{
	_cleanup_free_ char *text = NULL;
	size_t n, commas = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		abort();
	smi_query_rows(q, facts(), f);
	fclose(f);
	for (const char *c = text; *c; c++)
		commas += *c == ',';
	PROMISED(n && text[n - 1] == '\n' && commas + 1 == q->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_free_ char *text = strndup((const char *)data, n);
	struct smi_query q = { .processes = n && data[0] == '!' };
	struct err err = { 0 };
	char *format;
	int r;

	if (!text)
		abort();
	format = strchr(text, '\n');
	if (format)
		*format++ = 0;
	r = smi_query_parse(&q, text + q.processes, format, &err);
	PROMISED(r == 0 || r == -EINVAL || r == -E2BIG);
	PROMISED(r == 0 ? q.n > 0 : err.text[0]);
	if (r == 0)
		check_row(&q);
	return 0;
}
