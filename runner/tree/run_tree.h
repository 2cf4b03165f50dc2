/* SPDX-License-Identifier: MIT */
/*
 * The tree of a workload file before it is decoded: what it extends, and what
 * the command line overrides.
 */
#ifndef GPEMU_RUNNER_TREE_RUN_TREE_H
#define GPEMU_RUNNER_TREE_RUN_TREE_H

#include "runner/tree/run_edit.h"

/*
 * Replace `extends: FILE` of the tree at `path` by the contents of that file,
 * relative to `path`, and so on, at most eight files deep.
 *
 * The keys of the file that extends win. Mappings in `base`, `mounts` and
 * `jobs` are joined key by key, `axes`, `metrics`, `published` and `rules` name
 * by name; everything else, a list or a dataset, is replaced as a whole. A null
 * (~) removes a key. A relative `dir` of a dataset still starts at the folder
 * of the file that has it. So does every other value that starts with "./".
 *
 * -EINVAL with "file:line:column: what": no such file, a circle, too deep.
 */
int tree_extend(struct conf_node *root, const char *path,
		struct tree_names *names, struct err *err);

/*
 * Set one key: "KEY=VALUE", where KEY is a path with dots (repetitions,
 * base.fs.storage, jobs.one.train.batch, axes.fs.cache_size) or, short for the
 * base, fs.KEY, train.KEY, exec.KEY, gpud.KEY, prepd.KEY, s3.KEY or env.KEY;
 * VALUE is YAML, and ~ removes the key. -EINVAL: errors give the text, with
 * line 1 and the column in it. *ret_base, if not NULL: the key as an axis would
 * be called
 * ("fs.storage"), if it is one of the base, else NULL; malloc'ed.
 */
int tree_override(struct conf_node *root, const char *text,
		  struct tree_names *names, char **ret_base, struct err *err);

#endif
