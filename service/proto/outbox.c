/* SPDX-License-Identifier: MIT */
#include "service/proto/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

struct outbox_item {
	struct outbox_item *next;
	size_t n;
	unsigned char bytes[];
};

void outbox_init(struct outbox *o)
{
	*o = (struct outbox){ 0 };
	o->end = &o->first;
}

static struct outbox_item *take_item(struct outbox *o)
{
	struct outbox_item *i = o->first;

	if (!i)
		return NULL;
	o->first = i->next;
	if (!o->first)
		o->end = &o->first;
	o->bytes -= i->n;
	return i;
}

void outbox_fini(struct outbox *o)
{
	struct outbox_item *i;

	while ((i = take_item(o)))
		free(i);
	o->closes = 0;
}

void outbox_put(struct outbox *o, struct conn *c, const struct msg *m)
{
	size_t n = PREPD_HEAD + m->n_rest;
	struct outbox_item *i;

	if (o->closes)
		return;
	i = o->bytes + n > OUTBOX_MOST ? NULL : malloc(sizeof(*i) + n);
	if (!i) {
		conn_end(c, -ENOBUFS);
		return;
	}
	i->next = NULL;
	i->n = n;
	msg_encode(m, i->bytes);
	if (m->n_rest)
		memcpy(i->bytes + PREPD_HEAD, m->rest, m->n_rest);
	*o->end = i;
	o->end = &i->next;
	o->bytes += n;
	conn_kick(c);
}

void outbox_refuse(struct outbox *o, struct conn *c, int error, const char *why)
{
	struct msg m = { .type = PREPD_REFUSE, .rest = why };

	m.n_rest = MIN(strlen(why), PREPD_TEXT);
	outbox_put(o, c, &m);
	o->closes = error;
}

bool outbox_fill(struct outbox *o, struct conn *c, uint64_t now)
{
	struct outbox_item *i = take_item(o);
	int r;

	if (!i) {
		if (o->closes)
			conn_end(c, o->closes);
		return false;
	}
	r = conn_send(c, i->bytes, i->n, NULL, 0, now);
	if (r < 0)
		conn_end(c, r);
	free(i);
	return true;
}
