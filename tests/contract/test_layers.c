/* SPDX-License-Identifier: MIT */
/*
 * Every registered layer in stacks with probes (layer_probe.c) in all gaps: the
 * whole stack, the stack without each optional layer, and with each layer twice
 * that may occur twice.
 */
#include "fs/server/stack.h"
#include "tests/contract/peer_rig.h"
#include "tests/contract/tested.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/memory.h"
#include "common/units.h"
#include "common/util.h"
#include "fs/layer/trace.h"
#include "fs/server/layer.h"

enum { MOST_STACKS = 32, MOST_PARTS = 32, STACK_TEXT = 400, GROUP_OF = 4 };

static char stacks[MOST_STACKS][STACK_TEXT];
static size_t n_stacks;
/* What they are made of, no probes. */
static const struct plugin *parts[MOST_PARTS];
static size_t n_parts;

/* --- the stacks ----------------------------------------------------------- */

static const struct layer_ops *ops_of(const struct plugin *p)
{
	return container_of(p, const struct layer_ops, plugin);
}

static bool is_probe(const struct plugin *p)
{
	return !strncmp(p->name, "probe_", 6);
}

static void put(char *text, const char *word)
{
	if (*text)
		strcat(text, ",");
	strcat(text, word);
	assert_true(strlen(text) < STACK_TEXT - 20);
}

/* Rank by rank, a probe above each. `left_out` is omitted, `twice` occurs
 * twice. */
static void make_stack(const struct plugin *left_out,
		       const struct plugin *twice)
{
	static const char *const probes[] = { "probe_request", "probe_ahead",
					      "probe_cache",   "probe_fetch",
					      "probe_device",  "probe_device" };
	char *text = stacks[n_stacks++];

	assert_true(n_stacks < MOST_STACKS);
	for (int rank = 0; rank <= LAYER_SOURCE; rank++) {
		for (size_t i = 0; i < n_parts; i++) {
			const struct plugin *p = parts[i];

			if ((int)ops_of(p)->rank != rank || p == left_out)
				continue;
			put(text, probes[rank]);
			put(text, p->name);
			if (p != twice)
				continue;
			put(text, probes[rank]);
			put(text, p->name);
		}
	}
}

/* `tested`: all layers, or one more, which no stack is without. */
static void make_stacks(const struct plugin *const tested[])
{
	for (size_t i = 0; layer_table[i]; i++)
		if (!is_probe(layer_table[i]))
			parts[n_parts++] = layer_table[i];
	if (tested != layer_table)
		parts[n_parts++] = *tested;
	make_stack(NULL, NULL);
	for (size_t i = 0; i < n_parts; i++) {
		bool is_tested = tested != layer_table && parts[i] == *tested;

		if (!ops_of(parts[i])->needed && !is_tested)
			make_stack(parts[i], NULL);
		if (ops_of(parts[i])->many)
			make_stack(NULL, parts[i]);
	}
}

static bool has_layer(const char *stack, const char *word)
{
	size_t n = strlen(word);
	const char *at = stack;

	while ((at = strstr(at, word))) {
		if ((at == stack || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
		at += n;
	}
	return false;
}

/* --- reads that are looked at --------------------------------------------- */

struct seen {
	struct read_request request;
	int n_replies, error, place;
	size_t got;
	unsigned char *into;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static int n_replies;

static void reply(struct read_request *r, int error, const struct iovec *iov,
		  int n_iov)
{
	struct seen *w = container_of(r, struct seen, request);

	for (int i = 0; i < n_iov; i++) {
		memcpy(w->into + w->got, iov[i].iov_base, iov[i].iov_len);
		w->got += iov[i].iov_len;
	}
	pthread_mutex_lock(&lock);
	w->error = error;
	w->n_replies++;
	w->place = n_replies++;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

static void start_all(struct fixture *f, struct server *s,
		      struct seen w[N_FILES])
{
	n_replies = 0;
	for (int i = 0; i < N_FILES; i++) {
		w[i] = (struct seen){
			.request = { .handle = server_open(s, f->node[i]),
				     .bytes = MAX_BYTES,
				     .arrival = tick_now(f->tick),
				     .client = &w[i],
				     .reply = reply },
			.into = malloc(MAX_BYTES)
		};
		server_read(s, &w[i].request);
	}
}

static void wait_for_all(void)
{
	pthread_mutex_lock(&lock);
	while (n_replies < N_FILES)
		pthread_cond_wait(&wake, &lock);
	pthread_mutex_unlock(&lock);
}

/* Each was answered once, with its bytes or an error. */
static void check_all(struct fixture *f, struct server *s,
		      struct seen w[N_FILES])
{
	for (int i = 0; i < N_FILES; i++) {
		assert_int_equal(w[i].n_replies, 1);
		assert_int_equal(w[i].got, w[i].error ? 0 : f->bytes[i]);
		assert_memory_equal(w[i].into, f->content[i], w[i].got);
		free(w[i].into);
		server_close(s, w[i].request.handle);
	}
}

static void read_all(struct fixture *f, struct server *s,
		     struct seen w[N_FILES])
{
	start_all(f, s, w);
	wait_for_all();
	check_all(f, s, w);
}

/* --- their books ---------------------------------------------------------- */

static json_int_t number(json_t *part, const char *name)
{
	return json_integer_value(json_object_get(part, name));
}

static bool is(json_t *part, const char *layer)
{
	return !strcmp(json_string_value(json_object_get(part, "layer")),
		       layer);
}

/* The counts of a probe equal those of the layer below it; `n_reads` in all. */
static void check_books(struct server *s, json_int_t n_reads)
{
	json_int_t evictions = 0;
	json_t *layers, *part;
	size_t i;

	/* the bytes of an answer are freed shortly after the reply */
	while (rig_stat(s, "inflight_bytes"))
		sched_yield();
	json_auto_t *stats = server_stats(s);

	layers = json_object_get(stats, "layers");

	assert_int_equal(number(stats, "hits") + number(stats, "misses"),
			 n_reads);
	assert_int_equal(number(stats, "inflight"), 0);
	json_array_foreach (layers, i, part) {
		json_t *above = i ? json_array_get(layers, i - 1) : NULL;

		assert_int_equal(number(part, "probe_reads"),
				 number(part, "probe_answers"));
		evictions += number(part, "evictions");
		if (is(part, "cache"))
			assert_int_equal(number(part, "hits") +
						 number(part, "misses"),
					 number(above, "probe_asks"));
		if (is(part, "device"))
			assert_int_equal(number(part, "backend_reads"),
					 number(above, "probe_starts"));
	}
	assert_int_equal(evictions, number(stats, "evictions"));
}

/* --- checks of one stack -------------------------------------------------- */

static struct server *start(struct fixture *f, const char *stack,
			    const char *policy, const char *storage)
{
	f->layers = stack;
	return rig_start(f, policy, storage);
}

/* `nets`: of the peers that the two servers are, or NULL. */
static void check_reads(struct fixture *f, const char *stack,
			const char *policy, const struct peer_net *nets)
{
	static const char *const storages[] = { "ideal", "nvme" };
	/* two at once: nothing is shared, unless they are peers */
	struct server *s[2];
	struct seen w[N_FILES];

	for (int k = 0; k < 2; k++) {
		f->peers = nets ? &nets[k] : NULL;
		s[k] = start(f, stack, policy, storages[k]);
	}
	f->peers = NULL;

	for (int pass = 1; pass <= 3; pass++) {
		for (int k = 0; k < 2; k++) {
			read_all(f, s[k], w);
			check_books(s[k], pass * N_FILES);
			for (int i = 0; i < N_FILES; i++)
				assert_int_equal(w[i].error, 0);
		}
	}
	if (has_layer(stack, "cache") && strcmp(policy, "none"))
		assert_int_equal(rig_stat(s[0], "misses"),
				 f->groups && has_layer(stack, "group")
					 ? N_FILES / GROUP_OF
					 : N_FILES);
	assert_int_equal(server_reset(s[0], NULL), 0);
	check_books(s[0], 0);
	server_free(s[0]);
	server_free(s[1]);
}

/* In turn, as the device has them: after a time by which all have started. */
static void check_order(struct fixture *f, const char *stack)
{
	char path[] = "/tmp/gpemu-layers-XXXXXX.yaml";
	int fd = mkstemps(path, 5);
	struct seen w[N_FILES];
	struct server *s;

	assert_true(fd >= 0);
	dprintf(fd, "name: slow\nsource: a test\nread:\n  source: a test\n"
		    "  latency: {kind: const, value: 300ms}\n");
	close(fd);
	s = start(f, stack, "lru", path);
	unlink(path);
	for (int pass = 0; pass < 2; pass++) {
		read_all(f, s, w);
		for (int i = 0; i < N_FILES; i++)
			assert_int_equal(w[i].place, i);
	}
	server_free(s);
}

static struct source_ops failing;
static const struct source_ops *whole;
static bool fails; /* atomic */

static int fail_odd(void *state, const struct tree *tree, uint32_t node,
		    void *buf, size_t n, uint64_t offset, bool nowait)
{
	if (__atomic_load_n(&fails, __ATOMIC_RELAXED) && node % 2)
		return -EIO;
	return whole->read(state, tree, node, buf, n, offset, nowait);
}

/* An error comes up unchanged, and leaves nothing cached. */
static void check_errors(struct fixture *f, const char *stack)
{
	struct seen w[N_FILES];
	struct server *s;

	whole = f->source;
	failing = *f->source;
	failing.read = fail_odd;
	f->source = &failing;
	s = start(f, stack, "lru", "ideal");
	for (int pass = 1; pass <= 3; pass++) {
		__atomic_store_n(&fails, pass < 3, __ATOMIC_RELAXED);
		read_all(f, s, w);
		for (int i = 0; i < N_FILES; i++)
			assert_int_equal(w[i].error,
					 pass < 3 && f->node[i] % 2 ? -EIO : 0);
		check_books(s, pass * N_FILES);
	}
	server_free(s);
	f->source = whole;
}

/* A layer's answer goes up from that layer. */
static void check_faults(struct fixture *f, const char *stack)
{
	struct server *s = start(f, stack, "lru", "ideal");
	struct seen w[N_FILES];

	rig_add(s, "op=read,every=4,errno=EACCES");
	read_all(f, s, w);
	for (int i = 0; i < N_FILES; i++)
		assert_int_equal(w[i].error, i % 4 == 3 ? -EACCES : 0);
	check_books(s, N_FILES - N_FILES / 4);
	assert_int_equal(server_fault_clear(s, 0, NULL), 0);
	rig_add(s, "op=read,delay=2ms");
	read_all(f, s, w);
	check_books(s, 2 * N_FILES - N_FILES / 4);
	server_free(s);
}

static void check_end(struct fixture *f, const char *stack, const char *policy)
{
	struct server *s = start(f, stack, policy, "hdd");
	struct seen w[N_FILES];

	if (has_layer(stack, "fault"))
		rig_add(s, "op=read,every=5,stuck");
	start_all(f, s, w);
	server_stop(s);
	assert_int_equal(n_replies, N_FILES);
	for (int i = 0; i < N_FILES; i++)
		assert_true(w[i].error == 0 || w[i].error == -ECONNABORTED);
	check_all(f, s, w);
	server_free(s);
}

/* --- tests ---------------------------------------------------------------- */

/* `check` on each stack, with groups and without. */
static void every_stack(struct fixture *f,
			void (*check)(struct fixture *f, const char *stack))
{
	struct group_map *map;
	struct err err = { 0 };

	for (size_t i = 0; i < n_stacks; i++)
		check(f, stacks[i]);
	assert_int_equal(group_map_new(&f->tree, GROUP_OF, "sequential", 1,
				       &map, &err),
			 0);
	f->groups = map;
	for (size_t i = 0; i < n_stacks; i++)
		if (has_layer(stacks[i], "group"))
			check(f, stacks[i]);
	f->groups = NULL;
	group_map_free(map);
}

static void reads_of(struct fixture *f, const char *stack)
{
	check_reads(f, stack, "lru", NULL);
	check_reads(f, stack, "none", NULL);
}

static void reads_are_answered_and_counted(void **state)
{
	every_stack(*state, reads_of);
}

/* Each reads all, so some objects come from the other one. */
static void reads_of_peers(void **state)
{
	struct peer_net nets[2];

	nets_init(nets, 2, 20 * NS_PER_S);
	for (size_t i = 0; i < n_stacks; i++)
		check_reads(*state, stacks[i], "lru", nets);
	nets_fini(nets, 2);
}

static void answers_come_in_the_order_of_the_device(void **state)
{
	for (size_t i = 0; i < n_stacks; i++)
		check_order(*state, stacks[i]);
}

static void errors_come_up_and_leave_nothing(void **state)
{
	every_stack(*state, check_errors);
}

static void faults_of(struct fixture *f, const char *stack)
{
	if (has_layer(stack, "fault"))
		check_faults(f, stack);
}

static void what_a_layer_answers_goes_up_from_there(void **state)
{
	every_stack(*state, faults_of);
}

static void end_of(struct fixture *f, const char *stack)
{
	check_end(f, stack, "lru");
	check_end(f, stack, "none");
}

static void what_is_pending_at_the_end_is_answered_once(void **state)
{
	every_stack(*state, end_of);
}

static void a_stack_that_makes_no_sense_is_refused(void **state)
{
	static const struct {
		const char *words, *why;
	} bad[] = {
		{ "trace,nonsense,device,source", "nonsense" },
		{ "device,cache,source",
		  "'cache' cannot stand below 'device'" },
		{ "cache,fault,device,source",
		  "'fault' cannot stand below 'cache'" },
		{ "group,cache,device,source",
		  "'cache' cannot stand below 'group'" },
		{ "fault,fault,device,source", "'fault' is listed twice" },
		{ "cache,device", "the layer 'source' is required" },
		{ "cache,source", "the layer 'device' is required" },
		{ "", "is required" },
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct err){ 0 };
		assert_int_equal(stack_check_layers(bad[i].words, &err),
				 -EINVAL);
		if (!strstr(err.text, bad[i].why))
			fail_msg("%s: %s", bad[i].words, err.text);
	}
	assert_int_equal(stack_check_layers(LAYERS_DEFAULT, &err), 0);
	assert_int_equal(stack_check_layers("fault,trace,device,source", &err),
			 0);
}

static void no_fault_without_its_layer(void **state)
{
	struct server *s = start(*state, "cache,device,source", "lru", "ideal");
	struct err err = { 0 };

	assert_int_equal(server_fault_add(s, "stuck", &err), -EINVAL);
	assert_non_null(strstr(err.text, "'fault'"));
	assert_int_equal(server_fault_clear(s, 0, NULL), -EINVAL);
	assert_false(server_watches(s, TREE_NONE));
	server_free(s);
}

/* Nothing would check whether the policy exists. */
static void no_policy_without_a_cache(void **state)
{
	struct server *s = start(*state, "device,source", "lru", "ideal");
	struct units_capacity size = { .fraction = 1 };
	struct seen w[N_FILES];
	struct err err = { 0 };

	read_all(*state, s, w);
	assert_int_equal(server_set_cache(s, "nonsense", &size, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'cache'"));
	assert_int_equal(rig_stat(s, "epoch"), 0);
	assert_int_equal(server_drop_cache(s, NULL), 0);
	server_free(s);
}

/* Three equal caches: the stats add them up, and each has its own hits. */
static void caches_stand_one_below_the_other(void **state)
{
	struct fixture *f = *state;
	struct server *s =
		start(f, "cache,cache,cache,device,source", "lru", "ideal");
	struct seen w[N_FILES];

	for (int pass = 0; pass < 3; pass++)
		read_all(f, s, w);
	json_auto_t *stats = server_stats(s);
	json_t *layers = json_object_get(stats, "layers");

	assert_int_equal(json_array_size(layers), 5);
	for (size_t i = 0; i < 3; i++) {
		json_t *part = json_array_get(layers, i);

		assert_int_equal(number(part, "misses"), N_FILES);
		assert_int_equal(number(part, "hits"), i ? 0 : 2 * N_FILES);
		assert_int_equal(number(part, "objects"), N_FILES);
	}
	assert_int_equal(number(stats, "misses"), N_FILES);
	assert_int_equal(number(stats, "objects"), 3 * N_FILES);
	assert_int_equal(number(stats, "backend_reads"), N_FILES);
	server_free(s);
}

static void caches_share_the_memory(void **state)
{
	static const char *const all[] = { "cache,device,source",
					   "cache,cache,device,source" };
	const struct units_capacity size = { .fraction = -1,
					     .bytes = memory_limit() };

	for (int i = 0; i < 2; i++) {
		struct server *s = start(*state, all[i], "lru", "ideal");

		assert_int_equal(server_set_cache(s, "fifo", &size, NULL),
				 i ? -EINVAL : 0);
		server_free(s);
	}
}

static int setup(void **state)
{
	struct err err = { 0 };
	struct fixture *f;

	rig_setup(state);
	f = *state;
	f->prefetch = 2 * MAX_BYTES;
	struct trace_config c = { .path = "/dev/null",
				  .tree = &f->tree,
				  .tick = f->tick };

	assert_int_equal(trace_new(&c, &f->trace, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	trace_free(f->trace);
	return rig_teardown(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_are_answered_and_counted),
		cmocka_unit_test(reads_of_peers),
		cmocka_unit_test(answers_come_in_the_order_of_the_device),
		cmocka_unit_test(errors_come_up_and_leave_nothing),
		cmocka_unit_test(what_a_layer_answers_goes_up_from_there),
		cmocka_unit_test(what_is_pending_at_the_end_is_answered_once),
	};
	const struct CMUnitTest of_stacks[] = {
		cmocka_unit_test(a_stack_that_makes_no_sense_is_refused),
		cmocka_unit_test(no_fault_without_its_layer),
		cmocka_unit_test(no_policy_without_a_cache),
		cmocka_unit_test(caches_stand_one_below_the_other),
		cmocka_unit_test(caches_share_the_memory),
	};
	const struct plugin *const *tested =
		tested_parts(argc, argv, layer_table);
	int n_failed;

	make_stacks(tested);
	n_failed = cmocka_run_group_tests(tests, setup, teardown);
	return tested != layer_table
		       ? n_failed
		       : n_failed + cmocka_run_group_tests(of_stacks, setup,
							   teardown);
}
