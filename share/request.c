/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpu.h"
#include "share/server.h"

void request_admitted(void *ctx, struct share_job *job)
{
	struct client *c = job->owner;
	struct gpud_msg m = { .type = GPUD_ADMITTED };

	(void)ctx;
	c->job = job;
	c->last_message_ns = tick_wall();
	m.admitted.job = job->view.seq;
	m.admitted.gpus = job->gpus;
	m.admitted.queue_ns = job->admitted_ns - job->joined_ns;
	client_send(c, &m);
}

void request_done(void *ctx, struct share_job *job,
		  const struct share_iteration *it)
{
	struct gpud_msg m = { .type = GPUD_DONE };
	struct client *c = job->owner;

	(void)ctx;
	c->last_message_ns = tick_wall();
	m.done.id = it->id;
	m.done.start = it->start;
	m.done.end = it->end;
	client_send(c, &m);
}

/* Of `samples` on each GPU. */
static struct gpu_cost cost_of(const struct server *s, const struct client *c,
			       uint32_t samples)
{
	struct gpu_cost cost;

	gpu_profile_cost(s->config.gpu, c->model, samples, &cost);
	return cost;
}

/* Of those parts of a step. */
static uint64_t work_ns(const struct gpu_cost *c, uint32_t parts)
{
	if (parts == 0)
		parts = GPUD_PARTS;
	return (parts & GPUD_FORWARD ? c->forward_ns : 0) +
	       (parts & GPUD_BACKWARD ? c->backward_ns - c->optimizer_ns : 0) +
	       (parts & GPUD_OPTIMIZER ? c->optimizer_ns : 0);
}

static uint64_t bytes(double mib)
{
	return util_whole(mib * (double)MIB);
}

/* The memory it needs: as the profile says, and more if it requests more. A
 * client that requests less would hold what others paid for. */
static void want(const struct server *s, const struct client *c,
		 struct share_want *ret)
{
	const struct gpud_hello *h = &c->hello;
	struct gpu_cost cost = cost_of(s, c, h->batch);
	uint64_t most = s->share->config.memory_bytes;
	uint64_t more = util_plus(h->waiting_bytes, h->bucket_bytes);
	uint64_t peak, persistent;

	*ret = (struct share_want){
		.n_gpus = h->n_gpus,
		.iterations = h->iterations,
		.iteration_ns =
			cost.forward_ns + cost.backward_ns + h->reduce_ns,
		.load_ns = h->flags & GPUD_LOAD
				   ? gpu_model_transfer_ns(c->model)
				   : 0,
		.quota = c->grant ? &c->grant->quota : NULL,
	};
	/* a batch that was measured to fit is accepted, even if usable_memory
	 * says otherwise */
	peak = MIN(util_plus(bytes(cost.peak_mib), more), most);
	persistent = MIN(util_plus(bytes(cost.persistent_mib), more), peak);
	ret->peak_bytes = peak;
	ret->persistent_bytes = persistent;
	if (!h->peak_bytes && !h->persistent_bytes)
		return;
	ret->peak_bytes = MAX(peak, util_plus(h->peak_bytes, more));
	ret->persistent_bytes =
		MAX(persistent, util_plus(h->persistent_bytes, more));
}

/* A job cannot hold GPUs with a step that never ends. arbitrary: a second, and
 * twice what a ring takes for gradients in fp32 */
static int check_reduction(const struct server *s, const struct client *c,
			   uint32_t n_gpus, uint64_t ns, struct err *err)
{
	double rate = gpu_link_bytes_per_s(s->config.gpu), most = NS_PER_S;

	if (rate > 0)
		most *= 1 +
			4 * sizeof(float) * (double)c->model->parameters / rate;
	if ((double)ns <= (n_gpus > 1 ? most : 0))
		return 0;
	return err_set(err, -EBADMSG,
		       "%u GPUs cannot reduce gradients for %.3g s", n_gpus,
		       (double)ns / NS_PER_S);
}

/* Others wait for its turn to end, as for one that is idle. */
static int check_step(const struct server *s, const struct client *c,
		      uint32_t samples, uint64_t reduce_ns, struct err *err)
{
	struct gpu_cost cost = cost_of(s, c, samples);
	double ns = (double)cost.forward_ns + (double)cost.backward_ns +
		    (double)reduce_ns;

	if (!s->config.idle_limit_ns ||
	    ns * s->config.time_scale <= (double)s->config.idle_limit_ns)
		return 0;
	return err_set(err, -E2BIG,
		       "a step of %u samples would hold the GPU for %.3g s of "
		       "wall time (--idle-limit: %.3g s)",
		       samples, ns * s->config.time_scale / NS_PER_S,
		       (double)s->config.idle_limit_ns / NS_PER_S);
}

static int check_hello(const struct server *s, struct client *c,
		       const struct gpud_hello *h, struct err *err)
{
	const struct gpu_model *model;

	if (c->job)
		return err_set(err, -EPROTO, "a second hello");
	if (h->batch == 0 || h->flags & ~(uint32_t)GPUD_HELLO_FLAGS || h->zero)
		return err_set(err, -EBADMSG, "an invalid hello");
	model = gpu_profile_model(s->config.gpu, h->model, err);
	if (!model)
		return -ENOENT;
	c->model = model;
	c->hello = *h;
	return check_reduction(s, c, h->n_gpus, h->reduce_ns, err);
}

/* What the job has in the memory besides its step. */
static struct gpu_beside beside(const struct gpud_hello *h)
{
	return (struct gpu_beside){ .waiting = 1,
				    .sample_bytes = h->waiting_bytes / h->batch,
				    .bucket_bytes = h->bucket_bytes };
}

static int check_batch(const struct server *s, const struct client *c,
		       struct err *err)
{
	const struct gpud_hello *h = &c->hello;
	struct gpu_beside b = beside(h);
	int r = gpu_check_batch(s->config.gpu, c->model, &b, h->batch,
				h->flags & GPUD_EXTRAPOLATE, err);

	return r < 0 ? r : check_step(s, c, h->batch, h->reduce_ns, err);
}

/* The largest batch with a peak of so many bytes; that of the hello has more.
 */
static uint64_t largest_batch(const struct server *s, const struct client *c,
			      uint64_t most)
{
	struct gpu_beside b = beside(&c->hello);
	uint64_t lo = 0,
		 hi = MIN(c->hello.batch - 1,
			  gpu_largest_batch(s->config.gpu, c->model, &b));

	while (lo < hi) {
		uint64_t mid = hi - (hi - lo) / 2;
		struct gpu_cost cost = cost_of(s, c, (uint32_t)mid);

		if (util_plus(bytes(cost.peak_mib),
			      util_plus(mid * b.sample_bytes,
					b.bucket_bytes)) <= most)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

/* A grant is a GPU with less memory, with the same error. */
static int check_grant(const struct server *s, const struct client *c,
		       const struct share_want *w, struct err *err)
{
	char have[UNITS_TEXT];
	uint64_t most;

	if (!c->grant)
		return 0;
	most = grant_memory(c->grant, w->n_gpus);
	if (most == 0)
		return err_set(err, -EINVAL,
			       "%u GPUs requested, which are more than were "
			       "granted",
			       w->n_gpus);
	if (w->peak_bytes <= most)
		return 0;
	return err_set(
		err, -E2BIG,
		"out of GPU memory: a batch of %u of %s does not fit the "
		"%s of %s that were granted; the largest that fits is "
		"%" PRIu64,
		c->hello.batch, c->model->name,
		units_human_size((double)most, have), s->config.gpu->name,
		largest_batch(s, c, most));
}

static int hello(struct server *s, struct client *c, const struct gpud_hello *h,
		 struct err *err)
{
	struct gpud_msg m = { .type = GPUD_QUEUED };
	struct share_want w;
	int r = check_hello(s, c, h, err);

	if (r < 0)
		return r;
	want(s, c, &w);
	/* the smaller memory first: what fits it fits the GPU */
	r = check_grant(s, c, &w, err);
	if (r == 0)
		r = check_batch(s, c, err);
	if (r == 0)
		r = share_join(s->share, &w, c, &c->job, err);
	if (r < 0)
		return r;
	log_debug("job %" PRIu64 ": %s, %s at %u, process %d", c->job->view.seq,
		  h->name, h->model, h->batch, (int)c->pid);
	if (c->job->resident)
		return 0;
	for (uint32_t i = 0; i < s->share->n_jobs; i++)
		m.queued.ahead += !s->share->jobs[i]->resident;
	m.queued.ahead--; /* not counting itself */
	client_send(c, &m);
	return 0;
}

/* A batch that cannot be in the memory is not copied to it. */
static int check_copy(const struct server *s, const struct client *c,
		      uint64_t n_bytes, struct err *err)
{
	uint64_t most = util_whole(s->config.gpu->memory_mib * (double)MIB);

	if (c->grant)
		most = MIN(most, grant_memory(c->grant, c->hello.n_gpus));
	if (n_bytes <= most)
		return 0;
	return err_set(err, -EBADMSG,
		       "a batch of %" PRIu64 " bytes is larger than the GPU's "
		       "memory%s, %" PRIu64 " bytes",
		       n_bytes, c->grant ? " that was granted" : "", most);
}

/* Of the copy of a batch, what is not staged yet. */
static int copy_left(const struct server *s, const struct client *c,
		     uint64_t n_bytes, uint64_t staged_ns, uint64_t *ret,
		     struct err *err)
{
	uint64_t ns;
	int r;

	*ret = 0;
	if (!c->job || !c->job->resident)
		return err_set(err, -EPROTO, "not admitted yet");
	r = check_copy(s, c, n_bytes, err);
	if (r < 0)
		return r;
	ns = n_bytes ? gpu_copy_ns(s->config.gpu, c->model,
				   c->hello.flags & GPUD_PINNED
					   ? GPU_COPY_PINNED
					   : GPU_COPY_PAGEABLE,
				   n_bytes)
		     : 0;
	*ret = ns > staged_ns ? ns - staged_ns : 0;
	return 0;
}

static int accept(struct client *c, int r, const struct share_iteration *it,
		  struct err *err)
{
	struct gpud_msg m = { .type = GPUD_ACCEPTED };

	if (r == -EBUSY)
		return err_set(err, r, "%d iterations are already in flight",
			       SHARE_DEPTH);
	if (r < 0)
		return r;
	m.accepted.id = it->id;
	m.accepted.copy_start = it->copy_start;
	m.accepted.copy_end = it->copy_end;
	client_send(c, &m);
	return 0;
}

static int submit(struct server *s, struct client *c,
		  const struct gpud_submit *q, struct err *err)
{
	struct share_iteration it = { 0 };
	struct gpu_cost cost;
	uint64_t copy_ns;
	int r = copy_left(s, c, q->bytes, q->staged_ns, &copy_ns, err);

	if (r < 0)
		return r;
	if (q->parts & ~(uint32_t)GPUD_PARTS)
		return err_set(err, -EBADMSG, "unknown parts of a step: %#x",
			       q->parts);
	if (q->samples == 0 || q->samples > c->hello.batch)
		return err_set(err, -EBADMSG,
			       "an iteration of %u samples; the hello said %u",
			       q->samples, c->hello.batch);
	r = check_reduction(s, c, c->hello.n_gpus, q->reduce_ns, err);
	if (r == 0)
		r = check_step(s, c, q->samples, q->reduce_ns, err);
	if (r < 0)
		return r;
	cost = cost_of(s, c, q->samples);
	r = share_submit(s->share, c->job, q->id, copy_ns,
			 work_ns(&cost, q->parts) + q->reduce_ns, &it);
	return accept(c, r, &it, err);
}

static int copy(struct server *s, struct client *c, const struct gpud_copy *q,
		struct err *err)
{
	struct share_iteration it = { 0 };
	uint64_t ns;
	int r = copy_left(s, c, q->bytes, q->staged_ns, &ns, err);

	if (r < 0)
		return r;
	r = q->zero ? -EINVAL
		    : share_copy(s->share, c->job, q->gpu, ns, &it.copy_start,
				 &it.copy_end);
	if (r == -EINVAL)
		return err_set(err, -EBADMSG,
			       "a copy to GPU %u of the job, which has no room "
			       "for it",
			       q->gpu);
	return accept(c, r, &it, err);
}

/* Send the status text, or an error without it, to the clients that wait for
 * it. */
static void answer(struct server *s, const char *text)
{
	struct gpud_msg m = { .type = GPUD_STATUS, .status.json = text };

	s->writing = false;
	m.status.n = text ? strlen(text) : 0;
	for (uint32_t i = 0; i < s->n_clients; i++) {
		struct client *c = s->clients[i];

		if (!c->asked || c->asked > s->n_taken || c->grant != s->about)
			continue;
		c->asked = 0;
		if (!text)
			client_refuse(c, -ENOMEM, "out of memory");
		else if (gpud_size(&m) > GPUD_MAX_MESSAGE)
			client_refuse(c, -EMSGSIZE,
				      "the status of all clients exceeds the "
				      "size of a message");
		else
			client_send(c, &m);
	}
}

/* The client that has waited longest for a status; NULL: none. */
static const struct client *first_asked(const struct server *s)
{
	const struct client *first = NULL;

	for (uint32_t i = 0; i < s->n_clients; i++) {
		const struct client *c = s->clients[i];

		if (!c->dead && c->asked && (!first || c->asked < first->asked))
			first = c;
	}
	return first;
}

/* Have the scribe write the status, if a client waits for it. */
static void write_status(struct server *s)
{
	const struct client *first;
	struct status *status;

	while (!s->writing && (first = first_asked(s))) {
		s->about = first->grant;
		s->n_taken = s->n_asked;
		status = status_take(s, s->about);
		s->writing = status && scribe_ask(&s->scribe, status) == 0;
		if (!s->writing)
			answer(s, NULL);
	}
}

static int query(struct server *s, struct client *c, struct err *err)
{
	if (c->asked)
		return err_set(err, -EPROTO,
			       "a query before the answer to the previous one");
	c->asked = ++s->n_asked;
	if (!s->writing)
		write_status(s);
	return 0;
}

void request_answers(struct server *s)
{
	char *text;

	if (!scribe_answer(&s->scribe, &text))
		return;
	answer(s, text);
	free(text);
	write_status(s);
}

static void send_health(const struct server *s, struct client *c)
{
	struct gpud_msg m = { .type = GPUD_HEALTH };

	m.health.n_gpus = s->config.share.n_gpus;
	for (uint32_t g = 0; g < m.health.n_gpus; g++)
		m.health.failed |= (uint64_t)s->share->gpus[g].failed << g;
	client_send(c, &m);
}

/* May this client change what others get? */
static int check_ruler(const struct client *c, struct err *err)
{
	if (server_rules(c->uid, c->grant))
		return 0;
	return err_set(err, -EACCES,
		       "only root and the user of the server may do that, on "
		       "its own socket");
}

/* Done, or not; the client stays. */
static void acknowledge(struct client *c, const char *name, bool revoked, int r,
			const struct err *why)
{
	struct gpud_msg m = { .type = GPUD_ACK,
			      .ack = { .error = (uint32_t)-r,
				       .revoked = revoked } };

	if (r < 0)
		log_warn("grant %s: %s", name, why->text);
	snprintf(m.ack.name, sizeof(m.ack.name), "%s", name);
	client_send(c, &m);
}

static int grant(struct server *s, struct client *c, const struct gpud_grant *q,
		 struct err *err)
{
	struct err why = { 0 };
	int r = check_ruler(c, err);

	if (r == 0)
		acknowledge(c, q->name, false, grant_set(s, q, &why), &why);
	return r;
}

static int take_back(struct server *s, struct client *c,
		     const struct gpud_revoke *q, struct err *err)
{
	struct err why = { 0 };
	int r = check_ruler(c, err);

	if (r == 0)
		acknowledge(c, q->name, true, grant_revoke(s, q->name, &why),
			    &why);
	return r;
}

/* A GPU that fails takes its jobs with it. */
static int mark(struct server *s, struct client *c, const struct gpud_mark *q,
		struct err *err)
{
	char text[GPUD_TEXT];
	int r = check_ruler(c, err);

	if (r < 0)
		return r;
	if (q->gpu >= s->config.share.n_gpus || q->failed > 1)
		return err_set(err, -EINVAL, "GPU %u: the server has %u",
			       q->gpu, s->config.share.n_gpus);
	share_mark(s->share, q->gpu, q->failed);
	log_info("GPU %u %s", q->gpu, q->failed ? "failed" : "is repaired");
	snprintf(text, sizeof(text), "GPU %u failed", q->gpu);
	send_health(s, c);
	for (uint32_t i = 0; i < s->n_clients; i++) {
		struct client *other = s->clients[i];

		if (q->failed && other->job && share_on(other->job, q->gpu))
			client_refuse(other, -EIO, text);
		else if (other->watches && other != c)
			send_health(s, other);
	}
	return 0;
}

void request_handle(struct server *s, struct client *c,
		    const struct gpud_msg *m)
{
	struct err err = { 0 };
	int r;

	switch (m->type) {
	case GPUD_HELLO: r = hello(s, c, &m->hello, &err); break;
	case GPUD_SUBMIT: r = submit(s, c, &m->submit, &err); break;
	case GPUD_COPY: r = copy(s, c, &m->copy, &err); break;
	case GPUD_QUERY: r = query(s, c, &err); break;
	case GPUD_MARK: r = mark(s, c, &m->mark, &err); break;
	case GPUD_GRANT: r = grant(s, c, &m->grant, &err); break;
	case GPUD_REVOKE: r = take_back(s, c, &m->revoke, &err); break;
	case GPUD_WATCH:
		c->watches = true;
		send_health(s, c);
		r = 0;
		break;
	default:
		r = err_set(&err, -EPROTO, "a %s from a client",
			    gpud_type_name(m->type));
	}
	if (r == 0)
		return;
	s->n_malformed += r == -EPROTO || r == -EBADMSG;
	client_refuse(c, r, err.text[0] ? err.text : strerror(-r));
}
