/* SPDX-License-Identifier: MIT */
#include "loader/options/train_service.h"

#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "common/word.h"
#include "emu/profile/profile.h"
#include "loader/engine/remote.h"
#include "loader/prep/prep.h"

/* A number from 0 to 1, or with % from 0 to 100. */
static int parse_part(const char *text, double *ret)
{
	_cleanup_free_ char *number = strdup(text);
	size_t n = strlen(text);
	double whole = 1;

	if (!number)
		return -ENOMEM;
	if (n && number[n - 1] == '%') {
		number[n - 1] = '\0';
		whole = 100;
	}
	if (units_parse_double(number, ret) < 0 ||
	    !(*ret >= 0 && *ret <= whole))
		return -EINVAL;
	*ret /= whole;
	return 0;
}

int train_offload_parse(const char *text, double *ret, struct err *err)
{
	static const struct {
		const char *word;
		double part;
	} known[] = { { "auto", -1 }, { "none", 0 }, { "all", 1 } };
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(text, known[i].word)) {
			*ret = known[i].part;
			return 0;
		}
	r = parse_part(text, ret);
	return r < 0 ? err_set(err, r,
			       "--offload '%s': auto, none, all, or a part of "
			       "the batches: 0 to 1, or 0%% to 100%%",
			       text)
		     : 0;
}

int train_last_step_parse(const char *text, enum last_step *ret,
			  struct err *err)
{
	static const char *const words[] = { "there", "here", "pecan", "auto" };
	int i = WORD_FIND(words, "--last-step", text, err);

	*ret = (enum last_step)MAX(i, 0);
	return MIN(i, 0);
}

/* The engine for the samples that are prepared here. */
static int choose_local(struct train_choice *ret, struct err *err)
{
	const char *name =
		ret->remote->remote->local(ret->loader_choice.options);
	int r = plugin_choose(engine_table, "engine", name, &ret->local_choice,
			      err);

	if (r == 0) {
		ret->engine = container_of(ret->local_choice.plugin,
					   const struct engine_ops, plugin);
		if (!ret->engine->next)
			r = err_set(err, -EINVAL,
				    "%s reads no samples; use async or sync",
				    name);
	}
	if (r < 0)
		err_prefix(err, "--loader service: local");
	return r;
}

static bool has_last(const struct train_options *o,
		     const struct train_choice *c)
{
	struct prep_config config = { .side = (uint32_t)o->image_size };
	size_t bytes;

	return prep_output_parse(o->prep_output, &config.output, NULL) == 0 &&
	       c->prep->last && c->prep->last->bytes(&config, &bytes);
}

/* What nothing that is received goes with. NULL: all is well. */
static const char *why_not(const struct train_options *o,
			   const struct train_choice *c)
{
	bool all = c->engine == c->remote;

	if (o->simulate)
		return "not with --simulate";
	if (!o->dispatcher)
		return "--dispatcher HOST:PORT is required";
	if (all && ((o->workers && c->last_step == LAST_THERE) || o->cores))
		return "the workers of the service have --workers and --cores "
		       "of their own";
	if (all && (o->superbatch > 1 || o->sort_extents))
		return "nothing is read here; leave out --superbatch and "
		       "--sort-extents";
	if (!all && !c->remote->remote->once(c->loader_choice.options))
		return "batches of job=, consumers= and sharding=off hold any "
		       "samples; --offload takes none or all of them";
	if (c->batching->any_order)
		return "the workers make the batches; leave out --batching";
	if (c->last_step != LAST_THERE && !has_last(o, c))
		return "--last-step: the last of these transforms does not "
		       "make samples larger; leave it out";
	if (c->last_step == LAST_AUTO && c->part >= 0)
		return "--last-step auto: only --offload auto measures";
	if (o->coordinate)
		return "not with --coordinate";
	if (o->resume)
		return "the workers do not know which samples a checkpoint "
		       "has seen; not with --resume";
	if (o->replay_order || c->order->by_holder)
		return "the workers make the order; not with --replay-order, "
		       "nor an order that depends on this node's cache";
	if (c->order->file_of && c->order->file_of(c->order_choice.options))
		return "workers open no file that a trainer names: --order "
		       "takes no file";
	if (!strcmp(o->pin_mode, "inline"))
		return "batches arrive in pinned memory; not with --pin inline";
	if (o->analyze)
		return "the stages run on the workers; not with --analyze";
	if (o->prep_profile && profile_is_path(o->prep_profile))
		return "workers open no file that a trainer names: "
		       "--prep-profile must be the name of a profile";
	return NULL;
}

int train_service_resolve(const struct train_options *o,
			  struct train_choice *ret, struct err *err)
{
	const char *why;
	int r = 0;

	if (!ret->engine->remote) {
		why = NULL;
		if (o->offload || o->offload_cache)
			why = "--offload needs";
		else if (o->dispatcher || o->service_key)
			why = "--dispatcher and --service-key need";
		else if (strcmp(o->last_step, "there") != 0)
			why = "--last-step needs";
		return why ? err_set(err, -EINVAL, "%s --loader service", why)
			   : 0;
	}
	ret->remote = ret->engine;
	ret->part = 1;
	if (o->offload)
		r = train_offload_parse(o->offload, &ret->part, err);
	if (r == 0)
		r = train_last_step_parse(o->last_step, &ret->last_step, err);
	if (r == 0 && ret->part != 1)
		r = choose_local(ret, err);
	if (r < 0)
		return r;
	if (o->offload_cache && ret->part >= 0)
		return err_set(err, -EINVAL,
			       "--offload-cache: only --offload auto measures");
	if (ret->part == 0)
		ret->remote = NULL;
	why = ret->remote ? why_not(o, ret) : NULL;
	return why ? err_set(err, -EINVAL, "--loader service: %s", why) : 0;
}

int train_offload_check(const struct train_options *o,
			const struct train_choice *c, struct err *err)
{
	const char *why = NULL;

	if (!c->remote || c->part >= 0)
		return 0;
	if (o->gpu_server)
		why = "other jobs use the GPU of --gpu-server, so its rate "
		      "says nothing";
	else if (o->together)
		why = "each of several nodes would measure the slowest of them";
	return why ? err_set(err, -EINVAL, "--offload auto: %s; give a RATIO",
			     why)
		   : 0;
}
