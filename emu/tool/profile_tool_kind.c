/* SPDX-License-Identifier: MIT */
/* Determines the kind of a profile from a word or a file. */
#include <errno.h>

#include "common/word.h"
#include "emu/tool/profile_tool.h"

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
