/* SPDX-License-Identifier: MIT */
#include "loader/options/train_resolve.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/thread.h"
#include "common/util.h"
#include "common/word.h"
#include "loader/options/train_data.h"
#include "loader/options/train_gpu.h"
#include "loader/options/train_model.h"
#include "loader/options/train_node.h"
#include "loader/options/train_prep.h"
#include "loader/options/train_service.h"

static int check_checkpoints(const struct train_options *o, struct err *err)
{
	static const char *const ways[] = { "sync", "async" };

	if (WORD_FIND(ways, "--checkpoint", o->checkpoint, err) < 0)
		return -EINVAL;
	if (o->checkpoint_every % o->accumulate)
		return err_set(err, -EINVAL,
			       "--checkpoint-every %" PRIu64
			       ": not a multiple of --accumulate %" PRIu64
			       ", so the gradients in between would be lost",
			       o->checkpoint_every, o->accumulate);
	if (o->resume_step >= 0 && !o->resume)
		return err_set(err, -EINVAL,
			       "--resume is required with --resume-step");
	if ((o->checkpoint_every || o->resume) && !o->checkpoint_dir &&
	    !o->simulate)
		return err_set(err, -EINVAL,
			       "--checkpoint-dir DIR is required with %s",
			       o->resume ? "--resume" : "--checkpoint-every");
	if (o->checkpoint_dir && !o->checkpoint_every && !o->resume)
		return err_set(err, -EINVAL,
			       "--checkpoint-every N or --resume is required "
			       "with --checkpoint-dir");
	return 0;
}

int train_options_pin(struct train_options *o, struct err *err)
{
	enum { AUTO, ON, OFF, DIRECT, INLINE };
	static const char *const modes[] = { "auto", "on", "off", "direct",
					     "inline" };
	int mode = WORD_FIND(modes, "--pin", o->pin_mode, err);

	o->pin_direct = mode == DIRECT;
	o->pin_inline = mode == INLINE;
	o->pin_auto = mode == AUTO;
	o->pin = mode >= 0 && mode != OFF;
	return MIN(mode, 0);
}

static int resolve_pin(struct train_options *o, const struct train_choice *c,
		       struct err *err)
{
	int r = train_options_pin(o, err);

	if (r == 0 && o->pin_inline && o->gpus > 1 && c->parallel != GPUS_DP)
		r = err_set(err, -EINVAL,
			    "--pin inline: with several GPUs only under "
			    "--parallel dp; otherwise each GPU has a pin stage "
			    "of its own");
	/* approximate: in place of transforms that produce some */
	if (r == 0 && o->pin_direct && c->prep->cost && !c->engine->remote &&
	    !o->approximate)
		r = err_set(err, -EINVAL,
			    "--pin direct: --prep %s produces no samples to "
			    "pin",
			    o->prep);
	return r;
}

/* The plug-ins, with their own options. */
static int choose(const struct train_options *o, struct train_choice *ret,
		  struct err *err)
{
	int r = 0;

	if (!ret->engine) {
		r = plugin_choose(engine_table, "engine", o->loader,
				  &ret->loader_choice, err);
		if (r < 0)
			return r;
		ret->engine = container_of(ret->loader_choice.plugin,
					   const struct engine_ops, plugin);
	}
	r = plugin_choose(order_table, "order", o->order, &ret->order_choice,
			  err);
	if (r == 0)
		r = plugin_choose(batching_table, "batching", o->batching,
				  &ret->batching_choice, err);
	if (r == 0)
		r = plugin_choose(prep_table, "prep", o->prep,
				  &ret->prep_choice, err);
	if (r == 0 && strcmp(o->format, "auto"))
		r = plugin_choose(format_table, "format", o->format,
				  &ret->format_choice, err);
	if (r < 0)
		return r;
	ret->order = container_of(ret->order_choice.plugin,
				  const struct order_ops, plugin);
	ret->batching = container_of(ret->batching_choice.plugin,
				     const struct batching_ops, plugin);
	ret->prep = container_of(ret->prep_choice.plugin, const struct prep_ops,
				 plugin);
	return train_service_resolve(o, ret, err);
}

void train_choice_fini(struct train_choice *c)
{
	plugin_choice_fini(&c->loader_choice);
	plugin_choice_fini(&c->local_choice);
	plugin_choice_fini(&c->order_choice);
	plugin_choice_fini(&c->batching_choice);
	plugin_choice_fini(&c->prep_choice);
	plugin_choice_fini(&c->format_choice);
}

/* Windows of one sample. */
static int resolve_batching(const struct train_options *o,
			    const struct train_choice *c, struct err *err)
{
	const char *why = NULL;

	if (!c->batching->add)
		return 0;
	if (o->sort_extents)
		why = "samples are read one by one, so there is nothing to "
		      "sort; leave out --sort-extents";
	else if (o->pin_direct)
		why = "a batch would wait for locked memory that its own "
		      "samples hold; use --pin on instead of --pin direct";
	return why ? err_set(err, -EINVAL, "--batching %s: %s", o->batching,
			     why)
		   : 0;
}

static int resolve_coordinate(const struct train_options *o,
			      struct train_choice *ret, struct err *err)
{
	const char *why = NULL;

	if (!o->coordinate)
		return 0;
	if (!ret->engine->next)
		why = "--loader null reads nothing that jobs could share; use "
		      "another --loader";
	else if (o->together)
		why = "each rank trains on its own part of the samples; start "
		      "the jobs without --nodes and mpirun";
	else if (o->resume)
		why = "resumed jobs would need different batches; resume a job "
		      "without --coordinate";
	else if (o->superbatch > 1)
		why = "each batch may be made by another job, so a window is "
		      "one batch; leave out --superbatch";
	else if (ret->batching->any_order)
		why = "the jobs take each other's batches in order; leave out "
		      "--batching";
	else if (o->pin_direct)
		why = "samples come from memory that the jobs share; use --pin "
		      "on instead of --pin direct";
	return why ? err_set(err, -EINVAL, "--coordinate: %s", why)
		   : coordinate_parse(o->coordinate, &ret->coordinate, err);
}

/* The commands are about virtual cores. */
static int check_control(const struct train_options *o,
			 const struct train_choice *c, struct err *err)
{
	if (!o->control)
		return 0;
	if (o->together)
		return err_set(err, -EINVAL,
			       "--control: not with several nodes");
	if (!c->prep->cost || !c->engine->next)
		return err_set(err, -EINVAL,
			       "--control: sets virtual cores, which needs "
			       "--prep emulated and a loader that reads");
	if (c->engine->whole_batches)
		return err_set(err, -EINVAL,
			       "--control: with --loader %s each worker is a "
			       "core, and their number cannot change; use "
			       "--loader async or threads",
			       o->loader);
	return 0;
}

static int check_stages(const struct train_options *o,
			const struct train_choice *c, struct err *err)
{
	if (o->stages && engine_has_samples(c->engine))
		return err_set(err, -EINVAL,
			       "--stages: --loader %s has stages of its own; "
			       "use --loader null",
			       o->loader);
	if (o->turns && !o->stages)
		return err_set(err, -EINVAL, "--turns needs --stages");
	return 0;
}

int train_options_resolve(struct train_options *o, struct train_choice *ret,
			  struct err *err)
{
	int r = train_model_resolve(o, err);

	if (r == 0)
		r = choose(o, ret, err);
	if (r < 0)
		return r;
	if (o->direct && !ret->engine->can_direct)
		return err_set(
			err, -EINVAL,
			"--direct on: --loader %s cannot bypass the page cache",
			o->loader);
	r = train_gpu_given(o, err);
	if (r == 0)
		r = train_offload_check(o, ret, err);
	if (r == 0)
		r = train_node_resolve(o, ret, err);
	if (r == 0)
		r = train_prep_check(o, ret, err);
	if (r == 0)
		r = resolve_pin(o, ret, err);
	if (r == 0)
		r = resolve_batching(o, ret, err);
	if (r == 0)
		r = resolve_coordinate(o, ret, err);
	if (r == 0 && o->workers == 0)
		o->workers = thread_cpus();
	if (r == 0)
		r = gpu_transfer_parse(o->transfer, &ret->transfer, err);
	if (r == 0)
		r = progress_parse(o->progress, &ret->progress, err);
	if (r == 0)
		r = train_data_resolve(o, ret, err);
	if (r == 0 && !o->data && engine_has_samples(ret->engine))
		r = err_set(err, -EINVAL,
			    "--data DIR is required with --loader %s",
			    o->loader);
	if (r == 0 && o->rank >= o->world_size)
		r = err_set(err, -EINVAL,
			    "--rank %" PRIu64 " is not below --world-size "
			    "%" PRIu64,
			    o->rank, o->world_size);
	if (r == 0 && o->together && o->gpu_server)
		r = err_set(err, -EINVAL,
			    "--gpu-server: not with several nodes, each of "
			    "which has its own GPUs");
	if (r == 0 && o->together && ret->parallel == GPUS_DP && o->gpus > 1)
		r = err_set(err, -EINVAL,
			    "--parallel dp: one process has all GPUs; several "
			    "nodes need ddp");
	if (r == 0 && o->dump_samples && !engine_has_samples(ret->engine))
		r = err_set(err, -EINVAL,
			    "--dump-samples: --loader %s has no samples",
			    o->loader);
	if (r == 0)
		r = check_control(o, ret, err);
	if (r == 0)
		r = check_stages(o, ret, err);
	return r < 0 ? r : check_checkpoints(o, err);
}
