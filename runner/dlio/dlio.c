/* SPDX-License-Identifier: MIT */
#include "runner/dlio/dlio.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/util.h"
#include "emu/import/dlio_time.h"

enum { PATH_MOST = 200 }; /* arbitrary: notes of longer ones are cut */

/* --- keys ------------------------------------------------------------- */

enum type {
	NUMBER,
	COUNT, /* a whole number */
	FLAG,
	TEXT,
	TIME,
	NOTED, /* not taken: `why` */
};

struct key {
	const char *path;
	enum type type;
	size_t offset;
	double min, max;
	const char *why;
};

#define TAKEN(path, type, member) path, type, offsetof(struct dlio, member)
#define NO_EVALUATION "there is no evaluation"
#define NO_DATA "the dataset is generated on read"

/* What is in neither list is noted as unknown. */
static const struct key keys[] = {
	{ TAKEN("model.name", TEXT, model) },
	{ TAKEN("model.model_size_bytes", NUMBER, model_bytes), 0, 1e15 },
	{ TAKEN("model.model_size", NUMBER, model_size), 0, 1e15 },
	{ "model.type", NOTED,
	  .why = "the time of a step does not depend on "
		 "the model" },
	{ TAKEN("framework", TEXT, framework) },
	{ TAKEN("workflow.train", FLAG, train) },
	{ TAKEN("workflow.checkpoint", FLAG, checkpoint) },
	{ "workflow.generate_data", NOTED, .why = NO_DATA },
	{ "workflow.evaluation", NOTED, .why = NO_EVALUATION },
	{ "workflow.profiling", NOTED, .why = "each record has the times" },
	{ "dataset.data_folder", NOTED, .why = NO_DATA },
	{ TAKEN("dataset.format", TEXT, format) },
	{ TAKEN("dataset.num_files_train", COUNT, files), 1, 4e9 },
	{ TAKEN("dataset.num_samples_per_file", COUNT, per_file), 1, 4e9 },
	{ TAKEN("dataset.num_subfolders_train", COUNT, folders), 0, 1e6 },
	{ "dataset.num_files_eval", NOTED, .why = NO_EVALUATION },
	{ "dataset.num_subfolders_eval", NOTED, .why = NO_EVALUATION },
	{ TAKEN("dataset.record_length_bytes", NUMBER, record_bytes), 1, 1e12 },
	{ TAKEN("dataset.record_length", NUMBER, record_bytes), 1, 1e12 },
	{ TAKEN("dataset.record_length_bytes_stdev", NUMBER, record_sd), 0,
	  1e12 },
	{ TAKEN("dataset.record_length_stdev", NUMBER, record_sd), 0, 1e12 },
	{ TAKEN("dataset.record_length_bytes_resize", NUMBER, resize), 0,
	  1e12 },
	{ TAKEN("dataset.record_length_resize", NUMBER, resize), 0, 1e12 },
	{ "dataset.file_prefix", NOTED, .why = NO_DATA },
	{ "dataset.keep_files", NOTED, .why = NO_DATA },
	{ "dataset.generation_buffer_size", NOTED, .why = NO_DATA },
	{ "dataset.compression", NOTED, .why = "records are plain bytes" },
	{ "reader.data_loader", TEXT, offsetof(struct dlio, data_loader) },
	{ TAKEN("reader.batch_size", COUNT, batch), 1, 1 << 20 },
	{ "reader.batch_size_eval", NOTED, .why = NO_EVALUATION },
	{ TAKEN("reader.read_threads", COUNT, threads), 0, 1024 },
	{ "reader.computation_threads", NOTED,
	  .why = "a worker reads and transforms its samples itself" },
	{ TAKEN("reader.prefetch_size", COUNT, prefetch), 0, 4096 },
	{ TAKEN("reader.sample_shuffle", TEXT, sample_shuffle) },
	{ TAKEN("reader.file_shuffle", TEXT, file_shuffle) },
	{ "reader.shuffle_size", NOTED,
	  .why = "a shuffled order is of all samples or files" },
	{ TAKEN("reader.odirect", FLAG, odirect) },
	{ "reader.transfer_size", NOTED,
	  .why = "a sample is read with one call" },
	{ "reader.multiprocessing_context", NOTED,
	  .why = "workers are threads" },
	{ "reader.pin_memory", NOTED,
	  .why = "without a GPU PyTorch pins nothing" },
	{ TAKEN("reader.preprocess_time", TIME, prep) },
	{ TAKEN("reader.preprocess_time_stdev", NUMBER, prep_sd), 0, 3600 },
	{ TAKEN("train.epochs", COUNT, epochs), 1, 1e6 },
	{ TAKEN("train.computation_time", TIME, step) },
	{ TAKEN("train.computation_time_stdev", NUMBER, step_sd), 0, 3600 },
	{ TAKEN("train.total_training_steps", COUNT, steps), -1, 1e12 },
	{ TAKEN("train.seed", COUNT, seed), 0, 1e15 },
	/* where the pre-release of MLPerf Storage's first round had it */
	{ TAKEN("train.preprocess_time", TIME, prep) },
	{ TAKEN("checkpoint.checkpoint_after_epoch", COUNT, first), 0, 1e6 },
	{ TAKEN("checkpoint.epochs_between_checkpoints", COUNT, between), 0,
	  1e6 },
	{ TAKEN("checkpoint.steps_between_checkpoints", COUNT, steps_between),
	  -1, 1e12 },
	{ "checkpoint.checkpoint_folder", NOTED,
	  .why = "each run has a folder of its own: checkpoint_dir" },
	{ TAKEN("metric.au", NUMBER, au), 0, 1 },
};

static const struct key *find_key(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].path, path))
			return &keys[i];
	return NULL;
}

/* --- notes ------------------------------------------------------------ */

/* Note what is at `at`; the text is one line, whatever it has. -ENOMEM. */
__attribute__((format(printf, 3, 4))) static int
dlio_note(struct dlio *d, const struct conf_node *at, const char *fmt, ...)
{
	struct dlio_note *n = realloc(d->notes, (d->n_notes + 1) * sizeof(*n));
	char *text;
	va_list ap;
	int r;

	if (!n)
		return -ENOMEM;
	d->notes = n;
	va_start(ap, fmt);
	r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0)
		return -ENOMEM;
	/* a comment ends with its line */
	for (char *c = text; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	d->notes[d->n_notes++] = (struct dlio_note){
		.line = at ? at->line : 1,
		.column = at ? at->column : 1,
		.text = text,
	};
	return 0;
}

/* Off, or none: nothing is lost. */
static bool says_no(const struct conf_node *at)
{
	static const char *const words[] = { "false", "off", "no", "none",
					     "null",  "~",   "0",  "" };

	for (size_t i = 0;
	     at->kind == CONF_KIND_SCALAR && i < ARRAY_SIZE(words); i++)
		if (!strcasecmp(at->value, words[i]))
			return true;
	return at->kind != CONF_KIND_SCALAR && at->n == 0;
}

/* --- values ----------------------------------------------------------- */

struct reading {
	struct dlio *d;
	const char *name;
	struct err *err;
};

static int read_flag(const struct reading *r, const struct conf_node *at,
		     bool *ret)
{
	static const char *const yes[] = { "true", "on", "yes", "1" };

	*ret = false;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		*ret |= !strcasecmp(at->value, yes[i]);
	return *ret || says_no(at)
		       ? 0
		       : conf_node_error(at, r->name, r->err,
					 "%s: '%s' is not true or false",
					 at->key, at->value);
}

static int read_number(const struct reading *r, const struct key *k,
		       const struct conf_node *at, double *ret)
{
	int code = dlio_number(at, r->name, k->min, k->max, ret, r->err);

	if (code == 0 && k->type == COUNT && *ret != floor(*ret))
		return conf_node_error(at, r->name, r->err,
				       "%s: %s is not whole", at->key,
				       at->value);
	return code;
}

static int read_value(const struct reading *r, const struct key *k,
		      const struct conf_node *at)
{
	void *to = (char *)r->d + k->offset;
	char **text = to;

	if (k->type == TIME) {
		dist_time_free(to);
		return dlio_time(at, r->name, to, r->err);
	}
	if (at->kind != CONF_KIND_SCALAR)
		return conf_node_error(at, r->name, r->err, "%s: not one value",
				       at->key);
	if (k->type == NUMBER || k->type == COUNT)
		return read_number(r, k, at, to);
	if (strstr(at->value, "${"))
		return conf_node_error(at, r->name, r->err,
				       "%s: '%s' is an interpolation of Hydra; "
				       "write its value",
				       at->key, at->value);
	if (k->type == FLAG)
		return read_flag(r, at, to);
	free(*text);
	*text = strdup(at->value);
	return *text ? 0 : -ENOMEM;
}

/* `model: NAME`, as in the first round of MLPerf Storage; `defaults` and the
 * name are read elsewhere. */
static bool is_name(const struct conf_node *at)
{
	return !strcmp(at->key, "defaults") ||
	       (!strcmp(at->key, "model") && at->kind == CONF_KIND_SCALAR);
}

static int read_map(const struct reading *r, const struct conf_node *map,
		    const char *prefix)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < map->n; i++) {
		const struct conf_node *at = map->items[i];
		char path[PATH_MOST + 1]; /* and the dot after a section */
		const struct key *k;

		snprintf(path, PATH_MOST, "%s%s", prefix, at->key);
		k = find_key(path);
		if (k && k->type != NOTED)
			code = says_no(at) && k->type == TIME
				       ? 0
				       : read_value(r, k, at);
		else if (k && !says_no(at))
			code = dlio_note(r->d, at, "%s: %s", path, k->why);
		else if (!k && at->kind == CONF_KIND_MAPPING && !*prefix)
			code = read_map(r, at,
					strcmp(at->key, "data_reader")
						? strcat(path, ".")
						: "reader.");
		else if (!k && !says_no(at) && (*prefix || !is_name(at)))
			code = dlio_note(r->d, at, "%s: no counterpart", path);
	}
	return code;
}

/* --- Hydra ------------------------------------------------------------ */

/* `defaults` names other files, of which only _self_ is this one. */
static int check_defaults(const struct conf_node *at, const char *name,
			  struct err *err)
{
	for (size_t i = 0; at && i < at->n; i++)
		if (at->items[i]->kind != CONF_KIND_SCALAR ||
		    strcmp(at->items[i]->value, "_self_") != 0)
			return conf_node_error(
				at->items[i], name, err,
				"defaults: Hydra merges other files here; "
				"import the whole, which DLIO writes as "
				".hydra/config.yaml");
	return 0;
}

/* In Hydra's own config.yaml all is below `workload`. */
static int read_root(const struct reading *r, const struct conf_node *root)
{
	const struct conf_node *workload, *model, *other;
	int code;

	if (root->kind != CONF_KIND_MAPPING)
		return conf_node_error(root, r->name, r->err,
				       "not a workload of DLIO, but a list: "
				       "Hydra's overrides? import config.yaml");
	code = check_defaults(conf_node_get(root, "defaults"), r->name, r->err);
	if (code < 0)
		return code;
	workload = conf_node_get(root, "workload");
	if (workload && workload->kind == CONF_KIND_MAPPING)
		return read_root(r, workload);
	other = conf_node_get(root, "_target_");
	if (other)
		return conf_node_error(other, r->name, r->err,
				       "_target_: an object that Hydra makes, "
				       "not a workload of DLIO");
	model = conf_node_get(root, "model");
	if (model && is_name(model))
		code = read_value(r, find_key("model.name"), model);
	return code < 0 ? code : read_map(r, root, "");
}

/* --- all of it -------------------------------------------------------- */

/* The scalar at a path of two keys, to place an error or a note. */
static const struct conf_node *place(const struct conf_node *root,
				     const char *section, const char *key)
{
	const struct conf_node *at = conf_node_get(root, section), *value;

	if (!at || at->kind != CONF_KIND_MAPPING)
		return root;
	value = conf_node_get(at, key);
	return value ? value : at;
}

static int spread(const struct reading *r, const struct conf_node *at,
		  struct dist_time *t, double stdev)
{
	struct err why = { 0 };

	return dlio_time_spread(t, stdev, &why) < 0
		       ? conf_node_error(at, r->name, r->err, "%s", why.text)
		       : 0;
}

static int check_dlio(const struct reading *r, const struct conf_node *root)
{
	struct dlio *d = r->d;
	int code;

	if (!d->train)
		return conf_node_error(
			place(root, "workflow", "train"), r->name, r->err,
			"workflow.train: it is off: only training can be "
			"imported; for checkpoints see "
			"workloads/mlperf-checkpoint.yaml");
	if (!conf_node_get(root, "dataset"))
		return conf_node_error(root, r->name, r->err,
				       "not a workload of DLIO: 'dataset' is "
				       "missing");
	if (d->batch > d->files * d->per_file)
		return conf_node_error(place(root, "reader", "batch_size"),
				       r->name, r->err,
				       "batch_size: the dataset has only %.0f "
				       "samples, so there is no step",
				       d->files * d->per_file);
	code = spread(r, place(root, "train", "computation_time_stdev"),
		      &d->step, d->step_sd);
	if (code == 0)
		code = spread(r, place(root, "reader", "preprocess_time_stdev"),
			      &d->prep, d->prep_sd);
	return code;
}

/*
 * DLIO writes checkpoints after the epochs first, first + between, ...; ours
 * come every so many steps. With the first after `between`, or a single one in
 * the second half of the epochs, that is the same.
 */
static int plan_checkpoints(struct dlio *d, const struct conf_node *root)
{
	const struct conf_node *at =
		place(root, "checkpoint", "checkpoint_after_epoch");
	double epoch = floor(d->files * d->per_file / d->batch);

	if (!d->checkpoint)
		return 0;
	/* Source: config.py: model_size_bytes is 10,240 unless given */
	d->checkpoint_bytes = d->model_bytes > 0  ? d->model_bytes
			      : d->model_size > 0 ? d->model_size
						  : 10240;
	d->every = d->steps_between;
	if (d->steps_between > 0)
		return 0;
	d->every = 0;
	if (d->first > d->epochs || d->first < 1)
		return dlio_note(d, at,
				 "checkpoint.checkpoint_after_epoch: none is "
				 "due in %.0f epochs",
				 d->epochs);
	d->every = epoch * d->first;
	if (d->first == d->between ||
	    (d->first + d->between > d->epochs && d->first * 2 > d->epochs))
		return 0;
	d->every = epoch * fmax(d->between, 1);
	return dlio_note(d, at,
			 "checkpoint.checkpoint_after_epoch: the first is due "
			 "after epochs_between_checkpoints, too");
}

static int is_tensorflow(const struct dlio *d)
{
	const char *loader = d->data_loader ? d->data_loader : d->framework;

	return !loader || !strcmp(loader, "tensorflow");
}

/* What was taken, but not as DLIO has it. */
static int note_limits(struct dlio *d, const struct conf_node *root)
{
	const struct conf_node *format = place(root, "dataset", "format");
	int r = 0;

	if (!d->step.body.kind_name)
		r = dlio_note(d, place(root, "train", "computation_time"),
			      "train.computation_time: not given, so a step "
			      "takes no time, as in DLIO, and has no "
			      "utilisation");
	if (r == 0 && d->format && strcmp(d->format, "synthetic") != 0)
		r = dlio_note(d, format,
			      "dataset.format: %s: records are plain bytes and "
			      "not parsed",
			      d->format);
	if (r == 0 && d->per_file > 1 && d->record_sd > 0)
		r = dlio_note(d, format,
			      "dataset.record_length_bytes_stdev: records in "
			      "one file have one size");
	if (r == 0 && d->threads < 1)
		r = dlio_note(d, place(root, "reader", "read_threads"),
			      "reader.read_threads: 0: one worker reads, while "
			      "the GPU computes");
	if (r == 0 && d->model_size > 0 && d->model_bytes == 0 && d->checkpoint)
		r = dlio_note(d, place(root, "model", "model_size"),
			      "model.model_size: taken as the size of a "
			      "checkpoint; DLIO reads only model_size_bytes, "
			      "and writes 10 KiB");
	if (r == 0 && !is_tensorflow(d) && d->file_shuffle &&
	    (!d->sample_shuffle || !strcmp(d->sample_shuffle, "off")) &&
	    strcmp(d->file_shuffle, "off") != 0)
		r = dlio_note(d, place(root, "reader", "file_shuffle"),
			      "reader.file_shuffle: has no effect here, nor in "
			      "DLIO with this loader");
	return r;
}

/* As they are in the file. */
static int by_place(const void *a, const void *b)
{
	const struct dlio_note *x = a, *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->column < y->column ? -1 : x->column > y->column;
}

int dlio_parse(const char *bytes, size_t n, const char *name, struct dlio *ret,
	       struct err *err)
{
	_cleanup_conf_node_ struct conf_node *root = NULL;
	const struct conf_node *workload;
	struct reading r = { ret, name, err };
	int code;

	/* the defaults of ConfigArguments; seconds of a step and the AU are
	 * checked only where they are given */
	*ret = (struct dlio){ .train = true,
			      .record_bytes = 65536,
			      .files = 8,
			      .per_file = 1,
			      .batch = 1,
			      .threads = 1,
			      .prefetch = 2,
			      .epochs = 1,
			      .seed = -1,
			      .first = 1,
			      .between = 1 };
	code = conf_tree_parse(bytes, n, name, &root, err);
	if (code == 0)
		code = read_root(&r, root);
	if (code < 0)
		return code == -ENOMEM ? err_set(err, code, "out of memory")
				       : code;
	workload = conf_node_get(root, "workload");
	if (!workload || workload->kind != CONF_KIND_MAPPING)
		workload = root;
	code = check_dlio(&r, workload);
	if (code == 0)
		code = plan_checkpoints(ret, workload);
	if (code == 0)
		code = note_limits(ret, workload);
	if (ret->n_notes)
		qsort(ret->notes, ret->n_notes, sizeof(*ret->notes), by_place);
	return code == -ENOMEM ? err_set(err, code, "out of memory") : code;
}

void dlio_free(struct dlio *d)
{
	for (size_t i = 0; i < d->n_notes; i++)
		free(d->notes[i].text);
	free(d->notes);
	free(d->model);
	free(d->framework);
	free(d->format);
	free(d->data_loader);
	free(d->sample_shuffle);
	free(d->file_shuffle);
	dist_time_free(&d->prep);
	dist_time_free(&d->step);
}

/* --- a workload of ours ------------------------------------------------ */

/* Sides of an image that the transforms take (--image-size). */
enum { SIDE_MOST = 4096 };

static bool is_on(const char *shuffle)
{
	return shuffle && strcmp(shuffle, "off") != 0;
}

/* Who reads: DLIO's default is TensorFlow. */
static const char *loader_of(const struct dlio *d)
{
	if (d->data_loader)
		return d->data_loader;
	return d->framework ? d->framework : "tensorflow";
}

static bool reads_nothing(const struct dlio *d)
{
	return (d->format && !strcmp(d->format, "synthetic")) ||
	       !strcmp(loader_of(d), "synthetic");
}

static double samples_of(const struct dlio *d)
{
	return d->files * d->per_file;
}

/* --- parts ------------------------------------------------------------ */

/* The name of the file: "DIR/unet3d_h100.yaml" -> "unet3d_h100". */
static void write_name(const struct dlio *d, const char *path, FILE *f)
{
	const char *base = strrchr(path, '/');
	bool any = false;

	base = base ? base + 1 : path;
	if (!strncmp(base, "config.", 7) && d->model && isalnum(d->model[0]))
		base = d->model;
	fputs("name: ", f);
	for (const char *c = base; *c && *c != '.'; c++) {
		char low = (char)tolower((unsigned char)*c);
		bool ok = (low >= 'a' && low <= 'z') || isdigit(low);

		if (!any && !ok)
			continue;
		any = true;
		fputc(ok || low == '_' ? low : '-', f);
	}
	fputs(any ? "\n" : "dlio\n", f);
}

static void write_comment(const char *text, FILE *f)
{
	int column = 0;

	while (*text) {
		int n = (int)strcspn(text, " ");

		if (!column || column + 1 + n > 76) {
			fprintf(f, "%s", column ? "\n#     " : "#   ");
			column = column ? 5 : 3;
		} else {
			fputc(' ', f);
		}
		column += n + 1;
		fprintf(f, "%.*s", n, text);
		text += n;
		text += *text == ' ';
	}
	fputc('\n', f);
}

static void write_head(const struct dlio *d, const char *path, FILE *f)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	fputs("# Imported by gpemu-run from ", f);
	for (const char *c = base; *c; c++)
		fputc(isprint((unsigned char)*c) ? *c : '?', f);
	fputs(", a workload of DLIO.\n", f);
	if (d->n_notes)
		fputs("# Left out or changed:\n", f);
	for (size_t i = 0; i < d->n_notes; i++)
		write_comment(d->notes[i].text, f);
}

static void write_dataset(const struct dlio *d, FILE *f)
{
	fprintf(f, "dataset: {synth: records, files: %.0f, size: %.0f",
		d->files, fmax(rint(d->record_bytes * d->per_file), 1));
	if (d->record_sd > 0)
		/* of a sum of as many */
		fprintf(f, ", size_sd: %.0f",
			rint(d->record_sd * sqrt(d->per_file)));
	if (d->folders > 0)
		fprintf(f, ", classes: %.0f", fmin(d->folders, d->files));
	fputs("}\n", f);
}

static const char *order_of(const struct dlio *d)
{
	bool tensorflow = !strcmp(loader_of(d), "tensorflow");

	if (!is_on(d->sample_shuffle) &&
	    !(tensorflow && is_on(d->file_shuffle)))
		return "sequential";
	/* a stream of files, through a buffer in which they are shuffled */
	return tensorflow && d->per_file > 1 ? "quasi_random" : "shuffle";
}

static void write_loader(const struct dlio *d, FILE *f)
{
	double threads = fmax(d->threads, 1);

	if (reads_nothing(d)) {
		fprintf(f, "    loader: \"null\"\n    samples: %.0f\n",
			samples_of(d));
		return;
	}
	fprintf(f, "    loader: sync\n    workers: %.0f\n", threads);
	/* batches of each worker, as torch_data_loader.py divides them */
	fprintf(f, "    prefetch: %.0f\n    order: %s\n    drop_last: true\n",
		d->prefetch > 0 ? ceil(d->prefetch / threads) : 2, order_of(d));
	if (d->per_file > 1)
		fprintf(f, "    format: records:bytes=%.0f\n",
			fmax(rint(d->record_bytes), 1));
	if (d->odirect)
		fputs("    direct: true\n", f);
}

/*
 * DLIO drops what it read, and hands on as many bytes as record_length_resize
 * says, or the record has: those of an image here.
 */
static int write_prep(const struct dlio *d, FILE *f)
{
	_cleanup_free_ char *time =
		d->prep.body.kind_name ? dist_time_text(&d->prep) : strdup("0");
	double bytes = d->resize > 0 ? d->resize : d->record_bytes;
	double side = fmin(fmax(rint(sqrt(bytes / 3)), 1), SIDE_MOST);

	if (!time)
		return -ENOMEM;
	if (!reads_nothing(d))
		fprintf(f,
			"    prep: emulated\n    prep_time: \"%s\"\n"
			"    image_size: %.0f\n    prep_output: uint8\n",
			time, side);
	/* without a GPU PyTorch pins nothing */
	fputs("    pin: \"off\"\n", f);
	return 0;
}

static int write_train(const struct dlio *d, FILE *f)
{
	_cleanup_free_ char *step =
		d->step.body.kind_name ? dist_time_text(&d->step) : strdup("0");

	if (!step)
		return -ENOMEM;
	fprintf(f,
		"  train:\n    gpu: dlio\n    model: any\n"
		"    step_time: \"%s\"\n    batch: %.0f\n    epochs: %.0f\n",
		step, d->batch, d->epochs);
	if (d->steps > 0)
		fprintf(f, "    max_steps: %.0f\n", d->steps);
	write_loader(d, f);
	if (d->every > 0)
		fprintf(f,
			"    checkpoint_every: %.0f\n"
			"    checkpoint_size: %.0f\n",
			d->every, d->checkpoint_bytes);
	return write_prep(d, f);
}

int dlio_write(const struct dlio *d, const char *path, FILE *f)
{
	bool judged = d->au > 0 && d->step.body.kind_name;

	write_head(d, path, f);
	write_name(d, path, f);
	fputs("question: Does the storage keep the accelerator busy?\n", f);
	write_dataset(d, f);
	if (d->seed >= 0)
		fprintf(f, "seed: %.0f\n", d->seed);
	fputs("base:\n"
	      "  # DLIO measures the storage that it runs on: name one here\n"
	      "  fs: {storage: ideal, cache_policy: none}\n",
	      f);
	if (write_train(d, f) < 0)
		return -ENOMEM;
	if (judged)
		fprintf(f,
			"rules: {au: %.10g%%}\nkind: self\n"
			"expect: [{name: busy as required, "
			"that: au >= %.10g}]\n",
			d->au * 100, d->au * 100);
	return 0;
}
