/* SPDX-License-Identifier: MIT */
#include "fs/setup/setup.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/layer/layer_fault.h"
#include "fs/layer/trace.h"
#include "fs/server/object.h"
#include "fs/server/server.h"

/* Warns about links that are still links. */
static void report_links(const struct tree *t, const char *spec)
{
	const struct tree_links *l = &t->links;
	char path[PATH_MAX];

	if (!tree_links_left(l))
		return;
	if (tree_path(t, l->first, path, sizeof(path)) < 0)
		snprintf(path, sizeof(path), "%s", tree_name(t, l->first));
	log_warn("%s: symbolic links not followed: %" PRIu64
		 " dangling, %" PRIu64
		 " in a loop or to one folder too often, %" PRIu64
		 " to targets outside --follow-links, which are read past this "
		 "mount; the first is %s",
		 spec, l->dangling, l->loops, l->outside, path);
}

int setup_source(struct setup *s, const char *spec, bool shared,
		 const char *follow, struct err *err)
{
	const char *arg;
	int r;

	s->source = source_of(spec, &arg, err);
	if (!s->source)
		return -EINVAL;
	s->source_state = calloc(1, s->source->plugin.state_size);
	if (!s->source_state || tree_init(&s->tree) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	s->tree.follow = follow;
	s->tree.shared = shared;
	r = s->source->init(s->source_state, arg, err);
	if (r == 0)
		r = s->source->scan(s->source_state, &s->tree, err);
	if (r == 0 && s->source->prepare)
		r = s->source->prepare(s->source_state, err);
	if (r == 0 && !s->tree.n_files)
		log_warn("%s: contains no files", spec);
	report_links(&s->tree, spec);
	if (s->tree.n_hidden)
		log_warn("%s: its own " TREE_CONTROL_NAME " is hidden by ours",
			 spec);
	return r;
}

/* Is the path `inner` in the folder `outer`, or the same? */
static bool is_in(const char *inner, const char *outer)
{
	_cleanup_free_ char *a = realpath(inner, NULL);
	_cleanup_free_ char *b = realpath(outer, NULL);
	size_t n = b ? strlen(b) : 0;

	if (n == 1) /* the root */
		n = 0;
	return a && b && !strncmp(a, b, n) && (!a[n] || a[n] == '/');
}

bool setup_overlap(const char *a, const char *b)
{
	return is_in(a, b) || is_in(b, a);
}

int setup_check_writable(const struct setup *s, const char *dir,
			 const char *spec, struct err *err)
{
	const char *source;

	source_of(spec, &source, NULL);
	if (!strcmp(s->source->plugin.name, "synth") || /* has no path */
	    !setup_overlap(dir, source))
		return 0;
	return err_set(err, -EINVAL,
		       "--writable %s: it and the dataset %s must not "
		       "contain each other",
		       dir, source);
}

static int start_groups(struct setup *s, const struct setup_options *o,
			uint64_t seed, struct err *err)
{
	const struct conf_field field = { "group", CONF_UINT, 0,
					  .max = UINT32_MAX - 1 };
	uint64_t size = 0;

	if (strcmp(o->group, "auto") &&
	    conf_set(&field, &size, o->group, err) < 0) {
		err_prefix(err, "--group");
		return -EINVAL;
	}
	if (size == 1)
		return 0;
	if (size == 0)
		return group_map_of_source(s->source, s->source_state, &s->tree,
					   &s->groups, err);
	return group_map_new(&s->tree, (uint32_t)size, o->group_order, seed,
			     &s->groups, err);
}

/* Warns when the default cache size is reduced to fit the memory. */
static void report_capacity(const struct setup *s,
			    const struct setup_options *o)
{
	unsigned n;
	uint64_t has = server_capacity(s->server, &n);
	/* each cache of --layers has this size */
	uint64_t want =
		n * units_capacity_bytes(&o->fs.cache_size, s->tree.file_bytes);
	char wants[UNITS_TEXT], gets[UNITS_TEXT];

	if (o->fs.tiers.n || !o->fs.cache_size.yields || !has || has >= want)
		return;
	log_warn("the %s %s, half of the memory; 35%% of the dataset%s would "
		 "be %s (set --cache-size)",
		 n > 1 ? "caches have" : "cache has",
		 units_human_size((double)has, gets), n > 1 ? " for each" : "",
		 units_human_size((double)want, wants));
}

/* Warns about files that do not fit into the staging buffer. */
static void report_prefetch(const struct setup *s, uint64_t prefetch)
{
	uint64_t largest = 0, n = 0;
	char size[UNITS_TEXT], least[UNITS_TEXT];

	for (uint32_t i = 0; prefetch && i < s->tree.n_nodes; i++) {
		const struct tree_node *node = &s->tree.nodes[i];
		uint64_t bytes = MIN(node->bytes, OBJECT_EXTENT);

		if (!S_ISREG(node->mode) || bytes <= prefetch)
			continue;
		largest = MAX(largest, bytes);
		n++;
	}
	if (n)
		log_warn("--prefetch %s has no room for %" PRIu64 " of %" PRIu64
			 " files, which are not fetched ahead: give at least "
			 "%s",
			 units_exact_size(prefetch, size), n, s->tree.n_files,
			 units_exact_size(largest, least));
}

static int start_trace(struct setup *s, const char *path, uint64_t seed,
		       struct err *err)
{
	struct trace_config t = {
		.path = path, .tree = &s->tree, .tick = s->tick, .seed = seed
	};

	return path ? trace_new(&t, &s->trace, err) : 0;
}

static int start_server(struct setup *s, const struct setup_options *o,
			const struct setup_more *more, struct err *err)
{
	struct server_config c = {
		.tick = s->tick,
		.source = s->source,
		.source_state = s->source_state,
		.tree = &s->tree,
		.storage = o->fs.storage,
		.cache_policy = o->fs.cache_policy,
		.cache_size = o->fs.cache_size,
		.tiers = &s->tiers,
		.admit = fs_config_admit(&o->fs),
		.bytes_in_source = !strcmp(o->cache_bytes, "source"),
		.cache_metadata = o->fs.cache_metadata,
		.seed = more->seed,
		.layers = o->layers,
		.groups = s->groups,
		.trace = s->trace,
		.peers = more->peers,
		.group_buffer = o->group_buffer,
		.prefetch_bytes = o->fs.prefetch,
		.prefetch_depth = o->fs.prefetch_depth,
		.memory = o->memory,
		.writable_scale = more->writable_scale,
		.is_store = more->is_store,
	};

	return server_new(&c, &s->server, err);
}

int setup_server(struct setup *s, const struct setup_options *o,
		 const struct setup_more *more, struct err *err)
{
	int r = start_groups(s, o, more->seed, err);

	if (r < 0)
		return r;
	s->tick = tick_new(o->time_scale, o->spin);
	if (!s->tick)
		return err_set(err, -ENOMEM, "out of memory");
	if (o->keep_awake)
		tick_keep_awake(s->tick); /* where permitted */
	r = start_trace(s, o->trace, more->seed, err);
	if (r == 0)
		r = fs_config_tiers(&o->fs, &s->tiers, err);
	if (r == 0)
		r = start_server(s, o, more, err);
	if (r < 0)
		return r;
	report_capacity(s, o);
	report_prefetch(s, o->fs.prefetch);
	for (size_t i = 0; r == 0 && i < o->faults.n; i++)
		r = server_fault_add(s->server, ((char **)o->faults.items)[i],
				     err);
	return r;
}

void setup_fini(struct setup *s)
{
	server_free(s->server);
	tiers_fini(&s->tiers);
	trace_free(s->trace);
	if (s->source_state)
		s->source->fini(s->source_state);
	free(s->source_state);
	group_map_free(s->groups);
	tree_fini(&s->tree);
	tick_free(s->tick);
}
