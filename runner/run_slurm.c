/* SPDX-License-Identifier: MIT */
/*
 *	OUT/slurm/options.yaml	the options of this gpemu-run, for the shards
 *	OUT/slurm/shard.sh	one job of the array: a shard
 *	OUT/slurm/merge.sh	the job that depends on the array
 *	OUT/slurm/I.log, merge.log	what they print
 *	OUT/shards/I		the result folder of shard I
 *
 * All of it is in the result folder, which the nodes must share.
 */
#include "runner/run_slurm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/json.h"
#include "common/system/mkdir_all.h"
#include "common/util.h"

enum {
	OWN_WORDS = 12,	 /* of a command line; there are fewer */
	MOST_WORDS = 64, /* arbitrary: of --slurm-options */
	ID = 32,	 /* of a job, as text */
};

struct submission {
	struct experiment *e;
	const struct run_options *o;
	const struct conf_field *fields;
	char *out;     /* OUT, absolute */
	char *file;    /* the workload's */
	char *program; /* this one */
};

/* --- files --------------------------------------------------------------- */

static int write_options(const struct submission *s, FILE *f)
{
	struct run_options o = *s->o;

	o.slurm = 0;
	o.slurm_options = NULL;
	o.dry_run = false;
	return conf_dump(s->fields, &o, f);
}

/* Options of the command line override those of the file. */
static int write_shard(const struct submission *s, FILE *f)
{
	fputs("#!/bin/sh\nout=", f);
	util_quote(s->out, f);
	fputs("\nexec ", f);
	util_quote(s->program, f);
	fprintf(f,
		" --config \"$out/slurm/options.yaml\" --progress off \\\n"
		"\t--shard \"$SLURM_ARRAY_TASK_ID/%" PRIu64
		"\" -o \"$out/shards/$SLURM_ARRAY_TASK_ID\" \\\n\t",
		s->o->slurm);
	util_quote(s->file, f);
	for (char *const *key = s->o->overrides; *key; key++) {
		fputc(' ', f);
		util_quote(*key, f);
	}
	fputc('\n', f);
	return 0;
}

/* A shard that never began has no folder; the merge misses its cells. */
static int write_merge(const struct submission *s, FILE *f)
{
	fputs("#!/bin/sh\nout=", f);
	util_quote(s->out, f);
	fprintf(f,
		"\nset --\nfor i in $(seq %" PRIu64 "); do\n"
		"\t[ ! -e \"$out/shards/$i/study.json\" ] ||\n"
		"\t\tset -- \"$@\" \"$out/shards/$i\"\n"
		"done\nexec ",
		s->o->slurm);
	util_quote(s->program, f);
	fputs(" merge -o \"$out\" \"$@\"\n", f);
	return 0;
}

static int write_file(const struct submission *s, const char *name,
		      int (*fill)(const struct submission *s, FILE *f),
		      struct err *err)
{
	_cleanup_free_ char *path = util_text("%s/slurm/%s", s->out, name);
	FILE *f = stdout;
	int r = 0;

	if (!path)
		return -ENOMEM;
	if (s->o->dry_run)
		printf("# %s\n", path);
	else
		r = util_new_stream(path, &f);
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	r = fill(s, f);
	if (!s->o->dry_run && fclose(f) != 0 && r == 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

static int write_files(const struct submission *s, struct err *err)
{
	_cleanup_free_ char *folder = util_text("%s/slurm", s->out);
	int r = 0;

	if (!folder)
		return -ENOMEM;
	if (!s->o->dry_run)
		r = mkdir_all(folder, 0777, err);
	if (r == 0)
		r = write_file(s, "options.yaml", write_options, err);
	if (r == 0)
		r = write_file(s, "shard.sh", write_shard, err);
	if (r == 0)
		r = write_file(s, "merge.sh", write_merge, err);
	return r;
}

/* --- sbatch -------------------------------------------------------------- */

/* The number of the job, which is printed first, in `ret`. */
static int read_id(int fd, char ret[ID], struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t n, digits;
	int r;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = util_read_whole(fd, 4096, &text, &n);
	if (r < 0)
		return err_set(err, r, "sbatch: %s", strerror(-r));
	digits = strspn(text, "0123456789");
	if (!digits || digits >= ID)
		return err_set(err, -EIO, "sbatch has submitted no job");
	snprintf(ret, ID, "%.*s", (int)digits, text);
	return 0;
}

static int run_sbatch(struct stop *stop, char *const argv[], char ret[ID],
		      int *ret_status, struct err *err)
{
	_cleanup_close_ int fd = memfd_create("sbatch", MFD_CLOEXEC);
	struct child child;
	int r;

	if (fd < 0)
		return err_set(err, -errno, "memfd: %s", strerror(errno));
	r = child_start(&child, argv, NULL, fd, STDERR_FILENO, err);
	if (r == -ENOENT)
		return -ENODEV;
	if (r < 0)
		return r;
	r = child_wait(&child, stop, 0, ret_status);
	if (r < 0) {
		child_end(&child, 0);
		return r;
	}
	return read_id(fd, ret, err);
}

/*
 * The words `own`, which end with a NULL, then those of --slurm-options, which
 * override them, then the script.
 */
static int submit(const struct submission *s, char *const own[],
		  const char *script, char ret[ID], int *ret_status,
		  struct err *err)
{
	_cleanup_free_ char *path = util_text("%s/slurm/%s", s->out, script);
	_cleanup_free_ char *options =
		strdup(s->o->slurm_options ? s->o->slurm_options : "");
	char *argv[OWN_WORDS + MOST_WORDS + 2], *at = NULL;
	size_t n = 0;

	if (!path || !options)
		return -ENOMEM;
	while (own[n]) {
		argv[n] = own[n];
		n++;
	}
	for (char *w = strtok_r(options, " ", &at); w;
	     w = strtok_r(NULL, " ", &at)) {
		if (n == OWN_WORDS + MOST_WORDS)
			return err_set(err, -E2BIG,
				       "--slurm-options: more than %d words",
				       MOST_WORDS);
		argv[n++] = w;
	}
	argv[n++] = path;
	argv[n] = NULL;
	if (!s->o->dry_run)
		return run_sbatch(&s->e->r.stop, argv, ret, ret_status, err);
	for (size_t i = 0; i < n; i++) {
		util_quote(argv[i], stdout);
		putchar(i + 1 < n ? ' ' : '\n');
	}
	snprintf(ret, ID, "JOB");
	return 0;
}

static int submit_array(const struct submission *s, char ret[ID],
			int *ret_status, struct err *err)
{
	_cleanup_free_ char *tasks =
		util_text("--array=1-%" PRIu64, s->o->slurm);
	_cleanup_free_ char *output =
		util_text("--output=%s/slurm/%%a.log", s->out);
	_cleanup_free_ char *name = util_text("--job-name=%s", s->e->w.name);

	if (!tasks || !output || !name)
		return -ENOMEM;
	return submit(s,
		      (char *[]){ (char *)"sbatch", (char *)"--parsable",
				  (char *)"--requeue",
				  (char *)"--open-mode=append", tasks, output,
				  name, NULL },
		      "shard.sh", ret, ret_status, err);
}

static int submit_merge(const struct submission *s, const char *array,
			char ret[ID], int *ret_status, struct err *err)
{
	_cleanup_free_ char *after =
		util_text("--dependency=afterany:%s", array);
	_cleanup_free_ char *output =
		util_text("--output=%s/slurm/merge.log", s->out);
	_cleanup_free_ char *name =
		util_text("--job-name=%s-merge", s->e->w.name);

	if (!after || !output || !name)
		return -ENOMEM;
	return submit(s,
		      (char *[]){ (char *)"sbatch", (char *)"--parsable", after,
				  output, name, NULL },
		      "merge.sh", ret, ret_status, err);
}

/* --- both ---------------------------------------------------------------- */

static int find_paths(struct submission *s, const char *path, struct err *err)
{
	_cleanup_free_ char *here = get_current_dir_name();
	const char *out = s->e->r.out;

	s->file = realpath(path, NULL);
	s->program = realpath("/proc/self/exe", NULL);
	if (!here || !s->file || !s->program)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	s->out = out[0] == '/' ? strdup(out) : util_text("%s/%s", here, out);
	return s->out ? 0 : -ENOMEM;
}

static int report(const struct submission *s, const char *array,
		  const char *merge, struct err *err)
{
	json_auto_t *j = NULL;

	if (!s->o->quiet)
		printf("submitted %s: %zu cells in %" PRIu64
		       " shards, job %s; they are merged by job %s\n"
		       "results: %s\nlogs: %s/slurm\n",
		       s->e->w.name, workload_n_cells(&s->e->w), s->o->slurm,
		       array, merge, s->out, s->out);
	if (!s->o->common.json)
		return 0;
	j = json_pack("{s:s, s:I, s:s, s:s, s:o}", "workload", s->e->w.name,
		      "shards", (json_int_t)s->o->slurm, "job", array,
		      "merge_job", merge, "output", json_bytes(s->out));
	return j ? json_write(j, s->o->common.json, err) : -ENOMEM;
}

static int submit_both(struct submission *s, int *ret_status, struct err *err)
{
	char array[ID], merge[ID];
	int r = write_files(s, err);

	if (r == 0)
		r = submit_array(s, array, ret_status, err);
	if (r == 0)
		r = submit_merge(s, array, merge, ret_status, err);
	return r == 0 && !s->o->dry_run ? report(s, array, merge, err) : r;
}

int slurm_submit(struct experiment *e, const char *path,
		 const struct conf_field *fields, const struct run_options *o,
		 int *ret_status, struct err *err)
{
	struct submission s = { .e = e, .o = o, .fields = fields };
	int r;

	*ret_status = 0;
	if (o->slurm > workload_n_cells(&e->w))
		return err_set(err, -EINVAL,
			       "--slurm %" PRIu64 ": %s has only %zu cells",
			       o->slurm, e->w.name, workload_n_cells(&e->w));
	r = stop_init(&e->r.stop, err);
	if (r == 0)
		r = find_paths(&s, path, err);
	if (r == 0)
		r = submit_both(&s, ret_status, err);
	free(s.out);
	free(s.file);
	free(s.program);
	return r;
}
