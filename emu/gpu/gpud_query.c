/* SPDX-License-Identifier: MIT */
#include "emu/gpu/gpud_query.h"

#include <errno.h>

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
