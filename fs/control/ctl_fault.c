/* SPDX-License-Identifier: MIT */
#include "fs/control/ctl_fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "fs/layer/layer_fault.h"

static int clear(struct ctl *ctl, const char *id, struct err *err)
{
	const struct conf_field field = { "id", CONF_UINT, 0, .min = 1,
					  .max = UINT32_MAX };
	uint64_t number = 0;
	int r = id[0] ? conf_set(&field, &number, id, err) : 0;

	return r < 0 ? err_set(err, r,
			       "no fault with the id %s; stats lists them", id)
		     : server_fault_clear(ctl->server, (uint32_t)number, err);
}

int ctl_fault(struct ctl *ctl, char *args, struct err *err)
{
	char *verb = util_trim(args), *rest = verb + strcspn(verb, " \t");
	size_t n = (size_t)(rest - verb);

	rest = util_trim(rest);
	if (n == 3 && !strncmp(verb, "add", n) && rest[0])
		return server_fault_add(ctl->server, rest, err);
	if (n == 5 && !strncmp(verb, "clear", n))
		return clear(ctl, rest, err);
	return err_set(err, -EINVAL, "use: fault add RULE, fault clear [ID]");
}

int ctl_fault_refresh(struct ctl *ctl)
{
	const struct conf_field *f = ctl->fields;
	struct conf_list *list, fresh;
	int r;

	while (f->key && strcmp(f->key, "fault"))
		f++;
	if (!f->key)
		return 0;
	const struct conf_field one[2] = { *f, { 0 } };

	r = server_fault_texts(ctl->server, &fresh);
	list = (struct conf_list *)((char *)ctl->options + f->offset);
	conf_free(one, ctl->options);
	*list = fresh;
	return r;
}
