/* SPDX-License-Identifier: MIT */
#include "share/copies.h"

#include <errno.h>

#include "common/util.h"

uint64_t copies_add(struct share *s, uint64_t gpus, uint64_t ns,
		    uint64_t *ret_start)
{
	uint64_t at = s->now;

	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		if (gpus >> g & 1)
			at = MAX(at, s->gpus[g].copy_free);
	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		if (gpus >> g & 1)
			s->gpus[g].copy_free = at + ns;
	*ret_start = at;
	return gpus ? at + ns : at;
}

/* Of the job's GPUs; the number of GPUs: there is none. */
static uint32_t nth_of(const struct share *s, const struct share_job *job,
		       uint32_t nth)
{
	uint32_t g = 0;

	for (; g < s->config.n_gpus; g++)
		if (share_on(job, g) && nth-- == 0)
			break;
	return g;
}

int share_copy(struct share *s, struct share_job *job, uint32_t nth,
	       uint64_t copy_ns, uint64_t *ret_start, uint64_t *ret_end)
{
	uint32_t g = nth_of(s, job, nth);

	if (!job->resident)
		return -EAGAIN;
	if (job->n == SHARE_DEPTH)
		return -EBUSY;
	if (g == s->config.n_gpus || job->copied >> g & 1)
		return -EINVAL;
	*ret_end = copies_add(s, 1ull << g, copy_ns, ret_start);
	job->copied |= 1ull << g;
	job->copied_ns = MAX(job->copied_ns, *ret_end);
	return 0;
}

uint64_t copies_end(const struct share *s, uint32_t gpu)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *job = s->jobs[i];

		if (!share_on(job, gpu))
			continue;
		end = MAX(end, job->loaded_ns);
		if (job->copied >> gpu & 1)
			end = MAX(end, job->copied_ns);
		for (uint32_t k = 0; k < job->n; k++)
			end = MAX(end, job->queue[(job->head + k) % SHARE_DEPTH]
					       .copy_end);
	}
	return end;
}
