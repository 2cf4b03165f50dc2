/* SPDX-License-Identifier: MIT */
/*
 * A policy in Python: asks the script NAME.py next to this part's file, in a
 * process of its own, one for each cache. It is told what it need not answer
 * (inserted, hit, reweighed, removed) together with the next question (admit,
 * victim), so that a hit costs no switch of processes.
 *
 * A script that fails ends the program: a policy cannot fail.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/cache/policy.h"

extern const struct policy_ops policy_python;
extern char **environ;

enum what { START, ADMIT, INSERTED, HIT, REWEIGHED, REMOVED, VICTIM };

struct message {
	uint32_t what; /* enum what */
	uint32_t label;
	uint64_t slot;
	uint64_t key, bytes, file_bytes, next_use;
	double importance;
};

/* Of an entry. */
struct place {
	uint64_t slot;
};

enum { N_MESSAGES = 1024 };

struct python {
	pid_t pid;
	int fd;
	uint32_t hooks; /* a bit for each enum what that it has */
	struct policy_params params;
	struct cache_entry **held; /* by slot, as the script has them; NULL:
				    * free */
	uint64_t *unused;	   /* slots */
	uint64_t n_slots, n_unused, n_allocated;
	uint32_t n; /* messages that are not sent */
	struct message out[N_MESSAGES];
};

static _Noreturn void fail_python(const char *why)
{
	fprintf(stderr, "policy %s: %s\n", policy_python.plugin.name, why);
	fflush(stderr);
	_exit(1);
}

/* --- the script ----------------------------------------------------------- */

/* NAME.py next to this file, which is NAME.so or any other name. */
static int find_script(char *path, size_t n, struct err *err)
{
	Dl_info info;
	const char *slash;

	if (!dladdr(&policy_python, &info) || !info.dli_fname)
		return err_set(err, -EINVAL, "dladdr: no file");
	slash = strrchr(info.dli_fname, '/');
	if ((size_t)snprintf(path, n, "%.*s%s.py",
			     slash ? (int)(slash + 1 - info.dli_fname) : 0,
			     info.dli_fname, policy_python.plugin.name) >= n)
		return err_set(err, -ENAMETOOLONG, "%s", info.dli_fname);
	if (access(path, R_OK) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

/* The other end of `fd` is its only argument. */
static int start_script(struct python *s, const char *path, int fd)
{
	const char *chosen = getenv("GPEMU_PYTHON");
	char *python = strdup(chosen ? chosen : "python3");
	char *script = strdup(path);
	char number[] = "3";
	char *argv[] = { python, script, number, NULL };
	posix_spawn_file_actions_t actions;
	int r = python && script ? posix_spawn_file_actions_init(&actions)
				 : ENOMEM;

	if (r == 0) {
		/* a descriptor that is 3 already would stay close-on-exec */
		r = posix_spawn_file_actions_adddup2(&actions, fd, 0);
		if (r == 0)
			r = posix_spawn_file_actions_adddup2(&actions, 0, 3);
		if (r == 0)
			r = posix_spawn_file_actions_addopen(
				&actions, 0, "/dev/null", O_RDONLY, 0);
		/* what it prints is not the program's output */
		if (r == 0)
			r = posix_spawn_file_actions_adddup2(&actions, 2, 1);
		if (r == 0)
			r = posix_spawnp(&s->pid, python, &actions, NULL, argv,
					 environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	free(python);
	free(script);
	return -r;
}

static void send_all(struct python *s)
{
	const char *at = (const char *)s->out;
	size_t left = s->n * sizeof(*s->out);

	while (left) {
		ssize_t n = send(s->fd, at, left, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			fail_python("its script has ended");
		at += n;
		left -= (size_t)n;
	}
	s->n = 0;
}

static struct message *tell(struct python *s, enum what what)
{
	struct message *m;

	if (s->n == N_MESSAGES)
		send_all(s);
	m = &s->out[s->n++];
	*m = (struct message){ .what = what, .next_use = POLICY_NEVER };
	return m;
}

static uint64_t ask(struct python *s)
{
	uint64_t answer;
	ssize_t n;

	send_all(s);
	do
		n = recv(s->fd, &answer, sizeof(answer), MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(answer))
		fail_python("its script has failed");
	return answer;
}

/* --- hooks ---------------------------------------------------------------- */

static int python_init(void *state, const struct policy_params *params,
		       struct err *err)
{
	struct python *s = state;
	char path[4096];
	int fds[2], r;
	struct message *m;

	s->fd = -1;
	s->params = *params;
	if (params->live)
		return err_set(err, -EINVAL,
			       "a policy in Python is for simulations: every "
			       "read would wait for it");
	r = find_script(path, sizeof(path), err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return err_set(err, -errno, "socketpair: %s", strerror(errno));
	s->fd = fds[0];
	r = start_script(s, path, fds[1]);
	close(fds[1]);
	if (r < 0)
		return err_set(err, r, "python3 %s: %s", path, strerror(-r));
	m = tell(s, START);
	m->bytes = params->capacity_bytes;
	m->key = params->seed;
	s->hooks = (uint32_t)ask(s);
	return 0;
}

static void python_fini(void *state)
{
	struct python *s = state;

	if (s->fd >= 0)
		close(s->fd);
	if (s->pid > 0)
		waitpid(s->pid, NULL, 0);
	free(s->held);
	free(s->unused);
}

static void describe(const struct python *s, struct message *m, uint64_t key)
{
	const struct policy_params *p = &s->params;

	m->key = key;
	if (p->importance)
		m->importance = p->importance(p->importance_ctx, key);
	if (p->label)
		m->label = p->label(p->label_ctx, key);
}

static bool reserve(struct python *s)
{
	uint64_t n = s->n_allocated ? 2 * s->n_allocated : 256;
	void *held, *unused;

	if (s->n_unused || s->n_slots < s->n_allocated)
		return true;
	held = realloc(s->held, n * sizeof(*s->held));
	if (held)
		s->held = held;
	unused = realloc(s->unused, n * sizeof(*s->unused));
	if (unused)
		s->unused = unused;
	if (!held || !unused)
		return false;
	s->n_allocated = n;
	return true;
}

static bool python_admit(void *state, const struct cache_object *object,
			 struct cache_entry *ghost)
{
	struct python *s = state;
	struct message *m;

	(void)ghost;
	if (!reserve(s))
		return false;
	if (!(s->hooks & 1u << ADMIT))
		return true;
	m = tell(s, ADMIT);
	describe(s, m, object->key);
	m->bytes = object->bytes;
	m->file_bytes = object->file_bytes;
	m->next_use = object->next_use;
	return ask(s) != 0;
}

static void python_inserted(void *state, struct cache_entry *entry,
			    const struct cache_object *object)
{
	struct python *s = state;
	struct place *place = cache_entry_data(entry);
	struct message *m = tell(s, INSERTED);

	place->slot = s->n_unused ? s->unused[--s->n_unused] : s->n_slots++;
	s->held[place->slot] = entry;
	describe(s, m, entry->key);
	m->slot = place->slot;
	m->bytes = entry->bytes;
	m->file_bytes = object->file_bytes;
	m->next_use = object->next_use;
}

static void note(struct python *s, struct cache_entry *entry, enum what what,
		 uint64_t next_use)
{
	const struct place *place = cache_entry_data(entry);
	struct message *m = tell(s, what);

	describe(s, m, entry->key);
	m->slot = place->slot;
	m->next_use = next_use;
}

static void python_hit(void *state, struct cache_entry *entry,
		       uint64_t next_use)
{
	struct python *s = state;

	if (s->hooks & 1u << HIT)
		note(s, entry, HIT, next_use);
}

static void python_reweighed(void *state, struct cache_entry *entry)
{
	note(state, entry, REWEIGHED, POLICY_NEVER);
}

static void python_removed(void *state, struct cache_entry *entry)
{
	struct python *s = state;
	const struct place *place = cache_entry_data(entry);

	note(s, entry, REMOVED, POLICY_NEVER);
	s->held[place->slot] = NULL;
	s->unused[s->n_unused++] = place->slot;
}

static struct cache_entry *python_victim(void *state)
{
	struct python *s = state;
	uint64_t slot;

	if (!(s->hooks & 1u << VICTIM))
		fail_python("its script has no victim()");
	tell(s, VICTIM);
	slot = ask(s);
	if (slot >= s->n_slots || !s->held[slot])
		fail_python("its script has a victim that is not cached");
	return s->held[slot];
}

const struct policy_ops policy_python = {
	.plugin = { .name = "python",
		    .summary = "asks a script in Python",
		    .state_size = sizeof(struct python) },
	.entry_size = sizeof(struct place),
	.init = python_init,
	.fini = python_fini,
	.admit = python_admit,
	.inserted = python_inserted,
	.hit = python_hit,
	.reweighed = python_reweighed,
	.removed = python_removed,
	.victim = python_victim,
};
