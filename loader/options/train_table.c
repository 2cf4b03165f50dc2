/* SPDX-License-Identifier: MIT */
#include "loader/options/train_table.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/node/cores.h"
#include "emu/profile/dist.h"
#include "emu/profile/precision.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_gpu.h"
#include "emu/profile/profile_rate.h"
#include "loader/options/train_data.h"
#include "loader/options/train_service.h"
#include "net/addr.h"

/* Images of ImageNet-1k's training set. Source: Russakovsky et al., "ImageNet
 * Large Scale Visual Recognition Challenge", IJCV 2015, table 2 */
#define IMAGENET_SAMPLES 1281167

#define FIELD(member, type) CONF_KEY(member, type, struct train_options)

CONF_CHECK(check_engine, plugin_choice_check, engine_table, "engine")
CONF_CHECK(check_order, plugin_choice_check, order_table, "order")
CONF_CHECK(check_batching, plugin_choice_check, batching_table, "batching")
CONF_CHECK(check_prep, plugin_choice_check, prep_table, "prep")

static int check_format(const void *object, struct err *err)
{
	return strcmp(*(char *const *)object, "auto")
		       ? plugin_choice_check(format_table, "format", object,
					     err)
		       : 0;
}

static int check_bad(const void *object, struct err *err)
{
	struct train_bad bad;

	return train_bad_parse(*(char *const *)object, &bad, err);
}

static int check_address(const void *object, struct err *err)
{
	return addr_check(*(char *const *)object, err);
}

static int check_offload(const void *object, struct err *err)
{
	double part;

	return train_offload_parse(*(char *const *)object, &part, err);
}

static int check_last_step(const void *object, struct err *err)
{
	enum last_step step;

	return train_last_step_parse(*(char *const *)object, &step, err);
}

const struct conf_field train_fields[] = {
	CLI_COMMON_FIELDS(struct train_options, common),
	{ FIELD(data, CONF_STRING),
	  .group = "Dataset:", .arg = "DIR|FILE|s3://BUCKET",
	  .help = "the dataset: a folder of files or shards, one shard, or the "
		  "objects of a bucket" },
	{ FIELD(format, CONF_STRING), .check = check_format,
	  .arg = "auto|NAME[:KEY=VALUE,...]",
	  .help = "format of the dataset (--list format; default auto)" },
	{ FIELD(bad_samples, CONF_STRING), .check = check_bad,
	  .arg = "N|P%[,drop|replace|zeros]",
	  .help = "bad samples that an epoch may have; each is dropped from "
		  "its batch, replaced by another of it, or zeros (default "
		  "1%,drop)" },
	{ FIELD(index, CONF_STRING), .arg = "auto|off|rebuild",
	  .help = "store the list of samples for the next run" },
	{ FIELD(scan_threads, CONF_UINT), .max = 1024, .arg = "N",
	  .help = "threads that list the dataset; 0: two per CPU" },
	{ FIELD(model, CONF_STRING), .group = "GPUs and model:", .arg = "NAME",
	  .help = "the model to train (default resnet50)" },
	{ FIELD(sequence_length, CONF_UINT), .min = 0, .max = 1 << 24,
	  .arg = "N",
	  .help = "tokens per sample: the model's :seqN, and windows of the "
		  "tokens in --data; 0: none" },
	{ FIELD(pad_multiple, CONF_UINT), .max = 1 << 24, .arg = "N",
	  .help = "pad each batch to its longest sample, rounded up to N "
		  "tokens; a step takes the time of that length; 0: pad to "
		  "--sequence-length" },
	{ FIELD(precision, CONF_STRING), .check = precision_check,
	  .arg = "fp32|tf32|amp|fp16|bf16|fp8",
	  .help = "precision of the model's table, gradients and checkpoints" },
	{ FIELD(optimizer, CONF_STRING), .arg = "sgd|adamw",
	  .help = "optimiser whose state is in a checkpoint (default sgd)" },
	{ FIELD(gpu, CONF_STRING), PROFILE_NAME(gpu), .arg = "NAME|FILE",
	  .help = "the GPU to emulate (default: the node's, or v100)" },
	{ FIELD(gpu_memory, CONF_SIZE), .arg = "SIZE", .min = 0, .max = 1e15,
	  .check = gpu_memory_check,
	  .help = "memory of the GPU, otherwise the same; its largest batch is "
		  "estimated (default: the profile's)" },
	{ FIELD(gpu_rate, CONF_DOUBLE), .arg = "N", .min = 0,
	  .max = GPU_RATE_MAX, .check = gpu_rate_check,
	  .help = "samples/s of one GPU: a step takes batch / N, no profile is "
		  "needed; 0: the profile's rate" },
	{ FIELD(gpu_server, CONF_STRING), .arg = "SOCKET",
	  .help = "train on GPUs of gpemu-gpud instead of private ones "
		  "(default: $GPEMU_GPU_SERVER, unless --gpu or --node)" },
	{ FIELD(server_user, CONF_STRING), .arg = "USER|UID",
	  .help = "also trust a gpemu-gpud of this user (default: your own "
		  "and root)" },
	{ FIELD(node, CONF_STRING), PROFILE_NAME(node), .arg = "NAME|FILE",
	  .help = "the machine: GPUs, cores, links (--list node)" },
	{ FIELD(gpus, CONF_UINT), .max = GPUS_MAX, .arg = "N",
	  .help = "number of GPUs; 0: all of the node, or of the job's "
		  "allocation" },
	{ FIELD(parallel, CONF_STRING), .arg = "ddp|dp|fsdp",
	  .help = "DistributedDataParallel, DataParallel or "
		  "FullyShardedDataParallel (default ddp)" },
	{ FIELD(fsdp_units, CONF_UINT), .min = 1, .max = FSDP_UNITS_MAX,
	  .arg = "N",
	  .help = "with --parallel fsdp: number of units (layers), gathered "
		  "one by one (24)" },
	{ FIELD(fsdp_prefetch, CONF_UINT), .max = 64, .arg = "N",
	  .help = "with --parallel fsdp: units gathered ahead of "
		  "computation (1)" },
	{ FIELD(accumulate, CONF_UINT), .min = 1, .max = 1 << 20, .arg = "N",
	  .help = "steps of gradient accumulation before each all-reduce and "
		  "optimiser step (1)" },
	{ FIELD(allreduce, CONF_STRING), .arg = "auto|ring|tree",
	  .help = "algorithm of the all-reduce (default auto)" },
	{ FIELD(jitter, CONF_STRING), .arg = "off|X|profile",
	  .help = "variation of step times: standard deviation over mean" },
	{ FIELD(step_time, CONF_STRING), .check = dist_time_check_text,
	  .arg = "TIME|KIND:KEY=VALUE,...",
	  .help = "compute time of a step, instead of the model's: 323ms, "
		  "normal:mean=323ms,sd=30ms, gamma:mean=1s,shape=6" },
	{ FIELD(inference, CONF_BOOL), .help = "only the forward pass" },
	{ FIELD(model_transfer, CONF_BOOL), .arg = "on|off",
	  .help = "at start, wait until the model is copied to the GPUs "
		  "(default on)" },
	{ FIELD(prep_gpu, CONF_STRING), PROFILE_NAME(prep), .arg = "NAME|FILE",
	  .help = "transforms on the GPU before each step (a prep profile)" },
	{ FIELD(batch, CONF_UINT), .group = "Loader:", .min = 1, .max = 1 << 20,
	  .short_opt = 'b', .arg = "N",
	  .help = "samples per step and GPU (64)" },
	{ FIELD(epochs, CONF_UINT), .min = 1, .max = 1e6, .short_opt = 'e',
	  .arg = "N", .help = "passes over the dataset (1)" },
	{ FIELD(max_steps, CONF_UINT), .arg = "N",
	  .help = "stop after N steps; 0: no limit" },
	{ FIELD(loader, CONF_STRING), .check = check_engine,
	  .arg = "ENGINE[:KEY=VALUE,...]",
	  .help = "read engine (--list engine; default async)" },
	{ FIELD(workers, CONF_UINT), .max = 1024, .arg = "N",
	  .help = "threads that read and transform; 0 (default): one per CPU" },
	{ FIELD(queue_depth, CONF_UINT), .min = 1, .max = 32768, .arg = "N",
	  .help = "reads in flight over all workers (async, threads; 64)" },
	{ FIELD(superbatch, CONF_UINT), .min = 1, .max = 4096, .arg = "N",
	  .help = "batches per window, which is read as one unit (1)" },
	{ FIELD(direct, CONF_BOOL), .arg = "on|off",
	  .help = "bypass the page cache (O_DIRECT)" },
	{ FIELD(sort_extents, CONF_BOOL),
	  .help = "read the samples of a window in device order" },
	{ FIELD(order, CONF_STRING), .check = check_order,
	  .arg = "NAME[:KEY=VALUE,...]",
	  .help = "sampler: order of the samples (--list order; default "
		  "shuffle)" },
	{ FIELD(batching, CONF_STRING), .check = check_batching,
	  .arg = "NAME[:KEY=VALUE,...]",
	  .help = "which samples make a batch (--list batching; default "
		  "in-order)" },
	{ FIELD(dump_order, CONF_STRING), .arg = "FILE",
	  .help = "write the order of each epoch as text" },
	{ FIELD(replay_order, CONF_STRING), .arg = "FILE",
	  .help = "read the order of each epoch from a file of --dump-order" },
	{ FIELD(mpi, CONF_STRING),
	  .group = "Nodes and jobs:", .arg = "auto|on|off",
	  .help = "train together with the other processes that mpirun or "
		  "srun has started (default auto: if there are any)" },
	{ FIELD(nodes, CONF_UINT), .min = 1, .max = 1024, .arg = "N",
	  .help = "number of nodes: run this command as N ranks under "
		  "mpirun (1), or simulate them" },
	{ FIELD(rank, CONF_UINT), .arg = "R",
	  .help = "rank of this process, from 0: which part of each epoch it "
		  "visits" },
	{ FIELD(world_size, CONF_UINT), .min = 1, .max = 1 << 20, .arg = "W",
	  .help = "number of ranks, and of parts of an epoch (1)" },
	{ FIELD(coordinate, CONF_STRING), .check = coordinate_check,
	  .arg = "NAME:jobs=N[,size=SIZE][,wait=TIME]",
	  .help = "share each epoch's reads and transforms with the other jobs "
		  "of that name on this machine" },
	{ FIELD(dispatcher, CONF_STRING), .group = "Service (gpemu-prepd):",
	  .check = check_address, .arg = "HOST:PORT",
	  .help = "with --loader service: the gpemu-prepd dispatcher whose "
		  "workers prepare the batches" },
	{ FIELD(service_key, CONF_STRING), .arg = "FILE",
	  .help = "the secret of dispatcher, workers and trainers, at least 32 "
		  "bytes (default, on one machine: ~/.config/gpemu/key)" },
	{ FIELD(offload, CONF_STRING), .check = check_offload,
	  .arg = "auto|none|all|RATIO",
	  .help = "with --loader service: the part of the batches that its "
		  "workers prepare, 0 to 1 or 0% to 100%; auto measures "
		  "(default all)" },
	{ FIELD(offload_cache, CONF_STRING), .arg = "FILE",
	  .help = "store the measurements of --offload auto for later runs of "
		  "the same job" },
	{ FIELD(last_step, CONF_STRING), .check = check_last_step,
	  .arg = "there|here|pecan|auto",
	  .help = "with --loader service: where the last transform runs if it "
		  "makes samples larger (to fp32, to int64): on the workers, "
		  "or here; pecan: where fewer bytes are sent; auto: as "
		  "--offload auto measures" },
	{ FIELD(dump_samples, CONF_STRING), .group = "", .arg = "FILE",
	  .help = "write a line for each trained sample" },
	{ FIELD(checkpoint_every, CONF_UINT), .group = "Checkpoints:",
	  .arg = "N", .help = "write a checkpoint every N steps; 0: none" },
	{ FIELD(checkpoint_dir, CONF_STRING), .arg = "DIR",
	  .help = "the folder of the checkpoints" },
	{ FIELD(checkpoint, CONF_STRING), .arg = "sync|async",
	  .help = "whether training waits until a checkpoint is written "
		  "(default sync)" },
	{ FIELD(checkpoint_size, CONF_SIZE), .max = 1e15, .arg = "SIZE",
	  .help = "size of a checkpoint; 0: computed from the parameters, "
		  "--precision and --optimizer" },
	{ FIELD(checkpoint_scale, CONF_DOUBLE), .arg = "X", .min = 0.001,
	  .max = 1,
	  .help = "write this part of a checkpoint, which takes the time of "
		  "the whole: on a mount with --writable-scale X, or a real "
		  "disk with --time-scale X (1)" },
	{ FIELD(checkpoint_keep, CONF_UINT), .arg = "N",
	  .help = "keep the newest N checkpoints; 0: all (2)" },
	{ FIELD(resume, CONF_BOOL),
	  .help = "continue from the newest checkpoint that all ranks have, "
		  "if any" },
	{ FIELD(resume_step, CONF_INT), .arg = "STEP", .min = -1, .max = 1e15,
	  .help = "with --resume: from the checkpoint of this step; 0: from "
		  "the beginning; -1 (default): the newest" },
	{ FIELD(prep, CONF_STRING), .group = "Transforms and memory:",
	  .check = check_prep, .arg = "NAME[:KEY=VALUE,...]",
	  .help = "transforms on the CPU (--list prep; default decode)" },
	{ FIELD(prep_output, CONF_STRING), .arg = "fp32|uint8",
	  .help = "type of a transformed image's values (default fp32)" },
	{ FIELD(image_size, CONF_UINT), .min = 1, .max = 4096, .arg = "N",
	  .help = "side of a transformed image in pixels (224)" },
	{ FIELD(prep_profile, CONF_STRING), PROFILE_NAME(prep),
	  .arg = "NAME|FILE",
	  .help = "cost of a sample, with --prep emulated (--list "
		  "prep_profile)" },
	{ FIELD(prep_time, CONF_STRING), .check = dist_time_check_text,
	  .arg = "TIME|KIND:KEY=VALUE,...",
	  .help = "cost of a sample as a time or distribution, as for "
		  "--step-time" },
	{ FIELD(cores, CONF_UINT), .max = CORES_MAX, .arg = "N",
	  .help = "virtual cores, with --prep emulated; 0: as --workers" },
	{ FIELD(prefetch, CONF_UINT), .min = 1, .max = 4096, .arg = "N",
	  .help = "batches prefetched per worker or virtual core (2)" },
	{ "pin", CONF_STRING, offsetof(struct train_options, pin_mode),
	  .arg = "auto|on|off|direct|inline",
	  .help = "how batches reach page-locked memory; auto (default): on if "
		  "the limit of locked memory permits" },
	{ FIELD(pin_budget, CONF_SIZE), .min = 4096, .max = 1099511627776.,
	  .arg = "SIZE", .help = "limit of page-locked memory (1G)" },
	{ FIELD(drop_last, CONF_BOOL), .group = "Loader:",
	  .help = "leave out the last batch of an epoch if it is not full" },
	{ FIELD(transfer, CONF_STRING),
	  .group = "GPUs and model:", .arg = "overlap|blocking",
	  .help = "whether a batch is copied to the GPU while it computes "
		  "(default overlap)" },
	{ FIELD(extrapolate, CONF_BOOL),
	  .help = "allow batch sizes outside the profile's table" },
	{ FIELD(samples, CONF_UINT), .group = "Dataset:", .min = 1,
	  .max = 4294967295., .arg = "N",
	  .help = "samples of an epoch, with --loader null" },
	{ FIELD(simulate, CONF_BOOL), .group = "Simulation (event clock):",
	  .help = "compute all times on an event clock: nothing is read, "
		  "nothing waits; --data is a SOURCE of gpemu-fs, --nodes the "
		  "number of simulated nodes" },
	{ FIELD(fs, CONF_LIST), .item = CONF_STRING,
	  .item_size = sizeof(char *), .lone = true, .arg = "KEY=VALUE",
	  .help = "with --simulate: an option of each node's gpemu-fs, such as "
		  "storage=hdd" },
	{ FIELD(fs_config, CONF_STRING), .arg = "FILE",
	  .help = "with --simulate: a configuration of gpemu-fs; --fs "
		  "overrides it" },
	{ FIELD(caches, CONF_STRING), .arg = "private|partitioned",
	  .help = "with --simulate: one cache per node, or together one "
		  "partitioned cache as with gpemu-fs --peers (default "
		  "private)" },
	{ FIELD(shared_storage, CONF_BOOL),
	  .help = "with --simulate: all nodes use one storage device, also for "
		  "checkpoints" },
	{ FIELD(mtbf, CONF_DURATION), .arg = "TIME",
	  .help = "with --simulate: the run fails after random times of this "
		  "mean, and goes on from its last checkpoint; 0: never" },
	{ FIELD(restart, CONF_DURATION), .arg = "TIME",
	  .help = "with --mtbf: time from a failure until it reads that "
		  "checkpoint (default: 0)" },
	{ FIELD(approximate, CONF_BOOL),
	  .help = "with --simulate: leave out, with a warning, what it has no "
		  "model of, instead of refusing it" },
	{ FIELD(time_scale, CONF_DOUBLE), .group = "", .min = 1e-6, .max = 1e3,
	  .arg = "X", .help = "wall seconds per emulated second" },
	{ FIELD(keep_awake, CONF_BOOL), .arg = "on|off",
	  .help = "keep idle processors awake near a deadline, where "
		  "permitted" },
	{ FIELD(ceiling, CONF_BOOL), .arg = "on|off",
	  .help = "before the run, measure the maximum rate of this machine, "
		  "for half a second (default on)" },
	{ FIELD(analyze, CONF_BOOL),
	  .help = "first measure each stage alone and predict the epoch time "
		  "for any cache size" },
	{ FIELD(analyze_steps, CONF_UINT), .min = 1, .max = 1e9, .arg = "N",
	  .help = "batches per measurement of --analyze (32)" },
	{ FIELD(trace, CONF_STRING), .arg = "FILE",
	  .help = "write a timeline for Perfetto or Chrome's about:tracing" },
	{ FIELD(steps, CONF_STRING), .arg = "FILE",
	  .help = "write a CSV line for each step with its times" },
	{ FIELD(control, CONF_STRING), .arg = "FIFO",
	  .help = "read commands from FIFO while training: 'set cores N'" },
	{ FIELD(stages, CONF_STRING),
	  .group = "GPUs and model:", .arg = "STAGE=TIME,...",
	  .help = "with --loader null: further emulated stages of each step, "
		  "in sequence: storage, cpu, load (both), network" },
	{ FIELD(turns, CONF_STRING), .cli_only = true,
	  .arg = "fd=N,index=I,members=N,offset=N",
	  .help = "with --stages: take turns with other jobs, at most one job "
		  "in a stage; set by gpemu-sched" },
	{ FIELD(progress, CONF_STRING), .group = "", .arg = "auto|on|off",
	  .help = "show a progress bar on stderr" },
	{ 0 },
};

void train_options_init(struct train_options *o)
{
	*o = (struct train_options){
		.model = strdup("resnet50"),
		.optimizer = strdup("sgd"),
		.format = strdup("auto"),
		.index = strdup("auto"),
		.bad_samples = strdup("1%,drop"),
		.batch = 64,
		.epochs = 1,
		.loader = strdup("async"),
		.queue_depth = 64,
		.superbatch = 1,
		.order = strdup("shuffle"),
		.batching = strdup("in-order"),
		.mpi = strdup("auto"),
		.nodes = 1,
		.world_size = 1,
		.resume_step = -1,
		.last_step = strdup("there"),
		.checkpoint = strdup("sync"),
		.checkpoint_scale = 1,
		.checkpoint_keep = 2, /* a spare, in case one is damaged */
		.prep = strdup("decode"),
		.prep_output = strdup("fp32"),
		.image_size = 224,
		.prefetch = 2, /* as PyTorch's prefetch_factor */
		.pin_mode = strdup("auto"),
		/* arbitrary: three of the largest batches measured, 256 of 3 x
		 * 224 x 224 floats, and as much again */
		.pin_budget = GIB,
		.time_scale = 1,
		.keep_awake = true,
		.ceiling = true,
		.progress = strdup("auto"),
		.transfer = strdup("overlap"),
		.parallel = strdup("ddp"),
		/* Source: the layers of BERT-large and GPT-2 medium */
		.fsdp_units = 24,
		/* as forward_prefetch and BACKWARD_PRE of PyTorch's FSDP */
		.fsdp_prefetch = 1,
		.accumulate = 1,
		.allreduce = strdup("auto"),
		.jitter = strdup("off"),
		.model_transfer = true,
		.analyze_steps = 32,
		.samples = IMAGENET_SAMPLES,
	};
}

/* Replace %r by the rank. 0: there is none; 1; -ENOMEM. */
static int name_rank(char **name, uint32_t rank)
{
	char *at = *name ? strstr(*name, "%r") : NULL, *name_of_rank;

	if (!at)
		return 0;
	if (asprintf(&name_of_rank, "%.*s%" PRIu32 "%s", (int)(at - *name),
		     *name, rank, at + 2) < 0)
		return -ENOMEM;
	free(*name);
	*name = name_of_rank;
	return 1;
}

int train_options_join(struct train_options *o, uint32_t rank,
		       uint32_t world_size, struct err *err)
{
	const struct {
		const char *option;
		char **name;
	} log[] = { { "--dump-samples", &o->dump_samples },
		    { "--steps", &o->steps },
		    { "--trace", &o->trace } };
	int r = name_rank(&o->data, rank);

	o->rank = rank;
	o->world_size = world_size;
	o->together = true;
	if (rank) { /* the same on all */
		free(o->dump_order);
		o->dump_order = NULL;
	}
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(log); i++) {
		r = name_rank(log[i].name, rank);
		if (r == 0 && *log[i].name)
			return err_set(err, -EINVAL,
				       "%s %s: each rank writes its own: the "
				       "name needs a %%r, for the rank",
				       log[i].option, *log[i].name);
	}
	return r < 0 ? err_set(err, r, "out of memory") : 0;
}
