/* SPDX-License-Identifier: MIT */
/*
 * A GPU of a gpemu-gpud, which others may share. The order of things is that
 * of local GPUs (gpu.h): overlapped, the device holds two batches; blocking,
 * one. Only their times come from the server: it is one message that brings a
 * batch and its step, and a step is reported when the server says that it is
 * done.
 *
 * Between the copy of a batch and its computation the GPU may be others':
 * that is neither a data wait nor a transfer stall, and is reported apart as
 * the share wait.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/device.h"
#include "emu/gpu/gpud_client.h"

/* A step that the server has not reported as done. */
struct flight {
	void *user;
	uint64_t ready, copy_start, copy_end;
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
	struct flight copied;		    /* not submitted yet */
	struct flight flight[DEVICE_STEPS]; /* the oldest first */
	uint32_t n_flights;
	uint64_t share_wait_ns, copy_wait_ns; /* totals */
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
	m.hello.n_gpus = 1;
	m.hello.iterations = j->iterations;
	m.hello.waiting_bytes = j->waiting_bytes;
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

/* The oldest flight has landed. */
static void land(struct server *s, const struct gpud_done *done)
{
	struct device *d = &s->device;
	struct flight f = s->flight[0];
	uint64_t idle = d->idle_ns, begin;
	struct gpu_step g = { .copy_start = f.copy_start,
			      .copy_end = f.copy_end,
			      .compute_start = ours(s, done->start),
			      .compute_end = ours(s, done->end),
			      .step_end = ours(s, done->end) };
	struct device_step step = { .user = f.user,
				    .idle_ns = idle,
				    .gpu = &g };

	/* from then on only others kept it waiting */
	begin = MIN(MAX(g.copy_end, idle), g.compute_start);
	/* and from then on the batch was there */
	g.data_wait_ns = f.ready > idle ? MIN(f.ready, begin) - idle : 0;
	g.transfer_stall_ns = begin > idle + g.data_wait_ns
				      ? begin - idle - g.data_wait_ns
				      : 0;
	s->share_wait_ns += g.compute_start - begin;
	s->flight[0] = s->flight[1];
	s->n_flights--;
	server_hold(d, g.compute_end);
	if (d->events.done)
		d->events.done(d->events.ctx, &step);
	if (d->events.begun)
		d->events.begun(d->events.ctx, g.compute_start);
}

/* Until no more than `most` are on their way. */
static int wait_done(struct server *s, uint32_t most, struct err *err)
{
	struct gpud_msg m;
	int k = 0;

	while (k == 0 && s->n_flights > most) {
		k = expect(s, GPUD_DONE, &m, err);
		if (k == 0)
			land(s, &m.done);
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

/* Send it. DONE of the one before may come first: then that has landed. */
static int send_batch(struct server *s, const struct device_batch *b,
		      uint64_t staged, struct err *err)
{
	struct gpud_msg m = { .type = GPUD_SUBMIT };
	int k;

	m.submit.id = s->next_id++;
	m.submit.samples = b->samples;
	m.submit.bytes = b->bytes;
	m.submit.staged_ns = staged;
	k = gpud_send(&s->client, &m, err);
	if (k == 0)
		k = gpud_receive(&s->client, &m, err);
	if (k == 0 && m.type == GPUD_DONE && s->n_flights) {
		land(s, &m.done);
		k = gpud_receive(&s->client, &m, err);
	}
	if (k == 0 && m.type != GPUD_ACCEPTED)
		k = err_set(err, -EPROTO,
			    "%s: received a %s instead of an answer",
			    s->client.path, gpud_type_name(m.type));
	if (k < 0)
		return k;
	/* the copy of what was staged began before the server heard of it */
	s->copied = (struct flight){
		.ready = b->ready_ns,
		.copy_start = ours(s, m.accepted.copy_start) - staged,
		.copy_end = ours(s, m.accepted.copy_end),
	};
	return 0;
}

static int server_copy(struct device *d, uint32_t gpu,
		       const struct device_batch *b, struct gpu_step *ret,
		       struct err *err)
{
	const struct tick *tick = d->job.tick;
	struct server *s = server_of(d);
	uint64_t staged = 0, asked;
	int k;

	(void)gpu;
	tick_wait(d->job.tick, b->ready_ns);
	if (b->stage)
		staged = b->stage(tick, b->memory);
	asked = tick_now(tick) - staged;
	k = send_batch(s, b, staged, err);
	if (k < 0)
		return why(s, k, err);
	if (s->copied.copy_start > asked)
		s->copy_wait_ns += s->copied.copy_start - asked;
	*ret = (struct gpu_step){ .copy_start = s->copied.copy_start,
				  .copy_end = s->copied.copy_end };
	return 0;
}

static void server_submit(struct device *d, const struct device_part *part,
			  void *user)
{
	struct server *s = server_of(d);

	(void)part; /* the server knows it since the copy */
	s->copied.user = user;
	s->flight[s->n_flights++] = s->copied;
}

/* --- the record ----------------------------------------------------------- */

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

static json_t *server_json(const struct device *d)
{
	const struct server *s = server_of_const(d);
	const struct gpud_welcome *w = &s->client.server;
	json_t *gpus = json_array();

	for (unsigned i = 0; i < 64; i++)
		if (s->admitted.gpus >> i & 1)
			json_array_append_new(gpus, json_integer(i));
	return json_pack("{s:o, s:s, s:s, s:s, s:I, s:o, s:f, s:f, s:f}",
			 "server", json_bytes(s->client.path), "gpu", w->gpu,
			 "scheduler", w->scheduler, "share", w->share, "job",
			 (json_int_t)s->admitted.job, "gpus", gpus, "queue_s",
			 seconds(s->admitted.queue_ns), "share_wait_s",
			 seconds(s->share_wait_ns), "copy_wait_s",
			 seconds(s->copy_wait_ns));
}

static void server_summary(const struct device *d, uint64_t elapsed_ns, FILE *f)
{
	const struct server *s = server_of_const(d);
	const struct gpud_welcome *w = &s->client.server;

	fprintf(f,
		"Shared GPU (%s, --share %s --scheduler %s): %.2f s in the "
		"queue; of the time, %.1f %% waiting for other jobs.\n",
		s->client.path, w->share, w->scheduler,
		seconds(s->admitted.queue_ns),
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
