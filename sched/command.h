/* SPDX-License-Identifier: MIT */
/* The subcommands of gpemu-sched, and what their options have in common. */
#ifndef GPEMU_SCHED_COMMAND_H
#define GPEMU_SCHED_COMMAND_H

#include "common/program/cli.h"
#include "sched/core/schedule.h"
#include "sched/sim.h"
#include "sched/trace/workload.h"

/* Each is `run` of a struct cli_command. */
int command_simulate(int argc, char **argv);
int command_run(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_make(int argc, char **argv);
int command_fill(int argc, char **argv);

/* Options of a cluster and a trace. */
struct input_options {
	char *trace, *speeds, *cluster;
	struct conf_list nodes; /* of char * */
};

/* For `check` of a field. */
int input_check_nodes(const void *object, struct err *err);
int input_check_policies(const void *object, struct err *err);
int input_check_placements(const void *object, struct err *err);

/* A list of up to `most` percentages, "5%,10", each up to 1000, as fractions.
 * How many. -EINVAL with a text, -ENOMEM. */
int input_percentages(const char *text, size_t most, double *ret,
		      struct err *err);

#define INPUT_CLUSTER_FIELDS(type, member)                                  \
	{ "cluster", CONF_STRING, offsetof(type, member.cluster),           \
	  .arg = "NAME|FILE",                                               \
	  .help = "nodes of a CSV file, or of a shipped cluster" },         \
	{                                                                   \
		"nodes", CONF_LIST, offsetof(type, member.nodes),           \
			.item = CONF_STRING, .item_size = sizeof(char *),   \
			.lone = true, .check = input_check_nodes,           \
			.arg = "[N*]KEY=VALUE,...",                         \
			.help = "add nodes: gpus, cpus, memory, model, as " \
				"in 4*gpus=8,cpus=24,memory=500G"           \
	}

#define INPUT_TRACE_FIELDS(type, member)                                     \
	{ "trace",                                                           \
	  CONF_STRING,                                                       \
	  offsetof(type, member.trace),                                      \
	  .short_opt = 't',                                                  \
	  .arg = "NAME|FILE",                                                \
	  .help = "jobs: a file, '-', or a shipped trace (--list trace)" },  \
	{                                                                    \
		"speeds", CONF_STRING, offsetof(type, member.speeds),        \
			.arg = "NAME|FILE",                                  \
			.help = "speeds of models over CPUs and memory "     \
				"(default: those of the trace's source, if " \
				"any)"                                       \
	}

/* For `kinds` of a program. */
extern const struct cli_kind input_kinds[];

/* Also reports, on the terminal, the lines of the trace that are no job or not
 * a whole one. */
int input_workload(const struct input_options *o, struct cluster *c,
		   enum workload_use use, struct sched_workload *ret,
		   struct err *err);
/* Add what a record says of its trace and its cluster (NULL: none): "format",
 * "jobs", "left_out", "assumed"; "nodes", "gpus" and so on. Returns `j`. */
json_t *input_describe(json_t *j, const struct sched_workload *w,
		       const struct cluster *c);

/* What `simulate` and `run` show of their schedules: tables by user and class,
 * plots, Gantt charts and timelines. */
struct chart_options {
	char *plot, *gantt, *timeline, *by;
	bool by_table[2]; /* of enum report_by, by driver_settle */
};

/* For `check` of a field. */
int input_check_chart(const void *object, struct err *err);

#define CHART_FIELDS(type, member)                                       \
	{ "plot",                                                        \
	  CONF_STRING,                                                   \
	  offsetof(type, member.plot),                                   \
	  .check = input_check_chart,                                    \
	  .arg = "FILE.svg|FILE.png|FILE.pdf",                           \
	  .cli_only = true,                                              \
	  .help = "plot completion times and the use of GPUs (needs "    \
		  "gnuplot)" },                                          \
		{ "gantt",                                               \
		  CONF_STRING,                                           \
		  offsetof(type, member.gantt),                          \
		  .check = input_check_chart,                            \
		  .arg = "FILE.svg|FILE.png|FILE.pdf",                   \
		  .cli_only = true,                                      \
		  .help = "draw a Gantt chart of jobs on GPUs (needs "   \
			  "gnuplot)" },                                  \
		{ "timeline",                                            \
		  CONF_STRING,                                           \
		  offsetof(type, member.timeline),                       \
		  .arg = "FILE",                                         \
		  .cli_only = true,                                      \
		  .help = "write the schedule for Perfetto or Chrome's " \
			  "about:tracing" },                             \
	{                                                                \
		"by", CONF_STRING, offsetof(type, member.by),            \
			.arg = "user|class[,...]", .cli_only = true,     \
			.help = "also print a table for each user or "   \
				"class"                                  \
	}

/* What simulate, run and fill have in common: the first member of their
 * options, `d`. */
struct driver_options {
	struct cli_common common;
	struct input_options input;
	char *progress;
	enum progress_mode progress_mode; /* by driver_settle */
	/* of simulate and run */
	struct chart_options charts;
	uint64_t round_ns;
	bool per_job;
};

#define PROGRESS_FIELD(type, member)                             \
	{                                                        \
		"progress", CONF_STRING, offsetof(type, member), \
			.arg = "auto|on|off", .cli_only = true,  \
			.help = "show a progress bar on stderr"  \
	}

/* Of simulate and run, behind those of policies; the longest round is that of
 * the times of a trace. */
#define DRIVER_FIELDS(type)                                         \
	{ "round",                                                  \
	  CONF_DURATION,                                            \
	  offsetof(type, d.round_ns),                               \
	  .max = WORKLOAD_SECONDS_MAX * NS_PER_S,                   \
	  .arg = "DURATION",                                        \
	  .help = "decide every DURATION; 0 (default): at arrival " \
		  "and completion" },                               \
		{ "per_job", CONF_BOOL, offsetof(type, d.per_job),  \
		  .help = "record the times of each job" },         \
		CHART_FIELDS(type, d.charts),                       \
		PROGRESS_FIELD(type, d.progress),                   \
		CLI_COMMON_FIELDS(type, d.common)

/* `settle` of their programs. */
int driver_settle(void *options, struct err *err);

struct driver {
	const struct cli_program *program;
	enum workload_use use;
	/* NULL, or whether the options make sense together. -EINVAL with a
	 * text: usage. */
	int (*check)(const void *options, struct err *err);
	int (*run)(const void *options, struct cluster *c,
		   struct sched_workload *w, struct err *err);
};

/* From the command line, through the cluster and the trace, to the status. */
int driver_command(const struct driver *d, void *options, int argc,
		   char **argv);
/* Fill a zeroed cell; `clock` ends its name. 1: this policy places by itself,
 * so the placement does not matter; else 0. -EINVAL with a text, -ENOMEM. */
int driver_cell(struct sched_sim_cell *c, const char *policy,
		const char *placement, const char *clock, struct err *err);
/* A simulation without cells. */
struct sched_sim driver_sim(const struct driver_options *d,
			    const struct cluster *c,
			    const struct sched_workload *w);
/* Before its cells run: can all jobs run, and all be drawn? -EINVAL with a
 * text. Warns of nodes that no job can use. */
int driver_check(const struct driver_options *d, const struct sched_sim *sim,
		 struct err *err);

/* Of the cells that are done: their tables, `kind` as of report_table, and the
 * files. -errno with a text. */
void driver_tables(const struct chart_options *o, const struct sched_sim *sim,
		   const char *kind);
int driver_draw(const struct chart_options *o, const struct sched_sim *sim,
		struct err *err);

/* Write a record: version, kind (SIMULATED, unless `j` has one), configuration,
 * and what `j` has, which is taken over; NULL: no memory. */
int input_record(json_t *j, const struct conf_field *fields,
		 const void *options, const struct cli_common *common,
		 struct err *err);

#endif
