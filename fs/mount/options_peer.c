/* SPDX-License-Identifier: MIT */
#include "emu/node/profile_node.h"
#include "fs/mount/options.h"
#include "fs/peer/peer_net.h"

static int read_nic(const struct fs_config *c, struct peer_net *net,
		    struct err *err)
{
	struct node_profile p;
	int r = fs_config_nic(c, &p, err);

	if (r == 0)
		nic_limit(net->nic, p.nic.gb_per_s * 1e9, p.nic.latency_ns);
	node_profile_free(&p);
	return r;
}

int options_peers(const struct options *o, struct peer_net *ret,
		  struct err *err)
{
	int r = peer_net_init(ret, o->peers, o->node, o->peer_key, err);

	ret->timeout_ns = o->peer_timeout;
	return r == 0 && o->base.fs.nic ? read_nic(&o->base.fs, ret, err) : r;
}
