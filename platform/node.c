/* SPDX-License-Identifier: MIT */
#include "platform/node.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"
#include "emu/profile/profile.h"
#include "emu/profile/profile_gpu.h"

/* --- the fields ----------------------------------------------------------- */

/* "vendor.domain/name", as Kubernetes has resources and CDI has kinds. */
static int check_qualified(const void *object, struct err *err)
{
	const char *s = *(char *const *)object, *slash = strchr(s, '/');

	if (strlen(s) >= NODE_RESOURCE)
		return err_set(err, -EINVAL,
			       "'%s' is longer than %d characters", s,
			       NODE_RESOURCE - 1);
	if (slash && slash > s && slash[1] && isalnum((uint8_t)s[0]) &&
	    isalnum((uint8_t)slash[1]) &&
	    s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == '/' &&
	    !slash[1 + strspn(slash + 1,
			      "abcdefghijklmnopqrstuvwxyz"
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")])
		return 0;
	return err_set(err, -EINVAL, "'%s' is not of the form vendor.org/name",
		       s);
}

static int check_pair(const void *object, struct err *err)
{
	const char *s = *(char *const *)object;

	return strchr(s, '=') > s
		       ? 0
		       : err_set(err, -EINVAL, "'%s' is not KEY=VALUE", s);
}

#define MOUNT(key, type, member) key, type, offsetof(struct node_mount, member)

static const struct conf_field mount_fields[] = {
	{ MOUNT("host", CONF_STRING, host), .required = true,
	  .check = conf_check_absolute },
	{ MOUNT("container", CONF_STRING, container), .required = true,
	  .check = conf_check_absolute },
	{ MOUNT("read_only", CONF_BOOL, read_only) },
	{ 0 },
};

#define KIND(key, type, member) key, type, offsetof(struct node_kind, member)

static const struct conf_field kind_fields[] = {
	{ KIND("name", CONF_STRING, name) },
	{ KIND("profile", CONF_STRING, profile), PROFILE_NAME(gpu) },
	{ KIND("count", CONF_UINT, count), .required = true, .min = 1,
	  .max = NODE_MAX_GPUS },
	{ KIND("resource", CONF_STRING, resource), .check = check_qualified },
	{ KIND("server", CONF_STRING, server), .required = true,
	  .check = conf_check_absolute },
	{ KIND("server_user", CONF_STRING, server_user) },
	{ KIND("numa", CONF_LIST, numa), .item = CONF_UINT,
	  .item_size = sizeof(uint64_t), .lone = true },
	{ KIND("device", CONF_STRING, device), .check = conf_check_absolute },
	{ KIND("cdi", CONF_STRING, cdi), .check = check_qualified },
	{ KIND("env", CONF_LIST, env), .item = CONF_STRING,
	  .item_size = sizeof(char *), .lone = true, .check = check_pair },
	{ KIND("annotations", CONF_LIST, annotations), .item = CONF_STRING,
	  .item_size = sizeof(char *), .lone = true, .check = check_pair },
	{ KIND("mounts", CONF_LIST, mounts), .item = CONF_RECORD,
	  .item_size = sizeof(struct node_mount), .fields = mount_fields },
	{ KIND("replicas", CONF_UINT, replicas), .min = 1,
	  .max = NODE_MAX_DEVICES },
	{ KIND("slice", CONF_SIZE, slice_bytes), .min = (double)MIB,
	  .max = 1e15 },
	{ 0 },
};

static int check_kind(const void *object, struct err *err)
{
	const struct node_kind *k = object;
	const char *name = k->name;

	if (!islower((uint8_t)name[0]) || strlen(name) >= NODE_NAME ||
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")])
		return err_set(err, -EINVAL,
			       "'%s': a name is a lower-case letter, and up to "
			       "%d letters, digits and '-'",
			       name, NODE_NAME - 2);
	if (k->numa.n > 1 && k->numa.n != k->count)
		return err_set(err, -EINVAL,
			       "numa: %zu nodes for %u GPUs; name the node of "
			       "each GPU, or one of all",
			       k->numa.n, (unsigned)k->count);
	if (k->replicas && k->slice_bytes)
		return err_set(err, -EINVAL,
			       "either replicas or slice, not both");
	return 0;
}

static const struct conf_field fields[] = {
	{ CONF_KEY(gpus, CONF_MAP, struct node), .required = true,
	  .item_size = sizeof(struct node_kind), .fields = kind_fields,
	  .check = check_kind },
	{ 0 },
};

/* --- what follows from them ----------------------------------------------- */

static int default_text(char **text, const char *prefix, const char *name)
{
	if (*text)
		return 0;
	if (asprintf(text, "%s%s", prefix, name) < 0) {
		*text = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* How many slices a GPU has. */
static int settle_kind(struct node_kind *k, struct err *err)
{
	struct gpu_profile gpu = { 0 };
	int r = default_text(&k->profile, "", k->name);

	if (r == 0)
		r = default_text(&k->resource, "gpemu.io/", k->name);
	if (r < 0)
		return err_set(err, r, "out of memory");
	r = check_qualified(&k->resource, err);
	if (r == 0)
		r = gpu_profile_load_head(k->profile, &gpu, err);
	if (r == 0) {
		k->memory_bytes = (uint64_t)(gpu.memory_mib *
					     gpu.usable_memory * (double)MIB);
		k->gpu = TAKE_PTR(gpu.name);
	}
	gpu_profile_free(&gpu);
	if (r < 0)
		return r;
	k->n_slices = k->replicas ? (uint32_t)k->replicas : 1;
	if (k->slice_bytes) {
		uint64_t n = k->memory_bytes / k->slice_bytes;

		if (n == 0 || n > NODE_MAX_DEVICES)
			return err_set(err, -EINVAL,
				       "slice: %u of them fit into a GPU; from "
				       "1 to %d may",
				       (unsigned)MIN(n, UINT32_MAX),
				       NODE_MAX_DEVICES);
		k->n_slices = (uint32_t)n;
	}
	return 0;
}

/* Kinds of one resource: handed out alike, and not too many devices. */
static int check_resource(const struct node *n, size_t i, struct err *err)
{
	const struct node_kind *k = node_kind(n, i);
	uint64_t devices = 0;

	for (size_t j = 0; j < n->gpus.n; j++) {
		const struct node_kind *other = node_kind(n, j);

		if (j > i || strcmp(k->resource, other->resource) != 0)
			continue;
		devices += other->count * other->n_slices;
		if (other->replicas != k->replicas ||
		    other->slice_bytes != k->slice_bytes)
			return err_set(err, -EINVAL,
				       "%s and %s are one resource, %s, but "
				       "are not shared alike",
				       other->name, k->name, k->resource);
	}
	if (devices > NODE_MAX_DEVICES)
		return err_set(err, -EINVAL,
			       "%s: more than %d devices; use larger slices",
			       k->resource, NODE_MAX_DEVICES);
	return 0;
}

static int check_server(const struct node *n, size_t i, struct err *err)
{
	for (size_t j = 0; j < i; j++)
		if (!strcmp(node_kind(n, i)->server, node_kind(n, j)->server))
			return err_set(err, -EINVAL,
				       "%s and %s have one server; a "
				       "gpemu-gpud serves one kind of GPU",
				       node_kind(n, j)->name,
				       node_kind(n, i)->name);
	return 0;
}

static int decode(const struct conf_node *root, const char *name,
		  struct node *ret, struct err *err)
{
	int r = conf_decode(root, name, fields, ret, err);
	const struct conf_node *gpus;
	struct err why = { 0 };

	if (r < 0)
		return r;
	gpus = conf_node_get(root, "gpus");
	if (gpus->n == 0)
		return conf_node_error(gpus, name, err, "no GPUs");
	for (size_t i = 0; r == 0 && i < gpus->n; i++) {
		r = settle_kind((struct node_kind *)ret->gpus.items + i, &why);
		if (r == 0)
			r = check_resource(ret, i, &why);
		if (r == 0)
			r = check_server(ret, i, &why);
		if (r < 0)
			r = conf_node_error(gpus->items[i], name, err, "%s",
					    why.text);
	}
	return r;
}

int node_parse(const char *bytes, size_t n, const char *name, struct node *ret,
	       struct err *err)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	int r = conf_tree_parse(bytes, n, name, &root, err);

	*ret = (struct node){ 0 };
	return r < 0 ? r : decode(root, name, ret, err);
}

int node_load(const char *path, struct node *ret, struct err *err)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	int r = conf_tree_load(path, &root, err);

	*ret = (struct node){ 0 };
	return r < 0 ? r : decode(root, path, ret, err);
}

void node_free(struct node *n)
{
	struct node_kind *k = n->gpus.items;

	for (size_t i = 0; i < n->gpus.n; i++)
		free(k[i].gpu);
	conf_free(fields, n);
}

int64_t node_numa(const struct node_kind *k, uint32_t gpu)
{
	const uint64_t *numa = k->numa.items;

	if (k->numa.n == 0)
		return -1;
	return (int64_t)numa[k->numa.n == 1 ? 0 : gpu];
}

uint64_t node_slice_bytes(const struct node_kind *k)
{
	return k->slice_bytes ? k->slice_bytes : k->memory_bytes / k->n_slices;
}
