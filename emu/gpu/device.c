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
