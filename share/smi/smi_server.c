/* SPDX-License-Identifier: MIT */
#include "share/smi/smi_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/gpu/gpud_query.h"
#include "share/smi/smi_field.h"

enum { NO_DEVICE = 6 /* source: nvidia-smi(1), RETURN VALUE */ };

int smi_server_first(const struct smi_server *s, char **ret_path,
		     char **ret_user, struct err *err)
{
	char *path = NULL, *user = NULL;
	int r = s->socket ? 0 : gpud_given(&path, &user, err);

	if (s->socket || s->user) {
		free(user);
		user = s->user ? strdup(s->user) : NULL;
	}
	if (r == 0 && !path)
		path = s->socket ? strdup(s->socket) : gpud_default_path();
	if (r == 0 && (!path || (s->user && !user)))
		r = err_set(err, -ENOMEM, "out of memory");
	*ret_path = path;
	*ret_user = user;
	return r;
}

/* The status of the server at `path` is one more of `statuses`. */
static int ask(const char *path, const char *user, json_t *statuses,
	       struct err *err)
{
	json_t *status;
	int r = gpud_query(path, user, GPUD_PATIENCE_S, &status, err);

	return r == 0 ? json_array_append_new(statuses, status) : r;
}

static int ask_all(const struct smi_server *s, json_t *statuses,
		   struct err *err)
{
	_cleanup_free_ char *first = NULL, *user = NULL, *all = NULL;
	const char *given = secure_getenv("GPEMU_GPU_SERVER");
	char *at = NULL;
	int r = smi_server_first(s, &first, &user, err);

	if (r < 0 || s->socket || !given || !given[0])
		return r < 0 ? r : ask(first, user, statuses, err);
	all = strdup(given);
	if (!all)
		return err_set(err, -ENOMEM, "out of memory");
	for (char *p = strtok_r(all, ":", &at); p;
	     p = strtok_r(NULL, ":", &at)) {
		if (r < 0)
			log_warn("%s", err->text);
		r = ask(p, user, statuses, err);
	}
	if (r < 0 && json_array_size(statuses)) {
		log_warn("%s", err->text);
		r = 0;
	}
	return r;
}

int smi_server_facts(const struct smi_server *s, json_t **ret, struct err *err)
{
	json_auto_t *statuses = json_array();
	json_t *facts = NULL;
	int r = ask_all(s, statuses, err);

	if (r == 0)
		facts = smi_facts(statuses);
	if (facts && s->id)
		r = smi_pick(facts, s->id);
	if (r == 0 && json_array_size(facts) == 0)
		r = -ENXIO;
	if (r < 0)
		json_decref(facts);
	else
		*ret = facts;
	return r;
}

int smi_server_output(const struct smi_server *s, FILE **ret, struct err *err)
{
	int r = 0;

	if (s->file)
		r = util_output_stream(s->file, O_CREAT | O_TRUNC, ret);
	else
		*ret = stdout;
	return r < 0 ? err_set(err, r, "%s: %s", s->file, strerror(-r)) : 0;
}

int smi_server_fail(int r, const struct err *err)
{
	if (r != -ENXIO || err->text[0])
		return cli_fail(r, err);
	puts("No devices were found");
	return NO_DEVICE;
}
