/* SPDX-License-Identifier: MIT */
/* A workload file: refused with a position, or all of its points, cells and
 * checks can be made. */
#include <string.h>

#include "common/util.h"
#include "tests/fuzz/fuzz.h"
#include "runner/spec/run_expect.h"
#include "runner/result/run_verdict.h"

static void make_cells(const struct workload *w)
{
	/* enough for all combinations of a small file */
	for (size_t i = 0; i < MIN(workload_n_cells(w), 64u); i++) {
		struct cell cell;
		char label[80];

		PROMISED(workload_cell(w, i, i % 2, &cell) == 0);
		PROMISED(cell.point < w->n_points);
		workload_label(w, cell.point, label, sizeof(label));
		for (size_t a = 0; a < w->n_axes; a++)
			PROMISED(workload_setting(w, cell.point,
						  w->axes[a].name));
		cell_free(&cell);
	}
}

/* Without any record: every check is judged, and undecided. */
static void judge(struct workload *w)
{
	struct runner r = { .w = w, .out = (char *)"/nowhere" };
	struct verdicts v;
	struct result res;
	struct err err = { 0 };
	size_t n = w->expects.n;
	const struct published *p = w->published.items;

	for (size_t i = 0; i < w->published.n; i++)
		n += p[i].tolerance.given + p[i].ranked;
	PROMISED(result_init(&res, &r, &err) == 0);
	PROMISED(verdicts_init(&v, &res, &err) == 0);
	PROMISED(v.n >= n && score_in(&v.score, VERDICT_UNDECIDED) == v.n);
	verdicts_fini(&v);
	result_fini(&res);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct workload w;
	struct err err = { 0 };
	int r = workload_parse((const char *)data, n, "x", &w, &err);

	PROMISED(r == 0 || (r < 0 && !strncmp(err.text, "x:", 2)));
	if (r == 0 && w.n_points <= 64 && w.repetitions <= 8) {
		make_cells(&w);
		judge(&w);
	}
	workload_free(&w);
	return 0;
}
