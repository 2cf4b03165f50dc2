/* SPDX-License-Identifier: MIT */
/*
 * gpemu-smi: queries the state of gpemu-gpud and shows it in the style of
 * nvidia-smi.
 *
 * Rooms, in the order in which the state meets them:
 *
 *	share		the server writes it as JSON (status.c, scribe.c)
 *	emu/gpu		the protocol transfers it (gpud_client.h)
 *	share		as tables (smi_table.h)
 */
#include <errno.h>
#include <string.h>

#include "common/program/cli.h"
#include "common/json.h"
#include "common/log.h"
#include "common/tick.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "share/smi_table.h"

struct options {
	struct cli_common common;
	char *socket, *server_user;
	bool watch;
};

static const struct conf_field fields[] = {
	{ "socket", CONF_STRING, offsetof(struct options, socket),
	  .short_opt = 'S', .arg = "PATH",
	  .help = "where gpemu-gpud listens (default: gpemu-gpud.sock in "
		  "$XDG_RUNTIME_DIR, else /run/gpemu-gpud.sock for root, "
		  "/tmp/gpemu-UID/gpud.sock for others)" },
	{ "server_user", CONF_STRING, offsetof(struct options, server_user),
	  .arg = "USER|UID",
	  .help = "also trust a server of this user (default: your own and "
		  "root)" },
	{ "watch", CONF_BOOL, offsetof(struct options, watch), .short_opt = 'w',
	  .cli_only = true,
	  .help = "refresh every SECONDS (default 1), until interrupted" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-smi",
	.args = "[SECONDS]",
	.n_optional = 1,
	.summary = "Show the emulated GPUs of gpemu-gpud, their jobs and the "
		   "queue.",
	.fields = fields,
};

/* --- asking --------------------------------------------------------------- */

/* Uses a new connection each time: the server disconnects idle clients. */
static int ask(const char *path, const struct options *o, json_t **ret,
	       struct err *err)
{
	struct gpud_msg m = { .type = GPUD_QUERY };
	struct gpud_client c;
	json_error_t e;
	int r = gpud_open(path, o->server_user, &c, err);

	if (r == 0)
		r = gpud_send(&c, &m, err);
	if (r == 0)
		r = gpud_receive(&c, &m, err);
	if (r == 0 && m.type == GPUD_STATUS)
		*ret = json_loadb(m.status.json, m.status.n, 0, &e);
	gpud_close(&c);
	if (r == 0 && !*ret)
		r = err_set(err, -EPROTO,
			    "%s: the answer is not a status; does gpemu-gpud "
			    "listen there?",
			    path);
	return r;
}

static int show_once(const char *path, const struct options *o, struct err *err)
{
	json_auto_t *j = NULL;
	const char *file = o->common.json;
	int r = ask(path, o, &j, err);

	if (r < 0)
		return r;
	if (o->watch && isatty(STDOUT_FILENO))
		printf("\033[H\033[J"); /* from the top of an empty screen */
	if (!file || strcmp(file, "-"))
		smi_table(j, stdout);
	fflush(stdout);
	return file ? json_write(j, file, err) : 0;
}

static int run(const struct options *o, uint64_t pause_ns, struct err *err)
{
	_cleanup_free_ char *path = o->socket ? strdup(o->socket)
					      : gpud_default_path();
	int r;

	if (!path)
		return err_set(err, -ENOMEM, "out of memory");
	r = show_once(path, o, err);
	while (r == 0 && o->watch) {
		tick_pause(pause_ns);
		r = show_once(path, o, err);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct err err = { 0 };
	double pause = 1;
	char *seconds;
	int r = 0;

	cli_parse(&program, argc, argv, &o, &seconds);
	if (seconds && !o.watch)
		r = err_set(&err, -EINVAL, "'%s' is only valid with --watch",
			    seconds);
	else if (seconds && (units_parse_double(seconds, &pause) < 0 ||
			     pause < .01 || pause > 86400))
		r = err_set(&err, -EINVAL,
			    "--watch '%s': seconds, from 0.01 to 86400",
			    seconds);
	if (r < 0) {
		log_error("%s", err.text);
		conf_free(fields, &o);
		return EXIT_STATUS_USAGE;
	}
	r = run(&o, (uint64_t)(pause * NS_PER_S), &err);
	conf_free(fields, &o);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
