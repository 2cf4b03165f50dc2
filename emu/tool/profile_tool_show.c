/* SPDX-License-Identifier: MIT */
/* The kinds of profiles: which one a word or a file is of, a line about one for
 * lists and checks, and gpemu-profile show: all of it. */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
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
	if (p->names.source) {
		fprintf(f, "names       kept for %s by a client's kernel\n",
			units_human_duration((double)p->names.kept_ns, a));
		show_source(f, "", p->names.source, p->names.verified);
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

static void show_storage(const void *v, FILE *f)
{
	const struct storage_profile *p = v;

	show_groups(p, f);
	show_capacity(f, p);
	show_price(f, p);
	for (int op = 0; op < STORAGE_N_OPS; op++)
		show_class(f, storage_op_name((enum storage_op)op), &p->op[op]);
}

static void storage_line(const void *v, char *line, size_t size)
{
	const struct storage_profile *p = v;
	const struct storage_class *read = &p->op[STORAGE_READ];
	double ns = dist_time_mean(&read->occupancy) +
		    dist_time_mean(&read->latency) +
		    dist_time_mean(&read->seek) + (double)read->rotation_ns / 2;

	if (read->loaded.n) /* of the shortest measured */
		ns = storage_loaded_ns(read, 0, 1, -1);
	snprintf(line, size, "a read takes %.4g ms on average", ns / 1e6);
}

/* --- dataset ---------------------------------------------------------- */

static void show_dataset(const void *v, FILE *f)
{
	static const double at[] = { 0, .01, .1, .5, .9, .99, 1 };
	const struct dataset_profile *p = v;
	char a[UNITS_TEXT];

	fprintf(f,
		"files       %" PRIu64 " %s, %" PRIu64
		" samples in each, %" PRIu64 " classes\n",
		p->files, p->format, p->samples_per_file, p->classes);
	fprintf(f, "file size   mean %s, together %s\n",
		units_human_size(dataset_profile_mean(p), a),
		units_human_size(dataset_profile_mean(p) * (double)p->files,
				 (char[UNITS_TEXT]){ 0 }));
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		fprintf(f, "            p%-5g %s\n", at[i] * 100,
			units_human_size(dataset_profile_quantile(p, at[i]),
					 a));
}

static void dataset_line(const void *v, char *line, size_t size)
{
	const struct dataset_profile *p = v;

	snprintf(line, size, "%" PRIu64 " %s files, %.0f bytes on average",
		 p->files, p->format, dataset_profile_mean(p));
}

/* --- prep ------------------------------------------------------------- */

static void show_prep(const void *v, FILE *f)
{
	const struct prep_profile *p = v;
	const struct prep_row *row = p->gpu.rows.items;
	char a[UNITS_TEXT];

	show_time(f, "a sample", &p->sample);
	if (p->per_mb_ns)
		fprintf(f, "            and %s for each MB read\n",
			units_human_duration((double)p->per_mb_ns, a));
	for (size_t i = 0; i < p->gpu.rows.n; i++)
		fprintf(f,
			"            a batch of %" PRIu64 ": %g ms of the "
			"GPU\n",
			row[i].batch, row[i].ms);
	if (p->gpu.rows.n)
		fprintf(f,
			"            %g MiB of its memory\n            (%s)\n",
			p->gpu.memory_mib, p->gpu.source);
}

static void prep_line(const void *v, char *line, size_t size)
{
	const struct prep_profile *p = v;

	snprintf(line, size, "%.4g ms a sample on average%s%s",
		 dist_time_mean(&p->sample) / 1e6,
		 p->per_mb_ns ? ", plus a cost per byte" : "",
		 p->gpu.rows.n ? ", part of it on the GPU" : "");
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

static void show_node(const void *v, FILE *f)
{
	const struct node_profile *p = v;
	char a[UNITS_TEXT];

	fprintf(f, "GPUs        %" PRIu64 " x %s\n", p->gpus,
		p->gpu ? p->gpu : "one without a profile: give --gpu");
	fprintf(f, "host        %" PRIu64 " cores, %s\n", p->cores,
		units_human_size((double)p->memory_bytes, a));
	fprintf(f,
		"PCIe        host to GPU %g GB/s, %" PRIu64
		" GPUs per root of %g GB/s, GPU to GPU %g GB/s\n            "
		"(0: no limit of its own; %s)\n",
		p->pcie.gpu_gb_per_s, p->pcie.gpus_per_root,
		p->pcie.root_gb_per_s, p->pcie.peer_gb_per_s, p->pcie.source);
	show_link(f, "NVLink", &p->nvlink);
	show_link(f, "network", &p->nic);
	if (p->price.source)
		fprintf(f, "price       %.2f USD per hour\n            (%s)\n",
			p->price.usd_per_hour, p->price.source);
	if (p->power.source)
		fprintf(f,
			"power       %.0f W idle, %.0f W full\n            "
			"(%s)\n",
			p->power.idle_w, p->power.full_w, p->power.source);
}

static void node_line(const void *v, char *line, size_t size)
{
	const struct node_profile *p = v;

	snprintf(line, size, "%" PRIu64 " x %s, %" PRIu64 " cores", p->gpus,
		 p->gpu ? p->gpu : "a GPU without a profile", p->cores);
}

/* --- share ------------------------------------------------------------ */

static void show_share(const void *v, FILE *f)
{
	const struct share_profile *p = v;
	char *const *gpus = p->gpus.items;

	for (size_t i = 0; i < p->gpus.n; i++)
		fprintf(f, "%-11s %s\n", i ? "" : "default of", gpus[i]);
	fprintf(f, "\n%6s %9s %18s\n", "jobs", "speed-up", "pace of each job");
	for (uint64_t k = 1; k <= p->rows.n; k++)
		fprintf(f, "%6" PRIu64 " %9.3f %18.3f\n", k,
			share_profile_speedup(p, k),
			share_profile_speedup(p, k) / (double)k);
}

static void share_line(const void *v, char *line, size_t size)
{
	const struct share_profile *p = v;

	snprintf(line, size, "speedup of %zu concurrent jobs: %.3g", p->rows.n,
		 share_profile_speedup(p, p->rows.n));
}

/* --- GPU -------------------------------------------------------------- */

static void gpu_line(const void *v, char *line, size_t size)
{
	const struct gpu_profile *p = v;
	int n = snprintf(line, size, "%s, %.0f MiB, %zu models", p->name,
			 p->memory_mib, p->models.n);

	for (size_t i = 0; i < p->aliases.n && n < (int)size; i++)
		n += snprintf(line + n, size - (size_t)n, "%s%s",
			      i ? " " : "; also ",
			      ((char **)p->aliases.items)[i]);
}

/* --- kinds ------------------------------------------------------------ */

struct head {
	const char *name, *source, *notes;
	bool verified;
};

/* What all profiles of a kind have; `p` is one, of that kind's struct. */
struct kind {
	/* free(*ret) with `free`, failed or not */
	int (*load)(const char *name, void **ret, struct err *err);
	void (*free)(void *p);
	struct head (*head)(const void *p);
	/* one line about it */
	void (*line)(const void *p, char *line, size_t size);
	/* what follows the head; NULL: profile_tool_show_gpu has it */
	void (*show)(const void *p, FILE *f);
	json_t *(*json)(const void *p);
};

#define KIND_BY_VALUE(kind)                                                   \
	static int kind##_load(const char *name, void **ret, struct err *err) \
	{                                                                     \
		*ret = calloc(1, sizeof(struct kind##_profile));              \
		return *ret ? kind##_profile_load(name, *ret, err) : -ENOMEM; \
	}                                                                     \
	static void kind##_free(void *p)                                      \
	{                                                                     \
		if (p)                                                        \
			kind##_profile_free(p);                               \
		free(p);                                                      \
	}
#define KIND_FUNCTIONS(kind, is_verified)                           \
	static struct head kind##_head(const void *v)               \
	{                                                           \
		const struct kind##_profile *p = v;                 \
                                                                    \
		return (struct head){ p->name, p->source, p->notes, \
				      is_verified };                \
	}                                                           \
	static json_t *kind##_json(const void *p)                   \
	{                                                           \
		return kind##_profile_json(p);                      \
	}
#define KIND(kind)                                                  \
	{                                                           \
		kind##_load, kind##_free, kind##_head, kind##_line, \
			show_##kind, kind##_json                    \
	}

static int storage_load(const char *name, void **ret, struct err *err)
{
	struct storage_profile *p = NULL;
	int r = storage_profile_load(name, &p, err);

	*ret = p;
	return r;
}

static void storage_free(void *p)
{
	storage_profile_free(p);
}

KIND_BY_VALUE(gpu)
KIND_BY_VALUE(dataset)
KIND_BY_VALUE(prep)
KIND_BY_VALUE(node)
KIND_BY_VALUE(share)
KIND_FUNCTIONS(gpu, true)
KIND_FUNCTIONS(storage, true)
KIND_FUNCTIONS(dataset, p->verified)
KIND_FUNCTIONS(prep, p->verified)
KIND_FUNCTIONS(node, p->verified)
KIND_FUNCTIONS(share, p->verified)

static const struct kind kinds[] = {
	[PROFILE_GPU] = { gpu_load, gpu_free, gpu_head, gpu_line, NULL,
			  gpu_json },
	[PROFILE_STORAGE] = KIND(storage),
	[PROFILE_DATASET] = KIND(dataset),
	[PROFILE_PREP] = KIND(prep),
	[PROFILE_NODE] = KIND(node),
	[PROFILE_SHARE] = KIND(share),
};

/* One of the database has the name of its file; a GPU's is its vendor's. */
static int check_name(enum profile_kind kind, const char *name, const char *own,
		      struct err *err)
{
	return kind == PROFILE_GPU || profile_is_path(name) ||
			       !strcmp(own, name)
		       ? 0
		       : err_set(err, -EINVAL,
				 "%s: its 'name' is '%s', unlike the file's "
				 "name",
				 name, own);
}

int profile_tool_describe(enum profile_kind kind, const char *name, char *line,
			  size_t size, struct err *err)
{
	const struct kind *k = &kinds[kind];
	struct head head;
	void *p;
	int r = k->load(name, &p, err);

	if (r == 0) {
		size_t n;

		head = k->head(p);
		r = check_name(kind, name, head.name, err);
		k->line(p, line, size);
		n = strlen(line);
		snprintf(line + n, size - n, "%s",
			 head.verified ? "" : " (unverified)");
	}
	k->free(p);
	return r;
}

/* --- which ------------------------------------------------------------ */

/* By a key that only profiles of this kind have. */
int profile_tool_kind_of_file(const char *path, enum profile_kind *ret,
			      struct err *err)
{
	static const struct {
		const char *key;
		enum profile_kind kind;
	} known[] = {
		{ "models", PROFILE_GPU },   { "sizes", PROFILE_DATASET },
		{ "read", PROFILE_STORAGE }, { "pcie", PROFILE_NODE },
		{ "sample", PROFILE_PREP },  { "gpu", PROFILE_PREP },
		{ "rows", PROFILE_SHARE },
	};
	_cleanup_conf_node_ struct conf_node *root = NULL;
	int r = conf_tree_load(path, &root, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (conf_node_get(root, known[i].key)) {
			*ret = known[i].kind;
			return 0;
		}
	return err_set(err, -EINVAL,
		       "%s:1:1: no profile: none of 'models' (GPU), 'read' "
		       "(storage), 'sizes' (dataset), 'pcie' (node), "
		       "'sample' (prep), 'rows' (share)",
		       path);
}

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
	const struct kind *k = &kinds[kind];
	void *p;
	int r;

	if (kind != PROFILE_GPU && args[1])
		return err_set(err, -EDOM,
			       "unexpected argument '%s': %s is a %s", args[1],
			       args[0], profile_kind_name(kind));
	if (kind == PROFILE_GPU && args[3])
		return err_set(err, -EDOM, "unexpected argument '%s'", args[3]);
	r = k->load(args[0], &p, err);
	if (r == 0 && kind == PROFILE_GPU) {
		r = profile_tool_show_gpu(p, args[1], args[2], f, ret, err);
	} else if (r == 0) {
		struct head head = k->head(p);

		fprintf(f, "%s\nsource      %s%s\n", head.name, head.source,
			head.verified ? "" : "  UNVERIFIED");
		if (head.notes)
			fprintf(f, "notes       %s\n", head.notes);
		k->show(p, f);
		*ret = k->json(p);
	}
	k->free(p);
	return r == 0 && !*ret ? -ENOMEM : r;
}

static int run_show(void *options, char **args, FILE *f, json_t **ret,
		    struct err *err)
{
	int r = args[1] ? profile_kind_find(args[0], NULL) : -ENOENT;
	enum profile_kind kind = (enum profile_kind)r;

	(void)options;
	if (r >= 0)
		return show(kind, args + 1, f, ret, err);
	r = find_kind(args[0], &kind, err);
	return r == 0 ? show(kind, args, f, ret, err) : r;
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
		.fields = profile_tool_common_fields,
	};
	struct cli_common o = { 0 };
	char *words[5] = { 0 };

	return profile_tool_run(&program, argc, argv, &o, words, run_show);
}
