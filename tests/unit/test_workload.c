/* SPDX-License-Identifier: MIT */
#include "runner/run_suite.h"

#include <errno.h>
#include <string.h>

#include "runner/spec/run_workload.h"
#include "tests/unit/test.h"

#define HEAD               \
	"name: w\n"        \
	"question: Why?\n" \
	"dataset: {dataset: imagenette}\n"

#define AXES                                                           \
	HEAD "axes: {fs.a: [10%, 20%], fs.b: [20%, 40%], n: [{label: " \
	     "slow}]}\n"

static const char *const GOOD = HEAD
	"base:\n"
	"  fs: {storage: hdd, cache_size: 10%}\n"
	"  train: {epochs: 3}\n"
	"axes:\n"
	"  fs.cache_policy: [lru, minio, none]\n"
	"  node:\n"
	"    - {label: small, fs.cache_size: 20%, train.workers: 2}\n"
	"    - {label: plain}\n"
	"repetitions: 2\n"
	"seed: 40\n"
	"metrics:\n"
	"  io: {path: totals.bytes, per: totals.seconds, scale: 2}\n"
	"columns: [seconds, io]\n"
	"expect:\n"
	"  - that: io[lru] / io[minio] == 1.5 +- 10%\n"
	"    where: {node: [small, plain]}\n"
	"    kind: self\n"
	"  - {rising: seconds, along: fs.cache_policy, slack: 2%, kind: "
	"order}\n"
	"published:\n"
	"  them: {source: a paper, metric: io, along: node, rank: .9,\n"
	"         values: {small: 3, plain: 4}, tolerance: 5%, kind: input}\n"
	"plot:\n"
	"  - {x: fs.cache_policy, y: io, series: node}\n"
	"  - {x: node, y: seconds, where: {fs.cache_policy: lru}}\n";

static int parse(const char *yaml, struct workload *w, struct err *err)
{
	*err = (struct err){ 0 };
	return workload_parse(yaml, strlen(yaml), "w.yaml", w, err);
}

static void load_good(struct workload *w)
{
	struct err err;

	if (parse(GOOD, w, &err) < 0)
		fail_msg("%s", err.text);
}

static void assert_json(const json_t *j, const char *wanted)
{
	char *text = json_dumps(j, JSON_COMPACT);

	assert_string_equal(text, wanted);
	free(text);
}

static void axes_make_points(void **state)
{
	struct workload w;
	const char *full;
	char label[40];

	(void)state;
	load_good(&w);
	assert_int_equal(w.n_points, 6);
	assert_int_equal(workload_n_cells(&w), 12);
	/* the last axis varies fastest */
	workload_label(&w, 0, label, sizeof(label));
	assert_string_equal(label, "lru, small");
	workload_label(&w, 1, label, sizeof(label));
	assert_string_equal(label, "lru, plain");
	workload_label(&w, 4, label, sizeof(label));
	assert_string_equal(label, "none, small");
	/* a label that does not fit is truncated */
	workload_label(&w, 4, label, 7);
	assert_string_equal(label, "none, ");
	/* between two characters */
	full = w.axes[0].points[2].label;
	w.axes[0].points[2].label = "\xc3\xa9\xc3\xa9";
	workload_label(&w, 4, label, 4);
	assert_string_equal(label, "\xc3\xa9");
	w.axes[0].points[2].label = full;
	assert_int_equal(workload_axis(&w, "node"), 1);
	assert_int_equal(workload_axis(&w, "moon"), -ENOENT);
	workload_free(&w);
}

static void cells_overlay_the_base(void **state)
{
	struct workload w;
	struct cell c;

	(void)state;
	load_good(&w);
	assert_int_equal(workload_cell(&w, 2, true, &c), 0);
	assert_json(c.mounts[0].fs,
		    "{\"storage\":\"hdd\",\"cache_size\":\"20%\","
		    "\"cache_policy\":\"minio\"}");
	assert_json(c.jobs[0].train, "{\"epochs\":\"3\",\"workers\":\"2\"}");
	assert_int_equal(c.seed, 40);
	assert_memory_equal(c.id, "minio-small-r1-", 15);
	cell_free(&c);
	/* the second repetition comes after all points of the first */
	assert_int_equal(workload_cell(&w, 6 + 3, true, &c), 0);
	assert_json(c.mounts[0].fs,
		    "{\"storage\":\"hdd\",\"cache_size\":\"10%\","
		    "\"cache_policy\":\"minio\"}");
	assert_int_equal(c.seed, 41);
	assert_int_equal(c.repetition, 1);
	assert_memory_equal(c.id, "minio-plain-r2-", 15);
	cell_free(&c);
	workload_free(&w);
}

static uint64_t hash_of(const char *yaml, size_t index, bool mounted)
{
	struct workload w;
	struct err err;
	struct cell c;

	assert_int_equal(parse(yaml, &w, &err), 0);
	assert_int_equal(workload_cell(&w, index, mounted, &c), 0);
	cell_free(&c);
	workload_free(&w);
	return c.hash;
}

/* Each node of a job has its own copy of the job's mount. */
static void nodes_have_their_own_mounts(void **state)
{
	static const char yaml[] = HEAD
		"base: {fs: {storage: hdd}}\n"
		"mounts: {a: {}, b: {fs: {storage: nvme}}, c: {}}\n"
		"jobs:\n"
		"  one: {mount: c}\n"
		"  two: {mount: b, train: {nodes: 3}}\n"
		"  three: {mount: b}\n"
		"axes:\n"
		"  b.fs.cache_size: [10%]\n"
		"  three.train.nodes: [1, 2000]\n";
	static const char *const names[] = { "a", "b-0", "b-1", "b-2", "c" };
	struct workload w;
	struct cell c;
	struct err err;

	(void)state;
	if (parse(yaml, &w, &err) < 0)
		fail_msg("%s", err.text);
	/* gpemu-train refuses 2000, which is its affair */
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(workload_cell(&w, i, true, &c), 0);
		assert_int_equal(c.n_mounts, 5);
		for (size_t k = 0; k < c.n_mounts; k++)
			assert_string_equal(c.mounts[k].name, names[k]);
		assert_int_equal(c.jobs[0].mount, 4);
		assert_int_equal(c.jobs[1].mount, 1);
		assert_int_equal(c.jobs[1].nodes, 3);
		assert_int_equal(c.jobs[2].mount, 1);
		assert_int_equal(c.jobs[2].nodes, 1);
		for (size_t k = 1; k < 4; k++)
			assert_json(c.mounts[k].fs, "{\"storage\":\"nvme\","
						    "\"cache_size\":\"10%\"}");
		cell_free(&c);
	}
	workload_free(&w);
}

static void the_hash_is_of_what_decides_the_result(void **state)
{
	static const char *const one = HEAD "axes: {fs.cache_policy: [lru]}\n";
	static const char *const same[] = {
		HEAD "axes: {fs.cache_policy: [lru, fifo]}\n",
		HEAD "axes: {p: [{label: x, fs.cache_policy: lru}]}\n",
		HEAD "base: {fs: {cache_policy: lru}}\n",
		(HEAD "base: {fs: {cache_policy: fifo}}\n"
		      "axes: {fs.cache_policy: [lru]}\n"),
		HEAD "axes: {fs.cache_policy: [lru]}\nrepetitions: 3\n",
	};
	static const char *const other[] = {
		HEAD "axes: {fs.cache_policy: [fifo]}\n",
		HEAD "axes: {train.cache_policy: [lru]}\n",
		HEAD "axes: {fs.cache_policy: [lru]}\nseed: 2\n",
		HEAD "axes: {fs.cache_policy: [lru]}\ntime_scale: 2\n",
		("name: w\nquestion: Why?\ndataset: {dataset: imagenet}\n"
		 "axes: {fs.cache_policy: [lru]}\n"),
	};
	uint64_t wanted = hash_of(one, 0, true);

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		assert_true(hash_of(same[i], 0, true) == wanted);
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
		assert_true(hash_of(other[i], 0, true) != wanted);
	/* without a mount, gpemu-fs is no part of it */
	assert_true(hash_of(one, 0, false) != wanted);
	assert_true(hash_of(one, 0, false) == hash_of(other[0], 0, false));
}

/* Of the cells of `yaml` with --network. */
static uint64_t hash_on(const char *network, const char *yaml, bool mounted)
{
	struct workload w;
	struct err err;
	struct cell c;

	assert_int_equal(parse(yaml, &w, &err), 0);
	w.network = network;
	assert_int_equal(workload_cell(&w, 0, mounted, &c), 0);
	cell_free(&c);
	workload_free(&w);
	return c.hash;
}

static void the_network_decides_where_there_are_peers(void **state)
{
	static const char *const peers = HEAD
		"base: {fs: {peers: auto}, train: {nodes: 2}}\n";
	static const char *const none[] = {
		HEAD "base: {train: {nodes: 2}}\n",
		HEAD "base: {fs: {peers: auto}}\n", /* of one node */
		(HEAD "base: {fs: {peers: auto}, train: {nodes: 2, simulate: "
		      "true}}\n"),
	};
	uint64_t any = hash_on(NULL, peers, true);

	(void)state;
	assert_true(any == hash_of(peers, 0, true));
	assert_true(any != hash_on("loopback", peers, true));
	assert_true(hash_on("namespaces", peers, true) !=
		    hash_on("loopback", peers, true));
	assert_true(hash_on("loopback", peers, false) ==
		    hash_of(peers, 0, false));
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_true(hash_on("loopback", none[i], true) ==
			    hash_of(none[i], 0, true));
}

static void errors_say_where(void **state)
{
	static const struct {
		const char *yaml, *text;
	} bad[] = {
		{ "name: w\n", "w.yaml:1:1: 'question' is missing" },
		{ "name: W\nquestion: q\ndataset: {a: b}\n",
		  "w.yaml:1:7: name: a word of a-z 0-9 - _, it names a "
		  "folder" },
		{ "name: w\nquestion: q\ndataset: x\n",
		  "w.yaml:3:10: dataset must be a mapping: a recipe for "
		  "gpemu-data make, {dir: DIR}, or {synth: NAME}" },
		{ "name: w\nquestion: q\ndataset: {dir: x, files: 3}\n",
		  "w.yaml:3:16: dir takes a folder and no other keys" },
		{ HEAD "base: {sf: {}}\n",
		  "w.yaml:4:8: unknown key 'sf'; did you mean 'fs'?" },
		{ HEAD "base: {fs: lru}\n",
		  "w.yaml:4:12: fs must be a mapping" },
		{ HEAD "base: {fs: {seed: 3}}\n",
		  "w.yaml:4:13: seed: gpemu-run itself sets this" },
		{ HEAD "axes: [lru]\n", "w.yaml:4:7: axes must be a mapping" },
		{ HEAD "axes: {fs.cache_policy: lru}\n",
		  "w.yaml:4:25: axis 'fs.cache_policy' must be a list of "
		  "values, a range {from: A, to: B}, or zip: {KEY: LIST, "
		  "...}" },
		{ HEAD "axes: {fs.cache_policy: []}\n",
		  "w.yaml:4:25: axis 'fs.cache_policy' must be a list of "
		  "values, a range {from: A, to: B}, or zip: {KEY: LIST, "
		  "...}" },
		{ HEAD "axes: {policy: [lru]}\n",
		  "w.yaml:4:8: policy: a key is dataset, or starts with fs. "
		  "train. dataset. "
		  "gpud. prepd. s3. exec. or env., optionally after the name "
		  "of a "
		  "mount or job" },
		{ HEAD "axes: {gpud.gpu: [p100]}\n",
		  "w.yaml:4:8: gpud.gpu: base has no gpud" },
		{ HEAD "axes: {prepd.cores: [1]}\n",
		  "w.yaml:4:8: prepd.cores: base has no prepd" },
		{ HEAD "base: {prepd: 3}\n",
		  "w.yaml:4:15: prepd must be a mapping" },
		{ HEAD "base: {prepd: {workers: 65}}\n",
		  "w.yaml:4:25: workers: 65 is outside 0..64" },
		{ HEAD "base: {prepd: {workers: [2]}}\n",
		  "w.yaml:4:25: not a number" },
		{ HEAD "base: {prepd: {}}\naxes: {prepd.workers: [1, 65]}\n",
		  "w.yaml:5:27: workers: 65 is outside 0..64" },
		{ HEAD "base: {prepd: {listen: a}}\n",
		  "w.yaml:4:16: listen: gpemu-run itself sets this" },
		{ HEAD "base: {prepd: {}}\naxes: {prepd.key: [a]}\n",
		  "w.yaml:5:8: prepd.key: gpemu-run itself sets this" },
		{ HEAD "base: {prepd: {}, train: {dispatcher: a}}\n",
		  "w.yaml:4:27: dispatcher: gpemu-run itself sets this, as "
		  "base has prepd" },
		{ HEAD
		  "base: {prepd: {}}\njobs: {a: {train: {service_key: k}}}\n",
		  "w.yaml:5:20: service_key: gpemu-run itself sets this, as "
		  "base has prepd" },
		{ HEAD "base: {prepd: {}}\naxes: {train.dispatcher: [a]}\n",
		  "w.yaml:5:8: dispatcher: gpemu-run itself sets this, as "
		  "base has prepd" },
		{ "name: w\nquestion: q\ndataset: {synth: unet3d, fils: 3}\n",
		  "w.yaml:3:26: fils: synth goes only with files, classes, "
		  "seed, "
		  "content, scale, size and size_sd" },
		{ HEAD "rules: {au: 7M}\n", "w.yaml:4:13: au is a share: 90%" },
		{ HEAD "axes: {train.time_scale: [1]}\n",
		  "w.yaml:4:8: train.time_scale: gpemu-run itself sets this" },
		{ HEAD "axes: {fs.a: [1, 2, 1]}\n", "w.yaml:4:21: '1' twice" },
		{ HEAD "axes: {n: [{fs.a: 1}]}\n",
		  "w.yaml:4:12: a point is a value, or a mapping with a "
		  "'label' and keys such as fs.cache_size" },
		{ HEAD "axes:\n  fs.a: [1]\n  n: [{label: x, fs.a: 2}]\n",
		  "w.yaml:6:3: n: another axis sets the same key" },
		{ HEAD "repetitions: 0\n",
		  "w.yaml:4:14: repetitions: 0 is outside 1..1000" },
		{ HEAD "metrics: {m: {path: 'a..b'}}\n",
		  "w.yaml:4:14: 'a..b' is not a path such as totals.seconds, "
		  "epochs[-1].au or epochs[1:].hits + epochs[1:].misses" },
		{ HEAD "metrics: {m: {unit: s}}\n",
		  "w.yaml:4:14: a metric needs either 'path' or 'of'" },
		{ HEAD "metrics: {m: {of: au, per: a}}\n",
		  "w.yaml:4:14: 'per' goes with 'path', not with 'of'" },
		{ HEAD "metrics:\n  m: {of: au +}\n",
		  "w.yaml:5:15: expected a number, a name or ( here" },
		{ HEAD "metrics:\n  m: {of: au < 3}\n",
		  "w.yaml:5:11: a metric is a value, this compares" },
		{ HEAD "metrics:\n  m: {of: 2 * m}\n",
		  "w.yaml:5:15: 'm' is not defined before it is used here" },
		{ HEAD "metrics:\n  m: {of: 2 * n}\n  n: {of: au}\n",
		  "w.yaml:5:15: 'n' is not defined before it is used here" },
		{ HEAD "metrics:\n  m: {of: 2 * x}\n",
		  "w.yaml:5:15: no metric, axis or setting 'x'" },
		{ HEAD "columns: [seconds, minutes]\n",
		  "w.yaml:4:20: no metric 'minutes'" },
		{ HEAD "axes: {fs.a: [1]}\nplot: [{x: fs.b, y: au}]\n",
		  "w.yaml:5:12: no axis 'fs.b'" },
		{ HEAD "axes: {fs.a: [1], fs.b: [1, 2]}\n"
		       "plot: [{x: fs.a, y: au}]\n",
		  "w.yaml:5:8: axis 'fs.b' is neither x nor series nor fixed "
		  "by 'where'" },
		{ HEAD "axes: {fs.a: [1], fs.b: [1, 2]}\n"
		       "plot: [{x: fs.a, y: au, where: {fs.b: 3}}]\n",
		  "w.yaml:5:39: not a value of axis 'fs.b'" },
		{ HEAD "axes: {fs.a: [1]}\n"
		       "plot: [{x: fs.a, y: au, kind: pie}]\n",
		  "w.yaml:5:31: kind is lines or bars" },
		{ AXES "expect: [{where: {fs.a: 1}}]\n",
		  "w.yaml:5:10: one of that, rising, falling" },
		{ AXES "expect:\n- that: au <\n",
		  "w.yaml:6:13: expected a number, a name or ( here" },
		{ AXES "expect:\n- that: 'au < x'\n",
		  "w.yaml:6:15: no metric, axis or setting 'x'" },
		{ AXES "expect:\n- that: au * 3\n",
		  "w.yaml:6:9: this compares nothing: a < b, or a == b +- "
		  "5%" },
		{ AXES "expect:\n- that: au[small] < 5\n",
		  "w.yaml:6:12: no axis has 'small'" },
		{ AXES "expect:\n- that: au[20%] < 5\n",
		  "w.yaml:6:12: several axes have '20%': write AXIS=20%" },
		{ AXES "expect:\n- that: au[fs.c=20%] < 5\n",
		  "w.yaml:6:12: no axis 'fs.c'" },
		{ AXES "expect:\n- that: au < n\n",
		  "w.yaml:6:14: 'slow' of n is not a number" },
		{ AXES "expect:\n- that: au < published.x\n",
		  "w.yaml:6:14: no published value is called 'x'" },
		{ AXES "expect:\n- {rising: au}\n",
		  "w.yaml:6:3: rising needs 'along', an axis" },
		{ AXES "expect:\n- {rising: au, along: fs.b, of: [20%, 3]}\n",
		  "w.yaml:6:39: axis 'fs.b' has no '3'" },
		{ AXES "expect:\n- {rising: au, along: fs.b, slack: big}\n",
		  "w.yaml:6:36: 'big' is not a number, or a number with %" },
		{ AXES "expect:\n- {that: au < 3, where: {fs.b: [20%, 3]}}\n",
		  "w.yaml:6:38: not a value of axis 'fs.b'" },
		{ AXES "published:\n  p: {source: s, metric: au, along: fs.b, "
		       "values: {3: 1}}\n",
		  "w.yaml:6:52: axis 'fs.b' has no '3'" },
		{ AXES "published:\n  p: {source: s, metric: au, along: fs.b, "
		       "values: {20%: x}}\n",
		  "w.yaml:6:57: a published value is a number" },
		/* none of these would judge anything */
		{ AXES "expect:\n- {that: au < 3, where: {fs.b: []}}\n",
		  "w.yaml:6:32: an empty list lets nothing through" },
		{ AXES "expect:\n- {rising: au, along: fs.b, of: [20%]}\n",
		  "w.yaml:6:33: of fewer than two values none is rising" },
		{ AXES "expect:\n- {rising: au, along: fs.b, of: []}\n",
		  "w.yaml:6:33: of fewer than two values none is rising" },
		{ AXES "expect:\n- {falling: au, along: n}\n",
		  "w.yaml:6:24: of fewer than two values none is falling" },
		{ AXES "expect:\n- {rising: au, along: fs.b, of: [20%, 20%], "
		       "slack: 1}\n",
		  "w.yaml:6:39: '20%' twice" },
		{ AXES "expect:\n- {rising: au, along: fs.b, where: {fs.b: "
		       "20%}}\n",
		  "w.yaml:6:43: 'of' says which values of 'fs.b' count" },
		{ AXES "expect:\n- that: fs.a < 50%\n",
		  "w.yaml:6:9: this names no metric, so it would check nothing "
		  "that was measured" },
		{ AXES "metrics: {m: {of: 2 * fs.a}}\n"
		       "expect: [that: m < 50%]\n",
		  "w.yaml:6:16: this names no metric, so it would check "
		  "nothing "
		  "that was measured" },
		{ AXES "metrics: {m: {of: 2 * fs.a}}\n"
		       "expect: [{rising: m, along: fs.a}]\n",
		  "w.yaml:6:19: 'm' contains no measured metric, so the check "
		  "would always have the same result" },
		{ AXES "published:\n  p: {source: s, metric: au, along: fs.b, "
		       "values: {20%: 1}, where: {fs.b: 40%}}\n",
		  "w.yaml:6:51: 'where' lets none of these through" },
		{ AXES "published:\n  p: {source: s, metric: au, along: fs.b, "
		       "values: {20%: 1}, rank: 0}\n",
		  "w.yaml:6:51: a rank takes two values or more that 'where' "
		  "lets through" },
		{ AXES "published:\n  p: {source: s, metric: au, along: fs.b, "
		       "values: {20%: 1, 40%: 2}, rank: -1}\n",
		  "w.yaml:6:75: every order passes this rank; give a rank "
		  "above -1" },
		{ AXES "expect:\n- that: 'au[fs.b=20%, 40%] < 5'\n",
		  "w.yaml:6:23: axis 'fs.b' is selected twice" },
		{ HEAD "axes: {fs.a: [1]}\n"
		       "plot:\n- {x: fs.a, y: au}\n- {x: fs.a, y: au}\n",
		  "w.yaml:7:3: a second plot called 'au-by-fs_a': give it a "
		  "name" },
	};
	struct workload w;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(parse(bad[i].yaml, &w, &err), -EINVAL);
		assert_string_equal(err.text, bad[i].text);
		workload_free(&w);
	}
}

/* Every prefix of a good file is read or refused, and leaks nothing. */
static void any_prefix_is_survived(void **state)
{
	struct workload w;
	struct err err;

	(void)state;
	for (size_t n = 0; n < strlen(GOOD); n++) {
		err = (struct err){ 0 };
		if (workload_parse(GOOD, n, "w.yaml", &w, &err) < 0)
			assert_true(err.text[0] != 0);
		workload_free(&w);
	}
}

/* So is a list of workloads. */
static void any_prefix_of_a_list_is_survived(void **state)
{
	static const char list[] = "name: all\nquestion: Why?\nbudget: 25m\n"
				   "workloads: [a.yaml, b.yaml]\n";
	struct suite s;
	struct err err;

	(void)state;
	for (size_t n = 0; n < strlen(list); n++) {
		err = (struct err){ 0 };
		assert_int_equal(suite_parse(list, n, "all.yaml", &s, &err),
				 n < strlen(list) - 1 ? -EINVAL : 0);
		suite_free(&s);
	}
}

struct asked {
	size_t n;
	const char *refuse;
	const char *why;
};

static int refuse_one(void *ctx, const struct setting *s, struct err *err)
{
	struct asked *asked = ctx;

	asked->n++;
	if (asked->refuse && !strcmp(s->key, asked->refuse))
		return err_set(err, -EINVAL, "%s", asked->why);
	return 0;
}

static void programs_are_asked_about_their_keys(void **state)
{
	struct asked asked = { 0 };
	struct err err = { 0 };
	struct workload w;

	(void)state;
	load_good(&w);
	assert_int_equal(workload_check(&w, refuse_one, &asked, &err), 0);
	/* dataset; storage, cache_size; epochs; 3 policies; 2 of a point */
	assert_int_equal(asked.n, 9);
	asked = (struct asked){ .refuse = "workers",
				.why = "unknown key 'workers'" };
	assert_int_equal(workload_check(&w, refuse_one, &asked, &err), -EINVAL);
	assert_string_equal(err.text, "w.yaml:10:42: gpemu-train: unknown key "
				      "'workers'");
	asked = (struct asked){ .refuse = "cache_policy", .why = "is bad" };
	err = (struct err){ 0 };
	assert_int_equal(workload_check(&w, refuse_one, &asked, &err), -EINVAL);
	assert_string_equal(err.text, "w.yaml:8:21: gpemu-fs: is bad");
	workload_free(&w);
}

/* --- points ----------------------------------------------------------- */

static void a_setting_is_known_at_a_point(void **state)
{
	struct workload w;
	double v;

	(void)state;
	load_good(&w);
	assert_string_equal(workload_setting(&w, 2, "fs.cache_policy"),
			    "minio");
	assert_string_equal(workload_setting(&w, 2, "fs.cache_size"), "20%");
	assert_string_equal(workload_setting(&w, 3, "fs.cache_size"), "10%");
	assert_string_equal(workload_setting(&w, 3, "train.epochs"), "3");
	assert_string_equal(workload_setting(&w, 3, "node"), "plain");
	assert_null(workload_setting(&w, 3, "train.workers"));
	assert_true(workload_decides(&w, 1, "fs.cache_size"));
	assert_false(workload_decides(&w, 0, "fs.cache_size"));
	assert_false(workload_decides(&w, 1, "train.epochs"));
	assert_int_equal(workload_move(&w, 3, 0, 2), 5);
	assert_int_equal(workload_move(&w, 3, 1, 0), 2);
	assert_int_equal(workload_select(&w, NULL, "lru"), 0);
	assert_int_equal(workload_select(&w, "node", "*"), 1);
	assert_int_equal(workload_select(&w, "node", "lru"), -ENOENT);
	assert_int_equal(workload_number("20%", &v), 0);
	assert_true(v == .2);
	assert_int_equal(workload_number("4K", &v), 0);
	assert_true(v == 4096);
	assert_int_equal(workload_number("5ms", &v), 0);
	assert_true(v == .005);
	assert_int_equal(workload_number("lru", &v), -EINVAL);
	workload_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(axes_make_points),
		cmocka_unit_test(cells_overlay_the_base),
		cmocka_unit_test(nodes_have_their_own_mounts),
		cmocka_unit_test(the_hash_is_of_what_decides_the_result),
		cmocka_unit_test(the_network_decides_where_there_are_peers),
		cmocka_unit_test(errors_say_where),
		cmocka_unit_test(any_prefix_is_survived),
		cmocka_unit_test(any_prefix_of_a_list_is_survived),
		cmocka_unit_test(programs_are_asked_about_their_keys),
		cmocka_unit_test(a_setting_is_known_at_a_point),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
