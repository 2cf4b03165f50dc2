/* SPDX-License-Identifier: MIT */
/* gpemu-prepd dispatcher: its options, and the record. */
#include <errno.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/program/cli.h"
#include "common/program/interrupt.h"
#include "common/program/notify.h"
#include "common/units.h"
#include "common/util.h"
#include "service/dispatcher/dispatcher.h"
#include "service/dispatcher/fleet.h"
#include "service/prepd.h"

struct options {
	struct cli_common common;
	char *listen, *key, *journal, *worker_command;
	uint64_t timeout_ns, job_timeout_ns, workers_most;
};

#define FIELD(key, type, member) key, type, offsetof(struct options, member)

static const struct conf_field fields[] = {
	{ FIELD("listen", CONF_STRING, listen), .check = prepd_check_address,
	  .arg = "HOST:PORT",
	  .help = "where workers and trainers connect (default "
		  "127.0.0.1:7070)" },
	{ FIELD("key", CONF_STRING, key), .arg = "FILE",
	  .help = "the secret of dispatcher, workers and trainers, at least 32 "
		  "bytes (default, on one machine: ~/.config/gpemu/key, made "
		  "on first use)" },
	{ FIELD("journal", CONF_STRING, journal), .arg = "FILE",
	  .help = "journal of what was handed out, so that a restart continues "
		  "(default: none)" },
	{ FIELD("timeout", CONF_DURATION, timeout_ns), .arg = "TIME",
	  .min = 10. * NS_PER_MS, .max = 3600. * NS_PER_S,
	  .help = "a worker that is silent for this time is lost (default "
		  "5s)" },
	{ FIELD("job_timeout", CONF_DURATION, job_timeout_ns), .arg = "TIME",
	  .min = 10. * NS_PER_MS, .max = 86400. * NS_PER_S,
	  .help = "a job whose trainer is not connected for this time is "
		  "dropped (default 60s)" },
	{ FIELD("worker_command", CONF_STRING, worker_command),
	  .arg = "COMMAND",
	  .help = "shell command that starts a worker; runs as often as the "
		  "jobs need workers; $GPEMU_WORKER is 1 for the first" },
	{ FIELD("workers_most", CONF_UINT, workers_most), .min = 1,
	  .max = FLEET_MOST, .arg = "N",
	  .help = "limit of workers that --worker-command starts (default 8)" },
	CLI_COMMON_FIELDS(struct options, common),
	{ 0 },
};

static const struct cli_program program = {
	.name = "gpemu-prepd dispatcher",
	.summary = "Hand out parts of epochs to the workers of a preparation "
		   "service.",
	.notes = "SIGTERM ends it.",
	.fields = fields,
};

static void interrupted(void *ctx)
{
	dispatcher_stop(ctx);
}

static int write_record(const struct options *o, const struct dispatcher *d,
			struct err *err)
{
	json_auto_t *j = NULL;

	if (!o->common.json)
		return 0;
	j = dispatcher_json(d);
	if (j)
		json_object_set_new(j, "config", conf_json(fields, o));
	return j ? json_write(j, o->common.json, err) : -ENOMEM;
}

static int serve(const struct options *o, struct dispatcher *d, struct err *err)
{
	struct interrupt interrupt = { .fn = interrupted, .ctx = d };
	int r = interrupt_begin(&interrupt);

	if (r < 0)
		return err_set(err, r, "%s", strerror(-r));
	log_info("listening at %s", o->listen);
	notify_ready();
	r = dispatcher_run(d, err);
	interrupt_end(&interrupt);
	return r == 0 ? write_record(o, d, err) : r;
}

static int run_dispatcher(const struct options *o)
{
	struct access access = { 0 };
	struct addr listen = { 0 };
	struct err err = { 0 };
	struct tick *tick = tick_new(1, 0);
	struct dispatcher_config c = { .tick = tick,
				       .access = &access,
				       .listen = &listen,
				       .journal = o->journal,
				       .timeout_ns = o->timeout_ns,
				       .job_timeout_ns = o->job_timeout_ns,
				       .worker_command = o->worker_command,
				       .workers_most =
					       (uint32_t)o->workers_most };
	struct dispatcher *d = NULL;
	int r = tick ? access_init(&access, o->key, &err) : -ENOMEM;

	if (r == 0)
		r = access_find(&access, o->listen, &listen, &err);
	if (r == 0 && o->common.json)
		r = json_check(o->common.json, &err);
	interrupt_block();
	if (r == 0)
		r = dispatcher_new(&c, &d, &err);
	if (r == 0)
		r = serve(o, d, &err);
	dispatcher_free(d);
	addr_fini(&listen);
	access_fini(&access);
	tick_free(tick);
	return r < 0 ? cli_fail(r, &err) : EXIT_STATUS_DONE;
}

int prepd_dispatcher_main(int argc, char **argv)
{
	struct options o = { .listen = strdup("127.0.0.1:7070"),
			     .timeout_ns = 5 * NS_PER_S,
			     .job_timeout_ns = 60 * NS_PER_S,
			     .workers_most = 8 };
	int status;

	cli_parse(&program, argc, argv, &o, NULL);
	status = run_dispatcher(&o);
	conf_free(fields, &o);
	return status;
}
