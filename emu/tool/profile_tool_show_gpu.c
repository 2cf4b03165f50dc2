/* SPDX-License-Identifier: MIT */
/* gpemu-profile show, of a GPU: the profile, a model, one step of it. */
#include <errno.h>
#include <inttypes.h>

#include "common/units.h"
#include "emu/tool/profile_tool.h"

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static json_t *step_json(const struct gpu_profile *p, const struct gpu_model *m,
			 uint64_t batch, const struct gpu_cost *c)
{
	uint64_t largest = gpu_profile_largest_batch(p, m);

	return json_pack(
		"{s:s,s:s,s:I,s:I,s:s,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:b,"
		"s:I,"
		"s:b,s:o,s:s}",
		"gpu", p->name, "model", m->name, "batch_size",
		(json_int_t)batch, "batch_bytes",
		(json_int_t)(batch * gpu_sample_bytes(p, m)), "origin",
		gpu_origin_name(c->origin), "forward_ms", ms(c->forward_ns),
		"backward_ms", ms(c->backward_ns), "optimizer_ms",
		ms(c->optimizer_ns), "spread_pct", c->spread_pct,
		"transfer_pageable_ms", ms(c->transfer_pageable_ns),
		"transfer_pinned_ms", ms(c->transfer_pinned_ns), "pin_copy_ms",
		ms(c->pin_copy_ns), "peak_mib", c->peak_mib, "persistent_mib",
		c->persistent_mib, "fits", batch <= largest, "largest_batch",
		(json_int_t)largest, "largest_batch_measured", m->last_is_limit,
		"tolerance_pct", gpu_error_json(m, c->origin), "source",
		p->source);
}

static void show_memory(const struct gpu_profile *p, const struct gpu_model *m,
			uint64_t batch, const struct gpu_cost *c, FILE *f)
{
	uint64_t largest = gpu_profile_largest_batch(p, m);

	fprintf(f, "  peak memory         %10.1f MiB\n", c->peak_mib);
	fprintf(f, "  persistent memory   %10.1f MiB\n", c->persistent_mib);
	fprintf(f,
		"  fits                %10s      largest batch size %" PRIu64
		" (%s)\n",
		batch <= largest ? "yes" : "no", largest,
		m->last_is_limit ? "measured" : "estimated");
}

/*
 * What the tolerance of a table is: a bound of one that was thinned from all
 * batch sizes, or the largest error seen where steps between rows were
 * measured.
 */
static const char *error_words(const struct gpu_model *m)
{
	return m->tolerance_points ? "steps between rows were up to"
				   : "at most";
}

enum { POINTS_TEXT = 64 };
static const char *points_text(const struct gpu_model *m, char buf[POINTS_TEXT])
{
	if (!m->tolerance_points)
		return " the measured value";
	snprintf(buf, POINTS_TEXT, " (%" PRIu64 " of them measured)",
		 m->tolerance_points);
	return buf;
}

static json_t *show_step(const struct gpu_profile *p, const struct gpu_model *m,
			 uint64_t batch, FILE *f)
{
	char batches[GPU_BATCHES_TEXT], points[POINTS_TEXT];
	struct gpu_cost c;

	gpu_profile_cost(p, m, batch, &c);
	fprintf(f, "%s, %s, batch size %" PRIu64 ": %s\n", p->name, m->name,
		batch, gpu_origin_name(c.origin));
	fprintf(f, "  forward             %10.3f ms\n", ms(c.forward_ns));
	fprintf(f, "  backward            %10.3f ms  loss, backward, step\n",
		ms(c.backward_ns));
	if (gpu_model_optimizer_given(m))
		fprintf(f, "    of it, optimiser  %10.3f ms\n",
			ms(c.optimizer_ns));
	else
		fprintf(f, "    of it, optimiser    unknown\n");
	if (c.spread_pct > 0)
		fprintf(f, "  spread of steps     %10.2f %%\n", c.spread_pct);
	fprintf(f, "  transfer, pageable  %10.3f ms  of %" PRIu64 " bytes\n",
		ms(c.transfer_pageable_ns), batch * gpu_sample_bytes(p, m));
	fprintf(f, "  transfer, pinned    %10.3f ms\n",
		ms(c.transfer_pinned_ns));
	fprintf(f, "  copy to pinned      %10.3f ms  on the host\n",
		ms(c.pin_copy_ns));
	if (gpu_model_memory_given(m))
		show_memory(p, m, batch, &c, f);
	else
		fprintf(f,
			"  memory              unknown, so every batch fits\n");
	if (c.origin == GPU_INTERPOLATED && gpu_model_error_given(m))
		fprintf(f, "  %s %g %% off%s\n", error_words(m),
			m->tolerance_pct, points_text(m, points));
	else if (c.origin != GPU_MEASURED)
		fprintf(f,
			"  how far off is unknown: measured at batch size %s\n",
			gpu_model_batches(m, batches));
	return step_json(p, m, batch, &c);
}

static void show_host(const struct gpu_model *m, FILE *f)
{
	const double *ms = m->warmup_ms.items;

	if (m->host_ms > 0)
		fprintf(f, "the host launches a step in %g ms\n", m->host_ms);
	for (size_t i = 0; i < m->warmup_ms.n; i++)
		fprintf(f, "%s%g", i ? ", " : "the first steps take ", ms[i]);
	if (m->warmup_ms.n)
		fprintf(f, " ms more\n");
}

static json_t *show_model(const struct gpu_profile *p,
			  const struct gpu_model *m, FILE *f)
{
	const struct gpu_row *row = m->rows.items;
	uint64_t largest = gpu_profile_largest_batch(p, m);
	char batches[GPU_BATCHES_TEXT], points[POINTS_TEXT];
	json_t *rows = json_array();

	fprintf(f, "%s, %s: ", p->name, m->name);
	if (m->parameters)
		fprintf(f, "%" PRIu64 " parameters, to the device in %g ms\n",
			m->parameters, m->model_transfer_ms);
	else
		fprintf(f, "parameters not given\n");
	if (m->source)
		fprintf(f, "source: %s\n", m->source);
	fprintf(f, "measured at batch size %s", gpu_model_batches(m, batches));
	if (gpu_model_memory_given(m))
		fprintf(f, "; largest %" PRIu64 " (%s)", largest,
			m->last_is_limit ? "measured" : "estimated");
	if (gpu_model_error_given(m))
		fprintf(f, "; %s %g %% off%s", error_words(m), m->tolerance_pct,
			points_text(m, points));
	else if (m->rows.n > 1)
		fprintf(f, "; how far off steps between them are is unknown");
	fprintf(f, "%s\n",
		m->copies_measured ? "" : "; copies by the law of the link");
	show_host(m, f);
	if (m->notes)
		fprintf(f, "%s\n", m->notes);
	fprintf(f, "%6s %11s %12s %12s %9s %11s %12s %8s\n", "batch",
		"forward ms", "backward ms", "transfer ms", "peak MiB",
		"persistent", "optimiser ms", "spread %");
	for (size_t i = 0; i < m->rows.n; i++) {
		fprintf(f, "%6" PRIu64 " %11g %12g %12g %9g %11g", row[i].batch,
			row[i].forward_ms, row[i].backward_ms,
			row[i].transfer_ms, row[i].peak_mib,
			row[i].persistent_mib);
		if (row[i].optimizer_ms > 0 || row[i].spread_pct > 0)
			fprintf(f, " %12g %8g", row[i].optimizer_ms,
				row[i].spread_pct);
		fputc('\n', f);
		json_array_append_new(
			rows,
			json_pack("[I,f,f,f,f,f,f,f]", (json_int_t)row[i].batch,
				  row[i].forward_ms, row[i].backward_ms,
				  row[i].transfer_ms, row[i].peak_mib,
				  row[i].persistent_mib, row[i].optimizer_ms,
				  row[i].spread_pct));
	}
	return json_pack("{s:s,s:s,s:I,s:f,s:I,s:I,s:b,s:o,s:I,s:s*,s:s*,s:o}",
			 "gpu", p->name, "model", m->name, "parameters",
			 (json_int_t)m->parameters, "model_transfer_ms",
			 m->model_transfer_ms, "last_batch",
			 (json_int_t)m->last_batch, "largest_batch",
			 (json_int_t)largest, "largest_batch_measured",
			 m->last_is_limit, "tolerance_pct",
			 gpu_error_json(m, GPU_INTERPOLATED),
			 "tolerance_points", (json_int_t)m->tolerance_points,
			 "notes", m->notes, "source", m->source, "rows", rows);
}

static void show_law(FILE *f, const char *what, const struct gpu_law *law)
{
	fprintf(f, "%-15s %g ms + %g ms a sample\n                (%s)\n", what,
		law->base_ms, law->per_sample_ms, law->source);
}

/* Some of the rows: by factors of 8, and the last. */
static void show_copies(FILE *f, const struct gpu_copies *c)
{
	const struct gpu_copies_row *row = c->rows.items;
	uint64_t next = 0;

	fprintf(f, "copies          (%s)\n%15s %12s %12s %12s\n", c->source,
		"bytes", "pageable ms", "pinned ms", "pin copy ms");
	for (size_t i = 0; i < c->rows.n; i++) {
		if (row[i].bytes < next && i + 1 < c->rows.n)
			continue;
		next = row[i].bytes * 8;
		fprintf(f, "%15" PRIu64 " %12g %12g %12g\n", row[i].bytes,
			row[i].pageable_ms, row[i].pinned_ms,
			row[i].pin_copy_ms);
	}
}

static json_t *show_gpu(const struct gpu_profile *p, FILE *f)
{
	const struct gpu_model *m = p->models.items;

	fprintf(f, "%s, %g MiB, of which %g %% are usable\n", p->name,
		p->memory_mib, p->usable_memory * 100);
	fprintf(f, "source          %s\n", p->source);
	if (p->notes)
		fprintf(f, "notes           %s\n", p->notes);
	if (p->precision)
		fprintf(f, "precision       %s\n", p->precision);
	fprintf(f, "sample          %" PRIu64 " bytes\n", p->sample_bytes);
	if (p->copies.rows.n) {
		show_copies(f, &p->copies);
	} else {
		show_law(f, "pinned transfer", &p->pinned);
		show_law(f, "copy to pinned", &p->pin_copy);
	}
	if (p->transfer_jump.bytes)
		fprintf(f,
			"pageable jumps  at %" PRIu64
			" bytes\n                (%s)\n",
			p->transfer_jump.bytes, p->transfer_jump.source);
	if (p->board.source)
		fprintf(f,
			"board           %g W, %g MHz, memory %g MHz, compute "
			"capability %g\n                (%s)\n",
			p->board.power_limit_w, p->board.clock_mhz,
			p->board.memory_clock_mhz, p->board.compute_capability,
			p->board.source);
	fprintf(f, "\n%-20s %11s %9s %8s %5s %7s\n", "model", "parameters",
		"measured", "largest", "rows", "within");
	for (size_t i = 0; i < p->models.n; i++) {
		fprintf(f, "%-20s %11" PRIu64 " %9" PRIu64, m[i].name,
			m[i].parameters, m[i].last_batch);
		if (gpu_model_memory_given(&m[i]))
			fprintf(f, " %7" PRIu64 "%c",
				gpu_profile_largest_batch(p, &m[i]),
				m[i].last_is_limit ? ' ' : '~');
		else
			fprintf(f, " %7s ", "-");
		if (gpu_model_error_given(&m[i]))
			fprintf(f, " %5zu %5g %%\n", m[i].rows.n,
				m[i].tolerance_pct);
		else
			fprintf(f, " %5zu %7s\n", m[i].rows.n,
				m[i].rows.n > 1 ? "unknown" : "-");
	}
	fprintf(f, "~ estimated from the peak memory\n");
	return gpu_profile_json(p);
}

int profile_tool_show_gpu(const struct gpu_profile *p, const char *model,
			  const char *batch, FILE *f, json_t **ret,
			  struct err *err)
{
	const struct gpu_model *m;
	double b;

	if (!model) {
		*ret = show_gpu(p, f);
		return 0;
	}
	m = gpu_profile_model(p, model, err);
	if (!m)
		return -ENOENT;
	if (!batch) {
		*ret = show_model(p, m, f);
		return 0;
	}
	if (units_parse_double(batch, &b) < 0 || b < 1 || b > 1048576 ||
	    b != (double)(uint64_t)b)
		return err_set(err, -EDOM, "'%s' is not a batch size", batch);
	*ret = show_step(p, m, (uint64_t)b, f);
	return 0;
}
