/* SPDX-License-Identifier: MIT */
/*
 * The way of a read, file by file, seen by the compiler's instrumentation of
 * all functions of fs: each station is entered once on the way down and once on
 * the way up, and no other file. Objects, handles, memory and the file of the
 * trace are tools of the stations, not stations.
 */
#include "tests/contract/server_rig.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "fs/layer/trace.h"

enum { MOST_CALLS = 1 << 16, DEPTH = 64, TEXT = 600 };

/* --- what was called ------------------------------------------------------ */

struct call {
	void *function; /* NULL: the current function returned */
	pthread_t thread;
};

/* of all functions below */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct call calls[MOST_CALLS];
static size_t n_calls;
static bool watches;

static void note(void *function)
{
	pthread_mutex_lock(&lock);
	if (watches && n_calls < MOST_CALLS)
		calls[n_calls++] = (struct call){ function, pthread_self() };
	pthread_mutex_unlock(&lock);
}

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site)
{
	(void)site;
	note(function);
}

void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function;
	(void)site;
	note(NULL);
}

/* --- where that is -------------------------------------------------------- */

struct place {
	void *function;
	char name[64], file[64];
};

static struct place places[1000];
static size_t n_places;

static int find_base(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uintptr_t *)base = info->dlpi_addr;
	return 1; /* the program is the first */
}

/* By addr2line(1). */
static void look_up(struct place *p)
{
	char command[400], exe[200] = "", line[300];
	uintptr_t base = 0;
	char *at;
	FILE *f;

	dl_iterate_phdr(find_base, &base);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	snprintf(command, sizeof(command), "addr2line -f -e %s %#lx", exe,
		 (unsigned long)((uintptr_t)p->function - base));
	f = popen(command, "r");
	assert_non_null(f);
	if (!fgets(p->name, sizeof(p->name), f) ||
	    !fgets(line, sizeof(line), f))
		fail_msg("%s: no answer", command);
	pclose(f);
	p->name[strcspn(p->name, "\n")] = 0;
	line[strcspn(line, ":\n")] = 0;
	at = strrchr(line, '/');
	snprintf(p->file, sizeof(p->file), "%.60s", at ? at + 1 : line);
}

static const struct place *place_of(void *function)
{
	size_t i = 0;

	while (i < n_places && places[i].function != function)
		i++;
	if (i == n_places) {
		assert_true(i < ARRAY_SIZE(places));
		places[n_places++].function = function;
		look_up(&places[i]);
	}
	return &places[i];
}

/* --- the way -------------------------------------------------------------- */

static bool is_station(const struct place *p)
{
	static const char *const tools[] = { "object.c", "handle.c", "budget.c",
					     "gate.c",	 "tree.c",   "trace.c",
					     "fault.c" };
	size_t n = strlen(p->file);

	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (!strcmp(p->file, tools[i]))
			return false;
	return n > 2 && !strcmp(p->file + n - 2, ".c");
}

struct thread {
	pthread_t id;
	const struct place *in[DEPTH];
	size_t depth;
};

/* The station that the thread is in; NULL: none. The work of a group for its
 * other members is not part of this read's way: "" */
static const char *station_of(const struct thread *t)
{
	const char *file = NULL;

	for (size_t i = 0; i < t->depth; i++) {
		if (!strcmp(t->in[i]->name, "fetch_group"))
			return "";
		if (is_station(t->in[i]))
			file = t->in[i]->file;
	}
	return file;
}

static struct thread *thread_of(struct thread threads[], pthread_t id)
{
	struct thread *t = threads;

	while (t->id && !pthread_equal(t->id, id))
		t++;
	t->id = id;
	return t;
}

/* The stations in the order in which they were entered from another one, or
 * from outside: "server read ...". */
static void tell_way(char text[TEXT])
{
	struct thread threads[16] = { 0 };

	text[0] = 0;
	assert_true(n_calls < MOST_CALLS);
	for (size_t i = 0; i < n_calls; i++) {
		struct thread *t = thread_of(threads, calls[i].thread);
		const char *before = station_of(t), *now;

		if (!calls[i].function) {
			t->depth -= t->depth > 0;
			continue;
		}
		assert_true(t->depth < DEPTH);
		t->in[t->depth++] = place_of(calls[i].function);
		now = station_of(t);
		if (now && *now && (!before || strcmp(before, now))) {
			size_t n = strlen(text);

			snprintf(text + n, TEXT - n, "%s%.*s", n ? " " : "",
				 (int)strcspn(now, "."), now);
		}
	}
}

static void watch(bool on)
{
	pthread_mutex_lock(&lock);
	if (on)
		n_calls = 0;
	watches = on;
	pthread_mutex_unlock(&lock);
}

static void check_way(const char *want)
{
	char text[TEXT];

	watch(false);
	tell_way(text);
	if (strcmp(text, want))
		fail_msg("the way was\n\t%s\nnot\n\t%s", text, want);
}

/* --- tests ---------------------------------------------------------------- */

/* The open, the close and the thread that answers are outside of it. */
static void read_watched(struct fixture *f, struct server *s, int i)
{
	struct wait w;

	wait_init(&w, malloc(MAX_BYTES));
	w.request = (struct read_request){ .handle = server_open(s, f->node[i]),
					   .bytes = MAX_BYTES,
					   .arrival = tick_now(f->tick),
					   .client = &w,
					   .reply = wait_reply };
	watch(true);
	server_read(s, &w.request);
	wait_for(&w);
	/* the thread that answered is on its way out */
	tick_pause(20 * NS_PER_MS);
	watch(false);
	rig_end_read(f, s, &w, i);
}

/* A device of constant latency: the timing thread answers. */
static struct server *start(struct fixture *f)
{
	char path[] = "/tmp/gpemu-way-XXXXXX.yaml";
	int fd = mkstemps(path, 5);
	struct server *s;

	assert_true(fd >= 0);
	dprintf(fd, "name: slow\nsource: a test\nread:\n  source: a test\n"
		    "  latency: {kind: const, value: 50ms}\n");
	close(fd);
	s = rig_start(f, "lru", path);
	unlink(path);
	/* its threads begin */
	tick_pause(20 * NS_PER_MS);
	return s;
}

#define ANSWERED "read layer_trace stack"
#define STARTED "layer_device fetch source_synth"
#define DONE "fetch flight " ANSWERED

static void of_a_miss_and_a_hit(void **state)
{
	struct server *s = start(*state);

	read_watched(*state, s, 0);
	check_way("server layer_fault read layer_cache layer_source "
		  "flight " STARTED " " DONE);
	read_watched(*state, s, 0);
	check_way("server layer_fault read layer_cache layer_trace stack");
	server_free(s);
}

static void of_a_miss_in_a_group(void **state)
{
	struct fixture *f = *state;
	struct group_map *map;
	struct err err = { 0 };
	struct server *s;

	assert_int_equal(
		group_map_new(&f->tree, 4, "sequential", 1, &map, &err), 0);
	f->groups = map;
	s = start(f);
	read_watched(f, s, 0);
	/* a reader thread reads the members: source_synth once for each */
	check_way("server layer_fault read layer_cache layer_group "
		  "layer_source flight layer_device fetch "
		  "fetch source_synth source_synth source_synth source_synth "
		  "fetch layer_group flight " ANSWERED);
	server_free(s);
	f->groups = NULL;
	group_map_free(map);
}

static void with_a_fault(void **state)
{
	struct server *s = start(*state);

	rig_add(s, "op=read,count=1,errno=EIO");
	read_watched(*state, s, 0);
	check_way("server layer_fault layer_trace stack");
	rig_add(s, "op=read,delay=20ms");
	read_watched(*state, s, 0);
	/* its timer enters the fault once more; the bytes are not made up by
	 * the timing thread, but by a reader */
	check_way("server layer_fault fetch "
		  "fetch layer_fault read layer_cache layer_source flight "
		  "layer_device fetch "
		  "fetch source_synth " DONE);
	server_free(s);
}

static void without_a_layer(void **state)
{
	struct fixture *f = *state;
	struct server *s;

	f->layers = "cache,device,source";
	s = start(f);
	read_watched(f, s, 0);
	check_way("server read layer_cache layer_source flight " STARTED
		  " fetch flight read stack");
	read_watched(f, s, 0);
	check_way("server read layer_cache stack");
	server_free(s);
	f->layers = NULL;
}

static int setup(void **state)
{
	struct fixture *f;
	struct err err = { 0 };

	if (system("addr2line --version >/dev/null 2>&1")) {
		fprintf(stderr, "skipped: addr2line is not installed\n");
		exit(77);
	}
	rig_setup(state);
	f = *state;
	return trace_new(&(struct trace_config){ .path = "/dev/null",
						 .tree = &f->tree,
						 .tick = f->tick },
			 &f->trace, &err);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	trace_free(f->trace);
	return rig_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_miss_and_a_hit),
		cmocka_unit_test(of_a_miss_in_a_group),
		cmocka_unit_test(with_a_fault),
		cmocka_unit_test(without_a_layer),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
