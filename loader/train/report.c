/* SPDX-License-Identifier: MIT */
#include "loader/train/report.h"

#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/json.h"
#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/profile/variant.h"
#include "loader/account/rig.h"
#include "loader/options/train_data.h"
#include "loader/options/train_table.h"
#include "store/bucket.h"

static json_t *command_json(const struct report *r)
{
	json_t *j = json_array();

	for (int i = 0; i < r->argc; i++)
		json_array_append_new(j, json_bytes(r->argv[i]));
	return j;
}

static json_t *host_json(void)
{
	struct utsname u;
	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	uname(&u);
	return json_pack("{s:I, s:s, s:I}", "cpus",
			 (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "kernel",
			 u.release, "memory", (json_int_t)(pages * page));
}

enum { NOTICE_TEXT = 400 };

/* Whether nobody says in which precision the step was measured, and what that
 * means. */
static bool unstated(const struct report *r, char notice[NOTICE_TEXT])
{
	const struct train_options *o = r->options;

	if (o->gpu_rate > 0 || o->step_time ||
	    variant_precision(r->gpu, r->model))
		return false;
	snprintf(notice, NOTICE_TEXT,
		 "the precision of %s on %s is not stated in the profile: "
		 "with AMP or bf16 this GPU may be much faster, and something "
		 "else the bottleneck; give your own rate with --gpu-rate N",
		 r->model->name, r->gpu->name);
	return true;
}

static json_t *profile_json(const struct report *r)
{
	uint64_t batch = r->options->batch;
	/* a server reports the start and end of a step, not its parts */
	bool apart = !r->device->ops->shared &&
		     gpu_model_optimizer_given(r->model);
	bool given = r->options->step_time || r->options->gpu_rate > 0;
	const char *precision = variant_precision(r->gpu, r->model);
	char notice[NOTICE_TEXT];
	struct gpu_cost cost;

	gpu_profile_cost(r->gpu, r->model, batch, &cost);
	return json_pack(
		"{s:s, s:s, s:I, s:s?, s:s*, s:s, s:o, s:s, s:s?, s:s?, s:s?}",
		"gpu", r->gpu->name, "model", r->model->name, "batch_size",
		(json_int_t)batch, "source", r->gpu->source, "rows",
		r->model->source, "measured",
		given ? "given" : gpu_origin_name(cost.origin), "tolerance_pct",
		given ? json_null() : gpu_error_json(r->model, cost.origin),
		"optimizer", apart && !given ? "measured" : "in backward",
		"precision", precision, "notice",
		unstated(r, notice) ? notice : NULL, "kind",
		r->options->gpu_rate > 0 ? "EMULATED: the user's number"
					 : NULL);
}

static json_t *prep_json(const struct report *r)
{
	json_t *j = train_prep_json(r->prep, r->options);

	if (r->cores_set)
		json_object_set(j, "cores_set", r->cores_set);
	return j;
}

/* null: not measured */
static json_t *ceiling_json(const struct ceiling *c)
{
	if (!c->steps)
		return json_null();
	return json_pack("{s:f, s:f, s:I, s:f, s:f, s:s}", "samples_per_s",
			 c->samples_per_s, "au", c->au, "steps",
			 (json_int_t)c->steps, "time_scale", c->time_scale,
			 "samples_per_wall_s", c->samples_per_wall_s, "how",
			 "--loader null, same model, GPU and batch size, "
			 "before the run");
}

static json_t *times_json(const struct report *r, const struct train_account *a,
			  bool total)
{
	json_t *j = account_json(a, total);

	if (j)
		train_node_add_cost(r->node, a, j);
	return j;
}

static json_t *epochs_json(const struct report *r)
{
	json_t *j = json_array();

	for (size_t i = 0; i < r->n_epochs; i++)
		json_array_append_new(j, times_json(r, r->epoch[i], false));
	return j;
}

/* The plug-ins, with the value of each of their options. */
static json_t *plugins_json(const struct report *r)
{
	const struct train_choice *c = r->choice;
	const struct format_ops *format = r->how->format;
	const struct plugin *loader = c->loader_choice.plugin,
			    *local = c->local_choice.plugin;

	return json_pack(
		"{s:o, s:o*, s:o, s:o, s:o, s:o}", "loader",
		plugin_choice_json(loader ? loader : &c->engine->plugin,
				   c->loader_choice.options),
		"local",
		local ? plugin_choice_json(local, c->local_choice.options)
		      : NULL,
		"order",
		plugin_choice_json(&c->order->plugin, c->order_choice.options),
		"batching",
		plugin_choice_json(&c->batching->plugin,
				   c->batching_choice.options),
		"prep",
		plugin_choice_json(&c->prep->plugin, c->prep_choice.options),
		"format",
		format ? plugin_choice_json(&format->plugin,
					    c->format_choice.options)
		       : json_null());
}

static json_t *pin_json(const struct report *r)
{
	const char *why = r->unpinned.text;

	return json_pack("{s:b, s:s, s:I, s:I, s:s*}", "on", r->options->pin,
			 "mode", r->options->pin_mode, "budget_bytes",
			 (json_int_t)r->options->pin_budget, "pinned_bytes",
			 (json_int_t)r->pinned_bytes, "notice",
			 *why ? why : NULL);
}

/* --- the rig itself ------------------------------------------------------- */

/*
 * The part of a read that no device delays: all of it on a plain folder, on a
 * mount what exceeds the mean delay that the device asked for.
 */
static double real_read(const struct report *r, const json_t *fs)
{
	const struct train_account *a = &r->total;
	double read_us = hist_mean(&a->work.read) / NS_PER_US;
	double device_us = json_get_number(
		json_object_get(json_object_get(fs, "latency_us"), "requested"),
		"mean");

	device_us *= a->hits + a->misses
			     ? (double)a->misses / (double)(a->hits + a->misses)
			     : 1;
	return read_us > 0 ? MAX(1 - device_us / read_us, 0) : 0;
}

/* The part of the pin stage by which real copies exceed the profile's. */
static double real_pin(const struct report *r)
{
	const struct train_account *a = &r->total;
	double n = (double)a->queue.n; /* batches */
	double profile =
		n > 0 ? n * (double)gpu_copy_ns(
				    r->gpu, NULL, GPU_COPY_TO_PINNED,
				    (uint64_t)((double)a->batch_bytes / n))
		      : 0;

	return a->pin_ns ? MAX(1 - profile / (double)a->pin_ns, 0) : 0;
}

static double real_share(const struct report *r, const json_t *fs)
{
	const struct train_account *a = &r->total;
	double ns = real_read(r, fs) * (double)a->all.fetch_stall_ns +
		    real_pin(r) * (double)a->all.pin_stall_ns;

	if (!r->prep->cores)
		ns += (double)a->all.prep_stall_ns;
	ns = ns / MAX(a->gpus, 1) + (double)a->checkpoint_stall_ns;
	return a->elapsed_ns ? ns / (double)a->elapsed_ns : 0;
}

static struct rig rig_of(const struct report *r, const json_t *fs)
{
	const struct train_account *a = &r->total;
	json_auto_t *late = tick_error_json(r->tick);
	double wall_s = (double)a->wall_ns / NS_PER_S;
	struct rig rig = {
		.ceiling = r->ceiling.samples_per_wall_s,
		.late_us = json_get_number(late, "mean"),
		.cpus = thread_cpus(),
		.time_scale = r->options->time_scale,
		.real_share = real_share(r, fs),
	};

	if (!a->steps || wall_s <= 0)
		return rig;
	rig.samples_per_wall_s = (double)a->samples / wall_s;
	rig.step_us = wall_s * 1e6 / (double)a->steps;
	rig.cpus_used = (double)a->cpu_ns / (double)a->wall_ns;
	return rig;
}

json_t *report_bad_samples(const struct report *r)
{
	json_t *all = r->bad ? bad_samples_json(r->bad) : NULL, *one;
	size_t i;

	/* the first node is this one */
	json_array_foreach (r->nodes, i, one)
		if (i && !all)
			all = json_incref(json_object_get(one, "bad_samples"));
		else if (i)
			json_array_extend(all,
					  json_object_get(one, "bad_samples"));
	while (json_array_size(all) > BAD_NAMED)
		json_array_remove(all, BAD_NAMED);
	return all;
}

json_t *report_node_json(const struct report *r)
{
	json_t *fs = mount_stats(r->mount);
	struct rig rig = rig_of(r, fs);

	return json_pack(
		"{s:I, s:o*, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:O*, s:o*, s:b}",
		"rank", (json_int_t)r->comm->rank, "straggler",
		r->sync ? sync_json(r->sync, r->comm->rank) : NULL, "host",
		host_json(), "pin", pin_json(r), "epochs", epochs_json(r),
		"totals", times_json(r, &r->total, true), "warm",
		r->n_epochs > 1 ? times_json(r, &r->warm, true) : json_null(),
		"ceiling", ceiling_json(&r->ceiling), "timer_error_us",
		tick_error_json(r->tick), "rig", rig_json(&rig), "fs",
		fs ? fs : json_null(), "service", r->service, "bad_samples",
		bad_samples_json(r->bad), "interrupted", r->interrupted);
}

static json_t *coordination_json(const struct report *r)
{
	struct staging_stats s;

	if (!r->staging)
		return NULL;
	s = staging_stats(r->staging);
	return coordinate_json(r->choice->coordinate.name, &s);
}

json_t *report_json(const struct report *r)
{
	const struct train_options *o = r->options;
	/* each node has its own mount, and its own limits */
	json_t *fs = r->simulated ? json_incref(r->simulated)
		     : r->nodes	  ? NULL
				  : mount_stats(r->mount);
	struct rig rig = rig_of(r, fs);

	return json_pack(
		"{s:o, s:s*, s:o, s:o, s:o, s:I, s:f, s:o, s:o, s:o, "
		"s:o, "
		"s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o?, s:o, s:O?, s:o, "
		"s:o, s:o?, s:O*, s:O*, s:o*, s:o*, s:o*, s:b}",
		"gpemu", json_version(), "kind",
		r->simulated ? "SIMULATED" : NULL, "command", command_json(r),
		"config", conf_json(train_fields, o), "plugins",
		plugins_json(r), "seed", (json_int_t)o->common.seed,
		"time_scale", o->time_scale, "host", host_json(), "profile",
		profile_json(r), "prep", prep_json(r), "pin", pin_json(r),
		"node", train_node_json(r->node, o), "epochs", epochs_json(r),
		"totals", times_json(r, &r->total, true), "warm",
		r->n_epochs > 1 ? times_json(r, &r->warm, true) : json_null(),
		"ceiling", ceiling_json(&r->ceiling), "timer_error_us",
		tick_error_json(r->tick), "rig",
		r->nodes || r->simulated ? json_null() : rig_json(&rig), "fs",
		fs ? fs : json_null(), "analysis",
		r->analysis.samples
			? analysis_json(&r->analysis, r->epoch, r->n_epochs)
			: NULL,
		"checkpoints", resume_json(r->resume), "resumed",
		r->resume->from, "dataset", train_data_json(r->data, r->how),
		"sharing", device_json(r->device), "coordination",
		coordination_json(r), "nodes", r->nodes, "service", r->service,
		"offload", r->offload ? offload_json(r->offload) : NULL,
		"bad_samples", report_bad_samples(r), "store",
		r->data->bucket ? bucket_stats(r->data->bucket) : NULL,
		"interrupted", r->interrupted);
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100. * (double)part / (double)whole : 0;
}

/* The share of the epoch that a GPU spent on average. */
static double mean_percent(const struct train_account *a, uint64_t ns)
{
	return percent(account_mean(a, ns), a->elapsed_ns);
}

/* Fewer counted steps say nothing about a share; AU leaves out the first of
 * each epoch. Arbitrary: the record has the number all the same. */
enum { AU_STEPS = 3 };

static void row(const struct train_account *a, size_t n_epochs,
		const char *name, FILE *f)
{
	char au[16] = "-", hits[16] = "-";
	double s = seconds(a->elapsed_ns);

	if (account_au(a) >= 0 && a->steps >= n_epochs + AU_STEPS)
		snprintf(au, sizeof(au), "%.1f", 100 * account_au(a));
	if (a->on_mount && a->hits + a->misses)
		snprintf(hits, sizeof(hits), "%.1f",
			 percent(a->hits, a->hits + a->misses));
	fprintf(f,
		"%5s %8.2f %10.1f %7.1f %5s %6.1f %6.1f %6.1f %6.1f %6.1f "
		"%5s\n",
		name, s, account_samples_per_s(a),
		s > 0 ? (double)a->bytes / (double)MIB / s : 0, au,
		mean_percent(a, a->all.data_wait_ns),
		mean_percent(a, a->all.fetch_stall_ns),
		mean_percent(a, a->all.prep_stall_ns),
		mean_percent(a, a->all.pin_stall_ns),
		mean_percent(a, a->all.transfer_stall_ns), hits);
}

static void slow_reads(const struct train_account *a, double wait, double share,
		       FILE *f)
{
	bool all_hits = a->on_mount && a->hits && !a->misses;
	/* no cache, or nothing that was read twice */
	bool no_hits = a->on_mount && !a->hits && a->misses;

	fprintf(f,
		"Bottleneck: %s. The GPU waited %.0f %% of the time, %.0f %% "
		"for reads (p50 %.3g ms, p99 %.3g ms); %s more preprocessing "
		"cores would not.\n",
		all_hits ? "the path of reads, not storage" : "storage", wait,
		share, hist_quantile(&a->work.read, .5) / 1e6,
		hist_quantile(&a->work.read, .99) / 1e6,
		all_hits  ? "all of them were cache hits: more reads at a "
			    "time may help, faster storage and"
		: no_hits ? "none of them was a cache hit: faster storage, "
			    "or a cache for samples that are read again, "
			    "would help,"
			  : "faster storage or a larger cache would help,");
}

/* Reports the longest stall before a step. */
static void slow_batches(const struct report *r, const struct train_account *a,
			 uint64_t most, FILE *f)
{
	double wait = mean_percent(a, a->all.data_wait_ns);
	double share = mean_percent(a, most);

	if (most == a->all.fetch_stall_ns)
		slow_reads(a, wait, share, f);
	else if (most == a->all.prep_stall_ns)
		fprintf(f,
			"Bottleneck: preprocessing. The GPU waited %.0f %% of "
			"the time, %.0f %% for the transforms of --prep %s "
			"(p50 %.3g ms a sample on %llu %s); more cores or "
			"cheaper preprocessing would help, faster storage "
			"would not.\n",
			wait, share, r->options->prep,
			hist_quantile(&a->work.prep, .5) / 1e6,
			(unsigned long long)(r->prep->cores
						     ? r->prep->cores
						     : r->options->workers),
			r->prep->cores ? "virtual cores" : "workers");
	else if (most == a->all.pin_stall_ns)
		fprintf(f,
			"Bottleneck: the pin stage. The GPU waited %.0f %% of "
			"the time, %.0f %% for the copy into pinned memory "
			"(%.3g ms a batch); neither faster storage nor more "
			"cores would help.\n",
			wait, share,
			seconds(a->pin_ns) * 1e3 / (double)a->queue.n);
	else
		fprintf(f,
			"Bottleneck: the copy to the GPU. It blocked the GPU "
			"%.0f %% of the time (%.3g ms a batch); pinned memory "
			"or an overlapped transfer would help.\n",
			share,
			seconds(account_mean(a, a->transfer_ns)) * 1e3 /
				(double)a->steps);
}

/* Of the host stalls, what the model's warmup_ms added. Only the first epoch
 * has it. */
static uint64_t first_steps(const struct report *r,
			    const struct train_account *a)
{
	const struct conf_list *l = &r->model->warmup_ms;
	const double *ms = l->items;
	double sum = 0;

	if (a == &r->warm || r->options->step_time || r->options->inference)
		return 0;
	for (size_t i = 0; i < l->n && i < a->steps; i++)
		sum += ms[i];
	return MIN((uint64_t)(sum * NS_PER_MS),
		   account_mean(a, a->all.host_stall_ns));
}

/* Reports the longest stall, and what would shorten it. Below 5 % only a faster
 * GPU helps. */
static void bottleneck(const struct report *r, const struct train_account *a,
		       FILE *f)
{
	uint64_t between = a->all.allreduce_ns + a->all.barrier_wait_ns;
	uint64_t most = MAX(MAX(a->all.fetch_stall_ns, a->all.prep_stall_ns),
			    MAX(a->all.pin_stall_ns, a->all.transfer_stall_ns));
	double stall = percent(a->checkpoint_stall_ns, a->elapsed_ns);
	uint64_t first = first_steps(r, a);

	if (stall >= 5 && stall > mean_percent(a, MAX(most, between)))
		fprintf(f,
			"Bottleneck: checkpoints. The GPU waited for them %.0f "
			"%% of the time; fewer of them%s or faster storage for "
			"them would help.\n",
			stall,
			strcmp(r->options->checkpoint, "async")
				? ", --checkpoint async"
				: "");
	else if (between > most && mean_percent(a, between) >= 5)
		fprintf(f,
			"Bottleneck: between the GPUs. Each waited for "
			"all-reduce %.0f %% of the time and for the slowest of "
			"them %.0f %%; a faster link or larger batches would "
			"help, faster storage or more preprocessing cores "
			"would not.\n",
			mean_percent(a, a->all.allreduce_ns),
			mean_percent(a, a->all.barrier_wait_ns));
	else if (first > account_mean(a, MAX(a->all.host_stall_ns / 2, most)) &&
		 percent(first, a->elapsed_ns) >= 5)
		fprintf(f,
			"Bottleneck: the first steps of the job. That they "
			"take longer than later ones is %.0f %% of the time; "
			"run more epochs to see what limits those.\n",
			percent(first, a->elapsed_ns));
	else if (a->all.host_stall_ns > most &&
		 mean_percent(a, a->all.host_stall_ns) >= 5)
		fprintf(f,
			"Bottleneck: the host's own time for a step. The GPU "
			"waited for it %.0f %% of the time; larger batches "
			"would help, faster storage or more preprocessing "
			"cores "
			"would not.\n",
			mean_percent(a, a->all.host_stall_ns));
	else if (mean_percent(a, most) < 5)
		fprintf(f,
			"Bottleneck: the GPU. It computed %.0f %% of the "
			"time%s and waited %.1f %% for batches; faster "
			"storage or more preprocessing cores would not "
			"help.\n",
			mean_percent(a, a->all.compute_ns),
			r->device->ops->shared ? " for this job" : "",
			mean_percent(a, a->all.data_wait_ns));
	else
		slow_batches(r, a, most, f);
}

/* Of a simulation with --mtbf; true: they cost more than all else but
 * computing.
 */
static bool failures(const struct report *r, FILE *f)
{
	const struct train_account *a = &r->total;
	const json_t *j = json_object_get(r->simulated, "failures");
	json_int_t n = json_integer_value(json_object_get(j, "n"));
	double delay = json_real_value(json_object_get(j, "delay_s"));
	double share = 100 * delay / seconds(a->elapsed_ns);
	double computed = mean_percent(a, a->all.compute_ns);
	bool most = share >= 5 && share > (100 - computed) / 2;

	if (!n)
		return false;
	fprintf(f, "Failures: %lld, which delay the run by %.4g s.\n",
		(long long)n, delay);
	if (most)
		fprintf(f,
			"Bottleneck: failures. They took %.0f %% of the time; "
			"another interval of checkpoints (--checkpoint-every) "
			"or a shorter restart would help.\n",
			share);
	return most;
}

/* Judges the epochs that follow the first, which fills caches; what the first
 * one waited besides is a sentence of its own. */
static void judge(const struct report *r, FILE *f)
{
	const struct train_account *first = r->n_epochs ? r->epoch[0] : NULL;
	double cold, warm;

	if (r->n_epochs < 2 || !r->warm.steps) {
		bottleneck(r, &r->total, f);
		return;
	}
	bottleneck(r, &r->warm, f);
	cold = mean_percent(first, first->all.data_wait_ns);
	warm = mean_percent(&r->warm, r->warm.all.data_wait_ns);
	if (cold >= warm + 5)
		fprintf(f,
			"Epoch %llu, the first, is not judged: the GPU waited "
			"%.0f %% of it for batches.\n",
			(unsigned long long)first->epoch, cold);
}

/* The overhead between several GPUs and, with -v, each GPU's times. */
static void between_gpus(const struct report *r, FILE *f)
{
	const struct train_account *a = &r->total;

	if (a->gpus < 2)
		return;
	fprintf(f,
		"%u GPUs (%s): %.1f %% of the time all-reduce, %.1f %% waiting "
		"for the slowest of them.\n",
		a->gpus, r->options->parallel,
		mean_percent(a, a->all.allreduce_ns),
		mean_percent(a, a->all.barrier_wait_ns));
	if (!r->options->common.verbose || a->more_nodes)
		return;
	for (uint32_t i = 0; i < a->gpus; i++) {
		const struct account_gpu *g = &a->gpu[i];

		fprintf(f,
			"%6s%-3u compute %5.1f  wait %5.1f  copy %5.1f  "
			"barrier %5.1f  all-reduce %5.1f\n",
			"GPU ", i, percent(g->compute_ns, a->elapsed_ns),
			percent(g->data_wait_ns, a->elapsed_ns),
			percent(g->transfer_stall_ns, a->elapsed_ns),
			percent(g->barrier_wait_ns, a->elapsed_ns),
			percent(g->allreduce_ns, a->elapsed_ns));
	}
}

/* Who kept the others waiting and, with -v, each node's times. */
static void between_nodes(const struct report *r, FILE *f)
{
	uint64_t ns = 0, batch = train_step_samples(r->options);
	uint32_t node = r->sync ? sync_slowest(r->sync, &ns) : 0;
	const json_t *one;
	size_t i;

	if (!r->nodes)
		return;
	fprintf(f, "%" PRIu32 " nodes, %llu samples per step.", r->comm->size,
		(unsigned long long)(batch * r->comm->size));
	if (ns)
		fprintf(f,
			" Node %" PRIu32 " kept the others waiting longest: "
			"%.2f s, %.1f %% of the time, most of it for its %s.",
			node, seconds(ns), percent(ns, r->total.elapsed_ns),
			sync_cause(r->sync, node));
	fputc('\n', f);
	if (!r->options->common.verbose)
		return;
	json_array_foreach (r->nodes, i, one) {
		const json_t *t = json_object_get(one, "totals");
		const json_t *s = json_object_get(one, "straggler");

		fprintf(f,
			"%6s%-3zu %8.1f samples/s  data wait %.2f s  waited "
			"%.2f s  kept waiting %.2f s\n",
			"node ", i, json_get_number(t, "samples_per_s"),
			json_get_number(t, "data_wait_s"),
			json_get_number(s, "waited_s"),
			json_get_number(s, "kept_waiting_s"));
	}
}

static void predicted(const struct report *r, FILE *f)
{
	json_auto_t *j = analysis_json(&r->analysis, r->epoch, r->n_epochs);
	json_t *e;
	size_t i;

	analysis_print(&r->analysis, f);
	json_array_foreach (json_object_get(j, "epochs"), i, e)
		fprintf(f,
			"Epoch %zu, %.1f %% cached: %.2f s predicted, %.2f s "
			"measured (%+.1f %%)\n",
			i, 100 * json_real_value(json_object_get(e, "cached")),
			json_real_value(json_object_get(e, "predicted_s")),
			json_real_value(json_object_get(e, "seconds")),
			-100 * json_real_value(json_object_get(e, "error")));
}

static void resumed(const struct report *r, FILE *f)
{
	const json_t *from = r->resume->from;

	if (!from)
		return;
	fprintf(f, "Resumed from step %llu, %llu of epoch %llu",
		(unsigned long long)json_integer_value(
			json_object_get(from, "step")),
		(unsigned long long)json_integer_value(
			json_object_get(from, "epoch_step")),
		(unsigned long long)json_integer_value(
			json_object_get(from, "epoch")));
	if (r->options->world_size > 1)
		fprintf(f, ", of which all %llu ranks have a checkpoint",
			(unsigned long long)r->options->world_size);
	fprintf(f, ". It was read in %.3g s.\n",
		json_real_value(json_object_get(from, "read_s")));
}

/* Of this process, or of each node, which has its own CPUs and ceiling. */
static void limits(const struct report *r, FILE *f)
{
	json_auto_t *fs = mount_stats(r->mount), *own = NULL;
	const json_t *one;
	struct rig rig;
	char node[32];
	size_t i;

	json_array_foreach (r->simulated ? NULL : r->nodes, i, one) {
		snprintf(node, sizeof(node), ", node %zu", i);
		rig_print(json_object_get(one, "rig"), node, f);
	}
	if (r->nodes || r->simulated)
		return;
	rig = rig_of(r, fs);
	own = rig_json(&rig);
	rig_print(own, "", f);
}

static void coordination_summary(const struct report *r, FILE *f)
{
	struct staging_stats s;

	if (!r->staging)
		return;
	s = staging_stats(r->staging);
	coordinate_summary(r->choice->coordinate.name, &s, f);
}

void report_summary(const struct report *r, FILE *f)
{
	char name[24], notice[NOTICE_TEXT];

	resumed(r, f);
	if (r->simulated)
		fputs("SIMULATED: all times are computed, nothing was read.\n",
		      f);
	fprintf(f,
		"%s on %s, batch %llu, --loader %s --prep %s: of the time, "
		"in percent; AU without the first step of an epoch\n",
		r->model->name, r->gpu->name,
		(unsigned long long)r->options->batch, r->options->loader,
		r->options->prep);
	fprintf(f, "%5s %8s %10s %7s %5s %6s %6s %6s %6s %6s %5s\n", "epoch",
		"seconds", "samples/s", "MiB/s", "AU", "wait", "fetch", "prep",
		"pin", "copy", "hits");
	for (size_t i = 0; i < r->n_epochs; i++) {
		snprintf(name, sizeof(name), "%llu",
			 (unsigned long long)r->epoch[i]->epoch);
		row(r->epoch[i], 1, name, f);
	}
	if (r->n_epochs > 2)
		row(&r->warm, r->n_epochs - 1, "warm", f);
	if (r->n_epochs > 1)
		row(&r->total, r->n_epochs, "all", f);
	between_gpus(r, f);
	between_nodes(r, f);
	train_prep_summary(r->prep, r->options, &r->total, f);
	device_summary(r->device, r->total.elapsed_ns, f);
	resume_print(r->resume, f);
	coordination_summary(r, f);
	offload_service_summary(r->service, f);
	if (r->offload && r->options->offload)
		offload_summary(r->offload, f);
	if (r->total.steps && !failures(r, f))
		judge(r, f);
	if (unstated(r, notice))
		fprintf(f, "WARN %s.\n", notice);
	limits(r, f);
	if (r->analysis.samples)
		predicted(r, f);
}
