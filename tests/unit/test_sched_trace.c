/* SPDX-License-Identifier: MIT */
/* Readers of traces and of nodes. */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "sched/core/schedule.h"
#include "sched/trace/workload.h"

/* --- readers -------------------------------------------------------------- */

static void reads(const char *text, const char *format, size_t n)
{
	struct cluster c = { 0 };
	struct sched_workload w;
	struct err err = { 0 };

	if (workload_parse(text, strlen(text), "f", &c, &w, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(w.format, format);
	assert_int_equal(w.n, n);
	workload_fini(&w);
	cluster_fini(&c);
}

static void refuses(const char *text, const char *message)
{
	struct cluster c = { 0 };
	struct sched_workload w;
	struct err err = { 0 };

	assert_true(workload_parse(text, strlen(text), "f", &c, &w, &err) < 0);
	assert_string_equal(err.text, message);
	workload_fini(&w);
	cluster_fini(&c);
}

#define MURI                                                           \
	"job_id,num_gpu,submit_time,iterations,model_name,batch_size," \
	"duration,interval,iteration_time,resource_time_0\n"
#define OPENB "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
#define ALLOX "# 0 x\n1 0 1 5 queue0\n"

static void formats_are_known_by_their_first_line(void **state)
{
	(void)state;
	reads("# a comment\narrival_s,work_s,count\n1,2,3\n\n4,5,1\n", "jobs",
	      4);
	reads("job_id,model,arrival_s,iterations,gpus\n0,m,1.5,7,2\n",
	      "synergy", 1);
	reads(MURI "0,8,0,10,gpt2,4,5,9,437,.6\n", "muri", 1);
	reads(OPENB "p,1000,2,1,460,\nq,1000,2,0,0,A|B\n", "openb", 2);
	reads(ALLOX "stage -1.0 20.0 4 536 1 2 1343 1\n0", "allox", 1);
}

static void errors_name_line_and_column(void **state)
{
	(void)state;
	refuses("", "f: empty: a trace has a header and a row for each job");
	refuses("a,b\n1,2\n",
		"f:1:1: unknown format: the header has neither a column work_s "
		"nor those of another format (known: jobs synergy muri openb "
		"allox cognn philly helios alibaba gavel); see TRACES in "
		"gpemu-sched(1)");
	refuses("work_s,arrival_s\n1,0\n1,-2\n",
		"f:3:3: arrival_s: -2 is not from 0 to 4e+09");
	refuses("work_s,arrival_s\n0,0\n",
		"f:2:1: work_s: 0 is not from 1e-09 to 4e+09");
	refuses("work_s,gpus,gpu_milli\n1, 2,500\n",
		"f:2:6: gpu_milli: 500 of each of 2 GPUs; only a single GPU "
		"may be shared");
	refuses("job_id,model,arrival_s,iterations,gpus\n0,m,1,7,two\n",
		"f:2:9: gpus: 'two' is not a whole number up to 65536");
	refuses("job_id,model,arrival_s,iterations,gpus\n0,m,1\n",
		"f:2:1: iterations: missing, the row has 3 fields and the "
		"header has it as field 4");
	refuses(OPENB "p,1000,2,2,460,\n",
		"f:2:12: gpu_milli: 460 of each of 2 GPUs; only a single GPU "
		"may be shared");
	refuses(ALLOX "stag -1.0 20.0 4 536 1 2 1343 1\n0",
		"f:3:1: not 'stage -1.0 CPUS MEMORY CPU_TIME GPUS GPU_MEMORY "
		"GPU_TIME ...'");
	refuses(ALLOX "stage -1.0 20.0 4 5x 1 2 1343 1\n0",
		"f:3:19: CPU time: '5x' is not a number");
	refuses(ALLOX "stage -1.0 -20 4 536 1 2 1343 1\n0",
		"f:3:12: CPUs: -20 is not from 0 to 1e+06");
	refuses("work_s\n", "f: has no jobs, only a header");
}

/* A column that is spelled wrong would count as one that is left out. */
static void our_own_formats_have_no_other_columns(void **state)
{
	static const char text[] = "cpu_milli,memory_mib,gpu,model,counts\n";
	struct cluster c = { 0 };
	struct err err = { 0 };

	(void)state;
	refuses("work_s, arival_s\n1,2\n",
		"f:1:9: unknown column 'arival_s'; did you mean 'arrival_s'? "
		"(known: work_s arrival_s "
		"name user class gpus gpu_milli cpu_milli memory_mib "
		"gpu_models cpu_work_s count gpu_memory_mib gpu_busy "
		"cold_s dataset_mib read_mib_s gradient_mib "
		"iteration_s storage_s prep_s gpu_s network_s)");
	refuses("work_s,gpus,WORK_S\n1,2,3\n",
		"f:1:13: column 'work_s' a second time");
	refuses("work_s,gpus\n1,2,3\n",
		"f:2:5: a row of 3 fields, but the header has 2");
	/* published ones have columns that are not read */
	reads("job_id,model,arrival_s,iterations,gpus,x\n0,m,1,7,2,3\n",
	      "synergy", 1);
	assert_int_equal(nodes_parse_csv(text, strlen(text), "f", &c, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "f:1:32: unknown column 'counts'"));
	cluster_fini(&c);
}

static void like_jobs_have_one_shape(void **state)
{
	static const char text[] =
		"arrival_s,work_s,gpus\n9,1,2\n5,1,1\n7,8,2\n";
	struct cluster c = { 0 };
	struct sched_workload w;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(workload_parse(text, strlen(text), "f", &c, &w, &err),
			 0);
	/* by arrival */
	assert_string_equal(w.jobs[0].name, "1");
	assert_string_equal(w.jobs[2].name, "0");
	assert_int_equal(w.jobs[1].shape, w.jobs[2].shape);
	assert_int_not_equal(w.jobs[0].shape, w.jobs[1].shape);
	workload_fini(&w);
}

/* --- logs: when jobs were submitted, began and ended --------------------- */

/* "name arrival work gpus cpu_milli user class; " of each job, in s, and then
 * what was counted. */
static void shows(enum workload_use use, const char *text, const char *want)
{
	static const char path[] = "test_sched_trace.tmp";
	struct cluster c = { 0 };
	struct sched_workload w;
	struct err err = { 0 };
	char *got = NULL, *counts;
	size_t n;
	FILE *f = fopen(path, "w");

	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
	if (workload_load(path, &c, use, &w, &err) < 0)
		fail_msg("%s", err.text);
	remove(path);
	f = open_memstream(&got, &n);
	for (size_t i = 0; i < w.n; i++) {
		const struct sched_job *j = &w.jobs[i];

		fprintf(f, "%s %g %g %g %u %s %s; ", j->name,
			(double)j->arrival_ns / 1e9, j->work_ns / 1e9,
			(double)job_gpu_milli(j) / GPU_MILLI, j->cpu_milli,
			w.users[j->user], w.classes[j->class]);
	}
	counts = workload_counts_text(&w);
	fprintf(f, "%s", counts ? counts : "");
	fclose(f);
	assert_string_equal(got, want);
	free(counts);
	free(got);
	workload_fini(&w);
	cluster_fini(&c);
}

#define OPENB_TIMES                                                           \
	"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase," \
	"creation_time,deletion_time,scheduled_time\n"

static void openb_works_from_scheduled_to_deleted(void **state)
{
	static const char text[] = OPENB_TIMES
		"waited,4000,1,1,460,,LS,Running,100,1200,1100\n"
		"never,4000,1,1,1000,,LS,Pending,100,600,\n"
		"zero,4000,1,1,1000,,LS,Failed,150,500,500\n"
		"back,4000,1,1,1000,,LS,Failed,150,500,700\n"
		"runs,4000,1,2,1000,,BE,Running,300,,400\n"
		"last,4000,1,1,1000,,BE,Running,1400,,1400\n";

	(void)state;
	shows(WORKLOAD_RUNS, text,
	      "waited 0 100 0.46 4000 - LS; runs 200 1000 2 4000 - BE; 2 jobs; "
	      "left out: 1 never scheduled (line 3), 2 with 0 s of work (the "
	      "first in line 4), 1 ended before they began (line 5); assumed: "
	      "1 still running at the end (line 6)");
	/* all are pods that ask for something */
	shows(WORKLOAD_REQUESTS,
	      OPENB_TIMES "waited,4000,1,1,460,,LS,Running,0,1100,1000\n"
			  "never,1000,1,1,1000,,LS,Pending,0,500,\n",
	      "waited 0 1 0.46 4000 - LS; never 0 1 1 1000 - LS; ");
	shows(WORKLOAD_RUNS, OPENB "p,1000,2,1,460,\n",
	      "p 0 1 0.46 1000 - -; 1 jobs; assumed: 1 without times, 1 s each "
	      "(line 2)");
	shows(WORKLOAD_RUNS,
	      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,"
	      "deletion_time\np,1,1,1,1000,20,10\nq,1,1,1,1000,20,30\n",
	      "q 0 10 1 1 - -; 1 jobs; left out: 1 ended before they began "
	      "(line 2); assumed: 1 scheduled when created (line 3)");
	refuses(OPENB_TIMES "p,1,1,1,460,,LS,Running,0,x,1000\n",
		"f:2:27: deletion_time: 'x' is neither a number of seconds up "
		"to 4e+09 nor a date, as in 2020-04-01 00:00:01");
	refuses(OPENB_TIMES "p,1,1,1,460,,LS,Pending,0,9,\n",
		"f: 0 jobs; left out: 1 never scheduled (line 2)");
}

#define HELIOS                                                       \
	"job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time," \
	"start_time,end_time,duration,queue"

static void helios_has_dates(void **state)
{
	(void)state;
	/* as saved by a spreadsheet, too */
	shows(WORKLOAD_RUNS,
	      "\xef\xbb\xbf" HELIOS "\r\n"
	      "2,u2,vc1,0,4,1,CANCELLED,2020-02-28 23:59:58,,,0,1\r\n"
	      "1,u1,vc1,1,4,1,COMPLETED,2020-02-28 23:59:59,"
	      "2020-02-29 00:00:02,2020-03-01 00:10:02,87000,3\r\n"
	      "3,u3,vc2,16,64,2,CANCELLED,2020-02-29 00:00:59,None,"
	      "2020-02-29 00:01:02,0,0\r\n",
	      "1 0 87000 1 4000 u1 vc1; 1 jobs; left out: 1 without GPUs (line "
	      "2), 1 never scheduled (line 4)");
	refuses(HELIOS "\n1,u,v,1,1,1,FAILED,2020-13-01 00:00:00,,,,\n",
		"f:2:20: submit_time: '2020-13-01 00:00:00' is neither a "
		"number "
		"of seconds up to 4e+09 nor a date, as in 2020-04-01 00:00:01");
	refuses(HELIOS "\n1,u,v,1,1,1,FAILED\n",
		"f:2:1: submit_time: missing, the row has 7 fields and the "
		"header has it as field 8");
}

/* ' for ", for JSON. */
static const char *quoted(const char *text, char *ret)
{
	strcpy(ret, text);
	for (char *p = ret; *p; p++)
		*p = *p == '\'' ? '"' : *p;
	return ret;
}

#define GPUS \
	"'detail':[{'ip':'m1','gpus':['g0']},{'ip':'m2','gpus':['g0','g1']}]"
#define NAMES                                                    \
	"'status':'Pass','vc':'v','user':'u','submitted_time': " \
	"'2017-10-07 01:00:00','jobid':"

static void philly_adds_attempts_up(void **state)
{
	static const char log[] =
		"\xef\xbb\xbf\r\n[{" NAMES "'a','attempts':["
		"{'start_time':'2017-10-07 01:10:00',"
		"'end_time':'2017-10-07 01:11:00'," GPUS "},"
		"{'start_time':'2017-10-07 02:00:00','end_time':null," GPUS "},"
		"{'start_time':'2017-10-07 03:00:00',"
		"'end_time':'2017-10-07 03:00:40'," GPUS "}]},"
		"{" NAMES "'b','attempts':[]},"
		"{" NAMES "'c','attempts':["
		"{'start_time':'2017-10-07 03:00:30','end_time':'None'," GPUS
		"}]}]\n";
	char text[2048];

	(void)state;
	assert_true(sizeof(log) <= sizeof(text));
	shows(WORKLOAD_RUNS, quoted(log, text),
	      "a 0 100 3 0 u v; c 0 10 3 0 u v; 2 jobs; left out: 1 never "
	      "scheduled; assumed: 1 without an attempt that has no times, 1 "
	      "still running at the end");
	refuses("[{\"jobid\": }]", "f:1:12: unexpected token near '}'");
	refuses("[{\"jobid\": \"x\", \"attempts\": 1}]",
		"f: job 1 (x): attempts: not an array with start_time and "
		"end_time, which are dates or null");
	refuses("[1]", "f: job 1 (without jobid): is not an object");
	refuses("[]", "f: has no jobs, only a header");
}

static void alibaba_tasks_have_no_header(void **state)
{
	static const char rows[] =
		"j1,worker,2.0,Terminated,100.0,160.0,600.0,29.3,100.0,T4\r\n"
		"j1,ps,1.0,Terminated,100.0,160.0,600.0,29.3,,\r\n"
		"j2,tensorflow,1.0,Failed,110.0,115.0,600.0,29.3,50.0,MISC\n"
		"j3,worker,3.0,Terminated,110.0,120.0,100,1,50,P100\n"
		"j4,worker,1.0,Running,130.0,,100,1,100,P100\n"
		"j5,worker,1.0,Waiting,,,100,1,100,P100\n";
	static const char want[] =
		"j1/worker 0 60 2 12000 - T4; j2/tensorflow 10 5 0.5 6000 - "
		"MISC; j3/worker 10 10 2 3000 - P100; j4/worker 30 30 1 1000 - "
		"P100; 4 jobs; left out: 1 without GPUs (line %d), 1 never "
		"scheduled (line %d); assumed: 1 with whole GPUs for parts "
		"(line %d), 1 still running at the end (line %d)";
	char text[1024], line[1024];

	(void)state;
	snprintf(line, sizeof(line), want, 2, 6, 4, 5);
	shows(WORKLOAD_RUNS, rows, line);
	snprintf(text, sizeof(text),
		 "job_name,task_name,inst_num,status,start_time,end_time,"
		 "plan_cpu,plan_mem,plan_gpu,gpu_type\n%s",
		 rows);
	snprintf(line, sizeof(line), want, 3, 7, 5, 6);
	shows(WORKLOAD_RUNS, text, line);
	refuses("j1,i1,u1,Terminated,1.0,2.0\n",
		"f:1:1: 6 fields where pai_task_table has 10; pai_job_table "
		"has no GPUs");
	refuses("j,w,2,Failed,1,2,1,1,1e5,T4\nj,w,65536,Failed,1,2,1,1,200,"
		"T4\n",
		"f:2:26: plan_gpu: 65536 times 200 % are more than 65536 GPUs");
}

static void gavel_has_four_layouts(void **state)
{
	(void)state;
	shows(WORKLOAD_RUNS,
	      "LM (batch size 5)\tcd %s, and go\t-n\t1\t10\t6.5\t1\r\n"
	      "LM (batch size 5)\tgo\tdir\t-n\t1\t20\t4\t1\t-1.0\t7\n"
	      "A3C\tgo\tdir\t-n\t0\t30\t1\tstatic\t1\t-1\t8\n"
	      "A3C\tgo\tdir\t-n\t0\t40\t1\tgns\t1\t-1\t900\t9\n"
	      "A3C\tgo\tdir\t-n\t0\t0\t1\t1\t-1\t9\n",
	      "0 6.5 1e-08 1 0 - LM (batch size 5); 1 7 2e-08 4 0 - LM (batch "
	      "size 5) x 4; 2 8 3e-08 1 0 - A3C; 3 9 4e-08 1 0 - A3C; 4 jobs; "
	      "left out: 1 without steps (line 5); assumed: 1 with their first "
	      "batch size all along (line 4)");
	refuses("A3C\tgo\t-n\t1\t10\t6.5\t1\nA3C\tgo\n",
		"f:2:1: 2 fields between tabs, where a trace of Gavel has 7, "
		"10, 11 or 12");
	refuses("A3C\tgo\t-n\t1\t10\t-1\t1\n",
		"f:1:16: arrival_time: -1 is not from 0 to 4e+09");
}

/* --- rows: byte order mark, CRLF, separators ------------------------------ */

static void rows_begin_behind_a_byte_order_mark(void **state)
{
	static const char text[] = "\xef\xbb\xbf"
				   "a, b\tc\r\n#\r\n\r\nd\r\n";
	struct rows c = { .at = text, .end = text + sizeof(text) - 1 };

	(void)state;
	assert_true(rows_next(&c));
	assert_int_equal(c.n, 2);
	assert_true(rows_is(&c.f[0], "a"));
	assert_true(rows_is(&c.f[1], "b\tc"));
	rows_rewind(&c);
	c.separator = '\t';
	assert_true(rows_next(&c));
	assert_true(rows_is(&c.f[0], "a, b"));
	assert_true(rows_is(&c.f[1], "c"));
	rows_rewind(&c);
	assert_true(rows_next_words(&c));
	assert_true(rows_is(&c.f[0], "a,"));
	assert_int_equal(c.line, 1);
	assert_true(rows_next(&c));
	assert_int_equal(c.line, 4);
	assert_true(rows_is(&c.f[0], "d"));
	assert_false(rows_next(&c));
	reads("\xef\xbb\xbfwork_s,gpus,arrival_s,name\n10,1,0,a\n", "jobs", 1);
	reads("\xef\xbb\xbf" ALLOX "stage -1.0 20.0 4 536 1 2 1343 1\r\n0\r\n",
	      "allox", 1);
}

static void nodes_are_read(void **state)
{
	static const char text[] =
		"cpu_milli,memory_mib,gpu,model,count,gpu_memory_mib\n"
		"1,2,8,x,3,100\n5,6,0,,1,0\n";
	struct cluster c = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(nodes_parse_csv(text, strlen(text), "f", &c, &err), 0);
	assert_int_equal(c.n, 4);
	assert_int_equal(c.whole.gpu_milli, 24000);
	assert_int_equal(c.nodes[2].gpu_memory_mib, 100);
	cluster_fini(&c);
	assert_true(nodes_parse("gpus=17", &c, &err) < 0);
	cluster_fini(&c);
	err = (struct err){ 0 };
	assert_true(nodes_parse("0*gpus=1", &c, &err) < 0);
	assert_string_equal(err.text,
			    "nodes '0*gpus=1': '0' is not a number of nodes "
			    "from 1 to 1000000");
}

static void nodes_are_keys_with_a_value_each(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "gpu=1", "unknown option 'gpu'; did you mean 'gpus'? (known: "
			   "gpus cpus memory gpu_memory cache remote link "
			   "model)" },
		{ "gpus=", "gpus: '' is not a non-negative integer" },
		{ "cpus=2,gpus=nine",
		  "gpus: 'nine' is not a non-negative integer" },
		{ "gpus=1,,cpus=2",
		  "gpus: '1,' is not a non-negative integer" },
		{ "gpus=1,gpus=2", "gpus is given twice" },
		{ "gpus", "gpus has no value" },
		{ "model=", "model: has no value" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct cluster c = { 0 };
		struct err err = { 0 };
		char want[200];

		snprintf(want, sizeof(want), "nodes '%s': %s", bad[i].text,
			 bad[i].why);
		assert_int_equal(nodes_parse(bad[i].text, &c, &err), -EINVAL);
		assert_string_equal(err.text, want);
		cluster_fini(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_are_known_by_their_first_line),
		cmocka_unit_test(errors_name_line_and_column),
		cmocka_unit_test(nodes_are_keys_with_a_value_each),
		cmocka_unit_test(our_own_formats_have_no_other_columns),
		cmocka_unit_test(like_jobs_have_one_shape),
		cmocka_unit_test(openb_works_from_scheduled_to_deleted),
		cmocka_unit_test(helios_has_dates),
		cmocka_unit_test(philly_adds_attempts_up),
		cmocka_unit_test(alibaba_tasks_have_no_header),
		cmocka_unit_test(gavel_has_four_layouts),
		cmocka_unit_test(rows_begin_behind_a_byte_order_mark),
		cmocka_unit_test(nodes_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
