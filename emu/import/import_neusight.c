/* SPDX-License-Identifier: MIT */
/*
 * Latencies of language models from sitar-lab/NeuSight, one JSON file a step:
 * scripts/asplos/label/<GPU>/<MODEL>-train-<SEQUENCE>-<BATCH>[-<VARIANT>].json
 * with e2e_latency, fw_latency and bwall_latency in ms. bwall is all that
 * follows the forward pass; 0 of both: only the whole step was measured. A
 * variant dpN, tpN or ppN is a step of N GPUs. Files of inference ("-inf-")
 * hold no training step and are left out. A token is copied as its id and its
 * label, 8 bytes each (torch.long).
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "common/text/rows.h"
#include "common/util.h"
#include "emu/import/import.h"

enum { TOKEN_BYTES = 16, SEQUENCE_MAX = 1 << 24, WORD = 64 };

struct label {
	char model[WORD];
	uint64_t sequence, batch;
	char variant[WORD]; /* "" without one */
};

static bool number(const char **s, char end, uint64_t max, uint64_t *ret)
{
	struct rows_field f = { *s, strcspn(*s, "-.") };

	if (!rows_u64(&f, ret) || !*ret || *ret > max)
		return false;
	*s += f.n;
	return **s == end || **s == '.';
}

/* From the name of the file. */
static bool parse_name(const char *base, struct label *ret)
{
	static const char mode[] = "-train-";
	const char *s = strstr(base, mode);
	size_t n = s ? (size_t)(s - base) : 0;

	*ret = (struct label){ 0 };
	if (!n || n >= WORD)
		return false;
	memcpy(ret->model, base, n);
	s += strlen(mode);
	if (!number(&s, '-', SEQUENCE_MAX, &ret->sequence) || *s++ != '-' ||
	    !number(&s, '-', IMPORT_BATCH_MAX, &ret->batch))
		return false;
	if (*s == '-') {
		n = strcspn(++s, ".");
		if (!n || n >= WORD)
			return false;
		memcpy(ret->variant, s, n);
		s += n;
	}
	return !strcmp(s, ".json");
}

static bool knows(const struct import_file *f)
{
	return import_contains(f, "\"e2e_latency\"");
}

static int latency(const struct import_file *f, const json_t *j,
		   const char *key, bool required, double *ret)
{
	const json_t *v = json_object_get(j, key);

	*ret = json_number_value(v);
	if (!v && !required)
		return 0;
	if (!json_is_number(v) || !(*ret >= 0 && *ret <= IMPORT_MS_MAX))
		return err_set(f->err, -EINVAL,
			       "%s:1:1: '%s' is not a time in ms", f->path,
			       key);
	return 0;
}

static int add_step(const struct import_file *f, const struct label *l,
		    const json_t *j)
{
	_cleanup_free_ char *name = NULL;
	struct import_step step = { .batch = l->batch,
				    .sample_bytes = l->sequence * TOKEN_BYTES,
				    .cite = true };
	struct err why = { 0 };
	int r = latency(f, j, "e2e_latency", true, &step.step_ms);

	if (r == 0)
		r = latency(f, j, "fw_latency", false, &step.forward_ms);
	if (r < 0)
		return r;
	name = util_text("%s:seq%" PRIu64 "%s%s", l->model, l->sequence,
			 l->variant[0] ? ":" : "", l->variant);
	if (!name)
		return -ENOMEM;
	step.model = name;
	r = import_add(f, &step, &why);
	return r == -EINVAL
		       ? err_set(f->err, r, "%s:1:1: %s", f->path, why.text)
		       : r;
}

static int read_table(const struct import_file *f)
{
	json_auto_t *j = NULL;
	json_error_t where;
	struct label label;

	if (strstr(import_base(f), "-inf-"))
		return 0;
	if (!parse_name(import_base(f), &label))
		return err_set(f->err, -EINVAL,
			       "%s:1:1: the name is not MODEL-train-SEQUENCE-"
			       "BATCH[-VARIANT].json",
			       f->path);
	j = json_loadb(f->bytes, f->n, JSON_REJECT_DUPLICATES, &where);
	if (!j)
		return err_set(f->err, -EINVAL, "%s:%d:%d: %s", f->path,
			       where.line, where.column, where.text);
	if (!json_is_object(j))
		return err_set(f->err, -EINVAL, "%s:1:1: not an object",
			       f->path);
	return add_step(f, &label, j);
}

const struct import_ops import_neusight = {
	.plugin = {
		.name = "neusight",
		.summary = "JSON files of NeuSight, one per step, named "
			   "MODEL-train-SEQUENCE-BATCH[-VARIANT].json",
	},
	.knows = knows,
	.read = read_table,
};
