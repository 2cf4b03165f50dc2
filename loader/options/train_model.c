/* SPDX-License-Identifier: MIT */
#include "loader/options/train_model.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"
#include "common/word.h"
#include "emu/profile/precision.h"
#include "emu/profile/variant.h"

static const char *const optimizers[] = { "sgd", "adamw" };
/* fp32 states per parameter. Source: PyTorch, torch.optim: momentum_buffer;
 * exp_avg and exp_avg_sq */
static const uint32_t moments[] = { 1, 2 };

/* "tokens" -> "tokens:sequence_length=N", unless it says so itself. */
static int add_length(char **choice, const char *name, uint64_t n)
{
	bool named = plugin_is(*choice, name);
	char *text;

	if (named && (strstr(*choice, "sequence_length=") ||
		      strstr(*choice, "sequence-length=")))
		return 0;
	if (asprintf(&text, "%s%ssequence_length=%" PRIu64,
		     named ? *choice : name,
		     named && strchr(*choice, ':') ? "," : ":", n) < 0)
		return -ENOMEM;
	free(*choice);
	*choice = text;
	return 0;
}

int train_model_resolve(struct train_options *o, struct err *err)
{
	uint64_t n = o->sequence_length;
	int r = 0;

	if (WORD_FIND(optimizers, "--optimizer", o->optimizer, err) < 0)
		return -EINVAL;
	if (o->pad_multiple &&
	    (!n || o->simulate || !strcmp(o->parallel, "fsdp")))
		return err_set(err, -EINVAL,
			       "--pad-multiple needs --sequence-length and a "
			       "dataset; not with --simulate or --parallel "
			       "fsdp");
	/* a simulation reads no tokens; the model's variant is the same */
	if (!n || o->simulate)
		return 0;
	if (!strcmp(o->format, "auto") || plugin_is(o->format, "tokens"))
		r = add_length(&o->format, "tokens", n);
	/* nobody decodes tokens as images */
	if (r == 0 &&
	    (plugin_is(o->prep, "decode") || plugin_is(o->prep, "tokens")))
		r = add_length(&o->prep, "tokens", n);
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}

const struct gpu_model *train_model_find(const struct train_options *o,
					 const struct gpu_profile *gpu,
					 struct err *err)
{
	return variant_find(gpu, o->model, o->sequence_length, o->precision,
			    err);
}

/* The option was checked. */
static const struct precision *precision_of(const struct train_options *o)
{
	return precision_find(o->precision ? o->precision : "fp32", NULL);
}

uint64_t train_model_gradient_bytes(const struct train_options *o,
				    const struct gpu_model *m)
{
	return m->parameters * precision_of(o)->gradient;
}

uint64_t train_model_weight_bytes(const struct train_options *o,
				  const struct gpu_model *m)
{
	return m->parameters * precision_of(o)->weight;
}

uint64_t train_model_state_bytes(const struct train_options *o,
				 const struct gpu_model *m)
{
	const struct precision *p = precision_of(o);
	int optimizer =
		WORD_FIND(optimizers, "--optimizer", o->optimizer, NULL);

	uint64_t bytes, ranks = o->world_size;

	if (o->checkpoint_size)
		return o->checkpoint_size;
	bytes = m->parameters *
		(p->weight + p->master + moments[optimizer] * sizeof(float));
	return strcmp(o->parallel, "fsdp") ? bytes
					   : (bytes + ranks - 1) / ranks;
}
