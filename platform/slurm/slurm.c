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
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/program/cli.h"
#include "common/system/mkdir_all.h"
#include "common/text/template.h"
#include "common/util.h"
#include "platform/node.h"

/*
 * The files of Slurm: it counts the GPUs of a node by device files. Emulated
 * ones have none, so udev makes links to /dev/null, with a name each. The
 * indices that a job gets count over the kinds of the node in the order of its
 * file, as gres.conf has them.
 */

static const struct template templates[] = {
#include "slurm.inc"
	{ 0 },
};

static const struct slurm_file {
	const char *name, *template;
	unsigned mode; /* of permissions */
} files[] = {
	{ "gres.conf", "gres", 0644 },
	{ "nodes.conf", "nodes", 0644 },
	{ "70-gpemu.rules", "udev", 0644 },
	/* The servers run while the node has jobs: each job leaves a file, and
	 * what is started or ended is under one lock. A server that does not
	 * come fails the prolog, and Slurm drains the node. */
	{ "prolog", "prolog", 0755 },
	{ "epilog", "epilog", 0755 },
	/* Slurm adds what it prints to the environment of the task. */
	{ "task_prolog", "task_prolog", 0755 },
};

struct options {
	struct cli_common common;
	char *nodes, *output, *run_dir;
	uint64_t cpus;
};

/* --- what fills them ----------------------------------------------------- */

/* A word of the shell. */
static json_t *quoted(const char *s)
{
	_cleanup_free_ char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	util_quote(s, f);
	fclose(f);
	return json_stringn_nocheck(text, n);
}

/* A kind of GPU, of which the first has the index `first`. */
static json_t *kind_json(const struct node_kind *k, uint64_t first)
{
	char device[NODE_NAME + 16], range[32] = "0";
	char indices[8 * NODE_MAX_GPUS];
	size_t n = 0;

	snprintf(device, sizeof(device), "/dev/gpemu-%s-", k->name);
	if (k->count > 1)
		snprintf(range, sizeof(range), "[0-%" PRIu64 "]", k->count - 1);
	for (uint64_t g = 0; g < k->count && n < sizeof(indices); g++)
		n += (size_t)snprintf(indices + n, sizeof(indices) - n,
				      "%s%" PRIu64, g ? " | " : "", first + g);
	return json_pack("{s:s, s:I, s:I, s:I, s:s, s:s, s:o, s:o, s:s}",
			 "name", k->name, "count", (json_int_t)k->count,
			 "first", (json_int_t)first, "last",
			 (json_int_t)(first + k->count - 1), "device",
			 k->device ? k->device : device, "range", range,
			 "profile", quoted(k->profile), "server",
			 quoted(k->server), "indices", indices);
}

/* What Slurm counts, and the links that udev makes of devices of ours. */
static void add_lists(json_t *doc, const struct node *node)
{
	_cleanup_free_ char *gres = NULL, *links = NULL;
	size_t n;
	FILE *g = open_memstream(&gres, &n), *l = open_memstream(&links, &n);

	for (size_t i = 0; g && l && i < node->gpus.n; i++) {
		const struct node_kind *k = node_kind(node, i);

		fprintf(g, "%sgpu:%s:%" PRIu64, i ? "," : "", k->name,
			k->count);
		for (uint64_t at = 0; !k->device && at < k->count; at++)
			fprintf(l, "%sgpemu-%s-%" PRIu64, i || at ? " " : "",
				k->name, at);
	}
	if (g)
		fclose(g);
	if (l)
		fclose(l);
	json_add_text(doc, "gres", gres);
	json_add_text(doc, "links", links);
}

/* NULL: no memory. */
static json_t *document(const struct node *node, const struct options *o,
			const char *path, const char *nodes, const char *bin)
{
	json_t *kinds = json_array(), *doc;
	uint64_t first = 0;

	for (size_t i = 0; i < node->gpus.n; i++) {
		const struct node_kind *k = node_kind(node, i);

		json_array_append_new(kinds, kind_json(k, first));
		first += k->count;
	}
	/* paths are any bytes */
	doc = json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "path",
			json_stringn_nocheck(path, strlen(path)), "folder",
			json_stringn_nocheck(o->output, strlen(o->output)),
			"nodes", json_stringn_nocheck(nodes, strlen(nodes)),
			"cpus", (json_int_t)o->cpus, "run", quoted(o->run_dir),
			"bin", quoted(bin), "kinds", kinds);
	if (doc)
		add_lists(doc, node);
	return doc;
}

/* --- the command --------------------------------------------------------- */

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

static int write_one(const json_t *doc, const char *folder,
		     const struct slurm_file *file, struct err *err)
{
	_cleanup_free_ char *path = util_join(folder, file->name);
	FILE *f;
	int r;

	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	r = util_new_stream(path, &f);
	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	template_fill(templates, file->template, doc, f);
	if (fchmod(fileno(f), file->mode) < 0)
		r = -errno;
	if (fclose(f) != 0 && r == 0)
		r = -errno;
	if (r == 0)
		puts(path);
	return r < 0 ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

static int write_all(const json_t *doc, const char *folder, struct err *err)
{
	int r = doc ? mkdir_all(folder, 0755, err)
		    : err_set(err, -ENOMEM, "out of memory");

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		r = write_one(doc, folder, &files[i], err);
	return r;
}

static int run_node(const struct options *o, const char *path, struct err *err)
{
	_cleanup_free_ char *exe = realpath("/proc/self/exe", NULL);
	json_auto_t *doc = NULL;
	char host[65] = "";
	struct node node;
	int r = node_load(path, &node, err);

	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0'; /* Slurm's names are short */
	if (r == 0 && !exe)
		r = err_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
	if (r == 0) {
		doc = document(&node, o, path, o->nodes ? o->nodes : host,
			       dirname(exe)); /* changes `exe` */
		r = write_all(doc, o->output, err);
	}
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
	r = run_node(&o, path, &err);
	conf_free(fields, &o);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
