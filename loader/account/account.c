/* SPDX-License-Identifier: MIT */
#include "loader/account/account.h"

#include "common/counts.h"
#include "common/json.h"
#include "common/units.h"
#include "common/util.h"

static uint64_t past(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

struct stalls account_stalls(uint64_t idle, const struct delivery *d,
			     const struct gpu_step *s)
{
	uint64_t before = MIN(past(idle, d->complete_ns), s->data_wait_ns);
	uint64_t fetch = (uint64_t)((double)before * d->read_share);

	return (struct stalls){ .fetch_ns = fetch,
				.prep_ns = before - fetch,
				.pin_ns = s->data_wait_ns - before };
}

struct stalls account_late(uint64_t ns, const struct stalls *of)
{
	/* the pin stage is the last part of the wait */
	uint64_t pin = MIN(ns, of->pin_ns), before = of->fetch_ns + of->prep_ns;
	double share = before ? (double)of->fetch_ns / (double)before : 0;
	uint64_t fetch = (uint64_t)((double)(ns - pin) * share);

	return (struct stalls){ .fetch_ns = fetch,
				.prep_ns = ns - pin - fetch,
				.pin_ns = pin };
}

void account_begin_step(struct train_account *a, uint32_t gpus)
{
	a->gpus = gpus;
	a->steps++;
}

void account_batch(struct train_account *a, const struct delivery *d)
{
	a->samples += d->n - d->n_zeros;
	a->failed_samples += d->n_failed;
	a->work.bypassed_samples += d->n_bypassed;
	a->drawn_samples += d->n + d->left_out;
	a->bytes += d->bytes;
	a->batch_bytes += d->batch_bytes;
	a->pin_ns += d->pin_ns;
	hist_add(&a->queue, d->queued);
}

static void merge_gpu(struct account_gpu *into, const struct account_gpu *from)
{
	counts_add(into, from, sizeof(*into));
}

void account_gpu(struct train_account *a, uint32_t i, uint64_t idle,
		 const struct delivery *d, const struct gpu_step *s,
		 const struct stalls *late)
{
	struct stalls own = account_stalls(idle, d, s);
	uint64_t compute = s->compute_end - s->compute_start + s->optimizer_ns;
	struct account_gpu g = {
		.compute_ns = compute,
		.au_compute_ns = a->steps > 1 ? compute : 0,
		.prep_ns = s->prep_ns,
		.data_wait_ns = stalls_ns(&own) + stalls_ns(late),
		.fetch_stall_ns = own.fetch_ns + late->fetch_ns,
		.prep_stall_ns = own.prep_ns + late->prep_ns,
		.pin_stall_ns = own.pin_ns + late->pin_ns,
		.transfer_stall_ns = s->transfer_stall_ns,
		.host_stall_ns = s->host_stall_ns,
		.barrier_wait_ns = s->barrier_wait_ns - stalls_ns(late),
		.allreduce_ns = s->allreduce_ns,
		.optimizer_ns = s->optimizer_ns,
	};

	merge_gpu(&a->all, &g);
	merge_gpu(&a->gpu[i], &g);
	a->transfer_ns += s->copy_end - s->copy_start;
	if (a->steps == 1 && s->compute_end > s->compute_start)
		a->first_batch_ns =
			MAX(a->first_batch_ns, past(idle, d->ready_ns));
}

void account_merge(struct train_account *into, const struct train_account *from)
{
	if (into->steps == 0) {
		into->epoch = from->epoch;
		into->first_batch_ns = from->first_batch_ns;
	}
	into->gpus = MAX(into->gpus, from->gpus);
	into->more_nodes = MAX(into->more_nodes, from->more_nodes);
	/* of several nodes their GPUs are not known */
	for (uint32_t i = 0; !from->more_nodes && i < from->gpus; i++)
		merge_gpu(&into->gpu[i], &from->gpu[i]);
	merge_gpu(&into->all, &from->all);
	into->steps += from->steps;
	into->samples += from->samples;
	into->failed_samples += from->failed_samples;
	into->drawn_samples += from->drawn_samples;
	into->distinct_samples += from->distinct_samples;
	into->class_bits += from->class_bits;
	into->n_class_bits += from->n_class_bits;
	into->bytes += from->bytes;
	into->work.bytes_read += from->work.bytes_read;
	into->work.bypassed_samples += from->work.bypassed_samples;
	into->batch_bytes += from->batch_bytes;
	into->elapsed_ns += from->elapsed_ns;
	into->wall_ns += from->wall_ns;
	into->cpu_ns += from->cpu_ns;
	into->transfer_ns += from->transfer_ns;
	into->pin_ns += from->pin_ns;
	into->checkpoints += from->checkpoints;
	into->checkpoint_bytes += from->checkpoint_bytes;
	into->checkpoint_ns += from->checkpoint_ns;
	into->checkpoint_stall_ns += from->checkpoint_stall_ns;
	into->au_elapsed_ns += from->au_elapsed_ns;
	into->on_mount |= from->on_mount;
	into->hits += from->hits;
	into->misses += from->misses;
	hist_merge(&into->step, &from->step);
	hist_merge(&into->work.read, &from->work.read);
	hist_merge(&into->work.prep, &from->work.prep);
	hist_merge(&into->queue, &from->queue);
}

void account_join(struct train_account *into, const struct train_account *from)
{
	uint32_t gpus = into->gpus + from->gpus;
	uint64_t steps = MAX(into->steps, from->steps);
	uint64_t elapsed = MAX(into->elapsed_ns, from->elapsed_ns);
	uint64_t wall = MAX(into->wall_ns, from->wall_ns);
	uint64_t au_elapsed = MAX(into->au_elapsed_ns, from->au_elapsed_ns);
	uint64_t first = MAX(into->first_batch_ns, from->first_batch_ns);
	uint64_t saving =
		MAX(into->checkpoint_stall_ns, from->checkpoint_stall_ns);

	account_merge(into, from);
	into->more_nodes++;
	into->gpus = gpus;
	into->steps = steps;
	into->elapsed_ns = elapsed;
	into->wall_ns = wall;
	into->au_elapsed_ns = au_elapsed;
	into->first_batch_ns = first;
	into->checkpoint_stall_ns = saving;
}

uint64_t account_mean(const struct train_account *a, uint64_t ns)
{
	return a->gpus ? ns / a->gpus : ns;
}

static double share(const struct train_account *a, double compute_ns)
{
	return a->au_elapsed_ns ? compute_ns / (double)a->au_elapsed_ns : -1;
}

double account_au(const struct train_account *a)
{
	return share(a, (double)a->all.au_compute_ns / MAX(a->gpus, 1));
}

static double per(double what, double ns)
{
	return ns > 0 ? what * (double)NS_PER_S / ns : 0;
}

double account_samples_per_s(const struct train_account *a)
{
	return per((double)a->samples, (double)a->elapsed_ns);
}

static void set_s(json_t *j, const char *key, uint64_t ns)
{
	json_add_real(j, key, (double)ns / (double)NS_PER_S);
}

/* Of the sum of `n` GPUs. */
static void set_mean_s(json_t *j, const char *key, uint64_t ns, uint32_t n)
{
	json_add_real(j, key, (double)ns / MAX(n, 1) / (double)NS_PER_S);
}

static void set_au(json_t *j, double au)
{
	json_object_set_new(j, "au", au < 0 ? json_null() : json_real(au));
}

/* The mean of `n` GPUs, whose sum `g` is. */
static void set_gpu_times(json_t *j, const struct account_gpu *g, uint32_t n)
{
	set_mean_s(j, "compute_s", g->compute_ns, n);
	set_mean_s(j, "prep_gpu_s", g->prep_ns, n);
	set_mean_s(j, "data_wait_s", g->data_wait_ns, n);
	set_mean_s(j, "fetch_stall_s", g->fetch_stall_ns, n);
	set_mean_s(j, "prep_stall_s", g->prep_stall_ns, n);
	set_mean_s(j, "pin_stall_s", g->pin_stall_ns, n);
	set_mean_s(j, "transfer_stall_s", g->transfer_stall_ns, n);
	set_mean_s(j, "host_stall_s", g->host_stall_ns, n);
	set_mean_s(j, "barrier_wait_s", g->barrier_wait_ns, n);
	set_mean_s(j, "allreduce_s", g->allreduce_ns, n);
	set_mean_s(j, "optimizer_s", g->optimizer_ns, n);
}

static json_t *gpu_json(const struct train_account *a,
			const struct account_gpu *g)
{
	json_t *j = json_object();

	set_au(j, share(a, (double)g->au_compute_ns));
	set_gpu_times(j, g, 1);
	return j;
}

static json_t *gpus_json(const struct train_account *a)
{
	json_t *j = json_array();

	for (uint32_t i = 0; !a->more_nodes && i < a->gpus; i++)
		json_array_append_new(j, gpu_json(a, &a->gpu[i]));
	return j;
}

static void set_rates(json_t *j, const struct train_account *a)
{
	double mib = (double)a->bytes / (double)MIB;

	json_add_real(j, "samples_per_s", account_samples_per_s(a));
	json_add_real(j, "mib_per_s", per(mib, (double)a->elapsed_ns));
	set_au(j, account_au(a));
}

json_t *account_json(const struct train_account *a, bool total)
{
	json_t *j = json_object();
	double gib = (double)a->bytes / (double)GIB;

	if (!total)
		json_add_integer(j, "epoch", a->epoch);
	set_s(j, "seconds", a->elapsed_ns);
	set_s(j, "wall_seconds", a->wall_ns);
	json_add_integer(j, "steps", a->steps);
	json_add_integer(j, "samples", a->samples);
	json_add_integer(j, "failed_samples", a->failed_samples);
	json_add_integer(j, "bypassed_samples", a->work.bypassed_samples);
	json_add_integer(j, "distinct_samples", a->distinct_samples);
	json_object_set_new(j, "class_entropy_bits",
			    a->n_class_bits ? json_real(a->class_bits /
							(double)a->n_class_bits)
					    : json_null());
	json_add_integer(j, "bytes", a->bytes);
	json_add_integer(j, "bytes_read", a->work.bytes_read);
	json_add_integer(j, "batch_bytes", a->batch_bytes);
	set_rates(j, a);
	set_gpu_times(j, &a->all, a->gpus);
	set_mean_s(j, "transfer_s", a->transfer_ns, a->gpus);
	set_s(j, "pin_s", a->pin_ns); /* over all batches */
	json_object_set_new(j, "gpus", gpus_json(a));
	json_add_integer(j, "checkpoints", a->checkpoints);
	json_add_integer(j, "checkpoint_bytes", a->checkpoint_bytes);
	set_s(j, "checkpoint_s", a->checkpoint_ns);
	set_s(j, "checkpoint_stall_s", a->checkpoint_stall_ns);
	set_s(j, "first_batch_s", a->first_batch_ns);
	json_object_set_new(j, "step_ms", hist_json(&a->step, NS_PER_MS));
	json_object_set_new(j, "read_ms", hist_json(&a->work.read, NS_PER_MS));
	json_object_set_new(j, "prep_ms", hist_json(&a->work.prep, NS_PER_MS));
	json_add_real(j, "prep_samples_per_core_s",
		      per(1, hist_mean(&a->work.prep)));
	json_object_set_new(j, "queue", hist_json(&a->queue, 1));
	set_s(j, "cpu_s", a->cpu_ns);
	json_object_set_new(j, "cpu_s_per_gib",
			    gib > 0 ? json_real((double)a->cpu_ns / 1e9 / gib)
				    : json_null());
	json_object_set_new(j, "hits",
			    a->on_mount ? json_integer((json_int_t)a->hits)
					: json_null());
	json_object_set_new(j, "misses",
			    a->on_mount ? json_integer((json_int_t)a->misses)
					: json_null());
	return j;
}
