/* SPDX-License-Identifier: MIT */
#include "loader/train/train_remote.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "loader/train/stage.h"
#include "loader/train/train_account.h"

/* A step that the server has not reported as done. */
struct flight {
	struct delivery d; /* its numbers; the batch is given back */
	uint64_t copy_start, copy_end;
};

struct train_remote {
	pthread_mutex_t lock; /* which connection `client` is */
	struct gpud_client client;
	char *user; /* NULL: none that is trusted besides */
	/* on our clock what is 0 on the server's, emulated ns */
	int64_t offset;
	atomic_bool stop; /* interrupted */
	struct gpud_admitted admitted;
	uint64_t next_id;
	struct flight flight; /* the one before, while `flying` */
	bool flying;
	uint64_t share_wait_ns, copy_wait_ns; /* totals */
};

int train_remote_open(const char *path, const char *user, double time_scale,
		      struct train_remote **ret, struct err *err)
{
	struct train_remote *r = calloc(1, sizeof(*r));
	int k = 0;

	if (!r)
		return err_set(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&r->lock, NULL);
	r->client.fd = -1;
	r->user = user ? strdup(user) : NULL;
	if (user && !r->user)
		k = err_set(err, -ENOMEM, "out of memory");
	if (k == 0)
		k = gpud_open(path, user, &r->client, err);
	if (k == 0 && r->client.server.time_scale != time_scale)
		k = err_set(err, -EINVAL,
			    "%s runs at --time-scale %g: so must this", path,
			    r->client.server.time_scale);
	if (k < 0)
		train_remote_close(r);
	else
		*ret = r;
	return k;
}

void train_remote_close(struct train_remote *r)
{
	if (!r)
		return;
	gpud_close(&r->client);
	pthread_mutex_destroy(&r->lock);
	free(r->user);
	free(r);
}

const char *train_remote_profile(const struct train_remote *r)
{
	return r->client.server.profile;
}

void train_remote_interrupt(struct train_remote *r)
{
	pthread_mutex_lock(&r->lock);
	atomic_store(&r->stop, true);
	gpud_stop(&r->client);
	pthread_mutex_unlock(&r->lock);
}

/*
 * The server does not keep a connection for as long as a dataset may take to
 * be listed, so a job begins on a fresh one; to the same server.
 */
static int reconnect(struct train_remote *r, struct err *err)
{
	struct gpud_client fresh, old = r->client;
	int k = gpud_open(old.path, r->user, &fresh, err);

	if (k == 0 && (strcmp(fresh.server.profile, old.server.profile) ||
		       fresh.server.time_scale != old.server.time_scale))
		k = err_set(err, -EINVAL, "%s: the server has changed",
			    old.path);
	if (k == 0) /* iterations take as long as they take */
		k = gpud_patience(&fresh, 0, err);
	if (k < 0) {
		gpud_close(&fresh);
		return k;
	}
	pthread_mutex_lock(&r->lock);
	r->client = fresh;
	if (atomic_load(&r->stop))
		gpud_stop(&r->client);
	pthread_mutex_unlock(&r->lock);
	gpud_close(&old);
	return 0;
}

/* Of an error: was it asked for? Then there is nothing to tell. */
static int why(const struct train_remote *r, int error, struct err *err)
{
	if (error == 0 || !atomic_load(&r->stop))
		return error;
	if (err)
		err->text[0] = '\0';
	return -ECANCELED;
}

/* The server said what its clock showed at a time that we know too. */
static void set_clocks(struct train_remote *r, const struct tick *tick)
{
	const struct gpud_welcome *w = &r->client.server;
	double since = (double)(tick_wall() - w->wall_ns) / w->time_scale;

	r->offset =
		(int64_t)tick_now(tick) - (int64_t)w->now_ns - (int64_t)since;
}

static uint64_t ours(const struct train_remote *r, uint64_t server_ns)
{
	int64_t ns = (int64_t)server_ns + r->offset;

	return ns > 0 ? (uint64_t)ns : 0;
}

/* The next message, which must be of a type. */
static int expect(struct train_remote *r, enum gpud_type type,
		  struct gpud_msg *ret, struct err *err)
{
	int k = gpud_receive(&r->client, ret, err);

	if (k == 0 && ret->type != type)
		k = err_set(err, -EPROTO, "%s: a %s instead of %s",
			    r->client.path, gpud_type_name(ret->type),
			    gpud_type_name(type));
	return k;
}

/* After the hello: admitted at once, or queued first. */
static int wait_for_room(struct train_remote *r,
			 const struct train_remote_job *j, struct err *err)
{
	struct gpud_msg m;
	int k = gpud_receive(&r->client, &m, err);

	if (k == 0 && m.type == GPUD_QUEUED) {
		if (j->queued)
			j->queued(j->ctx, m.queued.ahead);
		k = gpud_receive(&r->client, &m, err);
	}
	if (k == 0 && m.type != GPUD_ADMITTED)
		k = err_set(err, -EPROTO, "%s: a %s instead of room",
			    r->client.path, gpud_type_name(m.type));
	if (k == 0)
		r->admitted = m.admitted;
	return k;
}

int train_remote_join(struct train_remote *r, const struct train_remote_job *j,
		      const struct tick *tick, struct err *err)
{
	struct gpud_msg m = { .type = GPUD_HELLO };
	int k;

	snprintf(m.hello.name, sizeof(m.hello.name), "%s",
		 program_invocation_short_name);
	snprintf(m.hello.model, sizeof(m.hello.model), "%s", j->model);
	m.hello.batch = j->batch;
	m.hello.n_gpus = 1;
	m.hello.iterations = j->iterations;
	m.hello.waiting_bytes = j->waiting_bytes;
	m.hello.flags = (j->pinned ? GPUD_PINNED : 0) |
			(j->extrapolate ? GPUD_EXTRAPOLATE : 0) |
			(j->load ? GPUD_LOAD : 0);
	k = reconnect(r, err);
	if (k == 0) {
		set_clocks(r, tick);
		k = gpud_send(&r->client, &m, err);
	}
	if (k == 0)
		k = wait_for_room(r, j, err);
	return why(r, k, err);
}

/* --- steps -------------------------------------------------------------------
 */

/* The flight has landed. */
static void land(struct train_remote *r, struct train *t,
		 const struct gpud_done *done, struct gpu_step *ret)
{
	const struct flight *f = &r->flight;
	struct train_now *now = &t->now;
	uint64_t idle = now->gpus.gpu[0].compute_end, begin;
	struct gpu_step s = { .copy_start = f->copy_start,
			      .copy_end = f->copy_end,
			      .compute_start = ours(r, done->start),
			      .compute_end = ours(r, done->end),
			      .step_end = ours(r, done->end) };

	/* from then on only others kept it waiting */
	begin = MIN(MAX(s.copy_end, idle), s.compute_start);
	/* and from then on the batch was there */
	s.data_wait_ns = f->d.ready_ns > idle ? MIN(f->d.ready_ns, begin) - idle
					      : 0;
	s.transfer_stall_ns = begin > idle + s.data_wait_ns
				      ? begin - idle - s.data_wait_ns
				      : 0;
	r->share_wait_ns += s.compute_start - begin;
	r->flying = false;
	gpus_hold(&now->gpus, s.compute_end);
	train_account_one(t, idle, &f->d, &s);
	if (now->account->steps == 1)
		now->first_end_ns = s.compute_end;
	else
		hist_add(&now->account->step, s.compute_start - now->begun_ns);
	now->begun_ns = s.compute_start;
	*ret = s;
}

int train_remote_drain(struct train_remote *r, struct train *t,
		       struct gpu_step *ret, struct err *err)
{
	struct gpud_msg m;
	int k = 0;

	if (r->flying) {
		k = expect(r, GPUD_DONE, &m, err);
		if (k == 0)
			land(r, t, &m.done, ret);
	}
	return why(r, k, err);
}

/* Send it. DONE of the one before may come first: then that has landed. */
static int submit(struct train_remote *r, struct train *t,
		  const struct delivery *d, uint64_t staged,
		  struct gpu_step *ret, struct flight *f, struct err *err)
{
	struct gpud_msg m = { .type = GPUD_SUBMIT };
	int k;

	m.submit.id = r->next_id++;
	m.submit.samples = d->n;
	m.submit.bytes = d->batch_bytes;
	m.submit.staged_ns = staged;
	k = gpud_send(&r->client, &m, err);
	if (k == 0)
		k = gpud_receive(&r->client, &m, err);
	if (k == 0 && m.type == GPUD_DONE && r->flying) {
		land(r, t, &m.done, ret);
		k = gpud_receive(&r->client, &m, err);
	}
	if (k == 0 && m.type != GPUD_ACCEPTED)
		k = err_set(err, -EPROTO, "%s: a %s instead of an answer",
			    r->client.path, gpud_type_name(m.type));
	if (k < 0)
		return k;
	/* the copy of what was staged began before the server heard of it */
	f->copy_start = ours(r, m.accepted.copy_start) - staged;
	f->copy_end = ours(r, m.accepted.copy_end);
	f->d = *d;
	f->d.place = NULL;
	return 0;
}

int train_remote_step(struct train_remote *r, struct train *t,
		      struct delivery *d, struct gpu_step *ret, struct err *err)
{
	uint64_t staged = 0, asked;
	struct flight f;
	int k;

	*ret = (struct gpu_step){ 0 };
	tick_wait(t->tick, d->ready_ns);
	if (!t->pinned && d->place)
		staged = stage_batch(t->tick, d);
	asked = tick_now(t->tick) - staged;
	k = submit(r, t, d, staged, ret, &f, err);
	if (k < 0) {
		pipeline_release(t->pipeline, d);
		return why(r, k, err);
	}
	if (t->taken)
		t->taken(t->ctx, d);
	r->copy_wait_ns += f.copy_start > asked ? f.copy_start - asked : 0;
	tick_wait(t->tick, f.copy_end);
	pipeline_release(t->pipeline, d);
	/* room for another: the one before is done */
	k = train_remote_drain(r, t, ret, err);
	if (k < 0)
		return k;
	r->flight = f;
	r->flying = true;
	if (t->gpus->transfer == GPU_TRANSFER_BLOCKING)
		k = train_remote_drain(r, t, ret, err);
	return k;
}

/* --- the record
 * ---------------------------------------------------------------- */

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

json_t *train_remote_json(const struct train_remote *r)
{
	const struct gpud_welcome *w;
	json_t *gpus;

	if (!r)
		return json_null();
	w = &r->client.server;
	gpus = json_array();
	for (unsigned i = 0; i < 64; i++)
		if (r->admitted.gpus >> i & 1)
			json_array_append_new(gpus, json_integer(i));
	return json_pack("{s:o, s:s, s:s, s:s, s:I, s:o, s:f, s:f, s:f}",
			 "server", json_bytes(r->client.path), "gpu", w->gpu,
			 "scheduler", w->scheduler, "share", w->share, "job",
			 (json_int_t)r->admitted.job, "gpus", gpus, "queue_s",
			 seconds(r->admitted.queue_ns), "share_wait_s",
			 seconds(r->share_wait_ns), "copy_wait_s",
			 seconds(r->copy_wait_ns));
}

void train_remote_summary(const struct train_remote *r, uint64_t elapsed_ns,
			  FILE *f)
{
	const struct gpud_welcome *w = &r->client.server;

	fprintf(f,
		"Shared GPU (%s, --share %s --scheduler %s): %.2f s in the "
		"queue; of the time, %.1f %% waiting for other jobs.\n",
		r->client.path, w->share, w->scheduler,
		seconds(r->admitted.queue_ns),
		elapsed_ns
			? 100 * seconds(r->share_wait_ns) / seconds(elapsed_ns)
			: 0);
}
