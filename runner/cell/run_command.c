/* SPDX-License-Identifier: MIT */
#include "runner/cell/run_command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/util.h"
#include "runner/cell/run_machine.h"
#include "runner/run/run_dataset.h"
#include "runner/spec/run_variables.h"

void command_fini(struct command *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->argv[i]);
	for (size_t i = 0; i < c->n_env; i++)
		free(c->env[i]);
	*c = (struct command){ 0 };
}

/* Takes ownership of `word`. */
static int add(struct command *c, char *word)
{
	if (!word)
		return -ENOMEM;
	if (c->n == COMMAND_ARGS) {
		free(word);
		return -E2BIG;
	}
	c->argv[c->n++] = word;
	return 0;
}

/* Appends copies of words up to a NULL. */
static int add_words(struct command *c, ...)
{
	const char *word;
	va_list ap;
	int code = 0;

	va_start(ap, c);
	while (code == 0 && (word = va_arg(ap, const char *)))
		code = add(c, strdup(word));
	va_end(ap);
	return code;
}

json_t *command_json(const struct command *c)
{
	json_t *j = json_array();

	for (size_t i = 0; i < c->n; i++)
		json_array_append_new(j, json_bytes(c->argv[i]));
	return j;
}

char *command_config(const struct runner *r, const struct cell *cell,
		     const char *name, enum run_program program)
{
	bool alone = program == RUN_FS	    ? cell->n_mounts == 1
		     : program == RUN_TRAIN ? cell->n_jobs == 1
					    : true;
	char suffix[80];

	/* without the prefix "gpemu-" */
	snprintf(suffix, sizeof(suffix), "%s%s%s.yaml", alone ? "" : name,
		 alone ? "" : ".", run_program_name(program) + 6);
	return runner_path(r, "configs", cell->id, suffix);
}

/* PROGRAM --config FILE --seed N --time-scale X, common to all programs. */
static int begin(struct command *c, const struct runner *r,
		 const struct cell *cell, const char *name,
		 enum run_program program)
{
	_cleanup_free_ char *path = runner_program(r, program);
	_cleanup_free_ char *config = command_config(r, cell, name, program);
	char seed[24], scale[32];

	if (!path || !config)
		return -ENOMEM;
	snprintf(seed, sizeof(seed), "%" PRIu64, cell->seed);
	snprintf(scale, sizeof(scale), "%.15g", r->w->time_scale);
	if (add_words(c, path, program == RUN_PREPD ? "worker" : NULL, NULL) <
	    0)
		return -ENOMEM;
	return add_words(c, "--config", config, "--seed", seed, "--time-scale",
			 scale, NULL);
}

/* The nodes of the job that the mount belongs to. */
static int add_peers(struct command *c, const struct cell_mount *m,
		     size_t index, const struct network *net)
{
	_cleanup_free_ char *list = NULL;
	char node[24];
	size_t size;
	FILE *f = open_memstream(&list, &size);

	if (!f)
		return -ENOMEM;
	for (size_t i = m->first; i < m->first + m->nodes; i++) {
		char address[NETWORK_ADDRESS];

		network_address(net, (uint32_t)i, address);
		fprintf(f, "%s%s", i > m->first ? "," : "", address);
	}
	if (fclose(f))
		return -ENOMEM;
	snprintf(node, sizeof(node), "%zu", index - m->first);
	return add_words(c, "--peers", list, "--node", node, "--peer-key",
			 net->key, NULL);
}

bool command_has_scratch(const struct cell_mount *m)
{
	const char *dir = cell_writable(m);

	return dir && !strcmp(dir, "scratch");
}

char *command_writable(const struct runner *r, const struct cell_mount *m)
{
	const char *dir = cell_writable(m);
	char *path;

	if (!dir || !command_has_scratch(m))
		return dir ? strdup(dir) : NULL;
	return asprintf(&path, "%s/writable-%s", r->scratch, m->name) < 0
		       ? NULL
		       : path;
}

static int add_writable(struct command *c, const struct runner *r,
			const struct cell_mount *m)
{
	_cleanup_free_ char *dir = command_writable(r, m);

	return dir ? add_words(c, "--writable", dir, NULL) : -ENOMEM;
}

int command_mount(struct command *c, const struct runner *r,
		  const struct cell *cell, size_t index, const char *mnt,
		  const struct network *net, struct err *err)
{
	const struct cell_mount *m = &cell->mounts[index];
	_cleanup_free_ char *data = NULL;
	int code = dataset_path(r, m->dataset, &data, err);

	if (code == 0)
		code = begin(c, r, cell, m->name, RUN_FS);
	if (code == 0 && net->n && cell_has_peers(m))
		code = add_peers(c, m, index, net);
	if (code == 0 && command_has_scratch(m))
		code = add_writable(c, r, m);
	return code == 0 ? add_words(c, "-f", data, mnt, NULL) : code;
}

char *command_socket(const struct runner *r)
{
	char *path;

	return asprintf(&path, "%s/gpud.sock", r->scratch) < 0 ? NULL : path;
}

int command_gpud(struct command *c, const struct runner *r,
		 const struct cell *cell, const char *record, struct err *err)
{
	_cleanup_free_ char *socket = command_socket(r);
	int code = socket ? begin(c, r, cell, "", RUN_GPUD) : -ENOMEM;

	if (code == 0)
		code = add_words(c, "--socket", socket, "--json", record, NULL);
	return code < 0 ? err_set(err, code, "gpemu-gpud: %s", strerror(-code))
			: 0;
}

static int begin_dispatcher(struct command *c, const struct runner *r)
{
	_cleanup_free_ char *path = runner_program(r, RUN_PREPD);

	return path ? add_words(c, path, "dispatcher", NULL) : -ENOMEM;
}

int command_prepd(struct command *c, const struct runner *r,
		  const struct cell *cell, uint32_t index,
		  const struct network *net, const char *record)
{
	char own[NETWORK_ADDRESS], dispatcher[NETWORK_ADDRESS];
	int code = index ? begin(c, r, cell, "", RUN_PREPD)
			 : begin_dispatcher(c, r);

	network_address(net, index, own);
	network_address(net, 0, dispatcher);
	/* what it has when the jobs have ended is of no use */
	if (code == 0 && index)
		code = add_words(c, "--dispatcher", dispatcher, "--drain", "0s",
				 NULL);
	/* the jobs of a cell alone have its key */
	if (code == 0 && index && !json_object_get(cell->prepd, "data"))
		code = add_words(c, "--data", "/", NULL);
	return code == 0 ? add_words(c, "--listen", own, "--key", net->key,
				     "--json", record, NULL)
			 : code;
}

/* Takes ownership of `text`, NAME=VALUE. */
static int add_env(struct command *c, char *text)
{
	if (!text)
		return -ENOMEM;
	if (c->n_env == COMMAND_ARGS) {
		free(text);
		return -E2BIG;
	}
	c->env[c->n_env++] = text;
	return 0;
}

/* --- the object store ------------------------------------------------- */

static int add_variable(struct command *c, const char *name, const char *before,
			const char *value)
{
	char *text;

	return add_env(c, asprintf(&text, "%s=%s%s", name, before, value) < 0
				  ? NULL
				  : text);
}

/* No session of the user's goes with the key. */
static int add_keys(struct command *c, const struct store *store)
{
	int code = add_variable(c, "AWS_ACCESS_KEY_ID", "", "gpemu");

	if (code == 0)
		code = add_variable(c, "AWS_SECRET_ACCESS_KEY", "",
				    store->secret);
	return code == 0 ? add_variable(c, "AWS_SESSION_TOKEN", "", "") : code;
}

/* Past a proxy of the user's. Programs read one name or the other. */
static int add_no_proxy_as(struct command *c, const struct store *store,
			   const char *name, const char *other)
{
	const char *list = getenv(name);
	_cleanup_free_ char *text = NULL;
	int n = (int)strcspn(store->address, ":");

	list = list && *list ? list : getenv(other);
	if (list && !strcmp(list, "*")) /* curl knows it alone */
		text = strdup(list);
	else if (asprintf(&text, "%s%s%.*s", list ? list : "",
			  list && *list ? "," : "", n, store->address) < 0)
		text = NULL;
	return text ? add_variable(c, name, "", text) : -ENOMEM;
}

/* Programs read one of the two first. */
static int add_no_proxy(struct command *c, const struct store *store)
{
	int code = add_no_proxy_as(c, store, "no_proxy", "NO_PROXY");

	return code == 0 ? add_no_proxy_as(c, store, "NO_PROXY", "no_proxy")
			 : code;
}

/* What clients of S3 read from the environment; the region has a name in boto3,
 * another in the other clients of AWS. */
static int add_store(struct command *c, const struct runner *r,
		     const struct cell *cell, const struct store *store)
{
	const char *region = config_text(r->w, cell->s3, "s3", "region");
	int code = add_keys(c, store);

	if (code == 0)
		code = add_no_proxy(c, store);
	if (code == 0)
		code = add_variable(c, "AWS_ENDPOINT_URL", "http://",
				    store->address);
	/* one of the user's would win */
	if (code == 0)
		code = add_variable(c, "AWS_ENDPOINT_URL_S3", "http://",
				    store->address);
	if (code == 0)
		code = add_variable(c, "AWS_REGION", "", region);
	if (code == 0)
		code = add_variable(c, "AWS_DEFAULT_REGION", "", region);
	return code == 0 ? add_variable(c, "GPEMU_S3_BUCKET", "",
					config_text(r->w, cell->s3, "s3",
						    "bucket"))
			 : code;
}

int command_s3(struct command *c, const struct runner *r,
	       const struct cell *cell, const struct store *store,
	       const char *record, struct err *err)
{
	_cleanup_free_ char *data = NULL;
	int code = dataset_path(r, cell->mounts[0].dataset, &data, err);

	if (code == 0)
		code = begin(c, r, cell, "", RUN_S3);
	if (code == 0)
		code = add_keys(c, store);
	return code == 0 ? add_words(c, "--listen", store->address, "--json",
				     record, data, NULL)
			 : code;
}

/* --- programs of the user --------------------------------------------- */

static int add_exec(struct command *c, const struct variables *v)
{
	const json_t *command = json_object_get(v->exec, "command");
	int code = 0;

	if (json_is_string(command)) {
		code = add_words(c, "/bin/sh", "-c", NULL);
		return code == 0
			       ? add(c, variables_expand(
						json_string_value(command), v))
			       : code;
	}
	for (size_t i = 0; code == 0 && i < json_array_size(command); i++)
		code = add(c, variables_expand(json_string_value(json_array_get(
						       command, i)),
					       v));
	return code;
}

static int add_environment(struct command *c, const struct cell_job *job,
			   const struct variables *v)
{
	const char *key;
	json_t *value;
	int code = 0;

	json_object_foreach (job->env, key, value) {
		_cleanup_free_ char *expanded =
			variables_expand(json_string_value(value), v);
		char *text = NULL;

		if (expanded && asprintf(&text, "%s=%s", key, expanded) < 0)
			text = NULL;
		code = add_env(c, text);
		if (code < 0)
			break;
	}
	return code;
}

/* The ranks of a job are where their mounts are, on this machine, whatever a
 * hostfile or a scheduler offers to mpirun (of Open MPI 4, 5, of MPICH). */
static int add_here(struct command *c)
{
	static const char *const here[] = {
		"OMPI_MCA_ras=^slurm,gridengine,tm,lsf",
		"OMPI_MCA_orte_default_hostfile=none",
		"PRTE_MCA_ras=^slurm,gridengine,pbs,lsf",
		"PRTE_MCA_prte_default_hostfile=none",
		"HYDRA_RMK=user",
	};
	int code = 0;

	for (size_t i = 0; code == 0 && i < ARRAY_SIZE(here); i++)
		code = add_env(c, strdup(here[i]));
	return code;
}

/* Only the jobs of this cell share their batches, whatever runs beside it. */
static int add_coordinate(struct command *c, const struct runner *r,
			  const struct cell_job *job)
{
	const char *text =
		json_string_value(json_object_get(job->train, "coordinate"));
	const char *own = strrchr(r->scratch, '/') + 1;
	size_t n = text ? strcspn(text, ":") : 0;
	char *word;
	int code;

	if (!text)
		return 0;
	if (asprintf(&word, "%.*s.%s%s", (int)n, text, own, text + n) < 0)
		return -ENOMEM;
	code = add_words(c, "--coordinate", word, NULL);
	free(word);
	return code;
}

bool command_has_checkpoints(const json_t *train)
{
	return json_object_get(train, "checkpoint_every") &&
	       !json_object_get(train, "checkpoint_dir");
}

char *command_checkpoints(const struct runner *r, const char *writable,
			  const struct cell_job *job)
{
	const char *own = strrchr(r->scratch, '/') + 1;
	char *path;

	if (!command_has_checkpoints(job->train))
		return strdup("");
	/* nobody else has a folder of that name, which is removed */
	return asprintf(&path, "%s/%s-checkpoints-%s",
			writable ? writable : r->scratch, own, job->name) < 0
		       ? NULL
		       : path;
}

/* A folder of this run alone, in the mount if that is writable, unless the
 * workload names one. */
static int add_checkpoints(struct command *c, const struct runner *r,
			   const struct cell *cell, const struct cell_job *job,
			   const char *mnt)
{
	bool inside = r->mounted && cell_writable(&cell->mounts[job->mount]);
	_cleanup_free_ char *path =
		command_checkpoints(r, inside ? mnt : NULL, job);

	if (!path)
		return -ENOMEM;
	return path[0] ? add_words(c, "--checkpoint-dir", path, NULL) : 0;
}

/* A simulation has the mount in itself. */
static int add_fs_config(struct command *c, const struct runner *r,
			 const struct cell *cell, const struct cell_job *job)
{
	const char *mount = cell->mounts[job->mount].name;
	_cleanup_free_ char *path = command_config(r, cell, mount, RUN_FS);

	return path ? add_words(c, "--fs-config", path, NULL) : -ENOMEM;
}

/* What all gpemu-train have, and what this one needs. */
static int add_train(struct command *c, const struct runner *r,
		     const struct cell *cell, const struct cell_job *job,
		     const struct variables *v)
{
	int code = begin(c, r, cell, job->name, RUN_TRAIN);

	if (code == 0)
		code = add_words(c, "--progress", "off", "--json", v->record,
				 "--data", v->mnt, NULL);
	if (code == 0)
		code = add_coordinate(c, r, job);
	if (code == 0)
		code = add_checkpoints(c, r, cell, job, v->mnt);
	if (code == 0 && cell_job_is_simulated(job))
		code = add_fs_config(c, r, cell, job);
	if (code == 0 && cell->gpud)
		code = add_words(c, "--gpu-server", v->socket, NULL);
	if (code == 0 && cell->prepd && cell_has_service(job))
		code = add_words(c, "--dispatcher", v->prepd, "--service-key",
				 v->prepd_key, NULL);
	return code;
}

int command_job(struct command *c, const struct runner *r,
		const struct cell *cell, size_t index, const char *mnt,
		const char *record, const struct network *prepd,
		const struct store *store, struct err *err)
{
	const struct cell_job *job = &cell->jobs[index];
	_cleanup_free_ char *socket = command_socket(r);
	char dispatcher[NETWORK_ADDRESS] = "";
	struct variables v = { .mnt = mnt,
			       .record = record,
			       .bin = r->bin_dir,
			       .share = r->share_dir,
			       .socket = cell->gpud ? socket : "",
			       .prepd = dispatcher,
			       .prepd_key = prepd->n ? prepd->key : "",
			       .exec = job->exec };
	int code;

	if (!socket)
		return -ENOMEM;
	if (prepd->n)
		network_address(prepd, 0, dispatcher);
	variables_set_numbers(&v, r->w, cell);
	code = job->nodes > 1 ? add_here(c) : 0;
	if (code == 0 && cell->s3)
		code = add_store(c, r, cell, store);
	if (code == 0)
		code = add_environment(c, job, &v);
	if (code == 0)
		code = cell_is_exec(job) ? add_exec(c, &v)
					 : add_train(c, r, cell, job, &v);
	return code == -E2BIG ? err_set(err, code, "job %s: more than %d words",
					job->name, COMMAND_ARGS)
			      : code;
}
