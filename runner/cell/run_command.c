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

/* Takes ownership of `word`. The first error stays. */
static void append(struct command *c, char **words, size_t *n, char *word)
{
	if (word && *n < COMMAND_ARGS) {
		words[(*n)++] = word;
		return;
	}
	if (c->code == 0)
		c->code = word ? -E2BIG : -ENOMEM;
	free(word);
}

static void add_word(struct command *c, char *word)
{
	append(c, c->argv, &c->n, word);
}

/* Appends copies of words up to a NULL. */
static void add_words(struct command *c, ...)
{
	const char *word;
	va_list ap;

	va_start(ap, c);
	while ((word = va_arg(ap, const char *)))
		add_word(c, strdup(word));
	va_end(ap);
}

/* A word that takes a value, malloc'ed; NULL: no memory. */
static void add_option(struct command *c, const char *option, char *value)
{
	add_word(c, strdup(option));
	add_word(c, value);
}

/* Takes ownership of `text`, NAME=VALUE. */
static void add_env(struct command *c, char *text)
{
	append(c, c->env, &c->n_env, text);
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

	snprintf(suffix, sizeof(suffix), "%s%s%s.yaml", alone ? "" : name,
		 alone ? "" : ".", run_program_word(program));
	return runner_path(r, "configs", cell->id, suffix);
}

/* PROGRAM --config FILE --seed N --time-scale X, common to all programs. */
static void begin_command(struct command *c, const struct runner *r,
			  const struct cell *cell, const char *name,
			  enum run_program program)
{
	char seed[24], scale[32];

	snprintf(seed, sizeof(seed), "%" PRIu64, cell->seed);
	snprintf(scale, sizeof(scale), "%.15g", r->w->time_scale);
	add_word(c, runner_program(r, program));
	add_words(c, program == RUN_PREPD ? "worker" : NULL, NULL);
	add_option(c, "--config", command_config(r, cell, name, program));
	add_words(c, "--seed", seed, "--time-scale", scale, NULL);
}

/* The nodes of the job that the mount belongs to. */
static void add_peers(struct command *c, const struct cell_mount *m,
		      size_t index, const struct network *net)
{
	char *list = NULL;
	char node[24];
	size_t size;
	FILE *f = open_memstream(&list, &size);

	for (size_t i = m->first; f && i < m->first + m->nodes; i++) {
		char address[NETWORK_ADDRESS];

		network_address(net, (uint32_t)i, address);
		fprintf(f, "%s%s", i > m->first ? "," : "", address);
	}
	if (f && fclose(f))
		free(TAKE_PTR(list));
	snprintf(node, sizeof(node), "%zu", index - m->first);
	add_option(c, "--peers", list);
	add_words(c, "--node", node, "--peer-key", net->key, NULL);
}

bool command_has_scratch(const struct cell_mount *m)
{
	const char *dir = cell_writable(m);

	return dir && !strcmp(dir, "scratch");
}

char *command_writable(const struct runner *r, const struct cell_mount *m)
{
	const char *dir = cell_writable(m);

	if (!dir || !command_has_scratch(m))
		return dir ? strdup(dir) : NULL;
	return util_text("%s/writable-%s", r->scratch, m->name);
}

int command_mount(struct command *c, const struct runner *r,
		  const struct cell *cell, size_t index, const char *mnt,
		  const struct network *net, struct err *err)
{
	const struct cell_mount *m = &cell->mounts[index];
	_cleanup_free_ char *data = NULL;
	int code = dataset_path(r, m->dataset, &data, err);

	if (code < 0)
		return code;
	begin_command(c, r, cell, m->name, RUN_FS);
	if (net->n && cell_has_peers(m))
		add_peers(c, m, index, net);
	if (command_has_scratch(m))
		add_option(c, "--writable", command_writable(r, m));
	add_words(c, "-f", data, mnt, NULL);
	return c->code;
}

char *command_socket(const struct runner *r)
{
	return util_join(r->scratch, "gpud.sock");
}

int command_gpud(struct command *c, const struct runner *r,
		 const struct cell *cell, const char *record, struct err *err)
{
	begin_command(c, r, cell, "", RUN_GPUD);
	add_option(c, "--socket", command_socket(r));
	add_words(c, "--json", record, NULL);
	return c->code < 0 ? err_set(err, c->code, "gpemu-gpud: %s",
				     strerror(-c->code))
			   : 0;
}

int command_prepd(struct command *c, const struct runner *r,
		  const struct cell *cell, uint32_t index,
		  const struct network *net, const char *record)
{
	char own[NETWORK_ADDRESS], dispatcher[NETWORK_ADDRESS];

	network_address(net, index, own);
	network_address(net, 0, dispatcher);
	if (index) {
		begin_command(c, r, cell, "", RUN_PREPD);
		/* what it has when the jobs have ended is of no use; the jobs
		 * of a cell alone have its key */
		add_words(c, "--dispatcher", dispatcher, "--drain", "0s",
			  "--data", "/", NULL);
	} else {
		add_word(c, runner_program(r, RUN_PREPD));
		add_words(c, "dispatcher", NULL);
	}
	add_words(c, "--listen", own, "--key", net->key, "--json", record,
		  NULL);
	return c->code;
}

/* --- the object store ------------------------------------------------- */

static void add_variable(struct command *c, const char *name,
			 const char *before, const char *value)
{
	add_env(c, util_text("%s=%s%s", name, before, value));
}

/* No session of the user's goes with the key. */
static void add_keys(struct command *c, const struct store *store)
{
	add_variable(c, "AWS_ACCESS_KEY_ID", "", "gpemu");
	add_variable(c, "AWS_SECRET_ACCESS_KEY", "", store->secret);
	add_variable(c, "AWS_SESSION_TOKEN", "", "");
}

/* Past a proxy of the user's. Programs read one name or the other. */
static void add_no_proxy(struct command *c, const struct store *store,
			 const char *name, const char *other)
{
	int n = (int)strcspn(store->address, ":");
	const char *list = getenv(name);

	list = list && *list ? list : getenv(other);
	if (list && !strcmp(list, "*")) /* curl knows it alone */
		add_variable(c, name, "", list);
	else
		add_env(c,
			util_text("%s=%s%s%.*s", name, list ? list : "",
				  list && *list ? "," : "", n, store->address));
}

/* What clients of S3 read from the environment; the region has a name in boto3,
 * another in the other clients of AWS. */
static void add_store(struct command *c, const struct runner *r,
		      const struct cell *cell, const struct store *store)
{
	const char *region = config_text(r->w, cell->s3, "s3", "region");

	add_keys(c, store);
	add_no_proxy(c, store, "no_proxy", "NO_PROXY");
	add_no_proxy(c, store, "NO_PROXY", "no_proxy");
	add_variable(c, "AWS_ENDPOINT_URL", "http://", store->address);
	/* one of the user's would win */
	add_variable(c, "AWS_ENDPOINT_URL_S3", "http://", store->address);
	add_variable(c, "AWS_REGION", "", region);
	add_variable(c, "AWS_DEFAULT_REGION", "", region);
	add_variable(c, "GPEMU_S3_BUCKET", "",
		     config_text(r->w, cell->s3, "s3", "bucket"));
}

int command_s3(struct command *c, const struct runner *r,
	       const struct cell *cell, const struct store *store,
	       const char *record, struct err *err)
{
	_cleanup_free_ char *data = NULL;
	int code = dataset_path(r, cell->mounts[0].dataset, &data, err);

	if (code < 0)
		return code;
	begin_command(c, r, cell, "", RUN_S3);
	add_keys(c, store);
	add_words(c, "--listen", store->address, "--json", record, data, NULL);
	return c->code;
}

/* --- programs of the user --------------------------------------------- */

static void add_exec(struct command *c, const struct variables *v)
{
	const json_t *command = json_object_get(v->exec, "command"), *word;
	size_t i;

	if (json_is_string(command)) {
		add_words(c, "/bin/sh", "-c", NULL);
		add_word(c, variables_expand(json_string_value(command), v));
	}
	json_array_foreach ((json_t *)command, i, word)
		add_word(c, variables_expand(json_string_value(word), v));
}

static void add_environment(struct command *c, const struct cell_job *job,
			    const struct variables *v)
{
	const char *key;
	json_t *value;

	json_object_foreach (job->env, key, value) {
		_cleanup_free_ char *expanded =
			variables_expand(json_string_value(value), v);

		if (expanded)
			add_variable(c, key, "", expanded);
		else
			add_env(c, NULL);
	}
}

/* The ranks of a job are where their mounts are, on this machine, whatever a
 * hostfile or a scheduler offers to mpirun (of Open MPI 4, 5, of MPICH). */
static void add_here(struct command *c)
{
	static const char *const here[] = {
		"OMPI_MCA_ras=^slurm,gridengine,tm,lsf",
		"OMPI_MCA_orte_default_hostfile=none",
		"PRTE_MCA_ras=^slurm,gridengine,pbs,lsf",
		"PRTE_MCA_prte_default_hostfile=none",
		"HYDRA_RMK=user",
	};

	for (size_t i = 0; i < ARRAY_SIZE(here); i++)
		add_env(c, strdup(here[i]));
}

/* Only the jobs of this cell share their batches, whatever runs beside it. */
static void add_coordinate(struct command *c, const struct runner *r,
			   const struct cell_job *job)
{
	const char *text =
		json_string_value(json_object_get(job->train, "coordinate"));
	const char *own = strrchr(r->scratch, '/') + 1;
	size_t n = text ? strcspn(text, ":") : 0;

	if (text)
		add_option(c, "--coordinate",
			   util_text("%.*s.%s%s", (int)n, text, own, text + n));
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

	if (!command_has_checkpoints(job->train))
		return strdup("");
	/* nobody else has a folder of that name, which is removed */
	return util_text("%s/%s-checkpoints-%s",
			 writable ? writable : r->scratch, own, job->name);
}

/* A folder of this run alone, in the mount if that is writable, unless the
 * workload names one. */
static void add_checkpoints(struct command *c, const struct runner *r,
			    const struct cell *cell, const struct cell_job *job,
			    const char *mnt)
{
	bool inside = r->mounted && cell_writable(&cell->mounts[job->mount]);

	if (command_has_checkpoints(job->train))
		add_option(c, "--checkpoint-dir",
			   command_checkpoints(r, inside ? mnt : NULL, job));
}

/* What all gpemu-train have, and what this one needs. */
static void add_train(struct command *c, const struct runner *r,
		      const struct cell *cell, const struct cell_job *job,
		      const struct variables *v)
{
	begin_command(c, r, cell, job->name, RUN_TRAIN);
	add_words(c, "--progress", "off", "--json", v->record, "--data", v->mnt,
		  NULL);
	add_coordinate(c, r, job);
	add_checkpoints(c, r, cell, job, v->mnt);
	/* a simulation has the mount in itself */
	if (cell_job_is_simulated(job))
		add_option(c, "--fs-config",
			   command_config(r, cell,
					  cell->mounts[job->mount].name,
					  RUN_FS));
	if (cell->gpud)
		add_words(c, "--gpu-server", v->socket, NULL);
	if (cell->prepd && cell_has_service(job))
		add_words(c, "--dispatcher", v->prepd, "--service-key",
			  v->prepd_key, NULL);
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

	if (!socket)
		return -ENOMEM;
	if (prepd->n)
		network_address(prepd, 0, dispatcher);
	variables_set_numbers(&v, r->w, cell);
	if (job->nodes > 1)
		add_here(c);
	if (cell->s3)
		add_store(c, r, cell, store);
	add_environment(c, job, &v);
	if (cell_is_exec(job))
		add_exec(c, &v);
	else
		add_train(c, r, cell, job, &v);
	return c->code == -E2BIG
		       ? err_set(err, c->code, "job %s: more than %d words",
				 job->name, COMMAND_ARGS)
		       : c->code;
}
