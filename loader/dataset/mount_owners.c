/* SPDX-License-Identifier: MIT */
#include "loader/dataset/mount.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>

#include "common/json.h"
#include "common/util.h"

bool mount_attribute(const struct dataset *d, size_t i, const char *name,
		     uint64_t *ret)
{
	char path[PATH_MAX], text[24];
	ssize_t n;

	if (d->container ||
	    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", d->dirfd,
		     dataset_path(d, i)) >= (int)sizeof(path))
		return false;
	n = getxattr(path, name, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	*ret = strtoull(text, NULL, 10);
	return true;
}

/* The mount is node `rank` of `world`. */
static int check_node(const struct mount *m, const json_t *peer, uint64_t rank,
		      uint64_t world, struct err *err)
{
	uint64_t node =
		(uint64_t)json_integer_value(json_object_get(peer, "node"));
	uint64_t nodes = json_array_size(json_object_get(peer, "peers")) + 1;

	if (node == rank && nodes == world)
		return 0;
	return err_set(err, -EINVAL,
		       "%s: the mount is node %" PRIu64 " of %" PRIu64
		       ", and this is rank %" PRIu64 " of %" PRIu64
		       ": --order locality needs one node for each rank, in "
		       "the same order",
		       m->dir, node, nodes, rank, world);
}

int mount_owners(const struct mount *m, const struct dataset *d, uint64_t rank,
		 uint64_t world, uint32_t **ret, struct err *err)
{
	json_auto_t *stats = mount_stats(m);
	const json_t *peer = json_object_get(stats, "peer");
	_cleanup_free_ uint32_t *owner = NULL;
	int r = 0;

	*ret = NULL;
	if (!peer || world < 2)
		return 0;
	r = check_node(m, peer, rank, world, err);
	if (r == 0 && d->container)
		r = err_set(err, -EINVAL,
			    "--order locality on a mount with --peers: the "
			    "samples must be files of their own");
	if (r < 0)
		return r;
	owner = calloc(d->n, sizeof(*owner));
	if (!owner)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < d->n; i++) {
		uint64_t n;
		bool has = mount_attribute(d, i, "user.gpemu.owner", &n);

		owner[i] = has && n < world ? (uint32_t)n : UINT32_MAX;
	}
	*ret = TAKE_PTR(owner);
	return 0;
}
