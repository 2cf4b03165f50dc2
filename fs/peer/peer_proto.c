/* SPDX-License-Identifier: MIT */
#include "fs/peer/peer_proto.h"

#include <errno.h>
#include <string.h>

#include "net/wire.h"

static void get_hello(struct wire *w, struct peer_hello *h)
{
	const unsigned char *fingerprint;

	h->version = (uint32_t)wire_get(w, 4);
	h->node = (uint32_t)wire_get(w, 4);
	h->nodes = (uint32_t)wire_get(w, 4);
	h->seed = wire_get(w, 8);
	h->capacity_bytes = wire_get(w, 8);
	fingerprint = wire_bytes(w, PLACE_FINGERPRINT);
	if (fingerprint)
		memcpy(h->fingerprint, fingerprint, PLACE_FINGERPRINT);
}

static unsigned char *put_hello(unsigned char *at, const struct peer_hello *h)
{
	at = wire_put(at, h->version, 4);
	at = wire_put(at, h->node, 4);
	at = wire_put(at, h->nodes, 4);
	at = wire_put(at, h->seed, 8);
	at = wire_put(at, h->capacity_bytes, 8);
	memcpy(at, h->fingerprint, PLACE_FINGERPRINT);
	return at + PLACE_FINGERPRINT;
}

int peer_decode(const unsigned char *m, size_t n, struct peer_msg *ret)
{
	struct wire w = { .at = m, .left = n };
	uint64_t reason;

	*ret = (struct peer_msg){ .type = (enum peer_type)wire_get(&w, 1) };
	switch (ret->type) {
	case PEER_HELLO:
	case PEER_WELCOME: get_hello(&w, &ret->hello); break;
	case PEER_REFUSE:
		reason = wire_get(&w, 1);
		if (reason == PEER_FITS || reason >= PEER_REASONS)
			return -EPROTO;
		ret->reason = (enum peer_reason)reason;
		break;
	case PEER_GET:
		ret->id = wire_get(&w, 8);
		ret->key = wire_get(&w, 8);
		ret->bytes = (uint32_t)wire_get(&w, 4);
		break;
	case PEER_DATA:
		ret->id = wire_get(&w, 8);
		ret->n_data = w.left;
		ret->data = wire_bytes(&w, w.left);
		break;
	case PEER_NOTFOUND: ret->id = wire_get(&w, 8); break;
	default: return -EPROTO;
	}
	return w.bad || w.left ? -EPROTO : 0;
}

size_t peer_encode(const struct peer_msg *m, unsigned char ret[PEER_HEAD])
{
	unsigned char *at = wire_put(ret, m->type, 1);

	switch (m->type) {
	case PEER_HELLO:
	case PEER_WELCOME: at = put_hello(at, &m->hello); break;
	case PEER_REFUSE: at = wire_put(at, m->reason, 1); break;
	case PEER_GET:
		at = wire_put(at, m->id, 8);
		at = wire_put(at, m->key, 8);
		at = wire_put(at, m->bytes, 4);
		break;
	case PEER_DATA:
	case PEER_NOTFOUND: at = wire_put(at, m->id, 8); break;
	}
	return (size_t)(at - ret);
}

enum peer_reason peer_compare(const struct peer_hello *mine,
			      const struct peer_hello *theirs, uint32_t node)
{
	if (theirs->version != mine->version)
		return PEER_OTHER_VERSION;
	if (memcmp(theirs->fingerprint, mine->fingerprint, PLACE_FINGERPRINT) !=
	    0)
		return PEER_OTHER_DATASET;
	if (theirs->seed != mine->seed)
		return PEER_OTHER_SEED;
	if (theirs->nodes != mine->nodes)
		return PEER_OTHER_NODES;
	if (theirs->capacity_bytes != mine->capacity_bytes)
		return PEER_OTHER_CAPACITY;
	return theirs->node == node && node != mine->node ? PEER_FITS
							  : PEER_OTHER_NODE;
}

const char *peer_reason_text(enum peer_reason r)
{
	static const char *const texts[] = {
		[PEER_FITS] = "it fits",
		[PEER_OTHER_VERSION] =
			"it has a different version of the protocol",
		[PEER_OTHER_DATASET] =
			"its files have different names, sizes or times",
		[PEER_OTHER_SEED] = "it has a different --seed",
		[PEER_OTHER_NODES] = "it has a different number of --peers",
		[PEER_OTHER_CAPACITY] = "it has a different --cache-size",
		[PEER_OTHER_NODE] = "it has a different --node",
	};

	return texts[r];
}
