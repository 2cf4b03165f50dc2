/* SPDX-License-Identifier: MIT */
/* A GPU whose work comes in parts, from a framework that has its own loop. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/json.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/device.h"
#include "emu/gpu/gpud_client.h"
#include "emu/gpu/gpud_query.h"
#include "emu/node/profile_node.h"
#include "lib/options.h"
#include "lib/private.h"
#include "loader/options/train_gpu.h"
#include "loader/options/train_table.h"

/* More than are in flight, so that none is lost. */
enum { DONE = 2 * DEVICE_STEPS };

struct gpemu_card {
	struct train_options options;
	struct gpu_profile profile;
	struct node_profile node;
	struct gpus_config gpus; /* the links between them */
	struct tick *tick;
	char *json;
	uint64_t busy_ns[GPEMU_ENGINES]; /* until when */
	/* of a gpemu-gpud; NULL: the engine computes */
	struct device *device;
	struct gpus_config alone; /* of it, one GPU */
	bool joined;
	/* parts that it has computed; those from `first` on were not told */
	struct gpemu_pass done[DONE];
	uint64_t first, n_done, n_submitted;
};

static int open_links(struct gpemu_card *c, struct err *err)
{
	int r = c->options.node
			? node_profile_load(c->options.node, &c->node, err)
			: 0;

	c->gpus.n = MAX((uint32_t)c->options.gpus, 1u);
	if (r == 0 && c->profile.models.n)
		r = node_links(&c->node, &c->profile, c->profile.models.items,
			       1, &c->gpus, err);
	return r;
}

/* A grant has a part of the memory; all of its GPUs are alike. */
static int granted_memory(struct gpemu_card *c, struct err *err)
{
	const struct train_options *o = &c->options;
	json_auto_t *status = NULL;
	const json_t *gpu;
	double mib;
	int r = gpud_query(o->gpu_server, o->server_user, GPUD_PATIENCE_S,
			   &status, err);

	if (r < 0)
		return r;
	gpu = json_array_get(json_object_get(status, "gpus"), 0);
	mib = json_get_number(gpu, "memory_total_mib");
	if (mib > 0 && mib < c->profile.memory_mib)
		gpu_profile_resize(&c->profile, mib);
	return 0;
}

/* Its GPU, which is a server's if one is named or came with the job. */
static int find_gpu(struct gpemu_card *c, struct err *err)
{
	struct train_options *o = &c->options;
	int r = train_gpu_given(o, err);

	if (r == 0 && o->gpu_server && (o->node || o->gpu_memory))
		r = err_set(err, -EINVAL,
			    "--%s: not with --gpu-server (or "
			    "$GPEMU_GPU_SERVER), which has the GPUs",
			    o->node ? "node" : "gpu-memory");
	if (r == 0 && o->gpu_server)
		r = train_gpu_open(o, &c->device, err);
	if (r == 0 && !o->gpu) {
		o->gpu = strdup(GPU_DEFAULT);
		r = o->gpu ? 0 : err_set(err, -ENOMEM, "out of memory");
	}
	if (r == 0)
		r = train_gpu_load(o, &c->profile, err);
	return r == 0 && c->device ? granted_memory(c, err) : r;
}

static int open_card(struct gpemu_card *c, const char *const options[],
		     struct err *err)
{
	static const char *const keys[] = {
		"gpu",	"gpu_memory", "time_scale",  "keep_awake", "gpus",
		"node", "gpu_server", "server_user", NULL
	};
	json_t *profile;
	int r = options_set(&c->options, options, keys, err);

	if (r == 0)
		r = find_gpu(c, err);
	if (r == 0)
		r = open_links(c, err);
	if (r < 0)
		return r;
	profile = gpu_profile_json(&c->profile);
	c->json = profile ? json_dumps(profile, JSON_COMPACT) : NULL;
	json_decref(profile);
	c->tick = tick_new(c->options.time_scale, TICK_DEFAULT_SPIN_NS);
	if (!c->json || !c->tick)
		return err_set(err, -ENOMEM, "out of memory");
	if (c->options.keep_awake)
		tick_keep_awake(c->tick); /* where it is granted */
	return 0;
}

int gpemu_card_open(const char *const options[], struct gpemu_card **ret,
		    char *error, size_t n)
{
	struct gpemu_card *c = calloc(1, sizeof(*c));
	struct err err = { 0 };
	int r = -ENOMEM;

	*ret = NULL;
	if (c) {
		train_options_init(&c->options);
		r = open_card(c, options, &err);
	}
	if (r == 0) {
		*ret = c;
		return 0;
	}
	lib_tell(r, &err, error, n);
	gpemu_card_close(c);
	return r;
}

void gpemu_card_close(struct gpemu_card *c)
{
	if (!c)
		return;
	device_close(c->device);
	tick_free(c->tick);
	gpu_profile_free(&c->profile);
	node_profile_free(&c->node);
	conf_free(train_fields, &c->options);
	free(c->json);
	free(c);
}

const char *gpemu_card_profile(const struct gpemu_card *c)
{
	return c->json;
}

unsigned gpemu_card_gpus(const struct gpemu_card *c)
{
	return c->gpus.n;
}

const char *gpemu_card_server(const struct gpemu_card *c)
{
	return c->device ? c->options.gpu_server : NULL;
}

int gpemu_card_cost(const struct gpemu_card *c, const char *model,
		    uint64_t n_samples, int extrapolate, struct gpemu_cost *ret,
		    char *error, size_t n)
{
	const struct gpu_beside beside = { 0 };
	struct gpu_cost cost;
	struct err err = { 0 };
	const struct gpu_model *m = gpu_profile_model(&c->profile, model, &err);
	int r = m ? 0 : -ENOENT;

	if (r == 0 && n_samples == 0)
		r = err_set(&err, -EINVAL, "a step needs samples");
	if (r == 0)
		r = gpu_check_batch(&c->profile, m, &beside, n_samples,
				    extrapolate != 0, &err);
	if (r < 0) {
		lib_tell(r, &err, error, n);
		return r;
	}
	gpu_profile_cost(&c->profile, m, n_samples, &cost);
	*ret = (struct gpemu_cost){
		.forward_ns = cost.forward_ns,
		.backward_ns = cost.backward_ns - cost.optimizer_ns,
		.optimizer_ns = cost.optimizer_ns,
		.peak_bytes = (uint64_t)(cost.peak_mib * MIB),
		.persistent_bytes = (uint64_t)(cost.persistent_mib * MIB),
		.extrapolated = cost.origin == GPU_EXTRAPOLATED,
	};
	return 0;
}

uint64_t gpemu_card_copy_ns(const struct gpemu_card *c, const char *model,
			    uint64_t bytes, int pinned)
{
	const struct gpu_profile *p = &c->profile;
	const struct gpu_model *models = p->models.items, *m = models;

	/* the same copy was measured with each model: any will do */
	for (size_t i = 0; model && i < p->models.n; i++)
		if (!strcmp(models[i].name, model))
			m = &models[i];
	return gpu_copy_ns(p, m, pinned ? GPU_COPY_PINNED : GPU_COPY_PAGEABLE,
			   bytes);
}

int gpemu_card_reduced_ns(const struct gpemu_card *c,
			  const struct gpemu_pass *passes, size_t n,
			  uint64_t bytes, uint64_t *ret_ns)
{
	struct collective_pass pass[GPUS_MAX];
	struct collective reduce = c->gpus.reduce;

	if (n == 0 || n > GPUS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (passes[i].start_ns > passes[i].end_ns)
			return -EINVAL;
		pass[i] = (struct collective_pass){ passes[i].start_ns,
						    passes[i].end_ns };
	}
	reduce.ranks = (uint32_t)n;
	reduce.bytes = bytes;
	*ret_ns = collective_overlapped(&reduce, pass, n);
	return 0;
}

int gpemu_card_sharded_ns(const struct gpemu_card *c,
			  const struct gpemu_sharded *s, uint64_t *ret_ns)
{
	struct fsdp f = { .ranks = (uint32_t)s->ranks,
			  .units = (uint32_t)s->units,
			  .prefetch = (uint32_t)s->prefetch,
			  .weight_bytes = s->weight_bytes,
			  .gradient_bytes = s->gradient_bytes,
			  .bytes_per_s = c->gpus.reduce.bytes_per_s,
			  .latency_ns = c->gpus.reduce.latency_ns };

	if (s->ranks == 0 || s->ranks > GPUS_MAX || s->units == 0 ||
	    s->units > FSDP_UNITS_MAX || s->prefetch > FSDP_UNITS_MAX)
		return -EINVAL;
	*ret_ns = fsdp_exposed_ns(&f, s->forward_ns, s->backward_ns);
	return 0;
}

int gpemu_card_queue(struct gpemu_card *c, unsigned engine, uint64_t after_ns,
		     uint64_t ns, uint64_t *ret_begin_ns, uint64_t *ret_end_ns)
{
	uint64_t begin = after_ns, end;

	if (engine >= GPEMU_ENGINES)
		return -EINVAL;
	if (c->busy_ns[engine] > begin)
		begin = c->busy_ns[engine];
	if (__builtin_add_overflow(begin, ns, &end))
		return -ERANGE;
	c->busy_ns[engine] = end;
	*ret_begin_ns = begin;
	*ret_end_ns = end;
	return 0;
}

/* --- the GPU of a server -------------------------------------------------- */

static void done(void *ctx, const struct device_step *s)
{
	struct gpemu_card *c = ctx;

	c->done[c->n_done++ % DONE] =
		(struct gpemu_pass){ s->gpu[0].compute_start,
				     s->gpu[0].compute_end };
}

static int join(struct gpemu_card *c, const char *model, uint32_t batch,
		bool extrapolate, struct err *err)
{
	struct device_job job = { .tick = c->tick,
				  .gpu = &c->profile,
				  .gpus = &c->alone,
				  .batch = batch,
				  .extrapolate = extrapolate };
	uint64_t load_ns;
	int r;

	job.model = gpu_profile_model(&c->profile, model, err);
	if (!job.model)
		return -ENOENT;
	r = c->joined ? device_drain(c->device, err) : 0;
	if (r < 0)
		return r;
	c->alone = (struct gpus_config){ .n = 1,
					 .transfer = GPU_TRANSFER_OVERLAP };
	c->device->events = (struct device_events){ .done = done, .ctx = c };
	r = device_start(c->device, &job, &load_ns, err);
	c->joined = r == 0;
	if (r == 0)
		device_begin(c->device, 0);
	return r;
}

int gpemu_card_join(struct gpemu_card *c, const char *model, uint64_t n_samples,
		    int extrapolate, char *error, size_t n)
{
	struct err err = { 0 };
	int r = -EINVAL;

	if (!c->device)
		err_set(&err, r, "the GPU is no server's");
	else if (n_samples == 0 || n_samples > UINT32_MAX)
		err_set(&err, r, "a step of %llu samples",
			(unsigned long long)n_samples);
	else
		r = join(c, model, (uint32_t)n_samples, extrapolate != 0, &err);
	if (r < 0)
		lib_tell(r, &err, error, n);
	return r;
}

void gpemu_card_interrupt(struct gpemu_card *c)
{
	device_interrupt(c->device);
}

int gpemu_card_submit(struct gpemu_card *c, unsigned parts, uint64_t n_samples,
		      char *error, size_t n)
{
	struct device_batch b = { .samples = (uint32_t)n_samples,
				  .parts = parts };
	struct device_part part = { .samples = (uint32_t)n_samples };
	struct gpu_step copy;
	struct err err = { 0 };
	int r = 0;

	if (!c->joined || parts == 0 || parts & ~(unsigned)GPEMU_STEP ||
	    n_samples == 0 || n_samples > UINT32_MAX)
		r = err_set(&err, -EINVAL,
			    "parts %#x of a step of %llu samples", parts,
			    (unsigned long long)n_samples);
	else if (c->n_submitted - c->first == DONE)
		r = err_set(&err, -EBUSY, "too many parts of steps");
	if (r == 0)
		r = device_room(c->device, 1, &err);
	if (r == 0) {
		tick_thread();
		b.ready_ns = tick_now(c->tick);
		r = device_copy(c->device, 0, &b, &copy, &err);
	}
	if (r < 0) {
		lib_tell(r, &err, error, n);
		return r;
	}
	device_submit(c->device, &part, NULL);
	c->n_submitted++;
	return 0;
}

int gpemu_card_done(struct gpemu_card *c, struct gpemu_pass *ret, char *error,
		    size_t n)
{
	struct err err = { 0 };
	int r = 0;

	if (c->first == c->n_submitted)
		r = err_set(&err, -EINVAL, "nothing was submitted");
	else if (c->first == c->n_done)
		r = c->n_submitted - c->n_done > 1
			    ? device_room(c->device, 1, &err)
			    : device_drain(c->device, &err);
	if (r < 0) {
		lib_tell(r, &err, error, n);
		return r;
	}
	*ret = c->done[c->first++ % DONE];
	return 0;
}

uint64_t gpemu_card_now_ns(const struct gpemu_card *c)
{
	return tick_now(c->tick);
}

void gpemu_card_wait(struct gpemu_card *c, uint64_t until_ns)
{
	tick_wait(c->tick, until_ns);
}

void *gpemu_pin(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE); /* a hint; may be refused */
	madvise(p, bytes, MADV_DONTFORK); /* the device's, not a worker's */
	if (mlock(p, bytes) == 0)
		return p;
	munmap(p, bytes);
	return NULL;
}

void gpemu_unpin(void *data, size_t bytes)
{
	if (data)
		munmap(data, bytes);
}
