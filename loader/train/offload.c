/* SPDX-License-Identifier: MIT */
#include "loader/train/offload.h"

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"

/* Steps before a rate counts. arbitrary: the windows in front of a GPU, and a
 * worker that begins, are full by then, or never */
enum { WARM_STEPS = 5 };

static const char *const split_words[FASTFLOW_SPLITS] = { "prep", "element",
							  "batch",
							  "last_step" };

static void decide(struct offload *o)
{
	fastflow_decide(&o->profile, FASTFLOW_PAPER, &o->decision);
	o->part = o->decision.part;
	o->phase = OFFLOAD_SETTLED;
	o->measured = true;
}

/* The way that was decided on. */
static uint32_t best_way(const struct offload *o)
{
	for (uint32_t i = 0; i < o->c.n_ways; i++)
		if (o->c.way[i] == o->decision.split)
			return i;
	return 0;
}

/* One that was not measured; n_ways: there is none. */
static uint32_t unknown_way(const struct offload *o)
{
	uint32_t i = 0;

	while (i < o->c.n_ways && o->profile.split[o->c.way[i]].rate > 0)
		i++;
	return i;
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
	if (!o->cached)
		return;
	decide(o);
	o->way = best_way(o);
}

uint64_t offload_alone(const struct offload *o)
{
	return FASTFLOW_STEPS * o->c.per_step;
}

uint64_t offload_needs(const struct offload *o)
{
	uint64_t ways = unknown_way(o) < o->c.n_ways && o->part != 0;

	return (o->part < 0 ? 2 : o->c.part < 0 ? ways : 0) * offload_alone(o);
}

double offload_part(const struct offload *o)
{
	return o->phase == OFFLOAD_THERE && o->measured ? 1 : o->part;
}

bool offload_begin(struct offload *o)
{
	uint32_t before = o->way, unknown = unknown_way(o);

	o->n = 0;
	if (o->c.part >= 0 || o->part == 0)
		return false;
	if (o->part < 0) {
		o->phase = OFFLOAD_HERE;
	} else if (unknown < o->c.n_ways) {
		o->way = unknown;
		o->phase = OFFLOAD_THERE;
		o->cached = false;
	} else {
		o->way = best_way(o);
	}
	return o->way != before;
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

/* The part of the way by which batches are received now. */
static double part_now(const struct offload *o)
{
	struct fastflow_profile now = o->profile;
	struct fastflow_decision d;

	for (uint32_t i = 0; i < o->c.n_ways; i++)
		if (i != o->way)
			now.split[o->c.way[i]].rate = 0;
	fastflow_decide(&now, FASTFLOW_PAPER, &d);
	return d.part;
}

static int settle_offload(struct offload *o, struct intake *i, struct err *err)
{
	decide(o);
	intake_settle(i, part_now(o));
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
		return settle_offload(o, i, err);
	o->phase = OFFLOAD_THERE;
	intake_receive(i);
	return 0;
}

static int end_there(struct offload *o, struct intake *i, struct err *err)
{
	json_auto_t *service = intake_service_json(i);
	size_t workers = json_array_size(json_object_get(service, "workers"));
	enum fastflow_split split = o->c.way[o->way];

	o->profile.remote_nodes = (uint32_t)MAX(workers, 1);
	o->profile.split[split].rate = rate(o);
	o->profile.split[split].receive_cpu = cpu(o);
	return settle_offload(o, i, err);
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
	o->n_samples += d->n + d->left_out;
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
		return "the run ended before the measurement";
	if (!o->measured)
		return "as given";
	if (o->part == 0)
		return "the GPU hardly waits for batches prepared here";
	return o->decision.lower < o->decision.upper
		       ? "the service can make up for what is missing here"
		       : "the GPU is faster than this process and the service "
			 "together";
}

/* The split that was decided on, or else the one in use. */
static enum fastflow_split split_of(const struct offload *o)
{
	return o->c.way[o->measured ? best_way(o) : o->way];
}

/* Of each way that was measured. */
static json_t *splits_json(const struct offload *o)
{
	json_t *j = json_object();

	for (uint32_t i = 0; j && i < o->c.n_ways; i++) {
		enum fastflow_split s = o->c.way[i];
		double cpu = o->profile.split[s].receive_cpu / NS_PER_MS;

		if (o->profile.split[s].rate > 0)
			json_object_set_new(j, split_words[s],
					    json_pack("{s:f, s:f}",
						      "samples_per_s",
						      o->profile.split[s].rate,
						      "receive_cpu_ms", cpu));
	}
	return j;
}

static json_t *measured_json(const struct offload *o)
{
	const struct fastflow_profile *p = &o->profile;
	enum fastflow_split s = split_of(o);

	if (!o->measured)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o?, s:I, s:I, s:f, s:f, "
			 "s:b}",
			 "gpu_samples_per_s", p->gpu, "local_samples_per_s",
			 p->local, "remote_samples_per_s", p->split[s].rate,
			 "prep_cpu_ms", p->prep_cpu / NS_PER_MS,
			 "receive_cpu_ms", p->split[s].receive_cpu / NS_PER_MS,
			 "splits", splits_json(o), "workers",
			 (json_int_t)p->remote_nodes, "steps",
			 (json_int_t)FASTFLOW_STEPS, "lower_samples_per_s",
			 o->decision.lower, "upper_samples_per_s",
			 o->decision.upper, "from_cache", o->cached);
}

json_t *offload_json(const struct offload *o)
{
	return json_pack("{s:s, s:o, s:s, s:s, s:I, s:I, s:o}", "mode",
			 o->c.part < 0 ? "auto" : "given", "part",
			 o->part < 0 ? json_null() : json_real(o->part),
			 "split", split_words[split_of(o)], "reason", why(o),
			 "batches_local", (json_int_t)o->n_here,
			 "batches_received", (json_int_t)o->n_there, "measured",
			 measured_json(o));
}

void offload_summary(const struct offload *o, FILE *f)
{
	const struct fastflow_profile *p = &o->profile;

	fprintf(f, "Offloaded: ");
	if (o->part >= 0)
		fprintf(f, "%.1f %% of the batches, ", 100 * o->part);
	fprintf(f, "%s; %llu prepared here, %llu received%s.", why(o),
		(unsigned long long)o->n_here, (unsigned long long)o->n_there,
		split_of(o) == FASTFLOW_LAST ? "; their last step runs here"
					     : "");
	if (o->measured)
		fprintf(f, " Measured%s, samples/s: GPU %.4g, here %.4g",
			o->cached ? " by an earlier run" : "", p->gpu,
			p->local);
	for (uint32_t i = 0; o->measured && i < o->c.n_ways; i++) {
		enum fastflow_split s = o->c.way[i];

		if (p->split[s].rate > 0)
			fprintf(f, ", service%s %.4g",
				s == FASTFLOW_LAST ? " without the last step"
						   : "",
				p->split[s].rate);
	}
	fputs(o->measured ? ".\n" : "\n", f);
}

static void one_summary(const json_t *s, FILE *f)
{
	const json_t *stall = json_object_get(s, "stall_s");
	json_int_t lost = json_integer_value(json_object_get(s, "splits_lost"));
	json_int_t skipped =
		json_integer_value(json_object_get(s, "batches_skipped"));

	fprintf(f,
		"Prepared by %zu workers: %lld batches. The GPU waited %.2f s "
		"for workers, %.2f s for the network, %.2f s for the "
		"dispatcher",
		json_array_size(json_object_get(s, "workers")),
		(long long)json_integer_value(json_object_get(s, "batches")),
		json_get_number(stall, "worker"),
		json_get_number(stall, "network"),
		json_get_number(stall, "dispatcher"));
	if (json_object_get(stall, "last_step"))
		fprintf(f, ", %.2f s for the last step",
			json_get_number(stall, "last_step"));
	fputs(".\n", f);
	if (lost)
		fprintf(f, "%lld splits were lost with their workers.\n",
			(long long)lost);
	if (skipped)
		fprintf(f,
			"%lld batches of the shared job had left the workers' "
			"windows before this trainer read them.\n",
			(long long)skipped);
}

void offload_service_summary(const json_t *service, FILE *f)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(service, "earlier"), i, one)
		one_summary(one, f);
	if (service)
		one_summary(service, f);
}
