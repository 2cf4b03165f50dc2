/* SPDX-License-Identifier: MIT */
/* gpemu-profile show: a profile, a model of a GPU, one step of it. */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_dataset.h"
#include "emu/profile/profile_gpu.h"
#include "emu/node/profile_node.h"
#include "emu/profile/profile_prep.h"
#include "emu/profile/profile_share.h"
#include "emu/profile/profile_storage.h"

struct options {
	struct cli_common common;
};
static const struct conf_field fields[] = {
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static void show_head(FILE *f, const char *name, const char *source,
		      bool verified, const char *notes)
{
	fprintf(f, "%s\nsource      %s%s\n", name, source,
		verified ? "" : "  UNVERIFIED");
	if (notes)
		fprintf(f, "notes       %s\n", notes);
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
		fprintf(f, "no bandwidth limit");
}

/* Prints nothing for an omitted part. */
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
	if (c->mb_per_s > 0)
		fprintf(f, "            %g MB/s a channel\n", c->mb_per_s);
	if (c->rotation_ns)
		fprintf(f, "            a rotation of %s\n",
			units_human_duration((double)c->rotation_ns, a));
	if (c->settle_ns)
		fprintf(f, "            a track-to-track seek of %s\n",
			units_human_duration((double)c->settle_ns, a));
	if (c->loaded.n) {
		const struct storage_loaded *v = c->loaded.items;

		fprintf(f,
			"            measured among up to %" PRIu64
			" in the device, %zu sizes and depths\n",
			v[c->loaded.n - 1].in_queue, c->loaded.n);
	}
	if (c->reorder.n) {
		const struct storage_reorder *v = c->reorder.items;
		size_t last = c->reorder.n - 1;

		fprintf(f,
			"            down to %g of that with %" PRIu64
			" operations in the device\n",
			v[last].share, v[last].in_queue);
	}
}

static void show_capacity(FILE *f, const struct storage_profile *p)
{
	char a[UNITS_TEXT];

	if (!p->capacity.bytes)
		return;
	fprintf(f, "capacity    %s\n",
		units_human_size((double)p->capacity.bytes, a));
	show_source(f, "", p->capacity.source, p->capacity.verified);
}

static void show_price(FILE *f, const struct storage_profile *p)
{
	if (!p->price.source)
		return;
	fprintf(f, "price       USD for 1,000:");
	for (int op = 0; op < STORAGE_RENAME; op++)
		fprintf(f, " %s %g%s", storage_op_name((enum storage_op)op),
			p->price.usd_per_1000[op],
			op < STORAGE_RENAME - 1 ? "," : "");
	fprintf(f, "; %g a GiB read, %g a GiB written\n", p->price.usd_per_gib,
		p->price.write_usd_per_gib);
	show_source(f, "", p->price.source, p->price.verified);
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
	if (p->channels.times.n)
		fprintf(f, ", %zu measured times up to that",
			p->channels.times.n);
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
	if (p->buffer.bytes) {
		fprintf(f, "buffer      %s for writes, %s, ",
			units_human_size((double)p->buffer.bytes, a),
			p->buffer.in_client ? "in the client"
					    : "in the device");
		fprintf(f, "emptied by %s\n",
			units_human_size((double)p->buffer.unit_bytes, a));
		show_source(f, "", p->buffer.source, p->buffer.verified);
	}
	if (!p->quota.window_ns)
		return;
	fprintf(f, "quota       in each %s: ",
		units_human_duration((double)p->quota.window_ns, a));
	if (p->quota.per_s > 0)
		fprintf(f, "%g operations, ",
			p->quota.per_s * (double)p->quota.window_ns / 1e9);
	show_rate(f, p->quota.mb_per_s);
	fputc('\n', f);
	show_source(f, "", p->quota.source, p->quota.verified);
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
	show_capacity(f, p);
	show_price(f, p);
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
		" GPUs per root of %g GB/s, GPU to GPU %g GB/s\n            "
		"(0: no limit of its own; %s)\n",
		p.pcie.gpu_gb_per_s, p.pcie.gpus_per_root, p.pcie.root_gb_per_s,
		p.pcie.peer_gb_per_s, p.pcie.source);
	show_link(f, "NVLink", &p.nvlink);
	show_link(f, "network", &p.nic);
	if (p.price.source)
		fprintf(f, "price       %.2f USD per hour\n            (%s)\n",
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
		char *const *gpus = p.gpus.items;

		show_head(f, p.name, p.source, p.verified, p.notes);
		for (size_t i = 0; i < p.gpus.n; i++)
			fprintf(f, "%-11s %s\n", i ? "" : "default of",
				gpus[i]);
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
		return err_set(err, -EDOM,
			       "unexpected argument '%s': %s is a %s", args[1],
			       args[0], profile_kind_name(kind));
	if (kind == PROFILE_GPU && args[3])
		return err_set(err, -EDOM, "unexpected argument '%s'", args[3]);
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
		r = profile_tool_show_gpu(&p, args[1], args[2], f, ret, err);
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
		.summary = "Show a profile; of a GPU also a model, or the cost "
			   "of a training step of BATCH samples.",
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

	r = words[1] ? profile_tool_kind(words[0], NULL) : -ENOENT;
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
	if (r == -EDOM) { /* usage error */
		cli_fail(r, &err);
		return EXIT_STATUS_USAGE;
	}
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
