/* SPDX-License-Identifier: MIT */
/*
 * Writes a GPU profile as readable YAML: texts folded at 78 columns, one line
 * per row, and one line per model where it has a single row. The same profile
 * gives the same bytes.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "emu/profile/profile_gpu.h"

#include "common/json.h"
#include "common/util.h"

enum { WIDTH = 78 };

/* A folded text; where one is not plain words, quoted. */
static void write_text(FILE *f, const char *key, const char *text, int indent)
{
	int column = WIDTH;

	if (text[0] == ' ' || strpbrk(text, "\n\t") || strstr(text, "  ")) {
		fprintf(f, "%*s", indent, "");
		json_put_yaml(f, key, text);
		return;
	}
	fprintf(f, "%*s%s: >-", indent, "", key);
	while (*text) {
		int n = (int)strcspn(text, " ");

		if (column + 1 + n > WIDTH) {
			fprintf(f, "\n%*s%.*s", indent + 2, "", n, text);
			column = indent + 2 + n;
		} else {
			fprintf(f, " %.*s", n, text);
			column += 1 + n;
		}
		text += n;
		text += *text == ' ';
	}
	fputc('\n', f);
}

static void write_law(FILE *f, const char *key, const struct gpu_law *law)
{
	fprintf(f, "%s:\n  base_ms: %.10g\n  per_sample_ms: %.10g\n", key,
		law->base_ms, law->per_sample_ms);
	write_text(f, "source", law->source, 2);
}

static void write_jump(FILE *f, const struct gpu_jump *jump)
{
	if (!jump->bytes)
		return;
	fprintf(f, "transfer_jump:\n  bytes: %" PRIu64 "\n", jump->bytes);
	write_text(f, "source", jump->source, 2);
}

static void write_copies(FILE *f, const struct gpu_copies *c)
{
	const struct gpu_copies_row *row = c->rows.items;

	fprintf(f, "# bytes, pageable_ms, pinned_ms, pin_copy_ms\n"
		   "copies:\n  rows:\n");
	for (size_t i = 0; i < c->rows.n; i++)
		fprintf(f, "  - [%" PRIu64 ", %.10g, %.10g, %.10g]\n",
			row[i].bytes, row[i].pageable_ms, row[i].pinned_ms,
			row[i].pin_copy_ms);
	write_text(f, "source", c->source, 2);
}

static void write_row(FILE *f, const struct gpu_row *row)
{
	bool more = row->optimizer_ms > 0 || row->spread_pct > 0;

	fprintf(f, "[%" PRIu64 ", %.10g, %.10g", row->batch, row->forward_ms,
		row->backward_ms);
	if (more || row->transfer_ms > 0 || row->peak_mib > 0)
		fprintf(f, ", %.10g, %.10g, %.10g", row->transfer_ms,
			row->peak_mib, row->persistent_mib);
	if (more)
		fprintf(f, ", %.10g, %.10g", row->optimizer_ms,
			row->spread_pct);
	fprintf(f, "]");
}

static void write_noise(FILE *f, const struct gpu_noise *noise)
{
	const struct gpu_noise_model *m = noise->models.items;

	if (!noise->models.n)
		return;
	fprintf(f, "noise:\n  models:\n");
	for (size_t i = 0; i < noise->models.n; i++)
		fprintf(f, "    %s: {cv_pct: %.10g}\n", m[i].name, m[i].cv_pct);
	write_text(f, "source", noise->source, 2);
}

static void write_board(FILE *f, const struct gpu_board *b)
{
	json_auto_t *given = b->source ? gpu_board_json(b) : NULL;
	const json_t *value;
	const char *key;

	if (!given)
		return;
	fprintf(f, "board:\n");
	json_object_foreach (given, key, value) {
		if (json_is_string(value))
			write_text(f, key, json_string_value(value), 2);
		else if (json_is_true(value))
			fprintf(f, "  %s: true\n", key);
		else
			fprintf(f, "  %s: %.10g\n", key,
				json_number_value(value));
	}
	write_text(f, "source", b->source, 2);
}

/* host_ms and warmup_ms, where they are given. */
static void write_host(FILE *f, const struct gpu_model *m, const char *before,
		       const char *after)
{
	const double *ms = m->warmup_ms.items;

	if (m->host_ms > 0)
		fprintf(f, "%shost_ms: %.4g%s", before, m->host_ms, after);
	if (m->warmup_ms.n)
		fprintf(f, "%swarmup_ms: [", before);
	for (size_t i = 0; i < m->warmup_ms.n; i++)
		fprintf(f, "%s%.4g", i ? ", " : "", ms[i]);
	if (m->warmup_ms.n)
		fprintf(f, "]%s", after);
}

/* One measured point: tables of many models have nothing else. */
static void write_point(FILE *f, const struct gpu_model *m)
{
	fprintf(f, "  %s: {parameters: %" PRIu64, m->name, m->parameters);
	if (m->sample_bytes)
		fprintf(f, ", sample_bytes: %" PRIu64, m->sample_bytes);
	if (m->model_transfer_ms > 0)
		fprintf(f, ", model_transfer_ms: %.4g", m->model_transfer_ms);
	write_host(f, m, ", ", "");
	if (m->last_is_limit)
		fprintf(f, ", last_is_limit: true");
	if (m->tolerance_pct > 0)
		fprintf(f, ", tolerance_pct: %.10g", m->tolerance_pct);
	fprintf(f, ", rows: [");
	write_row(f, m->rows.items);
	fprintf(f, "]}\n");
}

static void write_model(FILE *f, const struct gpu_model *m)
{
	const struct gpu_row *row = m->rows.items;

	if (m->rows.n == 1 && !m->notes && !m->source) {
		write_point(f, m);
		return;
	}
	fprintf(f, "  %s:\n", m->name);
	if (m->notes)
		write_text(f, "notes", m->notes, 4);
	if (m->source)
		write_text(f, "source", m->source, 4);
	fprintf(f, "    parameters: %" PRIu64 "\n", m->parameters);
	if (m->sample_bytes)
		fprintf(f, "    sample_bytes: %" PRIu64 "\n", m->sample_bytes);
	if (m->model_transfer_ms > 0)
		fprintf(f, "    model_transfer_ms: %.4g\n",
			m->model_transfer_ms);
	write_host(f, m, "    ", "\n");
	fprintf(f,
		"    last_batch: %" PRIu64 "\n"
		"    last_is_limit: %s\n"
		"    tolerance_pct: %.10g\n",
		m->last_batch, m->last_is_limit ? "true" : "false",
		m->tolerance_pct);
	if (m->tolerance_points)
		fprintf(f, "    tolerance_points: %" PRIu64 "\n",
			m->tolerance_points);
	fprintf(f, "    rows:\n");
	for (size_t i = 0; i < m->rows.n; i++) {
		fprintf(f, "    - ");
		write_row(f, &row[i]);
		fputc('\n', f);
	}
}

/* Do any rows have the optional columns? */
static bool has_more_columns(const struct gpu_profile *p)
{
	const struct gpu_model *m = p->models.items;

	for (size_t i = 0; i < p->models.n; i++) {
		const struct gpu_row *row = m[i].rows.items;

		for (size_t k = 0; k < m[i].rows.n; k++)
			if (row[k].optimizer_ms > 0 || row[k].spread_pct > 0)
				return true;
	}
	return false;
}

void gpu_profile_write(const struct gpu_profile *p, FILE *f)
{
	char *const *alias = p->aliases.items;
	const struct gpu_model *m = p->models.items;

	fprintf(f, "# SPDX-License-Identifier: MIT\n");
	write_text(f, "name", p->name, 0);
	fprintf(f, "aliases: [");
	for (size_t i = 0; i < p->aliases.n; i++)
		fprintf(f, "%s%s", i ? ", " : "", alias[i]);
	fprintf(f, "]\n");
	write_text(f, "source", p->source, 0);
	if (p->notes)
		write_text(f, "notes", p->notes, 0);
	if (p->precision)
		fprintf(f, "precision: %s\n", p->precision);
	fprintf(f, "memory_mib: %.10g\nusable_memory: %.10g\n", p->memory_mib,
		p->usable_memory);
	fprintf(f, "sample_bytes: %" PRIu64 "\n", p->sample_bytes);
	if (p->copies.rows.n) {
		write_copies(f, &p->copies);
	} else {
		write_law(f, "pinned", &p->pinned);
		write_law(f, "pin_copy", &p->pin_copy);
		write_jump(f, &p->transfer_jump);
	}
	write_noise(f, &p->noise);
	write_board(f, &p->board);
	fprintf(f,
		"# batch, forward_ms, backward_ms, transfer_ms (pageable), "
		"peak_mib, persistent_mib%s\nmodels:\n",
		has_more_columns(p) ? ",\n# optimizer_ms (of backward_ms), "
				      "spread_pct (of the step)"
				    : "");
	for (size_t i = 0; i < p->models.n; i++)
		write_model(f, &m[i]);
}

json_t *gpu_error_json(const struct gpu_model *m, enum gpu_origin origin)
{
	if (origin == GPU_MEASURED)
		return json_real(0);
	return origin == GPU_INTERPOLATED && gpu_model_error_given(m)
		       ? json_real(m->tolerance_pct)
		       : json_null();
}
