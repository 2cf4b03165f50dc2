/* SPDX-License-Identifier: MIT */
#include "common/units.h"
#include "common/util.h"
#include "common/version.h"
#include "share/server.h"

static double mib(uint64_t bytes)
{
	return (double)bytes / (double)MIB;
}

static double seconds(double ns)
{
	return ns / (double)NS_PER_S;
}

static json_t *gpu_json(const struct server *s, uint32_t g)
{
	const struct share_gpu *gpu = &s->share->gpus[g];

	return json_pack("{s:i, s:s, s:f, s:f, s:f, s:i, s:i, s:i, s:f, s:f}",
			 "index", (int)g, "name", s->config.gpu->name,
			 "memory_total_mib", s->config.gpu->memory_mib,
			 "memory_usable_mib", mib(gpu->lanes.capacity),
			 "memory_used_mib", mib(gpu->lanes.used), "jobs",
			 (int)gpu->lanes.n_jobs, "lanes",
			 (int)gpu->lanes.n_lanes, "running",
			 (int)gpu->n_running, "utilisation",
			 share_utilisation(s->share, g), "busy_s",
			 seconds((double)gpu->busy_ns));
}

static const char *state(const struct share_job *job)
{
	if (!job->resident)
		return "queued";
	return job->running ? "running" : job->n ? "waiting" : "idle";
}

static json_t *job_json(const struct server *s, const struct share_job *job)
{
	const struct client *c = job->owner;
	uint64_t until = job->resident ? job->admitted_ns : s->share->now;
	json_t *gpus = json_array(), *lanes = json_array();

	for (uint32_t g = 0; g < s->share->config.n_gpus; g++)
		if (share_on(job, g)) {
			json_array_append_new(gpus, json_integer(g));
			json_array_append_new(
				lanes,
				json_integer(share_lane(s->share, job, g)));
		}
	return json_pack(
		"{s:I, s:I, s:I, s:s, s:s, s:i, s:s, s:i, s:o, s:o, s:f, s:f, "
		"s:I, s:I, s:f, s:f, s:f}",
		"job", (json_int_t)job->view.seq, "pid", (json_int_t)c->pid,
		"uid", (json_int_t)c->uid, "name", c->hello.name, "model",
		c->model->name, "batch", (int)c->hello.batch, "state",
		state(job), "wanted_gpus", (int)job->want.n_gpus, "gpus", gpus,
		"lanes", lanes, "persistent_mib",
		mib(job->want.persistent_bytes), "peak_mib",
		mib(job->want.peak_bytes), "iterations",
		(json_int_t)job->iterations, "expected",
		(json_int_t)job->want.iterations, "gpu_s",
		seconds(job->service_ns), "wait_s",
		seconds((double)job->wait_ns), "queue_s",
		seconds((double)(until - job->joined_ns)));
}

json_t *status_json(const struct server *s)
{
	json_t *gpus = json_array(), *jobs = json_array();

	for (uint32_t g = 0; g < s->share->config.n_gpus; g++)
		json_array_append_new(gpus, gpu_json(s, g));
	for (uint32_t i = 0; i < s->share->n_jobs; i++)
		json_array_append_new(jobs, job_json(s, s->share->jobs[i]));
	return json_pack(
		"{s:{s:s, s:s}, s:{s:I, s:s, s:s, s:s, s:f, s:f, s:I, s:I, "
		"s:I, s:I, s:I}, s:o, s:o, s:o}",
		"gpemu", "version", GPEMU_RELEASE, "git", GPEMU_VERSION,
		"server", "pid", (json_int_t)getpid(), "profile",
		s->config.profile, "scheduler",
		s->config.share.scheduler->plugin.name, "share",
		share_mode_name(s->config.share.mode), "time_scale",
		s->config.time_scale, "seconds", seconds((double)s->share->now),
		"clients", (json_int_t)s->n_clients, "jobs_ever",
		(json_int_t)s->share->n_joined, "iterations",
		(json_int_t)s->share->n_iterations, "refused",
		(json_int_t)s->n_refused, "malformed",
		(json_int_t)s->n_malformed, "gpus", gpus, "processes", jobs,
		"timer_error_us", tick_error_json(s->tick));
}
