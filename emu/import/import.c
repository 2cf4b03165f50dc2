/* SPDX-License-Identifier: MIT */
#include "emu/import/import.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/util.h"

/* Arbitrary: a header line or the first keys are in the first page. */
enum { FIRST_BYTES = 4096 };
/* Arbitrary: a thousand times the largest table known, and memory for it. */
enum { FILE_MOST = 256 << 20 };

/* --- choosing a reader ------------------------------------------------ */

static const struct import_ops *ops_of(const struct plugin *p)
{
	return container_of(p, struct import_ops, plugin);
}

static int detect(const struct import_file *f, const struct plugin **ret)
{
	char known[ERR_LIST] = "";

	for (size_t i = 0; import_table[i]; i++) {
		if (ops_of(import_table[i])->knows(f)) {
			*ret = import_table[i];
			return 0;
		}
		err_list(known, import_table[i]->name);
	}
	return err_set(f->err, -EINVAL, "%s:1:1: no known format (known: %s)",
		       f->path, known);
}

int import_parse(const char *bytes, size_t n, const char *path,
		 const char *format, struct table *t, struct err *err)
{
	struct plugin_choice choice = { 0 };
	struct import_file f = { path, bytes, n, NULL, t, err };
	int r = format ? plugin_choose(import_table, "format of tables", format,
				       &choice, err)
		       : detect(&f, &choice.plugin);

	f.options = choice.options;
	if (r == 0)
		r = ops_of(choice.plugin)->read(&f);
	plugin_choice_fini(&choice);
	return r;
}

int import_load(const char *path, const char *format, struct table *t,
		struct err *err)
{
	_cleanup_free_ char *bytes = NULL;
	size_t n;
	int r = util_read_file(path, FILE_MOST, &bytes, &n);

	if (r < 0)
		return err_set(err, r, "%s: %s", path, strerror(-r));
	return import_parse(bytes, n, path, format, t, err);
}

int import_check(const void *object, struct err *err)
{
	return plugin_choice_check(import_table, "format of tables", object,
				   err);
}

/* --- for readers ------------------------------------------------------ */

const char *import_base(const struct import_file *f)
{
	const char *slash = strrchr(f->path, '/');

	return slash ? slash + 1 : f->path;
}

bool import_contains(const struct import_file *f, const char *word)
{
	return f->n && memmem(f->bytes, MIN(f->n, (size_t)FIRST_BYTES), word,
			      strlen(word)) != NULL;
}

/* Names are keys of YAML and arguments of a shell. */
static bool good_name(const char *s)
{
	if (!isalnum((unsigned char)*s))
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("_.+:-", *s))
			return false;
	return s[-1] != ':';
}

/* "a/b/GPU/file" -> "GPU/file" */
static const char *short_path(const struct import_file *f)
{
	const char *base = import_base(f);

	if (base - f->path < 2)
		return base;
	for (base -= 2; base > f->path && *base != '/'; base--)
		;
	return base + (*base == '/');
}

/* The sources of a model, each once. */
static int add_source(struct table_model *m, const struct import_file *f)
{
	const char *path = short_path(f);
	char *all;

	if (m->source && strstr(m->source, path))
		return 0;
	if (asprintf(&all, "%s%s%s", m->source ? m->source : "",
		     m->source ? ", " : "", path) < 0)
		return -ENOMEM;
	free(m->source);
	m->source = all;
	return 0;
}

int import_add(const struct import_file *f, const struct import_step *step,
	       struct err *err)
{
	double forward = step->forward_ms > 0 ? step->forward_ms
					      : step->step_ms / 3;
	struct table_point point = {
		.batch = step->batch,
		.v = { forward, step->step_ms - forward },
	};
	struct table_model *m;
	int r;

	if (!good_name(step->model))
		return err_set(err, -EINVAL,
			       "'%s': a model's name has letters, digits and "
			       "_ . + : -",
			       step->model);
	if (step->batch < 1 || step->batch > IMPORT_BATCH_MAX)
		return err_set(err, -EINVAL,
			       "%s: a batch size of %" PRIu64
			       " is not from 1 to %d",
			       step->model, step->batch, IMPORT_BATCH_MAX);
	if (!(step->step_ms >= IMPORT_MS_MIN &&
	      step->step_ms <= IMPORT_MS_MAX) ||
	    forward > step->step_ms)
		return err_set(err, -EINVAL,
			       "%s: a step of %g ms with a forward pass of "
			       "%g ms",
			       step->model, step->step_ms, forward);
	r = table_add(f->table, step->model, &point, step->average, &m);
	if (r == -EEXIST)
		return err_set(err, -EINVAL,
			       "batch size %" PRIu64 " of %s is listed twice",
			       step->batch, step->model);
	if (r < 0)
		return r;
	m->parameters = MAX(m->parameters, step->parameters);
	m->sample_bytes = MAX(m->sample_bytes, step->sample_bytes);
	m->cv = MAX(m->cv, step->cv);
	return step->cite ? add_source(m, f) : 0;
}
