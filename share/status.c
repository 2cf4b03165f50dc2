/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/identity.h"
#include "share/server.h"
#include "share/utilisation.h"

struct gpu_status {
	uint32_t index;
	double total_mib;
	uint64_t capacity, used, busy_ns;
	uint32_t n_jobs, n_lanes, n_running;
	uint32_t part_milli; /* of its time, granted */
	double utilisation;
	bool failed;
};

struct job_status {
	pid_t pid;
	uid_t uid;
	char name[GPUD_NAME];
	char grant[GPUD_NAME]; /* "": none */
	const char *model;     /* of the profile */
	uint32_t batch;
	struct share_job job;
	uint32_t lane[SHARE_MAX_GPUS];
};

struct status {
	const struct server *s; /* for what never changes */
	bool granted;		/* it is that of a grant */
	uint64_t now, n_joined, n_iterations;
	uint64_t n_refused, n_malformed, n_expired;
	uint32_t n_clients, n_gpus, n_jobs;
	struct gpu_status gpus[SHARE_MAX_GPUS];
	struct job_status jobs[];
};

static double mib(uint64_t bytes)
{
	return (double)bytes / (double)MIB;
}

static void take_busy(const struct share *share, const struct share_busy *busy,
		      struct gpu_status *ret)
{
	ret->busy_ns = busy->ns;
	ret->utilisation = utilisation_at(busy, share->now);
}

static void take_gpu(const struct server *s, uint32_t g, struct gpu_status *ret)
{
	const struct share_gpu *gpu = &s->share->gpus[g];

	*ret = (struct gpu_status){ .index = g,
				    .total_mib = s->config.gpu->memory_mib,
				    .capacity = gpu->lanes.capacity,
				    .used = gpu->lanes.used,
				    .n_jobs = gpu->lanes.n_jobs,
				    .n_lanes = gpu->lanes.n_lanes,
				    .n_running = gpu->n_running,
				    .part_milli = gpu->part_milli,
				    .failed = gpu->failed };
	take_busy(s->share, &gpu->busy, ret);
}

/* What a grant has of the GPU. `lanes`: scratch, of all lanes. */
static void take_part(const struct share *share, const struct share_quota *q,
		      bool *lanes, struct gpu_status *gpu)
{
	uint32_t g = gpu->index;

	/* a GPU that was granted whole is what it is */
	if (q->bytes[g] < gpu->capacity)
		gpu->total_mib = mib(q->bytes[g]);
	gpu->capacity = q->bytes[g];
	gpu->used = q->used[g];
	gpu->part_milli = q->part_milli[g];
	gpu->n_jobs = gpu->n_lanes = gpu->n_running = 0;
	memset(lanes, 0, share->config.max_jobs * sizeof(*lanes));
	for (uint32_t i = 0; i < share->n_jobs; i++) {
		const struct share_job *job = share->jobs[i];
		bool *lane;

		if (job->want.quota != q || !share_on(job, g))
			continue;
		lane = &lanes[share_lane(share, job, g)];
		gpu->n_jobs++;
		gpu->n_running += job->running;
		gpu->n_lanes += !*lane;
		*lane = true;
	}
	take_busy(share, &q->busy[g], gpu);
}

static int take_gpus(const struct server *s, const struct grant *grant,
		     struct status *st)
{
	const struct share_config *c = &s->share->config;
	_cleanup_free_ bool *lanes = calloc(c->max_jobs, sizeof(*lanes));

	if (!lanes)
		return -ENOMEM;
	for (uint32_t g = 0; g < c->n_gpus; g++) {
		if (grant && !grant->quota.bytes[g])
			continue;
		take_gpu(s, g, &st->gpus[st->n_gpus]);
		if (grant)
			take_part(s->share, &grant->quota, lanes,
				  &st->gpus[st->n_gpus]);
		st->n_gpus++;
	}
	return 0;
}

static void take_job(const struct share *share, const struct share_job *job,
		     struct job_status *ret)
{
	const struct client *c = job->owner;

	ret->pid = c->pid;
	ret->uid = c->uid;
	memcpy(ret->name, c->hello.name, sizeof(ret->name));
	snprintf(ret->grant, sizeof(ret->grant), "%s",
		 c->grant ? c->grant->name : "");
	ret->model = c->model->name;
	ret->batch = c->hello.batch;
	ret->job = *job;
	for (uint32_t g = 0; g < share->config.n_gpus; g++)
		if (share_on(job, g))
			ret->lane[g] = share_lane(share, job, g);
}

struct status *status_take(const struct server *s, const struct grant *grant)
{
	const struct share *share = s->share;
	struct status *st =
		malloc(sizeof(*st) + share->n_jobs * sizeof(st->jobs[0]));

	if (!st)
		return NULL;
	*st = (struct status){ .s = s,
			       .granted = grant,
			       .now = share->now,
			       .n_joined = share->n_joined,
			       .n_iterations = share->n_iterations,
			       .n_refused = s->n_refused,
			       .n_malformed = s->n_malformed,
			       .n_expired = s->n_expired };
	if (take_gpus(s, grant, st) < 0) {
		status_free(st);
		return NULL;
	}
	for (uint32_t i = 0; i < s->n_clients; i++)
		st->n_clients += !grant || s->clients[i]->grant == grant;
	for (uint32_t i = 0; i < share->n_jobs; i++) {
		const struct client *c = share->jobs[i]->owner;

		if (!grant || c->grant == grant)
			take_job(share, share->jobs[i],
				 &st->jobs[st->n_jobs++]);
	}
	return st;
}

void status_free(struct status *st)
{
	free(st);
}

static double seconds(double ns)
{
	return ns / (double)NS_PER_S;
}

static json_t *gpu_json(const struct status *st, const struct gpu_status *gpu)
{
	return json_pack("{s:i, s:s, s:b, s:f, s:f, s:f, s:i, s:i, s:i, s:i, "
			 "s:f, s:f}",
			 "index", (int)gpu->index, "name",
			 st->s->config.gpu->name, "healthy", (int)!gpu->failed,
			 "memory_total_mib", gpu->total_mib,
			 "memory_usable_mib", mib(gpu->capacity),
			 "memory_used_mib", mib(gpu->used), "jobs",
			 (int)gpu->n_jobs, "lanes", (int)gpu->n_lanes,
			 "running", (int)gpu->n_running, "part_milli",
			 (int)gpu->part_milli, "utilisation", gpu->utilisation,
			 "busy_s", seconds((double)gpu->busy_ns));
}

/* What the profile says of the card, and its power now; what is not known is
 * left out. */
static json_t *board_json(const struct status *st, const struct gpu_status *gpu)
{
	const struct gpu_board *b = &st->s->config.gpu->board;
	double now = seconds((double)st->now),
	       busy = seconds((double)gpu->busy_ns),
	       power = gpu_board_power_w(b, gpu->utilisation);
	json_t *j = gpu_board_json(b);

	if (power > 0)
		json_add_real(j, "power_w", power);
	if (power > 0 && now > 0)
		json_add_real(j, "energy_j",
			      gpu_board_power_w(b, busy / now) * now);
	return j;
}

/* The same GPU with what monitoring knows it by. */
static json_t *card_json(const struct status *st, const struct gpu_status *gpu)
{
	json_t *j = gpu_json(st, gpu);
	struct identity id;

	identity_of(st->s->identity, gpu->index, &id);
	json_add_text(j, "uuid", id.uuid);
	json_add_text(j, "serial", id.serial);
	json_add_text(j, "pci_bus_id", id.pci_bus_id);
	json_object_set_new(j, "board", board_json(st, gpu));
	return j;
}

static const char *state(const struct share_job *job)
{
	if (!job->resident)
		return "queued";
	return job->running ? "running" : job->n ? "waiting" : "idle";
}

static json_t *job_json(const struct status *st, const struct job_status *js)
{
	const struct share_job *job = &js->job;
	uint64_t until = job->resident ? job->admitted_ns : st->now;
	json_t *gpus = json_array(), *lanes = json_array();

	for (uint32_t g = 0; g < st->s->config.share.n_gpus; g++)
		if (share_on(job, g)) {
			json_array_append_new(gpus, json_integer(g));
			json_array_append_new(lanes, json_integer(js->lane[g]));
		}
	return json_pack(
		"{s:I, s:I, s:I, s:s, s:s?, s:s, s:i, s:s, s:i, s:o, s:o, s:f, "
		"s:f, s:I, s:I, s:f, s:f, s:f}",
		"job", (json_int_t)job->view.seq, "pid", (json_int_t)js->pid,
		"uid", (json_int_t)js->uid, "name", js->name, "grant",
		js->grant[0] ? js->grant : NULL, "model", js->model, "batch",
		(int)js->batch, "state", state(job), "wanted_gpus",
		(int)job->want.n_gpus, "gpus", gpus, "lanes", lanes,
		"persistent_mib", mib(job->want.persistent_bytes), "peak_mib",
		mib(job->want.peak_bytes), "iterations",
		(json_int_t)job->iterations, "expected",
		(json_int_t)job->want.iterations, "gpu_s",
		seconds(job->service_ns), "wait_s",
		seconds((double)job->wait_ns), "queue_s",
		seconds((double)(until - job->joined_ns)));
}

/* What jobs that take turns lose. */
static json_t *slicing_json(const struct slicing *c)
{
	const struct share_profile *p = c->profile;
	json_t *j = json_pack("{s:s?, s:s}", "profile", p ? p->name : NULL,
			      "reason", c->reason);
	json_t *rows = json_array();

	for (size_t k = 1; p && k <= p->rows.n; k++)
		json_array_append_new(rows,
				      json_pack("[I, f]", (json_int_t)k,
						share_profile_speedup(p, k)));
	json_object_set_new(j, "rows", rows);
	if (p)
		json_add_text(j, "source", p->source);
	return j;
}

/* Who has a grant does not see what others do. */
static json_t *server_json(const struct status *st)
{
	const struct server_config *c = &st->s->config;
	json_t *j = json_pack("{s:I, s:o, s:s, s:s, s:o, s:f, s:f, s:I}", "pid",
			      (json_int_t)getpid(), "profile",
			      json_bytes(c->profile), "scheduler", c->scheduler,
			      "share", share_mode_name(c->share.mode),
			      "slicing", slicing_json(&c->slicing),
			      "time_scale", c->time_scale, "seconds",
			      seconds((double)st->now), "clients",
			      (json_int_t)st->n_clients);
	json_auto_t *totals = json_pack("{s:I, s:I, s:I, s:I, s:I}",
					"jobs_ever", (json_int_t)st->n_joined,
					"iterations",
					(json_int_t)st->n_iterations, "refused",
					(json_int_t)st->n_refused, "malformed",
					(json_int_t)st->n_malformed, "expired",
					(json_int_t)st->n_expired);

	if (!st->granted)
		json_object_update(j, totals);
	return j;
}

json_t *status_json(const struct status *st)
{
	json_t *gpus = json_array(), *jobs = json_array();

	for (uint32_t i = 0; i < st->n_gpus; i++)
		json_array_append_new(gpus, card_json(st, &st->gpus[i]));
	for (uint32_t i = 0; i < st->n_jobs; i++)
		json_array_append_new(jobs, job_json(st, &st->jobs[i]));
	/* the timers are those of all jobs */
	return json_pack("{s:o, s:o, s:o, s:o, s:o*}", "gpemu", json_version(),
			 "server", server_json(st), "gpus", gpus, "processes",
			 jobs, "timer_error_us",
			 st->granted ? NULL : tick_error_json(st->s->tick));
}

/* --- the scribe -----------------------------------------------------------
 *
 * The thread that writes the status of the GPUs as JSON, which would delay the
 * timer of the loop. Requests and answers are pointers passed through two
 * pipes, so the loop never waits for a lock.
 */

static ssize_t read_pointer(int fd, struct question **ret)
{
	ssize_t k;

	do
		k = read(fd, ret, sizeof(*ret));
	while (k < 0 && errno == EINTR);
	return k;
}

static void question_free(struct question *q)
{
	status_free(q->status);
	free(q->text);
	free(q);
}

static void *write_answers(void *arg)
{
	struct scribe *s = arg;
	struct question *q;

	while (read_pointer(s->questions[0], &q) == sizeof(q)) {
		json_auto_t *j = status_json(q->status);

		q->text = j ? json_dumps(j, JSON_COMPACT) : NULL;
		/* only one is outstanding: the pipe has room */
		if (write(s->answers[1], &q, sizeof(q)) < 0)
			question_free(q);
	}
	return NULL;
}

int scribe_init(struct scribe *s)
{
	int r;

	*s = (struct scribe){ .questions = { -1, -1 }, .answers = { -1, -1 } };
	if (pipe2(s->questions, O_CLOEXEC) < 0 ||
	    pipe2(s->answers, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* the loop never waits for room */
	if (fcntl(s->questions[1], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = -pthread_create(&s->thread, NULL, write_answers, s);
	s->runs = r == 0;
	return r;
}

int scribe_ask(struct scribe *s, struct status *status)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q) {
		status_free(status);
		return -ENOMEM;
	}
	q->status = status;
	if (write(s->questions[1], &q, sizeof(q)) == sizeof(q))
		return 0;
	question_free(q);
	return -EAGAIN;
}

bool scribe_answer(struct scribe *s, char **ret_text)
{
	struct question *q;

	if (read_pointer(s->answers[0], &q) != sizeof(q))
		return false;
	*ret_text = TAKE_PTR(q->text);
	question_free(q);
	return true;
}

void scribe_fini(struct scribe *s)
{
	char *text;

	if (s->questions[1] >= 0)
		close(s->questions[1]); /* the thread's read ends */
	if (s->runs)
		pthread_join(s->thread, NULL);
	while (s->answers[0] >= 0 && scribe_answer(s, &text))
		free(text);
	for (int i = 0; i < 2; i++)
		if (s->answers[i] >= 0)
			close(s->answers[i]);
	if (s->questions[0] >= 0)
		close(s->questions[0]);
}
