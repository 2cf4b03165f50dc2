/* SPDX-License-Identifier: MIT */
/*
 * gpemu-slurm: the configuration of Slurm for the emulated GPUs of a node.
 *
 * Rooms, in the order in which the file of the node meets them:
 *
 *	platform	the file, decoded (node.h)
 *	platform/slurm	what Slurm is to read (slurm_files.h)
 */
#include <errno.h>
#include <libgen.h>
#include <string.h>

#include "common/log.h"
#include "common/program/cli.h"
#include "common/util.h"
#include "platform/slurm/slurm_files.h"

struct options {
	struct cli_common common;
	char *nodes, *output, *run_dir;
	uint64_t cpus;
};

#define FIELD(key, type, member) key, type, offsetof(struct options, member)

static int check_absolute(const void *object, struct err *err)
{
	const char *s = *(char *const *)object;

	return s[0] == '/' ? 0
			   : err_set(err, -EINVAL,
				     "'%s' is not an absolute path", s);
}

static const struct conf_field fields[] = {
	{ FIELD("nodes", CONF_STRING, nodes), .arg = "LIST",
	  .help = "names of the nodes, as Slurm writes them: n[0-3] (default: "
		  "this host)" },
	{ FIELD("cpus", CONF_UINT, cpus), .arg = "N", .max = 1 << 20,
	  .help = "processors of a node (default 0: another line says it)" },
	{ FIELD("output", CONF_STRING, output), .short_opt = 'o', .arg = "DIR",
	  .check = check_absolute,
	  .help = "folder of the files, absolute (default /etc/gpemu/slurm)" },
	{ FIELD("run_dir", CONF_STRING, run_dir), .arg = "DIR",
	  .check = check_absolute,
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
