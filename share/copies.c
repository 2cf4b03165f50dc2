/* SPDX-License-Identifier: MIT */
#include "share/copies.h"

#include <errno.h>

#include "common/util.h"

uint64_t copies_add(struct share *s, struct share_job *job, uint64_t gpus,
		    uint64_t ns, uint64_t *ret_start)
{
	uint64_t at = MAX(s->now, job->loaded_ns);

	if (ns == 0)
		gpus = 0;
	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		if (gpus >> g & 1)
			at = MAX(at, s->gpus[g].copy_free);
	*ret_start = at;
	at = util_plus(at, ns);
	for (uint32_t g = 0; g < s->config.n_gpus; g++)
		if (gpus >> g & 1)
			s->gpus[g].copy_free = job->copy_end[g] = at;
	return at;
}

uint64_t copies_there(const struct share_job *job)
{
	uint64_t end = 0;

	for (uint32_t g = 0; g < SHARE_MAX_GPUS; g++)
		if (job->copied >> g & 1)
			end = MAX(end, job->copy_end[g]);
	return end;
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
	*ret_end = copies_add(s, job, 1ull << g, copy_ns, ret_start);
	job->copied |= 1ull << g;
	return 0;
}

uint64_t copies_end(const struct share *s, uint32_t gpu)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct share_job *job = s->jobs[i];

		if (share_on(job, gpu))
			end = MAX(end, MAX(job->loaded_ns, job->copy_end[gpu]));
	}
	return end;
}
