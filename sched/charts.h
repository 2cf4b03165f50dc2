/* SPDX-License-Identifier: MIT */
/* What `simulate` and `run` show of their schedules: tables by user and class,
 * plots, Gantt charts and timelines. */
#ifndef GPEMU_SCHED_CHARTS_H
#define GPEMU_SCHED_CHARTS_H

#include "common/conf/conf.h"
#include "sched/sim.h"

struct chart_options {
	char *plot, *gantt, *timeline, *by;
	bool by_table[2]; /* of enum report_by, by charts_settle */
};

/* For `check` of a field. */
int charts_check_file(const void *object, struct err *err);

#define CHART_FIELDS(type, member)                                       \
	{ "plot",                                                        \
	  CONF_STRING,                                                   \
	  offsetof(type, member.plot),                                   \
	  .check = charts_check_file,                                    \
	  .arg = "FILE.svg|FILE.png|FILE.pdf",                           \
	  .cli_only = true,                                              \
	  .help = "plot completion times and the use of GPUs (needs "    \
		  "gnuplot)" },                                          \
		{ "gantt",                                               \
		  CONF_STRING,                                           \
		  offsetof(type, member.gantt),                          \
		  .check = charts_check_file,                            \
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

/* Of the words of --by. -EINVAL with a text. */
int charts_settle(struct chart_options *o, struct err *err);
/* Before anything runs: can what is asked for be drawn, of all cells? -EINVAL
 * with a text. */
int charts_check(const struct chart_options *o, const struct sim *sim,
		 struct err *err);
/* Must cells have a history? */
static inline bool charts_keep_history(const struct chart_options *o)
{
	return o->gantt || o->timeline;
}

/* Of the cells that are done: their tables, `kind` as of report_table, and the
 * files. -errno with a text. */
void charts_tables(const struct chart_options *o, const struct sim *sim,
		   const char *kind);
int charts_draw(const struct chart_options *o, const struct sim *sim,
		struct err *err);

#endif
