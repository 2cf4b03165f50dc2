/* SPDX-License-Identifier: MIT */
#include "sched/live/argv.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/util.h"

/* Words of the command may contain these. */
enum { CLASS, CORES, GPU, JOB, NODE, STAGE_TIMES, N_WORDS };
static const char *const words[N_WORDS] = {
	[CLASS] = "{class}", [CORES] = "{cores}", [GPU] = "{gpu}",
	[JOB] = "{job}",     [NODE] = "{node}",	  [STAGE_TIMES] = "{stages}",
};

static bool uses(char *const *command, int word)
{
	for (; *command; command++)
		if (strstr(*command, words[word]))
			return true;
	return false;
}

/* Names from files become parts of paths and options. */
static bool is_plain(const char *name)
{
	if (*name == '.' || *name == '-' || !*name)
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("._-+", *name))
			return false;
	return true;
}

bool argv_uses_cores(const struct live_config *c)
{
	return uses(c->command, CORES);
}

bool argv_uses_stages(const struct live_config *c)
{
	return uses(c->command, STAGE_TIMES);
}

bool argv_is_of_job(const char *text)
{
	for (int w = 0; w < N_WORDS; w++) {
		bool has = strstr(text, words[w]);

		if (w != CLASS && has != (w == JOB))
			return false;
	}
	return true;
}

uint32_t argv_cores(const struct sched_part *parts, size_t n)
{
	double cpu_milli = 0;

	for (size_t i = 0; i < n; i++)
		cpu_milli += parts[i].cpu_milli;
	return (uint32_t)MAX(1, lround(cpu_milli / 1e3));
}

static const char *class_of(const struct live_config *c,
			    const struct sched_job *job)
{
	return c->workload->classes[job->class];
}

int argv_check(const struct live_config *c, const struct sched_job *job,
	       uint64_t *ret_steps, struct err *err)
{
	const char *class = class_of(c, job);
	double step_ns = job->speed ? job->speed->work_per_iteration_ns
			 : job->iteration_ns > 0 ? job->iteration_ns
						 : (double)c->step_ns;

	if (!job->n_gpus)
		return err_set(err, -EINVAL,
			       "job %s needs no GPU: live jobs have some",
			       job->name);
	if ((job->gpu_milli != GPU_MILLI || job->gpu_busy > 0) &&
	    !c->gpu_server)
		return err_set(err, -EINVAL,
			       "job %s shares a GPU with others, so its GPUs "
			       "must be those of a server: name it with "
			       "--gpu-server, as in gpud-{node}.sock",
			       job->name);
	if (step_ns <= 0)
		return err_set(
			err, -EINVAL,
			"job %s: class '%s' has no speed, so --step must "
			"give the time of a step",
			job->name, class);
	if ((uses(c->command, CLASS) ||
	     (c->mount && strstr(c->mount, words[CLASS]))) &&
	    !is_plain(class))
		return err_set(err, -EINVAL,
			       "job %s: class '%s' cannot stand for {class}: "
			       "letters, digits and ._-+ can",
			       job->name, class);
	/* with a share of a GPU a step takes longer */
	step_ns *= (double)GPU_MILLI / job->gpu_milli;
	*ret_steps = (uint64_t)MAX(1, llround(job->work_ns / step_ns));
	return 0;
}

char *argv_folder(const struct live *l, uint32_t job)
{
	return util_text("%s/jobs/%" PRIu32, l->c.dir, job);
}

uint64_t argv_done(const char *folder)
{
	_cleanup_free_ char *path = NULL;
	const struct dirent *entry;
	uint64_t most = 0;
	DIR *dir;

	if (asprintf(&path, "%s/checkpoints", folder) < 0)
		return 0;
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		uint64_t step = 0;
		int used = 0;

		if (sscanf(entry->d_name, "checkpoint-%18" SCNu64 ".gpemu%n",
			   &step, &used) == 1 &&
		    used && !entry->d_name[used])
			most = MAX(most, step);
	}
	if (dir)
		closedir(dir);
	return most;
}

/* --- words ---------------------------------------------------------------- */

/* But that of the GPU, which its profile has. */
static void put_stages(const struct sched_job *job, FILE *f)
{
	fprintf(f, "storage=%.0fns,cpu=%.0fns,load=%.0fns,network=%.0fns",
		job->stage_ns[STAGE_STORAGE], job->stage_ns[STAGE_CPU],
		job->read_prep_ns, job->stage_ns[STAGE_NETWORK]);
}

static void put_word(const struct live *l, uint32_t which, int word, FILE *f)
{
	const struct sched_job *job = &l->run.jobs[which];
	const struct sched_part *p = job->parts;
	size_t gpu = 0;

	while (gpu + 1 < job->n_parts && !p[gpu].gpus)
		gpu++;
	if (word == CLASS)
		fputs(class_of(&l->c, job), f);
	else if (word == CORES)
		fprintf(f, "%" PRIu32, argv_cores(p, job->n_parts));
	else if (word == JOB)
		fprintf(f, "%" PRIu32, which);
	else if (word == NODE)
		fprintf(f, "%" PRIu32, p[gpu].node);
	else if (word == STAGE_TIMES)
		put_stages(job, f);
	else
		fputs(p[gpu].gpus
			      ? l->c.of.cluster
					->models[l->c.of.cluster
							 ->nodes[p[gpu].node]
							 .model]
			      : "cpu",
		      f);
}

char *argv_words(const struct live *l, uint32_t which, const char *text)
{
	char *ret = NULL;
	size_t n;
	FILE *f = open_memstream(&ret, &n);

	while (f && *text) {
		int w = 0;

		while (w < N_WORDS && strncmp(text, words[w], strlen(words[w])))
			w++;
		if (w < N_WORDS) {
			put_word(l, which, w, f);
			text += strlen(words[w]);
		} else {
			fputc(*text++, f);
		}
	}
	if (f && fclose(f) == 0)
		return ret;
	free(ret);
	return NULL;
}

/* --- the list ------------------------------------------------------------- */

enum { MORE = 24 }; /* that the scheduler adds, at most */

__attribute__((format(printf, 2, 3))) static void put(char **list,
						      const char *fmt, ...)
{
	va_list ap;

	while (*list)
		list++;
	va_start(ap, fmt);
	if (vasprintf(list, fmt, ap) < 0)
		*list = NULL;
	va_end(ap);
}

static size_t length(char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

/* What the scheduler decides. */
static size_t put_given(const struct live *l, uint32_t which,
			const struct argv_given *g, char **list)
{
	uint64_t steps = l->live[which].steps;
	size_t n = 5;

	put(list, "--max-steps=%" PRIu64, steps);
	put(list, "--gpus=%" PRIu32, l->run.jobs[which].n_gpus);
	put(list, "--time-scale=%.9g", l->c.time_scale);
	put(list, "--checkpoint-dir=%s/checkpoints", g->folder);
	put(list, "--json=%s/record.json", g->folder);
	if (g->control && ++n)
		put(list, "--control=%s", g->control);
	if (*g->turns && ++n)
		put(list, "--turns=%s", g->turns);
	if (g->gpu_server && ++n)
		put(list, "--gpu-server=%s", g->gpu_server);
	if (argv_done(g->folder) && ++n)
		put(list, "--resume");
	return n;
}

int argv_make(const struct live *l, uint32_t which, const struct argv_given *g,
	      char ***ret)
{
	char *const *command = l->c.command;
	char **list = calloc(length(command) + MORE, sizeof(*list));
	size_t want = length(command);

	if (!list)
		return -ENOMEM;
	put(list, "%s", command[0]);
	/* as many as there can be */
	put(list, "--epochs=1000000");
	put(list, "--progress=off");
	put(list, "--ceiling=off");
	/* only when it is stopped */
	put(list, "--checkpoint-every=%" PRIu64, l->live[which].steps + 1);
	want += 4;
	for (command++; *command; command++) {
		_cleanup_free_ char *text = argv_words(l, which, *command);

		if (text)
			put(list, "%s", text);
	}
	want += put_given(l, which, g, list);
	if (length(list) == want) {
		*ret = list;
		return 0;
	}
	argv_free(list);
	return -ENOMEM;
}

void argv_free(char **argv)
{
	for (char **word = argv; word && *word; word++)
		free(*word);
	free(argv);
}
