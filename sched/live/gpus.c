/* SPDX-License-Identifier: MIT */
#include "sched/live/gpus.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/log.h"
#include "common/rng.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/gpu/gpud_query.h"

/* --- nodes that are down ------------------------------------------------- */

/* arbitrary: a server that is started again takes about a second; with five
 * retries a job gives up after half a minute */
#define PAUSE_NS (1 * NS_PER_S)
/* arbitrary: one minute more hardly matters to who waited for one */
enum { DOUBLINGS = 6 };

/* The server of the node's GPUs failed, or granted some. */
static void down_begin(struct live *l, uint32_t node)
{
	struct live_down *d = &l->downs[node];

	if (d->until_ns)
		return; /* one outage */
	d->until_ns = tick_wall() + (PAUSE_NS << MIN(d->n_failed, DOUBLINGS));
	d->n_failed++;
	cluster_set_down(&l->run.cluster, node, true);
}

static void down_never(struct live *l, uint32_t node)
{
	l->downs[node].n_failed = 0;
}

void down_end(struct live *l)
{
	uint64_t now = tick_wall();

	for (uint32_t i = 0; i < l->run.cluster.n; i++) {
		struct live_down *d = &l->downs[i];

		if (!d->until_ns || d->until_ns > now)
			continue;
		d->until_ns = 0;
		cluster_set_down(&l->run.cluster, i, false);
		l->run.changed = true;
	}
}

uint64_t down_left(const struct live *l)
{
	uint64_t now = tick_wall(), left = TICK_NEVER;

	/* a run that ends starts nothing any more */
	for (uint32_t i = 0; !l->closing && i < l->run.cluster.n; i++) {
		uint64_t until = l->downs[i].until_ns;

		if (until)
			left = MIN(left, until > now ? until - now : 0);
	}
	return left;
}

#define NODE_WORD "{node}"

static bool is_of_node(const struct live *l)
{
	return strstr(l->c.gpu_server, NODE_WORD);
}

/* The socket of the server that has the GPUs of a node, malloc'ed. NULL: no
 * memory. */
static char *server_of(const struct live *l, uint32_t node)
{
	const char *text = l->c.gpu_server, *word = strstr(text, NODE_WORD);

	if (!word)
		return strdup(text);
	return util_text("%.*s%" PRIu32 "%s", (int)(word - text), text, node,
			 word + strlen(NODE_WORD));
}

/* The number that the first GPU of a node has there. */
static uint32_t first_of(const struct live *l, uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t i = 0; !is_of_node(l) && i < node; i++)
		n += l->run.cluster.nodes[i].n_gpus;
	return n;
}

/* Another run on the same server has other names. malloc'ed; NULL: no memory.
 */
static char *name_of(const struct live *l, uint32_t which)
{
	_cleanup_free_ char *dir = realpath(l->c.dir, NULL);
	char *name;

	if (!dir || asprintf(&name, "sched-%08" PRIx32 "-%" PRIu32,
			     (uint32_t)rng_key(0, dir, 0), which) < 0)
		return NULL;
	return name;
}

/* --- the check ------------------------------------------------------------ */

static int check_server(const struct live *l, const char *path, size_t n_gpus,
			struct err *err)
{
	json_auto_t *j = NULL;
	double scale;
	int r = gpud_query(path, NULL, GPUD_PATIENCE_S, &j, err);

	if (r < 0)
		return r;
	if (json_unpack(j, "{s:{s:F}}", "server", "time_scale", &scale) < 0)
		return err_set(err, -EPROTO, "%s: a status without time scale",
			       path);
	if (fabs(scale / l->c.time_scale - 1) > 1e-9)
		return err_set(err, -EINVAL,
			       "--gpu-server %s: its --time-scale is %g, that "
			       "of this run %g",
			       path, scale, l->c.time_scale);
	if (json_array_size(json_object_get(j, "gpus")) < n_gpus)
		return err_set(err, -EINVAL,
			       "--gpu-server %s: it has %zu GPUs, and the "
			       "nodes have %zu",
			       path,
			       json_array_size(json_object_get(j, "gpus")),
			       n_gpus);
	return 0;
}

int gpus_check(const struct live *l, struct err *err)
{
	const struct cluster *c = &l->run.cluster;
	uint32_t n = (uint32_t)c->n;
	/* one server for all is asked once */
	uint32_t i = l->c.gpu_server && is_of_node(l) ? 0 : n - 1;
	int r = 0;

	for (; l->c.gpu_server && r == 0 && i < n; i++) {
		_cleanup_free_ char *path = server_of(l, i);
		uint32_t n_gpus = first_of(l, i) + c->nodes[i].n_gpus;

		if (!path)
			return -ENOMEM;
		if (n_gpus)
			r = check_server(l, path, n_gpus, err);
	}
	return r;
}

/* --- grants --------------------------------------------------------------- */

/* Of the GPU, bytes that its jobs may fill. */
static int memory_of(const char *path, uint32_t gpu, double *ret,
		     struct err *err)
{
	json_auto_t *j = NULL;
	const json_t *one;
	double mib;
	int r = gpud_query(path, NULL, GPUD_PATIENCE_S, &j, err);

	if (r < 0)
		return r;
	one = json_array_get(json_object_get(j, "gpus"), gpu);
	if (json_unpack((json_t *)one, "{s:F}", "memory_usable_mib", &mib) < 0)
		return err_set(err, -EPROTO, "%s: no GPU %" PRIu32, path, gpu);
	*ret = mib * (double)MIB;
	return 0;
}

/* For one GPU of the part. */
static struct gpud_grant grant_of(const struct sched_job *job,
				  const struct sched_part *p, double memory)
{
	struct gpud_grant g = { .bytes = UINT64_MAX };
	bool shares = job->gpu_milli < GPU_MILLI;

	if (shares)
		g.part_milli = p->gpu_milli;
	if (job->gpu_memory_mib && (shares || job->gpu_busy > 0))
		g.bytes = job->gpu_memory_mib * MIB;
	else if (shares)
		g.bytes = util_whole(memory * p->gpu_milli / GPU_MILLI) + 1;
	return g;
}

/* *ret_n grants for the parts that have GPUs, which are of one server. */
static int make_grants(const struct live *l, const struct sched_job *job,
		       const char *path, const char *name,
		       struct gpud_grant *ret, size_t most, size_t *ret_n,
		       struct err *err)
{
	double memory = 0;
	int r = 0;

	for (size_t k = 0; r == 0 && k < job->n_parts; k++) {
		const struct sched_part *p = &job->parts[k];

		for (uint32_t i = 0; r == 0 && p->gpus >> i; i++) {
			uint32_t gpu = first_of(l, p->node) + i;
			struct gpud_grant *g = &ret[*ret_n];

			if (!(p->gpus >> i & 1) || *ret_n == most)
				continue;
			if (job->gpu_milli < GPU_MILLI)
				r = memory_of(path, gpu, &memory, err);
			*g = grant_of(job, p, memory);
			g->gpu = gpu;
			snprintf(g->name, sizeof(g->name), "%s", name);
			++*ret_n;
		}
	}
	return r;
}

/* The first part with GPUs; NULL: there is none. -EINVAL with a text: others
 * are of another server. */
static int check_parts(const struct live *l, const struct sched_job *job,
		       const struct sched_part **ret, struct err *err)
{
	*ret = NULL;
	for (size_t k = 0; k < job->n_parts; k++) {
		const struct sched_part *p = &job->parts[k];

		if (!p->gpus)
			continue;
		if (*ret && is_of_node(l) && (*ret)->node != p->node)
			return err_set(err, -EINVAL,
				       "job %s has GPUs of several nodes, "
				       "which needs one --gpu-server for all, "
				       "without {node}",
				       job->name);
		*ret = *ret ? *ret : p;
	}
	return 0;
}

/* All nodes of the server that has the GPUs of this one. */
static void server_failed(struct live *l, uint32_t node)
{
	for (uint32_t i = 0; i < l->run.cluster.n; i++)
		if (l->run.cluster.nodes[i].n_gpus &&
		    (!is_of_node(l) || i == node))
			down_begin(l, i);
}

static void server_works(struct live *l, uint32_t node)
{
	for (uint32_t i = 0; i < l->run.cluster.n; i++)
		if (!is_of_node(l) || i == node)
			down_never(l, i);
}

int gpus_give(struct live *l, uint32_t which, char **ret, struct err *err)
{
	const struct sched_job *job = &l->run.jobs[which];
	_cleanup_free_ char *path = NULL, *name = NULL, *folder = NULL;
	_cleanup_free_ struct gpud_grant *grants = NULL;
	const struct sched_part *first = NULL;
	const char *slash;
	size_t n = 0;
	int r = l->c.gpu_server ? check_parts(l, job, &first, err) : 0;

	if (r < 0 || !first)
		return r;
	path = server_of(l, first->node);
	name = name_of(l, which);
	grants = calloc(job->n_gpus, sizeof(*grants));
	folder = path && name ? gpud_grant_folder(path, name) : NULL;
	if (!grants || !folder)
		return -ENOMEM;
	r = make_grants(l, job, path, name, grants, job->n_gpus, &n, err);
	if (r == 0)
		r = gpud_regrant(path, name, grants, n, err);
	if (r < 0) {
		server_failed(l, first->node);
		return 1;
	}
	server_works(l, first->node);
	slash = strrchr(path, '/');
	if (asprintf(ret, "%s/%s", folder, slash ? slash + 1 : path) < 0) {
		*ret = NULL;
		r = -ENOMEM;
	}
	return r;
}

void gpus_take_back(struct live *l, uint32_t which)
{
	const struct live_job *p = &l->live[which];
	_cleanup_free_ char *path = NULL, *name = NULL;
	struct err err = { 0 };
	size_t k = 0;

	while (l->c.gpu_server && k < p->n_held && !p->held[k].gpus)
		k++;
	if (!l->c.gpu_server || k == p->n_held)
		return;
	path = server_of(l, p->held[k].node);
	name = name_of(l, which);
	if (path && name && gpud_regrant(path, name, NULL, 0, &err) == 0)
		return;
	progress_end(&l->bar);
	log_warn("job %s: its grant is not ended: %s", l->run.jobs[which].name,
		 err.text);
}

static void clean_server(struct live *l, const char *path)
{
	for (size_t i = 0; i < l->run.n_active; i++) {
		uint32_t which = l->run.active[i];
		_cleanup_free_ char *name = name_of(l, which);
		struct err err = { 0 };

		if (l->live[which].process.state == PROCESS_NONE && name &&
		    gpud_regrant(path, name, NULL, 0, &err) < 0)
			log_warn("%s: the grant of job %s is not ended: %s",
				 path, l->run.jobs[which].name, err.text);
	}
}

void gpus_clean(struct live *l)
{
	uint32_t n = l->c.gpu_server ? (uint32_t)l->run.cluster.n : 0;

	for (uint32_t i = 0; i < n; i++) {
		_cleanup_free_ char *path = server_of(l, i);

		if (path)
			clean_server(l, path);
		if (!is_of_node(l))
			break; /* one is for all */
	}
}
