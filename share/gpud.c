/* SPDX-License-Identifier: MIT */
/*
 * gpemu-gpud: options, set-up, the record.
 *
 * Rooms, in the order in which an iteration of a client meets them:
 *
 *	emu/gpu		the protocol: what gpemu-train sends
 *	share		sockets and their loop (server.h); memory and time of
 *			the GPUs, without a clock (share.h)
 *	emu/profile	how long its copy and its computation take
 *	share/scheduler	whose iteration is next
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/program/cli.h"
#include "common/json.h"
#include "common/log.h"
#include "common/program/notify.h"
#include "common/units.h"
#include "common/util.h"
#include "emu/gpu/gpud_client.h"
#include "emu/profile/profile.h"
#include "share/server.h"

struct options {
	struct cli_common common;
	char *gpu, *socket, *mode, *scheduler, *share, *speedup, *slicing;
	uint64_t gpus, max_clients, max_per_user, idle_limit_ns;
	struct conf_list allow;
	double time_scale;
	bool keep_awake;
	struct plugin_choice choice; /* the scheduler, resolved */
	char *choice_text;
};

#define FIELD(key, type, member) key, type, offsetof(struct options, member)

CONF_CHECK(check_scheduler, plugin_choice_check, scheduler_table, "scheduler")

static int check_share(const void *object, struct err *err)
{
	enum share_mode mode;

	return share_mode_parse(*(char *const *)object, &mode, err);
}

static bool is_word(const char *slicing)
{
	return !strcmp(slicing, "auto") || !strcmp(slicing, "none");
}

static int check_slicing(const void *object, struct err *err)
{
	return is_word(*(char *const *)object)
		       ? 0
		       : profile_check_share(object, err);
}

static const struct conf_field fields[] = {
	{ FIELD("gpu", CONF_STRING, gpu), PROFILE_NAME(gpu), .arg = "NAME|FILE",
	  .help = "GPU profile (default v100)" },
	{ FIELD("gpus", CONF_UINT, gpus), .min = 1, .max = SHARE_MAX_GPUS,
	  .arg = "N", .help = "number of GPUs (default 1)" },
	{ FIELD("socket", CONF_STRING, socket), .short_opt = 'S', .arg = "PATH",
	  .help = "socket for clients (default: gpemu-gpud.sock in "
		  "$XDG_RUNTIME_DIR, else /run/gpemu-gpud.sock for root, "
		  "/tmp/gpemu-UID/gpud.sock for others)" },
	{ FIELD("mode", CONF_STRING, mode), .arg = "OCTAL",
	  .help = "permissions of the socket (default 0600)" },
	{ FIELD("allow", CONF_LIST, allow), .item = CONF_STRING,
	  .item_size = sizeof(char *), .arg = "USER|UID|all",
	  .help = "user who may connect besides this user and root" },
	{ FIELD("max_clients", CONF_UINT, max_clients), .min = 1, .max = 4096,
	  .arg = "N", .help = "limit of concurrent connections (default 256)" },
	{ FIELD("max_clients_per_user", CONF_UINT, max_per_user), .min = 0,
	  .max = 4096, .arg = "N",
	  .help = "the same per user admitted by --allow (default: a quarter "
		  "of --max-clients)" },
	{ FIELD("idle_limit", CONF_DURATION, idle_limit_ns), .arg = "TIME",
	  .max = 1e18,
	  .help = "wall time after which an idle client is disconnected: one "
		  "without a job, or whose idle job makes others wait "
		  "(default 60s; 0s: never)" },
	{ FIELD("scheduler", CONF_STRING, scheduler), .check = check_scheduler,
	  .arg = "NAME[:KEY=VALUE,...]",
	  .help = "scheduler of iterations (--list scheduler; default fair)" },
	{ FIELD("share", CONF_STRING, share), .check = check_share,
	  .arg = "time|lanes|mps",
	  .help = "sharing mode of a GPU (default time)" },
	{ FIELD("speedup", CONF_STRING, speedup), PROFILE_NAME(share),
	  .arg = "NAME|FILE",
	  .help = "speedup of k concurrent iterations (--list speedup; "
		  "default: none)" },
	{ FIELD("slicing", CONF_STRING, slicing), .check = check_slicing,
	  .profile = "share", .arg = "auto|none|NAME|FILE",
	  .help = "cost of time slicing between k jobs (--list speedup; "
		  "default auto: that of the GPU, if it was measured)" },
	{ FIELD("time_scale", CONF_DOUBLE, time_scale), .min = 1e-6, .max = 1e3,
	  .arg = "X", .help = "wall seconds per emulated second" },
	{ FIELD("keep_awake", CONF_BOOL, keep_awake), .arg = "on|off",
	  .help = "keep idle processors awake near a deadline, where permitted "
		  "(default on)" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_kind kinds[] = {
	{ "scheduler", .table = scheduler_table },
	{ "gpu", .print = profile_names_print, .which = PROFILE_GPU },
	{ "speedup", .print = profile_names_print, .which = PROFILE_SHARE },
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-gpud",
	.summary = "Serve emulated GPUs that several processes share.",
	.notes = "gpemu-train --gpu-server PATH trains on them, gpemu-smi "
		 "shows them. SIGTERM ends it.",
	.fields = fields,
	.kinds = kinds,
};

static int parse_mode(const char *s, uint64_t *ret, struct err *err)
{
	char *end;
	unsigned long mode = strtoul(s, &end, 8);

	if (s[0] < '0' || s[0] > '7' || *end || mode > 0777)
		return err_set(err, -EINVAL,
			       "--mode %s: not between 0 and 0777", s);
	*ret = mode;
	return 0;
}

/* Does the driver switch between jobs? Lanes are of one process, as in Salus;
 * under an exclusive scheduler the next one starts when its predecessor leaves.
 */
static bool takes_turns(const struct share_config *c)
{
	return c->mode == SHARE_TIME && !c->scheduler->exclusive;
}

/* Check the command line; usage errors. */
static int resolve(struct options *o, struct server_config *c, struct err *err)
{
	const struct plugin_choice *p = &o->choice;
	int r = plugin_choose(scheduler_table, "scheduler", o->scheduler,
			      &o->choice, err);

	if (r == 0)
		r = parse_mode(o->mode, &c->mode, err);

	if (r == 0)
		r = share_mode_parse(o->share, &c->share.mode, err);
	if (r == 0 && o->speedup && c->share.mode == SHARE_TIME)
		r = err_set(err, -EINVAL,
			    "--speedup: with --share time, iterations do not "
			    "run concurrently");
	if (r < 0)
		return r;
	c->share.scheduler =
		container_of(p->plugin, const struct scheduler_ops, plugin);
	if (!is_word(o->slicing) && !takes_turns(&c->share))
		return err_set(err, -EINVAL,
			       "--slicing %s: with --share %s --scheduler %s, "
			       "jobs do not take turns by time slicing",
			       o->slicing, o->share, o->scheduler);
	c->share.scheduler_options = p->options;
	o->choice_text = plugin_choice_text(p->plugin, p->options);
	if (!o->choice_text)
		return err_set(err, -ENOMEM, "out of memory");
	c->scheduler = o->choice_text;
	c->share.n_gpus = (uint32_t)o->gpus;
	c->max_clients = (uint32_t)o->max_clients;
	c->max_per_user = (uint32_t)(o->max_per_user
					     ? o->max_per_user
					     : MAX(o->max_clients / 4, 1));
	c->idle_limit_ns = o->idle_limit_ns;
	c->time_scale = o->time_scale;
	c->keep_awake = o->keep_awake;
	c->allow = o->allow;
	return 0;
}

/* The socket: as given, or the default in a private folder. */
static int find_place(struct options *o, struct err *err)
{
	if (o->socket)
		return 0;
	o->socket = gpud_default_path();
	if (!o->socket)
		return err_set(err, -ENOMEM, "out of memory");
	return strncmp(o->socket, "/tmp/", 5)
		       ? 0
		       : server_make_folder(o->socket, err);
}

/* Clients read the same file. */
static int profile_file(const char *name, char **ret, struct err *err)
{
	_cleanup_free_ char *path = NULL;
	int r = profile_path(PROFILE_GPU, name, &path, err);

	if (r < 0)
		return r;
	*ret = realpath(path, NULL);
	if (!*ret)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (strlen(*ret) >= GPUD_PATH)
		return err_set(err, -ENAMETOOLONG,
			       "%s: path longer than %d bytes, the limit of "
			       "the protocol",
			       *ret, GPUD_PATH - 1);
	return 0;
}

/* Find what time slicing costs, and say why. */
static int find_slicing(const struct options *o, struct server_config *c,
			struct share_profile *ret, struct err *err)
{
	struct slicing *why = &c->slicing;
	int r;

	if (!takes_turns(&c->share)) {
		why->reason = "jobs do not take turns by time slicing";
		return 0;
	}
	if (!strcmp(o->slicing, "none")) {
		why->reason = "--slicing none";
		return 0;
	}
	if (strcmp(o->slicing, "auto") != 0) {
		why->reason = "--slicing";
		r = share_profile_load(o->slicing, ret, err);
		r = r == 0 ? 1 : r;
	} else {
		r = share_profile_of_gpu(c->gpu->name, ret, err);
		why->reason = r ? "the default of the GPU"
				: "no profile has this GPU";
	}
	if (r == 1)
		c->share.slicing = why->profile = ret;
	return MIN(r, 0);
}

static int serve(const struct options *o, const struct server_config *c,
		 struct err *err)
{
	struct server s;
	int r = server_init(&s, c, err);

	if (r == 0) {
		log_info("%" PRIu64 " x %s at %s; time slicing: %s (%s)",
			 o->gpus, c->gpu->name, c->path, server_slicing(c),
			 c->slicing.reason);
		notify_ready();
		r = server_run(&s, err);
	}
	if (r == 0 && o->common.json) {
		struct status *status = status_take(&s, NULL);
		json_auto_t *j = status ? status_json(status) : NULL;

		status_free(status);

		if (j)
			json_object_set_new(j, "config", conf_json(fields, o));
		r = j ? json_write(j, o->common.json, err) : -ENOMEM;
	}
	server_fini(&s);
	return r;
}

static int run_server(struct options *o)
{
	struct server_config c = { 0 };
	struct share_profile speedup = { 0 }, slicing = { 0 };
	struct gpu_profile gpu = { 0 };
	_cleanup_free_ char *file = NULL;
	struct err err = { 0 };
	int r = resolve(o, &c, &err);

	if (r < 0) {
		log_error("%s", err.text);
		return EXIT_STATUS_USAGE;
	}
	r = profile_file(o->gpu, &file, &err);
	if (r == 0)
		r = gpu_profile_load(file, &gpu, &err);
	if (r == 0 && o->speedup)
		r = share_profile_load(o->speedup, &speedup, &err);
	if (r == 0)
		r = find_place(o, &err);
	if (r == 0) {
		c.path = o->socket;
		c.profile = file;
		c.gpu = &gpu;
		c.share.speedup = o->speedup ? &speedup : NULL;
		r = find_slicing(o, &c, &slicing, &err);
	}
	if (r == 0)
		r = serve(o, &c, &err);
	gpu_profile_free(&gpu);
	share_profile_free(&speedup);
	share_profile_free(&slicing);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}

int main(int argc, char **argv)
{
	struct options o = {
		.gpu = strdup(GPU_DEFAULT),
		.gpus = 1,
		.mode = strdup("0600"),
		.max_clients = 256,
		.idle_limit_ns = 60 * NS_PER_S,
		.scheduler = strdup("fair"),
		.share = strdup("time"),
		.slicing = strdup("auto"),
		.time_scale = 1,
		.keep_awake = true,
	};
	int status;

	cli_parse(&program, argc, argv, &o, NULL);
	status = run_server(&o);
	plugin_choice_fini(&o.choice);
	free(o.choice_text);
	conf_free(fields, &o);
	return status;
}
