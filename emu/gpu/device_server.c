/* SPDX-License-Identifier: MIT */
/*
 * GPUs of a gpemu-gpud, which others may share. The order of things is that
 * of local GPUs (gpu.h): overlapped, a device holds two batches; blocking,
 * one. Only their times come from the server: it is one message that brings
 * the batch of a single GPU and its step, and a step is reported when the
 * server says that it is done.
 *
 * Several GPUs get their batches one by one. On the server they begin a step
 * together, when the last one has its batch; it is reported as of local GPUs,
 * each of which begins when it has its own and waits at the end. With equal
 * parts both end at the same time. How long gradients are reduced is known
 * here, and part of the step.
 *
 * Between the copy of a batch and its computation the GPU may be others':
 * that is neither a data wait nor a transfer stall, and is reported apart as
 * the share wait.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/device.h"
#include "emu/gpu/gpud_client.h"

struct copied {
	uint64_t ready, start, end;
};

/* A step that the server has not reported as done. */
struct flight {
	void *user;
	uint32_t used; /* GPUs with a part */
	struct copied copied[GPUS_MAX];
	uint64_t compute_ns[GPUS_MAX]; /* of the part, on a GPU of its own */
	uint64_t reduce_ns;
};

struct server {
	struct device device;
	pthread_mutex_t lock; /* which connection `client` is */
	struct gpud_client client;
	char *user; /* NULL: none that is trusted besides */
	/* on our clock what is 0 on the server's, emulated ns */
	int64_t offset;
	atomic_bool stop; /* interrupted */
	struct gpud_admitted admitted;
	uint64_t next_id;
	struct flight next;		    /* not submitted yet */
	struct flight flight[DEVICE_STEPS]; /* the oldest first */
	uint32_t n_flights;
	int failed; /* since device_submit, for the next call */
	struct err why;
	uint64_t share_wait_ns, copy_wait_ns; /* totals; copies of all GPUs */
};

static struct server *server_of(struct device *d)
{
	return container_of(d, struct server, device);
}

static const struct server *server_of_const(const struct device *d)
{
	return container_of(d, const struct server, device);
}

static void server_close(struct device *d)
{
	struct server *s = server_of(d);

	/* a child that was forked may have the connection, too */
	gpud_stop(&s->client);
	gpud_close(&s->client);
	pthread_mutex_destroy(&s->lock);
	free(s->user);
	free(s);
}

static void server_interrupt(struct device *d)
{
	struct server *s = server_of(d);

	pthread_mutex_lock(&s->lock);
	atomic_store(&s->stop, true);
	gpud_stop(&s->client);
	pthread_mutex_unlock(&s->lock);
}

/*
 * The server does not keep a connection for as long as a dataset may take to
 * be listed, so a job begins on a fresh one; to the same server.
 */
static int reconnect(struct server *s, struct err *err)
{
	struct gpud_client fresh, old = s->client;
	int k = gpud_open(old.path, s->user, &fresh, err);

	if (k == 0 && (strcmp(fresh.server.profile, old.server.profile) ||
		       fresh.server.time_scale != old.server.time_scale))
		k = err_set(err, -EINVAL,
			    "%s: the server was restarted with another GPU or "
			    "time scale",
			    old.path);
	if (k == 0) /* iterations take as long as they take */
		k = gpud_patience(&fresh, 0, err);
	if (k < 0) {
		gpud_close(&fresh);
		return k;
	}
	pthread_mutex_lock(&s->lock);
	s->client = fresh;
	if (atomic_load(&s->stop))
		gpud_stop(&s->client);
	pthread_mutex_unlock(&s->lock);
	gpud_close(&old);
	return 0;
}

/* Of an error: was it asked for? Then there is nothing to tell. */
static int why(const struct server *s, int error, struct err *err)
{
	if (error == 0 || !atomic_load(&s->stop))
		return error;
	if (err)
		err->text[0] = '\0';
	return -ECANCELED;
}

/* The server said what its clock showed at a time that we know too. */
static void set_clocks(struct server *s, const struct tick *tick)
{
	const struct gpud_welcome *w = &s->client.server;
	double since = (double)(tick_wall() - w->wall_ns) / w->time_scale;

	s->offset =
		(int64_t)tick_now(tick) - (int64_t)w->now_ns - (int64_t)since;
}

static uint64_t ours(const struct server *s, uint64_t server_ns)
{
	int64_t ns = (int64_t)server_ns + s->offset;

	return ns > 0 ? (uint64_t)ns : 0;
}

/* The next message, which must be of a type. */
static int expect(struct server *s, enum gpud_type type, struct gpud_msg *ret,
		  struct err *err)
{
	int k = gpud_receive(&s->client, ret, err);

	if (k == 0 && ret->type != type)
		k = err_set(err, -EPROTO, "%s: received a %s instead of a %s",
			    s->client.path, gpud_type_name(ret->type),
			    gpud_type_name(type));
	return k;
}

/* After the hello: admitted at once, or queued first. */
static int wait_for_room(struct server *s, struct err *err)
{
	const struct device_job *j = &s->device.job;
	struct gpud_msg m;
	int k = gpud_receive(&s->client, &m, err);

	if (k == 0 && m.type == GPUD_QUEUED) {
		if (j->queued)
			j->queued(j->ctx, m.queued.ahead);
		k = gpud_receive(&s->client, &m, err);
	}
	if (k == 0 && m.type != GPUD_ADMITTED)
		k = err_set(err, -EPROTO,
			    "%s: received a %s instead of the admission",
			    s->client.path, gpud_type_name(m.type));
	if (k == 0)
		s->admitted = m.admitted;
	return k;
}

/* What nothing hides of the reduction of gradients, as on local GPUs. */
static uint64_t reduced_ns(const struct device_job *j, uint32_t used,
			   const struct device_part *part)
{
	struct gpus_part cost[GPUS_MAX];
	struct gpu_step step[GPUS_MAX];
	struct gpus g;

	gpus_init(&g, j->gpus, 0);
	for (uint32_t i = 0; i < used; i++) {
		const struct gpus_part none = { 0 };

		cost[i] = device_part_of(j, part[i].samples, part[i].bytes);
		gpus_copy(&g, i, 0, &none, &step[i]);
	}
	gpus_step(&g, used, cost, step);
	return step[0].allreduce_ns;
}

/* That of whole batches. */
static uint64_t usually_reduced_ns(const struct device_job *j)
{
	struct device_part part[GPUS_MAX] = { { 0 } };

	for (uint32_t i = 0; i < j->gpus->n; i++)
		part[i].samples = j->batch;
	return reduced_ns(j, j->gpus->n, part);
}

/* The first copy waits for the model. */
static int server_start(struct device *d, uint64_t *ret_load_ns,
			struct err *err)
{
	const struct device_job *j = &d->job;
	struct server *s = server_of(d);
	struct gpud_msg m = { .type = GPUD_HELLO };
	int k;

	snprintf(m.hello.name, sizeof(m.hello.name), "%s",
		 program_invocation_short_name);
	snprintf(m.hello.model, sizeof(m.hello.model), "%s", j->model->name);
	m.hello.batch = j->batch;
	m.hello.n_gpus = j->gpus->n;
	m.hello.iterations = j->iterations;
	m.hello.waiting_bytes = j->waiting_bytes;
	m.hello.bucket_bytes = j->bucket_bytes;
	m.hello.reduce_ns = usually_reduced_ns(j);
	m.hello.flags = (j->pinned ? GPUD_PINNED : 0) |
			(j->extrapolate ? GPUD_EXTRAPOLATE : 0) |
			(j->load ? GPUD_LOAD : 0);
	k = reconnect(s, err);
	if (k == 0) {
		set_clocks(s, j->tick);
		k = gpud_send(&s->client, &m, err);
	}
	if (k == 0)
		k = wait_for_room(s, err);
	if (k == 0 && j->load)
		*ret_load_ns = gpu_model_transfer_ns(j->model);
	return why(s, k, err);
}

static void server_begin(struct device *d, uint64_t epoch)
{
	(void)epoch;
	d->idle_ns = tick_now(d->job.tick);
}

/* --- steps ---------------------------------------------------------------- */

static void server_hold(struct device *d, uint64_t until)
{
	d->idle_ns = MAX(d->idle_ns, until);
}

/* A GPU's step from its batch's arrival: compute_start is when nothing but
 * other jobs kept it waiting, or the other GPUs. */
static struct gpu_step arrived(const struct copied *c, uint64_t idle,
			       uint64_t start)
{
	uint64_t begin = MIN(MAX(c->end, idle), start);
	struct gpu_step g = { .copy_start = c->start,
			      .copy_end = c->end,
			      .compute_start = begin };

	/* from then on the batch was there */
	g.data_wait_ns = c->ready > idle ? MIN(c->ready, begin) - idle : 0;
	g.transfer_stall_ns = begin > idle + g.data_wait_ns
				      ? begin - idle - g.data_wait_ns
				      : 0;
	return g;
}

/* Without a part of the step. */
static struct gpu_step absent(uint64_t idle, uint64_t end)
{
	return (struct gpu_step){ .copy_start = idle,
				  .copy_end = idle,
				  .compute_start = idle,
				  .compute_end = idle,
				  .step_end = end,
				  .barrier_wait_ns = end - idle };
}

/* Of the time from start to end, as much as `ns` is of `all`. */
static uint64_t stretched(uint64_t start, uint64_t end, uint64_t ns,
			  uint64_t all)
{
	return all ? (uint64_t)((unsigned __int128)(end - start) * ns / all)
		   : 0;
}

/* The steps of all GPUs. Returns how long only others kept them waiting. */
static uint64_t steps_of(const struct server *s, const struct flight *f,
			 uint64_t start, uint64_t end, struct gpu_step *ret)
{
	uint64_t idle = s->device.idle_ns, begin = 0, most = 0, over, shared;

	for (uint32_t i = 0; i < f->used; i++) {
		ret[i] = arrived(&f->copied[i], idle, start);
		most = MAX(most, f->compute_ns[i]);
		begin = MAX(begin, ret[i].compute_start);
	}
	shared = start - MIN(begin, start);
	over = end - stretched(start, end, f->reduce_ns, most + f->reduce_ns);
	for (uint32_t i = f->used; i < s->device.job.gpus->n; i++)
		ret[i] = absent(idle, end);
	for (uint32_t i = 0; i < f->used; i++) {
		struct gpu_step *g = &ret[i];

		g->compute_start += shared;
		g->compute_end = g->compute_start +
				 stretched(start, over, f->compute_ns[i], most);
		g->barrier_wait_ns = over - g->compute_end;
		g->allreduce_ns = end - over;
		g->step_end = end;
	}
	return shared;
}

/* The oldest flight has landed. */
static void land(struct server *s, const struct gpud_done *done)
{
	struct device *d = &s->device;
	uint64_t start = ours(s, done->start),
		 end = MAX(ours(s, done->end), start);
	struct gpu_step gpu[GPUS_MAX];
	struct device_step step = { .user = s->flight[0].user,
				    .idle_ns = d->idle_ns,
				    .gpu = gpu };

	s->share_wait_ns += steps_of(s, &s->flight[0], start, end, gpu);
	s->flight[0] = s->flight[1];
	s->n_flights--;
	server_hold(d, end);
	if (d->events.done)
		d->events.done(d->events.ctx, &step);
	if (d->events.begun)
		d->events.begun(d->events.ctx, start);
}

/* A failure since the last submit. */
static int check_failed(const struct server *s, struct err *err)
{
	return s->failed < 0
		       ? why(s, err_set(err, s->failed, "%s", s->why.text), err)
		       : 0;
}

/* Until no more than `most` are on their way. */
static int wait_done(struct server *s, uint32_t most, struct err *err)
{
	struct gpud_msg m;
	int k = check_failed(s, err);

	while (k == 0 && s->n_flights > most) {
		k = expect(s, GPUD_DONE, &m, err);
		if (k == 0) {
			land(s, &m.done);
		} else { /* no later call goes on */
			s->failed = k;
			err_set(&s->why, k, "%s", err ? err->text : "");
		}
	}
	return why(s, k, err);
}

static int server_room(struct device *d, uint32_t n, struct err *err)
{
	bool blocking = d->job.gpus->transfer == GPU_TRANSFER_BLOCKING;

	(void)n;
	return wait_done(server_of(d), blocking ? 0 : 1, err);
}

static int server_drain(struct device *d, struct err *err)
{
	return wait_done(server_of(d), 0, err);
}

/* Send a batch or a step. DONE of a step before may come first: then that has
 * landed. */
static int accepted(struct server *s, const struct gpud_msg *request,
		    struct gpud_accepted *ret, struct err *err)
{
	struct gpud_msg m;
	int k = gpud_send(&s->client, request, err);

	if (k == 0)
		k = gpud_receive(&s->client, &m, err);
	while (k == 0 && m.type == GPUD_DONE && s->n_flights) {
		land(s, &m.done);
		k = gpud_receive(&s->client, &m, err);
	}
	if (k == 0 && m.type != GPUD_ACCEPTED)
		k = err_set(err, -EPROTO,
			    "%s: received a %s instead of an answer",
			    s->client.path, gpud_type_name(m.type));
	if (k == 0)
		*ret = m.accepted;
	return why(s, k, err);
}

/* To one of several GPUs the batch goes alone. */
static struct gpud_msg message_of(struct server *s, uint32_t gpu,
				  const struct device_batch *b, uint64_t staged)
{
	struct gpud_msg m = { .type = GPUD_COPY };

	if (s->device.job.gpus->n > 1) {
		m.copy.gpu = gpu;
		m.copy.bytes = b->bytes;
		m.copy.staged_ns = staged;
		return m;
	}
	m.type = GPUD_SUBMIT;
	m.submit.id = s->next_id++;
	m.submit.samples = b->samples;
	m.submit.parts = b->parts;
	m.submit.bytes = b->bytes;
	m.submit.staged_ns = staged;
	return m;
}

static int server_copy(struct device *d, uint32_t gpu,
		       const struct device_batch *b, struct gpu_step *ret,
		       struct err *err)
{
	const struct tick *tick = d->job.tick;
	struct server *s = server_of(d);
	struct copied *c = &s->next.copied[gpu];
	struct gpud_accepted a;
	struct gpud_msg m;
	uint64_t staged = 0, asked;
	int k = check_failed(s, err);

	if (k < 0)
		return k;
	tick_wait(d->job.tick, b->ready_ns);
	if (b->stage)
		staged = b->stage(tick, b->memory);
	asked = tick_now(tick) - staged;
	m = message_of(s, gpu, b, staged);
	k = accepted(s, &m, &a, err);
	if (k < 0)
		return k;
	/* it also waited for the batches before it; and the copy of what was
	 * staged began before the server heard of it */
	*c = (struct copied){ .ready = gpu ? MAX(b->ready_ns, c[-1].ready)
					   : b->ready_ns,
			      .start = ours(s, a.copy_start) - staged,
			      .end = ours(s, a.copy_end) };
	if (c->start > asked)
		s->copy_wait_ns += c->start - asked;
	*ret = (struct gpu_step){ .copy_start = c->start, .copy_end = c->end };
	return 0;
}

/* Several GPUs have their batches: the step. */
static int submit_all(struct server *s, const struct device_part *part,
		      struct err *err)
{
	struct gpud_msg m = { .type = GPUD_SUBMIT, .submit.id = s->next_id++ };
	struct gpud_accepted a;

	for (uint32_t i = 0; i < s->next.used; i++)
		m.submit.samples = MAX(m.submit.samples, part[i].samples);
	s->next.reduce_ns = m.submit.reduce_ns =
		reduced_ns(&s->device.job, s->next.used, part);
	return accepted(s, &m, &a, err);
}

static void server_submit(struct device *d, const struct device_part *part,
			  void *user)
{
	struct server *s = server_of(d);
	struct flight *f = &s->next;
	uint32_t n = d->job.gpus->n;

	f->user = user;
	f->reduce_ns = 0;
	for (f->used = 0; f->used < n && part[f->used].samples; f->used++) {
		struct gpu_cost cost;

		gpu_profile_cost(d->job.gpu, d->job.model,
				 part[f->used].samples, &cost);
		f->compute_ns[f->used] = cost.forward_ns + cost.backward_ns;
	}
	if (n > 1)
		s->failed = submit_all(s, part, &s->why);
	if (s->failed == 0)
		s->flight[s->n_flights++] = *f;
}

/* --- the record ----------------------------------------------------------- */

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

/* 1 before it is admitted: a job that was interrupted has a record, too. */
static uint32_t n_admitted(const struct server *s)
{
	return s->admitted.gpus
		       ? (uint32_t)__builtin_popcountll(s->admitted.gpus)
		       : 1;
}

static json_t *server_json(const struct device *d)
{
	const struct server *s = server_of_const(d);
	const struct gpud_welcome *w = &s->client.server;
	json_t *gpus = json_array();

	for (unsigned i = 0; i < 64; i++)
		if (s->admitted.gpus >> i & 1)
			json_array_append_new(gpus, json_integer(i));
	return json_pack("{s:o, s:s, s:s, s:s, s:s, s:I, s:o, s:f, s:f, s:f}",
			 "server", json_bytes(s->client.path), "gpu", w->gpu,
			 "scheduler", w->scheduler, "share", w->share,
			 "slicing", w->slicing, "job",
			 (json_int_t)s->admitted.job, "gpus", gpus, "queue_s",
			 seconds(s->admitted.queue_ns), "share_wait_s",
			 seconds(s->share_wait_ns), "copy_wait_s",
			 seconds(s->copy_wait_ns / n_admitted(s)));
}

static void server_summary(const struct device *d, uint64_t elapsed_ns, FILE *f)
{
	const struct server *s = server_of_const(d);
	const struct gpud_welcome *w = &s->client.server;

	fprintf(f,
		"Shared %s (%s, --share %s --scheduler %s, time slicing: %s): "
		"%.2f s in the "
		"queue; of the time, %.1f %% waiting for other jobs.\n",
		n_admitted(s) > 1 ? "GPUs" : "GPU", s->client.path, w->share,
		w->scheduler, w->slicing, seconds(s->admitted.queue_ns),
		elapsed_ns
			? 100 * seconds(s->share_wait_ns) / seconds(elapsed_ns)
			: 0);
}

static const struct device_ops device_server = {
	.name = "server",
	.shared = true,
	.close = server_close,
	.start = server_start,
	.begin = server_begin,
	.copy = server_copy,
	.submit = server_submit,
	.room = server_room,
	.drain = server_drain,
	.hold = server_hold,
	.interrupt = server_interrupt,
	.json = server_json,
	.summary = server_summary,
};

int device_server_open(const char *path, const char *user, double time_scale,
		       struct device **ret, char **ret_profile, struct err *err)
{
	struct server *s = calloc(1, sizeof(*s));
	int k = 0;

	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->device.ops = &device_server;
	pthread_mutex_init(&s->lock, NULL);
	s->client.fd = -1;
	s->user = user ? strdup(user) : NULL;
	if (user && !s->user)
		k = err_set(err, -ENOMEM, "out of memory");
	if (k == 0)
		k = gpud_open(path, user, &s->client, err);
	if (k == 0 && s->client.server.time_scale != time_scale)
		k = err_set(err, -EINVAL,
			    "%s runs at --time-scale %g: use the same", path,
			    s->client.server.time_scale);
	*ret_profile = k == 0 ? strdup(s->client.server.profile) : NULL;
	if (k == 0 && !*ret_profile)
		k = err_set(err, -ENOMEM, "out of memory");
	if (k < 0)
		server_close(&s->device);
	else
		*ret = &s->device;
	return k;
}
