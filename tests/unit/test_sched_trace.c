/* SPDX-License-Identifier: MIT */
/* Readers of traces and of nodes. */
#include "tests/unit/test.h"

#include <errno.h>
#include <string.h>

#include "sched/core/schedule.h"
#include "sched/trace/workload.h"

/* --- readers -------------------------------------------------------------- */

static void reads(const char *text, const char *format, size_t n)
{
	struct cluster c = { 0 };
	struct workload w;
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
	struct workload w;
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
		"allox cognn); see TRACES in gpemu-sched(1)");
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
		"f:2:12: gpu_milli: only a single GPU may be shared");
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
		"f:1:9: unknown column 'arival_s' (known: work_s arrival_s "
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
	struct workload w;
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
	err = (struct err){ 0 };
	assert_true(nodes_parse("gpu=1", &c, &err) < 0);
	assert_non_null(strstr(err.text, "unknown key 'gpu'"));
	cluster_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats_are_known_by_their_first_line),
		cmocka_unit_test(errors_name_line_and_column),
		cmocka_unit_test(our_own_formats_have_no_other_columns),
		cmocka_unit_test(like_jobs_have_one_shape),
		cmocka_unit_test(nodes_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
