/* SPDX-License-Identifier: MIT */
/*
 * Slurm counts the GPUs of a node by device files. Emulated ones have none, so
 * udev makes links to /dev/null, with a name each. The indices that a job gets
 * count over the kinds of the node in the order of its file, as gres.conf has
 * them.
 */
#include "platform/slurm/slurm_files.h"

#include <inttypes.h>
#include <string.h>

#include "common/util.h"

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
