/* SPDX-License-Identifier: MIT */
/*
 * gpemu-sched: from the command line to tables and records.
 *
 * Rooms, in the order in which a job meets them:
 *
 *	sched/trace	files of jobs and of nodes, made or read
 *	sched		the event clock; what comes out
 *	sched/policy	who runs
 *	sched/place	on which GPUs, with how much CPU and memory
 *	sched/chart	what was decided, to look at
 *	sched/live	jobs that are processes
 *	sched/core	clusters, jobs, actions; the queue of most policies
 */
#include <string.h>

#include "sched/command.h"

static const struct cli_command commands[] = {
	{ "simulate", "run the jobs of a trace on an event clock",
	  command_simulate },
	{ "run", "run the jobs of a trace as processes", command_run },
	{ "fill", "fill a cluster with tasks that never leave", command_fill },
	{ "make", "make a trace from a seed", command_make },
	{ "stat", "describe a trace", command_stat },
	{ 0 },
};

/* --list without a command: the input_kinds are the same for all of them. */
static int list(int argc, char **argv)
{
	struct options {
		struct cli_common common;
	} o = { 0 };
	static const struct conf_field fields[] = {
		CLI_COMMON_FIELDS(struct options, common),
		{ 0 },
	};
	static const struct cli_program program = { .name = "gpemu-sched",
						    .summary = "",
						    .fields = fields,
						    .kinds = input_kinds };

	cli_parse(&program, argc, argv, &o, NULL);
	return EXIT_STATUS_USAGE;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strncmp(argv[1], "--list", strlen("--list")))
		return list(argc, argv);
	return cli_dispatch("gpemu-sched",
			    "Scheduling of jobs on a cluster of GPUs, "
			    "simulated and live.\n\n"
			    "'gpemu-sched --list KIND' lists traces, clusters "
			    "and parts; KIND is trace, cluster,\n"
			    "speeds, policy, placement or format.",
			    commands, argc, argv);
}
