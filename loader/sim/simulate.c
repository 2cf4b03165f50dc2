/* SPDX-License-Identifier: MIT */
#include "loader/sim/simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/units.h"
#include "common/util.h"
#include "loader/dataset/mount.h"
#include "loader/sim/sim_read.h"
#include "loader/sim/sim_mounts.h"
#include "loader/train/session_open.h"

/* --- options -------------------------------------------------------------- */

static int only_with(const struct train_options *o, struct err *err)
{
	const char *what = o->fs.n	       ? "--fs"
			   : o->fs_config      ? "--fs-config"
			   : o->caches	       ? "--caches"
			   : o->shared_storage ? "--shared-storage"
			   : o->approximate    ? "--approximate"
			   : o->mtbf	       ? "--mtbf"
			   : o->restart	       ? "--restart"
					       : NULL;

	return what ? err_set(err, -EINVAL, "%s needs --simulate", what) : 0;
}

/* What a simulation has no model of: any value but 0, or the word `is`. Without
 * it, the value is 0, or `instead`. */
static const struct unknown {
	const char *option;
	enum conf_type type;
	size_t offset;
	const char *is, *instead;
} unknown[] = {
#define UNKNOWN(option, type, member) \
	option, type, offsetof(struct train_options, member)
	{ UNKNOWN("--gpu-server", CONF_STRING, gpu_server) },
	{ UNKNOWN("--coordinate", CONF_STRING, coordinate) },
	{ UNKNOWN("--mpi on", CONF_STRING, mpi), "on", "auto" },
	{ UNKNOWN("--resume", CONF_BOOL, resume) },
	{ UNKNOWN("--analyze", CONF_BOOL, analyze) },
	{ UNKNOWN("--control", CONF_STRING, control) },
	{ UNKNOWN("--stages", CONF_STRING, stages) },
	{ UNKNOWN("--trace", CONF_STRING, trace) },
	{ UNKNOWN("--steps", CONF_STRING, steps) },
	{ UNKNOWN("--dump-samples", CONF_STRING, dump_samples) },
	{ UNKNOWN("--sort-extents", CONF_BOOL, sort_extents) },
	{ UNKNOWN("--direct", CONF_BOOL, direct) },
	{ UNKNOWN("--pin inline", CONF_STRING, pin_mode), "inline", "on" },
#undef UNKNOWN
};

static bool is_given(const struct train_options *o, const struct unknown *u)
{
	const void *at = (const char *)o + u->offset;
	const char *text;

	if (u->type == CONF_BOOL)
		return *(const bool *)at;
	if (u->type == CONF_UINT)
		return *(const uint64_t *)at > 0;
	text = *(char *const *)at;
	return text && (!u->is || !strcmp(text, u->is));
}

static int set_text(char **at, const char *text)
{
	free(*at);
	*at = text ? strdup(text) : NULL;
	return text && !*at ? -ENOMEM : 0;
}

static int leave_out(struct train_options *o, const struct unknown *u,
		     json_t *left_out)
{
	void *at = (char *)o + u->offset;

	json_array_append_new(left_out, json_string(u->option));
	if (u->type == CONF_BOOL)
		*(bool *)at = false;
	else if (u->type == CONF_UINT)
		*(uint64_t *)at = 0;
	else
		return set_text(at, u->instead);
	return 0;
}

/* Transforms that really run take no time; what they make has its size. */
static int leave_out_prep(struct train_options *o, json_t *left_out,
			  struct err *err)
{
	struct plugin_choice choice = { 0 };
	int r = plugin_choose(prep_table, "prep", o->prep, &choice, err);
	const struct prep_ops *prep =
		r == 0 ? container_of(choice.plugin, const struct prep_ops,
				      plugin)
		       : NULL;
	bool real = prep && prep->run && !prep->cost;
	bool images = real && !prep->int64_rows;

	plugin_choice_fini(&choice);
	if (!real)
		return r;
	json_array_append_new(left_out, json_sprintf("--prep %s", o->prep));
	r = set_text(&o->prep, images ? "emulated" : "none");
	if (r == 0 && images)
		r = set_text(&o->prep_time, "0s");
	return r;
}

/* The other ranks are jobs of their own: here they are nodes. */
static void simulate_ranks(struct train_options *o, json_t *left_out)
{
	if (o->world_size <= 1)
		return;
	json_array_append_new(left_out, json_string("--world-size"));
	o->nodes = o->world_size;
	o->rank = 0;
}

/* Resuming and commands have options of their own. */
static int approximate(struct train_options *o, json_t *left_out,
		       struct err *err)
{
	int r = leave_out_prep(o, left_out, err);

	simulate_ranks(o, left_out);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(unknown); i++)
		if (is_given(o, &unknown[i]))
			r = leave_out(o, &unknown[i], left_out);
	o->resume_step = -1;
	return r == 0 ? set_text(&o->turns, NULL) : r;
}

static int check_options(const struct train_options *o, struct err *err)
{
	if (o->world_size > 1)
		return err_set(err, -EINVAL,
			       "--world-size: not with --simulate; --nodes is "
			       "the number of simulated nodes");
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		if (is_given(o, &unknown[i]))
			return err_set(err, -EINVAL, "%s: not with --simulate",
				       unknown[i].option);
	if (o->mtbf && o->inference)
		return err_set(err, -EINVAL, "--mtbf: not with --inference");
	return 0;
}

int simulate_options(struct train_options *o, json_t *left_out, struct err *err)
{
	enum sim_caches word;
	int r;

	if (!o->simulate)
		return only_with(o, err);
	r = o->approximate ? approximate(o, left_out, err)
			   : check_options(o, err);
	/* checkpoints are on the emulated storage */
	if (r == 0)
		r = set_text(&o->checkpoint_dir, NULL);
	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	o->world_size = o->nodes;
	o->together = o->nodes > 1;
	return o->caches ? sim_caches_parse(o->caches, &word, err) : 0;
}

/* --- opening -------------------------------------------------------------- */

/* The time of code that really runs is not known. */
static int check_choice(const struct train_options *o,
			const struct train_choice *c, struct err *err)
{
	if (c->prep->run && !c->prep->cost)
		return err_set(err, -EINVAL,
			       "--prep %s runs real code; a simulation needs "
			       "--prep emulated or none",
			       o->prep);
	return 0;
}

static enum sim_caches caches(const struct train_options *o)
{
	enum sim_caches ret = SIM_CACHES_PRIVATE;

	if (o->caches)
		sim_caches_parse(o->caches, &ret, NULL);
	return ret;
}

/* The settings of the mounts. Call sim_fs_fini, failed or not. */
static int read_fs(struct fs_config *ret, const struct train_options *o,
		   json_t *left_out, struct err *err)
{
	bool peers = caches(o) == SIM_CACHES_PARTITIONED && o->nodes > 1;

	return sim_fs_read(ret, o->fs_config, &o->fs, peers,
			   o->approximate ? left_out : NULL, err);
}

int simulate_check(const struct train_options *o, const struct train_choice *c,
		   struct err *err)
{
	struct fs_config fs;
	int r = check_choice(o, c, err);

	if (r < 0)
		return r;
	r = read_fs(&fs, o, NULL, err);
	sim_fs_fini(&fs);
	return r;
}

/* The format of the shards, *ret; NULL: each file is a sample. */
static int find_format(const struct simulate *m, const struct format_ops **ret,
		       struct err *err)
{
	const struct session *s = m->session;
	const struct plugin *format = s->choice.format_choice.plugin;

	if (!format)
		return sim_data_format(&m->data, s->options.data, ret, err);
	*ret = container_of(format, const struct format_ops, plugin);
	if (!(*ret)->scan)
		*ret = NULL; /* trees of files */
	return 0;
}

/* Samples of shards are listed as a real run does, from the folder itself. */
static int open_shards(struct simulate *m, struct err *err)
{
	struct session *s = m->session;
	const struct train_options *o = &s->options;
	const char *what = m->fs.prefetch ? "--fs prefetch"
			   : caches(o) == SIM_CACHES_PARTITIONED && o->nodes > 1
				   ? "--caches partitioned"
				   : NULL;
	int r;

	if (what)
		return err_set(err, -EINVAL,
			       "%s: has shards: not with --simulate and %s",
			       o->data, what);
	dataset_close(&s->data);
	s->data = (struct dataset){ 0 };
	r = train_data_open(o, &s->choice, &s->data, &s->how, err);
	return r < 0 ? r : sim_data_shards(&m->data, &s->data, o->data, err);
}

static int open_data(struct simulate *m, struct err *err)
{
	struct session *s = m->session;
	const struct format_ops *shards;
	int r = sim_data_open(s->options.data, &m->data, &s->data, err);

	if (r == 0)
		r = find_format(m, &shards, err);
	return r == 0 && shards ? open_shards(m, err) : r;
}

static int open_mounts(struct simulate *m, struct err *err)
{
	const struct train_options *o = &m->session->options;
	struct sim_mounts_config c = { .fs = &m->fs,
				       .tree = &m->data.tree,
				       .nodes = (uint32_t)o->nodes,
				       .seed = o->common.seed,
				       .caches = caches(o),
				       .shared_storage = o->shared_storage,
				       .shard = m->data.shard,
				       .n_shards =
					       m->session->data.n_containers };

	return sim_mounts_new(&c, &m->mounts, err);
}

/* As loader/train/session_open.c asks real mounts. */
static int find_holders(struct simulate *m, struct err *err)
{
	struct session *s = m->session;

	if (!s->choice.order->by_holder ||
	    sim_mounts_owners(m->mounts, m->data.file, s->data.n, &s->holder) ==
		    0)
		return 0;
	return err_set(err, -ENOMEM, "out of memory");
}

/* As loader/train/session.c announces to a real mount. */
static int weigh(struct simulate *m, struct err *err)
{
	const struct session *s = m->session;
	_cleanup_free_ float *weight = NULL;
	int r = 0;

	if (m->mounts && !m->data.shard)
		r = schedule_weights(&s->schedule, &weight, err);
	if (r == 0 && weight &&
	    sim_mounts_weigh(m->mounts, m->data.file, weight, m->data.n) < 0)
		r = err_set(err, -ENOMEM, "out of memory");
	return r;
}

/* Do the gradients pass the card of the caches? As loader/nodes/sync.h asks a
 * mount. */
static bool share_cards(const struct simulate *m)
{
	const struct session *s = m->session;
	double rate = m->mounts ? sim_mounts_card(m->mounts) : 0;

	return s->train.sync && s->options.node && rate > 0 &&
	       rate == s->node.profile.nic.gb_per_s;
}

/* The steps of all nodes end together, as in loader/train/session_open.c. */
static int open_sync(struct simulate *m, struct err *err)
{
	struct session *s = m->session;

	if (s->options.nodes < 2 || s->options.inference)
		return 0;
	if (!s->options.node && s->tell)
		s->tell(s->ctx, LOG_LEVEL_WARN,
			"without --node there is no network between the "
			"nodes: their all-reduce takes no time");
	s->train.sync = &s->sync;
	return sync_init(&s->sync, &m->comm, &s->node.gpus.reduce) < 0
		       ? err_set(err, -ENOMEM, "out of memory")
		       : 0;
}

/* As resume_start. */
static struct sim_save_config save_config(struct simulate *m)
{
	struct session *s = m->session;
	struct resume *r = &s->resume;
	struct checkpoint_config c = resume_config(r, &s->gpu, s->model);

	if (s->options.checkpoint_every)
		r->simulated = &m->saved;
	return (struct sim_save_config){
		.every = s->options.checkpoint_every,
		.state_bytes = r->state_bytes,
		.visited_bytes = c.visited_bytes,
		.file_bytes = CHECKPOINT_HEAD + c.visited_bytes + c.state_bytes,
		.copy_ns = c.copy_ns,
		.keep = c.keep,
		.async = c.async,
		.stalls = &r->stalls,
		.saved = &m->saved,
		.mtbf_ns = s->options.mtbf,
		.restart_ns = s->options.restart,
	};
}

static int open_sim(struct simulate *m, struct err *err)
{
	struct session *s = m->session;
	struct sim_config c = { .pipeline = &m->pipeline,
				.job = &s->job,
				.schedule = &s->schedule,
				.nodes = (uint32_t)s->options.nodes,
				.sync = s->train.sync,
				.on_cards = share_cards(m),
				.mounts = m->mounts,
				.file = m->data.shard ? m->data.shard
						      : m->data.file };
	size_t n = s->options.nodes;

	c.save = save_config(m);
	m->pipeline = session_pipeline(s);
	m->account = calloc(n, sizeof(*m->account));
	m->total = calloc(n, sizeof(*m->total));
	m->warm = calloc(n, sizeof(*m->warm));
	m->epochs = json_array();
	s->tick = tick_new_fake();
	if (!m->account || !m->total || !m->warm || !m->epochs || !s->tick)
		return err_set(err, -ENOMEM, "out of memory");
	return sim_new(&c, &m->sim, err);
}

int simulate_open(struct simulate *m, struct session *s, struct err *err)
{
	const struct train_options *o = &s->options;
	int r = check_choice(o, &s->choice, err);

	m->session = s;
	if (r == 0)
		r = read_fs(&m->fs, o, m->left_out, err);
	if (r == 0 && s->choice.engine->next)
		r = open_data(m, err);
	if (r == 0 && (s->choice.engine->next || o->checkpoint_every))
		r = open_mounts(m, err);
	if (r == 0 && s->choice.engine->next)
		r = find_holders(m, err);
	if (r == 0)
		r = session_open(s, err);
	if (r < 0)
		return r;
	comm_alone(&m->comm);
	m->comm.size = (uint32_t)o->nodes;
	s->comm = &m->comm;
	r = weigh(m, err);
	if (r == 0)
		r = open_sync(m, err);
	return r == 0 ? open_sim(m, err) : r;
}

void simulate_close(struct simulate *m)
{
	sim_free(m->sim);
	sim_mounts_free(m->mounts);
	sim_data_close(&m->data);
	sim_fs_fini(&m->fs);
	json_decref(m->epochs);
	json_decref(m->left_out);
	free(m->account);
	free(m->total);
	free(m->warm);
}

/* --- epochs --------------------------------------------------------------- */

/* The hits of all nodes, and the accounts of their epoch as one. */
static int add_up(struct simulate *m, struct err *err)
{
	struct session *s = m->session;
	struct train_account *all = calloc(1, sizeof(*all));
	struct sim_counts counts = { 0 };

	if (!all)
		return err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < m->comm.size; i++) {
		struct train_account *a = &m->account[i];
		struct sim_counts own = { 0 };

		if (m->mounts)
			own = sim_mounts_take_counts(m->mounts, i);
		sim_counts_add(&counts, &own);
		a->on_mount = s->choice.engine->next != NULL;
		a->hits = own.hits;
		a->misses = own.misses;
		account_merge(&m->total[i], a);
		if (s->report.n_epochs)
			account_merge(&m->warm[i], a);
		if (i == 0)
			*all = *a;
		else
			account_join(all, a);
	}
	s->report.epoch[s->report.n_epochs++] = all;
	sim_counts_add(&m->counts, &counts);
	return json_array_append_new(m->epochs, sim_counts_json(&counts)) < 0
		       ? err_set(err, -ENOMEM, "out of memory")
		       : 0;
}

/* The samples of `n` epochs, of each node in turn, into `future`. */
static int fill_future(struct simulate *m, struct future *future, uint64_t n,
		       struct err *err)
{
	struct session *s = m->session;
	uint64_t world = m->comm.size, first = s->resume.point.epoch;
	_cleanup_free_ uint32_t *samples =
		calloc(s->schedule.n * world, sizeof(*samples));
	uint32_t *node = future->node;
	int r = samples ? 0 : err_set(err, -ENOMEM, "out of memory");

	for (uint64_t e = 0; r == 0 && e < n; e++) {
		r = schedule_all(&s->schedule, first + e, samples, err);
		for (uint64_t i = 0; r == 0 && i < future->rest * world; i++)
			*node++ = m->data.file[samples[i]];
	}
	return r;
}

/* As loader/train/session.c does to a real mount. */
static int announce_rest(struct simulate *m, struct err *err)
{
	struct session *s = m->session;
	uint64_t visits = session_epoch_samples(s), first;
	uint64_t most = MOUNT_MOST_ACCESSES / (visits * m->comm.size), n;
	struct future *f;
	int r;

	if (!most) {
		session_tell(s, LOG_LEVEL_WARN,
			     "no prefetching: an epoch has more accesses than "
			     "a mount accepts");
		m->announced = UINT64_MAX;
		return 0;
	}
	first = s->resume.point.epoch;
	n = MIN(s->options.epochs - first, most);
	f = future_new((const uint32_t[FUTURE_FIELDS]){
		[FUTURE_WORLD] = m->comm.size,
		[FUTURE_EPOCHS] = (uint32_t)n,
		[FUTURE_FIRST] = (uint32_t)visits,
		[FUTURE_REST] = (uint32_t)visits,
	});
	if (!f)
		return err_set(err, -ENOMEM, "out of memory for a future");
	r = fill_future(m, f, n, err);
	if (r == 0)
		r = sim_ahead_announce(m->mounts, f, err);
	future_put(f);
	m->announced = first + n;
	return r;
}

int simulate_epoch(struct simulate *m, struct err *err)
{
	struct session *s = m->session;
	struct checkpoint_point *p = &s->resume.point;
	uint64_t samples = session_epoch_samples(s);
	uint64_t batch = train_step_samples(&s->options);
	int r = 0;

	if (m->mounts && sim_ahead_is_on(m->mounts) && p->epoch >= m->announced)
		r = announce_rest(m, err);
	if (r == 0 && s->choice.engine->next)
		r = schedule_fill(&s->schedule, p->epoch, err);
	if (r == 0)
		r = sim_epoch(m->sim, p->epoch, samples, m->now_ns, m->account,
			      &m->now_ns, err);
	p->step += (samples + batch - 1) / batch;
	p->epoch++;
	if (r == 0 && !session_more(s))
		s->resume.tail_ns = sim_drain(m->sim, m->now_ns) - m->now_ns;
	if (s->options.checkpoint_every)
		s->resume.last_step =
			p->step - p->step % s->options.checkpoint_every;
	return r == 0 ? add_up(m, err) : r;
}

/* --- the report ----------------------------------------------------------- */

static void join(struct train_account *into, const struct train_account *v,
		 uint32_t n)
{
	*into = v[0];
	for (uint32_t i = 1; i < n; i++)
		account_join(into, &v[i]);
}

static json_t *straggler_json(const struct simulate *m, uint32_t node)
{
	const struct sync *s = m->session->train.sync;
	json_t *j = s ? sync_json(s, node) : NULL;

	if (j)
		json_add_real(j, "card_s",
			      (double)sim_card_ns(m->sim, node) / NS_PER_S);
	return j;
}

/* As the nodes of a real run (loader/train/report.h), without their machines.
 */
static json_t *nodes_json(const struct simulate *m)
{
	const struct session *s = m->session;
	json_t *all = json_array();

	for (uint32_t i = 0; i < m->comm.size; i++)
		json_array_append_new(
			all, json_pack("{s:I, s:o*, s:o, s:o}", "rank",
				       (json_int_t)i, "straggler",
				       straggler_json(m, i), "totals",
				       account_json(&m->total[i], true), "warm",
				       s->report.n_epochs > 1
					       ? account_json(&m->warm[i], true)
					       : json_null()));
	return all;
}

static json_t *mounts_json(struct simulate *m)
{
	json_t *j = m->mounts ? sim_mounts_json(m->mounts)
			      : json_pack("{s:s}", "kind", "SIMULATED");
	json_t *one;
	size_t i;

	if (!m->mounts)
		return j;
	json_object_update_new(j, sim_counts_json(&m->counts));
	json_array_foreach (m->epochs, i, one)
		json_add_integer(one, "epoch", i);
	json_object_set(j, "epochs", m->epochs);
	return j;
}

static void tell_left_out(const struct simulate *m)
{
	json_t *what;
	size_t i;

	json_array_foreach (m->left_out, i, what)
		session_tell(m->session, LOG_LEVEL_WARN, "left out: %s",
			     json_string_value(what));
}

int simulate_report(struct simulate *m, struct err *err)
{
	struct report *r = &m->session->report;

	tell_left_out(m);
	join(&r->total, m->total, m->comm.size);
	join(&r->warm, m->warm, m->comm.size);
	r->simulated = mounts_json(m);
	if (r->simulated && m->session->options.mtbf)
		json_object_set_new(r->simulated, "failures",
				    sim_failures(m->sim));
	if (r->simulated && json_array_size(m->left_out))
		json_object_set(r->simulated, "left_out", m->left_out);
	if (m->comm.size > 1)
		r->nodes = nodes_json(m);
	return r->simulated ? 0 : err_set(err, -ENOMEM, "out of memory");
}
