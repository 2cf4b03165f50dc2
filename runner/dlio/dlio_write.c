/* SPDX-License-Identifier: MIT */
/* A workload of ours from one of DLIO. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/util.h"
#include "runner/dlio/dlio.h"

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
