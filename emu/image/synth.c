/* SPDX-License-Identifier: MIT */
#include "emu/image/synth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf/plugin_choice.h"
#include "common/util.h"
#include "common/word.h"
#include "emu/image/synth_jpeg.h"

struct options {
	uint64_t files, classes, seed;
	char *content;
	double scale;
	uint64_t size, size_sd; /* of the files of RECORDS, bytes */
};

/* The dataset that has no profile: its sizes are options. */
#define RECORDS "records"

static const struct conf_field fields[] = {
	{ CONF_KEY(files, CONF_UINT, struct options), .min = 1, .max = 4e9 },
	{ CONF_KEY(classes, CONF_UINT, struct options), .min = 1, .max = 1e6 },
	{ CONF_KEY(seed, CONF_UINT, struct options) },
	{ CONF_KEY(content, CONF_STRING, struct options) },
	{ CONF_KEY(scale, CONF_DOUBLE, struct options), .min = 1e-6,
	  .max = 1e6 },
	{ CONF_KEY(size, CONF_SIZE, struct options), .min = 1, .max = 1e15 },
	{ CONF_KEY(size_sd, CONF_SIZE, struct options), .min = 0, .max = 1e15 },
	{ 0 },
};

struct synth {
	struct dataset_files d;
	uint64_t *sizes;
	struct synth_jpeg *jpeg; /* NULL: random, or not prepared */
};

/* Splits `spec` in place; *ret_name is its first word. */
static int parse(char *spec, struct options *o, char **ret_name,
		 struct err *err)
{
	static const char *const contents[] = { "random", "jpeg" };
	char *options = spec;
	int r = 0;

	*ret_name = strsep(&options, ",");
	if (options && !*options)
		r = err_set(err, -EINVAL, "an option is missing after ','");
	else if (options)
		r = plugin_options_set(fields, o, options, err);
	if (r == 0 && o->content)
		r = WORD_FIND(contents, "content", o->content, err);
	return MIN(r, 0);
}

static int load(const char *name, const struct options *o,
		struct dataset_profile *ret, struct err *err)
{
	bool records = !strcmp(name, RECORDS);

	if (!records && o->size)
		return err_set(err, -EINVAL, "size= is for " RECORDS);
	if (!records)
		return dataset_profile_load(name, ret, err);
	if (!o->files || !o->size)
		return err_set(err, -EINVAL, RECORDS " needs files= and size=");
	return dataset_profile_normal(o->files, (double)o->size,
				      (double)o->size_sd, ret, err);
}

static int fill_synth(struct synth *s, const struct options *o,
		      const struct dataset_profile *p, struct err *err)
{
	const char *content = o->content ? o->content : p->format;
	struct err why = { 0 };
	int r;

	s->d = (struct dataset_files){ .files = o->files ? o->files : p->files,
				       .classes = o->classes,
				       .seed = o->seed,
				       .scale = o->scale,
				       .jpeg = !strcmp(content, "jpeg") };
	if (!s->d.classes)
		s->d.classes = dataset_files_classes(p, s->d.files);
	if (s->d.classes > s->d.files)
		return err_set(err, -EINVAL, "more classes than files");
	if (s->d.files > UINT32_MAX)
		return err_set(err, -EINVAL, "more than %u files: give files=N",
			       UINT32_MAX);
	r = dataset_files_sizes(&s->d, p, &s->sizes, &why);
	if (r < 0)
		return err_set(err, r, "%s%s", why.text,
			       r == -EINVAL ? ": give a larger scale=X or "
					      "content=random"
					    : "");
	return 0;
}

int synth_open(const char *spec, struct synth **ret, struct err *err)
{
	_cleanup_free_ char *copy = strdup(spec);
	struct options o = { .seed = 1, .scale = 1 };
	struct dataset_profile p = { 0 };
	struct synth *s = calloc(1, sizeof(*s));
	char *name;
	int r = copy && s ? parse(copy, &o, &name, err) : -ENOMEM;

	if (r == 0)
		r = load(name, &o, &p, err);
	if (r == 0)
		r = fill_synth(s, &o, &p, err);
	dataset_profile_free(&p);
	conf_free(fields, &o);
	if (r < 0) {
		synth_close(s);
		err_set(err, r, "%s", strerror(-r));
		err_prefix(err, "synth");
		return r;
	}
	*ret = s;
	return 0;
}

int synth_prepare(struct synth *s, struct err *err)
{
	int r = s->d.jpeg ? synth_jpeg_new(&s->d, s->sizes, &s->jpeg, err) : 0;

	if (r < 0)
		err_prefix(err, "synth");
	return r;
}

void synth_close(struct synth *s)
{
	if (!s)
		return;
	synth_jpeg_free(s->jpeg);
	free(s->sizes);
	free(s);
}

const struct dataset_files *synth_files(const struct synth *s)
{
	return &s->d;
}

uint64_t synth_size(const struct synth *s, uint64_t i)
{
	return s->sizes[i];
}

void synth_read(const struct synth *s, uint64_t i, uint64_t offset, void *buf,
		size_t n)
{
	if (s->jpeg)
		synth_jpeg_read(s->jpeg, i, s->sizes[i], offset, buf, n);
	else
		dataset_files_random(&s->d, i, offset, buf, n);
}
