/* SPDX-License-Identifier: MIT */
#include "emu/gpu/gpud_query.h"

#include <errno.h>
#include <string.h>

#include "emu/gpu/gpud_client.h"

int gpud_query(const char *path, const char *user, unsigned seconds,
	       json_t **ret, struct err *err)
{
	struct gpud_msg m = { .type = GPUD_QUERY };
	struct gpud_client c;
	json_t *j = NULL;
	int r = gpud_open_within(path, user, seconds, &c, err);

	if (r == 0)
		r = gpud_send(&c, &m, err);
	if (r == 0)
		r = gpud_receive(&c, &m, err);
	if (r == 0 && m.type == GPUD_STATUS)
		j = json_loadb(m.status.json, m.status.n, 0, NULL);
	gpud_close(&c);
	if (r == 0 && !j)
		r = err_set(err, -EPROTO,
			    "%s: the answer is not a status; does gpemu-gpud "
			    "listen there?",
			    path);
	if (r == 0)
		*ret = j;
	return r;
}

/* Send it and wait for its acknowledgement. */
static int acknowledged(struct gpud_client *c, struct gpud_msg *m,
			const char *what, struct err *err)
{
	int r = gpud_send(c, m, err);

	if (r == 0)
		r = gpud_receive(c, m, err);
	if (r < 0)
		return r;
	if (m->type != GPUD_ACK)
		return err_set(err, -EPROTO,
			       "%s: received a %s instead of an "
			       "answer",
			       c->path, gpud_type_name(m->type));
	r = -(int)m->ack.error;
	return r < 0 ? err_set(err, r, "%s: %s: %s", c->path, what,
			       strerror(-r))
		     : 0;
}

static int revoke(struct gpud_client *c, const char *name, struct err *err)
{
	struct gpud_msg m = { .type = GPUD_REVOKE };

	snprintf(m.revoke.name, sizeof(m.revoke.name), "%s", name);
	return acknowledged(c, &m, "to end a grant", err);
}

int gpud_regrant(const char *path, const char *name, const struct gpud_grant *g,
		 size_t n, struct err *err)
{
	struct gpud_client c;
	int r = gpud_open(path, NULL, &c, err);

	if (r == 0)
		r = revoke(&c, name, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct gpud_msg m = { .type = GPUD_GRANT, .grant = g[i] };
		char what[40];

		snprintf(what, sizeof(what), "a grant on GPU %u", g[i].gpu);
		r = acknowledged(&c, &m, what, err);
		if (r < 0)
			revoke(&c, name, NULL);
	}
	gpud_close(&c);
	return r;
}
