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
 *	sched/core	clusters, jobs, actions; the queue of most policies
 */
#include "sched/command.h"

static const struct cli_command commands[] = {
	{ "simulate", "run the jobs of a trace on an event clock",
	  command_simulate },
	{ "fill", "fill a cluster with tasks that never leave", command_fill },
	{ "make", "make a trace from a seed", command_make },
	{ "stat", "describe a trace", command_stat },
	{ 0 },
};

int main(int argc, char **argv)
{
	return cli_dispatch("gpemu-sched",
			    "Scheduling of jobs on a cluster of GPUs, "
			    "simulated.",
			    commands, argc, argv);
}
