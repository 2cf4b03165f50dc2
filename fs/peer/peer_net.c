/* SPDX-License-Identifier: MIT */
#include "fs/peer/peer_net.h"

#include <errno.h>
#include <string.h>

#include "common/util.h"
#include "net/own_key.h"

struct words {
	char *copy;
	const char *v[PLACE_NODES];
	uint32_t n;
};

static int add_word(struct words *w, const char *word, struct err *err)
{
	int r = addr_check(word, err);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < w->n; i++)
		if (!strcmp(w->v[i], word))
			return err_set(err, -EINVAL, "'%s' is listed twice",
				       word);
	if (w->n == PLACE_NODES)
		return err_set(err, -EINVAL, "more than %d nodes", PLACE_NODES);
	w->v[w->n++] = word;
	return 0;
}

/* Free w->copy, even after an error. */
static int split(const char *list, struct words *w, struct err *err)
{
	char *rest, *word;
	int r = 0;

	*w = (struct words){ .copy = strdup(list) };
	rest = w->copy;
	if (!rest)
		return err_set(err, -ENOMEM, "out of memory");
	while (r == 0 && (word = strsep(&rest, ",")))
		r = add_word(w, word, err);
	if (r == 0 && w->n < 2)
		r = err_set(err, -EINVAL, "one node has no peers");
	return r;
}

int peer_net_check(const char *list, struct err *err)
{
	struct words w;
	int r;

	if (!strcmp(list, PEER_NET_AUTO))
		return 0;
	r = split(list, &w, err);
	free(w.copy);
	return r;
}

static int find_all(struct peer_net *net, const struct words *w, bool has_key,
		    struct err *err)
{
	for (uint32_t i = 0; i < w->n; i++) {
		int r = addr_find(w->v[i], &net->nodes[i], err);

		if (r < 0)
			return r;
		net->n++;
		if (!has_key && !addr_is_loopback(&net->nodes[i]))
			return err_set(err, -EINVAL,
				       "%s: other machines can reach this "
				       "address: all nodes need the same "
				       "--peer-key",
				       w->v[i]);
	}
	return 0;
}

int peer_net_init(struct peer_net *net, const char *list, uint64_t self,
		  const char *key, struct err *err)
{
	struct words w;
	int r = seal_init(err);

	*net = (struct peer_net){ .timeout_ns = PEER_TIMEOUT_NS,
				  .nic = nic_new() };
	if (r == 0 && !net->nic)
		r = err_set(err, -ENOMEM, "out of memory");
	if (r < 0)
		return r;
	if (!strcmp(list, PEER_NET_AUTO))
		return err_set(err, -EINVAL,
			       "--peers auto: only gpemu-run chooses the "
			       "addresses; list them");
	r = split(list, &w, err);
	if (r == 0 && self >= w.n)
		r = err_set(err, -EINVAL,
			    "--node %llu: the nodes of --peers are 0 to %u",
			    (unsigned long long)self, w.n - 1);
	net->self = (uint32_t)self;
	if (r == 0)
		r = key ? seal_read_secret(key, &net->secret, err)
			: own_key_read(&net->secret, err);
	if (r == 0)
		r = find_all(net, &w, key, err);
	free(w.copy);
	return r;
}

void peer_net_fini(struct peer_net *net)
{
	for (uint32_t i = 0; i < net->n; i++)
		addr_fini(&net->nodes[i]);
	seal_forget(&net->secret, sizeof(net->secret));
	nic_free(TAKE_PTR(net->nic));
	net->n = 0;
}
