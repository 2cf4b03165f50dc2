/* SPDX-License-Identifier: MIT */
#include "emu/gpu/device.h"

void device_close(struct device *d)
{
	if (d)
		d->ops->close(d);
}

int device_start(struct device *d, const struct device_job *job,
		 uint64_t *ret_load_ns, struct err *err)
{
	d->job = *job;
	*ret_load_ns = 0;
	return d->ops->start(d, ret_load_ns, err);
}

void device_interrupt(struct device *d)
{
	if (d && d->ops->interrupt)
		d->ops->interrupt(d);
}

json_t *device_json(const struct device *d)
{
	return d->ops->json ? d->ops->json(d) : json_null();
}

void device_summary(const struct device *d, uint64_t elapsed_ns, FILE *f)
{
	if (d->ops->summary)
		d->ops->summary(d, elapsed_ns, f);
}

struct gpus_part device_part_cost(const struct device_job *j, uint32_t samples,
				  uint64_t bytes)
{
	struct gpus_part p =
		gpus_part_of(j->gpu, j->model, samples, bytes, j->pinned);

	if (j->prep_gpu && samples)
		p.prep_ns = prep_profile_gpu_ns(j->prep_gpu, samples);
	if (j->inference)
		p.backward_ns = p.optimizer_ns = 0;
	return p;
}
