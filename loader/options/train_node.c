/* SPDX-License-Identifier: MIT */
#include "loader/options/train_node.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpu.h"
#include "loader/options/train_model.h"

/* Options that a server sets itself or does not support. */
static int check_server(const struct train_options *o, struct err *err)
{
	const char *what = o->node			  ? "--node"
			   : o->inference		  ? "--inference"
			   : o->prep_gpu		  ? "--prep-gpu"
			   : o->accumulate > 1		  ? "--accumulate"
			   : o->pad_multiple		  ? "--pad-multiple"
			   : !strcmp(o->parallel, "fsdp") ? "--parallel fsdp"
			   : !strcmp(o->parallel, "dp") && o->gpus > 1
				   ? "--parallel dp"
			   : o->gpu_memory	      ? "--gpu-memory"
			   : strcmp(o->jitter, "off") ? "--jitter"
			   : o->step_time	      ? "--step-time"
			   : o->gpu_rate > 0	      ? "--gpu-rate"
						      : NULL;

	return what ? err_set(err, -EINVAL,
			      "%s: not with --gpu-server (or "
			      "$GPEMU_GPU_SERVER), which has the GPUs",
			      what)
		    : 0;
}

static int fill_in(struct train_options *o, struct train_choice *c,
		   const struct node_profile *n, struct err *err)
{
	if (o->gpus == 0)
		o->gpus = n->name ? n->gpus : 1;
	if (n->name && o->gpus > n->gpus)
		return err_set(err, -EINVAL,
			       "--gpus %" PRIu64 ": %s has only %" PRIu64,
			       o->gpus, n->name, n->gpus);
	if (!o->gpu && o->gpu_rate <= 0 && n->name && !n->gpu)
		return err_set(
			err, -EINVAL,
			"%s: its GPU has no profile; name another with --gpu",
			n->name);
	/* a server says which it has; a rate needs none */
	if (!o->gpu && !o->gpu_server && o->gpu_rate <= 0) {
		o->gpu = strdup(node_gpu(n));
		if (!o->gpu)
			return err_set(err, -ENOMEM, "out of memory");
	}
	if (n->name && c->prep->cost && o->cores == 0 && o->workers == 0)
		o->cores = n->cores;
	return 0;
}

int train_node_resolve(struct train_options *o, struct train_choice *ret,
		       struct err *err)
{
	struct node_profile n = { 0 };
	enum collective_algorithm algorithm;
	int r = gpus_parallel_parse(o->parallel, &ret->parallel, err);

	if (r == 0)
		r = collective_parse(o->allreduce, &algorithm, err);
	if (r == 0 && o->inference && o->accumulate > 1)
		r = err_set(err, -EINVAL,
			    "--accumulate: --inference has no gradients");
	if (r == 0 && o->gpu_server)
		r = check_server(o, err);
	if (r == 0 && o->node)
		r = node_profile_load(o->node, &n, err);
	if (r == 0)
		r = fill_in(o, ret, &n, err);
	node_profile_free(&n);
	return r;
}

uint64_t train_step_samples(const struct train_options *o)
{
	return o->batch * o->gpus;
}

uint64_t train_pipeline_batch(const struct train_options *o,
			      const struct train_choice *c)
{
	return c->parallel == GPUS_DP ? train_step_samples(o) : o->batch;
}

/* Size of a sample, transformed or raw. Without reads: the size of a model's
 * own samples, or of transformed ones. */
static uint64_t sample_bytes(const struct train_choice *c,
			     const struct train_prep *prep,
			     const struct dataset *data,
			     const struct gpu_profile *gpu,
			     const struct gpu_model *m)
{
	uint64_t mean = data->bytes / MAX(data->n, 1);

	return gpu_delivered_bytes(
		gpu, m, prep->sample_bytes,
		c->engine && engine_has_samples(c->engine) ? MAX(mean, 1) : 0);
}

static int parse_jitter(const char *s, const struct gpu_profile *gpu,
			const struct gpu_model *m, double *ret, struct err *err)
{
	if (!strcmp(s, "profile"))
		return gpu_profile_noise(gpu, m, ret, err);
	if (!strcmp(s, "off")) {
		*ret = 0;
		return 0;
	}
	if (units_parse_double(s, ret) < 0 || !(*ret >= 0 && *ret <= 1))
		return err_set(err, -EINVAL,
			       "--jitter '%s': off, profile, or a coefficient "
			       "of variation from 0 to 1",
			       s);
	return 0;
}

static int parse_step(const struct train_options *o, struct train_node *n,
		      struct err *err)
{
	int r;

	if (!o->step_time)
		return 0;
	if (o->gpu_rate > 0)
		return err_set(err, -EINVAL,
			       "--gpu-rate and --step-time both set the time "
			       "of a step; give one of them");
	if (n->jitter > 0)
		return err_set(err, -EINVAL,
			       "--jitter: --step-time has a distribution of "
			       "its own");
	r = dist_time_parse(o->step_time, &n->step, err);
	n->step_given = r == 0;
	return r;
}

/* Parameters and gradients pass layer by layer instead of the all-reduce. */
static void shard(const struct train_options *o, const struct gpu_model *m,
		  struct gpus_config *c)
{
	c->fsdp = (struct fsdp){
		.ranks = c->reduce.ranks,
		.units = (uint32_t)o->fsdp_units,
		.prefetch = (uint32_t)o->fsdp_prefetch,
		.weight_bytes = train_model_weight_bytes(o, m),
		.gradient_bytes = c->reduce.bytes,
		.bytes_per_s = c->reduce.bytes_per_s,
		.latency_ns = c->reduce.latency_ns,
	};
	c->reduce.bytes = 0;
}

/* The ring may pass through other nodes, if the epoch is shared with them and a
 * node profile has their links. */
static int set_links(const struct train_options *o, const struct gpu_model *m,
		     const struct gpu_profile *gpu, struct train_node *n,
		     struct err *err)
{
	struct gpus_config *c = &n->gpus;
	int r = collective_parse(o->allreduce, &c->reduce.algorithm, err);

	c->inference = o->inference;
	if (r == 0)
		r = node_links(&n->profile, gpu, m, o->world_size, c, err);
	c->reduce.bytes = train_model_gradient_bytes(o, m);
	if (c->parallel == GPUS_FSDP)
		shard(o, m, c);
	return r;
}

static int open_prep_gpu(const struct train_options *o,
			 const struct train_prep *prep, struct train_node *n,
			 struct err *err)
{
	int r;

	if (!o->prep_gpu) {
		if (prep->cores && prep->profile.gpu.rows.n)
			n->prep_gpu = &prep->profile;
		if (!n->prep_gpu || !o->gpu_server)
			return 0;
		return err_set(err, -EINVAL,
			       "%s: a part of it runs on the GPU, which "
			       "--gpu-server cannot do",
			       prep->profile.name);
	}
	r = prep_profile_load(o->prep_gpu, &n->prep, err);
	if (r < 0)
		return r;
	if (!n->prep.gpu.rows.n)
		return err_set(err, -EINVAL,
			       "--prep-gpu %s: no part of it runs on the GPU",
			       o->prep_gpu);
	n->prep_gpu = &n->prep;
	return 0;
}

int train_node_open(const struct train_options *o, const struct train_choice *c,
		    const struct gpu_profile *gpu, const struct gpu_model *m,
		    const struct train_prep *prep, struct train_node *ret,
		    struct err *err)
{
	int r = 0;

	*ret = (struct train_node){ .gpus = { .n = (uint32_t)o->gpus,
					      .parallel = c->parallel,
					      .transfer = c->transfer } };
	ret->gpus.transfer = gpus_transfer(&ret->gpus);
	/* a gpemu-gpud knows nothing of its clients' hosts; --step-time has all
	 * of a step, and the profile's was measured with a backward pass */
	if (!o->gpu_server && !o->step_time && !o->inference)
		ret->gpus.host_ns = (uint64_t)(m->host_ms * NS_PER_MS);
	if (o->node)
		r = node_profile_load(o->node, &ret->profile, err);
	if (r == 0)
		r = set_links(o, m, gpu, ret, err);
	if (r == 0)
		r = parse_jitter(o->jitter, gpu, m, &ret->jitter, err);
	if (r == 0)
		r = parse_step(o, ret, err);
	return r < 0 ? r : open_prep_gpu(o, prep, ret, err);
}

/*
 * GPU memory besides the model's: the flat buffer for gradients of
 * DistributedDataParallel, unless gradients are views of it
 * (gradient_as_bucket_view, off by default); the batch copied during a
 * computation; and what GPU 0 scatters.
 */
int train_node_fit(const struct train_options *o, const struct train_choice *c,
		   const struct gpu_profile *gpu, const struct gpu_model *m,
		   const struct train_prep *prep, const struct dataset *data,
		   struct train_node *n, struct err *err)
{
	const struct gpus_config *g = &n->gpus;
	struct gpu_beside *b = &n->beside;
	bool dp = g->parallel == GPUS_DP;

	if (n->prep_gpu)
		b->prep_mib = n->prep_gpu->gpu.memory_mib;
	if (!dp && !g->inference && g->reduce.ranks > 1)
		b->bucket_bytes = g->reduce.bytes;
	b->sample_bytes = sample_bytes(c, prep, data, gpu, m);
	if (g->transfer == GPU_TRANSFER_OVERLAP)
		b->waiting = 1;
	else if (dp)
		b->waiting = g->n - 1;
	return gpu_check_batch(gpu, m, b, o->batch, o->extrapolate, err);
}

void train_node_close(struct train_node *n)
{
	node_profile_free(&n->profile);
	prep_profile_free(&n->prep);
	dist_time_free(&n->step);
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (double)MIB;
}

static const char *parallel_name(const struct gpus_config *c)
{
	static const char *const names[] = {
		[GPUS_DDP] = "ddp", [GPUS_DP] = "dp", [GPUS_FSDP] = "fsdp"
	};

	return c->n == 1 && c->parallel != GPUS_FSDP ? "none"
						     : names[c->parallel];
}

/* null: not sharded. */
static json_t *fsdp_json(const struct gpus_config *c)
{
	const struct fsdp *f = &c->fsdp;

	if (c->parallel != GPUS_FSDP)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I}", "units", (json_int_t)f->units,
			 "prefetch", (json_int_t)f->prefetch, "weight_bytes",
			 (json_int_t)f->weight_bytes, "gradient_bytes",
			 (json_int_t)f->gradient_bytes);
}

json_t *train_node_json(const struct train_node *n,
			const struct train_options *o)
{
	static const char *const algorithms[] = {
		[COLLECTIVE_AUTO] = "auto",
		[COLLECTIVE_RING] = "ring",
		[COLLECTIVE_TREE] = "tree",
	};
	const struct collective *c = &n->gpus.reduce;
	bool reduces = c->ranks > 1 && !o->inference;
	json_t *profile = n->profile.name ? node_profile_json(&n->profile)
					  : json_null();
	json_t *prep = n->prep_gpu ? prep_profile_json(n->prep_gpu)
				   : json_null();

	return json_pack(
		"{s:I, s:s, s:o, s:I, s:s, s:b, s:f, s:f, s:f, s:o, s:o, "
		"s:{s:f, s:f, s:f}, s:{s:s, s:I, s:I, s:f, s:f}, s:s?}",
		"gpus", (json_int_t)n->gpus.n, "parallel",
		parallel_name(&n->gpus), "fsdp", fsdp_json(&n->gpus),
		"accumulate", (json_int_t)o->accumulate, "transfer",
		gpu_transfer_name(n->gpus.transfer), "inference", o->inference,
		"jitter", n->jitter, "host_ms",
		(double)n->gpus.host_ns / NS_PER_MS, "model_transfer_s",
		(double)n->model_transfer_ns / 1e9, "profile", profile,
		"prep_gpu", prep, "beside_mib", "prep", n->beside.prep_mib,
		"gradient_buckets", mib(n->beside.bucket_bytes),
		"waiting_batches", mib(gpu_waiting_bytes(&n->beside, o->batch)),
		"allreduce", "algorithm", algorithms[c->algorithm], "ranks",
		(json_int_t)(c->ranks > 1 ? c->ranks : 1), "gradient_bytes",
		(json_int_t)(reduces ? c->bytes : 0), "gb_per_s",
		c->ranks > 1 ? c->bytes_per_s / 1e9 : 0, "latency_us",
		c->ranks > 1 ? (double)c->latency_ns / 1e3 : 0, "step_time",
		o->step_time);
}

static void set_known(json_t *j, const char *key, double v)
{
	json_object_set_new(j, key, v >= 0 ? json_real(v) : json_null());
}

void train_node_add_cost(const struct train_node *n,
			 const struct train_account *a, json_t *j)
{
	bool known = n->profile.name != NULL;
	uint32_t nodes = a->more_nodes + 1; /* like this one */
	double s = (double)a->elapsed_ns / 1e9;
	/* mean number of computing GPUs */
	double busy = a->elapsed_ns
			      ? (double)account_mean(a, a->all.compute_ns) *
					n->gpus.n / (double)a->elapsed_ns
			      : 0;

	set_known(j, "cost_usd",
		  known ? nodes * node_cost_usd(&n->profile, s) : -1);
	set_known(j, "energy_kwh",
		  known ? nodes * node_energy_kwh(&n->profile, s, busy) : -1);
}
