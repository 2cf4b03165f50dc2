/* SPDX-License-Identifier: MIT */
/*
 * A workload file: which dataset, which base configuration, what varies.
 *
 *	extends: base.yaml              runner/tree/run_tree.h
 *	name: cache-policies            a word; names the result folder
 *	question: Which policy ...?     one line
 *	figure: DataStall, figure 3     the published figure, if any
 *	dataset: {dataset: ..., ...}    keys of `gpemu-data make`; or {dir: DIR}
 *	                                or {synth: NAME, files: N, ...}
 *	base:
 *	  fs: {storage: hdd}            keys of gpemu-fs
 *	  train: {model: resnet50, ...} keys of gpemu-train
 *	  gpud: {gpu: p100}             keys of gpemu-gpud: its GPUs are shared
 *	  s3: {storage: s3-standard}    keys of gpemu-s3: an object store beside
 *	                                the mount; without fs, in its place
 *	  prepd: {workers: 4, cores: 2} a preparation service: how many workers,
 *	                                and keys of gpemu-prepd worker
 *	axes:                           what varies; the last one fastest
 *	  fs.cache_policy: [lru, minio] values of one key
 *	  node:                         or named points that set several
 *	    - {label: small, fs.cache_size: 20%, train.workers: 2}
 *	  load:                         or lists that advance together
 *	    zip: {train.batch: [32, 64], train.workers: [1, 2]}
 *	  train.workers: {from: 1, to: 64, step: 2, log: true}
 *	exclude: [{fs.cache_policy: lru, fs.cache_size: [10%, 20%]}]
 *	mounts: {a: {fs: {...}}, b: {fs: {...}, dataset: {...}}}
 *	jobs:                           run concurrently in each cell
 *	  one: {mount: a, train: {...}}
 *	  two: {mount: b, start: 5s, exec: {command: [prog, "{mount}"]}}
 *	environment: ...                of base and jobs: for the loaders
 *	repetitions: 3
 *	warmup: 1                       discarded runs of each point
 *	order: random                   of the cells, interleaved | listed
 *	noise: 5%                       limit of other load, else run again
 *	time_scale: 0.1                 passed to every program
 *	seed: 1                         a repetition adds its number, from 0
 *	cell_timeout: 10m
 *	metrics: {name: {path: ...}}    common to run_metric.h
 *	columns: [seconds, hit_ratio]   of the table
 *	plot: [{x: fs.cache_size, y: hit_ratio, series: fs.cache_policy}]
 *	rules: {au: 90%}                       run_rules.h
 *	null: {rig: "null"}                    where the effect is left out
 *	kind: self                             default, run_evidence.h
 *	expect: [{that: hit_ratio > 10}]       run_expect.h
 *	published: {paper: {...}}
 *
 * A point is one value of each axis: all combinations but those of `exclude`.
 * A cell is one run: a point and a repetition. A key is fs.K,
 * train.K, dataset.K, exec.K or env.K, for all mounts or jobs, or NAME.fs.K
 * and so on for one of them; or gpud.K, prepd.K, s3.K.
 */
#ifndef GPEMU_RUNNER_SPEC_RUN_WORKLOAD_H
#define GPEMU_RUNNER_SPEC_RUN_WORKLOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/conf/conf.h"
#include "common/err.h"
#include "common/units.h"
#include "runner/tree/run_tree.h"

/* The owner of a setting. The last two have no program that could check it. */
enum run_program {
	RUN_FS,
	RUN_TRAIN,
	RUN_DATA,
	RUN_GPUD, /* servers of a cell, from here */
	RUN_PREPD,
	RUN_S3, /* up to here */
	RUN_EXEC,
	RUN_ENV,
	RUN_PROGRAMS,
};
enum { RUN_SERVERS = RUN_S3 - RUN_GPUD + 1 };

/* Does it serve all jobs of a cell, beside its mounts? */
static inline bool run_is_server(enum run_program program)
{
	return program >= RUN_GPUD && program <= RUN_S3;
}

/* The rule for names that become folders. */
bool workload_is_name(const char *s);
#define WORKLOAD_NAME_RULE "name: a word of a-z 0-9 - _, it names a folder"

/* "gpemu-fs", "gpemu-train", "gpemu-data", "gpemu-gpud", "gpemu-prepd",
 * "gpemu-s3", "exec", "environment". */
const char *run_program_name(enum run_program program);
/* What its keys begin with: "fs", "train", "dataset", "gpud", "prepd", "s3",
 * "exec", "env". */
const char *run_program_word(enum run_program program);

/* The key of an axis `dataset`, whose values are whole datasets: a folder,
 * "synth:NAME,KEY=VALUE" or "pack:FILE", or the mapping of the key `dataset` of
 * the file. */
#define WORKLOAD_WHOLE ""

/* One key of one program; all borrowed from the workload. */
struct setting {
	enum run_program program;
	const char *target; /* not terminated: its mount or job */
	size_t n_target;    /* 0: all */
	const char *key;
	const struct conf_node *value;
	unsigned line, column; /* of the key */
};

/* Is it a whole dataset? */
static inline bool setting_is_whole(const struct setting *s)
{
	return s->program == RUN_DATA && !strcmp(s->key, WORKLOAD_WHOLE);
}

struct axis_point {
	const char *label;
	char *made_label; /* the label if allocated; or NULL */
	struct setting *settings;
	size_t n_settings;
};

struct axis {
	const char *name;
	struct axis_point *points;
	size_t n_points;
};

struct plot {
	char *name; /* of its files; default "y-by-x" */
	char *title;
	char *kind;   /* lines | bars */
	char *x;      /* an axis */
	char *y;      /* a metric */
	char *series; /* an axis; NULL: one series */
	char *x_label, *y_label, *series_label;
	struct conf_node *where; /* other axes: their fixed label */
};

/* The mounts and jobs of a cell, overriding `base`. */
struct mount_spec {
	char *name;
	struct conf_node *dataset, *fs; /* or NULL */
};

struct job_spec {
	char *name;
	char *mount;	   /* NULL: the first */
	uint64_t start_ns; /* emulated, after the mounts */
	struct conf_node *train, *exec, *environment;
};

enum workload_order { ORDER_RANDOM, ORDER_INTERLEAVED, ORDER_LISTED };

struct workload {
	char *path; /* as given, for messages */
	struct tree_names names;
	struct conf_node *root; /* with what it extends and overrides */
	char *extends;
	json_t *overrides; /* [KEY=VALUE], as given */
	char *name;
	char *question;
	char *figure; /* the published figure, as commonly cited; or NULL */
	struct conf_node *dataset;
	struct conf_node *base[RUN_PROGRAMS]; /* for all; or NULL */
	struct conf_list mounts; /* struct mount_spec; empty: one, "data" */
	struct conf_list jobs;	 /* struct job_spec; empty: one, "train" */
	struct conf_node *axes_tree;
	uint64_t repetitions;
	double time_scale;
	uint64_t seed;
	uint64_t cell_timeout_ns;
	uint64_t warmup;
	char *order_text;
	enum workload_order order;
	struct units_capacity noise; /* a share of a cell's time */
	bool independent;	     /* cells may run concurrently */
	struct {
		struct units_capacity au; /* a share */
	} rules;			  /* run_rules.h */
	struct conf_list metrics;	  /* struct metric */
	struct conf_list columns;	  /* char * */
	struct conf_list plots;		  /* struct plot */
	char *kind_text;	    /* of expectations without one, or NULL */
	struct conf_node *fitted;   /* of calibrated checks without one */
	struct conf_node *null;	    /* {axis: label}: without the effect */
	struct conf_list expects;   /* struct expect, run_expect.h */
	struct conf_list published; /* struct published */
	struct conf_list excludes;  /* struct conf_node *: {axis: label or
				     * labels} */
	struct axis *axes;
	size_t n_axes;
	uint32_t *points; /* [point * n_axes + axis]: index of the value */
	size_t n_points;
	uint64_t gpus; /* train.gpus of all jobs; 0: as the file says */
	/* run_profiles.h; NULL: not loaded */
	json_t *profiles, *defaults;
	/* run_identity.h; NULL: not loaded */
	json_t *files, *commands;
	uint64_t *hashes; /* of the cells of a stored study; or NULL */
	const char *bin_dir, *share_dir;
	const char *network; /* --network, if it is not auto; else NULL */
};

/*
 * Read a file, with what it extends and the `overrides` ("KEY=VALUE", ended by
 * NULL; or NULL), and check all that does not need the programs. -EINVAL and
 * "file:line:column: what". Free with workload_free, failed or not.
 */
int workload_load(const char *path, char *const *overrides,
		  struct workload *ret, struct err *err);
/* The same from memory; safe on any input. It extends nothing. */
int workload_parse(const char *bytes, size_t n, const char *path,
		   struct workload *ret, struct err *err);
void workload_free(struct workload *w);
/* All keys of such a file, as conf_print_keys does. -ENOMEM. */
int workload_print_keys(FILE *f);

/*
 * Checks a setting with the program that owns it. -EINVAL: invalid, with a text
 * without position. Other errors end the check.
 */
typedef int (*workload_check_fn)(void *ctx, const struct setting *setting,
				 struct err *err);
/*
 * Call `check` for every setting of the workload. -EINVAL: the text is that of
 * `check` with the position.
 */
int workload_check(const struct workload *w, workload_check_fn check, void *ctx,
		   struct err *err);

/* The value of a setting: a string, or an array or object of strings. */
json_t *workload_value(const struct conf_node *value);

/* The axis called `name`: its index, or -ENOENT. */
int workload_axis(const struct workload *w, const char *name);
/* The value of axis `axis` at a point. */
const struct axis_point *workload_at(const struct workload *w, size_t point,
				     size_t axis);

/* The label of an axis: its index, or -ENOENT. */
int workload_find_label(const struct workload *w, size_t axis,
			const char *label);
/*
 * The axis selected by [axis=label] or, with `axis` NULL, [label]; "*" is any
 * label. -ENOENT: none; -EINVAL: several have the label.
 */
int workload_select(const struct workload *w, const char *axis,
		    const char *label);
/* The point does not exist: it is excluded. */
#define WORKLOAD_NO_POINT SIZE_MAX
enum { WORKLOAD_MAX_AXES = 32 }; /* arbitrary: more than anybody varies */
/* The index of the value on each axis. */
const uint32_t *workload_row(const struct workload *w, size_t point);
/* The point of such a row, or WORKLOAD_NO_POINT. */
size_t workload_find_row(const struct workload *w, const uint32_t *row);
/* `point`, but with the `value`-th value of axis `axis`; WORKLOAD_NO_POINT. */
size_t workload_move(const struct workload *w, size_t point, size_t axis,
		     size_t value);
/* Does `where` ({axis: label or list of labels}; NULL: any) select the point?
 * One without the effect (`null`) only if it names that axis. */
bool workload_matches(const struct workload *w, size_t point,
		      const struct conf_node *where);
/* The axis that has points without the effect; -ENOENT: none. */
int workload_null_axis(const struct workload *w);
/* `point`, but without the effect; WORKLOAD_NO_POINT: it does not run. */
size_t workload_null_point(const struct workload *w, size_t point);
/* Is `label` the label, or in the list, that `node` is? */
bool workload_is_one_of(const struct conf_node *node, const char *label);
/* -EINVAL with its position if it has an unknown name or an empty list. */
int workload_check_where(const struct workload *w,
			 const struct conf_node *where, bool lists,
			 struct err *err);
/*
 * Call `fn` for the settings of a point, one that wins over another after it,
 * until it fails: for all targets first, then for one; a whole dataset before
 * keys of it.
 */
int workload_each_at(const struct workload *w, size_t point,
		     int (*fn)(void *ctx, const struct setting *s), void *ctx);
/* Where the file sets program and key of `what` for the `i`-th mount or job,
 * with the precedence of workload_each_at(). NULL: nowhere, or not to a scalar.
 */
const struct conf_node *workload_given(const struct workload *w, size_t point,
				       const struct setting *what, size_t i);
/*
 * The value of a setting ("fs.cache_size", "two.train.batch") in the cell of a
 * point; else the label of the axis of that name. Borrowed. NULL: not set, or,
 * without a NAME, its mounts or jobs differ.
 */
const char *workload_setting(const struct workload *w, size_t point,
			     const char *name);
/* May workload_setting() of this name depend on axis `axis`? */
bool workload_decides(const struct workload *w, size_t axis, const char *name);
/* "20%" is 0.2, sizes are bytes, durations seconds; -EINVAL. */
int workload_number(const char *text, double *ret);

/* "random", "interleaved", "listed": of the cells. */
const char *workload_order_name(const struct workload *w);

/* --- for the parts that read a workload ------------------------------- */

/* run_axes.c */
int workload_parse_axes(struct workload *w, struct err *err);
/* run_ranges.c: turn each axis {from, to, ...} into a list. */
int workload_expand_ranges(const struct workload *w, struct err *err);
/* w->points, of the axes. */
int workload_make_points(struct workload *w, struct err *err);
/* Split "fs.K" or "NAME.fs.K" into program, key and target, which borrow from
 * `key`; false: no such program. */
bool workload_split_key(const char *key, struct setting *ret);
/* Keys of a program that gpemu-run itself sets. */
bool workload_is_reserved(enum run_program program, const char *key);
/* run_jobs.c: mounts, jobs, commands and the preparation service, checked
 * without the programs. */
int workload_check_jobs(const struct workload *w, struct err *err);
/* Call `fn` for every axis setting, until it fails. */
int workload_each_setting(const struct workload *w,
			  int (*fn)(void *ctx, const struct setting *s,
				    struct err *err),
			  void *ctx, struct err *err);
/* -EINVAL with the position of the node's key. */
int workload_key_error(const struct workload *w, const struct conf_node *node,
		       struct err *err, const char *what);

/* --- cells ------------------------------------------------------------ */

struct cell_mount {
	char *name;
	json_t *dataset; /* a recipe, or {dir: DIR} */
	json_t *fs;	 /* the configuration of gpemu-fs */
	/* of a job with several nodes, whose mounts are consecutive: the index
	 * of the first of them, and their number; 0: of no such job */
	size_t first;
	uint64_t nodes;
};

/* Source: the range of gpemu-train --nodes */
enum { CELL_NODES_MAX = 1024 };

struct cell_job {
	const char *name;
	size_t mount;
	/* of gpemu-train: each has a mount, `mount` and those behind it, with
	 * the node's number at the end of its name */
	uint64_t nodes;
	uint64_t start_ns; /* emulated */
	json_t *train;	   /* the configuration of gpemu-train, */
	json_t *exec;	   /* or of a program: `command` and variables */
	json_t *env;	   /* variables of its environment */
};

/* Does it have an object store and no mounts? */
bool workload_is_store_only(const struct workload *w);

/* One run, as it will be executed. */
struct cell {
	size_t point, repetition;
	uint64_t seed;
	uint64_t hash; /* of all inputs */
	char id[128];  /* labels, repetition, hash; a file name */
	struct cell_mount *mounts;
	size_t n_mounts;
	struct cell_job *jobs;
	size_t n_jobs;
	/* the configurations of its servers; NULL: none runs */
	union {
		struct {
			json_t *gpud;
			json_t *prepd; /* with at least one worker */
			json_t *s3;
		};
		json_t *servers[RUN_SERVERS]; /* from RUN_GPUD on */
	};
	/* the jobs read it alone: the cell has no mounts */
	bool store_only;
};

/* arbitrary: worker processes on one machine */
enum { CELL_WORKERS_MAX = 64 };

/* The workers that `prepd` asks for; 1 if it does not say. */
uint64_t cell_prepd_workers(const json_t *prepd);
/* A configuration as its program reads it: of gpemu-prepd, the options of
 * `gpemu-prepd worker` among the keys. NULL: no memory. */
json_t *cell_options(enum run_program program, const json_t *config);
/* Does the job take batches of a preparation service (--loader service)? */
bool cell_has_service(const struct cell_job *job);

/* Does gpemu-run choose the addresses of its peers (fs.peers: auto)? */
static inline bool cell_has_peers(const struct cell_mount *m)
{
	const char *peers = json_string_value(json_object_get(m->fs, "peers"));

	return peers && !strcmp(peers, "auto");
}

/* The folder in which it can be written (fs.writable), "scratch" for one of the
 * run; NULL: it cannot. */
static inline const char *cell_writable(const struct cell_mount *m)
{
	return json_string_value(json_object_get(m->fs, "writable"));
}
/* In a simulation checkpoints are what is written, to the storage: it knows no
 * writable mounts. */
static inline void cell_unwritable(json_t *fs)
{
	json_object_del(fs, "writable");
	json_object_del(fs, "writable_scale");
	json_object_del(fs, "capacity");
}

/* Does it run a user's program instead of gpemu-train? */
static inline bool cell_is_exec(const struct cell_job *job)
{
	return json_object_get(job->exec, "command") != NULL;
}

/* Does it compute its times (gpemu-train --simulate)? It needs no mount. */
bool cell_job_is_simulated(const struct cell_job *job);
/* Do all its jobs? */
bool cell_is_simulated(const struct cell *cell);

size_t workload_n_cells(const struct workload *w);
/* Cell `index`, without `hash` and `id`. -ENOMEM. */
int workload_configure(const struct workload *w, size_t index,
		       struct cell *ret);
/*
 * Cell `index`. Cells whose effective configuration is the same have the same
 * hash; without a mount the configuration of gpemu-fs has no effect. -ENOMEM.
 */
int workload_cell(const struct workload *w, size_t index, bool mounted,
		  struct cell *ret);
void cell_free(struct cell *cell);
/* "lru, 35%, async": the labels of a point; "all" when nothing varies. */
void workload_label(const struct workload *w, size_t point, char *buf,
		    size_t n);
/* {AXIS: label} of a point. */
json_t *workload_labels(const struct workload *w, size_t point);

#endif
