/* SPDX-License-Identifier: MIT */
/* Workloads of DLIO: what is taken, what is noted, what is refused where. */
#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "emu/import/dlio_time.h"
#include "emu/profile/profile_dataset.h"
#include "runner/dlio/dlio.h"

#define UNET3D                                                       \
	"model: {name: unet3d, type: cnn, model_size: 499153191}\n"  \
	"framework: pytorch\n"                                       \
	"workflow: {generate_data: False, train: True, checkpoint: " \
	"True}\n"                                                    \
	"dataset: {data_folder: data/unet3d/, format: npz,\n"        \
	"  num_files_train: 168, num_samples_per_file: 1,\n"         \
	"  record_length_bytes: 146600628,\n"                        \
	"  record_length_bytes_stdev: 68341808,\n"                   \
	"  record_length_bytes_resize: 2097152}\n"                   \
	"reader: {data_loader: pytorch, batch_size: 7,\n"            \
	"  read_threads: 4, file_shuffle: seed,\n"                   \
	"  sample_shuffle: seed}\n"                                  \
	"checkpoint: {checkpoint_folder: c, checkpoint_after_epoch:" \
	" 5, epochs_between_checkpoints: 2}\n"                       \
	"metric: {au: 0.90}\n"
#define TRAIN(time) "train: {epochs: 5, computation_time: " time "}\n"

static char *imported(const char *yaml, struct err *err)
{
	struct dlio d;
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	int r = dlio_parse(yaml, strlen(yaml), "x", &d, err);

	if (r == 0)
		assert_int_equal(dlio_write(&d, "dir/x.yaml", f), 0);
	fclose(f);
	dlio_free(&d);
	if (r == 0)
		return text;
	free(text);
	return NULL;
}

static void has(const char *yaml, const char *line)
{
	struct err err = { 0 };
	_cleanup_free_ char *text = imported(yaml, &err);

	assert_string_equal(err.text, "");
	if (!strstr(text, line))
		fail_msg("no '%s' in\n%s", line, text);
}

static void refused(const char *yaml, const char *why)
{
	struct err err = { 0 };
	_cleanup_free_ char *text = imported(yaml, &err);

	assert_null(text);
	assert_string_equal(err.text, why);
}

static void unet3d_is_taken_whole(void **state)
{
	struct err err = { 0 };
	_cleanup_free_ char *text = imported(UNET3D TRAIN("0.323"), &err);
	const char *body = text ? strstr(text, "name:") : NULL;

	(void)state;
	assert_non_null(body);
	assert_string_equal(
		body,
		"name: x\n"
		"question: Does the storage keep the accelerator busy?\n"
		"dataset: {synth: records, files: 168, size: 146600628, "
		"size_sd: 68341808}\n"
		"base:\n"
		"  # DLIO measures the storage that it runs on: name one here\n"
		"  fs: {storage: ideal, cache_policy: none}\n"
		"  train:\n"
		"    gpu: dlio\n"
		"    model: any\n"
		"    step_time: \"323ms\"\n"
		"    batch: 7\n"
		"    epochs: 5\n"
		"    loader: sync\n"
		"    workers: 4\n"
		"    prefetch: 1\n"
		"    order: shuffle\n"
		"    drop_last: true\n"
		/* 24 steps in each of 5 epochs */
		"    checkpoint_every: 120\n"
		"    checkpoint_size: 499153191\n"
		"    prep: emulated\n"
		"    prep_time: \"0\"\n"
		/* 3 x 836 x 836 is 2 MiB */
		"    image_size: 836\n"
		"    prep_output: uint8\n"
		"    pin: \"off\"\n"
		"rules: {au: 90%}\n"
		"kind: self\n"
		"expect: [{name: busy as required, that: au >= 90}]\n");
}

static void times_are_distributions(void **state)
{
	(void)state;
	has(UNET3D TRAIN("{mean: 0.323, stdev: 0.03, type: normal}"),
	    "step_time: \"normal:mean=323ms,sd=30ms\"");
	has(UNET3D TRAIN("{mean: 0.323, stdev: 0.03}"),
	    "step_time: \"normal:mean=323ms,sd=30ms\"");
	has(UNET3D TRAIN("0.323, computation_time_stdev: 0.03"),
	    "step_time: \"normal:mean=323ms,sd=30ms\"");
	has(UNET3D TRAIN("{mean: 0.323}"), "step_time: \"323ms\"");
	has(UNET3D TRAIN("{type: gamma, shape: 4, scale: 0.25}"),
	    "step_time: \"gamma:mean=1s,shape=4\"");
	has(UNET3D TRAIN("{type: gamma, mean: 1, stdev: 0.5}"),
	    "step_time: \"gamma:mean=1s,shape=4\"");
	has(UNET3D TRAIN("{type: uniform, min: 1, max: 2}"),
	    "step_time: \"uniform:min=1s,max=2s\"");
	has(UNET3D TRAIN("{type: exponential, scale: 0.5}"),
	    "step_time: \"gamma:mean=500ms,shape=1\"");
	has(UNET3D TRAIN("1") "data_reader: {preprocess_time: {mean: 0.1}}\n",
	    "prep_time: \"100ms\"");
	/* where MLPerf Storage once had it */
	has(UNET3D TRAIN("1, preprocess_time: {mean: 0.1}"),
	    "prep_time: \"100ms\"");
	/* a step of no time has no utilisation that could be judged */
	has(UNET3D "train: {epochs: 5}\n", "step_time: \"0\"");
	has(UNET3D "train: {epochs: 5}\n",
	    "#   train.computation_time: not given");
}

static void datasets(void **state)
{
	(void)state;
	/* the older name */
	has("dataset: {record_length: 4096, num_files_train: 64, "
	    "num_subfolders_train: 2}\n",
	    "dataset: {synth: records, files: 64, size: 4096, classes: 2}");
	has("dataset: {format: tfrecord, num_files_train: 1024, "
	    "num_samples_per_file: 1251, record_length_bytes: 114660.07}\n"
	    "framework: tensorflow\nreader: {file_shuffle: seed}\n",
	    "files: 1024, size: 143439748}");
	has("dataset: {num_samples_per_file: 1251, record_length_bytes: "
	    "114660.07}\nreader: {file_shuffle: seed}\n",
	    "order: quasi_random\n    drop_last: true\n"
	    "    format: records:bytes=114660\n");
	has("framework: pytorch\ndataset: {}\nreader: {file_shuffle: seed}\n",
	    "order: sequential");
	has("dataset: {format: synthetic, num_files_train: 10, "
	    "num_samples_per_file: 5}\n",
	    "loader: \"null\"\n    samples: 50\n");
	has("dataset: {}\nreader: {odirect: true, read_threads: 0, "
	    "prefetch_size: 0}\n",
	    "workers: 1\n    prefetch: 2\n    order: sequential\n"
	    "    drop_last: true\n    direct: true\n");
	has("workload: {dataset: {num_files_train: 9}}\nhydra: {}\n",
	    "files: 9");
}

static void checkpoints(void **state)
{
#define EVERY(after, between)                                              \
	"workflow: {checkpoint: on}\ndataset: {num_files_train: 10}\n"     \
	"train: {epochs: 10}\ncheckpoint: {checkpoint_after_epoch: " after \
	", epochs_between_checkpoints: " between "}\n"

	(void)state;
	has(EVERY("2", "2"),
	    "checkpoint_every: 20\n    checkpoint_size: 10240");
	has(EVERY("6", "9"), "checkpoint_every: 60\n");
	has(EVERY("1", "2"), "checkpoint_every: 20\n");
	has(EVERY("1", "2"),
	    "#   checkpoint.checkpoint_after_epoch: the first");
	has(EVERY("11", "1"), "#   checkpoint.checkpoint_after_epoch: none is "
			      "due in 10 epochs");
	has("model: {model_size_bytes: 5e9}\nworkflow: {checkpoint: on}\n"
	    "dataset: {}\ncheckpoint: {steps_between_checkpoints: 250}\n",
	    "checkpoint_every: 250\n    checkpoint_size: 5000000000");
}

static void what_is_lost_is_noted(void **state)
{
	static const char yaml[] =
		"dataset: {enable_chunking: True, keep_files: False}\n"
		"evaluation: {eval_time: 0.5}\n"
		"profiling: {profiler: none}\n"
		"\"a\\nname: b\": 1\n";
	struct dlio d;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(dlio_parse(yaml, strlen(yaml), "x", &d, &err), 0);
	/* what is off is not lost; the missing time of a step is a note on
	 * the whole file, and so the first */
	assert_int_equal(d.n_notes, 4);
	assert_int_equal(d.notes[0].column, 1);
	assert_string_equal(d.notes[1].text,
			    "dataset.enable_chunking: no counterpart");
	assert_int_equal(d.notes[1].line, 1);
	assert_int_equal(d.notes[1].column, 28);
	assert_string_equal(d.notes[2].text,
			    "evaluation.eval_time: no counterpart");
	/* a key cannot end a comment */
	assert_string_equal(d.notes[3].text, "a?name: b: no counterpart");
	dlio_free(&d);
}

/* The name of a section and its dot fit in what is kept of it. */
static void a_long_key_is_cut(void **state)
{
	struct dlio d;
	struct err err = { 0 };

	(void)state;
	for (int n = 195; n < 205; n++) {
		char yaml[300];

		snprintf(yaml, sizeof(yaml), "%0*d: {b: 1}\ndataset: {}\n", n,
			 0);
		assert_int_equal(dlio_parse(yaml, strlen(yaml), "x", &d, &err),
				 0);
		assert_int_equal(d.n_notes, 2);
		assert_true(strlen(d.notes[1].text) < 230);
		dlio_free(&d);
	}
}

static void faults_have_a_position(void **state)
{
	(void)state;
	refused("dataset: {num_files_train: many}\n",
		"x:1:28: num_files_train: 'many' is not a number");
	refused("dataset: {num_files_train: 1.5}\n",
		"x:1:28: num_files_train: 1.5 is not whole");
	refused("dataset: {num_files_train: 0}\n",
		"x:1:28: num_files_train: 0 is not from 1 to 4e+09");
	refused("dataset: {}\nreader: {batch_size: 9}\n",
		"x:2:22: batch_size: the dataset has only 8 samples, so there "
		"is no step");
	refused("dataset: {}\ntrain: {computation_time: -1}\n",
		"x:2:27: computation_time: -1 is not from 0 to 3600");
	refused("dataset: {}\ntrain: {computation_time: {type: poisson, lam: "
		"2}}\n",
		"x:2:34: poisson draws whole seconds, which no distribution "
		"here does");
	refused("dataset: {}\ntrain: {computation_time: {type: gamma}}\n",
		"x:2:27: computation_time: 'shape' is missing");
	refused("dataset: {}\ntrain: {computation_time_stdev: 1}\n",
		"x:2:33: a deviation needs a time that is a number above 0");
	refused("workflow: {train: maybe}\ndataset: {}\n",
		"x:1:19: train: 'maybe' is not true or false");
	refused("workflow: {train: False}\ndataset: {}\n",
		"x:1:19: workflow.train: it is off: only training can "
		"be imported; for checkpoints see "
		"workloads/mlperf-checkpoint.yaml");
	refused("a: 1\n",
		"x:1:1: not a workload of DLIO: 'dataset' is missing");
	refused("dataset: {format: [npz]}\n", "x:1:19: format: not one value");
	refused("dataset: {}\n\tb: 1\n",
		"x:2:1: found character that cannot start any token");
}

static void hydra_is_not_resolved(void **state)
{
	(void)state;
	refused("dataset: {}\ntrain: {computation_time: '${oc.env:CT,0.3}'}\n",
		"x:2:27: computation_time: '${oc.env:CT,0.3}' is an "
		"interpolation of Hydra; write its value");
	refused("dataset: {format: '${f}'}\n",
		"x:1:19: format: '${f}' is an interpolation of Hydra; write "
		"its value");
	refused("defaults: [_self_, unet3d]\ndataset: {}\n",
		"x:1:20: defaults: Hydra merges other files here; import the "
		"whole, which DLIO writes as .hydra/config.yaml");
	refused("_target_: a.b\ndataset: {}\n",
		"x:1:11: _target_: an object that Hydra makes, not a workload "
		"of DLIO");
	refused("- workload=unet3d\n",
		"x:1:1: not a workload of DLIO, but a list: Hydra's overrides? "
		"import config.yaml");
	has("defaults: [_self_]\ndataset: {}\n", "files: 8");
}

static void texts_of_times_read_back(void **state)
{
	static const char *const texts[] = {
		"323ms",
		"0",
		"uniform:min=1s,max=2s",
		"normal:mean=323ms,sd=30ms",
		"lognormal:median=1ms,sigma=0.5",
		"gamma:mean=1s,shape=4.25",
	};
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "5",
		  "'5' is not a duration with its unit, such as 80us or 5ms" },
		{ "odd:mean=1s", "unknown kind 'odd' (known: const uniform "
				 "normal lognormal gamma empirical)" },
		{ "normal:mean=1s", "'normal' needs 'sd'" },
		{ "normal:sd,mean=1s", "sd has no value" },
		{ "normal:mean=1s,sd", "mean: '1s,sd' is not a duration with "
				       "its unit, such as 80us or "
				       "5ms" },
		{ "const:", "'const:' lacks its parameters" },
		{ "normal:mean=1s,sd=1s,mean=2s", "mean is given twice" },
		{ "empirical:quantiles=1s",
		  "unknown option 'quantiles' (known: value min max mean sd "
		  "median sigma shape)" },
		{ "gamma:mean=1s,sd=1s", "'sd' is not a parameter of 'gamma'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct dist_time t;
		struct err err = { 0 };
		_cleanup_free_ char *text = NULL;

		assert_int_equal(dist_time_parse(texts[i], &t, &err), 0);
		text = dist_time_text(&t);
		assert_string_equal(text, texts[i]);
		dist_time_free(&t);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct dist_time t;
		struct err err = { 0 };

		assert_int_equal(dist_time_parse(bad[i].text, &t, &err),
				 -EINVAL);
		assert_string_equal(err.text, bad[i].why);
		dist_time_free(&t);
	}
}

/* The sizes of records are normal: mean and deviation over all files. */
static void sizes_are_normal(void **state)
{
	enum { N = 10000 };
	struct dataset_profile p;
	double sum = 0, squares = 0;

	(void)state;
	assert_int_equal(dataset_profile_normal(N, 1e6, 1e5, &p, NULL), 0);
	for (int i = 0; i < N; i++) {
		double bytes = dataset_profile_quantile(&p, (i + .5) / N);

		sum += bytes;
		squares += (bytes - 1e6) * (bytes - 1e6);
	}
	assert_true(fabs(sum / N - 1e6) < 1e3);
	assert_true(fabs(sqrt(squares / N) - 1e5) < 1e3);
	dataset_profile_free(&p);
	/* what would be below 1 is 1 */
	assert_int_equal(dataset_profile_normal(N, 10, 100, &p, NULL), 0);
	assert_true(dataset_profile_quantile(&p, 0) == 1);
	dataset_profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unet3d_is_taken_whole),
		cmocka_unit_test(times_are_distributions),
		cmocka_unit_test(datasets),
		cmocka_unit_test(checkpoints),
		cmocka_unit_test(what_is_lost_is_noted),
		cmocka_unit_test(a_long_key_is_cut),
		cmocka_unit_test(faults_have_a_position),
		cmocka_unit_test(hydra_is_not_resolved),
		cmocka_unit_test(texts_of_times_read_back),
		cmocka_unit_test(sizes_are_normal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
