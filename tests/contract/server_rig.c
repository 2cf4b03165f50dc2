/* SPDX-License-Identifier: MIT */
#include "tests/contract/server_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/util.h"

int rig_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	const struct plugin *p =
		plugin_find(source_table, "source", "synth", &err);
	const struct source_ops *source;
	int n = 0, r;

	*state = f; /* the tear-down comes even if this ends here */
	assert_non_null(p);
	source = container_of(p, const struct source_ops, plugin);
	f->source_state = calloc(1, p->state_size);
	assert_int_equal(tree_init(&f->tree), 0);
	r = source->init(f->source_state,
			 "imagenette,files=20,classes=2,content=random", &err);
	f->source = source;
	if (r < 0 || f->source->scan(f->source_state, &f->tree, &err) < 0)
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < f->tree.n_nodes; i++) {
		if (!S_ISREG(f->tree.nodes[i].mode))
			continue;
		f->node[n] = i;
		f->bytes[n] = f->tree.nodes[i].bytes;
		assert_in_range(f->bytes[n], 1, MAX_BYTES);
		f->content[n] = malloc(f->bytes[n]);
		assert_int_equal(f->source->read(f->source_state, &f->tree, i,
						 f->content[n], f->bytes[n], 0,
						 false),
				 0);
		n++;
	}
	assert_int_equal(n, N_FILES);
	f->tick = tick_new(1, 0);
	return 0;
}

int rig_teardown(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < N_FILES; i++)
		free(f->content[i]);
	if (f->source)
		f->source->fini(f->source_state);
	free(f->source_state);
	tree_fini(&f->tree);
	tick_free(f->tick);
	free(f);
	return 0;
}

struct server *rig_start(struct fixture *f, const char *policy,
			 const char *storage)
{
	struct server_config c = {
		.tick = f->tick,
		.source = f->source,
		.source_state = f->source_state,
		.tree = &f->tree,
		.storage = storage,
		.cache_policy = policy,
		.cache_size = { .fraction = f->fraction ? f->fraction : 1 },
		.seed = 1,
		.layers = f->layers,
		.groups = f->groups,
		.tiers = f->tiers,
		.trace = f->trace,
		.peers = f->peers,
		.prefetch_bytes = f->prefetch,
		.prefetch_depth = 4,
		.memory = f->memory
	};
	struct err err = { 0 };
	struct server *s = NULL;

	if (server_new(&c, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

void rig_add(struct server *s, const char *rule)
{
	struct err err = { 0 };

	if (server_fault_add(s, rule, &err) < 0)
		fail_msg("%s", err.text);
}

json_int_t rig_stat(struct server *s, const char *name)
{
	json_auto_t *j = server_stats(s);

	return json_integer_value(json_object_get(j, name));
}

json_int_t rig_fault(struct server *s, size_t i, const char *name)
{
	json_auto_t *j = server_stats(s);
	json_t *fault = json_array_get(json_object_get(j, "faults"), i);

	assert_non_null(fault);
	return json_integer_value(json_object_get(fault, name));
}

/* --- operations --------------------------------------------------------- */

void rig_start_read(struct fixture *f, struct server *s, struct wait *w, int i)
{
	wait_init(w, malloc(MAX_BYTES));
	w->request =
		(struct read_request){ .handle = server_open(s, f->node[i]),
				       .bytes = MAX_BYTES,
				       .arrival = tick_now(f->tick),
				       .client = w,
				       .reply = wait_reply };
	server_read(s, &w->request);
}

/* 0 or -errno; checks the bytes. */
int rig_end_read(struct fixture *f, struct server *s, struct wait *w, int i)
{
	wait_for(w);
	if (!w->error) {
		assert_int_equal(w->got, f->bytes[i]);
		assert_memory_equal(w->into, f->content[i], w->got);
	}
	free(w->into);
	server_close(s, w->request.handle);
	return w->error;
}

int rig_read(struct fixture *f, struct server *s, int i)
{
	struct wait w;

	rig_start_read(f, s, &w, i);
	return rig_end_read(f, s, &w, i);
}

int rig_metadata(struct fixture *f, struct server *s, enum storage_op op, int i)
{
	struct wait w;

	wait_init(&w, NULL);
	w.fetch = (struct fetch){ .op = op,
				  .node = f->node[i],
				  .arrival = tick_now(f->tick),
				  .client = &w,
				  .done = wait_metadata };
	server_metadata(s, &w.fetch);
	wait_for(&w);
	return w.error;
}
