/* SPDX-License-Identifier: MIT */
/* gpemu-profile show: a profile, a model of a GPU, one step of it. */
#include "emu/profile_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile.h"
#include "emu/profile_dataset.h"
#include "emu/profile_gpu.h"
#include "emu/profile_node.h"
#include "emu/profile_prep.h"
#include "emu/profile_share.h"
#include "emu/profile_storage.h"

struct options {
	struct cli_common common;
};
static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void show_head(FILE *f, const char *name, const char *source,
		      bool verified, const char *notes)
{
	fprintf(f, "%s\nsource      %s%s\n", name, source,
		verified ? "" : "  UNVERIFIED");
	if (notes)
		fprintf(f, "notes       %s\n", notes);
}

/* --- GPU -------------------------------------------------------------- */

static json_t *step_json(const struct gpu_profile *p, const struct gpu_model *m,
			 uint64_t batch, const struct gpu_cost *c)
{
	uint64_t largest = gpu_profile_largest_batch(p, m);

	return json_pack(
		"{s:s,s:s,s:I,s:s,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:b,s:I,"
		"s:b,s:f,s:s}",
		"gpu", p->name, "model", m->name, "batch_size",
		(json_int_t)batch, "origin", gpu_origin_name(c->origin),
		"forward_ms", ms(c->forward_ns), "backward_ms",
		ms(c->backward_ns), "optimizer_ms", ms(c->optimizer_ns),
		"spread_pct", c->spread_pct, "transfer_pageable_ms",
		ms(c->transfer_pageable_ns), "transfer_pinned_ms",
		ms(c->transfer_pinned_ns), "pin_copy_ms", ms(c->pin_copy_ns),
		"peak_mib", c->peak_mib, "persistent_mib", c->persistent_mib,
		"fits", batch <= largest, "largest_batch", (json_int_t)largest,
		"largest_batch_measured", m->last_is_limit, "tolerance_pct",
		m->tolerance_pct, "source", p->source);
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

static json_t *show_step(const struct gpu_profile *p, const struct gpu_model *m,
			 uint64_t batch, FILE *f)
{
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
		fprintf(f, "    of it, optimiser    not told apart\n");
	if (c.spread_pct > 0)
		fprintf(f, "  spread of steps     %10.2f %%\n", c.spread_pct);
	fprintf(f, "  transfer, pageable  %10.3f ms\n",
		ms(c.transfer_pageable_ns));
	fprintf(f, "  transfer, pinned    %10.3f ms\n",
		ms(c.transfer_pinned_ns));
	fprintf(f, "  copy to pinned      %10.3f ms  on the host\n",
		ms(c.pin_copy_ns));
	if (gpu_model_memory_given(m))
		show_memory(p, m, batch, &c, f);
	else
		fprintf(f,
			"  memory              not given, so that it fits\n");
	if (c.origin == GPU_INTERPOLATED)
		fprintf(f, "  at most %g %% off the measured value\n",
			m->tolerance_pct);
	return step_json(p, m, batch, &c);
}

static json_t *show_model(const struct gpu_profile *p,
			  const struct gpu_model *m, FILE *f)
{
	const struct gpu_row *row = m->rows.items;
	uint64_t largest = gpu_profile_largest_batch(p, m);
	json_t *rows = json_array();

	fprintf(f, "%s, %s: ", p->name, m->name);
	if (m->parameters)
		fprintf(f, "%" PRIu64 " parameters, to the device in %g ms\n",
			m->parameters, m->model_transfer_ms);
	else
		fprintf(f, "parameters not given\n");
	fprintf(f, "measured to batch size %" PRIu64 ", ", m->last_batch);
	if (gpu_model_memory_given(m))
		fprintf(f, "largest %" PRIu64 " (%s); ", largest,
			m->last_is_limit ? "measured" : "estimated");
	fprintf(f, "interpolation at most %g %% off\n", m->tolerance_pct);
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
	return json_pack("{s:s,s:s,s:I,s:f,s:I,s:I,s:b,s:f,s:s*,s:o}", "gpu",
			 p->name, "model", m->name, "parameters",
			 (json_int_t)m->parameters, "model_transfer_ms",
			 m->model_transfer_ms, "last_batch",
			 (json_int_t)m->last_batch, "largest_batch",
			 (json_int_t)largest, "largest_batch_measured",
			 m->last_is_limit, "tolerance_pct", m->tolerance_pct,
			 "notes", m->notes, "rows", rows);
}

static void show_law(FILE *f, const char *what, const struct gpu_law *law)
{
	fprintf(f, "%-15s %g ms + %g ms a sample\n                (%s)\n", what,
		law->base_ms, law->per_sample_ms, law->source);
}

static json_t *show_gpu(const struct gpu_profile *p, FILE *f)
{
	const struct gpu_model *m = p->models.items;

	fprintf(f, "%s, %g MiB, of which %g %% are usable\n", p->name,
		p->memory_mib, p->usable_memory * 100);
	fprintf(f, "source          %s\n", p->source);
	if (p->notes)
		fprintf(f, "notes           %s\n", p->notes);
	fprintf(f, "sample          %" PRIu64 " bytes\n", p->sample_bytes);
	show_law(f, "pinned transfer", &p->pinned);
	show_law(f, "copy to pinned", &p->pin_copy);
	if (p->transfer_jump.bytes)
		fprintf(f,
			"pageable jumps  at %" PRIu64
			" bytes\n                (%s)\n",
			p->transfer_jump.bytes, p->transfer_jump.source);
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
		fprintf(f, " %5zu %5g %%\n", m[i].rows.n, m[i].tolerance_pct);
	}
	fprintf(f, "~ estimated from the peak memory\n");
	return gpu_profile_json(p);
}

/* "MODEL" and "BATCH" as given, or NULL. */
static int show_gpu_part(const struct gpu_profile *p, const char *model,
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

/* --- storage ---------------------------------------------------------- */

static void show_dist(FILE *f, const struct dist *d)
{
	char a[UNITS_TEXT], b[UNITS_TEXT];

	fprintf(f, "%s", dist_name(d->kind));
	switch (d->kind) {
	case DIST_CONST:
		fprintf(f, " %s", units_human_duration((double)d->value_ns, a));
		break;
	case DIST_UNIFORM:
		fprintf(f, " %s .. %s",
			units_human_duration((double)d->min_ns, a),
			units_human_duration((double)d->max_ns, b));
		break;
	case DIST_NORMAL:
		fprintf(f, " mean %s, sd %s",
			units_human_duration((double)d->mean_ns, a),
			units_human_duration((double)d->sd_ns, b));
		break;
	case DIST_LOGNORMAL:
		fprintf(f, " median %s, sigma %g",
			units_human_duration((double)d->median_ns, a),
			d->sigma);
		break;
	case DIST_GAMMA:
		fprintf(f, " mean %s, shape %g",
			units_human_duration((double)d->mean_ns, a), d->shape);
		break;
	case DIST_EMPIRICAL:
		fprintf(f, " of %zu quantiles", d->quantiles.n);
		break;
	case DIST_N_KINDS: break;
	}
}

static void show_time(FILE *f, const char *what, const struct dist_time *t)
{
	char a[UNITS_TEXT];

	if (!t->body.kind_name)
		return;
	fprintf(f, "            %-10s", what);
	show_dist(f, &t->body);
	if (t->tail.probability > 0 && t->tail.multiply.max > 0)
		fprintf(f, "; %g %% of them times %g .. %g",
			t->tail.probability * 100, t->tail.multiply.min,
			t->tail.multiply.max);
	else if (t->tail.probability > 0) {
		fprintf(f, "; %g %% of them instead ",
			t->tail.probability * 100);
		show_dist(f, &t->tail.replace);
	}
	fprintf(f, "; mean %s\n", units_human_duration(dist_time_mean(t), a));
}

static void show_rate(FILE *f, double mb_per_s)
{
	if (mb_per_s > 0)
		fprintf(f, "%g MB/s", mb_per_s);
	else
		fprintf(f, "no limit of bandwidth");
}

/* Nothing, of what the profile leaves out. */
static void show_source(FILE *f, const char *what, const char *source,
			bool verified)
{
	if (source)
		fprintf(f, "%-11s (%s)%s\n", what, source,
			verified ? "" : "  UNVERIFIED");
}

static void show_class(FILE *f, const char *name, const struct storage_class *c)
{
	char a[UNITS_TEXT];

	show_source(f, name, c->source, c->verified);
	show_time(f, "occupies", &c->occupancy);
	show_time(f, "latency", &c->latency);
	show_time(f, "seek", &c->seek);
	if (c->rotation_ns)
		fprintf(f, "            a turn of %s\n",
			units_human_duration((double)c->rotation_ns, a));
	if (c->settle_ns)
		fprintf(f, "            a seek to the next track of %s\n",
			units_human_duration((double)c->settle_ns, a));
	if (c->reorder.n) {
		const struct storage_reorder *v = c->reorder.items;
		size_t last = c->reorder.n - 1;

		fprintf(f,
			"            down to %g of that with %" PRIu64
			" operations in the device\n",
			v[last].share, v[last].in_queue);
	}
}

static void show_groups(const struct storage_profile *p, FILE *f)
{
	char a[UNITS_TEXT];

	if (p->channels.count)
		fprintf(f, "channels    %" PRIu64 ", each ", p->channels.count);
	else
		fprintf(f, "channels    no limit of them, each ");
	show_rate(f, p->channels.mb_per_s);
	if (p->channels.stripe_bytes)
		fprintf(f, ", striped by %s",
			units_human_size((double)p->channels.stripe_bytes, a));
	fputc('\n', f);
	show_source(f, "", p->channels.source, p->channels.verified);
	fprintf(f, "link        ");
	show_rate(f, p->link.mb_per_s);
	fputc('\n', f);
	show_source(f, "", p->link.source, p->link.verified);
	if (p->iops.per_s > 0)
		fprintf(f, "IOPS        %g a second, bursts of %" PRIu64,
			p->iops.per_s, p->iops.burst);
	else
		fprintf(f, "IOPS        no cap");
	if (p->iops.slot_bytes)
		fprintf(f, ", one more for each %s",
			units_human_size((double)p->iops.slot_bytes, a));
	fputc('\n', f);
	show_source(f, "", p->iops.source, p->iops.verified);
}

static int show_storage(const char *name, FILE *f, json_t **ret,
			struct err *err)
{
	struct storage_profile *p;
	int r = storage_profile_load(name, &p, err);

	if (r < 0)
		return r;
	show_head(f, p->name, p->source, true, p->notes);
	show_groups(p, f);
	for (int op = 0; op < STORAGE_N_OPS; op++)
		show_class(f, storage_op_name((enum storage_op)op), &p->op[op]);
	*ret = storage_profile_json(p);
	storage_profile_free(p);
	return 0;
}

/* --- dataset ---------------------------------------------------------- */

static int show_dataset(const char *name, FILE *f, json_t **ret,
			struct err *err)
{
	static const double at[] = { 0, .01, .1, .5, .9, .99, 1 };
	struct dataset_profile p;
	int r = dataset_profile_load(name, &p, err);
	char a[UNITS_TEXT];

	if (r < 0) {
		dataset_profile_free(&p);
		return r;
	}
	show_head(f, p.name, p.source, p.verified, p.notes);
	fprintf(f,
		"files       %" PRIu64 " %s, %" PRIu64
		" samples in each, %" PRIu64 " classes\n",
		p.files, p.format, p.samples_per_file, p.classes);
	fprintf(f, "file size   mean %s, together %s\n",
		units_human_size(dataset_profile_mean(&p), a),
		units_human_size(dataset_profile_mean(&p) * (double)p.files,
				 (char[UNITS_TEXT]){ 0 }));
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		fprintf(f, "            p%-5g %s\n", at[i] * 100,
			units_human_size(dataset_profile_quantile(&p, at[i]),
					 a));
	*ret = dataset_profile_json(&p);
	dataset_profile_free(&p);
	return 0;
}

/* --- prep ------------------------------------------------------------- */

static int show_prep(const char *name, FILE *f, json_t **ret, struct err *err)
{
	struct prep_profile p;
	int r = prep_profile_load(name, &p, err);
	char a[UNITS_TEXT];

	if (r < 0) {
		prep_profile_free(&p);
		return r;
	}
	show_head(f, p.name, p.source, p.verified, p.notes);
	show_time(f, "a sample", &p.sample);
	if (p.per_mb_ns)
		fprintf(f, "            and %s for each MB read\n",
			units_human_duration((double)p.per_mb_ns, a));
	for (size_t i = 0; i < p.gpu.rows.n; i++) {
		const struct prep_row *row = p.gpu.rows.items;

		fprintf(f,
			"            a batch of %" PRIu64 ": %g ms of the "
			"GPU\n",
			row[i].batch, row[i].ms);
	}
	if (p.gpu.rows.n)
		fprintf(f,
			"            %g MiB of its memory\n            (%s)\n",
			p.gpu.memory_mib, p.gpu.source);
	*ret = prep_profile_json(&p);
	prep_profile_free(&p);
	return 0;
}

/* --- node ------------------------------------------------------------- */

static void show_link(FILE *f, const char *what, const struct node_link *l)
{
	char a[UNITS_TEXT];

	if (l->gb_per_s > 0)
		fprintf(f, "%-11s %g GB/s, latency %s\n            (%s)\n",
			what, l->gb_per_s,
			units_human_duration((double)l->latency_ns, a),
			l->source);
}

static int show_node(const char *name, FILE *f, json_t **ret, struct err *err)
{
	struct node_profile p;
	int r = node_profile_load(name, &p, err);
	char a[UNITS_TEXT];

	if (r < 0) {
		node_profile_free(&p);
		return r;
	}
	show_head(f, p.name, p.source, p.verified, p.notes);
	fprintf(f, "GPUs        %" PRIu64 " x %s\n", p.gpus,
		p.gpu ? p.gpu : "one without a profile: give --gpu");
	fprintf(f, "host        %" PRIu64 " cores, %s\n", p.cores,
		units_human_size((double)p.memory_bytes, a));
	fprintf(f,
		"PCIe        host to GPU %g GB/s, %" PRIu64
		" GPUs a root of %g GB/s, GPU to GPU %g GB/s\n"
		"            (0: no limit of its own; %s)\n",
		p.pcie.gpu_gb_per_s, p.pcie.gpus_per_root, p.pcie.root_gb_per_s,
		p.pcie.peer_gb_per_s, p.pcie.source);
	show_link(f, "NVLink", &p.nvlink);
	show_link(f, "network", &p.nic);
	if (p.price.source)
		fprintf(f, "price       %.2f USD an hour\n            (%s)\n",
			p.price.usd_per_hour, p.price.source);
	if (p.power.source)
		fprintf(f,
			"power       %.0f W idle, %.0f W full\n            "
			"(%s)\n",
			p.power.idle_w, p.power.full_w, p.power.source);
	*ret = node_profile_json(&p);
	node_profile_free(&p);
	return 0;
}

static int show_share(const char *name, FILE *f, json_t **ret, struct err *err)
{
	struct share_profile p;
	int r = share_profile_load(name, &p, err);

	if (r == 0) {
		show_head(f, p.name, p.source, p.verified, p.notes);
		fprintf(f, "\n%6s %9s %18s\n", "jobs", "speed-up",
			"pace of each job");
		for (uint64_t k = 1; k <= p.rows.n; k++)
			fprintf(f, "%6llu %9.3f %18.3f\n",
				(unsigned long long)k,
				share_profile_speedup(&p, k),
				share_profile_speedup(&p, k) / (double)k);
		*ret = share_profile_json(&p);
	}
	share_profile_free(&p);
	return r;
}

/* --- which ------------------------------------------------------------ */

/* The kind that `name` is a profile of. */
static int find_kind(const char *name, enum profile_kind *ret, struct err *err)
{
	if (profile_is_path(name))
		return profile_tool_kind_of_file(name, ret, err);
	for (int k = 0; k < PROFILE_N_KINDS; k++) {
		_cleanup_free_ char *path = NULL;

		*ret = (enum profile_kind)k;
		if (profile_path(*ret, name, &path, NULL) == 0)
			return 0;
	}
	return err_set(err, -ENOENT,
		       "unknown profile '%s': see gpemu-profile list", name);
}

static int show(enum profile_kind kind, char **args, FILE *f, json_t **ret,
		struct err *err)
{
	struct gpu_profile p;
	int r;

	if (kind != PROFILE_GPU && args[1])
		return err_set(err, -EDOM, "'%s' is of no use: %s is a %s",
			       args[1], args[0], profile_kind_name(kind));
	if (kind == PROFILE_GPU && args[3])
		return err_set(err, -EDOM, "'%s' is of no use", args[3]);
	if (kind == PROFILE_STORAGE)
		return show_storage(args[0], f, ret, err);
	if (kind == PROFILE_DATASET)
		return show_dataset(args[0], f, ret, err);
	if (kind == PROFILE_PREP)
		return show_prep(args[0], f, ret, err);
	if (kind == PROFILE_NODE)
		return show_node(args[0], f, ret, err);
	if (kind == PROFILE_SHARE)
		return show_share(args[0], f, ret, err);
	r = gpu_profile_load(args[0], &p, err);
	if (r == 0)
		r = show_gpu_part(&p, args[1], args[2], f, ret, err);
	gpu_profile_free(&p);
	return r;
}

int profile_tool_show(int argc, char **argv)
{
	static const struct cli_program program = {
		.name = "gpemu-profile show",
		.args = "[KIND] NAME [MODEL [BATCH]]",
		.n_args = 1,
		.n_optional = 3,
		.summary = "Show a profile; of a GPU also a model, or what a "
			   "training step of BATCH samples takes.",
		.notes = "A KIND (gpu, storage, dataset, prep, node, share) in "
			 "front is needed only where two profiles have one "
			 "name.",
		.fields = fields,
	};
	char *words[5] = { 0 }, **args = words;
	json_auto_t *j = NULL;
	struct options o = { 0 };
	struct err err = { 0 };
	enum profile_kind kind;
	int r;

	cli_parse(&program, argc, argv, &o, words);

	_cleanup_(profile_tool_out_close) FILE *f = profile_tool_out(&o.common);

	r = words[1] ? profile_tool_kind(words[0]) : -ENOENT;
	if (r >= 0) {
		kind = (enum profile_kind)r;
		args++;
		r = 0;
	} else {
		r = find_kind(args[0], &kind, &err);
	}
	if (r == 0)
		r = show(kind, args, f, &j, &err);
	if (r == 0 && o.common.json)
		r = j ? json_write(j, o.common.json, &err) : -ENOMEM;
	conf_free(fields, &o);
	if (r == -EDOM) { /* said something that cannot be meant */
		cli_fail(r, &err);
		return EXIT_STATUS_USAGE;
	}
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
