/* SPDX-License-Identifier: MIT */
#include "loader/train/offload.h"

#include "common/units.h"
#include "common/util.h"

/* Steps before a rate counts. arbitrary: the windows in front of a GPU, and a
 * worker that begins, are full by then, or never */
enum { WARM_STEPS = 5 };

static void decide(struct offload *o)
{
	fastflow_decide(&o->profile, FASTFLOW_PAPER, &o->decision);
	o->part = o->decision.part;
	o->phase = OFFLOAD_SETTLED;
	o->measured = true;
}

void offload_init(struct offload *o, const struct offload_config *c)
{
	*o = (struct offload){ .c = *c,
			       .part = c->part,
			       .phase = c->part < 0 ? OFFLOAD_HERE
						    : OFFLOAD_SETTLED };
	if (o->part >= 0 || !c->cache)
		return;
	o->cached = fastflow_cache_get(c->cache, &c->key, &o->profile) == 0;
	if (o->cached)
		decide(o);
}

uint64_t offload_alone(const struct offload *o)
{
	return FASTFLOW_STEPS * o->c.per_step;
}

uint64_t offload_needs(const struct offload *o)
{
	return o->part < 0 ? 2 * offload_alone(o) : 0;
}

void offload_begin(struct offload *o)
{
	if (o->part < 0)
		o->phase = OFFLOAD_HERE;
	o->n = 0;
}

/* --- measuring ------------------------------------------------------------ */

static double rate(const struct offload *o)
{
	uint64_t ns = tick_now(o->c.tick) - o->since_ns;

	return (double)o->n_samples * NS_PER_S / (double)MAX(ns, 1);
}

/* Emulated ns of a sample, as the wall times of this process are. */
static double cpu(const struct offload *o)
{
	uint64_t ns = tick_cpu() - o->since_cpu_ns;

	return (double)MAX(ns, 1) / tick_scale(o->c.tick) /
	       (double)MAX(o->n_samples, 1);
}

/* Is the GPU so much faster that a service could be worth while? */
static bool could_gain(const struct offload *o)
{
	struct fastflow_profile ideal = o->profile;
	struct fastflow_decision d;

	ideal.split[FASTFLOW_BATCH].rate = ideal.gpu;
	fastflow_decide(&ideal, FASTFLOW_PAPER, &d);
	return d.part > 0;
}

static int settle(struct offload *o, struct intake *i, struct err *err)
{
	decide(o);
	intake_settle(i, o->part);
	return o->c.cache ? fastflow_cache_put(o->c.cache, &o->c.key,
					       &o->profile, err)
			  : 0;
}

static int end_here(struct offload *o, struct intake *i, struct work *work,
		    struct err *err)
{
	intake_work(i, work);
	o->profile = (struct fastflow_profile){
		.gpu = o->c.gpu,
		.local = rate(o),
		.prep_cpu =
			cpu(o) + (o->c.virtual ? hist_mean(&work->prep) : 0),
		.remote_nodes = 1,
	};
	if (!could_gain(o))
		return settle(o, i, err);
	o->phase = OFFLOAD_THERE;
	intake_receive(i);
	return 0;
}

static int end_there(struct offload *o, struct intake *i, struct err *err)
{
	json_auto_t *service = intake_service_json(i);
	size_t workers = json_array_size(json_object_get(service, "workers"));

	o->profile.remote_nodes = (uint32_t)MAX(workers, 1);
	o->profile.split[FASTFLOW_BATCH].rate = rate(o);
	o->profile.split[FASTFLOW_BATCH].receive_cpu = cpu(o);
	return settle(o, i, err);
}

int offload_taken(struct offload *o, struct intake *i, const struct delivery *d,
		  struct work *work, struct err *err)
{
	if (d->received)
		o->n_there++;
	else
		o->n_here++;
	if (o->phase == OFFLOAD_SETTLED)
		return 0;
	o->n_samples += d->n;
	if (++o->n == WARM_STEPS * o->c.per_step) {
		o->n_samples = 0;
		o->since_ns = tick_now(o->c.tick);
		o->since_cpu_ns = tick_cpu();
	}
	if (o->n < offload_alone(o))
		return 0;
	o->n = 0;
	return o->phase == OFFLOAD_HERE ? end_here(o, i, work, err)
					: end_there(o, i, err);
}

/* --- results -------------------------------------------------------------- */

static const char *why(const struct offload *o)
{
	if (o->phase != OFFLOAD_SETTLED)
		return "the run ended before all was measured";
	if (!o->measured)
		return "as given";
	if (o->part == 0)
		return "the GPU hardly waits for what is prepared here";
	return o->decision.lower < o->decision.upper
		       ? "the service can give the GPU what is missing here"
		       : "the GPU is faster than this process and the service "
			 "together";
}

static json_t *measured_json(const struct offload *o)
{
	const struct fastflow_profile *p = &o->profile;

	if (!o->measured)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:f, s:f, s:b}",
			 "gpu_samples_per_s", p->gpu, "local_samples_per_s",
			 p->local, "remote_samples_per_s",
			 p->split[FASTFLOW_BATCH].rate, "prep_cpu_ms",
			 p->prep_cpu / NS_PER_MS, "receive_cpu_ms",
			 p->split[FASTFLOW_BATCH].receive_cpu / NS_PER_MS,
			 "workers", (json_int_t)p->remote_nodes, "steps",
			 (json_int_t)FASTFLOW_STEPS, "lower_samples_per_s",
			 o->decision.lower, "upper_samples_per_s",
			 o->decision.upper, "from_cache", o->cached);
}

json_t *offload_json(const struct offload *o)
{
	return json_pack("{s:s, s:o, s:s, s:s, s:I, s:I, s:o}", "mode",
			 o->c.part < 0 ? "auto" : "given", "part",
			 o->part < 0 ? json_null() : json_real(o->part),
			 "split", "batch", "reason", why(o), "batches_local",
			 (json_int_t)o->n_here, "batches_received",
			 (json_int_t)o->n_there, "measured", measured_json(o));
}

void offload_summary(const struct offload *o, FILE *f)
{
	const struct fastflow_profile *p = &o->profile;

	fprintf(f, "Offloaded: ");
	if (o->part >= 0)
		fprintf(f, "%.1f %% of the batches, ", 100 * o->part);
	fprintf(f, "%s; %llu prepared here, %llu received.", why(o),
		(unsigned long long)o->n_here, (unsigned long long)o->n_there);
	if (o->measured)
		fprintf(f,
			" Measured%s, samples/s: GPU %.4g, here %.4g, service "
			"%.4g.",
			o->cached ? " by an earlier run" : "", p->gpu, p->local,
			p->split[FASTFLOW_BATCH].rate);
	fputc('\n', f);
}
