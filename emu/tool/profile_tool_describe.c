/* SPDX-License-Identifier: MIT */
/* The kind of a profile, from a word or a file; one line about it, for lists
 * and checks. */
#include "emu/tool/profile_tool.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/word.h"
#include "emu/node/profile_node.h"
#include "emu/profile/profile_dataset.h"
#include "emu/profile/profile_prep.h"
#include "emu/profile/profile_share.h"
#include "emu/profile/profile_storage.h"

static int describe_gpu(const char *name, char *line, size_t size,
			struct err *err)
{
	struct gpu_profile p;
	int r = gpu_profile_load(name, &p, err);
	int n = 0;

	if (r == 0) {
		n = snprintf(line, size, "%s, %.0f MiB, %zu models", p.name,
			     p.memory_mib, p.models.n);
		for (size_t i = 0; i < p.aliases.n && n < (int)size; i++)
			n += snprintf(line + n, size - (size_t)n, "%s%s",
				      i ? " " : "; also ",
				      ((char **)p.aliases.items)[i]);
	}
	gpu_profile_free(&p);
	return r;
}

static int check_name(const char *name, const char *own, struct err *err)
{
	return profile_is_path(name) || !strcmp(own, name)
		       ? 0
		       : err_set(err, -EINVAL,
				 "%s: its 'name' is '%s', unlike the file's "
				 "name",
				 name, own);
}

static int describe_storage(const char *name, char *line, size_t size,
			    struct err *err)
{
	struct storage_profile *p;
	int r = storage_profile_load(name, &p, err);
	const struct storage_class *read;

	if (r < 0)
		return r;
	read = &p->op[STORAGE_READ];
	r = check_name(name, p->name, err);
	snprintf(line, size, "a read takes %.4g ms on average",
		 (dist_time_mean(&read->occupancy) +
		  dist_time_mean(&read->latency) + dist_time_mean(&read->seek) +
		  (double)read->rotation_ns / 2) /
			 1e6);
	storage_profile_free(p);
	return r;
}

static int describe_dataset(const char *name, char *line, size_t size,
			    struct err *err)
{
	struct dataset_profile p;
	int r = dataset_profile_load(name, &p, err);

	if (r == 0)
		r = check_name(name, p.name, err);
	if (r == 0)
		snprintf(line, size, "%llu %s files, %.0f bytes on average%s",
			 (unsigned long long)p.files, p.format,
			 dataset_profile_mean(&p),
			 p.verified ? "" : " (unverified)");
	dataset_profile_free(&p);
	return r;
}

static int describe_prep(const char *name, char *line, size_t size,
			 struct err *err)
{
	struct prep_profile p;
	int r = prep_profile_load(name, &p, err);

	if (r == 0)
		r = check_name(name, p.name, err);
	if (r == 0)
		snprintf(line, size, "%.4g ms a sample on average%s%s%s",
			 dist_time_mean(&p.sample) / 1e6,
			 p.per_mb_ns ? ", plus a cost per byte" : "",
			 p.gpu.rows.n ? ", part of it on the GPU" : "",
			 p.verified ? "" : " (unverified)");
	prep_profile_free(&p);
	return r;
}

static int describe_node(const char *name, char *line, size_t size,
			 struct err *err)
{
	struct node_profile p;
	int r = node_profile_load(name, &p, err);

	if (r == 0)
		r = check_name(name, p.name, err);
	if (r == 0)
		snprintf(line, size, "%" PRIu64 " x %s, %" PRIu64 " cores%s",
			 p.gpus, p.gpu ? p.gpu : "a GPU without a profile",
			 p.cores, p.verified ? "" : " (unverified)");
	node_profile_free(&p);
	return r;
}

static int describe_share(const char *name, char *line, size_t size,
			  struct err *err)
{
	struct share_profile p;
	int r = share_profile_load(name, &p, err);

	if (r == 0)
		r = check_name(name, p.name, err);
	if (r == 0)
		snprintf(line, size, "speedup of %zu concurrent jobs: %.3g%s",
			 p.rows.n, share_profile_speedup(&p, p.rows.n),
			 p.verified ? "" : " (unverified)");
	share_profile_free(&p);
	return r;
}

int profile_tool_describe(enum profile_kind kind, const char *name, char *line,
			  size_t size, struct err *err)
{
	switch (kind) {
	case PROFILE_GPU: return describe_gpu(name, line, size, err);
	case PROFILE_STORAGE: return describe_storage(name, line, size, err);
	case PROFILE_DATASET: return describe_dataset(name, line, size, err);
	case PROFILE_PREP: return describe_prep(name, line, size, err);
	case PROFILE_NODE: return describe_node(name, line, size, err);
	case PROFILE_SHARE: return describe_share(name, line, size, err);
	case PROFILE_N_KINDS: break;
	}
	return -EINVAL;
}

int profile_tool_kind(const char *word, struct err *err)
{
	const char *names[PROFILE_N_KINDS];

	for (int k = 0; k < PROFILE_N_KINDS; k++)
		names[k] = profile_kind_name((enum profile_kind)k);
	return WORD_FIND(names, "kind", word, err);
}

int profile_tool_kind_of_file(const char *path, enum profile_kind *ret,
			      struct err *err)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	int r = conf_tree_load(path, &root, err);

	if (r < 0)
		return r;
	if (conf_node_get(root, "models"))
		*ret = PROFILE_GPU;
	else if (conf_node_get(root, "sizes"))
		*ret = PROFILE_DATASET;
	else if (conf_node_get(root, "read"))
		*ret = PROFILE_STORAGE;
	else if (conf_node_get(root, "pcie"))
		*ret = PROFILE_NODE;
	else if (conf_node_get(root, "sample") || conf_node_get(root, "gpu"))
		*ret = PROFILE_PREP;
	else if (conf_node_get(root, "rows"))
		*ret = PROFILE_SHARE;
	else
		return err_set(err, -EINVAL,
			       "%s:1:1: no profile: none of 'models' (GPU), "
			       "'read' (storage), 'sizes' (dataset), "
			       "'pcie' (node), 'sample' (prep), "
			       "'rows' (share)",
			       path);
	return 0;
}
