/* SPDX-License-Identifier: MIT */
/*
 * gpemu-smi: queries the state of gpemu-gpud and shows it in the style of
 * nvidia-smi.
 *
 * Rooms, in the order in which the state meets them:
 *
 *	share		the server writes it as JSON (status.c)
 *	emu/gpu		the protocol transfers it (gpud_query.h)
 *	share/smi	as tables or XML (smi_table.h, smi_xml.h)
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
#include "emu/gpu/gpud_query.h"
#include "share/smi/smi_table.h"
#include "share/smi/smi_xml.h"

struct options {
	struct cli_common common;
	char *socket, *server_user;
	struct conf_list fail, repair; /* uint64_t */
	bool watch, query, xml;
};

static const struct conf_field fields[] = {
	{ "socket", CONF_STRING, offsetof(struct options, socket),
	  .short_opt = 'S', .arg = "PATH",
	  .help = "where gpemu-gpud listens (default: the first of "
		  "$GPEMU_GPU_SERVER, else gpemu-gpud.sock in "
		  "$XDG_RUNTIME_DIR, else /run/gpemu-gpud.sock for root, "
		  "/tmp/gpemu-UID/gpud.sock for others)" },
	{ "server_user", CONF_STRING, offsetof(struct options, server_user),
	  .arg = "USER|UID",
	  .help = "also trust a server of this user (default: your own and "
		  "root)" },
	{ "fail", CONF_LIST, offsetof(struct options, fail), .item = CONF_UINT,
	  .item_size = sizeof(uint64_t), .arg = "GPU", .cli_only = true,
	  .help = "first let a GPU fail: its jobs end with an error, and it "
		  "gets no others" },
	{ "repair", CONF_LIST, offsetof(struct options, repair),
	  .item = CONF_UINT, .item_size = sizeof(uint64_t), .arg = "GPU",
	  .cli_only = true, .help = "first repair a GPU" },
	{ "watch", CONF_BOOL, offsetof(struct options, watch), .short_opt = 'w',
	  .cli_only = true,
	  .help = "refresh every SECONDS (default 1), until interrupted" },
	{ "query", CONF_BOOL, offsetof(struct options, query), .short_opt = 'q',
	  .cli_only = true,
	  .help = "with -x: all that is known, as nvidia-smi writes it" },
	{ "xml_format", CONF_BOOL, offsetof(struct options, xml),
	  .short_opt = 'x', .cli_only = true, .help = "with -q: as XML" },
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

static int show_once(const char *path, const struct options *o, struct err *err)
{
	json_auto_t *j = NULL;
	const char *file = o->common.json;
	int r = gpud_query(path, o->server_user, GPUD_PATIENCE_S, &j, err);

	if (r < 0)
		return r;
	if (o->watch && isatty(STDOUT_FILENO))
		printf("\033[H\033[J"); /* from the top of an empty screen */
	if (!file || strcmp(file, "-"))
		(o->xml ? smi_xml : smi_table)(j, stdout);
	fflush(stdout);
	return file ? json_write(j, file, err) : 0;
}

static int mark(const char *path, const struct options *o,
		const struct conf_list *gpus, bool failed, struct err *err)
{
	const uint64_t *gpu = gpus->items;
	struct gpud_client c;
	int r = 0;

	for (size_t i = 0; r == 0 && i < gpus->n; i++) {
		struct gpud_msg m = {
			.type = GPUD_MARK,
			.mark = { .gpu = (uint32_t)MIN(gpu[i], UINT32_MAX),
				  .failed = failed },
		};

		r = gpud_open(path, o->server_user, &c, err);
		if (r == 0)
			r = gpud_send(&c, &m, err);
		if (r == 0)
			r = gpud_receive(&c, &m, err);
		gpud_close(&c);
	}
	return r;
}

/* The server: as given on the command line, to this process, or the default. */
static int find_server(struct options *o, struct err *err)
{
	char *user = NULL;
	int r = o->socket ? 0 : gpud_given(&o->socket, &user, err);

	if (o->server_user)
		free(user);
	else
		o->server_user = user;
	if (r == 0 && !o->socket)
		o->socket = gpud_default_path();
	return r < 0 || o->socket ? r : err_set(err, -ENOMEM, "out of memory");
}

static int run(struct options *o, uint64_t pause_ns, struct err *err)
{
	int r = find_server(o, err);

	if (r == 0)
		r = mark(o->socket, o, &o->fail, true, err);
	if (r == 0)
		r = mark(o->socket, o, &o->repair, false, err);
	if (r == 0)
		r = show_once(o->socket, o, err);
	while (r == 0 && o->watch) {
		tick_pause(pause_ns);
		r = show_once(o->socket, o, err);
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
	else if (o.query != o.xml)
		r = err_set(&err, -EINVAL, "-q and -x are only valid together");
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
	r = run(&o, util_whole(pause * NS_PER_S), &err);
	conf_free(fields, &o);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}
