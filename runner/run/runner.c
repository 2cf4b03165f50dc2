/* SPDX-License-Identifier: MIT */
#include "runner/run/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json.h"
#include "common/rng.h"
#include "common/system/mkdir_all.h"
#include "common/units.h"
#include "common/util.h"
#include "runner/run/run_lock.h"
#include "runner/run/run_remove.h"

/* arbitrary: printing a configuration takes milliseconds */
#define CHECK_TIMEOUT_NS (30 * NS_PER_S)
#define GRACE_NS (2 * NS_PER_S)

/* --- folders ---------------------------------------------------------- */

static int make_scratch(struct runner *r, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	_cleanup_free_ char *path =
		util_join(tmp && *tmp ? tmp : "/tmp", "gpemu-run.XXXXXX");

	if (!path)
		return -ENOMEM;
	if (!mkdtemp(path))
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	/* the mount table has resolved paths only */
	r->scratch = realpath(path, NULL);
	return r->scratch ? 0 : -errno;
}

/* --- programs --------------------------------------------------------- */

static int find_bin_dir(struct runner *r, const char *bin_dir)
{
	_cleanup_free_ char *exe = util_program();

	if (!bin_dir)
		bin_dir = getenv("GPEMU_BIN");
	if (!bin_dir && !exe)
		return -errno;
	r->bin_dir = strdup(bin_dir ? bin_dir : dirname(exe));
	return r->bin_dir ? 0 : -ENOMEM;
}

/* The source tree of a folder build/, or what is installed. */
static int find_share_dir(struct runner *r)
{
	static const char *const places[] = { "..",
					      UTIL_WHEEL_UP "/../share/gpemu",
					      "../share/gpemu" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		_cleanup_free_ char *share = util_join(r->bin_dir, places[i]);
		_cleanup_free_ char *profiles =
			share ? util_join(share, "profiles") : NULL;

		if (!profiles)
			return -ENOMEM;
		if (i + 1 < ARRAY_SIZE(places) && access(profiles, F_OK) < 0)
			continue;
		r->share_dir = TAKE_PTR(share);
		break;
	}
	return 0;
}

char *runner_program(const struct runner *r, enum run_program program)
{
	return util_join(r->bin_dir, run_program_name(program));
}

static bool is_used(const struct workload *w, enum run_program program)
{
	return program <= RUN_DATA || w->base[program];
}

static int check_programs(const struct runner *r, struct err *err)
{
	for (enum run_program i = RUN_FS; i < RUN_EXEC; i++) {
		_cleanup_free_ char *path = runner_program(r, i);

		if (!is_used(r->w, i))
			continue;
		if (!path)
			return -ENOMEM;
		if (access(path, X_OK) < 0)
			return err_set(err, -errno,
				       "%s: %s (--bin-dir names the folder of "
				       "the programs)",
				       path, strerror(errno));
	}
	return 0;
}

int runner_init(struct runner *r, const struct workload *w, const char *bin_dir,
		const char *out, struct err *err)
{
	int code;

	*r = (struct runner){ .w = w, .lock_fd = -1, .stop.fd = -1 };
	r->out = out ? strdup(out) : util_join("results", w->name);
	if (!r->out)
		return -ENOMEM;
	code = find_bin_dir(r, bin_dir);
	if (code == 0)
		code = find_share_dir(r);
	if (code == 0)
		code = check_programs(r, err);
	if (code == 0)
		code = make_scratch(r, err);
	return code == 0 ? stop_init(&r->stop, err) : code;
}

void runner_fini(struct runner *r)
{
	if (r->scratch)
		run_remove(r->scratch);
	if (r->lock_fd >= 0)
		close(r->lock_fd);
	stop_fini(&r->stop);
	free(r->bin_dir);
	free(r->share_dir);
	free(r->out);
	free(r->scratch);
	free(r->data_dir);
}

/* --- results ---------------------------------------------------------- */

char *runner_path(const struct runner *r, const char *folder, const char *name,
		  const char *suffix)
{
	return util_text("%s/%s/%s.%s", r->out, folder, name, suffix);
}

static int open_lock(struct runner *r, struct err *err)
{
	_cleanup_free_ char *path = util_join(r->out, "lock");
	int code;

	if (!path)
		return -ENOMEM;
	r->lock_fd = lock_open(path);
	if (r->lock_fd < 0)
		return lock_error(path, r->lock_fd, err);
	code = lock_try(r->lock_fd, lock_of_machine(), r->w->independent);
	if (code == -EAGAIN)
		return err_set(err, code,
			       "%s: another gpemu-run on this machine is using "
			       "this folder; a workload that measures no times "
			       "says 'independent: true'",
			       r->out);
	return code < 0 ? lock_error(path, code, err) : 0;
}

int runner_try_lock(const struct runner *r, uint64_t byte, struct err *err)
{
	int code = lock_try(r->lock_fd, byte, false);

	return code < 0 && code != -EAGAIN ? err_set(err, code, "%s/lock: %s",
						     r->out, strerror(-code))
					   : code;
}

void runner_unlock(const struct runner *r, uint64_t byte)
{
	lock_drop(r->lock_fd, byte);
}

int runner_lock(struct runner *r, uint64_t byte, struct err *err)
{
	_cleanup_free_ char *path = util_join(r->out, "lock");
	int code;

	if (!path)
		return -ENOMEM;
	while ((code = runner_try_lock(r, byte, err)) == -EAGAIN) {
		code = lock_wait(path, byte, &r->stop, err);
		if (code < 0)
			break;
	}
	return code;
}

int runner_open(struct runner *r, struct err *err)
{
	static const char *const folders[] = { "records", "logs", "configs",
					       "plots" };
	int code = 0;

	for (size_t i = 0; code == 0 && i < ARRAY_SIZE(folders); i++) {
		_cleanup_free_ char *path = util_join(r->out, folders[i]);

		code = path ? mkdir_all(path, 0777, err) : -ENOMEM;
	}
	return code == 0 ? open_lock(r, err) : code;
}

/* --- settings --------------------------------------------------------- */

/* The error of a program without its prefix: "prog: FOLDER/file:1:2: what" and
 * "prog: what" -> "what". */
static void complaint(const char *path, const char *folder, struct err *err)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[400] = "";
	const char *at;

	if (!f || !fgets(line, sizeof(line), f) || line[0] == '\n') {
		err_set(err, -EINVAL, "rejected without a message");
		return;
	}
	line[strcspn(line, "\n")] = 0;
	at = strstr(line, folder);
	if (!at && !strncmp(line, "gpemu-", 6))
		at = line;
	at = at ? strstr(at, ": ") : NULL;
	err_set(err, -EINVAL, "%s", at ? at + 2 : line);
}

/* PROGRAM --config FILE [--dump-config] MORE...; with `timeout_ns` 0 it reads
 * the file, prints, and exits. */
static int ask(struct runner *r, enum run_program program, char *config,
	       const char *const *more, const char *dump, const char *said,
	       uint64_t timeout_ns, int *ret_status, struct err *err)
{
	_cleanup_free_ char *path = runner_program(r, program);
	_cleanup_close_ int out =
		open(dump, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	_cleanup_close_ int to =
		open(said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char *argv[6 + RUNNER_MORE] = { path };
	struct child child;
	size_t n = 1;
	int code;

	if (!path || out < 0 || to < 0)
		return err_set(err, -errno, "%s: %s", said, strerror(errno));
	if (program == RUN_DATA)
		argv[n++] = (char *)"make";
	if (program == RUN_PREPD)
		argv[n++] = (char *)"worker";
	argv[n++] = (char *)"--config";
	argv[n++] = config;
	if (!timeout_ns)
		argv[n++] = (char *)"--dump-config";
	for (size_t i = 0; more && more[i]; i++)
		argv[n++] = (char *)more[i];
	code = child_start(&child, argv, NULL, out, to, err);
	if (code == 0)
		code = child_wait(&child, &r->stop,
				  timeout_ns ? timeout_ns : CHECK_TIMEOUT_NS,
				  ret_status);
	child_end(&child, GRACE_NS);
	return code < 0 ? err_set(err, code, "%s: %s",
				  run_program_name(program), strerror(-code))
			: 0;
}

static int try_config(struct runner *r, enum run_program program,
		      const json_t *j, const char *const *more,
		      uint64_t timeout_ns, struct err *err)
{
	_cleanup_free_ char *config = util_join(r->scratch, "check.yaml");
	_cleanup_free_ char *said = util_join(r->scratch, "check.err");
	int code, status = 0;

	if (!config || !said)
		return -ENOMEM;
	code = json_write(j, config, err);
	if (code == 0)
		code = ask(r, program, config, more, "/dev/null", said,
			   timeout_ns, &status, err);
	if (code < 0)
		return code;
	if (status)
		complaint(said, r->scratch, err);
	return status ? -EINVAL : 0;
}

int runner_check_config(struct runner *r, enum run_program program,
			const json_t *j, const char *const *more,
			struct err *err)
{
	return try_config(r, program, j, more, 0, err);
}

int runner_simulate(struct runner *r, const json_t *train, uint64_t timeout_ns,
		    json_t **ret, struct err *err)
{
	_cleanup_free_ char *record = util_join(r->scratch, "simulated.json");
	json_error_t why;
	int code;

	if (!record)
		return -ENOMEM;
	code = try_config(r, RUN_TRAIN, train,
			  (const char *[]){ "--json", record, NULL },
			  timeout_ns, err);
	if (code < 0)
		return code;
	*ret = json_load_file(record, 0, &why);
	return *ret ? 0 : err_set(err, -EINVAL, "%s", why.text);
}

int runner_check(void *runner, const struct setting *setting, struct err *err)
{
	json_auto_t *j = json_pack("{s:o}", setting->key,
				   workload_value(setting->value));
	json_auto_t *options = cell_options(setting->program, j);

	return options ? runner_check_config(runner, setting->program, options,
					     NULL, err)
		       : -ENOMEM;
}

/* What it prints with the `more` words, into to.PROGRAM. */
static int add_facts(struct runner *r, enum run_program program,
		     const char *const *more, json_t *to, struct err *err)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	json_auto_t *nothing = json_object();
	_cleanup_free_ char *config = util_join(r->scratch, "none.yaml");
	_cleanup_free_ char *dump = util_join(r->scratch, "defaults.yaml");
	_cleanup_free_ char *said = util_join(r->scratch, "defaults.err");
	int code, status;

	if (!nothing || !config || !dump || !said)
		return -ENOMEM;
	code = json_write(nothing, config, err);
	if (code == 0)
		code = ask(r, program, config, more, dump, said, 0, &status,
			   err);
	if (code == 0 && status) {
		complaint(said, r->scratch, err);
		err_prefix(err, "%s %s", run_program_name(program),
			   more ? "--list profiles" : "--dump-config");
		code = -EINVAL;
	}
	if (code == 0)
		code = conf_tree_load(dump, &root, err);
	if (code == 0 && json_object_set_new(to, run_program_word(program),
					     workload_value(root)) < 0)
		code = -ENOMEM;
	return code;
}

int runner_defaults(struct runner *r, json_t **ret, struct err *err)
{
	static const enum run_program programs[] = {
		RUN_FS, RUN_TRAIN, RUN_GPUD, RUN_PREPD, RUN_S3,
	};
	static const char *const of_profiles[] = { "--list", "profiles", NULL };
	json_auto_t *all = json_object(), *profiles = json_object();
	int code = all && profiles ? 0 : -ENOMEM;

	for (size_t i = 0; code == 0 && i < ARRAY_SIZE(programs); i++) {
		if (!is_used(r->w, programs[i]))
			continue;
		code = add_facts(r, programs[i], NULL, all, err);
		if (code == 0)
			code = add_facts(r, programs[i], of_profiles, profiles,
					 err);
	}
	if (code == 0 && json_object_set(all, "profiles", profiles) < 0)
		code = -ENOMEM;
	if (code == 0)
		*ret = TAKE_PTR(all);
	return code;
}

/* --- shards ----------------------------------------------------------- */

/* arbitrary: more than there are machines */
enum { MOST_SHARDS = 100000 };

int shard_parse(const char *text, struct shard *ret, struct err *err)
{
	unsigned index, n;
	int end = 0;

	if (sscanf(text, "%6u/%6u%n", &index, &n, &end) != 2 || text[end] ||
	    text[0] < '0' || index < 1 || index > n || n > MOST_SHARDS)
		return err_set(err, -EINVAL,
			       "'%s' is not I/N, such as 2/4 for the second of "
			       "four shards",
			       text);
	*ret = (struct shard){ .index = index - 1, .n = n };
	return 0;
}

/* Deal the points of repetition `rep`, in an order of its own. */
static void deal(const struct shard *s, const struct workload *w, size_t rep,
		 uint32_t *order, bool *ret)
{
	struct rng rng = rng_stream(w->seed, "shard", rep);
	size_t first = rep * w->n_points;

	rng_permutation_u32(&rng, order, w->n_points);
	for (size_t i = 0; i < w->n_points; i++)
		ret[first + order[i]] = !s->n || (first + i) % s->n == s->index;
}

int shard_cells(const struct shard *s, const struct workload *w, bool **ret)
{
	_cleanup_free_ uint32_t *order = calloc(w->n_points, sizeof(*order));
	bool *mine = calloc(workload_n_cells(w), sizeof(*mine));

	for (size_t rep = 0; order && mine && rep < w->repetitions; rep++)
		deal(s, w, rep, order, mine);
	*ret = mine;
	return order && mine ? 0 : -ENOMEM;
}

size_t shard_n_cells(const struct shard *s, const struct workload *w)
{
	size_t n = workload_n_cells(w);

	return s->n ? (n + s->n - 1 - s->index) / s->n : n;
}
