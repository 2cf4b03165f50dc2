/* SPDX-License-Identifier: MIT */
#include "runner/run/run_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "common/json.h"
#include "common/system/walk.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/spec/run_variables.h"

/* arbitrary: fast to read, and no program is larger */
#define HASH_MAX_BYTES (64u << 20)

/* --- content ---------------------------------------------------------- */

static int64_t changed_ns(const struct stat *st)
{
	return st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static void add_stat(XXH3_state_t *state, const struct stat *st)
{
	int64_t v[] = { st->st_size, changed_ns(st) };

	XXH3_64bits_update(state, v, sizeof(v));
}

static int add_content(XXH3_state_t *state, const char *path)
{
	_cleanup_fclose_ FILE *f = util_open_stream(path);
	char buf[65536];
	size_t n;

	if (!f)
		return -errno;
	while ((n = fread(buf, 1, sizeof(buf), f)))
		XXH3_64bits_update(state, buf, n);
	return ferror(f) ? -EIO : 0;
}

static void end_hash(XXH3_state_t *state, char hash[17])
{
	snprintf(hash, 17, "%016" PRIx64, (uint64_t)XXH3_64bits_digest(state));
	XXH3_freeState(state);
}

int identity_hash(const char *path, char hash[17])
{
	XXH3_state_t *state;
	struct stat st;
	int r = 0;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	state = XXH3_createState();
	if (!state)
		return -ENOMEM;
	XXH3_64bits_reset(state);
	if (st.st_size > HASH_MAX_BYTES)
		add_stat(state, &st);
	else
		r = add_content(state, path);
	end_hash(state, hash);
	return r;
}

/* {file, hash, bytes, changed}; null: no file. */
static json_t *file_json(const char *path)
{
	struct stat st;
	char hash[17];

	if (stat(path, &st) < 0 || identity_hash(path, hash) < 0)
		return json_null();
	return json_pack("{s:s, s:s, s:I, s:I}", "file", path, "hash", hash,
			 "bytes", (json_int_t)st.st_size, "changed",
			 (json_int_t)changed_ns(&st));
}

static int hash_folder(void *state, const char *path, const struct statx *st,
		       struct err *err)
{
	(void)st;
	(void)err;
	XXH3_64bits_update(state, path, strlen(path) + 1);
	return 0;
}

static int hash_name(void *state, const char *path, const struct walk_entry *e,
		     struct err *err)
{
	int64_t v[] = { (int64_t)e->bytes,
			units_time_ns(e->mtime_s, e->mtime_ns) };

	(void)err;
	XXH3_64bits_update(state, path, strlen(path) + 1);
	if (S_ISREG(e->mode))
		XXH3_64bits_update(state, v, sizeof(v));
	return 0;
}

/* {file, hash}, of the names, sizes and times below a folder; null: there is
 * none that can be read. */
static json_t *folder_json(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	XXH3_state_t *state = XXH3_createState();
	struct walk walk = { .flags = WALK_HIDDEN | WALK_FILES | WALK_FOLLOW,
			     .ctx = state,
			     .folder = hash_folder,
			     .file = hash_name };
	char hash[17];
	int r;

	if (!state || fd < 0) {
		XXH3_freeState(state);
		return json_null();
	}
	XXH3_64bits_reset(state);
	r = walk_tree(&walk, fd, "", NULL);
	if (r == -ELOOP) { /* links that lead to each other: by name */
		walk.flags &= ~(unsigned)WALK_FOLLOW;
		XXH3_64bits_reset(state);
		r = walk_tree(&walk, fd, "", NULL);
	}
	if (r < 0) {
		XXH3_freeState(state);
		return json_null();
	}
	end_hash(state, hash);
	return json_pack("{s:s, s:s}", "file", path, "hash", hash);
}

const char *identity_changed(const json_t *files)
{
	const char *name, *path, *was;
	char hash[17];
	struct stat st;
	json_t *one;

	json_object_foreach ((json_t *)files, name, one) {
		const json_t *bytes = json_object_get(one, "bytes");
		const json_t *changed = json_object_get(one, "changed");

		path = json_string_value(json_object_get(one, "file"));
		was = json_string_value(json_object_get(one, "hash"));
		if (!path || !was)
			continue;
		if (stat(path, &st) < 0)
			return name;
		if (S_ISDIR(st.st_mode) ||
		    (bytes && json_integer_value(bytes) == st.st_size &&
		     json_integer_value(changed) == changed_ns(&st)))
			continue;
		if (identity_hash(path, hash) < 0 || strcmp(hash, was) != 0)
			return name;
	}
	return NULL;
}

/* --- what a cell names ------------------------------------------------ */

struct noting {
	const struct workload *w;
	const struct cell *cell;
	size_t job;
	json_t *to;
	int code;
};

/* The entry of w->files for `name` at `path`; NULL: no memory. */
static void note(struct noting *n, const char *name, const char *path,
		 json_t *(*read)(const char *path))
{
	json_t *known = json_object_get(n->w->files, name);

	if (!known &&
	    (!path || json_object_set_new(n->w->files, name, read(path)) < 0))
		n->code = -ENOMEM;
	known = json_object_get(n->w->files, name);
	if (known && !json_is_null(known) &&
	    json_object_set(n->to, name, known) < 0)
		n->code = -ENOMEM;
}

/* "{bin}/x" is x in the programs' folder, and so of {share}. */
static void note_file(struct noting *n, const char *name)
{
	_cleanup_free_ char *path = NULL;
	const char *dir = "", *rest = name;

	if (!strncmp(name, "{bin}/", 6)) {
		dir = n->w->bin_dir;
		rest = name + 5;
	} else if (!strncmp(name, "{share}/", 8)) {
		dir = n->w->share_dir;
		rest = name + 7;
	}
	path = util_text("%s%s", dir, rest);
	note(n, name, path, file_json);
}

static void note_program(struct noting *n, const char *name)
{
	_cleanup_free_ char *path = util_join(n->w->bin_dir, name);

	note(n, name, path, file_json);
}

static void note_folder(struct noting *n, const char *dir)
{
	_cleanup_free_ char *path = util_beside(n->w->path, dir);

	note(n, dir, path, folder_json);
}

/* The file of a command without a slash, searched like execvp(3); "": none.
 * malloc'ed. */
static char *find_command(const char *word)
{
	const char *path = getenv("PATH"), *colon;

	for (; path && *path; path = *colon ? colon + 1 : colon) {
		_cleanup_free_ char *file = NULL;

		colon = strchrnul(path, ':');
		file = util_text("%.*s/%s", (int)(colon - path), path, word);
		if (!file || access(file, X_OK) == 0)
			return TAKE_PTR(file);
	}
	return strdup("");
}

/* Each word is searched once: a study of 500 cells has thousands of them. */
static void note_command(struct noting *n, const char *word)
{
	json_t *known = json_object_get(n->w->commands, word);

	if (!known) {
		_cleanup_free_ char *file = find_command(word);

		known = file ? json_bytes(file) : NULL;
		if (json_object_set_new(n->w->commands, word, known) < 0) {
			n->code = -ENOMEM;
			return;
		}
	}
	if (json_string_length(known))
		note_file(n, json_string_value(known));
}

/* One word of a line. `{bin}` alone: any of gpemu's programs may run. */
static void note_word(struct noting *n, const char *word, bool command)
{
	bool any = !strcmp(word, "{bin}");

	for (enum run_program p = RUN_FS; any && p < RUN_EXEC; p++)
		note_program(n, run_program_name(p));
	if (any)
		note_program(n, "gpemu-cachesim");
	note_file(n, word);
	if (command && !strchr(word, '/') && !json_object_get(n->to, word))
		note_command(n, word);
}

/* A text as a whole, then its words, in case it is a command line; a word after
 * > is an output. */
static void note_text(struct noting *n, const char *text, bool command)
{
	static const char between[] = " \t\n'\"`=;|&()<>,:";
	_cleanup_free_ char *line =
		variables_expand_fixed(n->w, n->cell, n->job, text);
	bool written = false;

	if (!line) {
		n->code = -ENOMEM;
		return;
	}
	note_word(n, line, command);
	for (char *at = line, after; *at; *at = after) {
		char *word = at + strspn(at, between);

		for (; at < word; at++)
			written = *at == '>' || (written && *at == ' ');
		at = word + strcspn(word, between);
		after = *at;
		*at = 0;
		if (*word && !written)
			note_word(n, word, command);
		written = false;
	}
}

static void note_map(struct noting *n, const json_t *map)
{
	const char *key;
	json_t *value, *word;
	size_t i;

	json_object_foreach ((json_t *)map, key, value) {
		bool command = map == n->cell->jobs[n->job].exec &&
			       !strcmp(key, "command");

		if (json_is_string(value))
			note_text(n, json_string_value(value), command);
		json_array_foreach (value, i, word)
			if (json_is_string(word))
				note_text(n, json_string_value(word), command);
	}
}

/* A file named by a configuration key and read by the program. Profiles are in
 * run_profiles.h; all other keys with a file name outputs. */
static void note_key(struct noting *n, const json_t *config, const char *key)
{
	const char *file = json_string_value(json_object_get(config, key));

	if (file)
		note_file(n, file);
}

static void note_mount(struct noting *n, const struct cell_mount *m,
		       bool mounted)
{
	const char *dir = json_string_value(json_object_get(m->dataset, "dir"));

	if (dir)
		note_folder(n, dir);
	else if (!json_object_get(m->dataset, "synth"))
		note_program(n, run_program_name(RUN_DATA));
	if (mounted) {
		note_program(n, run_program_name(RUN_FS));
		note_key(n, m->fs, "group_order");
	}
}

static void note_job(struct noting *n, const struct cell_job *job)
{
	if (cell_is_exec(job)) {
		note_map(n, job->exec);
		note_file(n, "{bin}/libgpemu.so.1");
	} else {
		note_program(n, run_program_name(RUN_TRAIN));
		note_key(n, job->train, "replay_order");
	}
	note_map(n, job->env);
}

/* --- all -------------------------------------------------------------- */

json_t *identity_of(const struct workload *w, const struct cell *cell,
		    bool mounted)
{
	struct noting n = { .w = w, .cell = cell, .to = json_object() };

	if (!n.to)
		return NULL;
	if (!w->files)
		return n.to;
	for (size_t i = 0; i < cell->n_mounts; i++)
		note_mount(&n, &cell->mounts[i], mounted);
	for (; n.job < cell->n_jobs; n.job++)
		note_job(&n, &cell->jobs[n.job]);
	for (size_t i = 0; i < RUN_SERVERS; i++)
		if (cell->servers[i])
			note_program(&n, run_program_name(RUN_GPUD + i));
	if (cell->s3)
		note_key(&n, cell->s3, "group_order");
	if (n.code == 0)
		return n.to;
	json_decref(n.to);
	return NULL;
}

int identity_init(struct workload *w, const char *bin_dir,
		  const char *share_dir)
{
	int r = 0;

	w->bin_dir = bin_dir;
	w->share_dir = share_dir;
	w->files = json_object();
	w->commands = json_object();
	for (size_t i = 0; w->files && r == 0 && i < w->n_points; i++) {
		_cleanup_(cell_free) struct cell cell = { 0 };
		json_auto_t *files = NULL;

		r = workload_configure(w, i, &cell);
		if (r == 0)
			files = identity_of(w, &cell, true);
		if (r == 0 && !files)
			r = -ENOMEM;
	}
	return w->files ? r : -ENOMEM;
}

const char *identity_program(const struct workload *w, enum run_program program)
{
	json_auto_t *to = json_object();
	struct noting n = { .w = w, .to = to };
	const char *hash, *name = run_program_name(program);

	if (w->files)
		note_program(&n, name);
	hash = json_string_value(
		json_object_get(json_object_get(w->files, name), "hash"));
	return hash ? hash : "";
}
