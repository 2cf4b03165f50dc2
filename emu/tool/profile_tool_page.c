/* SPDX-License-Identifier: MIT */
/*
 * gpemu-profile list --markdown: docs/profiles.md. A row a profile; of GPUs
 * also what was measured, and what was not.
 */
#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "emu/tool/profile_tool.h"

static const char *const about[PROFILE_N_KINDS] = {
	[PROFILE_GPU] = "GPUs: the cost of a training step by model and batch "
			"size (`gpemu-train --gpu`).",
	[PROFILE_STORAGE] =
		"Storage devices (`gpemu-fs --storage`). `gpemu-profile "
		"measure --storage` makes one of yours, or of a bucket;\n"
		"[ground-truth.md](ground-truth.md) has its error.",
	[PROFILE_DATASET] = "Datasets: how many files, and how large "
			    "(`gpemu-fs synth:NAME`, `gpemu-data make`).",
	[PROFILE_PREP] = "Transforms on the CPU (`gpemu-train --prep "
			 "emulated`).",
	[PROFILE_NODE] = "Nodes: GPUs, cores, links (`gpemu-train --node`).",
	[PROFILE_SHARE] = "GPUs shared by jobs (`gpemu-gpud`).",
};

/* A cell of a table: no bars, no line ends. */
static void cell(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			fputc('\\', f);
		fputc(*text == '\n' ? ' ' : *text, f);
	}
}

/* What all models have. */
struct known {
	bool copies, memory, optimizer, limits;
	uint64_t first, last; /* batch sizes */
	size_t n_points;
};

static struct known known_of(const struct gpu_profile *p)
{
	const struct gpu_model *m = p->models.items;
	struct known k = { true, true, true, true, UINT64_MAX, 0, 0 };

	for (size_t i = 0; i < p->models.n; i++) {
		const struct gpu_row *row = m[i].rows.items;

		k.copies &= m[i].copies_measured;
		k.memory &= gpu_model_memory_given(&m[i]);
		k.optimizer &= gpu_model_optimizer_given(&m[i]);
		k.limits &= m[i].last_is_limit;
		k.first = MIN(k.first, row[0].batch);
		k.last = MAX(k.last, m[i].last_batch);
		k.n_points += m[i].rows.n;
	}
	return k;
}

static void missing(FILE *f, const struct known *k)
{
	const char *const parts[] = {
		k->copies ? NULL : "copies",
		k->memory ? NULL : "memory",
		k->limits || !k->memory ? NULL : "the limit of every model",
		k->optimizer ? NULL : "the optimiser apart",
	};
	const char *comma = "";

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i])
			continue;
		fprintf(f, "%s%s", comma, parts[i]);
		comma = ", ";
	}
}

static int gpu_row(const char *name, FILE *f, struct err *err)
{
	struct gpu_profile p;
	int r = gpu_profile_load(name, &p, err);

	if (r == 0) {
		struct known k = known_of(&p);

		fprintf(f, "| `%s`", name);
		for (size_t i = 0; i < p.aliases.n; i++)
			fprintf(f, ", `%s`", ((char **)p.aliases.items)[i]);
		fprintf(f,
			" | %.0f | %zu | %s | %" PRIu64 " to %" PRIu64
			", %zu rows | ",
			p.memory_mib, p.models.n,
			p.precision ? p.precision : "see its notes", k.first,
			k.last, k.n_points);
		missing(f, &k);
		fprintf(f, " | ");
		cell(f, p.source);
		fprintf(f, " |\n");
	}
	gpu_profile_free(&p);
	return r;
}

static int other_row(enum profile_kind kind, const char *name, FILE *f,
		     struct err *err)
{
	char line[256];
	int r = profile_tool_describe(kind, name, line, sizeof(line), err);

	if (r < 0)
		return r;
	fprintf(f, "| `%s` | ", name);
	cell(f, line);
	fprintf(f, " |\n");
	return 0;
}

static int section(enum profile_kind kind, FILE *f, struct err *err)
{
	_cleanup_(profile_names_freep) char **names = NULL;
	int r = profile_names(kind, &names, err);

	if (r < 0)
		return r;
	fprintf(f, "\n## %s\n\n%s\n\n", profile_kind_name(kind), about[kind]);
	if (kind == PROFILE_GPU)
		fprintf(f, "| name | MiB | models | precision | batch sizes | "
			   "not measured | source |\n"
			   "|---|---|---|---|---|---|---|\n");
	else
		fprintf(f, "| name | |\n|---|---|\n");
	for (size_t i = 0; r == 0 && names[i]; i++)
		r = kind == PROFILE_GPU ? gpu_row(names[i], f, err)
					: other_row(kind, names[i], f, err);
	return r;
}

int profile_tool_page(FILE *f, struct err *err)
{
	int r = 0;

	fprintf(f, "<!-- SPDX-License-Identifier: MIT -->\n"
		   "<!-- Generated: gpemu-profile list --markdown "
		   ">docs/profiles.md -->\n"
		   "# Profiles\n\n"
		   "The database that ships. `gpemu-profile list --models "
		   "PATTERN` finds a model,\n`gpemu-profile show NAME` prints "
		   "a profile with its notes. A batch size outside\nthe "
		   "measured ones is refused unless `--extrapolate` is "
		   "given.\n");
	for (int k = 0; r == 0 && k < PROFILE_N_KINDS; k++)
		r = section((enum profile_kind)k, f, err);
	return r;
}
