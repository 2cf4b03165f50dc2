/* SPDX-License-Identifier: MIT */
/*
 * gpemu-slurm: the configuration of Slurm for the emulated GPUs of a node.
 *
 * Rooms, in the order in which the file of the node meets them:
 *
 *	platform	the file, decoded (node.h)
 *	platform/slurm	what Slurm is to read
 */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/program/cli.h"
#include "common/util.h"
#include "platform/node.h"

/*
 * The files of Slurm: it counts the GPUs of a node by device files. Emulated
 * ones have none, so udev makes links to /dev/null, with a name each. The
 * indices that a job gets count over the kinds of the node in the order of its
 * file, as gres.conf has them.
 */

struct slurm_config {
	const struct node *node;
	const char *path;   /* of the node's file, for comments */
	const char *nodes;  /* their names, as Slurm writes them: n[0-3] */
	const char *folder; /* of these files, absolute */
	const char *run;    /* of locks and process IDs, absolute */
	const char *bin;    /* of gpemu-gpud and gpemu-smi, absolute */
	uint64_t cpus;	    /* of a node; 0: another line says it */
};

struct slurm_file {
	const char *name;
	unsigned mode; /* of permissions */
	void (*write)(const struct slurm_config *c, FILE *f);
};

/* Ends with a NULL name. */
extern const struct slurm_file slurm_files[];

#define DEV "/dev/"

static void head(const struct slurm_config *c, FILE *f)
{
	fprintf(f, "# Written by gpemu-slurm from %s\n", c->path);
}

/* What the index of a GPU is appended to. */
static void device(const struct node_kind *k, FILE *f)
{
	if (k->device)
		fputs(k->device, f);
	else
		fprintf(f, DEV "gpemu-%s-", k->name);
}

static void write_gres(const struct slurm_config *c, FILE *f)
{
	head(c, f);
	fputs("AutoDetect=off\n", f);
	for (size_t i = 0; i < c->node->gpus.n; i++) {
		const struct node_kind *k = node_kind(c->node, i);

		fprintf(f, "NodeName=%s Name=gpu Type=%s File=", c->nodes,
			k->name);
		device(k, f);
		if (k->count > 1)
			fprintf(f, "[0-%" PRIu64 "]", k->count - 1);
		else
			fputc('0', f);
		fputs(" Flags=nvidia_gpu_env\n", f);
	}
}

static void write_nodes(const struct slurm_config *c, FILE *f)
{
	head(c, f);
	fprintf(f,
		"GresTypes=gpu\nProlog=%s/prolog\nEpilog=%s/epilog\n"
		"TaskProlog=%s/task_prolog\nNodeName=%s",
		c->folder, c->folder, c->folder, c->nodes);
	if (c->cpus)
		fprintf(f, " CPUs=%" PRIu64, c->cpus);
	for (size_t i = 0; i < c->node->gpus.n; i++) {
		const struct node_kind *k = node_kind(c->node, i);

		fprintf(f, "%sgpu:%s:%" PRIu64, i ? "," : " Gres=", k->name,
			k->count);
	}
	fputc('\n', f);
}

static void write_rules(const struct slurm_config *c, FILE *f)
{
	head(c, f);
	fputs("KERNEL==\"null\", SUBSYSTEM==\"mem\", SYMLINK+=\"", f);
	for (size_t i = 0; i < c->node->gpus.n; i++) {
		const struct node_kind *k = node_kind(c->node, i);

		/* others are made by someone else */
		for (uint64_t g = 0; !k->device && g < k->count; g++)
			fprintf(f, "%sgpemu-%s-%" PRIu64, i || g ? " " : "",
				k->name, g);
	}
	fputs("\"\n", f);
}

/* --- scripts ------------------------------------------------------------- */

static void path_in(const char *folder, const char *name, FILE *f)
{
	util_quote(folder, f);
	fprintf(f, "/%s", name);
}

/* Slurm runs these without a search path. */
static void script(const struct slurm_config *c, FILE *f)
{
	fputs("#!/bin/sh\n", f);
	head(c, f);
	fputs("PATH=/usr/sbin:/usr/bin:/sbin:/bin\nrun=", f);
	util_quote(c->run, f);
	fputc('\n', f);
}

/*
 * The servers run while the node has jobs: each job leaves a file, and what is
 * started or ended is under one lock. A server that does not come fails the
 * prolog, and Slurm drains the node.
 */
static void write_prolog(const struct slurm_config *c, FILE *f)
{
	script(c, f);
	fputs("mkdir -p \"$run/jobs\" && exec 9>\"$run/lock\" && flock 9 || "
	      "exit\n: >\"$run/jobs/$SLURM_JOB_ID\"\n"
	      "# serve NAME PROFILE GPUS SOCKET\n"
	      "serve()\n{\n"
	      "\t! ask \"$4\" || return 0\n"
	      "\tmkdir -p \"${4%/*}\"\n\tsetsid ",
	      f);
	path_in(c->bin, "gpemu-gpud", f);
	fputs(" --gpu \"$2\" --gpus \"$3\" --socket \"$4\" \\\n"
	      "\t\t--mode 0666 --allow all >\"$run/$1.log\" 2>&1 </dev/null "
	      "9>&- &\n"
	      "\techo $! >\"$run/$1.pid\"\n"
	      "\tfor try in $(seq 100); do\n"
	      "\t\t! ask \"$4\" || return 0\n"
	      "\t\tkill -0 $! || return\n"
	      "\t\tsleep 0.1\n"
	      "\tdone\n\treturn 1\n}\n"
	      "ask()\n{\n\t",
	      f);
	path_in(c->bin, "gpemu-smi", f);
	fputs(" --socket \"$1\" >/dev/null 2>&1 9>&-\n}\n", f);
	for (size_t i = 0; i < c->node->gpus.n; i++) {
		const struct node_kind *k = node_kind(c->node, i);

		fprintf(f, "serve %s ", k->name);
		util_quote(k->profile, f);
		fprintf(f, " %" PRIu64 " ", k->count);
		util_quote(k->server, f);
		fputs(" || exit\n", f);
	}
}

static void write_epilog(const struct slurm_config *c, FILE *f)
{
	script(c, f);
	fputs("mkdir -p \"$run/jobs\" && exec 9>\"$run/lock\" && flock 9 || "
	      "exit\nrm -f \"$run/jobs/$SLURM_JOB_ID\"\n"
	      "[ -z \"$(ls \"$run/jobs\")\" ] || exit 0\n"
	      "# finish NAME: end the server, and wait until it has ended\n"
	      "finish()\n{\n"
	      "\tread -r pid <\"$run/$1.pid\" || return 0\n"
	      "\trm -f \"$run/$1.pid\"\n"
	      "\tfor try in $(seq 100); do\n"
	      "\t\tgrep -qsx gpemu-gpud \"/proc/$pid/comm\" || return 0\n"
	      "\t\tkill \"$pid\"\n"
	      "\t\tsleep 0.1\n"
	      "\tdone\n}\n",
	      f);
	for (size_t i = 0; i < c->node->gpus.n; i++)
		fprintf(f, "finish %s 2>/dev/null\n",
			node_kind(c->node, i)->name);
	fputs("exit 0\n", f);
}

/* Slurm adds what it prints to the environment of the task. */
static void write_task_prolog(const struct slurm_config *c, FILE *f)
{
	uint64_t first = 0;

	script(c, f);
	fputs("# given SERVER PROFILE FIRST LAST: the GPUs of a kind\n"
	      "given()\n{\n"
	      "\tgpus=0\n"
	      "\tfor gpu in $(echo \"$CUDA_VISIBLE_DEVICES\" | tr , ' '); do\n"
	      "\t\t[ \"$gpu\" -lt \"$3\" ] || [ \"$gpu\" -gt \"$4\" ] ||\n"
	      "\t\t\tgpus=$((gpus + 1))\n"
	      "\tdone\n"
	      "\tprintf 'export %s\\n' \"GPEMU_GPU_SERVER=$1\" \\\n"
	      "\t\t\"GPEMU_GPU_PROFILE=$2\" \"GPEMU_GPUS=$gpus\"\n"
	      "}\n"
	      "case ${CUDA_VISIBLE_DEVICES%%,*} in\n",
	      f);
	for (size_t i = 0; i < c->node->gpus.n; i++) {
		const struct node_kind *k = node_kind(c->node, i);
		uint64_t last = first + k->count - 1;

		for (uint64_t g = first; g <= last; g++)
			fprintf(f, "%s%" PRIu64, g > first ? " | " : "", g);
		fputs(") given ", f);
		util_quote(k->server, f);
		fputc(' ', f);
		util_quote(k->profile, f);
		fprintf(f, " %" PRIu64 " %" PRIu64 " ;;\n", first, last);
		first += k->count;
	}
	fputs("esac\n", f);
}

const struct slurm_file slurm_files[] = {
	{ "gres.conf", 0644, write_gres },
	{ "nodes.conf", 0644, write_nodes },
	{ "70-gpemu.rules", 0644, write_rules },
	{ "prolog", 0755, write_prolog },
	{ "epilog", 0755, write_epilog },
	{ "task_prolog", 0755, write_task_prolog },
	{ 0 },
};

struct options {
	struct cli_common common;
	char *nodes, *output, *run_dir;
	uint64_t cpus;
};

#define FIELD(key, type, member) key, type, offsetof(struct options, member)

static const struct conf_field fields[] = {
	{ FIELD("nodes", CONF_STRING, nodes), .arg = "LIST",
	  .help = "names of the nodes in Slurm's syntax: n[0-3] (default: this "
		  "host)" },
	{ FIELD("cpus", CONF_UINT, cpus), .arg = "N", .max = 1 << 20,
	  .help = "processors of a node (default 0: set by another line)" },
	{ FIELD("output", CONF_STRING, output), .short_opt = 'o', .arg = "DIR",
	  .check = conf_check_absolute,
	  .help = "folder of the files, absolute (default /etc/gpemu/slurm)" },
	{ FIELD("run_dir", CONF_STRING, run_dir), .arg = "DIR",
	  .check = conf_check_absolute,
	  .help = "folder of locks and process IDs (default "
		  "/run/gpemu/slurm)" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-slurm",
	.args = "NODE.yaml",
	.n_args = 1,
	.summary = "Write the configuration of Slurm for the emulated GPUs of "
		   "a node: gres.conf, node lines, a udev rule, and the "
		   "prologs and epilog that run its gpemu-gpud.",
	.fields = fields,
};

static int write_one(const struct slurm_config *c,
		     const struct slurm_file *file, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	FILE *f;
	int r;

	if (asprintf(&path, "%s/%s", c->folder, file->name) < 0) {
		path = NULL;
		return err_set(err, -ENOMEM, "out of memory");
	}
	r = util_new_stream(path, &f);
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	file->write(c, f);
	if (fchmod(fileno(f), file->mode) < 0)
		r = -errno;
	if (fclose(f) != 0 && r == 0)
		r = -errno;
	if (r == 0)
		puts(path);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

/* mkdir -p of an absolute path. */
static int make_folder(const char *path, struct err *err)
{
	for (const char *end = path; *end;) {
		_cleanup_free_ char *part = NULL;

		end += 1 + strcspn(end + 1, "/");
		part = strndup(path, (size_t)(end - path));
		if (!part)
			return err_set(err, -ENOMEM, "out of memory");
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return err_set(err, -errno, "%s: %s", part,
				       strerror(errno));
	}
	return 0;
}

static int write_all(const struct slurm_config *c, struct err *err)
{
	int r = make_folder(c->folder, err);

	for (const struct slurm_file *f = slurm_files; r == 0 && f->name; f++)
		r = write_one(c, f, err);
	return r;
}

static int run(const struct options *o, const char *path, struct err *err)
{
	_cleanup_free_ char *exe = realpath("/proc/self/exe", NULL);
	char host[65] = "";
	struct slurm_config c = { .path = path,
				  .folder = o->output,
				  .run = o->run_dir,
				  .cpus = o->cpus };
	struct node node;
	int r = node_load(path, &node, err);

	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0'; /* Slurm's names are short */
	c.node = &node;
	c.nodes = o->nodes ? o->nodes : host;
	c.bin = exe ? dirname(exe) : NULL; /* changes `exe` */
	if (r == 0 && !c.bin)
		r = err_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
	if (r == 0)
		r = write_all(&c, err);
	node_free(&node);
	return r;
}

int main(int argc, char **argv)
{
	struct options o = { .output = strdup("/etc/gpemu/slurm"),
			     .run_dir = strdup("/run/gpemu/slurm") };
	struct err err = { 0 };
	char *path;
	int r;

	cli_parse(&program, argc, argv, &o, &path);
	r = run(&o, path, &err);
	conf_free(fields, &o);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
