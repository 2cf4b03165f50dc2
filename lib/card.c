/* SPDX-License-Identifier: MIT */
/* A GPU whose work comes in parts, from a framework that has its own loop. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpu.h"
#include "lib/options.h"
#include "lib/private.h"
#include "loader/options/train_gpu.h"

struct gpemu_card {
	struct train_options options;
	struct gpu_profile profile;
	struct tick *tick;
	char *json;
	uint64_t busy_ns[GPEMU_ENGINES]; /* until when */
};

static int open_card(struct gpemu_card *c, const char *const options[],
		     struct err *err)
{
	static const char *const keys[] = { "gpu", "gpu_memory", "time_scale",
					    "keep_awake", NULL };
	json_t *profile;
	int r = options_set(&c->options, options, keys, err);

	if (r == 0 && !c->options.gpu) {
		c->options.gpu = strdup(GPU_DEFAULT);
		r = c->options.gpu ? 0 : err_set(err, -ENOMEM, "out of memory");
	}
	if (r == 0)
		r = train_gpu_load(&c->options, &c->profile, err);
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
	tick_free(c->tick);
	gpu_profile_free(&c->profile);
	conf_free(train_fields, &c->options);
	free(c->json);
	free(c);
}

const char *gpemu_card_profile(const struct gpemu_card *c)
{
	return c->json;
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
