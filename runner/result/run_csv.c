/* SPDX-License-Identifier: MIT */
/* All runs, and all verdicts, as tidy tables (RFC 4180). */
#include "runner/result/run_csv.h"

#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "runner/result/run_result.h"
#include "runner/result/run_verdict.h"

void csv_text(FILE *f, const char *s)
{
	bool plain = !s[strcspn(s, ",\"\r\n")];

	if (plain) {
		fputs(s, f);
		return;
	}
	fputc('"', f);
	for (; *s; s++)
		fprintf(f, *s == '"' ? "\"\"" : "%c", *s);
	fputc('"', f);
}

void csv_number(FILE *f, double v)
{
	char digits[RESULT_TEXT];

	result_exact(digits, sizeof(digits), v);
	fputs(digits, f);
}

void csv_value(FILE *f, const json_t *j)
{
	_cleanup_free_ char *dump = NULL;

	if (json_is_string(j)) {
		csv_text(f, json_string_value(j));
	} else if (json_is_number(j)) {
		csv_number(f, json_number_value(j));
	} else if (j && !json_is_null(j)) {
		dump = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);
		csv_text(f, dump ? dump : "");
	}
}

void csv_cell(FILE *f, const struct workload *w, const struct cell *cell)
{
	csv_text(f, w->name);
	fprintf(f, ",%s", cell->id);
	for (size_t a = 0; a < w->n_axes; a++) {
		fputc(',', f);
		csv_text(f, workload_at(w, cell->point, a)->label);
	}
	fprintf(f, ",%zu,%llu", cell->repetition + 1,
		(unsigned long long)cell->seed);
}

/* A member of the record's `group`. */
static void member(FILE *f, const json_t *record, const char *group,
		   const char *key)
{
	const json_t *j = group ? json_object_get(record, group) : record;

	fputc(',', f);
	csv_value(f, json_object_get(j, key));
}

static void line(const struct result *res, const struct cell *cell,
		 const json_t *record, FILE *f)
{
	csv_cell(f, res->r->w, cell);
	member(f, record, NULL, "status");
	member(f, record, "cell", "started");
	member(f, record, "cell", "wall_seconds");
	member(f, record, "cell", "attempts");
	member(f, record, "cell", "disturbed");
	member(f, record, "cell", "gpemu");
	member(f, record, "host", "name");
	member(f, record, "host", "kernel");
	member(f, record, "host", "load_before");
	member(f, record, "host", "other_cpu_share");
	for (size_t i = 0; i < res->n_metrics; i++) {
		double v = *result_value(res, cell->point, cell->repetition, i);

		fputc(',', f);
		if (!isnan(v))
			csv_number(f, v);
	}
	fputs("\n", f);
}

void result_csv(const struct result *res, FILE *f)
{
	const struct workload *w = res->r->w;

	fputs("workload,cell", f);
	for (size_t a = 0; a < w->n_axes; a++) {
		fputc(',', f);
		csv_text(f, w->axes[a].name);
	}
	fputs(",repetition,seed,status,started,cell_wall_seconds,attempts,"
	      "disturbed,gpemu,host,kernel,load_before,other_cpu_"
	      "share",
	      f);
	for (size_t i = 0; i < res->n_metrics; i++) {
		fputc(',', f);
		csv_text(f, res->metrics[i]->name);
	}
	fputc('\n', f);
	for (size_t i = 0; i < workload_n_cells(w); i++) {
		json_auto_t *record = NULL;
		_cleanup_free_ char *path = NULL;
		struct cell cell;

		if (workload_cell(w, i, res->r->mounted, &cell) < 0)
			return;
		path = runner_path(res->r, "records", cell.id, "json");
		if (path)
			json_read(path, &record, NULL);
		line(res, &cell, record, f);
		cell_free(&cell);
	}
}

/* An end of an interval, or nothing. */
static void end(FILE *f, double v)
{
	if (!isnan(v))
		csv_number(f, v);
	fputc(',', f);
}

void verdicts_csv(const struct verdicts *v, const char *workload, FILE *f)
{
	fputs("workload,check,kind,at,ours,wanted,interval,low,high,"
	      "repetitions,needed,verdict,note\n",
	      f);
	for (size_t i = 0; i < v->n; i++) {
		const struct verdict *one = &v->items[i];
		const char *const texts[] = {
			workload,     one->check, evidence_name(one->kind),
			one->at,      one->ours,  one->wanted,
			one->interval
		};

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++) {
			csv_text(f, texts[k]);
			fputc(',', f);
		}
		end(f, one->low);
		end(f, one->high);
		fprintf(f, "%zu,", one->n);
		if (one->needed && one->needed != SIZE_MAX)
			fprintf(f, "%zu", one->needed);
		fprintf(f, ",%s,", verdict_state_name(one->state));
		csv_text(f, one->note);
		fputc('\n', f);
	}
}
